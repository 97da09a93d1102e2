#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A program that is killed: its trace has what its threads had recorded, and what they waited for.
. "$(dirname "$0")/../command/lib.sh"
: "${SUBJECT:?}" "${CHECK:?}" "${RECORDING_LIBRARY:?}" "${EARLY:?}"

possible() {
    local reason
    reason=$("$CHECK" "$@") || { echo "# ${reason//$'\n'/$'\n# '}" && false; }
}
nothing_left() {
    ! compgen -G '*.live' >.left && ! compgen -G '*/*.live' >>.left
}
# Waits that had not ended: thread, kind, object; and in which function of the program, perhaps a form of it that gcc made.
unended='.[0] as $r | [$r.unended[] | . as $u | [(($r.threads | map(select(.id == $u.thread)))[0].routine // "main"), .kind,
    (($r.objects | map(select(.id == $u.object)))[0].symbol // "-"), ($r.sites | map(select(.id == $u.site)))[0].function |
    sub("[.](isra|constprop|part)[.].*"; "")?] | join(" ")] | sort'
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

# The same of a profile. The events of locks that were taken are acquisitions too. `within`: what is counted.
counted_in_profile() { # FILE FROM TO
    subutai trace info --json "$1"
    json ".[0] | .completed and .lost == 0 and (.operations.mutex_lock | (.count + .counted) as \$n |
        \$n >= $2 and \$n <= $3)" && test ! -e "$1.live"
}
for what in "fast 1" "wide 2"; do
    n_bad=0
    for ((i = 0; i < 30; i++)); do
        rm -f t.sbt* counted
        run "$SUBUTAI" record -o t.sbt --record-calls waits -- "$SUBJECT" "${what% *}" counted $((20000 + i * 51713 % 600000))
        n=$(od -An -v -t u8 -N 256 counted | awk -v by="${what#* }" '{ n += $1 + $2 } END { print by * n }')
        counted_in_profile t.sbt "$n" $((n + 8)) && continue
        n_bad=$((n_bad + 1))
        note "${what% *}, killed $i: $n were counted, $out"
    done
    check "a profile, ${what% *}: killed 30 times, each call is there, and once" is $n_bad 0
done
rm -f t.sbt* counted
run "$SUBUTAI" record -o t.sbt --record-calls waits -- "$SUBJECT" fast counted 400000
check "the command ends as its program" is "$status" 137
subutai report --json t.sbt
check "and knows when: the threads ran until then" json '.[0] | .summary.wall_ns > 400e6 and
    (.threads | map(select(.routine == "locks_for_ever")) | length == 4 and all(.life_ns > 300e6))'
rm -f t.sbt*
run "$SUBUTAI" record -o t.sbt --record-calls waits -- "$SUBJECT" holds
subutai report --json t.sbt
check "and the holds" json '.[0].objects | map(select(.symbol == "second"))[0] |
    .acquisitions == 20 and .hold.n == 20 and .hold.ns > 38e6'
check "and the orders of locks" json '.[0].lock_order | length == 1'
rm -f t.sbt*
run "$SUBUTAI" record -o t.sbt --record-calls waits -- "$SUBJECT" cloned
child=(t.*.sbt)
check "a profile of a killed process and its killed child, made by _Fork: the parent's counts" counted_in_profile t.sbt 1030 1030
subutai report --json t.sbt
check "and its holds: not the one that the child has given back" json '.[0].objects | map(select(.symbol == "guard"))[0] |
    .acquisitions == 2 and .hold.n == 2'
check "and the child's" counted_in_profile "${child[0]}" 3000 3000
rm -f t.*
run "$SUBUTAI" record -o t.sbt --record-calls waits -- "$SUBJECT" children
child=(t.*.sbt)
check "made by fork: the parent's counts" counted_in_profile t.sbt 1007 1007
check "and the child's" counted_in_profile "${child[0]}" 5001 5002

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
check "which the text says" matches "$("$SUBUTAI" report t.sbt | tr -s ' \n' ' ')" "the program was killed, or has become another one by exec, after the last of these calls"
check "nothing is left" nothing_left

# A library's constructor synchronizes before the recorder's: then the file is made.
rm -f t.*
run env SUBUTAI_RECORD=t.sbt LD_PRELOAD="$RECORDING_LIBRARY:$EARLY" "$SUBJECT" stuck kill
check "the first call comes from a library's constructor: the rest lies beside the trace" test -f t.sbt -a -f t.sbt.live
check "and the first reader adds it" stuck t.sbt

# Through links: of the file, of the directory, and beside a link.
for link in file directory beside; do
    rm -rf t.* real
    mkdir real
    run env SUBUTAI_RECORD="$PWD/real/t.sbt" LD_PRELOAD="$RECORDING_LIBRARY" "$SUBJECT" stuck kill
    case $link in
    file) ln -s real/t.sbt t.sbt ;;
    directory) ln -s real t.dir ;;
    beside)
        ln -s real/t.sbt t.sbt
        mv real/t.sbt.live t.sbt.live
        ;;
    esac
    path=(t.sbt t.dir/t.sbt)
    check "through a link, $link: what all threads wait for" stuck "${path[$([[ $link == directory ]] && echo 1 || echo 0)]}"
    check "nothing is left" nothing_left
done
rm -rf t.* real

# Handlers that leave, on top of the recorder and of each other's wait for the end of the trace.
for calls in all waits; do
    n_bad=0
    for ((i = 0; i < 20; i++)); do
        rm -f t.sbt* counted
        run "$SUBUTAI" record -o t.sbt --record-calls $calls -- "$SUBJECT" leave counted $((5000 + i * 1017))
        n=$(od -An -v -t u8 -N 256 counted | awk '{ n += $1 + $2 } END { print n }')
        subutai trace info --json t.sbt
        json ".[0] | .whole and .lost <= 4 and (.operations.mutex_lock | .count + .counted + 8 >= $n)" && continue
        n_bad=$((n_bad + 1))
        note "left $i: $n were counted, $out"
    done
    check "all threads leave in handlers, calls: $calls: the trace is whole" is $n_bad 0
done

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
check "which the text says" matches "$("$SUBUTAI" report t.sbt | tr -s ' \n' ' ')" 'not whole: the program runs, and writes on'
check "and what belongs to it" test -f t.sbt.live
program=$(jq -s '.[0].process' <<<"$out")
# The kernel kills the program after the command has ended; and the program's memory goes after its processes do.
completed() {
    subutai trace info --json t.sbt
    jq -es '.[0].completed' <<<"$out" >/dev/null
}
kill -KILL $running
wait $running 2>/dev/null
check "it ends with the command" comes no_process "$program"
check "until it is killed" comes completed
check "and nothing is left beside it" nothing_left

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

# long_at FILE OFFSET, put_long FILE OFFSET VALUE: numbers of eight bytes.
long_at() {
    od -An -v -t u8 -j "$2" -N 8 "$1" | tr -d ' '
}
put_long() {
    local i bytes=
    for ((i = 0; i < 64; i += 8)); do
        bytes+=$(printf '\\x%02x' $(($3 >> i & 255)))
    done
    printf '%b' "$bytes" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}
# Where the header has the first record, and a record the next one and its book (trace/live_format.h).
first_at=80 next_in=$(od -An -t u2 -j 160 -N 2 kept.live) book_in=$(od -An -t u2 -j 162 -N 2 kept.live)
cp kept.sbt t.sbt && cp kept.live t.sbt.live
for ((record = $(long_at kept.live $first_at); next = $(long_at kept.live $((record + next_in))); record = next)); do
    :
done
put_long t.sbt.live $((record + next_in)) "$(long_at kept.live $first_at)"
truncate -s 2G t.sbt.live
check "the records are a ring, in a file with nothing in most of it: each is read once" stuck t.sbt
cp kept.sbt t.sbt && cp kept.live t.sbt.live
truncate -s 1T t.sbt.live
subutai report --json t.sbt
check "a file that is too large: no crash" test "$status" -le 2

# The same of what a profile has counted: its tables are large, and each place of them is read.
rm -f t.* counted
run env SUBUTAI_RECORD=t.sbt SUBUTAI_RECORD_CALLS=waits LD_PRELOAD="$RECORDING_LIBRARY" "$SUBJECT" wide counted 300000
mv t.sbt kept.sbt && mv t.sbt.live kept.live
size=$(stat -c %s kept.live)
n_bad=0
for ((at = 4096; at < size; at += size / 37)); do
    cp kept.sbt t.sbt && cp kept.live t.sbt.live
    head -c 256 /dev/urandom | dd of=t.sbt.live bs=1 seek=$at conv=notrunc status=none
    subutai trace info --json t.sbt
    [[ $status == 0 ]] && "$CHECK" t.sbt >.said && continue
    n_bad=$((n_bad + 1))
    note "damaged at byte $at: $status $err $(cat .said)"
done
check "a profile, damaged anywhere: what is left is possible" is $n_bad 0
record=$(long_at kept.live $first_at)
while book=$(long_at kept.live $((record + book_in))) && ((book == 0)); do
    record=$(long_at kept.live $((record + next_in)))
done
cp kept.sbt t.sbt && cp kept.live t.sbt.live
head -c $((184 << 18)) /dev/urandom >>t.sbt.live
put_long t.sbt.live $((book + 24)) $(((size + 63) / 64 * 64 + 18))
subutai trace info --json t.sbt
check "a table that is said to be far larger than any: it is left out" is "$status" 0
finish
