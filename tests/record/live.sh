#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# FILE.live: how long it is locked, when it is removed, and what a reader believes of it.
. "$(dirname "$0")/../command/lib.sh"
: "${SUBJECT:?}" "${CHECK:?}" "${RECORDING_LIBRARY:?}"
ulimit -c 0

recorded() { # ARG...: by the library alone, so that no command completes the trace
    rm -f t.*
    run env SUBUTAI_RECORD="$PWD/t.sbt" LD_PRELOAD="$RECORDING_LIBRARY" "$SUBJECT" "$@"
}
completed() { # FILTER
    subutai report --json t.sbt
    json ".[0] | .trace.completed and ($1)" && "$CHECK" t.sbt >/dev/null && test ! -e t.sbt.live
}
waiting='[.unended[] | select(.kind == "cond")] | length'

recorded closes t.sbt.live
check "a program that closes all descriptors still has the file's lock" is "$status $out" "137 locked"
check "and its later threads are in the file" completed "$waiting == 1"

recorded outlives t.sbt.live said
check "a program with a child that outlives it: is killed" is "$status" 137
comes test -s said
check "the child, which has done nothing, has not its lock" is "$(cat said)" free
check "so its trace is completed" completed "$waiting == 3"
rm said

rm -f t.*
recorded forks 300
check "children that lock in a handler as soon as they live" is "$status $out" "0 done"

recorded closes t.sbt.live
"$SUBJECT" reads t.sbt.live 300 >reading &
comes grep -q reads reading
check "a reader waits for another one" completed true
wait

# Files that are not the recorder's.
rm -f t.*
echo mine >t.sbt.live
subutai record -o t.sbt -- "$SUBJECT" forks 1
check "a file of the user's of that name stays" is "$status $(cat t.sbt.live)" "0 mine"
recorded forks 1
echo mine >t.sbt.live
rm -f t.sbt
run env SUBUTAI_RECORD="$PWD/t.sbt" LD_PRELOAD="$RECORDING_LIBRARY" "$SUBJECT" closes t.sbt.live
check "also without the command" is "$status $(cat t.sbt.live)" "137 mine"

# What is in the trace stays readable, whatever is in the other file.
recorded outlives t.sbt.live said
comes test -s said
rm said
mv t.sbt.live kept.live
cp t.sbt kept.sbt
subutai trace info --json t.sbt
n=$(jq .events <<<"$out")
check "a killed program's blocks" test "$n" -gt 20000
size=$(stat -c %s kept.live)
n_bad=0
for ((at = 8; at < size; at += size / 61)); do
    cp kept.sbt t.sbt && cp kept.live t.sbt.live
    head -c 64 /dev/urandom | dd of=t.sbt.live bs=1 seek=$at conv=notrunc status=none
    subutai trace info --json t.sbt
    [[ $status == 0 ]] && json ".[0].events >= $n" && continue
    n_bad=$((n_bad + 1))
    note "damaged at byte $at: $status $out $err"
done
check "damaged anywhere: the trace has what it had" is $n_bad 0
recorded closes t.sbt.live
check "more events than a recorder has" "$SUBJECT" floods t.sbt.live
subutai trace info --json t.sbt
check "are no more than a block takes" is "$status" 0
# The version before this one.
cp kept.sbt t.sbt && cp kept.live t.sbt.live
printf 2 | dd of=t.sbt.live bs=1 seek=7 conv=notrunc status=none
subutai report t.sbt
check "of the version before: it is said" matches "$status $(tr -s ' \n' ' ' <<<"$out")" \
    '^0 .*FILE.live has it, and was not added: it is of another version of Subutai'
rm -f t.sbt
run env SUBUTAI_RECORD="$PWD/t.sbt" LD_PRELOAD="$RECORDING_LIBRARY" "$SUBJECT" closes t.sbt.live
check "that of another trace under that name takes its place" is "$status $out $(head -c 8 t.sbt.live)" "137 locked $(head -c 8 kept.live)"
# As where another version has written it: the word at byte 92 is the size of an entry of a profile's tables.
cp kept.sbt t.sbt && cp kept.live t.sbt.live
printf '\040' | dd of=t.sbt.live bs=1 seek=92 conv=notrunc status=none
for command in 'trace info' report; do
    # shellcheck disable=SC2086 # words
    subutai $command t.sbt
    check "$command: of another version: it is said" matches "$status $(tr -s ' \n' ' ' <<<"$out")" \
        '^0 .*not whole.*FILE.live has it, and was not added: it is of another version of Subutai'
done
check "and it stays" test -e t.sbt.live
finish
