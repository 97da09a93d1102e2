#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# tests/lib itself: each check fails when it should and says what it found, a test that fails is a point that fails, and
# each layer's tests notice a broken library. In shell, so that nothing is tested by itself.
. "$SOURCE_ROOT/tests/command/lib.sh"
: "${SUBJECT:?}" "${SUITE:?}" "${GOES_ON:?}" "${BROKEN:?}" "${TORTURE:?}" "${POSIX:?}" "${NI_MANY:?}" "${SWITCH_TIMED:?}"

# failed FILE REGEX: status 1, and one line that names the file, a line and what was found.
failed() {
    is "$status" 1 && is "$out" "" && matches "$err" "^([^:]*/)?${1//./\\.}:[0-9]+: $2\$"
}
fails() { # SCENE REGEX [FILE]
    run "$SUBJECT" "$1"
    check "$1 fails and says why" failed "${3-subject.c}" "$2"
}

fails check 'two == 3 is false'
line=$(grep -n 'CHECK(two == 3);' "$SOURCE_ROOT/tests/lib/test/subject.c")
check "and where" matches "$err" "subject\.c:${line%%:*}:"
fails check_int 'two is 2, not 3 \(3\)'
fails check_int_wide 'two \+ \(1ll << 32\) is 4294967298, not 2 \(2\)'
fails check_rc 'pthread_mutex_trylock\(&held\) returned EBUSY, not EINVAL'
fails ok 'pthread_mutex_trylock\(&held\) returned EBUSY, not 0'
fails check_errno_other 'close\(-1\) returned -1 with errno EBADF, not -1 with EINTR'
fails check_errno_none 'two returned 2 with errno 0, not -1 with EBADF'
fails check_errno_stale 'two - 3 returned -1 with errno 0, not -1 with EBADF'
fails sys 'close\(-1\) failed: EBADF'
fails ok_errno 'close\(-1\) returned -1 with errno EBADF, not 0'
fails ok_errno_number 'two returned 2 with errno [A-Z0-9]+, not 0'
fails fail 'after 2'
fails long_message '0{400,}'
fails in_a_thread 'two == 3 is false'
fails in_a_handler 'two == 3 is false'
fails child_dies 'the child process died of signal 9' processes.c
fails child_exits 'the child process exited with 2, not 0' processes.c
fails child_exits_with_another 'the child process exited with 2, not 3' processes.c
fails child_never_was 'child > 0 is false' processes.c
fails child_of_another 'pid is -1, not [0-9]+ \(child\)' processes.c
fails start_fails 'pthread_create returned E[A-Z]+' threads.h
fails start_small_fails 'pthread_attr_setstacksize\(&attr, stack\) returned EINVAL, not 0' threads.h
fails join_fails 'pthread_join\(thread, &value\) returned EDEADLK, not 0' threads.h
fails join_not_cancelled 'thread_join\(thread\) == PTHREAD_CANCELED is false' threads.h
fails proc_kib_of_nothing 'proc_status\("self", key, value, sizeof value\) is false' proc.c

run "$SUBJECT" in_a_child
check "in_a_child fails in the child, and then in its parent" matches "$status $err" \
    $'^1 [^\n]*subject\\.c:[0-9]+: two == 3 is false\n[^\n]*processes\\.c:[0-9]+: the child process exited with 1, not 0$'
for scene in passes clocks asleep asleep_not_before_there awaits proc one_cpu; do
    run "$SUBJECT" "$scene"
    check "$scene: right" is "$status$out$err" 0
done

# prints SCENE STATUS LINES
prints() {
    run "$SUBJECT" "$1"
    check "$1: its lines and status" is "$status $out" "$2 $3"
}
prints tap_all 0 $'1..3\nok 1 - two is 2\nok 2 - three # SKIP not today\n# between\nok 3 - four'
prints tap_one_fails 1 $'not ok 1 - two is three\nok 2 - afterwards\n1..2'
prints tap_too_few 1 $'1..2\nok 1 - one'
prints tap_none 1 '1..0'
prints tap_skipped 0 '1..0 # SKIP no such machine'
prints tap_bails_out 1 'Bail out! no memory'
prints report_broken 1 $'kept: yes\nbroken: NO\nkept again: yes'
prints report_kept 0 'kept: yes'
# Every scene of the subject stands above.
untested() {
    comm -23 <("$SUBJECT" | sort) <(sed -nE 's/^(fails|prints) ([a-z_]+) .*/\2/p; s/^run "\$SUBJECT" ([a-z_]+)$/\1/p; /^for scene in/s/[;]|for scene in| do//gp' "${BASH_SOURCE[0]}" | tr ' ' '\n' | sort)
}
check "every scene is played" is "$(untested)" ""

run "$GOES_ON"
check "a program that goes on: what it finds, its errno, its checks, the end" is "$out" \
    $'errno == 0 is false\nerrno is 33, not 0 (0)\n3 checks\nno further'
check "FAIL ends it" is "$status" 134

check "limits are stretched for busy machines" is "$(CK_TIMEOUT_MULTIPLIER=3 stretched 20)" 60
check "also by a fraction, to whole seconds" is \
    "$(for by in 1.5 .25 2. 1.0999; do CK_TIMEOUT_MULTIPLIER=$by stretched 5; done | tr '\n' ' ')" "8 2 10 6 "
sleep 100 &
sleeper=$!
check "a process that goes on is one" eval '! no_process $sleeper'
(sleep 0.1 && kill -KILL $sleeper) &
check "its end is waited for, and it need not be reaped for that" comes no_process $sleeper
check "no process is none" no_process
CK_TIMEOUT_MULTIPLIER=10 run sh -c 'ps -o args= -p $PPID'
check "those of programs, too" matches "$out" '^timeout -k 5 600 sh '

# One point for each test; what failed is said behind it.
run "$SUITE" -hangs
suite=$out
check "a suite with failures has status 1" is "$status" 1
check "its plan" matches "$suite" '^1\.\.12'
point_is() { # LINE [NOTE-REGEX]
    local following
    following=$(grep -A 1 -xE "$1" <<<"$suite") || { echo "# no line $1" && return 1; }
    [ -z "${2-}" ] || matches "$(tail -n 1 <<<"$following")" "$2"
}
check "a test that passes" point_is 'ok 1 - passes: nothing is wrong'
check "one without a text" point_is 'ok 2 - passes_without_a_text'
check "a failed check" point_is 'not ok 3 - fails: by a check' '^# .*suite\.c:[0-9]+: two is 2, not 3 \(3\)$'
check "a failed assertion of Check" point_is 'not ok 4 - fails_by_check: .*' '^# .*suite\.c:[0-9]+: .*two == 2.*3'
check "a failure in a thread" point_is 'not ok 5 - fails_in_a_thread: .*' '^# .*suite\.c:[0-9]+: there$'
check "a failure in a child" point_is 'not ok 6 - fails_in_a_child: .*' 'the child process exited with 99, not 0$'
check "which the child has said" matches "$err" '# in a child process: .*suite\.c:[0-9]+: there'
check "a death" point_is 'not ok 7 - dies: .*' 'signal 9'
check "a skip" point_is 'ok 8 - is_skipped: with a reason # SKIP two is two'
check "a skip in a child" point_is 'not ok 9 - skips_in_a_child: .*'
check "each of several" point_is 'ok 10 - every_number 0: but the second'
check "and the one of them that fails" point_is 'not ok 11 - every_number 1: .*' 'number != 1 is false$'
check "and goes on" point_is 'ok 12 - every_number 2: but the second'
run "$SUITE" passes is_skipped
check "tests by name" is "$status $(grep -c ^ok <<<"$out")" "0 2"
run "$SUITE" -hangs -dies
check "all but those" is "$status $(head -n 1 <<<"$out")" "1 1..11"
run env CK_DEFAULT_TIMEOUT=2 CK_TIMEOUT_MULTIPLIER=1 "$SUITE" hangs
suite=$out
check "a hang" point_is 'not ok 1 - hangs: .*' '[Tt]ime'
run "$SUITE" no_such_test
check "none of that name" is "$status $out" "1 Bail out! no such test"

# noticed TEXT COMMAND...: passes as it is, and fails where locks keep no thread out and timed waits end at once.
noticed() {
    local text=$1
    shift
    run "$@"
    check "$text: passes" is "$status" 0
    run env LD_PRELOAD="$BROKEN" "$@"
    check "$text: the broken library is noticed" test "$status" -ne 0 -a "$status" -ne 124
}
noticed "torture" "$TORTURE" --only mutex-exclusion --stall 5
check "torture: the torture that failed, and the check" matches "$out" '# FAILED .*objects\.c:[0-9]+ .*not ok 1 - mutex-exclusion: '
noticed "the subjects of ni" "$NI_MANY" 8 1 200000
noticed "the scenes of switching" "$SWITCH_TIMED" timed-many

# excluding TOPIC TEST...: each of the tests of the POSIX suite notices it.
excluding() {
    local topic=$1 name
    shift
    for name; do
        run env LD_PRELOAD="$BROKEN" "$POSIX/posix_$topic" "$name"
        check "$topic: the broken library is noticed by $name" matches "$status $out" "^1 1\.\.1"$'\n'"not ok 1 - $name: "
    done
}
excluding mutex mutex_lock__normal_excludes mutex_lock__recursive_excludes mutex_lock__errorcheck_excludes \
    mutex_lock__adaptive_excludes mutex_trylock__never_barges_into_a_section mutex_unlock__makes_writes_visible
excluding mutex_timed mutex_timedlock__many_short_deadlines
excluding rwlock rwlock__reader_preference_excludes rwlock__writer_preference_excludes \
    rwlock__writer_nonrecursive_excludes rwlock_unlock__makes_writes_visible
excluding spin spin_lock__excludes
excluding sem sem_wait__binary_excludes sem_wait__counting_admits_at_most_n sem_post__ping_pong
excluding c11 mtx_lock__excludes
excluding shared shared_mutex__excludes_processes shared_mutex__recursive_excludes_processes \
    shared_mutex__errorcheck_excludes_processes shared_mutex__adaptive_excludes_processes \
    shared_rwlock__excludes_processes shared_spin__excludes_processes
excluding thread_many thousand_threads__mutex thousand_threads__rwlock
finish
