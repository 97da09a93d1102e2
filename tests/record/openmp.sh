#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# OpenMP under the recorder: regions, barriers, critical sections and locks are events in known numbers, by name; the
# program computes what it does without.
. "$(dirname "$0")/../command/lib.sh"
: "${SUBJECT:?}" "${CHECK:?}" "${LOADER:?}" "${DECOY:?}" "${MODULE:?}" "${JUMPS:?}"

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
recorded() { # WHAT [OPTION...]
    local what=$1
    shift
    rm -f ./*.sbt
    subutai record -o t.sbt --engine "$engine" "$@" -- "$SUBJECT" "$what"
}

for engine in glibc direct ni; do
    for what in regions sizes nested once tasks in_tasks alone doubled threads forks ends; do
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
recorded threads
check "teams of several threads in one region: each arrival at each barrier of each team" possible t.sbt barrier_wait=600
recorded doubled
check "a barrier with two call sites is one" is "$("$SUBUTAI" report --json t.sbt | jq -c '[.barriers[].generations] | sort')" '[1,50]'
recorded nested
check "teams within teams" is "$(barriers)" "nested 2 50
nested._omp_fn.0 2 150
nested._omp_fn.1 2 100"
recorded regions
subutai predict t.sbt --machine host --sync direct --cores 4 --json
check "a prediction replays each call as it was recorded" json '.[0].runs[0].not_as_recorded.n == 0'

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
finish
