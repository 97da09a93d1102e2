#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Which tile a thread sits on is seen from where its requests enter the network. One mutex is used, by one thread after
# the other; it is the first to be allocated, so it lives at NI 0.
. "$(dirname "$0")/lib.sh"

# Main is the first thread and asks for nothing, nine more follow.
tiles() {
    jq -c '.[0].network.links | [.[] | select(.port == 0 and .tile != 0) | .tile] | sort' <<<"$stats"
}

for service in dedicated inline; do
    under "$service" --map linear -- known turns 9
    check "$service, linear: one tile after the other" is "$(tiles)" "[1,2,3,4,5,6,7,8,9]"
    under "$service" --mesh 2x2 -- known turns 9
    check "$service, linear: round" is "$(tiles)" "[1,2,3]"
    for seed in 0 1 7 18446744073709551615; do
        under "$service" --map "random:$seed" -- known turns 9
        eval "seed_$seed=\$(tiles)"
        under "$service" --map "random:$seed" -- known turns 9
        check "$service, random: seed $seed is the same again" is "$(tiles)" "$(eval "echo \$seed_$seed")"
    done
    # shellcheck disable=SC2154 # by eval
    check "$service, random: other seeds are other maps" \
        is "$(printf '%s\n' "$seed_0" "$seed_1" "$seed_7" "[1,2,3,4,5,6,7,8,9]" | sort -u | wc -l)" 4
    under "$service" --map random -- known turns 9
    check "$service, random: without a seed it is 0" is "$(tiles)" "$seed_0"
    under "$service" --mesh 4x3 --map random:5 -- known turns 33
    check "$service, random: a permutation, all tiles are used" is "$(tiles)" "[1,2,3,4,5,6,7,8,9,10,11]"
    printf ' 9\t27 \r\n\n3\n' >file
    under "$service" --map file:file -- known turns 9
    check "$service, file: its tiles and no others" is "$(tiles)" "[3,9,27]"
    printf 63 >file
    under "$service" --map file:file -- known turns 9
    check "$service, file: one number without a line end" is "$(tiles)" "[63]"
done

refused_file() { # TEXT REGEX
    run "$SUBUTAI" run --engine ni --map file:file -- true
    check "file refused: $1" refused_with "$2"
    run env LD_PRELOAD="$BUILD_ROOT/libsubutai/libsubutai.so" SUBUTAI_ENGINE=ni SUBUTAI_MAP=file:file "$SUBJECTS/ni-known" turns 1
    check "file refused without the command: $1" refused_with "$2"
}
: >file
refused_file "empty" "file has no tile number"
printf '1 2 64' >file
refused_file "a tile too many" "file names a tile that the mesh does not have"
printf '1 99999999999999999999 2' >file
refused_file "a number that overflows" "file names a tile that the mesh does not have"
printf '4294967297' >file
refused_file "a number that wraps" "file names a tile that the mesh does not have"
printf '1, 2' >file
refused_file "a comma" "file has something other than decimal tile numbers"
printf -- '-1' >file
refused_file "a minus" "file has something other than decimal tile numbers"
printf '1 \0 2' >file
refused_file "a zero byte" "file has something other than decimal tile numbers"
yes 1 | head -n 65537 >file
refused_file "too many numbers" "file has more numbers than 65536"
rm file
refused_file "none" "file cannot be opened"
mkdir file
refused_file "a directory" "file "
finish
