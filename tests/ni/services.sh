#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Several service threads: each serves a block of tiles, and hands what goes to the tiles of another on to that one. A
# machine with two cores has a single one unless more are asked for.
. "$(dirname "$0")/lib.sh"

# As many kernel threads as the program has, and the service threads beside them.
n_threads() { # NUMBER [OPTION...]
    run "$SUBUTAI" run --engine ni --ni-threads "$@" -- "$SUBJECTS/ni-known" tasks
}
n_threads 1
alone=$out
for n in 2 3 64; do
    n_threads "$n"
    check "$n service threads" is "$out" $((alone + n - 1))
done
n_threads 64 --mesh 3x1
check "no more of them than tiles" is "$out" $((alone + 2))
n_threads 4 --mesh 5x1 # blocks of two, two and one
check "none of them without tiles" is "$out" $((alone + 2))

# By default one for 32 of the 64 tiles, and at most one for two CPUs.
default=$(($(nproc) / 2))
default=$((default < 1 ? 1 : default > 2 ? 2 : default))
run "$SUBUTAI" run --engine ni -- "$SUBJECTS/ni-known" tasks
check "by default $default on $(nproc) CPUs" is "$out" $((alone + default - 1))
run taskset -c "$(allowed_cpu)" "$SUBUTAI" run --engine ni -- "$SUBJECTS/ni-known" tasks
check "one on one CPU" is "$out" "$alone"
run "$SUBUTAI" run --engine ni --mesh 4x8 -- "$SUBJECTS/ni-known" tasks
check "one for 32 tiles" is "$out" "$alone"

# Three do not divide 8 * 8: the last block is smaller. Five divide 5 * 1: one tile each.
for shape in "2" "3" "4" "64" "5 --mesh 5x1" "2 --mesh 2x1 --control-elements 1 --queue-elements 8"; do
    read -ra options <<<"--ni-threads $shape"
    under dedicated "${options[@]}" -- contend mixed 16 100
    passes "--ni-threads $shape: everything at once"
    under dedicated "${options[@]}" -- many 8 200 1
    passes "--ni-threads $shape: mutexes on all tiles"
    under dedicated "${options[@]}" -- contend barrier 9 200
    passes "--ni-threads $shape: a barrier"
    under dedicated "${options[@]}" -- child 3 fork
    check "--ni-threads $shape: children" quiet_success
done
under dedicated --ni-threads 3 --mesh 4x4 --time-scale 20 -- contend tokens 8 20
passes "three service threads keep packets until they are due"
for i in 1 2 3; do
    run "$SUBUTAI" run --engine ni --ni-threads 7 -- "$SUBJECTS/ni-lives" exit
    check "seven service threads end before the program's last thread ($i)" is "$status$out" "0the last one"
done
finish
