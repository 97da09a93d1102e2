#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Holds and waits of a profile against those that the program itself has measured (truth.c): within 5 %.
. "$(dirname "$0")/../command/lib.sh"
: "${TRUTH:?}"

# near FIGURE: of each object that the file `truth` names, the figure in the report $out is as there, or between the two.
near() {
    local name ns most
    while read -r name ns most; do
        json ".[0].objects[] | select(.symbol == \"$name\") | $1 > 0.95 * $ns and $1 < 1.05 * ${most:-$ns}" || return
    done <truth
}
# measured FIGURE KIND OPTION...: profiles the program until that is so, three times at most: it may be interrupted
# between its clock and its call.
measured() {
    local figure=$1 kind=$2
    shift 2
    for _ in 1 2 3; do
        subutai profile "$@" -o profiled -- "$TRUTH" "$kind" && printf '%s\n' "$out" | tee all | grep -v '^changed' >truth
        subutai report --json profiled/truth.sbt
        ! near "$figure" >/dev/null || break
    done
}

for options in '--engine glibc' '--engine glibc --stacks' '--engine direct' '--engine direct --wait switch'; do
    # shellcheck disable=SC2086 # several words
    measured .hold.ns holds $options
    check "$options: seldom long holds beside many short ones, and around them" near .hold.ns
    # shellcheck disable=SC2086
    measured .hold.ns sleeps $options
    check "$options: holds in which the thread sleeps, among many short ones" near .hold.ns
    # shellcheck disable=SC2086
    measured .wait.ns relocks $options
    check "$options: waits for a mutex that is held on after a broadcast" near .wait.ns
    check "$options: and not for the condition, but where the program did" json \
        ".[0].summary.waiting | .cond.ns - $(awk '/^changed/ { print $2 }' all) | fabs < 0.05 * $(awk '{ print $2 }' truth)"
done
finish
