#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# More objects than the hardware has control elements for, from so few that every lock evicts an idle mutex to the usual.
. "$(dirname "$0")/lib.sh"
for service in dedicated inline; do
    under "$service" -- many 8 10000 1
    passes "$service: 10 000 mutexes by 8 threads on 64 NIs"
    check "$service: evictions" counted '.[] | .evictions > 1000 and .allocated_anew > 1000'
    for mesh in 1x1 2x2; do
        for elements in 1 2 3 4; do
            under "$service" --mesh "$mesh" --control-elements "$elements" -- many 8 1000 1 alone
            passes "$service: 1000 mutexes, mesh $mesh, $elements control elements"
            # An element is free at first, given up by another object, or given back by one of two that were allocated
            # for the same; an object that finds none is left to software.
            check "$service: each object had its element from somewhere, mesh $mesh, $elements control elements" counted \
                "$n"'.[] | .evictions + .objects_in_software + n("deallocate") >= 1000 - 4 * '"$elements"
            # Eight threads each hold one at a time, and a thread that looks for one holds none.
            [[ $mesh$elements != 2x2[234] ]] || check "$service: evictions, mesh $mesh, $elements control elements" \
                counted '.[] | .evictions > 100'
        done
    done
    under "$service" --mesh 2x2 --control-elements 2 --control-full software -- many 8 1000 2
    passes "$service: --control-full software"
    # Of two that allocate for one object at a time one gives back, so now and then an element has gone to no object.
    check "$service: all but eight of 1000 objects in software, nothing evicted" \
        counted '.[] | .objects_in_software >= 992 and .objects_in_software < 1000 and .evictions == 0'
    under "$service" --mesh 2x2 --strict-paper -- many 8 1000 1 alone
    check "$service: --strict-paper serves the rest in software" \
        counted '.[] | .objects_in_software >= 984 and .objects_in_software < 1000 and .evictions == 0'
    # The NIs' own counts add up.
    under "$service" --mesh 2x2 --control-elements 2 --queue-elements 1 -- many 8 1000 1
    passes "$service: 1000 mutexes, 2 control elements and 1 queue element"
    check "$service: each NI says what it lacked" counted '.[] | ([.nis[].evictions] | add) == .evictions and
        ([.nis[].held] | add) == .held and ([.nis[].evictions] | min) > 0'
done
finish
