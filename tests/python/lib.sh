# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# What the tests of the Python package share; sourced. From meson, beside what tests/command/lib.sh needs: VENV (a Python
# with the needed packages, made by tools/venv), WRITE_TRACE.
. "$(dirname "${BASH_SOURCE[0]}")/../command/lib.sh"
: "${VENV:?}" "${WRITE_TRACE:?}"
unset "${!PYSUBUTAI_@}"
export PYTHONPATH=$SOURCE_ROOT/python/src PYTHONDONTWRITEBYTECODE=1

# need_python TEXT: ends the test with TEXT skipped if there is no such Python; else PYSUBUTAI_PYTHON is that one.
need_python() {
    if [ ! -x "$VENV/bin/python" ]; then
        skip "$1" "no $VENV: tools/venv ${BUILD_ROOT##*/} makes it"
        finish
    fi
    export PYSUBUTAI_PYTHON=$VENV/bin/python
}

# four FILE [ROUNDS [NS]]: a trace of four threads that meet at a barrier; NS more of work in each round.
four() {
    awk -v n="${2:-10}" -v more="${3:-0}" 'BEGIN {
        print "0 init object=0 type=3 size=4"
        for (t = 1; t < 4; t++) print "0 thread_create other=" t
        for (t = 0; t < 4; t++) for (i = 0; i < n; i++) {
            print t, "mutex_lock object=1 work=" more + 1000 + t * 100; print t, "mutex_unlock object=1 work=500"
            print t, "barrier_wait object=0 work=2000" }
        for (t = 1; t < 4; t++) { print t, "thread_end"; print "0 thread_join other=" t }
        print "0 thread_end" }' | "$WRITE_TRACE" "$1" || { echo "Bail out! cannot write $1" && exit 99; }
}

# A command in the place of the real one that notes down each prediction in $scratch/calls, after what is in
# $scratch/before, shell commands.
counting_command() {
    : >before
    : >calls
    cat >counting <<EOF
#!/bin/bash
if [ "\$1 \$2" = 'predict --json' ]; then
    . '$scratch/before'
    echo "\$*" >>'$scratch/calls'
fi
exec '$SUBUTAI' "\$@"
EOF
    chmod +x counting
    export PYSUBUTAI_COMMAND=$scratch/counting
}
n_calls() {
    wc -l <calls
}
listed() { # FOLDER: its files on one line
    find "$1" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort | tr '\n' ' '
}
lines() { # FILE
    wc -l 2>/dev/null <"$1" || echo 0
}

# await TEXT COMMAND...: until the command succeeds, at most 30 s, stretched.
await() {
    local text=$1 end
    end=$((SECONDS + $(stretched 30)))
    shift
    while ((SECONDS < end)); do
        ! "$@" >/dev/null 2>&1 || return 0
        sleep 0.05
    done
    echo "Bail out! $text: not in time"
    exit 99
}

# begin NAME COMMAND...: in the background, in a session of its own that ends with the test; its process id in $begun.
begin() {
    local name=$1
    shift
    setsid "$@" >"$name.out" 2>"$name.err" </dev/null &
    begun=$!
    started+=("$begun")
}

# sweep_ends STATUS REGEX: the last `run` ended so, with one line on stderr that matches.
sweep_ends() {
    is "$status" "$1" && is "$(lines "$scratch/.err")" 1 && matches "$err" "^subutai: sweep: $2"
}

# As run, for a command that says each step as it is done: it may take as long as it goes on, and two minutes for a step.
run_as_long() {
    local size=0 seen=0 waited=0 child
    "$@" >"$scratch/.out" 2>"$scratch/.err" </dev/null &
    child=$!
    while kill -0 "$child" 2>/dev/null && ((waited < 120)); do
        sleep 1
        seen=$(stat -c %s "$scratch/.out")
        waited=$((seen == size ? waited + 1 : 0)) size=$seen
    done
    ((waited < 120)) || kill "$child"
    wait "$child"
    status=$?
    out=$(<"$scratch/.out") err=$(<"$scratch/.err")
}

# points PREFIX: the points of the test in Python that `run` has just run (tests/python/points.py) are points of this.
points() {
    local result text
    while read -r result text; do
        case $result in
        ok) point 0 "$1${text#*- }" ;;
        not) point 1 "$1${text#*- }" ;;
        '#') note "$text" ;; # what a failed one says
        esac
    done <<<"$out"
    check "$1all of it ran" matches "$status $out" $'^0 .*\n1\.\.[0-9]+$'
}

# made_waits FILE: a trace of waits with ends that are known from what stands here: generated, so that nothing depends on
# the machine.
made_waits() {
    "$WRITE_TRACE" "$1" <<'END'
0 init object=0 type=3 size=3
0 thread_create other=1
0 thread_create other=2
0 mutex_lock object=1 order=1 work=1000 took=20
0 mutex_unlock object=1 work=50000 took=10
0 rwlock_wrlock object=2 order=1 work=10 took=10
0 rwlock_unlock object=2 work=100000 took=10
0 rwlock_wrlock object=2 order=2 took=300000
0 rwlock_unlock object=2 took=10
0 barrier_wait object=0 order=1 work=10 took=2000000
0 cond_broadcast object=3 order=1 work=100 took=100
0 sem_post object=4 order=1 work=5000000 took=100
0 thread_join other=1 took=40000000
0 thread_join other=2 took=10
0 mutex_lock object=8 order=1
0 mutex_unlock object=8
0 thread_end
1 mutex_lock object=1 order=2 work=2000 took=60000
1 mutex_unlock object=1 work=10
1 rwlock_rdlock object=2 order=1 took=100000
1 rwlock_unlock object=2 work=100000
1 barrier_wait object=0 order=1 work=1000 took=2000000
1 sem_wait object=4 order=1 took=9000000
1 mutex_lock object=5 order=1 took=10
1 cond_wait object=6 other=5 order=0 relock=2 result=110 took=20000000
1 mutex_unlock object=5
1 thread_end work=1000
2 rwlock_rdlock object=2 order=1 work=3000 took=150000
2 rwlock_unlock object=2 work=200000
2 barrier_wait object=0 order=1 work=1500000 took=2000
2 mutex_lock object=7 order=1 took=10
2 cond_wait object=3 other=7 order=1 relock=2 took=1000000
2 mutex_unlock object=7
2 mutex_lock object=8 order=2 took=5000
2 thread_end
END
    check "a trace is made" is $? 0
}
