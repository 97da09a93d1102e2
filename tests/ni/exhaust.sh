#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# More waiting threads than queue elements: requests are held back, threads are woken, and nothing hangs or is granted
# twice. Under --strict-paper operations fail instead, and what failed has not happened.
. "$(dirname "$0")/lib.sh"
for service in dedicated inline; do
    for elements in 1 2 4; do
        narrow=(--mesh 1x1 --queue-elements "$elements")
        under "$service" "${narrow[@]}" -- crowd mutex 32 200
        passes "$service, $elements queue elements: 32 threads on a mutex"
        [[ $elements != 1 ]] || check "$service: requests were held" counted '.[] | .held > 0'
        under "$service" "${narrow[@]}" -- crowd cond 32 100
        passes "$service, $elements queue elements: waits, timed and cancelled ones"
        check "$service, $elements queue elements: some found none, and then waited in software" counted \
            '.[] | .woken > 0 and .condition_waits_in_software > 0 and .condition_waits_in_software <= .woken
                and ([.nis[].woken] | add) == .woken'
        under "$service" "${narrow[@]}" -- crowd tokens 32 200
        passes "$service, $elements queue elements: no signal is lost"
        under "$service" "${narrow[@]}" -- crowd barrier 32 50
        check "$service, $elements queue elements: a barrier of 32" quiet_success
        check "$service, $elements queue elements: which is not the hardware's" \
            counted '.[] | .objects_in_software == 1'
        under "$service" "${narrow[@]}" -- crowd mixed 32 100
        passes "$service, $elements queue elements: all at once"
        under "$service" "${narrow[@]}" --control-elements 1 -- crowd mixed 16 50
        passes "$service, $elements queue elements and 1 control element: all at once"
    done
    under "$service" --mesh 1x1 --queue-elements 31 -- crowd barrier 32 50
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
done
finish
