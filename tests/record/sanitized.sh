#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The recorder under ASan and UBSan: its own files are instrumented, the programs that it records are not. Nothing may be
# reported, the programs do what they do, and their traces are possible. The engine is glibc: another one steps aside where
# ASan is loaded, since that is a program that was built with it.
# usage: sanitized.sh LIBRARY DIR      DIR: of the subjects and checks; output: TAP
set -u
. "$(dirname "$0")/lib.sh"
run_time=$(gcc -print-file-name=libasan.so):$(gcc -print-file-name=libubsan.so)
if [[ $run_time != /*:/* ]]; then
    echo '1..0 # SKIP no libasan and libubsan that can be preloaded'
    exit
fi
preload=$run_time:$(realpath "$1") dir=$(realpath "$2") wrapper=() variables=(SUBUTAI_ENGINE=glibc) seconds=100
enter_scratch subutai-sanitized
export ASAN_OPTIONS=detect_leaks=0:exitcode=99 UBSAN_OPTIONS=print_stacktrace=1:exitcode=99
is_clean() { ! grep -qE 'ERROR: AddressSanitizer|runtime error' said; }

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
finish
