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
