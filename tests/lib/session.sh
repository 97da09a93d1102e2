# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Programs with a time limit, a scratch directory, and other processes beside them; sourced. When the limit strikes, the
# stacks of all threads are written to stderr (they are what a hang is diagnosed from), then the program's whole session
# is killed. coreutils' timeout alone cannot do that: it kills before one could look.
started=() load=()

# enter_scratch NAME: a private current directory, $scratch. It and all processes that were started go at the end,
# whatever ends the script.
enter_scratch() {
    scratch=$(mktemp -d "${TMPDIR:-/tmp}/$1.XXXXXX") || exit 99
    cd "$scratch" || exit 99
    trap clean_up EXIT
    trap 'exit 130' INT TERM HUP
}

clean_up() {
    local status=$? pid
    trap - EXIT INT TERM HUP
    for pid in "${started[@]}" "${load[@]}"; do
        kill -CONT -- -"$pid" 2>/dev/null
        kill -KILL -- -"$pid" 2>/dev/null
    done
    cd /
    rm -rf "$scratch"
    exit "$status"
}

# stacks SESSION: what every thread of the session's processes is doing, on stderr.
stacks() {
    local pid task
    for pid in $(ps -o pid= -s "$1"); do
        echo "--- stacks of $pid: $(tr '\0' ' ' <"/proc/$pid/cmdline")"
        if command -v gdb >/dev/null; then
            timeout -k 2 30 gdb -nx -p "$pid" -batch -ex 'set pagination off' -ex 'thread apply all bt 14' 2>/dev/null |
                grep -E '^(#|Thread )' | head -n 240
        else
            for task in "/proc/$pid/task"/*; do
                echo "${task##*/}: $(cat "$task/wchan" 2>/dev/null) $(cat "$task/syscall" 2>/dev/null)"
            done
        fi
    done >&2
}

# stretched SECONDS: how long that is on this machine, in whole seconds. Limits only end what hangs: where others use the
# machine or another processor is emulated, CK_TIMEOUT_MULTIPLIER says how many times longer they are, as it says it to the
# tests in C. It may have a fraction, which this shell's arithmetic does not know: it is counted in thousandths.
stretched() {
    local whole=${CK_TIMEOUT_MULTIPLIER:-1} fraction=
    if [[ $whole == *.* ]]; then
        fraction=${whole#*.}
        whole=${whole%%.*}
    fi
    fraction=${fraction}000
    echo $((($1 * (10#0$whole * 1000 + 10#${fraction:0:3}) + 999) / 1000))
}

# comes CMD... : CMD succeeds sooner or later; fails only where what it waits for hangs. A state is waited for by this, never
# by a time after which it should be there.
comes() {
    local end=$((SECONDS + $(stretched 60)))
    until "$@"; do
        ((SECONDS < end)) || return 1
        sleep 0.05
    done
}

# no_process PID... : none of them is alive; one that has ended and is not waited for yet is not.
no_process() {
    local pid state
    for pid; do
        read -r _ state 2>/dev/null < <(grep -s ^State: "/proc/$pid/status") || continue
        [[ $state == [ZX]* ]] || return 1
    done
}

# bounded LIMIT CMD... : CMD in a session of its own, 124 if it was still running after LIMIT seconds, stretched.
bounded() {
    local limit pid status
    limit=$(stretched "$1")
    shift
    setsid "$@" <&0 &
    pid=$!
    started+=("$pid")
    if ! timeout "$limit" tail -s 0.02 --pid="$pid" -f /dev/null; then
        echo "--- still running after $limit s: $*" >&2
        stacks "$pid"
        kill -KILL -- -"$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
        return 124
    fi
    wait "$pid"
    status=$?
    # What the program left behind in its session (a daemon, a stuck child) would disturb the next measurement.
    kill -KILL -- -"$pid" 2>/dev/null
    unset 'started[-1]'
    return "$status"
}

# allowed_cpu: the number of a CPU that this script may use.
allowed_cpu() {
    taskset -cp $$ | sed 's/.*: *//; s/[-,].*//'
}

# begin_load N: so many processes that compute, until end_load or the end of the script.
begin_load() {
    local i
    for ((i = 0; i < $1; i++)); do
        setsid sh -c 'while :; do :; done' &
        load+=("$!")
    done
}

end_load() {
    local pid
    for pid in "${load[@]}"; do
        kill -KILL -- -"$pid"
        wait "$pid" 2>/dev/null
    done
    load=()
}
