#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The statistics of programs that do an exact number of everything; the latencies of an uncontended lock, to the cycle.
. "$(dirname "$0")/lib.sh"

for service in dedicated inline; do
    under "$service" -- known
    passes "$service: known"
    check "$service: valid JSON, one object" is "$(jq length <<<"$stats")" 1
    check "$service: 1000 + 41 locks, as many unlocks" counted "$n"'.[] | n("lock") == 1041 and n("unlock") == 1041'
    check "$service: 35 barrier waits" counted "$n"'.[] | n("barrier") == 35'
    check "$service: 22 condition waits, 10 signals, 3 broadcasts" \
        counted "$n"'.[] | n("condition") == 22 and n("signal") == 10 and n("broadcast") == 3'
    check "$service: nothing else but allocations" counted \
        '.[] | [.latencies[].operation] - ["lock, empty", "lock, queued", "unlock", "barrier wait", "condition wait",
            "signal", "broadcast", "allocate", "deallocate"] == []'
    check "$service: four objects in the hardware" counted "$n"'.[] | n("allocate") - n("deallocate") == 4'
    check "$service: the states have counted the same" counted \
        '.[] | [.nis[].states] | ([.[]["Mutex Unlock"] // 0] | add) == 1041 and ([.[]["Barrier Wait"] // 0] | add) == 35
            and ([.[]["Condition Wait"] // 0] | add) == 22 and ([.[]["Condition Signal"] // 0] | add) == 10
            and ([.[]["Condition Broadcast"] // 0] | add) == 3'
    # 185 ns back to a thread that was queued: all waits at the condition, all at the barrier but each meeting's last.
    check "$service: a thread that has waited for others comes back 185 ns later, no other thread" counted \
        '.[].latencies[] | .resume_ns == ({"lock, queued": 185, "condition wait": 185,
            "barrier wait": (28 / 35 * 18500 | round / 100)}[.operation] // 0)'
    check "$service: no fall-back" counted \
        '.[] | .evictions + .allocated_anew + .objects_in_software + .condition_waits_in_software + .held + .woken + .again == 0'

    # A lock is 60 of hand-over and the state machine's 4 + 2m + c = 9; an unlock is the hand-over alone.
    under "$service" -- known pair 500
    check "$service: local lock 69 ns, unlock 60 ns" counted \
        '.[].latencies | (.[] | select(.operation == "lock, empty") | [.count, .mean_ns, .median_ns, .p99_ns, .fsm_ns,
             .network_ns, .waiting_ns, .local] == [500, 69, 69, 69, 9, 0, 0, 500]),
         (.[] | select(.operation == "unlock") | [.count, .mean_ns, .median_ns, .p99_ns] == [500, 60, 60, 60])'
    check "$service: nothing enters the network" counted '.[] | .network.packets == 0 and .network.links == []'
    # The mutex is NI 0's. h hops: (h + 1) * 4 cycles to the header there, and 3 more to the tail back here.
    for way in "1 1" "7 7" "9 2" "63 14" "56 7"; do
        read -r tile hops <<<"$way"
        echo "$tile" >file
        network=$((2 * 4 * (hops + 1) + 3))
        under "$service" --map file:file -- known pair 300
        check "$service: lock over $hops hops takes $network ns more" counted \
            ".[].latencies[] | select(.operation == \"lock, empty\") | [.count, .mean_ns, .median_ns, .p99_ns,
             .network_ns, .fsm_ns, .local] == [300, $((69 + network)), $((69 + network)), $((69 + network)), $network, 9, 0]"
        check "$service: $hops hops there, $hops back, $hops to unlock" counted \
            ".[] | .network | .packets == 2 * 301 + 300 and .hops == $hops * .packets and .contention_cycles == 0"
    done
    # Main sits at home, the second thread next door.
    under "$service" --map linear -- known pair -250
    check "$service: the second thread's locks are remote" counted \
        '.[].latencies[] | select(.operation == "lock, empty") | .count == 250 and .local == 0'
    under "$service" --mesh 1x1 -- known
    check "$service: on one tile all is local" counted '.[].latencies[] | .count == .local and .network_ns == 0'
    # Control packets wait at most for the rest of a data packet at a port, but some do.
    echo 63 >file
    under "$service" --map file:file --data-load 500 -- known pair 2000
    check "$service: data traffic delays, by 17 cycles a port at most" counted \
        '.[] | .network.contention_cycles > 0 and (.latencies[] | select(.operation == "lock, empty")
            | .network_ns > 123 and .network_ns <= 123 + 2 * 16 * 17 and .fsm_ns == 9)'
    # Without quality of service for all data before them: about 950 cycles of the way and back.
    under "$service" --map file:file --data-load 900 --qos none -- known pair 2000
    check "$service: --qos none: packets wait for more than that" counted \
        '.[].latencies[] | select(.operation == "lock, empty") | .network_ns > 123 + 2 * 16 * 17'
    under "$service" --map file:file --data-load 900 --qos control -- known pair 2000
    check "$service: --qos control: they do not" counted \
        '.[].latencies[] | select(.operation == "lock, empty") | .network_ns <= 123 + 2 * 16 * 17'

    # Where it goes.
    run "$SUBUTAI" run --engine ni --ni-service "$service" --stats=json -- "$SUBJECTS/ni-known" pair 3
    out=$err
    check "$service: JSON to stderr" json '.[0].requests_in == 7'
    run "$SUBUTAI" run --engine ni --ni-service "$service" --stats -- "$SUBJECTS/ni-known" pair 3
    check "$service: text, not on stdout" is "$out" ""
    check "$service: text: the head" matches "$err" 'process [0-9]+: 8 x 8 tiles, 4 control and 122 queue elements each'
    check "$service: text: requests" matches "$err" $'\nrequests: 7 in, 7 out '
    check "$service: text: three locks" matches "$err" $'\nlock, empty +3 +69.0 +69 +69 +60.0 +0.0 +9.0 +0.0 +0.0 +100.0%'
    check "$service: text: an NI's line" matches "$err" $'\nNI 0: at most 1 control and 0 queue elements, busy '
    rm -f text
    run "$SUBUTAI" run --engine ni --ni-service "$service" --stats --stats-file text -- "$SUBJECTS/ni-known" pair 3
    check "$service: text to a file, nothing to stderr" is "$err$(grep -c '^requests: 7 in, 7 out' text)" 1
    run "$SUBUTAI" run --engine ni --ni-service "$service" --stats --stats-file /nowhere/x -- "$SUBJECTS/ni-known" pair 3
    check "$service: a file that cannot be written: one line, and the statistics to stderr" \
        matches "$err" '^subutai: stats-file: cannot write /nowhere/x.*'$'\n''subutai: emulated hardware'
    check "$service: and the program's status" is "$status" 0
    run "$SUBUTAI" run --engine ni --ni-service "$service" -- "$SUBJECTS/ni-known" pair 3
    check "$service: nothing unless asked for" is "$out$err" ""

    # A child reports what it did itself, not what its parent had done.
    under "$service" -- known fork
    check "$service: parent and forked child report their own" counted "$n"'[.[] | n("lock")] | sort == [5, 30]'
    check "$service: and are told apart" counted 'map(.pid) | unique | length == 2'
    rm -f stats
    run "$SUBUTAI" run --engine ni --ni-service "$service" --stats=json --stats-file stats -- \
        bash -c "'$SUBJECTS/ni-known' pair 20; '$SUBJECTS/ni-known' pair 30; exit 3"
    stats=$(jq -cs . stats)
    check "$service: started programs report their own" \
        counted "$n"'[.[] | n("lock")] | sort | .[-2:] == [20, 30]'
    check "$service: through a shell, with its status" is "$status" 3
done
finish
