# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# shellcheck disable=SC2034 # parsec_programs is for the script that sources it
# The PARSEC 3.0 programs that synchronize by pthreads: where they are in a tree, what they need, how they are called.
# Sourced by bench/parsec/run. Arguments are those of the suite's parsec/*.runconf files.

parsec_programs="streamcluster bodytrack x264 facesim dedup ferret fluidanimate canneal swaptions blackscholes vips raytrace"

# parsec_group NAME: the folder below pkgs/
parsec_group() {
    case $1 in
    streamcluster | dedup | canneal) echo kernels ;;
    *) echo apps ;;
    esac
}

# parsec_binary NAME: the file in bin/
parsec_binary() {
    case $1 in
    raytrace) echo rtview ;;
    *) echo "$1" ;;
    esac
}

# pick SIZE SIMSMALL SIMMEDIUM SIMLARGE
pick() {
    case $1 in
    simsmall) echo "$2" ;;
    simmedium) echo "$3" ;;
    simlarge) echo "$4" ;;
    esac
}

# parsec_input NAME SIZE: a file or directory that the input archive must contain; nothing if none is needed
parsec_input() {
    case $1 in
    bodytrack) pick "$2" sequenceB_1 sequenceB_2 sequenceB_4 ;;
    x264) pick "$2" eledream_640x360_8.y4m eledream_640x360_32.y4m eledream_640x360_128.y4m ;;
    facesim) echo Face_Data ;;
    dedup) echo media.dat ;;
    ferret) echo corel ;;
    fluidanimate) pick "$2" in_35K.fluid in_100K.fluid in_300K.fluid ;;
    canneal) pick "$2" 100000.nets 200000.nets 400000.nets ;;
    blackscholes) pick "$2" in_4K.txt in_16K.txt in_64K.txt ;;
    vips) pick "$2" pomegranate_1600x1200.v vulture_2336x2336.v bigben_2662x5500.v ;;
    raytrace) echo happy_buddha.obj ;;
    streamcluster | swaptions) ;;
    esac
}

# parsec_args NAME SIZE THREADS: the arguments, no word contains a blank
parsec_args() {
    local input
    input=$(parsec_input "$1" "$2")
    case $1 in
    streamcluster) echo "10 20 $(pick "$2" '32 4096 4096' '64 8192 8192' '128 16384 16384') 1000 none output.txt $3" ;;
    bodytrack) echo "$input 4 $(pick "$2" '1 1000' '2 2000' '4 4000') 5 0 $3" ;;
    x264)
        echo "--quiet --qp 20 --partitions b8x8,i4x4 --ref 5 --direct auto --b-pyramid --weightb --mixed-refs" \
            "--no-fast-pskip --me umh --subme 7 --analyse b8x8,i4x4 --threads $3 -o eledream.264 $input"
        ;;
    facesim) echo "-timing -threads $3" ;;
    dedup) echo "-c -p -v -t $3 -i $input -o output.dat.ddp" ;;
    ferret) echo "$input lsh queries $(pick "$2" '10 20' '10 20' '10 20') $3 output.txt" ;;
    fluidanimate) echo "$3 5 $input out.fluid" ;;
    canneal) echo "$3 $(pick "$2" '10000 2000' '15000 2000' '15000 2000') $input $(pick "$2" 32 64 128)" ;;
    swaptions) echo "$(pick "$2" '-ns 16 -sm 10000' '-ns 32 -sm 20000' '-ns 64 -sm 40000') -nt $3" ;;
    blackscholes) echo "$3 $input prices.txt" ;;
    vips) echo "im_benchmark $input output.v" ;;
    raytrace) echo "$input -automove -nthreads $3 -frames 3 -res $(pick "$2" '480 270' '960 540' '1920 1080')" ;;
    esac
}

# parsec_output NAME SIZE: the file that must be the same under every engine; nothing where a program's own output
# depends on timing: ferret and dedup write in pipeline order, canneal and fluidanimate race by design in their
# arithmetic, facesim and raytrace print times, swaptions writes nothing but messages.
parsec_output() {
    case $1 in
    streamcluster) echo output.txt ;;
    bodytrack) echo "$(parsec_input "$1" "$2")/poses.txt" ;;
    x264) echo eledream.264 ;;
    blackscholes) echo prices.txt ;;
    vips) echo output.v ;;
    esac
}

# parsec_environment NAME THREADS: variables that the program needs
parsec_environment() {
    case $1 in
    vips) echo "IM_CONCURRENCY=$2" ;;
    esac
}

# parsec_threads_legal NAME SIZE THREADS: false where the program or its input knows certain counts only
parsec_threads_legal() {
    case $1 in
    facesim) [[ " 1 2 3 4 6 8 16 32 64 128 " == *" $3 "* ]] ;;
    fluidanimate) ((($3 & ($3 - 1)) == 0)) ;;
    swaptions) (($3 <= $(pick "$2" 16 32 64))) ;; # at least one swaption for each thread
    esac
}
