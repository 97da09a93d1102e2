#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# ffmpeg: encoder and decoder thread pools, filter slices. framemd5 of what it encoded and of what it decoded.
. "$(dirname "$0")/lib.sh"
need ffmpeg

transcode() {
    check_run "encodes mpeg4 with 4 slice threads" 60 \
        ffmpeg -v error -nostdin -y -f lavfi -i 'testsrc2=size=352x288:rate=25:duration=2' -threads 4 -c:v mpeg4 \
        -bitexact -f avi "$variant.avi"
    same "mpeg4 file" avi
    check_run "encodes h264 with 4 threads through libx264" 60 \
        ffmpeg -v error -nostdin -y -f lavfi -i 'testsrc2=size=352x288:rate=25:duration=2' -c:v libx264 \
        -threads 4 -bitexact -f framemd5 "$variant.h264.md5"
    same "checksums of the h264 packets" h264.md5
    check_run "encodes ffv1 with 4 slices and threads" 60 \
        ffmpeg -v error -nostdin -y -f lavfi -i 'testsrc2=size=352x288:rate=25:duration=2' -c:v ffv1 -level 3 \
        -slices 4 -threads 4 -bitexact -f matroska "$variant.mkv"
    check_run "decodes with 4 frame threads, scales and blurs with 4 filter threads" 60 \
        ffmpeg -v error -nostdin -y -threads 4 -thread_type frame+slice -i plain.mkv -filter_threads 4 \
        -vf 'scale=320:240,gblur=sigma=2,hflip' -bitexact -f framemd5 "$variant.frames.md5"
    same "checksums of the decoded frames" frames.md5
}

each_variant transcode
finish
