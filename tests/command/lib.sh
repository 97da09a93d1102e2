# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# What the tests of the command share; sourced. Results are printed as TAP. A test script sets up `check`s between the
# sourcing and `finish`. From meson: SUBUTAI (the command), STUB (a preload that only says so), CC, SOURCE_ROOT,
# BUILD_ROOT.
set -u
: "${SUBUTAI:?}" "${STUB:?}" "${CC:?}" "${SOURCE_ROOT:?}" "${BUILD_ROOT:?}"
unset "${!SUBUTAI_@}" LD_PRELOAD

. "$SOURCE_ROOT/tests/lib/tap.sh"
. "$SOURCE_ROOT/tests/lib/session.sh"
enter_scratch subutai-command

# run ARG...: any command, bounded; leaves $status, $out and $err.
run() {
    within 60 "$@"
}

# within SECONDS ARG...: the same, bounded by so many, stretched.
within() {
    local limit
    limit=$(stretched "$1")
    shift
    timeout -k 5 "$limit" "$@" >"$scratch/.out" 2>"$scratch/.err" </dev/null
    status=$?
    out=$(cat "$scratch/.out")
    err=$(cat "$scratch/.err")
    ((status != 124)) || err="$err (ended after $limit s: a hang)"
}

# until_said REGEX FILE ARG...: a command that does not end by itself goes on until it has written REGEX to FILE.
until_said() {
    local regex=$1 file=$2 pid
    shift 2
    rm -f "$file"
    setsid "$@" >"$scratch/.out" 2>"$scratch/.err" </dev/null &
    pid=$!
    started+=("$pid")
    comes grep -qsE -e "$regex" "$file"
    status=$?
    kill -KILL -- -"$pid"
    wait "$pid" 2>/dev/null
    unset 'started[-1]'
    out=$(cat "$scratch/.out")
    err=$(cat "$scratch/.err" "$file" 2>/dev/null)
}

# subutai ARG...
subutai() {
    run "$SUBUTAI" "$@"
}

# check TEXT COMMAND...: one TAP point; on failure what the last `run` left is shown.
check() {
    local text=$1
    shift
    if "$@"; then
        point 0 "$text"
    else
        point 1 "$text"
        note "failed: $*"
        note "status: ${status-}"
        note "stdout: ${out-}"
        note "stderr: ${err-}"
    fi
}

# json FILTER: jq's answer about $out is true; also fails if $out is not JSON.
json() {
    jq -es "$1" <<<"$out" >/dev/null || { echo "# jq -s '$1' is not true" && false; }
}

# refuses REGEX ARG...: exit 2, nothing on stdout, one line on stderr that matches.
refused_with() {
    is "$status" 2 && is "$out" "" && is "$(wc -l <"$scratch/.err")" 1 && matches "$err" "^subutai: " &&
        matches "$err" "$1"
}
refuses() {
    local regex=$1
    shift
    subutai "$@"
    check "refused: ${*:-no arguments}" refused_with "$regex"
}
