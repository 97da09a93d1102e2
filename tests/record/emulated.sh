#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The recorder of another processor, emulated: programs do under it what they do without, and their traces are possible.
# MESON_EXE_WRAPPER, which meson sets, runs them.
# usage: emulated.sh LIBRARY SUBJECT      SUBJECT: one; the others and the checks are beside it; output: TAP
set -u
library=$(realpath "$1") dir=$(dirname "$(realpath "$2")")
read -ra wrapper <<<"${MESON_EXE_WRAPPER:-}"
work=$(mktemp -d "${TMPDIR:-/var/tmp}/subutai-emulated.XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99
n=0 n_failed=0

point() { # OK TEXT
    n=$((n + 1))
    [[ $1 == 0 ]] && echo "ok $n - $2" && return
    n_failed=$((n_failed + 1))
    echo "not ok $n - $2"
    head -20 said | sed 's/^/# /'
}

# record STATUS PROGRAM CHECK WHAT [VARIABLE=VALUE...]: the subject does WHAT and ends with that status.
record() {
    local wanted=$1 program=$2 check=$3 what=$4 status bad=0 trace
    shift 4
    rm -f ./*.sbt
    timeout 200 env "$@" SUBUTAI_RECORD="$work/t.sbt" LD_PRELOAD="$library" "${wrapper[@]}" "$dir/$program" "$what" >out 2>said
    status=$?
    point $((status != wanted)) "$program $what${*:+, $*}: status $status"
    [[ -s t.sbt ]] || bad=1
    for trace in ./*.sbt; do
        "${wrapper[@]}" "$dir/$check" "$trace" >said 2>&1 || bad=1
    done
    point $bad "its traces are possible"
}

profile=(SUBUTAI_RECORD_CALLS=waits SUBUTAI_ENGINE=glibc)
for engine in glibc direct; do
    record 0 record-subject trace-check everything SUBUTAI_ENGINE=$engine
    record 0 record-subject trace-check futexes SUBUTAI_ENGINE=$engine
    record 7 record-subject trace-check exit SUBUTAI_ENGINE=$engine
done
record 0 record-subject trace-check handlers SUBUTAI_ENGINE=glibc
for what in counts lives threads waits holds signals; do
    record 0 profile-subject profile-check "$what" "${profile[@]}"
done
record 0 profile-subject profile-check waits "${profile[@]}" SUBUTAI_RECORD_STACKS=1
for what in pair gates; do
    record 0 order-subject profile-check "$what" "${profile[@]}"
done
if [[ -x $dir/openmp-subject ]]; then
    for what in regions nested tasks kinds tasks_at_once deep ordered reductions many; do
        record 0 openmp-subject trace-check "$what" SUBUTAI_ENGINE=glibc
    done
    record 0 openmp-subject profile-check task_times "${profile[@]}"
    for what in sections alone; do
        record 0 openmp-contended trace-check "$what" SUBUTAI_ENGINE=glibc
    done
fi
echo "1..$n"
((n_failed == 0))
