# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# What the tests of the engine ni share; sourced. Over the command's tests it has programs under the engine with
# dedicated and with inline service, and looks at the stacks of one that hangs. From meson, beside what those need:
# SUBJECTS (directory of the subjects).
. "$SOURCE_ROOT/tests/command/lib.sh"
: "${SUBJECTS:?}"
limit=120 # seconds for one program

# run CMD...: replaces the command tests' own, which kills a hang before one could look.
run() {
    bounded "$limit" "$@" >"$scratch/.out" 2>"$scratch/.err" </dev/null
    status=$?
    out=$(cat "$scratch/.out")
    err=$(tail -n 200 "$scratch/.err")
}

# under SERVICE [OPTION...] -- SUBJECT [ARGUMENT...]: a subject under the engine; leaves $status, $out, $err, and, with
# statistics, $stats: an array of one object for each process.
under() {
    local service=$1 options=()
    shift
    while [[ $1 != -- ]]; do
        options+=("$1")
        shift
    done
    rm -f stats
    run "$SUBUTAI" run --engine ni --ni-service "$service" --stats=json --stats-file stats "${options[@]}" -- \
        "$SUBJECTS/ni-$2" "${@:3}"
    stats=$(jq -cs . stats 2>&1) || stats='"no JSON"'
}

# passes TEXT: the subject ended well and without a word, and every request that went in came out.
passes() {
    check "$1" quiet_success
    check "$1: requests in = requests out" counted '.[] | .requests_in == .requests_out and .requests_in > 0'
}

quiet_success() {
    is "$status" 0 && is "$err" ""
}

# counted FILTER: it is true of every value that it gives for the statistics, and gives one at least.
counted() {
    jq -e "[$1] | length > 0 and all" <<<"$stats" >/dev/null || {
        echo "# not true: $1"
        jq -c '.[] | del(.network, .nis)' <<<"$stats" | sed 's/^/# /'
        false
    }
}

# In filters: n("lock"): how many of an operation.
# shellcheck disable=SC2034 # for the tests
n='def n(what): [.latencies[] | select(.operation | startswith(what)) | .count] | add // 0; '
