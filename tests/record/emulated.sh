#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The recorder of another processor, emulated: programs do under it what they do without, and their traces are possible.
# MESON_EXE_WRAPPER, which meson sets, runs them.
# usage: emulated.sh LIBRARY SUBJECT      SUBJECT: one; the others and the checks are beside it; output: TAP
set -u
. "$(dirname "$0")/lib.sh"
preload=$(realpath "$1") dir=$(dirname "$(realpath "$2")") variables=() seconds=200
read -ra wrapper <<<"${MESON_EXE_WRAPPER:-}"
enter_scratch subutai-emulated
is_clean() { true; }

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
finish
