#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Orders of locks in profiles: those that the program made, as often as it made them, with the locks held besides.
. "$(dirname "$0")/../command/lib.sh"
: "${SUBJECT:?}" "${CHECK:?}"

# orders: what the program in $out has said is in t.sbt
orders() {
    local said
    said=$("$CHECK" t.sbt <<<"$out") || { echo "# ${said//$'\n'/$'\n# '}" && false; }
}

for engine in glibc direct ni; do
    for what in pair crosswise kinds readers trylock gates waits cond pairs deep lives handlers ends; do
        rm -f ./*.sbt
        subutai record -o t.sbt --record-calls waits --engine $engine -- "$SUBJECT" "$what"
        check "$engine, $what: the program ends well" is "$status $err" "0 "
        check "$engine, $what: its orders" orders
    done
done
rm -f ./*.sbt
subutai record -o t.sbt --record-calls waits --engine glibc -- "$SUBJECT" always
check "new pairs in each second, of which there is room for a part: each is there" orders
while read -r what circles; do
    for how in waits all; do
        rm -f ./*.sbt
        subutai record -o t.sbt --record-calls $how --engine glibc -- "$SUBJECT" "$what"
        check "$what, $how recorded: the circles of a report" is "$("$SUBUTAI" report --json t.sbt | jq '.lock_order | length')" "$circles"
    done
done <<'END'
by_one_thread 0
by_two_threads 1
also_by_another 1
in_gate 0
in_two_gates 1
once_without_gate 1
by_readers 0
by_reader_and_writer 1
also_by_writer 1
also_in_read_gate 1
in_read_gate 1
in_write_gate 0
three_by_two 0
three_by_three 1
END
# the functions of each order's call stack, from the inside outwards
stacks() { "$SUBUTAI" report --json t.sbt | jq -c '([.sites[] | {(.id | tostring): .function}] | add) as $name
    | [.lock_order[0].orders[].stack | map($name[tostring])]'; }
rm -f ./*.sbt
subutai record -o t.sbt --record-calls waits --record-stacks 1 --engine glibc -- "$SUBJECT" by_two_threads
check "with stacks: its orders are the same" is "$("$SUBUTAI" report --json t.sbt | jq '.lock_order[0].orders | map(.n)' -c)" '[1,2]'
check "the stack of each order" is "$(stacks | jq -c 'map(map(select(. == "forward" or . == "backward")))')" '[["forward"],["backward"]]'
subutai report t.sbt
check "the report shows both" matches "$out" ' by forward#1: .*forward.* by backward#2: .*backward'
subutai record -o t.sbt --record-calls waits --engine glibc -- "$SUBJECT" by_two_threads
check "without the option there are none" is "$(stacks)" '[[],[]]'
check "bounded: 800 pairs in at most 60 kB" test "$(
    subutai record -o t.sbt --record-calls waits --engine glibc -- "$SUBJECT" pairs
    stat -c %s t.sbt
)" -lt 60000
finish
