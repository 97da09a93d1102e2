#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# OpenMP: parallel, critical, barrier, ordered, tasks, locks; with libgomp's waiting spinning and sleeping; libgomp
# loaded early, late, twice, in forked children, interrupted by signals; many threads; where its code cannot be changed.
. "$(dirname "$0")/lib.sh"

# served TEXT YES CMD...: the library says, or does not, that it serves libgomp's futex calls.
served() {
    local text=$1 yes=$2 variables
    shift 2
    [ "$variant" != plain ] || return
    [ "$variant" != glibc ] || yes=no
    variables_for "$variant"
    bounded 30 env LD_PRELOAD="$library" SUBUTAI_VERBOSE=2 "${variables[@]}" "$@" >/dev/null 2>"$variant.said"
    if grep -q '^subutai: the futex calls of .*libgomp.* are served$' "$variant.said"; then
        check "$text: served" is "$yes" yes
    else
        check "$text: not served" is "$yes" no
    fi
}

edge() { # NAME LIBRARY YES
    check_run "$1" 60 "$bin/omp-edges" "$1" "$2" || return
    keep "$1"
    same "$1: same results" "$1"
    check "$1: at most one line" test "$(wc -l <"$variant.err")" -le 1
    [ "$3" = either ] || served "$1" "$3" "$bin/omp-edges" "$1" "$2"
}

# Where the C library's `syscall` makes the calls nothing has to be changed.
changes=no
[ "$(uname -m)" != x86_64 ] || changes=yes
gomp=$(LD_TRACE_LOADED_OBJECTS=1 "$bin/omp" | awk '/libgomp/ { print $3 }')
cp "$gomp" libgomp-a34b3233.so.1
# LLVM's library has libgomp's functions too.
libomp=
for file in /usr/lib/llvm-*/lib/libomp.so.5; do
    [ ! -e "$file" ] || libomp=$file
done
[ -z "$libomp" ] || { mkdir other && ln -s "$libomp" other/libgomp.so.1; }

# said_of_main TEXT YES: the last program has said whether its main thread is switched. By default that depends on the run.
said_of_main() {
    local text=$1 yes=$2
    sed -i '/^main /w main' "$variant.out"
    sed -i '/^main /d' "$variant.out"
    if [ "$variant" = switched ] && [ "$yes" = yes ]; then
        check "$text: main is switched as the others are" is "$(cat main)" 'main is switched'
    elif [ "$variant" != direct ] || [ "$yes" = no ]; then
        check "$text: main keeps its kernel thread" is "$(cat main)" 'main keeps its kernel thread'
    fi
}

# LLVM's library: it yields while it waits, or sleeps at once; it may bind threads, and may install signal handlers.
of_llvm() {
    local time scene status
    for scene in 'teams 0' 'teams 200' 'forks 0'; do
        time=${scene#* } scene=${scene% *}
        check_run "LLVM's, $scene, awake for $time ms" 60 env KMP_BLOCKTIME="$time" "$bin/omp-llvm" "$scene"
        said_of_main "LLVM's, $scene, awake for $time ms" yes
        keep "llvm-$scene"
        same "LLVM's, $scene, awake for $time ms: same results" "llvm-$scene"
    done
    run 60 "$bin/omp-llvm" leaves >"$variant.out" 2>"$variant.err"
    status=$?
    check "LLVM's, main ends first: the other thread's status" is "$status" 3
    said_of_main "LLVM's, main ends first" yes
    keep llvm-leaves
    same "LLVM's, main ends first: same results" llvm-leaves
    for scene in OMP_PROC_BIND=true KMP_AFFINITY=scatter KMP_HANDLE_SIGNALS=1; do
        check_run "LLVM's, $scene" 60 env KMP_BLOCKTIME=0 "$scene" "$bin/omp-llvm" teams
        said_of_main "LLVM's, $scene" no
        keep llvm-teams
        same "LLVM's, $scene: same results" llvm-teams
    done
    [ "$variant" != switched ] ||
        check "LLVM's: doctor says no more of main than that" is "$("$launcher" doctor "$bin/omp-llvm" | grep -c 'but the main thread')" 0
}

teams() {
    local threads policy time
    for threads in 2 16; do
        for policy in active passive; do
            check_run "team of $threads, waits $policy" 60 env OMP_WAIT_POLICY="$policy" "$bin/omp" "$threads"
            keep "$threads"
            same "team of $threads, waits $policy: same results" "$threads"
        done
    done
    check_run "no spinning" 60 env GOMP_SPINCOUNT=0 "$bin/omp" 16
    keep 16
    same "no spinning: same results" 16
    served "linked with" yes "$bin/omp" 4
    check_run "in a constructor, and 256 threads" 100 env OMP_LIBRARY_EARLY=1 OMP_WAIT_POLICY=passive "$bin/omp-early" 256
    keep early
    same "in a constructor, and 256 threads: same results" early
    if [ -n "$libomp" ]; then
        for time in 0 200; do
            check_run "libomp, awake for $time ms" 60 env LD_LIBRARY_PATH="$PWD/other" KMP_BLOCKTIME="$time" "$bin/omp" 16
            keep 16
            same "libomp, awake for $time ms: same results" 16
            check "libomp, awake for $time ms: under that name, too, it is not taken for libgomp" is "$(grep -c libgomp "$variant.err")" 0
        done
    fi
    if [ -n "$libomp" ] && [ -e "$bin/ompt.so" ]; then
        check_run "libomp with a tool" 60 env LD_LIBRARY_PATH="$PWD/other" OMP_TOOL_LIBRARIES="$bin/ompt.so" "$bin/omp" 8
        check "libomp with a tool: told of 8 threads" grep -q '^tool: 8 threads, [1-9]' "$variant.out"
        keep tool
        same "libomp with a tool: told the same" tool
    fi
    check_run "main in a team" 60 "$bin/omp-main"
    if [ "$variant" = switched ]; then
        check "main in a team: is switched as the others are" grep -qx 'main is switched' "$variant.out"
        check "main in a team: doctor says nothing else" is "$("$launcher" doctor "$bin/omp-main" | grep -c 'main thread waits')" 0
    elif [ "$variant" != direct ]; then # by default the threads of some runs are switched
        check "main in a team: keeps its kernel thread" grep -qx 'main keeps its kernel thread' "$variant.out"
    fi
    # libgomp's constructor binds main, before the library has started.
    check_run "main in a team that is bound" 60 env OMP_PROC_BIND=true "$bin/omp-main"
    check "main in a team that is bound: keeps its kernel thread" grep -qx 'main keeps its kernel thread' "$variant.out"
    [ ! -x "$bin/omp-llvm" ] || of_llvm
    edge late "$bin/libomp-library.so" yes
    edge unload "$bin/libomp-library.so" yes
    if [ "$variant" != plain ] && [ "$variant" != glibc ]; then
        check "unload: served each time" is "$(grep -c 'are served$' "$variant.said")" 30
    fi
    edge copy "$PWD/libgomp-a34b3233.so.1" yes
    edge fork "$bin/libomp-library.so" yes
    edge signals "$bin/libomp-library.so" yes
    if [ "$changes" = yes ]; then
        edge filter "$bin/libomp-library.so" no
        [ "$variant" != switched ] ||
            check "filter: says that it is the kernel" grep -q 'uses .*libgomp.*the kernel does not let' switched.err
        edge hidden "$bin/libomp-library.so" either # processors without protection keys read what may be executed
    fi
}

each_variant teams
finish
