#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Ten million requests and more from four threads: as many come out of the hardware as went in.
. "$(dirname "$0")/lib.sh"
limit=400
for service in dedicated inline; do
    # Destroying a mutex tries to lock it.
    under "$service" -- many 4 64 20000 alone # 4 * 64 * 20000 locks and as many unlocks
    passes "$service: 10 240 000 requests of 4 threads on 64 mutexes"
    check "$service: not one fewer" counted \
        "$n"'.[] | n("lock") == 5120000 and n("unlock") == 5120000 + 64 and n("trylock") == 64'
    under "$service" --mesh 2x1 --control-elements 1 --queue-elements 1 -- many 4 8 5000 alone
    passes "$service: 320 000 requests where elements run out"
done
finish
