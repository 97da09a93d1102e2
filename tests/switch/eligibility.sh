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
    reason=$(sed -n 's/^subutai: waiting adaptively, not by switching: the program uses //p' <<<"$err")
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
    check "$symbol: doctor says so" matches "$out" '--wait switch: can be used'
done < <(tr ' ' '\n' <<<"$ALLOWED")
run "$SUBUTAI" doctor "$SUBJECTS/switch-eligible-sigaction"
check "a program with handlers: main waits in the kernel" matches "$out" 'but the main thread waits in the kernel'

run "$SUBUTAI" doctor "$SUBJECTS/switch-eligible-dlopen"
check "a program that loads code: checked then" matches "$out" 'can be used; code that it loads later is checked when it is loaded'

# Suites that are run with --wait switch: would one be refused, its results would be those of adaptive waiting.
for program in $SWITCHED_SUITES; do
    run "$SUBUTAI" doctor "$program"
    check "${program##*/}: switched where the suite says so" matches "$out" '--wait switch: can be used'
done

run "$SUBUTAI" run --engine ni --wait switch -- "$SUBJECTS/switch-subject" own-state
check "engine ni with NI threads says that it does not" matches "$err" 'engine ni does not switch with NI threads'
check "and runs" is "$status" 0
run "$SUBUTAI" run --verbose 2 --engine ni --ni-service inline --wait switch -- "$SUBJECTS/switch-subject" own-state
check "engine ni, inline: switched" matches "$err" 'waiting by switching'
check "and runs" is "$status" 0
finish
