#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# OpenMP under the recorder: regions, barriers, critical sections and locks are events in known numbers, by name; the
# program computes what it does without.
. "$(dirname "$0")/../command/lib.sh"
: "${SUBJECT:?}" "${CONTENDED:?}" "${CHECK:?}" "${LOADER:?}" "${GCC_LOADER:?}" "${WITHOUT:?}" "${DECOY:?}" "${MODULE:?}" "${JUMPS:?}" "${PLUGINS:?}" "${PLUGIN:?}" "${STUBBED:?}" "${LOOKED_UP:?}" "${ELSEWHERE:?}" "${ELSEWHERE_CALLS:?}" "${ELSEWHERE_REGION:?}" "${LOOKING:?}"

possible() { # FILE COUNT...
    local said
    said=$("$CHECK" "$@") || { echo "# ${said//$'\n'/$'\n# '}" && false; }
}

# barriers: a line for each function with barriers in t.sbt, and number of threads: their generations. (A compiler that
# doubles a barrier's call makes two barriers of it, if threads have not come there by both ways at once.)
barriers() {
    "$SUBUTAI" report --json t.sbt | jq -r '([.sites[] | {(.id | tostring): .function}] | add) as $function
        | ([.objects[] | {(.id | tostring): $function[.made | tostring]}] | add) as $made
        | [.barriers[] | {function: $made[.object | tostring], count, generations}] | group_by(.function, .count)
        | .[] | "\(.[0].function) \(.[0].count) \(map(.generations) | add)"'
}
# acquisitions: of the mutexes of t.sbt, by their names
acquisitions() {
    "$SUBUTAI" report --json t.sbt |
        jq -r '.objects[] | select(.type == "mutex") | "\(.symbol // "lock") \(.acquisitions)"' | sort
}
# ordered_of_teams: acquisitions of each mutex of ordered sections
ordered_of_teams() {
    "$SUBUTAI" report --json t.sbt | jq -c '[.objects[] | select(.symbol // "" | startswith("openmp_ordered")) | .acquisitions]'
}
# sizes_of_barriers: a line for each team's size: generations of all its barriers
sizes_of_barriers() {
    "$SUBUTAI" report --json t.sbt |
        jq -r '.barriers | group_by(.count) | .[] | "\(.[0].count) \(map(.generations) | add)"'
}
# waits_for_tasks FUNCTION: how often a thread has waited for tasks at call sites in that function
waits_for_tasks() {
    "$SUBUTAI" report --json t.sbt | jq --arg name "$1" '([.sites[] | {(.id | tostring): .function}] | add) as $function
        | [.objects[] | select(.symbol == "openmp_tasks") | .wait_sites[]
            | select(($function[.site | tostring] // "") | startswith($name)) | .n] | add'
}
# waits_at_tasks: how often threads have waited for tasks
waits_at_tasks() {
    "$SUBUTAI" report --json t.sbt | jq '[.objects[] | select(.symbol == "openmp_tasks") | .acquisitions] | add // 0'
}
# times_of_tasks N=NS...: for each function, by how often its tasks ran: "short" if a time is less than the program's own
# (0: it says none), which is contained in it (the clocks' rates may differ); "long" if it is much more; "right"
times_of_tasks() {
    "$SUBUTAI" report --json t.sbt | jq -r '([.sites[] | {(.id | tostring): .place}] | add) as $place
        | (.tasks | map({(.n | tostring): .ns}) | add) as $took | [.tasks[] | $place[.site | tostring]] as $places
        | [$ARGS.positional[] | split("=") | [$took[.[0]], (.[1] | tonumber)] | select(.[1] > 0)]
        | if ($ARGS.positional | map(split("=")[0]) | sort) != ($took | keys | sort) then "others"
          elif all($places[]; test("openmp_tasks\\.c:[0-9]+|_t")) | not then "elsewhere"
          elif any(.[]; .[0] < 0.998 * .[1]) then "short"
          elif any(.[]; .[0] > 1.05 * .[1] + 1e6) then "long" else "right" end' --args "$@"
}
# tasks_timed WHAT N...: recorded until no thread was off its core between the program's clock and the recorder's
tasks_timed() {
    local what=$1 said=long try i numbers ns
    shift
    for ((try = 0; try < 5; try++)); do
        [[ $said == long ]] || break
        recorded "$what" --record-calls waits
        read -ra ns <<<"$err"
        numbers=()
        for ((i = 0; i < $#; i++)); do
            numbers+=("${@:i+1:1}=${ns[i]}")
        done
        said=$(times_of_tasks "${numbers[@]}")
    done
    [[ $said == right ]] || { echo "# $said: ${numbers[*]} $("$SUBUTAI" report --json t.sbt | jq -c .tasks)" && false; }
}
# apart_from_tasks TEXT: what threads do in tasks is no part of a call in which they wait
apart_from_tasks() {
    local what
    for what in tasks in_tasks tasks_at_once; do
        recorded $what --record-calls all
        check "$1$what: calls in tasks are not within the calls that wait for them" possible t.sbt apart
    done
    # 200 tasks in 50 regions of two threads, and in each task 20 that are run at once
    check "$1a task that runs is no wait, whatever it runs at once" test "$(waits_at_tasks)" -le 300
    check "$1tasks have names, numbers and times" tasks_timed task_times 6 30
    check "$1tasks: what a thread does between them is in no time twice" tasks_timed short_tasks 1 150000
    for calls in all waits; do
        recorded deep --record-calls $calls
        check "$1$calls recorded, tasks within tasks, 10,000 deep" is "$status $out $err" "0 OK "
    done
}
subject=$SUBJECT
recorded() { # WHAT [OPTION...]
    local what=$1
    shift
    rm -f ./*.sbt
    subutai record -o t.sbt --engine "$engine" "$@" -- "$subject" "$what"
}

for engine in glibc direct; do
    for what in sections alone; do
        subject=$CONTENDED recorded $what
        check "$engine, contended $what: the program computes what it should" is "$status $out $err" "0 OK "
        counts=(mutex_lock=80 futex_wake=0)
        [[ $what == alone ]] || counts=(mutex_lock=160 futex_wake=1) # the region's begin
        check "$engine, contended $what: its trace is possible, and the library's own waits are no events" possible t.sbt "${counts[@]}"
    done
done
for engine in glibc direct ni; do
    for what in regions sizes nested once tasks in_tasks kinds detached task_waits alone doubled threads forks ends errors errors_end ordered ordered_teams reductions reductions_in_tasks many; do
        recorded $what
        check "$engine, $what: the program computes what it should" is "$status $out $err" "0 OK "
        check "$engine, $what: its trace is possible" possible t.sbt
    done
done
engine=glibc
for calls in all waits; do
    recorded regions --record-calls $calls
    check "$calls recorded, regions: the barriers" is "$(barriers)" "regions 4 50
regions._omp_fn.0 4 150"
    check "the critical sections, and the lock" is "$(acquisitions)" ".gomp_critical_user_of_the_sum 200
lock 201
openmp_critical 200"
    recorded sizes --record-calls $calls
    check "$calls recorded, teams of three sizes: a barrier for each" is "$(barriers)" "sizes 2 50
sizes 3 50
sizes 4 50
sizes._omp_fn.0 2 50
sizes._omp_fn.0 3 50
sizes._omp_fn.0 4 50"
    recorded once --record-calls $calls
    check "$calls recorded, one region: all threads come to its end" is "$(barriers)" "once 4 1"
    recorded handlers --record-calls $calls
    check "$calls recorded, handlers that lock amid calls: the program computes what it should" is "$status $out" "0 OK"
    recorded alone --record-calls $calls
    check "$calls recorded, regions of one thread: no barriers" is "$(barriers)" ""
    check "and no wait for a section" is "$("$SUBUTAI" report --json t.sbt | jq -c '.objects[] | [.name, .acquisitions, .contended]')" \
        '["openmp_critical",50,0]'
done
for calls in all waits; do
    recorded task_waits --record-calls $calls
    check "$calls recorded, a wait for tasks wherever a thread has slept" is "$(waits_for_tasks task_waits._omp_fn)" 10
done
apart_from_tasks ""
recorded threads
check "teams of several threads in one region: each arrival at each barrier of each team" possible t.sbt barrier_wait=600
cat >idle.c <<'END'
#include <unistd.h>
int main(void) {
    for (int i = 0; i < 20; i++) {
#pragma omp parallel num_threads(2)
        __asm__ volatile("");
        usleep(5000);
    }
    return 0;
}
END
if $CC -O1 -fopenmp idle.c -o idle 2>/dev/null; then
    "$SUBUTAI" record -o idle.sbt -- ./idle
    idle=$("$SUBUTAI" report --json idle.sbt | jq -r '.advice[] | select(.cause == "idle").text')
    check "a worker without a region is idle there" matches "$idle" 'most at openmp_regions'
    check "also for its last wait, which the program's end cut off" is "$("$SUBUTAI" report --json idle.sbt | jq -r '.objects as $o |
        .unended[] | select(.thread == 1) | .object as $id | .kind, ($o[] | select(.id == $id).name), (.site != null)')" 'futex
openmp_regions
true'
    check "and that is no lock" is "$(grep -c parking_lot <<<"$idle")" 0
else
    skip "a worker without a region" "the compiler has no OpenMP"
fi
recorded doubled
check "a barrier with two call sites is one" is "$("$SUBUTAI" report --json t.sbt | jq -c '[.barriers[].generations] | sort')" '[1,50]'
recorded nested
check "teams within teams" is "$(barriers)" "nested 2 50
nested._omp_fn.0 2 150
nested._omp_fn.1 2 100"
recorded regions
subutai predict t.sbt --machine host --sync direct --cores 4 --json
check "a prediction replays each call as it was recorded" json '.[0].runs[0].not_as_recorded.n == 0'

for calls in all waits; do
    recorded nest --record-calls $calls
    check "$calls recorded, a nested lock: the outermost calls" is "$status $out $(acquisitions | grep lock)" "0 OK lock $err"
    [[ $calls == waits ]] || # and the sums of the four threads
        check "and as many releases" possible t.sbt mutex_unlock=$((err + 4))
    recorded ordered --record-calls $calls
    check "$calls recorded, ordered sections" is "$(acquisitions)" "openmp_ordered 100"
    recorded ordered_teams --record-calls $calls
    check "$calls recorded, ordered sections of two teams at once: each team has its own" is "$(ordered_of_teams)" "[50,50]"
done
recorded many
check "a region of one thread in another one has no barriers" is "$(sizes_of_barriers)" "4 2"

# clang's code calls LLVM's run-time library by other names.
if [[ -n ${CLANG_SUBJECT:-} ]]; then
    subject=$CLANG_SUBJECT
    for engine in glibc direct ni; do
        for what in regions sizes nested once tasks in_tasks kinds detached alone doubled threads forks ends ordered ordered_teams reductions reductions_in_tasks many; do
            recorded $what
            check "clang, $engine, $what: the program computes what it should" is "$status $out $err" "0 OK "
            check "clang, $engine, $what: its trace is possible" possible t.sbt
        done
    done
    engine=glibc
    apart_from_tasks "clang, "
    for calls in all waits; do
        recorded regions --record-calls $calls
        check "clang, $calls recorded, regions: the barriers" is "$(sizes_of_barriers)" "4 300"
        check "clang, $calls recorded: critical sections and the lock by name" is "$(acquisitions | grep -v '^lock [0-4]$')" \
            ".gomp_critical_user_.var 200
.gomp_critical_user_of_the_sum.var 200
lock 201"
        recorded reductions --record-calls $calls
        check "clang, $calls recorded, reductions of small and large teams" is "$(sizes_of_barriers)" "2 150
6 150"
        recorded nested --record-calls $calls
        check "clang, $calls recorded, teams within teams" is "$(sizes_of_barriers)" "2 300"
        recorded reductions_in_tasks --record-calls $calls
        check "clang, $calls recorded, reductions in tasks that run within a reduction" is "$(sizes_of_barriers)" "2 150
3 600"
        recorded ordered_teams --record-calls $calls
        check "clang, $calls recorded, ordered sections of two teams at once: each team has its own" \
            is "$(ordered_of_teams)" "[50,50]"
        recorded many --record-calls $calls
        check "clang, $calls recorded, more variables than registers" is "$status $out $(sizes_of_barriers)" "0 OK 4 2"
    done
    recorded regions
    check "clang: a barrier has its line of the source" matches "$("$SUBUTAI" report t.sbt)" 'openmp_subject\.c:[0-9]+'
    check "and what the run-time library does within these calls is not recorded" \
        is "$("$SUBUTAI" report --json t.sbt | jq '[.objects[] | select(.type == "cond") | .acquisitions] | add')" 0
    # A tool of the user's is told by LLVM's run-time library what it is told without the recorder.
    if [[ -n ${TOOL:-} ]]; then
        told=$(OMP_TOOL_LIBRARIES=$TOOL "$CLANG_SUBJECT" regions)
        check "a tool of OpenMP's is told of regions" matches "$told" 'tool: [1-9][0-9]* threads, [1-9]'
        for calls in all waits; do
            run env OMP_TOOL_LIBRARIES="$TOOL" "$SUBUTAI" record -o t.sbt --engine glibc --record-calls $calls -- "$CLANG_SUBJECT" regions
            check "a tool of OpenMP's, $calls recorded: told the same" is "$status $out" "0 $told"
            check "a tool of OpenMP's, $calls recorded: the barriers" is "$(sizes_of_barriers)" "4 300"
        done
    fi
    # gcc's code with LLVM's run-time library, which calls some of clang's functions itself.
    subject=$SUBJECT
    ln -s "$(ldd "$CLANG_SUBJECT" | awk '/libomp/ {print $3}')" libgomp.so.1
    export LD_LIBRARY_PATH=$PWD
    recorded regions
    check "gcc's code with LLVM's library: the program computes what it should" is "$status $out" "0 OK"
    recorded kinds
    check "tasks of all kinds: the same" is "$status $out" "0 OK"
    recorded regions
    check "its trace is possible" possible t.sbt
    check "the barriers" is "$(sizes_of_barriers)" "4 200"
    check "each section once" is "$(acquisitions | grep -v '^lock [0-4]$')" ".gomp_critical_user_of_the_sum 200
lock 201
openmp_critical 200"
    recorded ordered
    check "ordered sections: calls that are jumps" is "$(acquisitions | grep -v '^lock')" "openmp_ordered 100"
    unset LD_LIBRARY_PATH
    rm libgomp.so.1
    # A program of gcc's with its library, and a module of clang's with the other one.
    for calls in all waits; do
        for within in "" within; do
            rm -f ./*.sbt
            subutai record -o t.sbt --record-calls $calls -- "$GCC_LOADER" "$DECOY" "$CLANG_MODULE" $within
            check "clang's module in a program of gcc's${within:+, in a region}, $calls recorded: it computes what it should" \
                is "$status $out" "0 $("$GCC_LOADER" "$DECOY" "$CLANG_MODULE" $within)"
            [[ $calls == waits ]] || # where a wait has the number of a release that is an event, if there was one
                check "its trace is possible" possible t.sbt
            check "the module's barriers" is "$(sizes_of_barriers | grep '^[24]')" "$([[ -n $within ]] && echo "2 5" || echo "2 2")
4 20"
        done
    done
fi

# A run-time library in no other scope than a module's: the program itself knows nothing of OpenMP.
rm -f ./*.sbt
subutai record -o t.sbt --engine glibc -- "$LOADER" "$DECOY" "$MODULE"
check "a module with a run-time library of its own" is "$status $out" "0 $("$LOADER" "$DECOY" "$MODULE")"
check "its barriers" is "$(barriers)" "omp_library_work 4 1
omp_library_work._omp_fn.0 4 40"
rm -f ./*.sbt
subutai record -o t.sbt --engine glibc -- "$LOADER" "$DECOY" "$JUMPS"
check "calls that are jumps, and a region in a constructor" is "$status $out" "0 $("$LOADER" "$DECOY" "$JUMPS")"
check "their trace is possible" possible t.sbt

# A program that looks the functions up by name, in the run-time library alone; and in two such libraries.
looked_up() { # LIBRARY
    local calls engine
    for engine in glibc direct; do
        for calls in all waits; do
            rm -f ./*.sbt
            subutai record -o t.sbt --engine $engine --record-calls $calls -- "$LOOKED_UP" "$@"
            check "$engine, $calls recorded, $# run-time libraries: functions that are looked up do what they should" is \
                "$status $out" "0 sum $((90 * $#)), and no other"
        done
    done
}
looked_up libgomp.so.1
rm -f ./*.sbt
subutai record -o t.sbt --engine glibc -- "$LOOKED_UP" libgomp.so.1
check "and their trace is possible" possible t.sbt # the last one above had waits alone, of which the release may not be known
check "their barriers, and the ends of regions" is "$(barriers)" "body 3 60
main 3 30"
check "the critical sections" is "$(acquisitions)" "openmp_critical 90"
llvms=$(ldd "${CLANG_SUBJECT:-/nosuch}" 2>/dev/null | grep -oE '/[^ ]*libomp[^ ]*' | head -n 1)
if [[ -n $llvms ]]; then
    looked_up libgomp.so.1 "$llvms"
    looked_up "$llvms" libgomp.so.1
else
    skip "functions that are looked up in two run-time libraries" "no LLVM's"
fi

# Two run-time libraries that are one under two names: what was looked up in one of them is called in that one, also from a
# module that is of neither, and a module's own regions are its library's. The module is of the first.
gnus=$(ldd "$SUBJECT" | grep -oE '/[^ ]*libgomp[^ ]*' | head -n 1)
sed 's/libgomp\.so\.1/libgomq.so.1/g' "$gnus" >libgomq.so.1
elsewhere() { # LIBRARY LIBRARY
    local calls
    check "$*, without the recorder" is "$("$ELSEWHERE" "$ELSEWHERE_CALLS" "$ELSEWHERE_REGION" "$@" | tr '\n' ' ')" "3 3 3 "
    for calls in all waits; do
        rm -f ./*.sbt
        subutai record -o t.sbt --engine glibc --record-calls $calls -- "$ELSEWHERE" "$ELSEWHERE_CALLS" "$ELSEWHERE_REGION" "$@"
        check "$*, $calls recorded: calls find the library that was asked" is "$status $(tr '\n' ' ' <<<"$out")" "0 3 3 3 "
    done
}
elsewhere libgomp.so.1 "$PWD/libgomq.so.1"
elsewhere "$PWD/libgomq.so.1" libgomp.so.1

# A region in a constructor, while other threads look functions up: each has a lock for which the other may wait.
for i in {1..30}; do cp "$JUMPS" "loaded$i.so"; done
rm -f ./*.sbt
subutai record -o t.sbt --engine glibc -- "$LOOKING" libgomp.so.1 ./loaded*.so
check "modules with regions in their constructors, while functions are looked up" is "$status $out" "0 30 modules"

# A library with some functions of OpenMP's names is no run-time library: its futexes are the program's.
rm -f ./*.sbt
subutai record -o t.sbt --record-calls all -- "$STUBBED"
check "a library with a lock of OpenMP's name: its lock, and its futexes" is \
    "$status $("$SUBUTAI" trace info --json t.sbt | jq -c '.operations | [.mutex_lock.count, .futex_wake.count]')" "0 [1,1]"

# Plug-ins with tasks that call the other one's functions: two on one run-time library, and on two.
cp "$PLUGIN" ./another-plugin.so
plugins() { # TEXT FILE OTHER
    local calls
    for calls in all waits; do
        rm -f ./*.sbt
        subutai record -o t.sbt --record-calls $calls -- "$PLUGINS" "$2" "$3"
        check "$1, $calls recorded: tasks call their own library" is "$status $out" "0 0 wrong"
        [[ $calls == waits ]] ||
            check "their trace is possible" possible t.sbt apart
    done
}
plugins "plug-ins on one run-time library" "$PLUGIN" ./another-plugin.so
if [[ -n ${CLANG_PLUGIN:-} ]]; then
    # LLVM's library waits by mutexes and conditions, and here at once: none of them is an event, though it is the second.
    export KMP_BLOCKTIME=0
    plugins "a plug-in of gcc's that calls one of clang's" "$PLUGIN" "$CLANG_PLUGIN"
    plugins "a plug-in of clang's that calls one of gcc's" "$CLANG_PLUGIN" "$PLUGIN"
    unset KMP_BLOCKTIME
fi

# No run-time library at all, and a program that asks for its functions.
for calls in all waits; do
    rm -f ./*.sbt
    subutai record -o t.sbt --record-calls $calls -- "$WITHOUT"
    check "without a run-time library, $calls recorded: its functions do what one thread needs" is "$status $out" "0 6, 0 wrong"
done
finish
