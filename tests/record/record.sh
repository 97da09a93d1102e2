#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The recorder: what it records is what happened and could have happened, however the program ends; what it cannot do it
# says, and the program goes on.
. "$(dirname "$0")/../command/lib.sh"
: "${SUBJECT:?}" "${CHECK:?}" "${RECORDING_LIBRARY:?}"

# record ARG...: the subject, recorded in t.sbt
record() {
    rm -f ./*.sbt
    subutai record -o t.sbt "${options[@]}" -- "$SUBJECT" "$@"
}
options=()
# record_alone ARG...: the same, without a command that adds what threads had not written when the subject is killed
record_alone() {
    rm -f ./*.sbt ./*.live
    run env SUBUTAI_RECORD=t.sbt SUBUTAI_ENGINE=glibc LD_PRELOAD="$RECORDING_LIBRARY" "$SUBJECT" "$@"
    rm t.sbt.live
}

# possible FILE [OP=COUNT...]
possible() {
    local said
    said=$("$CHECK" "$@") || { echo "# ${said//$'\n'/$'\n# '}" && false; }
}
# A wait that returns before the wake-up that ended it has returned may be given another one; then there may be a wait
# that has none (observe/futex.c). That is seldom: not so in three recordings.
futexes_possible() {
    local i
    for i in 1 2 3; do
        possible t.sbt futex_wake=$((rounds + 2)) futex_wait:none=0 thread_create=4 thread_join=4 thread_end=5 && return
        [ "$i" = 3 ] || record futexes
    done
    false
}
info() { # FILE FILTER
    subutai trace info --json "$1"
    json "map($2) | all"
}

rounds=8000 # of all threads
for engine in glibc direct ni; do
    options=(--engine "$engine")
    record everything
    check "$engine: the program does what it does" is "$status $out $err" "0 done "
    # Recursive locks count once, and the turn is waited for as often as it takes.
    check "$engine: each call once, numbers without gaps" possible t.sbt mutex_lock=$((2 * rounds)) \
        mutex_unlock=$((2 * rounds)) cond_broadcast=$rounds rwlock_wrlock=$((rounds / 4)) \
        rwlock_rdlock=$((rounds * 3 / 4)) rwlock_unlock=$rounds spin_lock=$rounds spin_unlock=$rounds sem_post=$rounds \
        sem_wait=$rounds sem_wait:none=2 cond_wait:none=0 barrier_wait=$((rounds / 20)) thread_create=4 thread_join=4 thread_end=5 init=3 destroy=1
    check "$engine: whole, nothing lost, at most 8 bytes an event" info t.sbt \
        ".whole and .lost == 0 and .engine == \"$engine\" and .bytes <= 8 * .events and .threads == 5"
done
for engine in glibc direct ni; do
    options=(--engine "$engine")
    record futexes
    check "$engine, futexes: exit 0" is "$status $out $err" "0 done "
    check "$engine, futexes: each wake-up is there, and each wait has the one that ended it" futexes_possible
    subutai trace dump --json t.sbt
    check "$engine, futexes: results" json '[.[] | select(.op == "futex_wait" or .op == "futex_wake").result] | unique -
        [0, 11] == [38, 110]'
    check "$engine, futexes: some wake-ups woke a thread" json '[.[] | select(.op == "futex_wake").size] | max > 0'
    subutai predict --machine paper,host --cores 2 --json t.sbt
    check "$engine, futexes: predicted, no wait without an end" json '.[0].runs | length == 5 and
        all(.makespan_ns > 0 and .not_as_recorded.let_pass == 0 and .makespan_ns >= .critical_path_ns)'
done
for wait in switch switch!; do
    options=(--engine direct --wait "$wait")
    record work
    check "--wait $wait: exit 0" is "$status $out" "0 done"
    [[ $wait == switch ]] || continue
    check "one line: no switching while work is to be known" matches "$err" \
        "^subutai: [^:]*: threads are not switched but wait adaptively: a recorded thread keeps its kernel thread[^"$'\n'"]*$"
    check "and work is right" info t.sbt ".work_ns > 0.95 * $(<spent) and .work_ns < 1.2 * $(<spent)"
done
options=()

# As the kernel tells of preemption, and as it is without its telling.
for tunables in '' glibc.pthread.rseq=0; do
    export GLIBC_TUNABLES=$tunables
    record work
    check "work is CPU time, not the clock's ($tunables)" info t.sbt \
        ".work_ns > 0.95 * $(<spent) and .work_ns < 1.2 * $(<spent)"
    subutai trace dump --json --thread 1 t.sbt
    check "each piece of it, within a fifth" json "[foreach .[] as \$e (0; if \$e.op == \"mutex_unlock\" then 0 else . + \$e.work_ns end;
            select(\$e.op == \"mutex_lock\"))] as \$work
        | [$(<pieces)] as \$pieces | [$(<all_of_each)] as \$all | [\$work, \$pieces, \$all | length] == [20, 20, 20]
        and all(range(20); \$work[.] > 0.98 * \$pieces[.] and \$work[.] < 1.2 * \$all[.])"
    record contended # 4 threads on one core, 40 ms each
    check "preemption by other threads is no work" info t.sbt ".work_ns > 0.95 * $(<spent) and .work_ns < 1.45 * $(<spent)"
done
unset GLIBC_TUNABLES

record handlers
check "posts of handlers: exit 0" matches "$status $out" $'^0 [0-9]+ posts\ndone$'
check "what is there is possible" possible t.sbt
n_posts=${out%% *}
check "each is there, or counted as lost" info t.sbt \
    ".operations.sem_post.count as \$n | \$n <= $n_posts and \$n + .lost >= $n_posts and \$n > 0"
record inherit
check "handlers that use an object first, or on top of that: exit 0" is "$status $out" "0 done"
check "and the child's trace" possible t.*.sbt
record ends
check "pthread_exit, cancellation, destructors after a thread's end" possible t.sbt mutex_lock=9 thread_create=9 \
    thread_join=9 thread_end=10 cond_wait=1

record jobs
check "jobs that free their pthread_t: exit 0" is "$status $out" "0 done"
check "each of them once" possible t.sbt thread_create=200 sem_wait=202

record timers
check "threads of the C library: exit 0" is "$status $out" "0 done"
check "end, all but the threads that run at the end" info t.sbt ".threads > 90 and .operations.thread_end.count >= .threads - 10"
record main-ends
check "a process that its first thread leaves: exit 0" is "$status $out" "0 done"
check "its end is there too" possible t.sbt thread_end=2

record exit
check "exit while threads run: its status" is "$status" 7
check "and a whole trace" possible t.sbt && info t.sbt .whole
check "whole" info t.sbt .whole
record quick_exit
check "quick_exit while threads run: its status" is "$status" 7
check "a whole trace after quick_exit" info t.sbt .whole
record _exit
check "_exit while threads run: its status" is "$status" 7
check "a whole trace after it" info t.sbt .whole
# Each is a matter of some instructions, so there are several runs: all must be whole, and possible.
several() { # N HOW
    local n
    for ((n = 0; n < $1; n++)); do
        record "$2"
        is "$status" 7 && possible t.sbt && info t.sbt .whole || return 1
    done
}
check "exit while threads are created and joined" several 20 joins
check "threads that call _exit at the same time" several 20 leave-together
check "exit while a thread is held in a handler: what it had is there, or counted as lost" several 8 held
check "_exit in a handler, often while an event is encoded: that is counted as lost" several 60 cut

record killed
check "SIGKILL: its status" is "$status" 137
check "a trace up to the last block" info t.sbt '(.whole | not) and .events > 10000'
check "which is possible" possible t.sbt
# The barrier's init is in no block: the thread that made it has done nothing else, and its last block is lost without
# the file beside the trace (killed.sh).
record_alone killed-at-a-barrier
check "SIGKILL between meetings: its status" is "$status" 137
check "a trace up to the last block of threads that met" info t.sbt '(.whole | not) and .events > 10000'
check "which is possible as well" possible t.sbt
subutai predict t.sbt --cores 4 --mesh 2x2
check "how many meet can be told from it" is "$status" 0
# It is blocked at a pipe that is not emptied when the trace is cut.
mkfifo dumped
"$SUBUTAI" trace dump t.sbt >dumped 2>said &
dump=$!
exec 3<dumped
read -r _ <&3
: >t.sbt
cat <&3 >rest
exec 3<&-
wait "$dump"
status=$? err=$(<said)
check "cut while it is read: status 3" is "$status" 3
check "and one line" is "$err" "subutai: a file has become shorter while it was read"
record_alone killed-at-a-semaphore
check "SIGKILL between waits for a semaphore: its status" is "$status" 137
check "a trace up to the last block of threads that waited" info t.sbt '(.whole | not) and .events > 10000'
check "the semaphore's value is not in it" info t.sbt '.operations | has("init") | not'
subutai predict t.sbt --cores 4 --mesh 2x2 --json
check "most of its calls are replayed" json '.[0].runs | length == 2 and all(.n_calls > 5000)'

# Every trace above that was made by a program, whole or not: predicted, with one line at most.
record misuse
check "a program that misuses its objects: exit 0" is "$status $out" "0 done"
subutai trace dump --json t.sbt
check "joins that failed say so" json '[.[] | select(.op == "thread_join").result] | sort == [0, 0, 22, 35]'
for file in t.sbt t.*.sbt; do
    subutai predict --cores 2,16 --json "$file"
    check "it is predicted, $file" json '.[0].runs | length == 4 and all(.makespan_ns > 0 and .not_as_recorded.share < 0.1)'
    check "with a line at most" test "$status" = 0 -a "$(grep -c . <<<"$err")" -le 1
done
for how in timers main-ends handlers ends jobs exit _exit killed killed-at-a-barrier killed-at-a-semaphore abort joins; do
    record "$how"
    subutai predict --cores 2 --json t.sbt
    check "predicted: $how" json '.[0].runs | length == 2 and all(.makespan_ns > 0 and
        (.not_as_recorded.let_pass > 0 or .makespan_ns >= .critical_path_ns))'
done

record abort
check "abort: its status" is "$status" 134
check "a trace up to the last block after it" info t.sbt '(.whole | not) and .events > 10000'

record children
check "children: exit 0" is "$status $out" "0 done"
check "four files" is "$(printf '%s\n' ./*.sbt | wc -l)" 4
check "the parent's" possible t.sbt mutex_lock=10 mutex_unlock=10
for file in t.*.sbt; do
    check "a child's" possible "$file" mutex_lock=10 mutex_unlock=10
    check "whole, with its process id in the name" info "$file" \
        ".whole and .process == $(cut -d. -f2 <<<"$file")"
done
subutai record -o t.sbt -- sh -c "exec '$SUBJECT' locks"
check "a program that only starts another one leaves the name to that" possible t.sbt mutex_lock=10

record close
check "a program that closes all descriptors: exit 0" is "$status $out $err" "0 done "
check "its trace" possible t.sbt mutex_lock=40000 mutex_unlock=40000

# The file of a program that has done nothing is made at its end. What happens then is not for the program's handlers,
# one of which would end the process once more.
rm -f ./*.sbt
run bash -c "(ulimit -f 0; exec '$SUBUTAI' record -o t.sbt -- '$SUBJECT' idle) 2>&1 | cat; exit \${PIPESTATUS[0]}"
check "no room for the trace of a program that did nothing: its status, one line" matches "$status $out" \
    "^0 subutai: recording ends, the program goes on: '.*t.sbt': File too large$"

# A limit on the size of files is met like a full disk, and its signal must not end the program.
rm -f ./*.sbt
run bash -c "ulimit -f 40; exec '$SUBUTAI' record -o t.sbt -- '$SUBJECT' everything"
check "no more room: the program goes on" is "$status $out" "0 done"
check "one line" is "$(grep -c . <<<"$err")" 1
check "that says why" matches "$err" "^subutai: recording ends, the program goes on: '.*t.sbt': File too large$"
check "and what was written can be read" info t.sbt '(.whole | not) and .events > 1000'
if mkdir small && mount -t tmpfs -o size=64k none small 2>/dev/null; then
    subutai record -o small/t.sbt -- "$SUBJECT" everything
    cp small/t.sbt t.sbt
    umount small
    check "full disk: the program goes on" is "$status $out" "0 done"
    check "with one line" matches "$err" "^subutai: [^"$'\n'"]*No space left on device$"
    check "what was written before can be read" info t.sbt '(.whole | not) and .events > 1000'
else
    skip "full disk" "no file system can be mounted"
fi

mkdir locked && chmod 555 locked
if [[ -w locked ]]; then
    skip "a directory that cannot be written" "root writes everywhere"
else
    refuses 'Permission denied' record -o locked/t.sbt -- "$SUBJECT"
fi

# A server that gives up being root. The second program may not write where root can.
other=(setpriv --reuid 65534 --clear-groups)
if [[ $(id -u) == 0 ]] && "${other[@]}" "$SUBJECT" >/dev/null 2>&1; then
    mkdir own open its below && chmod 755 own && chmod 1777 open && chown 65534 its && chmod 755 "$scratch"
    mkdir below/open && chmod 1777 below/open && chmod 700 below
    subutai record -o own/t.sbt -- "${other[@]}" "$SUBJECT"
    check "another user: a line says what the directory must allow" matches "$status $err" '^0 subutai: .*Permission denied .legal: a directory'
    check "and the file was made before" info own/t.sbt '.command | startswith("setpriv")'
    subutai record -o below/open/t.sbt -- "${other[@]}" "$SUBJECT"
    check "the same where that user cannot come" info below/open/t.sbt '.command | startswith("setpriv")'
    for place in open its; do
        subutai record -o $place/t.sbt -- "${other[@]}" "$SUBJECT"
        check "where that user may write too the name is left to the program ($place)" info $place/t.sbt '(.command | startswith("setpriv") | not) and .events > 10'
    done
    subutai record -o own/same.sbt -- setpriv --reuid 0 --clear-groups "$SUBJECT"
    check "and where the user stays the same" info own/same.sbt '(.command | startswith("setpriv") | not) and .events > 10'
    for how in drops drops-and-closes; do
        subutai record -o own/$how.sbt -- "$SUBJECT" $how
        check "a program that $how is recorded" is "$status $err" "0 "
        check "and its trace is whole" info own/$how.sbt '.whole and .events > 20000'
    done
    subutai record -o own/child.sbt -- "$SUBJECT" drops-in-child
    check "so is a child that does" info "$(echo own/child.*.sbt)" '.whole and .events > 20000'
    subutai record -o own/vfork.sbt -- "$SUBJECT" drops-in-vfork
    check "a child that has it done by one of vfork: exit 0" is "$status $err" "0 "
    check "and it is recorded" info "$(echo own/vfork.*.sbt)" '.whole and .events > 20000'
else
    skip "another user" "the test is not run by root, or that user cannot read it"
fi
refuses 'No such file or directory' record -o nowhere/t.sbt -- "$SUBJECT"
refuses 'no regular file' record -o /dev/null -- "$SUBJECT"
echo precious >note
refuses 'the file is something else' record -o note -- "$SUBJECT"
check "and left as it was" is "$(cat note)" precious
refuses 'no program given' record -o t.sbt
refuses "program 'no-such-program'" record -o t.sbt no-such-program
refuses 'unknown value .slow.' record --engine slow -- "$SUBJECT"

record locks
refuses 'no action given' trace
refuses "unknown action 'eat'" trace eat t.sbt
refuses 'no file given' trace info
refuses 'at byte 0: cannot be opened: No such file' trace info nowhere.sbt
refuses 'at byte 0: not a trace' trace info "$SUBJECT"
: >empty.sbt
refuses 'the file is empty' trace info empty.sbt
head -c -1 t.sbt >cut.sbt
check "a cut trace is not whole" info cut.sbt '.whole | not'
{ head -c 300 t.sbt && printf X && tail -c +302 t.sbt; } >bad.sbt
refuses 'at byte [0-9]+: ' trace dump bad.sbt

subutai trace dump t.sbt
line=$(awk '/^static void some_locks/ { found = 1 } found && /pthread_mutex_lock/ { print NR; exit }' "$SOURCE_ROOT/tests/record/subject.c")
first_lock=$'\n''0 [0-9]+ mutex_lock mutex#[0-9]+ work [0-9]+ took [0-9]+ order 1 '
check "dump says in which line a call is" matches "$out" "${first_lock}subject.c:$line some_locks[.a-z0-9]* \(record-subject\)"
objcopy --strip-debug "$SUBJECT" symbols
objcopy --strip-all "$SUBJECT" bare
for program in symbols bare; do
    subutai record -o "$program.sbt" -- "./$program" locks
    subutai trace dump "$program.sbt"
    case $program in
    symbols) check "without lines, in which function" matches "$out" "${first_lock}some_locks[.a-z0-9]*\+0x[0-9a-f]+ \(symbols\)" ;;
    bare) check "without symbols, where in the file" matches "$out" "${first_lock}bare\+0x[0-9a-f]+"$'\n' ;;
    esac
done
mv bare gone
subutai trace dump bare.sbt
check "the same where the file has gone" matches "$out" "${first_lock}bare\+0x[0-9a-f]+"$'\n'
mkfifo bare
subutai trace dump bare.sbt
check "the same where a FIFO has taken its place: it is not waited for" matches "$status $out" \
    "^0 .*${first_lock}bare\+0x[0-9a-f]+"$'\n'
rm bare
rm -f symbols.sbt bare.sbt
subutai trace dump --json t.sbt
check "dump --json" json 'map(select(.op == "mutex_lock")) | length == 10 and ([.[].order] == [range(1; 11)]) and
    all(.[]; .type == "mutex" and (.address | startswith("0x")) and (.place | test("/record-subject\\+0x[0-9a-f]+$")))'
subutai trace to-perfetto --json -o p.json t.sbt
check "to-perfetto: exit 0" is "$status" 0
out=$(cat p.json)
check "complete events and names of threads" json '.[0].traceEvents | (map(select(.ph == "X" and (.name | startswith("mutex_lock"))))
    | length == 10 and all(.ts >= 0 and .dur >= 0)) and any(.ph == "M" and .name == "thread_name")'
refuses '--out' trace to-perfetto --json -o nowhere/p.json t.sbt
cp t.sbt kept && ln -s t.sbt link && ln t.sbt hard
for name in t.sbt ./t.sbt link hard; do
    refuses "--out: '$name' is what is read" trace to-perfetto --json -o "$name" t.sbt
done
check "and the trace is what it was" cmp t.sbt kept
rm hard

# The first of its blocks of events has another byte in its events; those are refused when it comes to them.
cp p.json old.json && cp kept bad.sbt
offset=$(grep -obUaP 'sblk\x02' bad.sbt | head -1 | cut -d: -f1)
printf '\377' | dd of=bad.sbt bs=1 seek=$((offset + 80)) conv=notrunc status=none
refuses 'at byte [0-9]+: ' trace to-perfetto --json -o p.json bad.sbt
check "to-perfetto of a damaged trace leaves the old file" cmp p.json old.json
refuses 'at byte [0-9]+: ' trace to-perfetto --json -o new.json bad.sbt
check "and makes none" is "$(echo *.json* *.part*)" "old.json p.json *.part*"
chmod 640 p.json && ln -s p.json to-p
subutai trace to-perfetto --json -o to-p t.sbt
check "a link stays one, and the file has its rights" is "$(readlink to-p) $(stat -c %a p.json) $(cmp p.json old.json)" "p.json 640 "
subutai trace to-perfetto --json -o /dev/stdout t.sbt
check "-o /dev/stdout" is "$status $out" "0 $(cat old.json)"
echo before >p.json
"$SUBUTAI" trace to-perfetto --json -o /dev/stdout t.sbt >>p.json
check "which may be a file" is "$(cat p.json)" "before"$'\n'"$(cat old.json)"
subutai trace to-perfetto --json -o /dev/null t.sbt
check "-o /dev/null: exit 0, and it is there" test "$status" = 0 -a -c /dev/null
subutai trace to-perfetto --json -o /dev/full t.sbt
check "a device that is full" matches "$status $err" "^2 subutai: trace: --out: '/dev/full': No space left on device$"
run bash -c "trap '' XFSZ; ulimit -f 1; exec '$SUBUTAI' trace to-perfetto --json -o q.json t.sbt"
check "no room for it: exit 2, one line" is "$status $(grep -c . <<<"$err")" "2 1"
check "and nothing half written" is "$(echo q.json*)" "q.json*"
refuses '--thread: 7 is not in the trace, which has 1' trace dump --thread 7 t.sbt
refuses '--thread goes with dump only' trace info --thread 0 t.sbt

SUBUTAI_RECORD=t.sbt run env LD_PRELOAD="$RECORDING_LIBRARY" "$SUBJECT" locks
check "a file that exists is not touched without the command" possible t.sbt mutex_lock=10
check "the trace is beside it" is "$(printf '%s\n' t.*.sbt | wc -l)" 1
subutai compare --runs 1 --warmup 0 --engines glibc,glibc:record=t.sbt -- "$SUBJECT" everything
check "compare with a recording engine: exit 0" is "$status" 0
check "and its trace" possible t.sbt mutex_lock=$((2 * rounds))
finish
