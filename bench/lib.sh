# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # variables of, and for, the scripts that source it
# What the bench scripts share; sourced. Everything that knows the form of `subutai compare --json` is here.

bench_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bench_name=$(basename "$0")

# refuse TEXT...: wrong arguments, exit status 2.
refuse() {
    echo "$bench_name: $*" >&2
    exit 2
}

# fail TEXT...: it cannot go on, exit status 1.
fail() {
    echo "$bench_name: $*" >&2
    exit 1
}

say() {
    echo "$*" >&2
}

# need PROGRAM PACKAGE: refuse if PROGRAM is not there.
need() {
    command -v "$1" >/dev/null || refuse "'$1' is not installed (Debian package $2)"
}

# built PATH OPTION GIVEN: the program of that path in the build directory, or GIVEN if not empty; refuse if missing.
built() {
    local file=${3:-$build_dir/$1}
    [[ -x $file ]] || refuse "'$file' is not an executable file (build first, or give $2 FILE)"
    realpath "$file"
}

# count_list OPTION TEXT: "2,16,64" as words, refuse anything but positive numbers with commas.
count_list() {
    [[ $2 =~ ^[1-9][0-9]{0,4}(,[1-9][0-9]{0,4})*$ ]] || refuse "$1: illegal value '$2' (legal: numbers from 1, with commas)"
    echo "${2//,/ }"
}

# one_count OPTION TEXT
one_count() {
    [[ $2 =~ ^[1-9][0-9]{0,4}$ ]] || refuse "$1: illegal value '$2' (legal: 1 to 99999)"
    echo "$2"
}

# make_scratch: a temporary directory in $scratch, removed when the script ends. Big: not necessarily in memory.
make_scratch() {
    scratch=$(mktemp -d "${TMPDIR:-/var/tmp}/subutai-$bench_name.XXXXXX") || fail "no temporary directory"
    trap end_of_script EXIT
    trap 'exit 130' INT TERM
}

# What the script left running notes its process id in $scratch/server.pid, also from within a subshell.
end_of_script() {
    [[ ! -s $scratch/server.pid ]] || kill -KILL "$(cat "$scratch/server.pid")" 2>/dev/null
    rm -rf "$scratch"
}

# nanoseconds NS: for people; "-" for null
nanoseconds() {
    awk -v ns="$1" 'BEGIN {
        if (ns == "null") print "-"
        else if (ns >= 1e9) printf "%.2f s\n", ns / 1e9
        else if (ns >= 1e6) printf "%.1f ms\n", ns / 1e6
        else if (ns >= 1e3) printf "%.2f us\n", ns / 1e3
        else printf "%.1f ns\n", ns
    }'
}

# print_table: lines of tab-separated cells as aligned columns; the first line is the heading.
print_table() {
    awk -F '\t' '
        { for (i = 1; i <= NF; i++) { cell[NR, i] = $i; if (length($i) > width[i]) width[i] = length($i) } n = NF > n ? NF : n }
        END {
            for (r = 1; r <= NR; r++) {
                line = ""
                for (i = 1; i <= n; i++) line = line sprintf("%-" width[i] "s  ", cell[r, i])
                sub(/ +$/, "", line)
                print line
                if (r == 1) { gsub(/./, "-", line); print line }
            }
        }'
}

# compare_to FILE ARG...: `subutai compare --json ARG...` into FILE. A refusal ends the script with it; outputs that
# differ (status 1) are for the caller to judge from FILE.
compare_to() {
    local file=$1 status=0
    shift
    "$subutai" compare --json "$@" >"$file" || status=$?
    ((status != 2)) || exit 2
    if ((status > 1)) || ! jq -e '.points | length > 0' "$file" >/dev/null; then
        fail "subutai compare ended with status $status"
    fi
}

# outcome_of FILE (of compare_to, one point) COMPARED: "identical", "not compared", or what went wrong. COMPARED is no
# where a program's own output depends on timing: then only the exit status counts.
outcome_of() {
    jq -r --arg compared "$2" '.points[0] |
        if any(.engines[]; .timeouts > 0) then "TIMEOUT"
        elif any(.engines[]; .same_status | not) then "EXIT STATUS DIFFERS"
        elif any(.engines[]; .status != "exit 0") then "FAILED (" + .engines[0].status + ")"
        elif $compared == "no" then "not compared"
        elif .missing_output then "OUTPUT MISSING"
        elif any(.engines[]; .same_output | not) then "DIFFERENT"
        else "identical" end' "$1"
}

# ---- tables of bench/numbers and bench/emulation: what was wanted, what was measured ----
#
# Both keep them in the file `rows` of their scratch directory. They set $json, and for what measures several engines
# $runs, $seconds, $subutai, $base (an engine) and the array judged (engines, each as `subutai compare` takes it, options
# by their full names), and define engine_row NAME THREADS ENGINE WANTED MEDIAN MIN MAX, which makes a row of the
# outcome, and engine_failed NAME THREADS ENGINE WANTED REASON.

n_failed=0 row_columns=() cells=()

# begin_rows COLUMN...: of the columns that come before wanted, median, min, max and met?
begin_rows() {
    row_columns=("$@")
    printf '%s\t' "$@" >rows
    printf 'wanted\tmedian\tmin\tmax\tmet?\n' >>rows
}

# row CELL... WANTED MEDIAN MIN MAX: WANTED is a lower limit, with "<=" an upper one, LOW..HIGH both; "-" for none.
row() {
    local n=${#row_columns[@]} met=no i what=''
    local first=("${@:1:n}") rest=("${@:n+1}")
    local wanted=${rest[0]} median=${rest[1]}
    if [[ $median == - || $wanted == - ]]; then
        met='-'
    elif awk -v w="$wanted" -v m="$median" 'BEGIN {
            if (sub(/^<=/, "", w)) exit !(m <= w + 0)
            if (split(w, limit, /[.][.]/) == 2) exit !(m >= limit[1] + 0 && m <= limit[2] + 0)
            exit !(m >= w + 0) }'; then
        met=yes
    fi
    (IFS=$'\t' && printf '%s\n' "${first[*]}"$'\t'"${rest[*]}"$'\t'"$met") >>rows
    if [[ $json == yes ]]; then
        jq -nc --argjson n "$n" --arg met "$met" '$ARGS.positional as $a
            | ([range($n) | {key: $a[.], value: (if $a[.] == "threads" then $a[. + $n] | tonumber? // null else $a[. + $n] end)}]
               | from_entries)
            + {wanted: $a[2 * $n], median: ($a[2 * $n + 1] | tonumber? // null), min: ($a[2 * $n + 2] | tonumber? // null),
               max: ($a[2 * $n + 3] | tonumber? // null), met: {"yes": true, "no": false}[$met]}' \
            --args "${row_columns[@]}" "$@"
        return
    fi
    for ((i = 0; i < n; i++)); do
        [[ ${row_columns[i]} == threads ]] && what+=", ${first[i]} threads" || what+=", ${first[i]}"
    done
    say "${what#, }: wanted $wanted, measured $median (min ${rest[2]}, max ${rest[3]}): $met"
}

# failed CELL... WANTED REASON
failed() {
    n_failed=$((n_failed + 1))
    say "$bench_name: ${*:1:${#row_columns[@]}}: ${*: -1}"
    row "${@:1:$#-1}" - - -
}

# left_out CELL... WANTED REASON
left_out() {
    say "${*:1:${#row_columns[@]}}: left out, ${*: -1}"
    row "${@:1:$#-1}" - - -
}

# two_decimals TEXT...: "1.2345 null" as "1.23 -", tab-separated
two_decimals() {
    # shellcheck disable=SC2048,SC2086
    printf '%s\n' $* | awk '{ printf "%s%s", (NR > 1 ? "\t" : ""), ($1 == "null" ? "-" : sprintf("%.2f", $1)) }'
}

# middle: median, min and max of the numbers on stdin, tab-separated
middle() {
    sort -g | awk '{ x[NR] = $1 } END { printf "%.2f\t%.2f\t%.2f\n", (x[int((NR + 1) / 2)] + x[int(NR / 2) + 1]) / 2, x[1], x[NR] }'
}

# for_all HOW NAME THREADS WANTED REASON: HOW is failed or left_out
for_all() {
    local engine
    for engine in "${judged[@]}"; do
        engine_cells "$2" "$3" "$engine"
        "$1" "${cells[@]}" "$4" "$5"
    done
}

joined_engines() {
    (IFS=, && echo "$base,${judged[*]}")
}

# micro_rows NAME FIELD "THREADS:WANTED ..." KIND ARG...: rows for each pair; FIELD is ratio or cpu_ratio.
micro_rows() {
    local name=$1 field=$2 pairs=$3 kind=$4 pair threads wanted values engine median min max
    shift 4
    for pair in $pairs; do
        threads=${pair%:*} wanted=${pair#*:}
        if ! "$subutai" bench "$kind" --threads "$threads" --engines "$(joined_engines)" --runs "$runs" \
            --seconds "$seconds" --json "$@" >bench.json; then
            for_all failed "$name" "$threads" "$wanted" "subutai bench $kind failed"
            continue
        fi
        for engine in "${judged[@]}"; do
            values=$(jq -r --arg engine "$engine" --arg field "$field" 'select(.engine == $engine) |
                "\(.[$field]) \(.[$field + "_min"]) \(.[$field + "_max"])"' bench.json)
            IFS=$'\t' read -r median min max < <(two_decimals "$values")
            engine_cells "$name" "$threads" "$engine"
            row "${cells[@]}" "$wanted" "$median" "$min" "$max"
        done
    done
}

# compare_rows NAME THREADS WANTED ARG...: ARG... are the rest of a compare command line.
compare_rows() {
    local name=$1 threads=$2 wanted=$3 outcome values i median min max
    shift 3
    if ! (compare_to result.json --engines "$(joined_engines)" --runs "$runs" --timeout 300 "$@"); then
        for_all failed "$name" "$threads" "$wanted" "subutai compare failed"
        return
    fi
    outcome=$(outcome_of result.json yes)
    if [[ $outcome != identical ]]; then
        for_all failed "$name" "$threads" "$wanted" "output: $outcome"
        return
    fi
    for i in "${!judged[@]}"; do
        values=$(jq -r --argjson i $((i + 1)) '.points[0].engines[$i].ratio | "\(.median) \(.min) \(.max)"' result.json)
        IFS=$'\t' read -r median min max < <(two_decimals "$values")
        engine_cells "$name" "$threads" "${judged[i]}"
        row "${cells[@]}" "$wanted" "$median" "$min" "$max"
    done
}

# program_rows WANTED FRAMES THREADS...: x264 and pbzip2 on a generated clip
program_rows() {
    local wanted=$1 n program
    "$clip" 640 360 "$2" >clip.y4m
    shift 2
    for n in "$@"; do
        for program in x264 pbzip2; do
            if ! command -v $program >/dev/null; then
                for_all left_out $program "$n" "$wanted" "not installed"
            elif [[ $program == x264 ]]; then
                compare_rows x264 "$n" "$wanted" --output clip.264 -- \
                    x264 --quiet --no-progress --preset slow --threads "$n" --output clip.264 clip.y4m
            else
                compare_rows pbzip2 "$n" "$wanted" --output clip.y4m.bz2 -- pbzip2 -k -q -f "-p$n" clip.y4m
            fi
        done
    done
    rm -f clip.*
}

# streamcluster_arguments: of a run that takes some seconds, or with --quick next to nothing
streamcluster_arguments() {
    [[ $quick == yes ]] && echo 3 8 8 1000 1000 100 || echo 10 20 32 4096 4096 1000
}

# run_options ENGINE: what `subutai run` takes for it, a line each
run_options() {
    local options
    IFS=, read -ra options <<<"${1#*:},"
    echo "--engine=${1%%:*}"
    [[ $1 != *:* ]] || printf -- '--%s\n' "${options[@]}"
}

# end_rows: print the table; the script's exit status
end_rows() {
    [[ $json == yes ]] || print_table <rows
    ((n_failed == 0)) || fail "$n_failed lines could not be measured"
}
