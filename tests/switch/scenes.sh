#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What could go wrong with waiting by switching: every scene of subject.c, subject_pin.c, timed.c, pin.c, main_thread.c, tid.c, signal_stack.c,
# recall.c and eligibility_dynamic.c, on the C library alone and switched.
. "$SOURCE_ROOT/tests/ni/lib.sh"

unset LD_LIBRARY_PATH # a plug-in is to be found by the path of the one that loads it
for subject in subject subject-pin timed pin main-thread tid signal-stack recall cancel eligibility-dynamic; do
    for scene in $("$SUBJECTS/switch-$subject"); do
        run "$SUBJECTS/switch-$subject" "$scene"
        check "$scene: the C library alone" is "$status" 0
        if [[ $scene == *filter* && $scene != *-from-the-start ]]; then
            run "$SUBUTAI" run --wait auto -- "$SUBJECTS/switch-$subject" "$scene"
            check "$scene: as by default" is "$status" 0
        fi
        run "$SUBUTAI" run --verbose 2 --wait switch -- env SWITCHED=1 "$SUBJECTS/switch-$subject" "$scene"
        check "$scene: switched" is "$status" 0
        if [[ $scene == never-* ]]; then
            check "$scene: not by switching" matches "$err" 'threads are not switched but wait adaptively: the program uses'
            continue
        fi
        check "$scene: by switching" matches "$err" 'waiting by switching'
        [[ $scene == ends-* && $scene != ends ]] || continue
        check "$scene: says so" matches "$err" 'threads are no longer switched but wait adaptively: .* uses .*, which '
    done
done
run "$SUBUTAI" run --verbose 2 --wait 'switch!' -- env SWITCHED=1 "$SUBJECTS/switch-main-thread" ends-by-sigset-while-main-waits
check "ends-by-sigset-while-main-waits, switched at all costs: goes on switching" is "$(grep -c 'no longer switched' <<<"$err")" 0
check "ends-by-sigset-while-main-waits, switched at all costs" is "$status" 0

run timeout -s KILL "$(stretched 60)" taskset -c "$(allowed_cpu)" "$SUBUTAI" run --verbose 2 --wait switch -- \
    env SWITCHED=1 BESIDE=1 "$SUBJECTS/switch-subject" yielders-beside
check "yielders-beside, one core: by switching" matches "$err" 'waiting by switching'
check "yielders-beside, one core: the other process gets few slices" is "$status" 0

# Where a thread lets others run only by yielding, or by waiting. The time limit has to, too. Long turns take 0.2 s, and 20 s if the yield gate
# is closed for them.
cpu=$(allowed_cpu)
for scene in main-gets-even-turns main-gets-odd-turns main-gets-waits main-gets-long-turns; do
    if ! chrt -f 2 taskset -c "$cpu" true 2>"$scratch/chrt"; then
        skip "$scene, SCHED_FIFO on one core" "not permitted: $(cat "$scratch/chrt")"
        continue
    fi
    run chrt -f 2 timeout -s KILL 15 chrt -f 1 taskset -c "$cpu" "$SUBUTAI" run --verbose 2 --wait switch -- \
        env SWITCHED=1 "$SUBJECTS/switch-subject-pin" "$scene"
    check "$scene, SCHED_FIFO on one core: by switching" matches "$err" 'waiting by switching'
    check "$scene, SCHED_FIFO on one core: main gets its turn" is "$status" 0
done
# The same, with a policy that another process sets while the program runs.
text="main-gets-long-turns, SCHED_FIFO set from outside"
if chrt -f 2 taskset -c "$cpu" true 2>"$scratch/chrt"; then
    run chrt -f 2 timeout -s KILL 15 chrt -o 0 taskset -c "$cpu" "$SUBUTAI" run --verbose 2 --wait switch -- \
        env SWITCHED=1 POLICY_FROM_OUTSIDE=1 "$SUBJECTS/switch-subject-pin" main-gets-long-turns
    check "$text: by switching" matches "$err" 'waiting by switching'
    check "$text: main gets its turn" is "$status" 0
else
    skip "$text" "not permitted: $(cat "$scratch/chrt")"
fi
finish
