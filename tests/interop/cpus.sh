#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The number of CPUs that a program may use, as the library finds it: at the start and while the program runs, by
# affinity, and by the quota of a control group where one can be made here. The library says each number once.
. "$(dirname "$0")/lib.sh"
need taskset nproc
n=$(nproc)
[ "$n" -gt 1 ] || {
    echo "1..0 # SKIP there is one CPU"
    exit 0
}

# found TEXT "NUMBER..." CMD... : the numbers that the library finds, one after the other.
found() {
    local text=$1 wanted=$2
    shift 2
    bounded 60 env LD_PRELOAD="$library" SUBUTAI_VERBOSE=2 "$@" >out 2>err
    check "$text: goes on" is "$(cat out)" "done" || sed 's/^/# /' err
    check "$text" is "$(sed -n 's/^subutai: CPUs that may be used: //p' err | tr '\n' ' ')" "$wanted "
}

found "as many as there are" "$n" "$bin/cpus" only
found "taskset at the start" 1 taskset -c "$(allowed_cpu)" "$bin/cpus" only
found "all threads are limited while they run, and freed" "$n 1 $n" "$bin/cpus" affinity
found "threads that only switch are limited, and freed" "$n 1 $n" env SUBUTAI_WAIT=switch "$bin/cpus" busily
found "each thread is bound to one CPU" "$n" "$bin/cpus" bound

two=$(taskset -cp $$ | sed 's/.*: //' | tr , '\n' | awk -F- '{ for (i = $1; i <= $NF; i++) print i }' | head -n 2 | paste -sd ,)

# meets TEXT PATTERN VARIABLE... : two threads of libgomp, as few as CPUs, meet again and again until the library says so.
meets() {
    local text=$1 pattern=$2 program
    shift 2
    touch runs
    setsid env LD_PRELOAD="$library" SUBUTAI_VERBOSE=3 "$@" taskset -c "$two" "$bin/omp-beside" runs >out 2>err &
    program=$!
    started+=("$program")
    check "$text" comes grep -q "^subutai: $pattern$" err
    rm runs
    check "$text: the program ends" comes no_process "$program"
    check "$text: nothing is lost" is "$(cat out)" "done" || sed 's/^/# /' err
}

# That libgomp spins for longer where no other program wants the CPUs cannot be looked at while other tests run.
if [ -x "$bin/omp-beside" ]; then
    begin_load $((2 * n))
    meets "libgomp spins for a moment beside programs that compute" \
        'other programs want the CPUs: libgomp spins for a moment' SUBUTAI_WAIT=adaptive
    end_load
fi

# A group of its own, of version 1 or 2. Where none can be made, the unit tests of os/quota have to do.
group=
for top in /sys/fs/cgroup /sys/fs/cgroup/cpu /sys/fs/cgroup/cpu,cpuacct; do
    mkdir "$top/subutai-test-$$" 2>/dev/null || continue
    group=$top/subutai-test-$$
    for file in cpu.max cpu.cfs_quota_us; do
        [ ! -w "$group/$file" ] || limit=$group/$file
    done
    if [ -n "${limit-}" ] && sh -c 'echo $$ >"$0/cgroup.procs"' "$group" 2>/dev/null; then
        break
    fi
    rmdir "$group"
    group=
done
if [ -n "$group" ]; then
    found "a quota that comes and goes while threads run" "$n 1 $n" \
        sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$bin/cpus" quota "$limit"
    echo 100000 >"$limit"
    found "a quota at the start" 1 sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$bin/cpus" only
    rmdir "$group"
else
    note "no control group with CPU time can be made here"
fi
finish
