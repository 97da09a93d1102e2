#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The report of programs with known diseases and of known times, in all its forms; and what it says of bad files.
. "$(dirname "$0")/../command/lib.sh"
: "${RECORDING_LIBRARY:?}" "${DISEASE:?}" "${MANGLED:?}" "${DEMANGLES:?}" "${WRITE_TRACE:?}" "${WITH_MISSES:?}" "${HANDED_TRACE:?}"

# ill FILE DISEASE [OPTION...]: the program, recorded
ill() {
    local file=$1 name=$2
    shift 2
    subutai record -o "$file" "$@" -- "$DISEASE" "$name"
    is "$status" 0 || { echo "Bail out! cannot record $name: $err" && exit 99; }
    own=$out
}

# first CAUSE SYMBOL [BUSY]: of the report in $out, the first advice has this cause, and is about this variable. Where others
# have the processors for more than half of the critical path the report says that before: with BUSY it may.
first() {
    local got
    got=$(jq -r --arg busy "${3:-}" '($busy != "" and .advice[0].cause == "off-cpu" and .advice[0].figure.value > 0.5) as $busy
        | .advice[if $busy then 1 else 0 end] as $a | .objects[] | select(.id == $a.object) | "\($a.cause) \(.symbol)"' <<<"$out")
    is "$got" "$1 $2"
}

# settled CONDITION FILE DISEASE [OPTION...]: records and reports the program until CONDITION (words of the shell) holds,
# twenty times at most. The runs are short. If the machine stalls, or others take it for a tenth of a second, another
# cause is the largest in that run, and the report rightly says so.
settled() {
    local condition=$1
    shift
    for _ in {1..20}; do
        ill "$@"
        # shellcheck disable=SC2086 # several words
        subutai report --json $report_options "$1"
        ! eval "$condition" >/dev/null || break
    done
}
report_options=

# JSON of which each member stands where docs/report.md says
whole_document() {
    json '.[0] | .format == "subutai-report" and .version == 1 and (keys - ["format", "version", "trace", "empty", "summary",
        "advice", "threads", "objects", "groups", "sites", "waits_for", "site_waits", "unended", "chains", "critical_path", "convoys",
        "lock_order", "barriers", "tasks", "limits"] == []) and (keys | length == 20)' &&
        json '.[0] as $r | ([$r.objects[].id] | unique) as $objects | ([$r.sites[].id] | unique) as $sites |
            ([$r.advice[].objects[], ($r.waits_for, $r.site_waits, $r.convoys, $r.barriers)[].object,
              $r.critical_path.objects[].object, $r.chains[].links[].object] | map(select(. != null)) | unique) - $objects == [] and
            ([$r.objects[].made, $r.site_waits[].waiter_site, $r.site_waits[].holder_site, $r.threads[].created_at,
              $r.objects[].wait_sites[].site] | map(select(. != null)) | unique) - $sites == []' &&
        json '.[0] | (.critical_path | .work_ns + .off_cpu_ns + .calls_ns + .held_ns + .wakeup_ns + .waiting_ns ==
            .ns) and ([.threads[] | (200 * .events) as $recording | (.life_ns - .cpu_ns - .off_cpu_ns - .calls_ns - ([.waiting | to_entries[] |
            select(.key != "spin").value.ns] | add)) | fabs - $recording] |
            max) < 0.02 * .summary.wall_ns + 200000'
}

while read -r name cause symbol options; do
    # shellcheck disable=SC2086 # several words
    settled "first $cause $symbol" "$name.sbt" "$name" $options
    check "$name: the first advice is about $symbol: $cause" first "$cause" "$symbol" busy
    check "$name: the document is whole" whole_document
    cp "$scratch/.out" "$name.json"
done <<'EOF2'
hot-lock hot-lock hot --engine glibc
hot-semaphore hot-lock gate --engine glibc
convoy convoy convoyed --engine ni
lock-over-io lock-over-io journal --engine glibc
inverted-order lock-order left --engine glibc
false-spin false-spin polled --engine glibc
barrier-imbalance barrier-imbalance meeting --engine glibc
slow-release barrier-release meeting --engine glibc
idle-pool idle work_there --engine glibc
broadcast-storm broadcast-storm work_there --engine glibc
futile-wakeups futile-wakeups gathered --engine glibc
interpreter interpreter-lock _PyRuntime+0x8 --engine glibc
EOF2

out=$(cat interpreter.json)
check "the advice about an interpreter's lock, word by word" json '.[0].advice[0] | .gain.basis == "none" and .figure.name == "waiting_share" and
    (.text | capture("^Threads wait for CPython.s interpreter lock \\(GIL\\) for (?<share>[0-9.]+) % of their time, at GIL \\(_PyRuntime\\+0x8\\): Python code of one thread runs at a time, so more threads do not make it faster\\. Processes \\(multiprocessing\\) do, and work in calls that give the lock up, as numpy.s do; and a CPython that is built without it\\.$").share | tonumber) as $said |
    100 * .figure.value - $said | fabs < 0.051'
check "an interpreter's lock is a lock: waits for it are contention, and not idle" json '.[0] | .summary.idle.share < 0.05 and
    (.advice[0].object as $o | .objects[] | select(.id == $o) | .name == "GIL (_PyRuntime+0x8)" and .type == "cond" and .as_lock) and
    ([.objects[] | select(.symbol == "_PyRuntime+0x38") | .type, .name] == ["mutex", "GIL (_PyRuntime+0x38)"])'
if python=$(PATH=/usr/bin command -v python3) && "$python" -c 'import sysconfig, sys; sys.exit(sys.version_info < (3, 7) or
    sysconfig.get_config_var("Py_GIL_DISABLED") == 1)'; then
    cat >threads.py <<'END'
import threading
threads = [threading.Thread(target=lambda: sum(i & 3 for i in range(1000000))) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
END
    run "$SUBUTAI" record --engine glibc -o python.sbt -- "$python" threads.py
    subutai report --json python.sbt
    check "CPython's is found by its name" json '.[0] | [.advice[] | select(.cause == "interpreter-lock") | .objects[0]] as [$o] |
        .objects[] | select(.id == $o).name | startswith("GIL (_PyRuntime+0x")'
else
    skip "CPython's lock" "no Python 3.7 or later with one in /usr/bin"
fi

many='.[0] | .advice[0].cause == "many-locks" and .groups[.advice[0].group].objects > 3900 and
    .groups[.advice[0].group].acquisitions == 200000'
settled 'json "$many"' many-locks.sbt many-locks --engine glibc
check "many-locks: the first advice is about all that were made in one place" json "$many"

# Many objects that were made in one place are one row of the text, but for one that is waited for more than all others.
subutai report many-locks.sbt
check "text: many locks of one place are one row" matches "$out" \
    $'\nObjects\nobject .*\n(3[0-9]{3}|4000) mutexes made at disease\.c:[0-9]+ +200000 '
check "text: and none of them has another" is "$(sed -n '/^Objects/,/^$/p' <<<"$out" | grep -c '^mutex#')" 0
for calls in all waits; do
    settled 'first hot-lock crowd+0x118' "one-$calls.sbt" hot-one --engine glibc --record-calls $calls
    subutai report "one-$calls.sbt"
    check "text: the hot lock of a hundred has its own row, $calls" matches "$out" $'\nObjects\n.*\ncrowd\+0x118 +[0-9]+ +[1-9]'
    check "text: the others have one, $calls" matches "$out" $'\n99 mutexes made at disease\.c:[0-9]+ +594 '
    check "text: and so have those that lived for a moment, $calls" matches "$out" $'\n300 mutexes made at disease\.c:[0-9]+ +300 '
done

# A stall is no imbalance; tests/report/event_test.c has the rule. A machine on which each generation stalls shows none.
settled 'json ".[0].advice | any(.cause == \"barrier-stall\")"' stall.sbt barrier-stall --engine glibc
if json '.[0].advice | any(.cause == "barrier-stall")' >/dev/null; then
    check "a thread that stalled once: the advice says in how many generations, and what to do" json '.[0].advice[] |
        select(.cause == "barrier-stall") | .figure.value >= 1 and .figure.value <= 4 and .gain.basis == "none" and
        (.text | test("^In [1-4] of 40 generations of meeting .* off the processor .*quiet machine\\.$"))'
else
    skip "a thread that stalled once" "a busy machine stalls each generation"
fi

# Too many threads: the lock that they wait for comes first. A machine that gives them less than a processor shows none.
crowd='.[0].advice[] | select(.cause == "too-many-threads")'
settled 'json "$crowd"' too-many-threads.sbt too-many-threads --engine glibc
if json "$crowd" >/dev/null; then
    check "too many threads: the advice says how many to try, more than run at a time" json "$crowd"' |
        .figure.value >= 3 and .gain.basis == "none" and
        (.text | capture("^17 threads keep (?<busy>[0-9.]+) CPUs busy.* Try fewer, (?<few>[0-9]+) for a start") |
        (.few | tonumber) > 2 * (.busy | tonumber) and (.few | tonumber) < 17)'
else
    skip "too many threads" "a busy machine has less than a processor for them"
fi

# A futex call of the program's own is not recorded, so the report does not say that it is none.
for name in sleeps own-wait; do
    ill "off-$name.sbt" "$name" --engine glibc
    subutai report --json "off-$name.sbt"
    is_known=$([ "$name" = sleeps ] && echo true || echo false)
    check "off the processor: $name: is it known not to wait for locks? $is_known" json '.[0].advice[] |
        select(.cause == "off-cpu").text | test("Locks.* are not what it waits for") == '"$is_known"' and
        test("in no call that is recorded") != '"$is_known"
done
ill off-profile.sbt sleeps --engine glibc --record-calls waits
subutai report --json off-profile.sbt
check "off the processor, in a profile: a record would say more" json '.[0].advice[] | select(.cause == "off-cpu").text |
    test("A profile does not have .*: subutai record has calls") and (test("are not what it waits for") | not)'

out=$(cat idle-pool.json)
# A thread that loses its core with the lock held makes the others wait for the lock.
pool='.[0] | .summary.contention.ns < 0.2 * .summary.idle.ns and
    .summary.idle.share > 0.4 and ([.advice[0].cause, .advice[1].cause] - ["idle", "serial", "off-cpu", null] == [])'
json "$pool" >/dev/null || settled 'json "$pool"' idle-pool.sbt idle-pool --engine glibc
check "an idle pool is no contention" json "$pool"
out=$(cat inverted-order.json)
check "inverted order: both orders with their sites" json '.[0] as $r | $r.lock_order | length == 1 and
    (.[0].orders | length == 2 and (map(.taken_site as $s | $r.sites[] | select(.id == $s) | .function) | sort ==
    ["left_thread", "right_thread"]))'
# The thread that is last has 30 ms to do, the others 1 ms: of these one may be without a core for longer.
meetings='.[0].barriers[0] | .count == 4 and .generations == 30 and .imbalance.n == 30 and ([.threads[].last] | add == 30)'
settled "json '$meetings and (.[0].barriers[0].threads | map(.last) | max >= 27)'" meetings.sbt barrier-far-imbalance --engine glibc
check "barrier: 30 generations of 4 threads" json "$meetings"
check "one of which is always last" json '.[0].barriers[0].threads | map(.last) | max >= 27'
out=$(cat hot-lock.json)
check "threads are named by their routines" json '.[0] | [.threads[] | select(.routine == "hot_thread") | .name] | length == 4 and
    (map(startswith("hot_thread#")) | all)'

# ---- profiles, in which calls that did not wait are only counted ----

while read -r name cause symbol; do
    settled "first $cause $symbol" "$name.profile.sbt" "$name" --engine glibc --record-calls waits
    check "$name, profile: the first advice is about $symbol: $cause" first "$cause" "$symbol" busy
    check "$name, profile: the path is whole" json '.[0] | .trace.profile and (.critical_path | .work_ns + .off_cpu_ns +
        .calls_ns + .held_ns + .wakeup_ns + .waiting_ns == .ns)'
done <<'EOF2'
hot-lock hot-lock hot
hot-semaphore hot-lock gate
lock-over-io lock-over-io journal
inverted-order lock-order left
false-spin false-spin polled
barrier-imbalance barrier-imbalance meeting
slow-release barrier-release meeting
idle-pool idle work_there
broadcast-storm broadcast-storm work_there
futile-wakeups futile-wakeups gathered
EOF2
subutai report --json hot-lock.profile.sbt
check "profile: as many acquisitions as there were" json '.[0].objects[] | select(.symbol == "hot") | .acquisitions == 400'

# ---- known times, against the program's own clock ----

# The program reads its clock outside of the calls that are recorded: a thread that is off its core between the two makes
# the program's time longer, and none shorter. Such a run is made again.
known() {
    jq -e --argjson own "$own" '
        def near($a; $b): ($a - $b | fabs) < 0.05 * $b;
        (.objects[] | select(.symbol == "known")) as $o |
        near($o.hold.ns; $own.held_ns) and near($o.wait.ns; $own.waited_ns) and near($o.wait.mean_ns; $own.waited_ns / 5) and
        near(.waits_for | map(select(.object == $o.id).ns) | add; $own.waited_ns) and
        $o.contended == 5 and $o.hold.n == 10' <<<"$out" >/dev/null
}
settled known known.sbt known-times --engine glibc
check "holds and waits are those that the program measured, to 5 %" known

# ---- forms ----

# Its lock is held for so large a share that a command delegates it, unless its owner lacks a core.
settled 'json ".[0].advice[0].command | contains(\",delegate=hot -- \")"' hot-lock.sbt hot-lock --engine glibc
subutai report hot-lock.sbt
check "text: exit 0, nothing on stderr" is "$status $err" "0 "
check "text: at most 100 columns" is "$(awk 'length($0) > 100 && !/ try: /' <<<"$out" | wc -l)" 0
check "text: the advice comes before the tables" matches "$out" $'\nAdvice\n 1\. \[hot-lock\] hot .*\nObjects\n'
run env -i "$SUBUTAI" report hot-lock.sbt
check "text needs no Python and no environment" matches "$status $out" '^0 .*Advice'
# by_signal: the advice says what it cannot see. A busy machine may give the threads too little time for that.
by_signal() {
    matches "$(tr -s ' \n' ' ' <<<"$out")" 'the thread, mostly main, is off the processor.* the others, which work for .*signals and pipes'
}
for calls in waits all; do
    for _ in {1..20}; do
        ill signal.sbt by-signal --engine glibc --record-calls $calls
        subutai report signal.sbt
        ! by_signal || break
    done
    check "a thread that waits for others by a signal, $calls: the report does not say that it waits for none" by_signal
done

subutai record -o asleep.sbt --engine glibc --record-calls waits -- "$DISEASE" killed-asleep
subutai report asleep.sbt
subutai report --json asleep.sbt
check "killed while it sleeps: the report does not say that the thread computed" json '.[0].summary |
    .cpu_ns < 0.3 * .off_cpu_ns and .off_cpu_ns > 150e6 and .unknown_ns == 0'
subutai report asleep.sbt
check "and does not advise to share out its work" matches "$(grep -c '\[serial\]' <<<"$out")" '^0$'

# A machine where others compute: holders lose their processors, and woken threads wait for one. That is no work under the lock.
settled 'first hot-lock hot' stalled.sbt hot-stalled --engine glibc
subutai report stalled.sbt
check "a lock of which few holders did not run: it is said" matches "$(tr -s ' \n' ' ' <<<"$out")" \
    '\[hot-lock\] hot .* the holder did not run, in few of the holds.*quiet machine'
"$HANDED_TRACE" handed.sbt
subutai report handed.sbt
check "a lock that is handed over for longer than it is held: it is said" matches "$(tr -s ' \n' ' ' <<<"$out")" \
    '\[hot-lock\] mutex#0 .* Most of its part of the path is no hold, but the time until a woken thread runs\..*quiet machine'
# Of the processor time all is there, and each thread that was in no call has its part, also one that slept.
subutai record -o computing.sbt --engine glibc --record-calls waits -- "$DISEASE" killed-computing
subutai report --json computing.sbt
check "killed while it computes: so it was" json '.[0] | .summary.cpu_ns > 195e6 and .summary.cpu_ns < 240e6 and
    .summary.unknown_ns == 0 and (.advice | all(.cause != "serial"))'
for how in record profile; do
    rm -rf dozing*
    case $how in
    record) subutai record -o dozing.sbt --engine glibc --record-calls waits -- "$DISEASE" killed-dozing ;;
    profile) subutai profile -o dozing -- "$DISEASE" killed-dozing && mv dozing/disease.sbt dozing.sbt ;;
    esac
    subutai report --json dozing.sbt
    check "killed while two threads sleep, $how: none has computed" json '.[0].summary | .cpu_ns < 100e6 and
        .off_cpu_ns > 300e6 and .unknown_ns == 0'
done
rm -rf dozing*
subutai record -o dozing.sbt --engine glibc --record-calls waits -- "$DISEASE" killed-after-exec
subutai report --json dozing.*.sbt
check "killed behind an exec: what was computed before that is not its threads'" json '.[0].summary | .cpu_ns < 100e6 and
    .off_cpu_ns > 300e6 and .unknown_ns == 0'
rm -rf dozing*
# Without the command that saw its end the processor time is not known: then it is neither work nor sleep.
rm -f dozing.sbt
run env SUBUTAI_RECORD=dozing.sbt SUBUTAI_RECORD_CALLS=waits LD_PRELOAD="$RECORDING_LIBRARY" "$DISEASE" killed-dozing
subutai report --json dozing.sbt
check "killed, and its command too: what is not known is called so" json '.[0] | .summary.unknown_ns > 150e6 and
    .summary.cpu_ns < 100e6 and (.summary.unknown_ns == ([.threads[].unknown_ns] | add)) and
    (.critical_path | .work_ns + .off_cpu_ns + .calls_ns + .held_ns + .wakeup_ns + .waiting_ns + .unknown_ns == .ns)'
subutai report dozing.sbt
check "and in the text" matches "$out" 'CPU [0-9.]+ [mu]s and up to [0-9.]+ m?s more, .*not known +[0-9]'

subutai record -o joins.sbt --engine glibc -- "$DISEASE" alone-joined
subutai report joins.sbt
check "text: no table without a row" is "$(grep -c 'waited for which' <<<"$out")" 0
subutai record -o together.sbt --engine glibc -- "$DISEASE" alone-together
subutai report together.sbt
check "text: threads of which none waited: loops on own words are not seen" matches "$(tr "\n" " " <<<"$out")" \
    "But for threads. ends, no thread waited for another one in a call that is recorded\\. A loop on the program.s own words"
subutai report --text hot-lock.sbt idle-pool.sbt
check "two files: a page each, and a table" matches "$out" \
    $'Advice.*----.*Advice.*\nfile .*\nhot-lock\.sbt .* hot-lock hot\nidle-pool\.sbt .* (idle work_there|off-cpu *)$'
subutai report --json hot-lock.sbt idle-pool.sbt
check "two files: two documents" json 'length == 2 and (.[1].advice | any(.cause == "idle"))'
subutai report --csv hot-lock.sbt idle-pool.sbt
check "CSV: each row has as many cells as the heading" is \
    "$(sed 's/"[^"]*"//g; s/[^,]//g' <<<"$out" | sort -u | wc -l)" 1
check "CSV: the objects of both" matches "$out" $'\n"hot-lock\.sbt",[0-9]+,mutex,"hot".*\n"idle-pool\.sbt",'
subutai report --folded - broadcast-storm.sbt
check "folded: frames, a blank, nanoseconds" is "$(grep -vcE '^[^;]+(;[^;]+)+ [0-9]+$' <<<"$out")" 0
folded=$(awk '{ sum += $NF } END { printf "%d", sum }' <<<"$out")
out=$(cat broadcast-storm.json)
check "folded: all waits" json ".[0].summary | ([.waiting[].ns] | add) as \$waits | $folded > 0.8 * \$waits and
    $folded < 1.2 * \$waits + .calls_ns"
subutai report --folded waits.folded broadcast-storm.sbt
check "folded: into a file, and nothing else" is "$status $out $(wc -l <waits.folded | grep -c '^0')" "0  0"
subutai report --json --predict slow-release.sbt
check "--predict: what waiting by switching would bring, simulated" json '.[0].advice[] | select(.cause == "barrier-release") |
    .gain.basis == "simulated" and .gain.share > 0.1 and .gain.share < 1'
# The trace changed as the advice says: the lock split on two CPUs or more, sleeps behind the section, and so on.
report_options=--predict
while read -r name cause least most; do
    gain=".[0].advice[] | select(.cause == \"$cause\").gain |
        .basis == \"simulated\" and .not_simulated == null and .ratio >= $least and .ratio <= $most"
    settled 'json "$gain"' "again-$name.sbt" "$name" --engine glibc
    check "--predict: $name: simulated, $least to $most times as fast" json "$gain"
    check "--predict: $name: nothing is replayed otherwise than the changed trace has it" is "$err" ""
done <<'EOF2'
hot-lock hot-lock 1.3 4.5
lock-over-io lock-over-io 2 5
false-spin false-spin 1.05 3.1
many-locks many-locks 1.05 11
barrier-imbalance barrier-imbalance 1.8 2.6
broadcast-storm broadcast-storm 1.02 4
futile-wakeups futile-wakeups 1.02 4
EOF2
# Whether trylocks are taken for waits depends on how long the machine took between two (sim/polling.h).
subutai predict --machine host --sync glibc --json again-false-spin.sbt
polls=$(jq '.runs[0].waits_by_calling | .trylocks + .looks > 0' <<<"$out")
check "predict --json: waits by trylock are in its members, and in no line" matches "$polls$err" '^(true|false)$'
subutai predict --machine host --sync glibc again-false-spin.sbt
check "predict: a line tells of them, if there are any" is "$(grep -q 'waits by calling trylock' <<<"$err" && echo true || echo false)" "$polls"
while read -r name cause; do
    subutai report --json --predict "$name.sbt"
    check "--predict: $name: what no change of a trace can say is called so" json '.[0].advice[] |
        select(.cause == "'"$cause"'") | .gain.not_simulated != null and .gain.basis != "simulated"'
done <<'EOF2'
idle-pool idle
EOF2
subutai report --predict slow-release.profile.sbt
check "--predict: of a profile a line says that it cannot" matches "$status $err" '^0 subutai: report: --predict: .* is a profile'

# ---- measured ----

# measured CONDITION: of the first advice's member, as $m
measured() {
    json ".[0].advice[0] | .measured as \$m | ($1)"
}
subutai report --json --try slow-release.sbt
check "--try: runs the recorded command, and says what it measured" measured '.command | endswith(" slow-release")'
check "--try: each engine's ratio lies between its least and its greatest" measured '$m.runs == 5 and $m.identical and
    $m.base_ns > 0 and ($m.engines | map(.engine) == ["direct", "direct:wait=switch"]) and
    ($m.engines | map(.ns > 0 and .ratio_min <= .ratio and .ratio <= .ratio_max) | all)'
check "--try: the ratio beside it is the gain's" json '.[0] as $r | $r.advice[0].gain | .ratio - 1 / (1 - .share) | fabs < 0.01 * $r.advice[0].gain.ratio'
subutai report --try slow-release.sbt
check "--try: in the text" matches "$out" 'try: subutai compare .*\s+measured, times as fast as glibc in 5 runs: direct [0-9.]+ \([0-9. to]+\).*identical.*predicted: at most'
echo 'echo $RANDOM$RANDOM $# "$1"; echo run >>runs' >'a program'
subutai report --json --try --command "bash 'a program' 'x  y'" slow-release.sbt slow-release.profile.sbt
check "--command: its words; runs with other outputs are called so" measured '$m.identical == false and
    (.command | contains(" -- bash ") and contains("a program") and contains("x  y"))'
check "--command: measured once for all traces, a warm-up and five runs of three engines" is "$(wc -l <runs)" 18
subutai report --json --try --command nosuch slow-release.sbt
check "--try: what cannot be run is said, and the report is there" matches "$status $err" "^0 .*nosuch.*report: --try: not measured"
check "--try: and nothing is called measured" measured '$m == null'
subutai report --json --try --command "sh 'x" slow-release.sbt
check "--try: half a command line" matches "$status $err" '^0 subutai: report: --try: .* no.* whole command line'
subutai report --json --top 1 hot-lock.sbt
check "a hot lock in a variable: the command delegates it" json '.[0].advice[0].command | contains(",direct:wait=switch,delegate=hot -- ")'
for disease in hot-made hot-found; do
    settled 'jq -e ".advice[0].command | contains(\"delegate=\")" <<<"$out"' $disease.sbt $disease --engine glibc
    name=$(jq -r '.advice[0].command' <<<"$out" | grep -o 'delegate=[^ ]*')
    check "$disease: the command delegates it by a place in the program" matches "$name" "^delegate=${DISEASE##*/}[+]0x[0-9a-f]+$"
    run "$SUBUTAI" run --verbose 2 --wait 'switch!' "--$name" -- "$DISEASE" $disease
    check "$disease: and so its sections are handed over" matches "$err" "delegated: '[^']*': [1-9]"
done

# ---- names: of variables that lld has placed, of C++ and Rust ----

if command -v clang >/dev/null && command -v ld.lld >/dev/null; then
    clang -O1 -pthread -fuse-ld=lld -o placed "$SOURCE_ROOT/tests/report/disease.c"
    subutai record -o placed.sbt --engine glibc -- ./placed hot-lock
    subutai report --csv placed.sbt
    check "a variable in a program that lld has linked has its name" matches "$out" ',mutex,"hot","hot",'
else
    skip "a variable in a program that lld has linked" "no clang, or no lld"
fi

# The lock is the first advice, unless the machine stalls: see `settled`. Then another lock may be.
delegates_queue='.[0].advice[0].command | contains(",delegate=_ZN3app12_GLOBAL__N_15queueE -- ")'
for _ in 1 2 3 4 5; do
    subutai record -o mangled.sbt --record-stacks on --engine glibc -- "$MANGLED"
    subutai report --json mangled.sbt
    ! json "$delegates_queue" >/dev/null || break
done
queue='app::(anonymous namespace)::queue' push=app::pool::push worker=app::pool::worker
if [ "$DEMANGLES" != true ]; then
    queue=_ZN3app12_GLOBAL__N_15queueE push=_ZN3app4pool4push17h0123456789abcdefE worker=_RNvNtCs4fqI2P2rA04_3app4pool6worker
fi
check "mangled: the lock by its name in the source, and the symbol" json ".[0].objects[] |
    select(.symbol == \"_ZN3app12_GLOBAL__N_15queueE\").name == \"$queue\""
check "mangled: so the function that takes it" json ".[0].sites[] | select(.function == \"$push\") |
    .symbol == \"_ZN3app4pool4push17h0123456789abcdefE\" and (.place | contains(\"mangled.c:\") and contains(\" $push (\"))"
check "mangled: and the threads' routine" json "[.[0].threads[] | select(.routine == \"$worker\") | .name |
    startswith(\"$worker#\")] | length == 4 and all"
check "mangled: the command has the symbol, which --delegate takes" json "$delegates_queue"
run "$SUBUTAI" run --verbose 2 --wait 'switch!' --delegate=_ZN3app12_GLOBAL__N_15queueE -- "$MANGLED"
check "mangled: and its sections are handed over" matches "$err" "delegated: '[^']*': [1-9]"
subutai report mangled.sbt
check "mangled: in the text, with a line that says the symbol" matches "$out" \
    $'\n 1\\. \\[hot-lock\\] '"${queue//[()]/.}"$'.*\nObjects\n'
typed=$(tr -s ' \n' ' ' <<<"$out" | grep -oE 'make_the_mutex_that_all_of_the_workers_wait_for[^:]*: --delegate calls it [^ ]+')
check "mangled: a place that is cut in the table, and what to type" matches "$typed" 'calls it mangled\+0x[0-9a-f]+$'
check "mangled: a name is cut between characters" iconv -f utf-8 -t utf-8 -o utf-8 <<<"$out"
if [ "$DEMANGLES" = true ]; then
    check "mangled: what to type" matches "$out" $'\n  app::.anonymous namespace.::queue: --delegate calls it _ZN3app12_GLOBAL__N_15queueE\n'
    check "mangled: a name of 200 letters, too" matches "$(tr -s ' \n' ' ' <<<"$out")" ': --delegate calls it _ZN3app(10namespaces){16}4wideE'
fi
run "$SUBUTAI" run --verbose 2 --wait 'switch!' --delegate="${typed##* }" -- "$MANGLED"
check "mangled: it is a name of that mutex" matches "$err" "subutai: delegated: 'mangled[^']+': "
subutai report --folded - mangled.sbt
check "mangled: also there" iconv -f utf-8 -t utf-8 -o utf-8 <<<"$out"
check "mangled: in folded stacks" matches "$out" "$worker;$push;${queue//[()]/.} [0-9]+"

subutai report hot-lock.sbt
check "above the shares of RCL's authors" matches "$(tr -s ' \n' ' ' <<<"$out")" 'is above the 60 % from which delegation [(]RCL[)] beat all other locks on 48 cores\. '
subutai report --delegate-from 30,never hot-lock.sbt
check "--delegate-from: above the share that was measured" matches "$(tr -s ' \n' ' ' <<<"$out")" 'is above the 30 % from which delegation [(]RCL[)] beats POSIX locks here\. '
subutai report --delegate-from never,never --json hot-lock.sbt
check "--delegate-from: where it never pays no command delegates" json '.[0].advice[0].command | contains("delegate") | not'
# The owner of the lock may sleep for want of a core, on a busy machine: then there is another advice.
for _ in 1 2 3 4 5; do
    subutai profile --delegate-from 30,never -o profiled -- "$DISEASE" hot-lock
    ! grep -qF '[lock-over-io]' profiled/report.txt || continue
    break
done
check "profile --delegate-from: is the report's" matches "$(tr -s ' \n' ' ' <profiled/report.txt)" '30 % from which delegation [(]RCL[)] beats POSIX locks here'
for shares in 30 '30,' ,30 30,101 -1,5 30,60,90 nan,5 never,nevermore; do
    refuses "report: --delegate-from: '$shares' is not a legal value .legal: two of 0 to 100 or never, with a comma." report --delegate-from="$shares" hot-lock.sbt
done
subutai report --json --try hot-lock.sbt
check "--try: and so it is measured" measured '$m.engines | map(.engine) == ["direct", "direct:wait=switch", "direct:wait=switch,delegate=hot"]'
subutai report --json --try barrier-imbalance.sbt
check "--try: advice without a command is not measured" json '.[0].advice[0] | .command == null and .measured == null'
subutai report --try idle-pool.sbt
check "--try: and a line says so if there is no other" matches "$err" "^subutai: report: --try: 'idle-pool\.sbt' has no advice that a command could try"
refuses "report: --command: nothing is run .legal: with --try" report --command true slow-release.sbt
subutai report --top 2 slow-release.sbt
check "--top: rows of a table" matches "$out" 'and 47 more'
subutai report --top 1 --json slow-release.sbt
check "--top: the document is whole" whole_document

# ---- nothing to report, and bad files ----

ill alone.sbt alone --engine glibc
subutai report alone.sbt
check "one event is one" matches "$out" $', 1 event\n'
check "no synchronization: says so, exit 0" matches "$status $out" '^0 .*Nothing to report: the program did not synchronize'
subutai profile -o counted -- "$DISEASE" hot-lock
counted=$(find counted -name '*.sbt')
"$WITH_MISSES" "$counted" misses.sbt 200 1500
subutai report misses.sbt
check "cache misses, where the processor counts them" matches "$out" 'Cache misses: 7.5 a section'
subutai report --json misses.sbt
check "the same in JSON" json '.[0].summary.sections.cache_misses == 7.5'
"$WITH_MISSES" "$counted" misses.sbt 0 0
subutai report misses.sbt
check "no section in which they were counted" matches "$out" 'Cache misses: counted in no section'
"$WITH_MISSES" misses.sbt twice.sbt 1 1 again
refuses "'twice.sbt': at byte [0-9]+: cache misses" report twice.sbt
subutai report hot-lock.sbt
check "the advice about a hot lock says for which machines its limit was found" matches "$out" 'from[[:space:]]+which[[:space:]]+delegation[[:space:]]+\(RCL\)[[:space:]]+beat[^.]*on[[:space:]]+48[[:space:]]+cores'
check "each call recorded: they are not counted" matches "$out" 'Cache misses: counted in profiles only'
subutai report --json hot-lock.sbt
check "the same in JSON" json '.[0].summary.sections.cache_misses == null'
subutai report --json alone.sbt
check "the same in JSON, with all members" json '.[0] | (.empty | startswith("the program did not")) and (keys | length == 20)'
printf '0 mutex_lock object=0 order=1 work=100\n0 mutex_unlock object=0 work=100\n' | "$WRITE_TRACE" generated.sbt
subutai report generated.sbt
check "generated: says what to do" matches "$status $out" '^0 .*no times of day \(subutai predict'
refuses "report: no file given" report
refuses "'nosuch.sbt': at byte 0: .*No such file.*legal: what subutai record" report nosuch.sbt
: >empty.sbt
refuses "'empty.sbt': at byte 0: " report empty.sbt
echo "this is no trace, but longer than its beginning" >text.sbt
refuses "'text.sbt': at byte 0: not a trace" report text.sbt
cp hot-lock.sbt version.sbt
printf '\377' | dd of=version.sbt bs=1 seek=8 conv=notrunc status=none
refuses "'version.sbt': at byte 8: .*version.*record the program again" report version.sbt
cp hot-lock.sbt damaged.sbt
size=$(stat -c %s damaged.sbt)
head -c 64 /dev/urandom | dd of=damaged.sbt bs=1 seek=$((size / 2)) conv=notrunc status=none
refuses "'damaged.sbt': at byte [0-9]+: " report damaged.sbt
refuses "report: 'damaged.sbt': at byte [0-9]+: .*record the program again" report --perfetto damaged.pftrace damaged.sbt
refuses "report: 'version.sbt': at byte 8: .*record the program again" report --perfetto version.pftrace version.sbt
refuses "'damaged.sbt': at byte [0-9]+: " report --csv damaged.sbt
head -c $((size * 2 / 3)) hot-lock.sbt >cut.sbt
subutai report cut.sbt
check "a trace that was cut is reported as far as it goes" matches "$status $out" '^0 .*not whole: the program was killed'
refuses "legal: one of them" report --json --csv hot-lock.sbt
refuses "report: --folded: '/proc/none': .*legal: a file that can be written" report --folded /proc/none hot-lock.sbt
refuses "report: --folded: 'hot-lock.sbt' is what is read" report --folded hot-lock.sbt hot-lock.sbt
refuses "report: --top" report --top 0 hot-lock.sbt
if [ -w /dev/full ]; then
    run bash -c '"$1" report hot-lock.sbt >/dev/full' - "$SUBUTAI"
    check "a full disk is no success" matches "$status $err" '^2 subutai: cannot write'
fi
finish
