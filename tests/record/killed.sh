#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A program that is killed: its trace has what its threads had recorded, and what they waited for.
. "$(dirname "$0")/../command/lib.sh"
: "${SUBJECT:?}" "${CHECK:?}" "${RECORDING_LIBRARY:?}"

possible() {
    local reason
    reason=$("$CHECK" "$@") || { echo "# ${reason//$'\n'/$'\n# '}" && false; }
}
nothing_left() {
    ! compgen -G '*.live' >.left && ! compgen -G '*/*.live' >>.left
}
# Waits that had not ended: thread, kind, object; and in which function of the program.
unended='.[0] as $r | [$r.unended[] | . as $u | [(($r.threads | map(select(.id == $u.thread)))[0].routine // "main"), .kind,
    (($r.objects | map(select(.id == $u.object)))[0].symbol // "-"), ($r.sites | map(select(.id == $u.site)))[0].function] |
    join(" ")] | sort'
all_stuck='["asks sem never_posted asks", "backwards mutex first backwards", "forwards mutex second forwards",
    "main join - stuck", "waits cond never waits"]'
stuck() { # FILE
    subutai report --json "$1"
    json "$unended | . - [\"ends outside - ends\"] == $all_stuck"
}

for how in "kill 137" "interrupt 130" "abort 134" "segv 139"; do
    rm -rf out ./*.sbt*
    run setsid -w "$SUBUTAI" profile -o out -- "$SUBJECT" stuck "${how% *}"
    check "profile, ${how% *}: the status" is "$status" "${how#* }"
    check "the report has what all threads wait for" matches "$err" $'Waits that had not ended.*\nbackwards#[0-9]+ +mutex +first .*\nwaits#[0-9]+ +cond +never '
    check "all of it" stuck out/killed-subject.sbt
    check "until the end" json '.[0] as $r | all($r.unended[]; .thread as $thread |
        .ns > 50e6 and .since_ns + .ns == ($r.threads[] | select(.id == $thread).end_ns))'
    check "the trace is possible" possible out/killed-subject.sbt
    check "and nothing is left beside it" nothing_left
    subutai record -o t.sbt -- setsid -w "$SUBJECT" stuck "${how% *}"
    mv t.*.sbt t.sbt 2>/dev/null
    rename=(t.*.sbt.live)
    [[ ! -e ${rename[0]} ]] || mv "${rename[0]}" t.sbt.live
    check "record, ${how% *}: what all threads wait for" stuck t.sbt
    check "the trace says that it is not whole, and complete" json '.[0].trace | .completed and (.whole | not)'
    subutai predict --cores 2 --mesh 2x1 --json t.sbt
    check "it is predicted" json '.[0].runs | length == 2'
    check "and nothing is left beside it" nothing_left
done

# What is counted in the other file happened. Of each thread, an event may have been halfway, and one not yet counted.
n_bad=0
for ((i = 0; i < 50; i++)); do
    rm -f t.sbt* counted
    run "$SUBUTAI" record -o t.sbt -- "$SUBJECT" fast counted $((1000 + i * 517 % 25000))
    n=$(od -An -v -t u8 -N 256 counted | awk '{ n += $1 + $2 } END { print n }')
    subutai trace info --json t.sbt
    json ".[0] | .completed and all(.operations | .mutex_lock, .mutex_unlock; (.count // 0) - $n | fabs <= 4) and
        .operations.thread_end.count <= 5" && possible t.sbt && nothing_left && continue
    n_bad=$((n_bad + 1))
    note "killed $i: $n were counted, $out"
done
check "killed 50 times at full speed: all is there but what was halfway, and once" is $n_bad 0

rm -f t.*
run "$SUBUTAI" record -o t.sbt -- "$SUBJECT" children
child=(t.*.sbt)
check "a killed process and its killed child: the parent's trace has its own calls" possible t.sbt mutex_lock=1007 mutex_unlock=1007
check "the child's has its own" possible "${child[0]}" mutex_lock=5001 mutex_unlock=5000
subutai report --json "${child[0]}"
check "and what it waited for" json "$unended | index(\"main mutex second children\") != null"
check "nothing is left" nothing_left

rm -f t.*
run env SUBUTAI_RECORD=t.sbt LD_PRELOAD="$RECORDING_LIBRARY" "$SUBJECT" stuck kill
check "without the command: the rest lies beside the trace" test -f t.sbt -a -f t.sbt.live
check "and the first reader adds it" stuck t.sbt
check "which the text says" matches "$("$SUBUTAI" report t.sbt)" "the program was killed, after the last of these calls"
check "nothing is left" nothing_left

# A reader beside the program.
rm -f t.*
"$SUBUTAI" record -o t.sbt -- sh -c 'exec "$0" many 3 <&0' "$SUBJECT" >/dev/null 2>&1
check "a program that ends by itself leaves nothing" nothing_left
"$SUBUTAI" record -o t.sbt -- "$SUBJECT" fast counted 60000000 >/dev/null 2>&1 &
running=$!
started+=("$running")
comes test -s t.sbt
subutai trace info --json t.sbt
check "a program that runs: its trace is left alone" json '.[0].completed | not'
check "and what belongs to it" test -f t.sbt.live
kill -KILL $running
wait $running 2>/dev/null
subutai trace info --json t.sbt
check "until it is killed" json '.[0].completed'

rm -f t.*
run bash -c 'ulimit -f 100 && exec "$@"' - "$SUBUTAI" record -o t.sbt -- "$SUBJECT" many 200
check "no room for what is not written: the program ends as it should" is "$status $out $err" "0 done "
check "with its trace" possible t.sbt thread_create=200 thread_join=200
check "nothing is left" nothing_left

# Not believed: what another program, or a stranger, has put there.
run env SUBUTAI_RECORD=t.sbt LD_PRELOAD="$RECORDING_LIBRARY" "$SUBJECT" stuck kill
for trace in t.*.sbt.live; do mv "$trace" kept.live && mv "${trace%.live}" kept.sbt; done
for at in 8 12 24 64 80 5000 40000 100000 160000; do
    cp kept.sbt t.sbt && cp kept.live t.sbt.live
    head -c 64 /dev/zero | tr '\0' '\377' | dd of=t.sbt.live bs=1 seek=$at conv=notrunc status=none
    subutai report --json t.sbt
    check "damaged at byte $at: no crash" test "$status" -le 2
done
finish
