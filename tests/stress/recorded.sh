#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Links the recorder and the torture, so that the torture's calls are recorded without a preload: the recorder's exported
# pthread_mutex_lock becomes recorded_pthread_mutex_lock, and so does the torture's sbt_pthread_mutex_lock. A sanitizer
# keeps the names of POSIX for itself.
# usage: recorded.sh OUTPUT RECORDER TORTURE DIR      the archives of both; DIR: for what is made on the way
set -euo pipefail
output=$1 recorder=$2 torture=$3 dir=$4
mkdir -p "$dir"
ld -r -o "$dir/recorder.o" --whole-archive "$recorder"
ld -r -o "$dir/torture.o" --whole-archive "$torture"
nm --defined-only --extern-only "$dir/recorder.o" | awk '$3 !~ /^(rec|sbt|trace|words|abi)_/ {print $3}' | sort -u >"$dir/names"
awk '{print $1, "recorded_" $1}' "$dir/names" >"$dir/of-recorder"
awk '{print "sbt_" $1, "recorded_" $1}' "$dir/names" >"$dir/of-torture"
objcopy --redefine-syms="$dir/of-recorder" "$dir/recorder.o"
objcopy --redefine-syms="$dir/of-torture" "$dir/torture.o"
ld -r -o "$output" "$dir/recorder.o" "$dir/torture.o"
