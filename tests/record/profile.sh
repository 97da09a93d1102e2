#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Profiles: what was counted is what was done, whatever interrupts it, and however the program ends.
. "$(dirname "$0")/../command/lib.sh"
: "${SUBJECT:?}" "${CHECK:?}"

# profile WHAT [OPTION...]: the subject, its profile in t.sbt
profile() {
    local what=$1
    shift
    rm -f ./*.sbt
    subutai record -o t.sbt --record-calls waits --engine "$engine" "$@" -- "$SUBJECT" "$what"
}
# possible FILE COUNT...: what it says is possible, and as the subject has counted
possible() {
    local said
    said=$("$CHECK" "$@") || { echo "# ${said//$'\n'/$'\n# '}" && false; }
}
info() { # FILE FILTER
    subutai trace info --json "$1"
    json "map($2) | all"
}
# names OP: a line for each stack of that operation: its functions, the innermost first
names() {
    local kind sites site
    "$CHECK" t.sbt --stacks | while read -r kind sites; do
        [[ $kind == "$1" ]] || continue
        for site in $sites; do
            [[ $site == "$SUBJECT"+* ]] && addr2line -f -e "$SUBJECT" "${site#*+}" | head -1
        done | tr '\n' ' '
        echo
    done
}

# has_stack KIND PATTERN: on a busy machine other calls wait for long enough, too.
has_stack() {
    names "$1" | grep -E "$2" >/dev/null
}

for engine in glibc direct ni; do
    for what in counts lives handlers threads cancels waits beside signals relocks holds; do
        profile $what
        check "$engine, $what: the program ends well" is "$status $err" "0 "
        # shellcheck disable=SC2086 # words
        check "$engine, $what: each call is there, and possible" possible t.sbt $out
        check "$engine, $what: whole" info t.sbt .whole
    done
    profile gone
    check "$engine: semaphores that are gone when the post returns: the program ends well" is "$status $err" "0 "
    # shellcheck disable=SC2086
    check "$engine: each post is there" possible t.sbt $out
    profile sites
    # shellcheck disable=SC2086
    check "$engine: places and objects that only handlers use have names" possible t.sbt $out
    profile sites --record-calls all
    check "$engine: and among all events" possible t.sbt --names
    profile ends
    check "$engine: exit while threads lock: its status" is "$status $err" "3 "
    check "a whole profile" possible t.sbt thread_create=4
    check "whole" info t.sbt .whole
    profile under_way
    check "$engine: exit while the release is under way that ended the last wait: its status" is "$status $err" "3 "
    # shellcheck disable=SC2086
    check "a whole profile" possible t.sbt whole $out
done
engine=glibc
profile reused
# shellcheck disable=SC2086
check "memory of a lock that was never given back: no hold that lasts until the next one's end" possible t.sbt $out
profile many
# shellcheck disable=SC2086
check "more objects than there is room for: each call is there" possible t.sbt $out
check "in at most 4 MB" test "$(stat -c %s t.sbt)" -lt 4000000
profile fresh
# shellcheck disable=SC2086
check "new objects in each second, of which there is room for a part: each has its own calls" possible t.sbt $out
subutai report --json t.sbt
check "and holds over several writings are there once" json '.[0].objects | map(select(.acquisitions > 100000)) |
    length == 1 and (.[0] | .hold.n > 0.9 * .acquisitions and .hold.n < 1.1 * .acquisitions)'
profile filled
# shellcheck disable=SC2086
check "a table that fills up slowly: what comes a moment after that has its own calls" possible t.sbt $out
profile forks
# shellcheck disable=SC2086
check "a process that forks: its own calls" possible t.sbt $out
check "and its child's, in a file of their own" possible t.*.sbt mutex_lock=77 thread_end=1
profile killed
check "a killed program: its status" is "$status" 137
# shellcheck disable=SC2086
check "has the calls of long before" possible t.sbt $out
check "and no whole trace" info t.sbt '.whole | not'

profile waits --record-stacks 1
# shellcheck disable=SC2086
check "with stacks: the same counts" possible t.sbt $out mutex_lock:stacks=1 mutex_unlock:stacks=1
check "the stack of the wait" has_stack mutex_lock '^inner_wait middle_wait wait_deep $'
check "the stack of what ended it" has_stack mutex_unlock '^inner_release outer_release (waits )?main '
profile ways --record-stacks 1
# shellcheck disable=SC2086
check "one call site, to which four ways lead in turns: its waits" possible t.sbt $out
check "each has the stack of its own way" is \
    "$(names cond_wait | sed 's/ main .*//' | sort | uniq -c | awk '{$1 = $1; print}' | paste -sd,)" \
    "10 nap by_left over_left deeper ways,10 nap by_left over_left ways,10 nap by_left under_left ways,10 nap by_right over_right ways"
profile coroutines --record-stacks 1
check "coroutines that wait at one place of a large stack, and of a small one: the program ends well" is "$status $err" "0 "
# shellcheck disable=SC2086
check "its waits" possible t.sbt $out
check "each has its stack" is \
    "$(names cond_wait | sed 's/ run_coroutines .*//' | sort | uniq -c | awk '{$1 = $1; print}' | paste -sd,)" \
    "4 nap by_left over_left,8 nap sink on_it"
profile counts --record-stacks 1
# shellcheck disable=SC2086
check "stacks of many waits at a time" possible t.sbt $out
rm -f ./*.sbt
subutai record -o t.sbt --record-stacks 1 -- "$SUBJECT" waits
check "stacks without a profile" has_stack mutex_lock '^inner_wait middle_wait '
check "of releases too" has_stack mutex_unlock '^inner_release outer_release (waits )?main '
check "but of those alone that end a wait" is "$("$CHECK" t.sbt --stacks | grep -c '^mutex_unlock ')" 1
subutai record -o t.sbt -- "$SUBJECT" waits
check "without the option there are none" is "$("$CHECK" t.sbt --stacks)" ""
finish
