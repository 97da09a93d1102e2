#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# `subutai bench`: arithmetic against a program with known numbers, then the real one.
. "$(dirname "$0")/lib.sh"

# The n-th call under an engine returns the n-th number of that engine's file.
cat >fake <<'END'
#!/bin/sh
[ "$1" != --list ] || { printf 'barrier\tall wait for all\ncontended\n'; exit; }
echo "$SUBUTAI_ENGINE $*" >>calls
n=$(grep -c "^$SUBUTAI_ENGINE " calls)
ns=$(sed -n "${n}p" "$SUBUTAI_ENGINE")
echo "{\"kind\":\"$1\",\"threads\":$3,\"ops\":10,\"wall_ns\":$((ns * 10)),\"cpu_ns\":$((ns * 20)),\"ns_per_op\":$ns}"
END
chmod +x fake
bench() {
    rm -f calls
    subutai bench --library "$STUB" --program ./fake "$@"
}

printf '%s\n' 300 100 200 500 400 >glibc
printf '%s\n' 50 100 80 >direct
printf '%s\n' 60 >ni
bench contended --threads 4 --runs 3 --json
check "exit 0" is "$status" 0
check "one object per engine and line" is "$(wc -l <<<"$out")" 2
check "exactly the documented members" json 'all(.[]; keys_unsorted == ["kind", "threads", "engine", "n_beside", "ns_per_op", "min",
    "max", "ratio", "cpu_ratio", "ratio_min", "ratio_max", "cpu_ratio_min", "cpu_ratio_max"])'
check "median, min, max of glibc" json '.[0] | .kind == "contended" and .threads == 4 and .engine == "glibc" and
    .ns_per_op == 200 and .min == 100 and .max == 300 and .ratio == 1 and .cpu_ratio == 1'
check "ratio glibc/direct of the medians, bigger is better" json '.[1] | .engine == "direct" and .ns_per_op == 80 and
    .ratio == 2.5 and .cpu_ratio == 2.5'
check "runs alternate, with the right arguments" is "$(tr '\n' ';' <calls)" \
    "$(printf 'glibc contended --threads 4;direct contended --threads 4;%.0s' {1..3})"
bench contended --threads 4 --runs 3 --engines direct,glibc --json
check "the ratio is to glibc wherever it stands" \
    json '.[0].engine == "direct" and .[0].ratio == 2.5 and .[1].ratio == 1'
bench contended --runs 3 --engines direct --json
check "without glibc to the first" json '.[0].ratio == 1'
bench contended --runs 2 --engines glibc --json
check "the median of two is their mean" json '.[0].ns_per_op == 200 and .[0].min == 100'
bench contended --runs 1 --warmup 2 --engines glibc --json
check "warm-ups do not count" json '.[0].ns_per_op == 200'
bench barrier --runs 1 --threads 2,16 --cs 5 --think 7 --write-percent 3 --seconds 0.5 --engines glibc
check "options are handed on" is "$(tr '\n' ';' <calls)" \
    "$(printf 'glibc barrier --threads %d --cs-ns 5 --think-ns 7 --write-percent 3 --seconds 0.5;' 2 16)"
check "the table has a row for each" matches "$out" $'barrier +2  glibc +300.0.*\n.*barrier +16  glibc +100.0'
bench barrier --runs 1 --engines glibc,ni:service=inline,scale=0 --json
check "settings of ni, and its label" json '[.[].engine] == ["glibc", "ni:service=inline,scale=0"]'
cat >beside <<'END'
#!/bin/sh
[ "$1" != --list ] || { echo barrier; exit; }
echo "{\"kind\":\"$1\",\"threads\":2,\"ops\":1,\"wall_ns\":1,\"cpu_ns\":1,\"ns_per_op\":$(cat /proc/[0-9]*/stat 2>/dev/null | grep -c "^[0-9]* (subutai) . $PPID ")}"
END
chmod +x beside
subutai bench --library "$STUB" --program ./beside barrier --beside 2 --runs 1 --engines glibc --json
check "--beside 2: are there while the program runs" json '.[0].ns_per_op == 2 and .[0].n_beside == 2'
bench --list
check "--list" is "$out" $'barrier\tall wait for all\ncontended'

printf '#!/bin/sh\n[ "$1" != --list ] || { echo barrier; exit; }\necho a hang >&2; exit 1\n' >fails
chmod +x fails
subutai bench --library "$STUB" --program ./fails barrier
check "a failed run: exit 1" is "$status" 1
check "with its stderr" matches "$err" $'barrier under glibc: exit 1\na hang'
printf '#!/bin/sh\n[ "$1" != --list ] || { echo barrier; exit; }\necho "{}"\n' >empty && chmod +x empty
subutai bench --library "$STUB" --program ./empty barrier
check "no numbers: exit 1" is "$status" 1
check "are not invented" matches "$err" 'no result in: \{\}'
printf '#!/bin/sh\n[ "$1" != --list ] || { echo barrier; exit; }\nsleep 100\n' >hangs && chmod +x hangs
subutai bench --library "$STUB" --program ./hangs --timeout 0.3 barrier
check "a hang: exit 1" is "$status" 1
check "is a timeout" matches "$err" 'barrier under glibc: timeout'
printf '#!/bin/sh\n[ "$1" != --list ] || { echo barrier; exit; }\necho "barrier has no --cs-ns" >&2; exit 2\n' >picky
chmod +x picky
subutai bench --library "$STUB" --program ./picky barrier --cs 5
check "what the program refuses is refused" is "$status" 2

subutai bench locks --locks tas,flat+yield --engines direct --lines 3 --runs 1 --seconds 0.02 --json
check "locks: engines, then locks, with misses or null" json '[.[].engine] == ["direct", "tas", "flat+yield"] and
    all(.[]; .ns_per_op > 0 and has("misses_per_op")) and .[0].ratio == 1'
subutai bench locks --locks none --engines direct --runs 1 --seconds 0.02 --json
check "locks: none beside the engines" json '[.[].engine] == ["direct"]'
subutai bench locks --locks tas,fly --runs 1
check "an unknown lock is refused in a line" matches "$status $err" "^2 subutai: bench: --locks: unknown lock 'fly' \(legal: posix, tas[^"$'\n'"]*\)$"

subutai bench --list
check "the real program has the kinds of the manual" is "$(cut -f1 <<<"$out" | sort | tr '\n' ' ')" \
    "barrier bounded-queue broadcast contended cxx-barrier cxx-latch cxx-semaphore locks long-wait omp-barrier omp-parallel ping-pong rust-barrier rust-mpsc rust-ring rwlock semaphore signal-storm small-locks trylock-barrier turn-ring uncontended yield yield-barrier "
for kind in $(cut -f1 <<<"$out"); do
    other=$(dirname "$SUBUTAI")/../../bench/micro/subutai-bench-${kind%%-*}
    if [[ $kind == rust-* || $kind == cxx-* ]] && [ ! -x "$other" ]; then
        subutai bench "$kind"
        check "$kind, which is not built, is refused in a line" matches "$status $err" "^2 .*$kind needs .*/${other##*/}: [^"$'\n'"]*$"
        continue
    fi
    [ "$kind" != ping-pong ] || [ "$(nproc)" -gt 1 ] || continue # it needs two
    words=()
    [ "$kind" != locks ] || words=(--locks none)
    subutai bench "$kind" "${words[@]}" --threads 2 --runs 1 --seconds 0.05 --json
    check "$kind under the real library" json 'length == 2 and all(.[]; .kind == "'"$kind"'" and .ns_per_op > 0)'
done
finish
