# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Subjects under a recorder that is not the machine's own (sanitized.sh, emulated.sh), two points for each: the program
# does what it does without a recorder, and its traces are possible. Sourced. Before `record` is called are set:
#   preload      what is preloaded
#   dir          where the subjects and the checks are
#   wrapper      an array: what runs them; empty: nothing
#   variables    an array: of all subjects, VARIABLE=VALUE
#   seconds      how long a subject may take
#   is_clean     a function: has nothing been reported in the file `said`?
. "$(dirname "${BASH_SOURCE[0]}")/../lib/tap.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/session.sh"
: "${TMPDIR:=/var/tmp}" # traces are large

# checked STATUS TEXT: a point, and what was said if it failed
checked() {
    point "$1" "$2"
    [[ $1 == 0 ]] || head -40 said | note
}

# record STATUS PROGRAM CHECK WHAT [VARIABLE=VALUE...]: the subject does WHAT and ends with that status.
# shellcheck disable=SC2154 # set by the test
record() {
    local wanted=$1 program=$2 check=$3 what=$4 status bad=0 trace
    shift 4
    rm -f ./*.sbt
    timeout "$(stretched "$seconds")" env "$@" "${variables[@]}" SUBUTAI_RECORD="$scratch/t.sbt" LD_PRELOAD="$preload" "${wrapper[@]}" \
        "$dir/$program" "$what" >out 2>said
    status=$?
    [[ $status == "$wanted" ]] && is_clean
    checked $? "$program $what${*:+, $*}: status $status"
    [[ -s t.sbt ]] || bad=1
    for trace in ./*.sbt; do
        "${wrapper[@]}" "$dir/$check" "$trace" >said 2>&1 || bad=1
    done
    checked $bad "its traces are possible"
}
