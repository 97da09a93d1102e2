#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The paper's placement: the first primitive at NI 0, the second at NI 1. What is initialised is placed then, whatever
# has a static initialiser at its first use, and one counter counts for all threads.
. "$(dirname "$0")/lib.sh"

# What each NI did, as [number, allocations, evictions and deallocations, locks].
nis='[.nis[] | [.ni, .states.Allocation // 0, (.states["Evict"] // 0) + (.states.Deallocation // 0),
    .states["Mutex Lock"] // 0]]'

for service in dedicated inline; do
    for i in {1..10}; do
        under "$service" -- place race 32
        check "$service: 32 threads and 3 mutexes use NI 0, 1 and 2 ($i)" \
            counted ".[] | $nis == [[0,1,0,32],[1,1,0,32],[2,1,0,32]]"
    done
    under "$service" --mesh 2x1 -- place race 32
    check "$service: 32 threads and 3 mutexes use NI 0, 1 and 0" counted ".[] | $nis == [[0,2,0,64],[1,1,0,32]]"
    for when in order early; do
        under "$service" -- place "$when"
        passes "$service, $when"
        check "$service, $when: initialised at NI 0 to 3, the static mutex at NI 4" \
            counted ".[] | $nis == [[0,1,0,0],[1,1,0,0],[2,1,0,0],[3,1,0,4],[4,1,0,5]]"
    done
    under "$service" --mesh 2x2 -- place turnover 6
    passes "$service: initialised and destroyed"
    check "$service: a destroyed object's element is free, and the counter goes on" \
        counted ".[] | [.nis[] | [.states.Allocation, .max_control]] == [[3,1],[3,1],[3,1],[3,1]]"
    under "$service" --mesh 1x1 --control-elements 1 -- place turnover 6
    passes "$service: the same with room for one object"
    check "$service: the mutex has the element each time" counted "$n"'.[] | n("allocate") == 6 and n("deallocate") == 6'

    # 8 elements. Of what does not fit only the used objects are placed, each by an eviction.
    under "$service" --mesh 2x1 -- place unused 100000
    passes "$service: 100 000 mutexes that are initialised, and few of them used"
    check "$service: initialising evicts nothing" \
        counted "$n"'.[] | .evictions == 10 and n("allocate") == 18 and .objects_in_software == 0'
    under "$service" --mesh 2x1 --control-full software -- place unused 1000
    check "$service, software: only what is used falls to software" \
        counted "$n"'.[] | .evictions == 0 and n("allocate") == 8 and .objects_in_software == 10'
    # An allocation takes some 90 ms.
    for what in child handler exit; do
        under "$service" --time-scale 1000000 -- place "$what"
        check "$service: a first use meets a $what" is "$status$err" 0
        # A handler that comes during the allocation makes its own; the thread gives back what it was allocated then.
        [[ $what != handler ]] || check "$service: one primitive of the mutex is left" \
            counted "$n"'.[] | n("allocate") == n("deallocate") + 1'
    done
done
finish
