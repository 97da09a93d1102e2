#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The recorder under ASan and UBSan: its own files are instrumented, the programs that it records are not. Nothing may be
# reported, the programs do what they do, and their traces are possible. The engine is glibc: another one steps aside where
# ASan is loaded, since that is a program that was built with it.
# usage: sanitized.sh LIBRARY DIR      DIR: of the subjects and checks; output: TAP
set -u
library=$(realpath "$1") dir=$(realpath "$2")
run_time=$(gcc -print-file-name=libasan.so):$(gcc -print-file-name=libubsan.so)
work=$(mktemp -d "${TMPDIR:-/var/tmp}/subutai-sanitized.XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99
if [[ $run_time != /*:/* ]]; then
    echo '1..0 # SKIP no libasan and libubsan that can be preloaded'
    exit
fi
export ASAN_OPTIONS=detect_leaks=0:exitcode=99 UBSAN_OPTIONS=print_stacktrace=1:exitcode=99
n=0 n_failed=0

point() { # OK TEXT
    n=$((n + 1))
    [[ $1 == 0 ]] && echo "ok $n - $2" && return
    n_failed=$((n_failed + 1))
    echo "not ok $n - $2"
    head -40 said | sed 's/^/# /'
}

# record STATUS PROGRAM CHECK WHAT [VARIABLE=VALUE...]: the subject does WHAT and ends with that status.
record() {
    local wanted=$1 program=$2 check=$3 what=$4 status bad=0 trace
    shift 4
    rm -f ./*.sbt
    timeout 100 env "$@" SUBUTAI_ENGINE=glibc SUBUTAI_RECORD="$work/t.sbt" LD_PRELOAD="$run_time:$library" "$dir/$program" "$what" >out 2>said
    status=$?
    [[ $status == "$wanted" ]] || bad=1
    ! grep -qE 'ERROR: AddressSanitizer|runtime error' said || bad=1
    point $bad "$program $what${*:+, $*}: status $status, nothing reported"
    bad=0
    for trace in ./*.sbt; do
        "$dir/$check" "$trace" >said 2>&1 || bad=1
    done
    point $bad "its traces are possible"
}

for what in everything futexes timers handlers jobs children misuse; do
    record 0 record-subject trace-check "$what"
done
record 7 record-subject trace-check exit
record 7 record-subject trace-check cut
profile=(SUBUTAI_RECORD_CALLS=waits)
for what in counts lives handlers threads cancels waits beside signals holds sites forks; do
    record 0 profile-subject profile-check "$what" "${profile[@]}"
done
record 0 profile-subject profile-check many "${profile[@]}"
record 0 profile-subject profile-check waits "${profile[@]}" SUBUTAI_RECORD_STACKS=1
record 0 profile-subject trace-check counts SUBUTAI_RECORD_STACKS=1
for what in pair kinds gates cond deep handlers pairs; do
    record 0 order-subject profile-check "$what" "${profile[@]}"
done
echo "1..$n"
((n_failed == 0))
