#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Real programs under the engine det: one schedule and one output in each run, alone, beside two processes that compute,
# and on one CPU. What the program writes is what it writes plainly.
#
# usage: det.sh pbzip2|pigz|xz|zstd|x264   DET_RUNS=N (default 5): so many runs of each kind
. "$(dirname "$0")/lib.sh"
program=${1:?"usage: det.sh pbzip2|pigz|xz|zstd|x264"}
runs=${DET_RUNS:-5}
need "$program"

if [ "$program" = x264 ]; then
    need ffmpeg
    ffmpeg -v error -f lavfi -i 'testsrc2=size=320x176:rate=25:duration=1' -pix_fmt yuv420p clip.y4m </dev/null ||
        exit 99
else
    awk 'BEGIN { srand(7); for (i = 0; i < 30000; i++) printf "%d %s %.9f line of text number %d\n",
         i, i % 7 ? "alpha" : "omega", rand(), i * 2654435761 % 1000003 }' >input || exit 99
fi

case $program in
pbzip2) command=(pbzip2 -k -f -b1 -p4 -c input) ;;
pigz) command=(pigz -n -b 128 -p 4 -c input) ;;
xz) command=(xz -1 -T4 --block-size=256KiB -k -f input) ;; # with -c it may write no file from 5.6 on, and so no log
zstd) command=(zstd -q -c -3 -B512K -T4 input) ;;
x264) command=(x264 --quiet --no-progress --preset fast --threads 4 -o /dev/stdout --muxer raw clip.y4m) ;;
esac

# written FILE: what the last run has written, to its standard output or to a file of its own.
written() {
    [ "$program" != xz ] || mv -f input.xz "$1"
}

# series TEXT WRAPPER... : the runs; they have one schedule, and the plain output.
series() {
    local text=$1 n wrong=0
    shift
    : >schedules
    for ((n = 0; n < runs; n++)); do
        rm -f log
        bounded 60 "$@" "$launcher" run --engine det --verbose 2 --log log -- "${command[@]}" >output 2>errors || wrong=1
        written output && cmp -s plain output || wrong=1
        sed -n 's/.*[^-]schedule \([0-9a-f]\{16\}\)/\1/p' log >>schedules
    done
    point "$wrong" "$text: the plain output in $runs runs"
    check "$text: one schedule" sh -c "[ \$(wc -l <schedules) = $runs ] && [ \$(sort -u schedules | wc -l) = 1 ]"
    sort schedules | uniq -c | sed 's/^/# /'
    cat schedules >>all-schedules
}

"${command[@]}" >plain && written plain
check "runs plainly" test $? = 0 -a -s plain
series "alone"
begin_load 2
series "beside two computing processes"
end_load
series "on one CPU" taskset -c "$(allowed_cpu)"
check "one schedule in all" sh -c "[ \$(sort -u all-schedules | wc -l) = 1 ]"
finish
