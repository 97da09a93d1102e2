#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# povray: boost threads, condition variables with timed waits between its front end and its worker threads.
. "$(dirname "$0")/lib.sh"
need povray

render() {
    check_run "renders with 4 threads" 90 povray "+I$here/subjects/scene.pov" +W200 +H150 +A0.3 +FP16 +WT4 -D -GA \
        "+O$scratch/$variant.ppm"
    # The file names the time of day in its head.
    sed -i "1,9{/^# Render Date/d}" "$variant.ppm"
    same "image of 4 threads" ppm
}

each_variant render
finish
