#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Where NI threads run, and where the memory of their tiles is: on this machine, with fewer CPUs than it has, and on one
# with two memory nodes of one CPU each, which libnuma finds in a mount namespace. What the nodes decide is tested in
# tests/unit/place_test.c.
. "$(dirname "$0")/lib.sh"

list=$(taskset -cp $$)
IFS=, read -ra parts <<<"${list##*: }"
cpus=()
for part in "${parts[@]}"; do
    mapfile -t -O "${#cpus[@]}" cpus < <(seq "${part%-*}" "${part#*-}")
done

# places WANTED CMD...: which CPUs each of two NI threads may use, in order.
places() {
    run "${@:2}" "$SUBUTAI" run --engine ni --ni-threads 2 -- "$SUBJECTS/ni-known" places "$1"
}

places "${cpus[0]} ${cpus[0]}" taskset -c "${cpus[0]}"
check "a mask of one CPU is never left" is "$status$out" "0${cpus[0]} ${cpus[0]}"
if [ "${#cpus[@]}" -ge 2 ]; then
    two=${cpus[0]},${cpus[1]}
    [ $((cpus[0] + 1)) != "${cpus[1]}" ] || two=${cpus[0]}-${cpus[1]}
    places "$two $two" taskset -c "$two"
    check "without CPUs to spare each has all of them" is "$status$out" "0$two $two"
else
    skip "without CPUs to spare each has all of them" "one CPU"
fi

cat >on-two-nodes <<'END'
for node in 0 1; do
    mkdir -p "nodes/node$node"
    cpu=$([ "$node" = 0 ] && echo "$1" || echo "$2")
    words=$(printf ',00000000%.0s' $(seq $((cpu / 32))))
    [ "$cpu" -ge 32 ] || words=
    printf '%x%s\n' $((1 << cpu % 32)) "$words" >"nodes/node$node/cpumap"
    echo "$cpu" >"nodes/node$node/cpulist"
    printf "Node $node %s: 1000000 kB\n" MemTotal MemFree >"nodes/node$node/meminfo"
    echo 10 20 >"nodes/node$node/distance"
done
for list in online possible has_cpu has_memory; do
    echo 0-1 >"nodes/$list"
done
mount --bind nodes /sys/devices/system/node || exit 77
shift 2
exec "$@"
END
on_two_nodes=(unshare -rm bash on-two-nodes "${cpus[0]}" "${cpus[1]:-}")
about="a node each"
if [ "${#cpus[@]}" -lt 2 ]; then
    skip "$about" "one CPU"
elif ! "${on_two_nodes[@]}" true 2>/dev/null; then
    skip "$about" "no mount namespace can be made"
else
    places "${cpus[0]} ${cpus[1]}" "${on_two_nodes[@]}"
    check "$about" is "$status$out" "0${cpus[0]} ${cpus[1]}"
    places "${cpus[1]} ${cpus[1]}" taskset -c "${cpus[1]}" "${on_two_nodes[@]}"
    check "but no node without an allowed CPU" is "$status$out" "0${cpus[1]} ${cpus[1]}"
    # The kernel knows node 0 alone; what goes there is seen.
    places memory "${on_two_nodes[@]}"
    check "memory of tiles is kept on their node" is "$status$out" "0bound"
    places unbound
    check "with one node nothing is bound" is "$status$out" "0not bound"
fi
finish
