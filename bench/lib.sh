# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # variables of, and for, the scripts that source it
# What the bench scripts share; sourced. Medians, ratios, tables and what knows the form of results are in stats.py.

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

# stats SUBCOMMAND ARG...: see bench/stats.py
stats() {
    python3 "$bench_root/bench/stats.py" "$@"
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

# A server that the script started, perhaps in a subshell, has its process id in $scratch/server.pid.
end_of_script() {
    [[ -z ${control_group-} ]] || rmdir "$control_group"
    [[ ! -s $scratch/server.pid ]] || kill -KILL "$(cat "$scratch/server.pid")" 2>/dev/null
    rm -rf "$scratch"
}

# one_cpu_time: sets the array `limited`, words before a command that gets one CPU's time: of all CPUs in a control group
# of its own, where such groups can be made, otherwise of one CPU.
one_cpu_time() {
    local top
    limited=(taskset -c "$(taskset -cp $$ | grep -o '[0-9]*$')")
    for top in /sys/fs/cgroup /sys/fs/cgroup/cpu /sys/fs/cgroup/cpu,cpuacct; do
        control_group=$top/subutai-$bench_name.$$
        if [[ -e $top/cgroup.procs ]] && mkdir "$control_group" 2>/dev/null; then
            if limit_to_one_cpu 2>/dev/null; then
                # shellcheck disable=SC2016 # the inner shell's
                limited=(sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$control_group")
                return
            fi
            rmdir "$control_group"
        fi
        control_group=
    done
}

# limit_to_one_cpu: the control group gets no more, and a process may join it.
limit_to_one_cpu() {
    if [[ -e $control_group/cpu.max ]]; then
        echo 100000 100000 >"$control_group/cpu.max" || return
    else
        echo 100000 >"$control_group/cpu.cfs_period_us" && echo 100000 >"$control_group/cpu.cfs_quota_us" || return
    fi
    # shellcheck disable=SC2016 # the inner shell's
    sh -c 'echo $$ >"$0/cgroup.procs"' "$control_group"
}

# print_table: lines of tab-separated cells as aligned columns; the first line is the heading.
print_table() {
    stats table
}

# compare_to FILE ARG...: `subutai compare --json ARG...` into FILE. A refusal ends the script with it; outputs that
# differ (status 1) are for the caller to judge from FILE.
compare_to() {
    local file=$1 status=0 warmup=()
    shift
    [[ ${quick-no} != yes ]] || warmup=(--warmup 0)
    "$subutai" compare --json "${warmup[@]}" "$@" >"$file" || status=$?
    ((status != 2)) || exit 2
    if ((status > 1)) || ! stats outcome "$file" no >/dev/null; then
        fail "subutai compare ended with status $status"
    fi
}

# outcome_of FILE (of compare_to, one point) COMPARED: "identical", "not compared", or what went wrong. COMPARED is no
# where a program's own output depends on timing: then only the exit status counts.
outcome_of() {
    stats outcome "$1" "$2"
}

# ---- tables of bench/numbers and bench/emulation: what was measured, and bounds for it ----
#
# Both keep them in the file `rows` of their scratch directory. They set $json, and for what measures several engines
# $runs, $seconds, $subutai, $base (an engine) and the array judged (engines, each as `subutai compare` takes it, options
# by their full names), and define engine_row NAME THREADS ENGINE BOUNDS MEDIAN MIN MAX, which makes a row of the
# outcome, and engine_failed NAME THREADS ENGINE BOUNDS REASON.

n_failed=0 row_columns=() cells=() limited=()

# begin_rows COLUMN...: the columns that come before bounds, median, min, max and within
begin_rows() {
    row_columns=("$@")
    printf '%s\t' "$@" >rows
    printf 'bounds\tmedian\tmin\tmax\twithin\n' >>rows
}

# row CELL... BOUNDS MEDIAN MIN MAX: BOUNDS is a lower bound, with "<=" an upper one, LOW..HIGH both; "-" for none.
row() {
    local columns options=()
    columns=$(IFS=, && echo "${row_columns[*]}")
    [[ $json == no ]] || options=(--json)
    stats row --columns "$columns" "${options[@]}" -- "$@"
}

# failed CELL... BOUNDS REASON
failed() {
    n_failed=$((n_failed + 1))
    say "$bench_name: ${*:1:${#row_columns[@]}}: ${*: -1}"
    row "${@:1:$#-1}" - - -
}

# left_out CELL... BOUNDS REASON
left_out() {
    say "${*:1:${#row_columns[@]}}: left out, ${*: -1}"
    row "${@:1:$#-1}" - - -
}

# for_all HOW NAME THREADS BOUNDS REASON: HOW is failed or left_out
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

# micro_rows NAME FIELD "THREADS:BOUNDS ..." KIND ARG...: rows for each pair; FIELD is ratio or cpu_ratio. The array
# `limited` has words before the command.
micro_rows() {
    local name=$1 field=$2 pairs=$3 kind=$4 pair threads bounds engine median min max
    shift 4
    for pair in $pairs; do
        threads=${pair%:*} bounds=${pair#*:}
        if ! "${limited[@]}" "$subutai" bench "$kind" --threads "$threads" --engines "$(joined_engines)" --runs "$runs" \
            --seconds "$seconds" --json "$@" >bench.json; then
            for_all failed "$name" "$threads" "$bounds" "subutai bench $kind failed"
            continue
        fi
        for engine in "${judged[@]}"; do
            IFS=$'\t' read -r median min max < <(stats bench bench.json "$engine" "$field")
            engine_cells "$name" "$threads" "$engine"
            row "${cells[@]}" "$bounds" "$median" "$min" "$max"
        done
    done
}

# compare_rows NAME THREADS BOUNDS ARG...: ARG... are the rest of a compare command line.
compare_rows() {
    local name=$1 threads=$2 bounds=$3 outcome i median min max
    shift 3
    if ! (compare_to result.json --engines "$(joined_engines)" --runs "$runs" --timeout 300 "$@"); then
        for_all failed "$name" "$threads" "$bounds" "subutai compare failed"
        return
    fi
    outcome=$(outcome_of result.json yes)
    if [[ $outcome != identical ]]; then
        for_all failed "$name" "$threads" "$bounds" "output: $outcome"
        return
    fi
    for i in "${!judged[@]}"; do
        IFS=$'\t' read -r median min max < <(stats ratio result.json $((i + 1)) ratio)
        engine_cells "$name" "$threads" "${judged[i]}"
        row "${cells[@]}" "$bounds" "$median" "$min" "$max"
    done
}

# program_rows BOUNDS FRAMES THREADS...: x264 and pbzip2 on a generated clip
program_rows() {
    local bounds=$1 n program
    "$clip" 640 360 "$2" >clip.y4m
    shift 2
    for n in "$@"; do
        for program in x264 pbzip2; do
            if ! command -v $program >/dev/null; then
                for_all left_out $program "$n" "$bounds" "not installed"
            elif [[ $program == x264 ]]; then
                compare_rows x264 "$n" "$bounds" --output clip.264 -- \
                    x264 --quiet --no-progress --preset slow --threads "$n" --output clip.264 clip.y4m
            else
                compare_rows pbzip2 "$n" "$bounds" --output clip.y4m.bz2 -- pbzip2 -k -q -f "-p$n" clip.y4m
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
    if [[ ${markdown-no} == yes ]]; then
        stats markdown <rows
    elif [[ $json == no ]]; then
        print_table <rows
    fi
    ((n_failed == 0)) || fail "$n_failed lines could not be measured"
}
