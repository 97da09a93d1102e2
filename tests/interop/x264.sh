#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# x264: frame threads and sliced threads pass rows to each other under mutex and condition. With a fixed number of
# threads the bitstream is a function of the input, so any row that was read too early shows in the bytes.
. "$(dirname "$0")/lib.sh"
need x264 ffmpeg

ffmpeg -v error -f lavfi -i 'testsrc2=size=480x272:rate=25:duration=3' -pix_fmt yuv420p clip.y4m </dev/null ||
    { echo "Bail out! no clip"; exit 1; }

encode() {
    for threads in 2 6 16; do
        check_run "encodes with $threads frame threads" 40 \
            x264 --quiet --no-progress --preset medium --threads "$threads" -o "$variant.$threads.264" clip.y4m
        same "bitstream of $threads frame threads" "$threads.264"
    done
    check_run "encodes with 4 sliced threads and 2 lookahead threads" 40 \
        x264 --quiet --no-progress --preset medium --threads 4 --sliced-threads --lookahead-threads 2 \
        -o "$variant.sliced.264" clip.y4m
    same "bitstream of sliced threads" sliced.264
}

each_variant encode
finish
