#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The sentences of the report about traces made by hand (scenes.c), word by word, in the text and in JSON. The figures
# are worked out from the scenes.
. "$(dirname "$0")/../command/lib.sh"
: "${SCENES:?}"

# scene NAME [THREAD US]...: its report as text in one line in $report, and as JSON in $out
scene() {
    local name=$1
    shift
    run "$SCENES" "$name" s.sbt "$@"
    is "$status" 0 || { echo "Bail out! no scene $name" && exit 99; }
    subutai report s.sbt
    report=$(tr -s ' \n' ' ' <<<"$out")
    subutai report --json s.sbt
}

# advises CAUSE FIGURE BASIS SENTENCE [GAIN]: of $out and $report. FIGURE and BASIS as in JSON; GAIN follows in the text.
advises() {
    jq -e --arg cause "$1" --argjson figure "$2" --arg basis "$3" --arg sentence "$4" '
        [.advice[] | select(.cause == $cause)] | length == 1 and (.[0] |
        .text == $sentence and (.figure.value - $figure | fabs < 0.0005) and .gain.basis == $basis and
        (($basis == "none") == (.gain.ns == null)))' <<<"$out" >/dev/null || {
        jq -c '.advice[] | [.cause, .figure, .gain.basis, .text]' <<<"$out" | sed 's/^/# /'
        return 1
    }
    [[ $report == *" [$1] $4${5:+ $5}"* ]] || { echo "# not in the text: [$1] $4 ${5:-}" && return 1; }
}

# cores NS QUEUED WORDS: of a thread that could run and had no core, in the summary; null: not known
cores() {
    json ".[0].summary | .no_core_ns == $1 and .queued_ns == $2" &&
        { [[ $report == *" Waiting for a core, in calls too: $3. "* ]] || { echo "# $report" && return 1; }; }
}

# ---- off the processor: asleep, or without a core ----

off='For 80.0 % of the critical path the thread, mostly main, is off the processor between calls'
unseen="It waits there in no call that is recorded. A futex call of a library's own is none."
scene off-cpu
check "it is not known whether there was a core: not said" cores null null "not available here"
check "and the thread may have been preempted" advises off-cpu 0.8 none "$off: input, output, sleep, or preemption. $unseen"
scene off-cpu 0 700
check "no core for 700 us of 800: said" cores 700000 700000 "700.0 us, 70.0 % of the time"
check "and the advice is about cores" advises off-cpu 0.8 none \
    "$off. Of most of that the kernel says that it could have run and had no core: other threads had them, of this program or of others. Use no more threads than CPUs."
check "and in the table of threads' time" matches "$report" ' - no core 700\.0 us 70\.0 % of that, could have run: '
check "and of threads: no core, asleep" matches "$report" ' main 1\.0 ms 20\.0 % .* 70\.0 % 10\.0 % '
check "and in JSON" json '.[0].threads == [.[0].threads[0]] and (.[0].threads[0] | .no_core_ns == 700000 and .off_cpu_ns == 800000)'
scene off-cpu 0 10
check "no core for 10 us: the thread was asleep" advises off-cpu 0.8 none \
    "$off: input, output, or sleep, and hardly for want of a core. $unseen"
check "and the table says so" matches "$report" ' main 1\.0 ms 20\.0 % .* 1\.0 % 79\.0 % '
scene off-cpu 0 300
check "no core for 300 us: both may be" advises off-cpu 0.8 none "$off: input, output, sleep, or preemption. $unseen"
scene off-cpu-beside
check "beside a thread that works: it may have the core" advises off-cpu 0.8 none \
    "$off: input, output, sleep, or preemption. It may wait for the others, which work for 700.0 us: for a processor that one of them has, or by signals and pipes. $unseen"
scene off-cpu-beside 0 10
check "the count of one thread of two: said" cores 0 10000 "10.0 us, 0.6 % of the time; short-lived and killed threads are not counted"
check "and that thread did not lack a core" advises off-cpu 0.8 none \
    "$off: input, output, or sleep, and hardly for want of a core. It may wait for the others, which work for 700.0 us: by signals and pipes. $unseen"

# ---- locks ----

held="mutex#0 is held while its thread does not run: 90.2 % of its holds' time (mean hold 49.9 us) is input, output or sleep. Do that without the lock; the place is ?."
bound='At most: 449.9 us, 75.0 % of the time (a bound, by the critical path).'
scene lock-over-io
check "a lock over input: no core is not said" advises lock-over-io 0.9018 critical-path "$held" "$bound"
scene lock-over-io 0 250 1 250
check "holders that had no core: it may be that" advises lock-over-io 0.9018 critical-path \
    "$held Or holders lost their cores: for most of the threads' time off the processor the kernel says that they could have run. Measure again on a quiet machine, with no more threads than CPUs." "$bound"
unknown='What that costs is not known: the thread that ended the program slept for most of the time, so the critical path is not that of the threads that use the lock.'
scene server
check "a lock that a server's threads wait for: its main thread sleeps" advises hot-lock 0.6171 none \
    "mutex#0 is held or waited for in 61.7 % of the threads' active time (mean hold 44.9 us, mean wait 46.2 us). $unknown That is above the 60 % from which delegation (RCL) beat all other locks on 48 cores. Split it, or do less while it is held, most of all at ?."
check "and it is the first advice" json '.[0].advice | map(.cause) == ["hot-lock", "off-cpu"] and .[0].figure.name == "section_share"'
scene server-parks
check "a lock that keeps a thread asleep that has nothing to do is not hot" json '.[0] |
    (.objects[] | select(.type == "mutex") | .contended == 4 and .section_share > 0.3) and all(.advice[]; .cause != "hot-lock")'
scene many-locks
check "many locks: 1100 calls of 20 ns, of 110 us; counted, and no bound" advises many-locks 0.2 counted \
    "Locking and unlocking 50 mutex objects made at ? takes some 20.0 % of the processor time: 1100 times, at 20 ns for both, and 0.00 % waited. Take one lock for more work." \
    "About: 22.0 us, 10.0 % of the time (by the number of calls; a trace's program is longer than it would be without the recorder)."
scene too-many-threads
check "too many threads: 2 x 2.2 + 1 for a start" advises too-many-threads 7.6875 none \
    "17 threads keep 2.2 CPUs busy, and wait for locks for 87.1 % of their time. Try fewer, 6 for a start: they should get about as much done, with fewer switches and less memory. With as few as run at a time CPUs are idle while threads wait."

# ---- conditions ----

path='At most: 262.0 us, 12.5 % of the time (a bound, by the critical path).'
try='try: subutai compare --engines glibc,direct,direct:wait=switch -- a scene'
scene broadcast-storm
check "broadcasts that one thread of two has nothing from" advises broadcast-storm 19 critical-path \
    "20 broadcasts of cond#1 ended 40 waits, and after 19 of these the thread waited again at once. Signal one thread for one piece of work, or give threads that wait for different things conditions of their own." "$path $try"
scene futile-wakeups
check "signals in vain" advises futile-wakeups 19 critical-path \
    "cond#1 wakes threads in vain: after 19 of 20 signals the thread waited again at once. Signal when what the thread waits for is true, or use one condition for each thing that is waited for." "$path $try"

# ---- waits that timed out ----

scene timed-out
check "a lock's wait that timed out: the thread that had it" matches "$report" ' main thread#1 mutex#0 mutex, timed out 1 400\.0 us '
check "a condition's: no thread" matches "$report" ' main timed out cond#1 cond 1 300\.0 us '
check "and in JSON" json '.[0].waits_for | map([.holder, .kind, .timed_out, .n, .ns]) ==
    [[1, "mutex", true, 1, 400000], [null, "cond", true, 1, 300000]]'
check "and of the objects" json '.[0].objects | sort_by(.id) | map(.timed_out) == [{"n": 1, "ns": 400000}, {"n": 1, "ns": 300000}]'
subutai report --csv s.sbt
check "and in CSV" is "$(sed -n 's/.*,\([0-9]*,[0-9]*\)$/\1/p' <<<"$out" | sort)" $'1,300000\n1,400000'
finish
