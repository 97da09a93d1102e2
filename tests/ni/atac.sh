#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# --network atac: barriers and broadcasts of conditions are messages of an optical network, and everything else is as on the mesh. Counts are
# exact, and with a time scale no call takes less than the model says.
. "$(dirname "$0")/lib.sh"

for service in dedicated inline; do
    under "$service" --network atac -- known
    passes "$service: known"
    check "$service: locks, unlocks, waits and signals are as on the mesh" counted \
        "$n"'.[] | n("lock") == 1041 and n("unlock") == 1041 and n("condition") == 22 and n("signal") == 10 and n("broadcast") == 3'
    check "$service: 35 barrier waits, none of them a request" counted \
        "$n"'.[] | n("barrier") == 35 and ([.nis[].states["Barrier Wait"] // 0] | add) == 0'
    # 5 threads with a tile each: a message of each at 7 barriers, which the 4 others retrieve. Of 3 broadcasts those that
    # go to another tile.
    check "$service: a message for each arrival and each broadcast, retrieved by the others" counted \
        '.[].optical | (.messages - 35 | . >= 0 and . <= 3) and (.retrieved - 140 | . >= 0 and . <= 3) and .without_channel == 0'
    check "$service: a barrier's 300 to send and 15 on the way, at most 303 for each of 4 messages" counted \
        '.[].latencies[] | select(.operation == "barrier wait") | .handover_ns == 300 and .network_ns == 15 and .fsm_ns <= 1212 and
            .mean_ns >= 315'
    check "$service: a broadcast takes its core 300" counted '.[].latencies[] | select(.operation == "broadcast") | .mean_ns == 300'
    check "$service: a lock is the mesh's" counted '.[].latencies[] | select(.operation == "unlock") | .mean_ns == 60'
    under "$service" --network atac --mesh 1x1 -- known
    passes "$service, one tile"
    check "$service, one tile: threads of a core need no messages of each other" counted \
        '.[].optical | .messages == 35 and .retrieved == 0'
    under "$service" --network mesh -- known
    check "$service: --network mesh has no optical network" counted '.[] | has("optical") | not'
    under "$service" --network atac --time-scale 1000 -- clocked all 4 25
    passes "$service: barriers, conditions and mutexes with a time scale"
    check "$service: all calls together have taken what the model says, or more ($out ns)" counted \
        ".[] | ([.latencies[] | .count * (.mean_ns - 0.005)] | add) * 1000 | . > 1000000 and . <= ${out:-0}"
    under "$service" --network atac -- known fork
    passes "$service: a forked child"
    under "$service" --network atac --mesh 2x1 -- conds
    passes "$service: conditions with more threads than cores"
done

# From two threads to four on each tile.
for threads in 2 16 64 256; do
    under inline --network atac -- clocked all "$threads" 10
    passes "$threads threads"
    check "$threads threads: each barrier wait is a message" counted \
        ".[] | ([.latencies[] | select(.operation == \"barrier wait\") | .count] | add) == $((threads * 10)) and
            .optical.messages >= $((threads * 10)) and .optical.without_channel == 0"
done

# Waits at a condition that a broadcast ends: the waiters know of it, and come back sooner than from an NI.
under inline --network atac --time-scale 2000 -- clocked all 6 20
passes 'time scale 2000'
check 'a waiter that is told of a broadcast does not need 185 ns after its grant' counted \
    '.[].latencies[] | select(.operation == "condition wait") | .count > 10 and .resume_ns < 150'
under inline --network mesh --time-scale 2000 -- clocked all 6 20
check 'on the mesh it does' counted '.[].latencies[] | select(.operation == "condition wait") | .count > 10 and .resume_ns == 185'

# At the exit threads still come to barriers: their messages are counted all the same.
for ms in {101..125}; do
    under inline --network atac -- endless "$ms"
    check "main returns after $ms ms" quiet_success
    check "main returns after $ms ms: each wait that has ended is a message" counted \
        '.[] | ([.latencies[] | select(.operation == "barrier wait") | .count] | add) as $waits | .optical.messages - $waits | . >= 0 and . <= 16'
done

# The requests that NIs served can be replayed, broadcasts that came over the optical network too.
rm -f log
under inline --network atac --requests log -- known
check 'a log of its requests' quiet_success
run "$SUBUTAI" replay log
check 'is replayed to the cycle' is "$status" 0

run "$SUBUTAI" run --engine ni --network optical -- true
check 'a network that there is not' matches "$status $err" "^2 subutai: .*'optical'.*mesh, atac"
run "$SUBUTAI" run --engine direct --network atac -- true
check 'an engine without networks' matches "$status $err" '^0 .*network.*only the engine ni reads it'
run "$SUBUTAI" compare --engines glibc,ni:network=atac --runs 1 -- true
check 'in a list of engines' is "$status" 0
finish
