#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Waits of which the time was over (timed.c): the report names the thread that had the lock, and says of what nothing came
# to that it timed out; in records and profiles, in all forms.
. "$(dirname "$0")/../command/lib.sh"
: "${TIMED:?}"

# of OBJECT HOLDER: the pair of the main thread at that variable; HOLDER: a routine, or null
of() {
    json '.[0] as $r | [$r.objects[] | select(.symbol == "'"$1"'")] as [$o] | [$r.waits_for[] | select(.object == $o.id)] |
        length == 1 and (.[0] | .timed_out and .n == 1 and .ns > 90e6 and .waiter == 0 and
        (.holder as $h | [$r.threads[] | select(.id == $h).routine][0]) == '"$2"') and $o.timed_out.n == 1 and $o.timed_out.ns > 90e6'
}

for engine in glibc direct; do
    for calls in all waits; do
        subutai record -o t.sbt --engine $engine --record-calls $calls -- "$TIMED"
        check "$engine, $calls: each wait timed out" is "$status $out" "0 5"
        subutai report --json t.sbt
        for lock in kept_mutex kept_for_writing kept_for_reading; do
            check "$engine, $calls, $lock: the thread that had it" of $lock '"keeper"'
        done
        check "$engine, $calls: no signal came, and no thread is named" of no_signal null
        check "$engine, $calls: no post came" of no_post null
        check "$engine, $calls: what did not time out is not called so" json '.[0].waits_for | map(select(.timed_out)) | length == 5'
        subutai report t.sbt
        check "$engine, $calls: in the text" is "$(sed -nE 's/^main +(.*) (kept_[a-z_]+|no_[a-z]+) +([a-z]+(, timed out)?) .*/\2 \1 \3/p' <<<"$out" |
            tr -s ' ' | sort)" \
            "kept_for_reading keeper#1 rwlock, timed out
kept_for_writing keeper#1 rwlock, timed out
kept_mutex keeper#1 mutex, timed out
no_post timed out sem
no_signal timed out cond"
        check "$engine, $calls: the place of a wait for nothing" is "$(grep -cE '^[^ ].* timed out +no_(post|signal) ' \
            <<<"$(sed -n '/^Which place/,/^$/p' <<<"$out")")" 2
        subutai report --csv t.sbt
        check "$engine, $calls: in CSV, the last two columns" is "$(grep -cE ',"(kept|no)_[a-z_]+",.*,1,[0-9]{8,9}$' <<<"$out")" 5
    done
    subutai record -o t.sbt --engine $engine -- "$TIMED" for-ever
    subutai report --json t.sbt
    check "$engine: a wait that had not ended has the thread that had the lock" json '.[0] as $r | $r.unended[] |
        select(.kind == "mutex") | .holder as $h | $r.threads[] | select(.id == $h).routine == "keeper"'
    subutai report t.sbt
    check "$engine: in the text" matches "$out" \
        $'place +held by +since +sum *\n(.*\n)*waits#2 +mutex +kept_mutex +timed\\.c:[0-9]+ waits +keeper#1 '
done
finish
