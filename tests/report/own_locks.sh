#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Locks that a program makes of futexes are told from waits for work, in records and in profiles.
. "$(dirname "$0")/../command/lib.sh"
: "${OWN_LOCKS:?}" "${RUST_LOCKS:?}"

# judged CONDITION CALLS PROGRAM ARGUMENT: records and reports the program until CONDITION (of its JSON) holds, twenty
# times at most: the runs are short, and another program may take the processors.
judged() {
    local condition=$1 calls=$2
    shift 2
    for _ in {1..20}; do
        subutai record -o "${2}.sbt" --engine glibc --record-calls "$calls" -- "$@"
        subutai report --json "${2}.sbt"
        ! json "$condition" >/dev/null || break
    done
}

# is_lock NAME: the advice is about it, and all waits are contention. On a busy machine its holder is off the processor.
is_lock() {
    echo '.[0] as $r | $r.advice[0] as $a | $r.objects[] | select(.id == $a.object) |
        (.name == "'"$1"'" or .name == "'"$1"'+0x4") and .as_lock and .hold.n > 3 and .hold_of == "waited" and $r.summary.idle.ns == 0 and
        $r.summary.contention.ns > 0 and $r.summary.contention.ns == $r.summary.waiting.futex.ns and
        $r.summary.event_waits_kept.ns == 0 and ($a.cause == "lock-over-io" or
        ($a.cause == "hot-lock" and ($a.command | contains("--engines glibc,direct,direct:wait=switch -- "))))'
}
is_work='.[0] | (.objects | map(.as_lock) | any | not) and .summary.contention.ns == 0 and .summary.idle.share > 0.3 and
    (.advice | any(.cause == "idle" and (.text | contains("it is contention") == ("'

for calls in all waits; do
    while read -r name variable; do
        judged "$(is_lock "$variable")" $calls "$OWN_LOCKS" "$name"
        check "$name, $calls: the advice is about the lock $variable" json "$(is_lock "$variable")"
    done <<'EOF2'
mutex own_mutex
semaphore own_semaphore
rwlock own_rwlock
EOF2
    while read -r name unclear; do
        condition=$is_work$unclear'" == "unclear"))))'
        judged "$condition" $calls "$OWN_LOCKS" "$name"
        check "$name, $calls: threads that wait for work are idle, $unclear" json "$condition"
    done <<'EOF2'
cond clear
chain unclear
tickets clear
children unclear
EOF2
done

if [ "$RUST_LOCKS" = none ]; then
    skip "Rust's locks" "no rustc"
else
    for calls in all waits; do
        judged "$(is_lock rust_locks::QUEUE)" $calls "$RUST_LOCKS" mutex
        check "Rust's Mutex, $calls" json "$(is_lock rust_locks::QUEUE)"
        judged "$(is_lock rust_locks::TABLE)" $calls "$RUST_LOCKS" rwlock
        check "Rust's RwLock, $calls" json "$(is_lock rust_locks::TABLE)"
        judged "${is_work}clear\" == \"unclear\"))))" $calls "$RUST_LOCKS" condvar
        check "Rust's Condvar, $calls: threads that wait for work are idle" json "${is_work}clear\" == \"unclear\"))))"
        judged "${is_work}unclear\" == \"unclear\"))))" $calls "$RUST_LOCKS" park
        check "Rust's park, $calls: idle, or a lock that parks each thread" json "${is_work}unclear\" == \"unclear\"))))"
    done
fi

subutai record -o stacks.sbt --record-stacks on --engine glibc -- "$OWN_LOCKS" mutex
subutai report stacks.sbt
check "a lock of a library's own: with stacks, its callers" matches "$(tr -s ' \n' ' ' <<<"$out")" \
    'own_mutex, a futex that threads use as a lock, .*Its longest wait: .*mutex_thread <'
subutai record -o plain.sbt --engine glibc -- "$OWN_LOCKS" mutex
subutai report plain.sbt
check "and without, how to get them" matches "$(tr -s ' \n' ' ' <<<"$out")" 'Call stacks show its callers \(--stacks\)'
subutai report --json --predict plain.sbt
check "--predict: not simulated, since the calls that found it free are not known" json '.[0].advice[0].gain |
    .basis != "simulated" and (.not_simulated | contains("made of a futex"))'
finish
