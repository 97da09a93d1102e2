#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# tests/posix/repeat itself: of runs that fail on a full machine, which are done again? Those alone in which a call was
# refused a thread or memory. Names of tests, what checks expect, and stacks have the same words.
. "$SOURCE_ROOT/tests/command/lib.sh"

status=0 out='' err='' # of no run of the command

# fails SECONDS STATUS LINE...: what becomes of such a run, of which the limit is 2 s
fails() {
    cat >subject <<EOF
#!/bin/bash
printf '%s\n' $(printf '%q ' "${@:3}")
sleep $1
exit $2
EOF
    chmod +x subject
    python3 - "$SOURCE_ROOT/tests/posix/repeat" "$FULLNESS" <<'EOF'
import importlib.machinery, importlib.util, sys, types
loader = importlib.machinery.SourceFileLoader("repeat", sys.argv[1])
repeat = importlib.util.module_from_spec(importlib.util.spec_from_loader("repeat", loader))
sys.dont_write_bytecode = True
loader.exec_module(repeat)
fullness = float(sys.argv[2])
repeat.Machine = lambda: types.SimpleNamespace(fullness=lambda: fullness, refusals=lambda: 0)
repeat.tests_of = lambda options: {"subject": {"name": "subject", "cmd": ["./subject"], "env": {}, "workdir": None}}
options = types.SimpleNamespace(results="results", runs=1, jobs=1, cpus=1, seconds=1.5, limit=2, stretch=1, part=1)
repetition = repeat.Repetition(options)
repetition.results = {"subject": {**repeat.NEW, "failures": []}}
sys.stderr = open("/dev/null", "w")
repetition.go()
done = repetition.results["subject"]
print("failure" if done["failures"] else "done again" if done["refused"] else "passed")
EOF
}

FULLNESS=0.9
check "a thread was refused" is "$(fails 0 1 'not ok 1 - creates' '# thread.c:9: pthread_create returned EAGAIN, not 0')" "done again"
check "in a program's own words" is "$(fails 0 1 'fork: Resource temporarily unavailable')" "done again"
check "errno of a call that was refused" is \
    "$(fails 0 1 'not ok 1 - maps' '# map.c:9: mmap(NULL, 1) returned -1 with errno ENOMEM, not 0')" "done again"
check "it passes" is "$(fails 0 0 'ok 1 - a wait returns_EAGAIN')" "passed"
check "another test's name says EAGAIN" is "$(fails 0 1 'ok 1 - wait__returned EAGAIN' 'not ok 2 - wakes' '# futex.c:9: woken is 0, not 1 (1)')" "failure"
check "the test's own name says so" is "$(fails 0 1 'not ok 1 - futex_wait__another_value_returns_EAGAIN' '# futex.c:9: r is 0, not 1 (1)')" "failure"
check "EAGAIN is what should be" is "$(fails 0 1 'not ok 1 - tries' '# sem.c:9: sem_trywait(&sem) returned 0 with errno 0, not -1 with EAGAIN')" "failure"
check "it ends by a signal" is "$(fails 0 139 'ok 1 - returns_EAGAIN')" "failure"
check "it hangs" is "$(fails 3 0 '# thread.c:9: pthread_create returned EAGAIN, not 0')" "failure"
FULLNESS=0.1
check "a thread was refused, and there was room" is "$(fails 0 1 '# thread.c:9: pthread_create returned EAGAIN, not 0')" "failure"
finish
