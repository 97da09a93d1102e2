#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Which programs are switched: what the library says and what doctor says beforehand are the same.
. "$SOURCE_ROOT/tests/ni/lib.sh"

not() {
    ! "$@"
}

# says SUBJECT: what the library has to say about it.
says() {
    run "$SUBUTAI" run --verbose 2 --wait "${2-switch}" -- "$SUBJECTS/$1"
}

while read -r symbol; do
    says "switch-ineligible-$symbol"
    check "$symbol: runs" is "$status" 0
    reason=$(sed -n 's/^subutai: [^:]*: threads are not switched but wait adaptively: the program uses //p' <<<"$err")
    check "$symbol: stepped aside for" matches "$reason" "^$symbol, which [a-zA-Z ,']+$"
    check "$symbol: not switched" not grep -q 'waiting by switching' <<<"$err"
    run "$SUBUTAI" doctor "$SUBJECTS/switch-ineligible-$symbol"
    check "$symbol: doctor has the same reason" matches "$out" "cannot be used:.*uses $reason"
    run "$SUBUTAI" doctor --json "$SUBJECTS/switch-ineligible-$symbol"
    check "$symbol: also in JSON" matches "$out" '"switchable": ?false'
    says "switch-ineligible-$symbol" 'switch!'
    check "$symbol: switched if insisted" matches "$err" 'waiting by switching'
done < <(tr ' ' '\n' <<<"$REFUSED")

while read -r symbol; do
    says "switch-eligible-$symbol"
    check "$symbol: switched" matches "$err" 'waiting by switching'
    run "$SUBUTAI" doctor "$SUBJECTS/switch-eligible-$symbol"
    check "$symbol: doctor says so" matches "$out" '--wait auto \(the default\), --wait switch: can be used'
done < <(tr ' ' '\n' <<<"$ALLOWED")
run "$SUBUTAI" doctor "$SUBJECTS/switch-eligible-sigaction"
check "a program that may have handlers: main waits in the kernel from the first one on" \
    matches "$out" 'but from the first signal handler on the main thread waits in the kernel'
run "$SUBUTAI" doctor "$SUBJECTS/switch-eligible-pthread_sigmask"
check "a program with masks: main waits in the kernel" matches "$out" 'but the main thread waits in the kernel'

run "$SUBUTAI" doctor "$SUBJECTS/switch-eligible-dlopen"
check "a program that loads code: checked then" matches "$out" 'can be used; code that it loads later is checked when it is loaded'

# The line about it: once in a tree of processes, if switching was asked for by name.
subject=$SUBJECTS/switch-ineligible-sigset line=': threads are not switched but wait adaptively: the program uses sigset, which '
n_lines() {
    check "$1" is "$(grep -c "$line" <<<"$err")" "$2"
}
left() {
    compgen -G '/dev/shm/subutai-said-*'
}
left_before=$(left)
run "$SUBUTAI" run --wait switch -- "$subject"
n_lines "asked for by name: a line" 1
check "which names the program" matches "$err" '^subutai: switch-ineligible-sigset: '
run "$SUBUTAI" run --wait switch -- "$subject"
n_lines "another run is another tree" 1
run "$SUBUTAI" run -- "$subject"
check "not asked for: nothing is said" is "$err" ''
run "$SUBUTAI" run --wait switch -- bash -c '"$0" & "$0" & wait; "$0"; bash -c "\"$0\"; exit 0" "$0"' "$subject"
n_lines "four processes of a tree: one line" 1
run "$SUBUTAI" run --wait switch -- bash -c 'env -i "$0"; env -i LD_PRELOAD="$LD_PRELOAD" SUBUTAI_WAIT=switch "$0"; "$0"' "$subject"
n_lines "a process that has lost the environment is not served; one with half of it is a tree of its own" 2
run "$SUBUTAI" run --verbose 2 --wait switch -- bash -c '"$0"; "$0"' "$subject"
n_lines "verbose: each process" 2
run "$SUBUTAI" run --verbose 0 --wait switch -- bash -c '"$0"; "$0"' "$subject"
check "quiet: none" is "$err" ''
run env LD_PRELOAD="$BUILD_ROOT/libsubutai/libsubutai.so" SUBUTAI_WAIT=switch LIBSUBUTAI_TREE=../../tmp/1-1 "$subject"
n_lines "a name that the command does not give makes no file" 1
run "$SUBUTAI" run --wait switch -- "$SUBUTAI" run --wait switch -- "$subject"
n_lines "a command under the command" 1
run "$SUBUTAI" compare --runs 2 --warmup 0 --engines glibc,direct:wait=switch -- "$subject"
n_lines "all runs of a comparison are one tree" 1
line='a filter of system calls'
run "$SUBUTAI" run --wait switch -- "$SUBJECTS/switch-sandboxed"
n_lines "processes that can make no file, forked by one that was served: one line" 1
run "$SUBUTAI" run -- "$SUBJECTS/switch-sandboxed"
check "and none if not asked for" is "$status $err" '0 '
check "no file is left" is "$(left)" "$left_before"

# Signals that are ignored from the start, by the program's parent, are not the program's.
# shellcheck disable=SC2016 # it is the inner shell's
run bash -c 'trap "" SIGRTMAX SIGRTMAX-1; exec "$@"' bash "$SUBUTAI" run --verbose 2 --wait switch -- \
    env SWITCHED=1 "$SUBJECTS/switch-recall" kill-read
check "the highest signals are ignored from the start: switched" matches "$err" 'waiting by switching'
check "and signals to threads arrive" is "$status" 0

# Suites that are run with --wait switch: would one be refused, its results would be those of adaptive waiting.
for program in $SWITCHED_SUITES; do
    run "$SUBUTAI" doctor "$program"
    check "${program##*/}: switched where the suite says so" matches "$out" '--wait auto \(the default\), --wait switch: can be used'
done

run "$SUBUTAI" run --engine ni --wait switch -- "$SUBJECTS/switch-subject" own-state
check "engine ni with NI threads says that it does not" matches "$err" 'engine ni does not switch with NI threads'
check "and runs" is "$status" 0
run "$SUBUTAI" run --verbose 2 --engine ni --ni-service inline --wait switch -- "$SUBJECTS/switch-subject" own-state
check "engine ni, inline: switched" matches "$err" 'waiting by switching'
check "and runs" is "$status" 0
finish
