#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# More waiting threads than queue elements: requests are held back, threads are woken, and nothing hangs or is granted
# twice. Under --strict-paper operations fail instead, and what failed has not happened.
. "$(dirname "$0")/lib.sh"
for service in dedicated inline; do
    for elements in 1 2 4; do
        narrow=(--mesh 1x1 --queue-elements "$elements")
        under "$service" "${narrow[@]}" -- contend mutex 32 200
        passes "$service, $elements queue elements: 32 threads on a mutex"
        [[ $elements != 1 ]] || check "$service: requests were held" counted '.[] | .held > 0'
        under "$service" "${narrow[@]}" -- contend cond 32 100
        passes "$service, $elements queue elements: waits, timed and cancelled ones"
        check "$service, $elements queue elements: some found none, and then waited in software" counted \
            '.[] | .woken > 0 and .condition_waits_in_software > 0 and .condition_waits_in_software <= .woken
                and ([.nis[].woken] | add) == .woken'
        under "$service" "${narrow[@]}" -- contend tokens 32 200
        passes "$service, $elements queue elements: no signal is lost"
        under "$service" "${narrow[@]}" -- contend barrier 32 50
        check "$service, $elements queue elements: a barrier of 32" quiet_success
        check "$service, $elements queue elements: which is not the hardware's" \
            counted '.[] | .objects_in_software == 1'
        under "$service" "${narrow[@]}" -- contend mixed 32 100
        passes "$service, $elements queue elements: all at once"
        under "$service" "${narrow[@]}" --control-elements 1 -- contend mixed 16 50
        passes "$service, $elements queue elements and 1 control element: all at once"
    done
    under "$service" --mesh 1x1 --queue-elements 31 -- contend barrier 32 50
    passes "$service, 31 queue elements: a barrier of 32 is the hardware's"
    check "$service, 31 queue elements: and only its" counted "$n"'.[] | .objects_in_software == 0 and n("barrier") == 1600'
    for elements in 1 4; do
        under "$service" --mesh 1x1 --queue-elements "$elements" --control-elements 32 --strict-paper -- strict 32 100
        check "$service, $elements queue elements, --strict-paper: nothing granted twice" quiet_success
        check "$service, $elements queue elements, --strict-paper: locks that failed" \
            matches "$out" '^lock [1-9][0-9]* wait [0-9]+ barrier [0-9]+$'
        read -r _ locks _ waits _ barriers <<<"$out"
        # And those of a wait that is over and takes its mutex again, which the program does not see.
        check "$service, $elements queue elements, --strict-paper: each is counted" \
            counted ".[] | .again >= $((locks + waits + barriers)) and .again < $((2 * (locks + waits + barriers)))"
    done
    # Linear: a request that was set aside is looked at when it can go on, and its element once for each that goes.
    for threads in 500 2000; do
        under "$service" -- waiters "$threads"
        passes "$service: $threads threads wait for one mutex and on one condition"
        check "$service: $threads waiters: each is looked at a few times, however many they are" \
            counted '.[] | .held > 300 and .looks_at_held <= 3 * .held'
    done
    # All of them hand in a request at once: full mailboxes.
    under "$service" -- waiters 4000 late
    passes "$service: the time of 4000 waiters is up at once, and none keeps the core from the server"
done
finish
