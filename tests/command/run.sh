#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# `subutai run`: the program's exit status, arguments, environment and process are its own.
. "$(dirname "$0")/lib.sh"
lib=(--library "$STUB")
stub=$(realpath "$STUB")

for code in 0 1 2 7 126 127 255; do
    subutai run "${lib[@]}" -- sh -c "exit $code"
    check "exit status $code is passed" is "$status" "$code"
done
for name in KILL SEGV TERM USR1; do
    # exec -a is not needed: `run` becomes the program, so the shell here sees the signal itself.
    { "$SUBUTAI" run "${lib[@]}" -- sh -c "ulimit -c 0; kill -$name \$\$"; } 2>/dev/null
    status=$? out='' err=''
    check "death by SIG$name is passed" is "$status" $((128 + $(kill -l $name)))
done
"$SUBUTAI" run "${lib[@]}" -- sh -c 'echo $$' >pid &
wait $!
status=$? out=$(cat pid) err=''
check "the program takes over the process id" is "$out" $!

subutai run "${lib[@]}" -- printf '<%s>' 'a b' '' "it's" '--engine' '*' $'line\nbreak'
check "arguments arrive as they are" is "$out" $'<a b><><it\'s><--engine><*><line\nbreak>'
subutai run "${lib[@]}" printf '<%s>' --engine=direct --help
check "without --, options after the program are the program's" is "$out" '<--engine=direct><--help>'
subutai run "${lib[@]}" -- sh -c 'echo "$0"'
check "argv[0] is what the user wrote" is "$out" sh
printf 'echo bare $1\n' >bare && chmod +x bare
subutai run "${lib[@]}" ./bare script
check "a script without #! goes to sh, as from a shell" is "$out" "bare script"
subutai run "${lib[@]}" -- sh -c 'echo to-stdout; echo to-stderr >&2; exit 3'
check "stdout is untouched" is "$out" to-stdout
check "stderr is untouched" is "$err" to-stderr
out=$(echo input | timeout "$(stretched 60)" "$SUBUTAI" run "${lib[@]}" cat)
check "stdin is untouched" is "$out" input
mkdir bin && printf '#!/bin/sh\necho second\n' >bin/tool && chmod +x bin/tool && mkdir first && : >first/tool
PATH=$scratch/first:$scratch/bin:$PATH subutai run "${lib[@]}" tool
check "a file in PATH that is not executable is passed over" is "$out" second

subutai run "${lib[@]}" -- env
check "LD_PRELOAD names the library" matches $'\n'"$out"$'\n' $'\n'"LD_PRELOAD=$stub"$'\n'
check "no option, no variable" is "$(grep -c ^SUBUTAI_ <<<"$out")" 0
LD_PRELOAD=$BUILD_ROOT/nowhere/libother.so subutai run "${lib[@]}" -- env
check "the user's preload stays, after ours" \
    matches $'\n'"$out"$'\n' "LD_PRELOAD=$stub:$BUILD_ROOT/nowhere/libother.so"$'\n'
subutai run "${lib[@]}" -- "$SUBUTAI" run "${lib[@]}" -- env
check "a nested run does not preload twice" matches $'\n'"$out"$'\n' $'\n'"LD_PRELOAD=$stub"$'\n'
LD_PRELOAD="/x/a.so /x/b.so" subutai run "${lib[@]}" -- env
check "entries separated by blanks are understood" matches "$out" "LD_PRELOAD=$stub:/x/a.so:/x/b.so"
subutai run "${lib[@]}" --engine direct --verbose=2 --no-children --spin-ns 5 --yields 6 --log 'my log' -- env
for variable in ENGINE=direct VERBOSE=2 CHILDREN=0 SPIN_NS=5 YIELDS=6 'LOG=my log'; do
    check "SUBUTAI_$variable is set" matches $'\n'"$out"$'\n' $'\n'"SUBUTAI_$variable"$'\n'
done
subutai run "${lib[@]}" --engine ni --mesh 4x2 --map file:tiles --ni-service dedicated --ni-threads=3 --time-scale 100 \
    --control-elements 5 --queue-elements 50 --control-full software --queue-full again --strict-paper \
    --data-load 300 --qos none --requests /r --stats --stats-file 'a file' -- env
for variable in ENGINE=ni MESH=4x2 MAP=file:tiles NI_SERVICE=dedicated NI_THREADS=3 TIME_SCALE=100 CONTROL_ELEMENTS=5 \
    QUEUE_ELEMENTS=50 CONTROL_FULL=software QUEUE_FULL=again STRICT_PAPER=1 DATA_LOAD=300 QOS=none REQUESTS=/r STATS=text \
    'STATS_FILE=a file'; do
    check "SUBUTAI_$variable is set" matches $'\n'"$out"$'\n' $'\n'"SUBUTAI_$variable"$'\n'
done
subutai run "${lib[@]}" --engine ni --stats=json --no-strict-paper env
check "--stats=json, and the program follows" matches $'\n'"$out"$'\n' $'\n'"SUBUTAI_STATS=json"$'\n'
check "--no-strict-paper" matches $'\n'"$out"$'\n' $'\n'"SUBUTAI_STRICT_PAPER=0"$'\n'
subutai run "${lib[@]}" --engine ni --stats env
check "--stats takes no word that follows" matches $'\n'"$out"$'\n' $'\n'"SUBUTAI_STATS=text"$'\n'
SUBUTAI_ENGINE=glibc SUBUTAI_YIELDS=9 subutai run "${lib[@]}" --engine direct -- env
check "an option wins over the variable" matches "$out" SUBUTAI_ENGINE=direct
check "and is set once" is "$(grep -c ^SUBUTAI_ENGINE <<<"$out")" 1
check "variables without an option are kept" matches "$out" SUBUTAI_YIELDS=9
subutai run "${lib[@]}" --children yes -- env
check "what the user wrote is what is set" matches "$out" SUBUTAI_CHILDREN=yes
STUB_SAY=1 subutai run "${lib[@]}" --engine glibc -- true
check "the preload is loaded into the program" is "$err" "subutai: stub loaded for glibc"
out=$(ulimit -v) && subutai run "${lib[@]}" -- sh -c 'exec sh -c "exit 9"'
check "a program that replaces itself" is "$status" 9

# Programs that would not start with a preload are started without it.
echo 'int main(void) { return 4; }' >plain.c
$CC -o plain plain.c && $CC -static -o static plain.c
STUB_SAY=1 subutai run "${lib[@]}" ./static
check "a static program runs" is "$status" 4
check "and the user is told" matches "$err" '^subutai: run: ./static runs without an engine: statically linked'
STUB_SAY=1 subutai run "${lib[@]}" --verbose 0 ./static
check "but not with --verbose 0" is "$err" ""
if $CC -fsanitize=address -o asan plain.c 2>/dev/null; then
    STUB_SAY=1 ASAN_OPTIONS=detect_leaks=0 subutai run "${lib[@]}" ./asan
    check "a program with AddressSanitizer runs, without the preload" is "$status" 4
    check "and the user is told" matches "$err" '^subutai: run: ./asan runs without an engine: AddressSanitizer[^$]*$'
else
    skip "a program with AddressSanitizer runs" "the compiler has no AddressSanitizer"
fi

# The build's own library, without --library.
cat >lock.c <<'END'
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int n;
static void *add(void *p) {
    for (int i = 0; i < 1000; i++) {
        pthread_mutex_lock(&m);
        n++;
        pthread_mutex_unlock(&m);
    }
    return p;
}
int main(void) {
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], 0, add, 0);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], 0);
    printf("%d\n", n);
    return 5;
}
END
$CC -pthread -o lock lock.c
for engine in $("$SUBUTAI" engines --json | jq -r .engine); do
    subutai run --engine "$engine" --verbose 2 ./lock
    check "a threaded program under $engine: result" is "$out" 4000
    check "a threaded program under $engine: exit status" is "$status" 5
    check "the library says that it serves" matches "$err" "subutai: .*$engine"
    [[ $engine == ni ]] && continue
    subutai run --verbose 0 --engine "$engine" --mesh 1x1 --map random:7 --ni-service inline --time-scale 1000 --strict-paper \
        --stats=json --stats-file ni-stats ./lock
    check "the options of ni do nothing under $engine" is "$status $out $err $(ls ni-stats 2>/dev/null)" "5 4000  "
done

# A sanitizer looks functions up, and calls some, before it is ready for its own and before the library starts.
beside_sanitizer() { # WHAT SANITIZER PRELOAD PROGRAM
    run env LD_PRELOAD="$3$BUILD_ROOT/libsubutai/libsubutai.so" ASAN_OPTIONS=detect_leaks=0 "$4"
    check "$1, with both preloaded: runs" is "$status $out" "5 4000"
    check "$1, with both preloaded: says so" matches "$err" "^subutai: stepping aside, the program runs on plain glibc: it is built with $2[^$]*$"
}
asan=$($CC -print-file-name=libasan.so 2>/dev/null)
if [[ $asan == /* ]] && $CC -fsanitize=address -pthread -o asan lock.c 2>/dev/null; then
    beside_sanitizer "a program with AddressSanitizer" AddressSanitizer "$asan:" ./asan
    beside_sanitizer "a program without AddressSanitizer" AddressSanitizer "$asan:" ./lock
else
    skip "AddressSanitizer preloaded" "the compiler has none that can be"
fi
if clang -fsanitize=address -pthread -o asan lock.c 2>/dev/null; then
    beside_sanitizer "a program with clang's AddressSanitizer" AddressSanitizer "" ./asan
else
    skip "clang's AddressSanitizer" "no clang that has it"
fi

# An option that does nothing says so once, and the program's children do not hear of it.
idle() { # OPTION WHY [ARG...]
    subutai run "${@:3}" -- sh -c './lock; env'
    check "idle: ${*:3}: one line says why" is "$err" "subutai: run: --$1 does nothing: $2"
    check "idle: ${*:3}: the program runs without it" is "$(grep -c "^SUBUTAI_$(tr a-z- A-Z_ <<<"$1")=" <<<"$out")" 0
    subutai run --verbose 0 "${@:3}" -- ./lock
    check "idle: ${*:3}: quietly" is "$status $err" "5 "
}
for option in "mesh 8x8" "map random" "ni-service inline" "ni-threads 2" "time-scale 1" "control-elements 4" "queue-elements 9" \
    "control-full evict" "queue-full again" "strict-paper 1" "data-load 9" "qos none" "requests file" "stats text" "stats-file file"; do
    read -r name value <<<"$option"
    idle "$name" "only the engine ni reads it" --engine direct "--$name=$value"
    idle "$name" "only the engine ni reads it" --engine glibc "--$name=$value"
done
for option in "spin-ns 1" "yields 1" "wait switch" "wake-gap auto"; do
    read -r name value <<<"$option"
    idle "$name" "the engine glibc does not read it" --engine glibc "--$name=$value"
done
idle data-load "without statistics and without a time scale no packet takes time" --engine ni --data-load 9
idle qos "without data load no packet waits for data" --engine ni --qos none --time-scale 1
idle qos "without data load no packet waits for data" --engine ni --qos control --data-load 0 --time-scale 1
idle stats-file "there are no statistics to write" --engine ni --stats-file file
idle ni-threads "inline service has no NI threads" --engine ni --ni-service inline --ni-threads 1
idle control-full "strict-paper goes before it" --engine ni --control-full evict --strict-paper
idle queue-full "strict-paper goes before it" --engine ni --queue-full hold --strict-paper
for options in "--data-load 0" "--data-load 9 --time-scale 1 --qos none" "--data-load 9 --stats --stats-file file" "--ni-threads 1" \
    "--wait adaptive --spin-ns 9 --yields 9" "--strict-paper --control-full software --queue-full again"; do
    # shellcheck disable=SC2086 # words
    subutai run --engine ni $options -- ./lock
    check "not idle: $options" is "$status $err" "5 "
done
run env LD_PRELOAD="$BUILD_ROOT/libsubutai/libsubutai.so" SUBUTAI_ENGINE=ni SUBUTAI_DATA_LOAD=9 ./lock
check "idle, without the command" is "$status $err" \
    "5 subutai: SUBUTAI_DATA_LOAD does nothing: without statistics and without a time scale no packet takes time"
run env LD_PRELOAD="$BUILD_ROOT/libsubutai/libsubutai.so" SUBUTAI_ENGINE=glibc SUBUTAI_MESH=2x2 ./lock
check "idle, without the command, under glibc" is "$status $err" "5 subutai: SUBUTAI_MESH does nothing: only the engine ni reads it"
run env SUBUTAI_MESH=2x2 "$SUBUTAI" run --engine direct ./lock
check "idle: a variable that the command inherits" is "$status $err" "5 subutai: SUBUTAI_MESH does nothing: only the engine ni reads it"
run env SUBUTAI_MESH= "$SUBUTAI" run --engine direct ./lock
check "an empty variable is none" is "$status $err" "5 "
subutai compare --runs 1 --warmup 0 --mesh 2x2 --engines glibc,direct -- true
check "compare: none of the engines reads it" is "$err" "subutai: compare: --mesh does nothing: none of the engines reads it"
SUBUTAI_MAP=random subutai compare --runs 1 --warmup 0 --mesh 2x2 --engines glibc,ni -- true
check "compare: one of the engines reads it" is "$status $err" "0 "
subutai compare --runs 1 --warmup 0 --engines direct:mesh=2x2,ni -- true
check "compare: an engine's own option" is "$err" "subutai: compare: --mesh does nothing: only the engine ni reads it"
# One unlock too many is undefined, and the lock goes on: free, as before it.
cat >often.c <<'END'
#include <pthread.h>
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int uses(int (*take)(pthread_rwlock_t *), int (*try)(pthread_rwlock_t *)) {
    return pthread_rwlock_unlock(&lock) == 0 && take(&lock) == 0 && try(&lock) != 0 && pthread_rwlock_unlock(&lock) == 0;
}
int main(void) {
    for (int i = 0; i < 40; i++)
        if (!uses(pthread_rwlock_rdlock, pthread_rwlock_trywrlock) || !uses(pthread_rwlock_wrlock, pthread_rwlock_tryrdlock))
            return 1;
    return 0;
}
END
$CC -O1 -pthread often.c -o often
for wait in adaptive switch; do
    within 10 "$SUBUTAI" run --wait $wait -- ./often
    check "a read-write lock that is unlocked once too often is free ($wait)" is "$status" 0
done
finish
