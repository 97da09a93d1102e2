#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The engine det says when no thread can go on any more, and says nothing where one still can.
. "$(dirname "$0")/lib.sh"
: "${DEADLOCKS:?}" "${SIGNALS:?}"

# begin NAME SCENE OPTION...: in the background; what it says is in NAME.said, its output in NAME.out.
begin() {
    local name=$1 scene=$2
    shift 2
    setsid "$SUBUTAI" run --engine det --log "$name.said" "$@" -- "$DEADLOCKS" "$scene" >"$name.out" 2>"$name.err" </dev/null &
    pids[$name]=$!
    started+=($!)
}
# kill_all: those that do not end by themselves.
kill_all() {
    for name in "${!pids[@]}"; do
        kill -KILL -- -"${pids[$name]}" 2>/dev/null
        wait "${pids[$name]}" 2>/dev/null
    done
    started=() pids=()
}
said() {
    sed -E 's/ in process [0-9]+/ in process N/; s/ at (command-deadlocks\+0x[0-9a-f]+)/ at SITE/g' "$1.said" 2>/dev/null
}
declare -A pids=() stuck=(
    [twice]='thread 0 (main) joins thread 1; thread 1 waits for mutex#1, which it holds itself'
    [left]='thread 0 (main) waits for mutex#1, held by thread 1, which has ended'
    [ends]='thread 0 (main) waits for cond#2'
    [gone]='thread 1 waits for mutex#1, which it holds itself; thread 2 waits for mutex#1, held by thread 1'
    [locks]='thread 0 (main) waits to write-lock rwlock#1 with readers: 2; thread 1 waits at barrier#2 with 1 of 3 threads'
    [onces]='thread 0 (main) waits for sem#1; thread 1 waits for futex#2'
    [child]='thread 0 (main) joins thread 1; thread 1 waits for mutex#1'
)
ways=("--wait adaptive" "--wait switch" --serial)

for i in "${!ways[@]}"; do
    for scene in "${!stuck[@]}"; do
        # shellcheck disable=SC2086 # words
        begin "$scene.$i" "$scene" ${ways[i]}
    done
done
for i in "${!ways[@]}"; do
    for scene in "${!stuck[@]}"; do
        comes grep -qs deadlock "$scene.$i.said"
        check "told: $scene (${ways[i]})" is "$(said "$scene.$i")" "subutai: deadlock in process N: no thread can go on: ${stuck[$scene]}"
    done
done
check "and no process is ended by it" kill -0 "${pids[twice.0]}" "${pids[gone.1]}" "${pids[locks.2]}"
wait "${pids[child.0]}"
check "a parent that ends a deadlocked child goes on" is "$? $(cat child.0.out)" "0 done"
kill_all

still=(alarmed handled handled_long handled_asleep timed notified pause sigwait read shared timedwait sleep)
for i in "${!ways[@]}"; do
    for scene in "${still[@]}" computes; do
        # shellcheck disable=SC2086
        begin "$scene.$i" "$scene" ${ways[i]}
    done
done
for i in "${!ways[@]}"; do
    for scene in "${still[@]}" computes; do
        wait "${pids[$scene.$i]}"
        check "not told: $scene (${ways[i]})" is "$? $(cat "$scene.$i.out") $(grep -s deadlock "$scene.$i.said")" "0 done "
    done
done
started=() pids=()

# A wait that looks for a deadlock ends by signals as one that does not.
for i in "${!ways[@]}"; do
    for scene in restarted restarted_on_word interrupted; do
        # shellcheck disable=SC2086
        within 30 "$SUBUTAI" run --engine det ${ways[i]} -- "$SIGNALS" $scene
        check "as in the kernel: $scene (${ways[i]})" is "$status $out" "0 done"
    done
done

# A signal may let it go on, and that is said.
begin signalled signalled
comes grep -qs deadlock signalled.said
check "with a handler that is said" is "$(said signalled)" \
    "subutai: deadlock in process N, unless a signal comes: no thread can go on: thread 0 (main) waits for sem#1"
kill -USR1 "${pids[signalled]}"
wait "${pids[signalled]}"
check "a signal lets it go on" is "$? $(cat signalled.out) $(said signalled | tail -n 1)" \
    "0 done subutai: no deadlock in process N: a signal handler lets a thread go on"
started=() pids=()

# With a log: call sites, and the threads in the log.
begin logged twice --schedule logged.schedule
comes grep -qs deadlock logged.said
kill_all
check "with a log the line has call sites" is "$(said logged)" \
    "subutai: deadlock in process N: no thread can go on: thread 0 (main) joins thread 1 at SITE; thread 1 waits for mutex#1, which it holds itself at SITE"
run "$SUBUTAI" schedule dump logged.schedule
check "and the log the threads" matches "${out//$'\n'/ }" \
    'thread 0 cannot go on: thread_join of thread 1 .*thread 1 cannot go on: mutex_lock mutex#1 held by thread 1 takes_twice'
run "$SUBUTAI" schedule dump --json logged.schedule
check "as JSON" json '[.[] | select(.kind == "deadlock")] | .[0].what == "thread_join" and .[0].other == 1 and
    .[1].thread == 1 and .[1].object_kind == "mutex" and .[1].object == 1 and .[1].other == 1'

within 30 "$SUBUTAI" run --engine det --deadlock abort -- "$DEADLOCKS" twice
check "--deadlock abort ends the process" is "$status $(grep -c 'deadlock in process' <<<"$err")" "134 1"

finish
