#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# tests/run itself: what it counts, also when meson or it is cut off. A script that takes the place of meson lists three
# tests for each suite and writes the log that a scene says.
. "$SOURCE_ROOT/tests/command/lib.sh"

mkdir -p bin build/meson-logs
touch build/build.ninja
cat >bin/meson <<'EOF'
#!/bin/bash
while [ $# -gt 0 ]; do
    case $1 in
    -C) dir=$2 ;;
    --suite) suite=$2 ;;
    --logbase) log=$2 ;;
    --timeout-multiplier) patience=$2 ;;
    --list)
        printf "subutai:$suite / %s\n" one two three
        exit
        ;;
    esac
    shift
done
result() { # NAME RESULT POINTS
    jq -cn '$ARGS.positional | {name: .[0], result: .[1], stdout: .[2], returncode: 0, duration: 0, command: ["a program"]}' \
        --args "subutai:$suite / $1" "$2" "$3" >>"$dir/meson-logs/$log.json"
}
[ "$SCENE" != empty ] || exit 0
if [ "$SCENE" = beside ]; then
    echo "$suite $CK_TIMEOUT_MULTIPLIER $patience" >>began
    for _ in {1..1000}; do [ "$(wc -l <began)" = 1 ] || break; sleep 0.1; done
    [ "$(wc -l <began)" = 2 ] || result three FAIL 'not ok 1 - alone'
fi
[ "$SCENE" != hangs ] || { touch began && exec sleep 600; }
result two OK $'ok 1\nok 2\n1..2'
[ "$SCENE" != fails ] || result three FAIL $'not ok 1 - it rains\n# 3 mm\nok 2'
[ "$SCENE" != 'lane killed' ] || kill -KILL "$(ps -o pgid= -p $$ | tr -d ' ')" # the first of its processes
[ "$SCENE" != killed ] || kill -KILL $$
[ "$SCENE" = fails ] || result three OK ''
result one SKIP ''
EOF
chmod +x bin/meson

# runs SCENE ARG... : also leaves the last line in $last.
runs() {
    about=$1
    run env -u CK_TIMEOUT_MULTIPLIER SCENE="$1" PATH="$PWD/bin:$PATH" "$SOURCE_ROOT/tests/run" build "${@:2}"
    last=${out##*$'\n'}
}

runs whole --only unit
check "passes" is "$status" 0
check "each point and each test without points" is "$last" "3 passed, 0 failed, 1 skipped"
runs whole --only bench --only lint --only posix
check "three lanes are added up" is "$last" "9 passed, 0 failed, 3 skipped"
check "in the order of the parts" matches "$out" "\] bench.*\] lint.*\] posix.*\] done"
runs whole --only unit --only unit
check "a part that is asked for twice counts once" is "$last" "3 passed, 0 failed, 1 skipped"
runs beside --only stress --only model
check "stress does not wait for what only computes" is "$status" 0
check "limits are stretched, and more so at a low priority" is "$(sort began | tr '\n' ' ')" "model 6 6 stress 3 3 "
runs fails --only unit
check "fails" is "$status" 1
check "the test is counted" is "$last" "3 passed, 1 failed, 1 skipped"
check "and shown" matches "$out" "---- subutai:unit / three: FAIL"
check "and named once more at the end" matches "$out" \
    "1 skipped"$'\n'"subutai:unit / three: FAIL, status 0: not ok 1 - it rains # 3 mm"$'\n'"3 passed, 1 failed"
runs killed --only unit
check "fails" is "$status" 1
check "what has no result is a failure" is "$last" "2 passed, 2 failed"
check "and is said" matches "$out" "unit: 2 of 3 tests have no result:"$'\n'"subutai:unit / one"$'\n'"subutai:unit / three"
runs empty --only unit
check "fails" is "$status$last" "10 passed, 1 failed"
check "and says so" matches "$out" "unit: meson ran nothing"
runs 'lane killed' --only unit --only sim --only model
check "fails" is "$status" 1
check "what it was about to do is a failure each" is "$last" "0 passed, 3 failed"
check "and is said" matches "$out" "unit: cut off.*sim: cut off.*model: cut off"
check "at the end too" matches "$out" "skipped"$'\n'"unit: cut off"$'\n'"sim: cut off"$'\n'"model: cut off"$'\n'"0 passed, 3 failed"

# When the time is over: what runs is ended, what has not begun does not, and all of it is named.
runs hangs --only unit --only sim --only stress --limit 2
check "a hang ends with the limit" is "$status" 1
check "each test that has no result is a failure" is "$last" "0 passed, 9 failed"
check "and is named" matches "$out" "unit: 3 of 3 tests have no result:.*subutai:unit / one.*subutai:sim / three.*subutai:stress / two"
check "and why is said at the end" matches "$out" "stress: the time was over, 2 s"$'\n'"0 passed, 9 failed$"
mkdir -p build-asan
touch build-asan/build.ninja
runs hangs --only asan --limit 2
check "a build that was ended is a failure" is "$status$last" "10 passed, 1 failed"
check "its directory stays" is "$(ls build-asan)" build.ninja
rm -r build-asan
run "$SOURCE_ROOT/tests/run" build --limit 0
check "a limit of nothing is refused" matches "$status $err" "^2 run: --limit needs a number of seconds"

# Ctrl-C on a terminal, once.
cat >terminal.py <<'END'
import os, pty, sys, time
child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[1], ["run", "build", "--only", "unit"])
deadline = time.monotonic() + 100 # nothing is expected then: it only ends what hangs
while not os.path.exists("began") and time.monotonic() < deadline:
    time.sleep(0.1)
os.write(terminal, b"\x03")
ended = 0
while ended == 0 and time.monotonic() < deadline:
    time.sleep(0.1)
    ended, status = os.waitpid(child, os.WNOHANG)
print(os.waitstatus_to_exitcode(status) if ended else "it goes on")
if not ended:
    os.kill(child, 15)
END
rm -f began
about=hangs
run env SCENE=hangs PATH="$PWD/bin:$PATH" python3 terminal.py "$SOURCE_ROOT/tests/run"
check "ends it" is "$out" 130
finish
