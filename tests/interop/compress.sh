#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# pbzip2, pixz, lbzip2, zstd: a reader, workers and an ordered writer around bounded queues. pbzip2, pixz and lbzip2
# bind pthread_create@GLIBC_2.2.5. The compressed file must unpack (by the same program and by the plain single-threaded
# one) to the input, and equal the plain run's file where the format is deterministic.
. "$(dirname "$0")/lib.sh"
program=${1:?"usage: compress.sh pbzip2|pixz|lbzip2|zstd"}
need "$program"

# Text with structure and noise, and in each line one letter 220 times: about 12 MB that neither collapse nor stay
# incompressible. The runs make many blocks of little computing: what is tested is how threads pass them on.
awk 'BEGIN { srand(7); for (i = 0; i < 44000; i++) { run = sprintf("%220s", ""); gsub(/ /, sprintf("%c", 97 + i % 26), run)
     printf "%d %s %.9f line of text number %d %s\n", i, i % 7 ? "alpha" : "omega", rand(), i * 2654435761 % 1000003, run } }' \
    >input || exit 99

compress_pbzip2() {
    need bzip2
    for threads in 2 8; do
        check_run "compresses with $threads threads" 60 pbzip2 -k -f -b1 -p"$threads" -c input
        mv "$variant.out" "$variant.$threads.bz2"
        same "bytes with $threads threads" "$threads.bz2"
        check "bzip2 unpacks it to the input" sh -c "bzip2 -dc $variant.$threads.bz2 | cmp - input"
    done
    check_run "unpacks with 8 threads" 60 pbzip2 -d -k -p8 -c "plain.8.bz2"
    check "to the input" cmp "$variant.out" input
}

compress_lbzip2() {
    need bzip2
    for threads in 2 8; do
        check_run "compresses with $threads threads" 60 lbzip2 -1 -k -n "$threads" -c input
        mv "$variant.out" "$variant.$threads.bz2"
        same "bytes with $threads threads" "$threads.bz2"
        check "bzip2 unpacks it to the input" sh -c "bzip2 -dc $variant.$threads.bz2 | cmp - input"
    done
    check_run "unpacks with 8 threads" 60 lbzip2 -d -k -n 8 -c "plain.8.bz2"
    check "to the input" cmp "$variant.out" input
}

compress_pixz() {
    need xz
    for threads in 2 6; do
        check_run "compresses with $threads threads" 60 pixz -0 -p "$threads" -i input -o "$variant.$threads.xz"
        same "bytes with $threads threads" "$threads.xz"
        check "xz unpacks it to the input" sh -c "xz -dc $variant.$threads.xz | cmp - input"
    done
    check_run "unpacks with 6 threads" 60 pixz -d -p 6 -i plain.6.xz -o "$variant.unpacked"
    check "to the input" cmp "$variant.unpacked" input
}

compress_zstd() {
    for threads in 0 2 4; do
        check_run "compresses with -T$threads" 60 zstd -q -f -9 -B1M -T"$threads" input -o "$variant.$threads.zst"
        same "bytes with -T$threads" "$threads.zst"
        check "plain zstd unpacks it to the input" sh -c "zstd -q -dc $variant.$threads.zst | cmp - input"
    done
    check_run "unpacks" 60 zstd -q -d -c plain.4.zst
    check "to the input" cmp "$variant.out" input
}

each_variant "compress_$program"
finish
