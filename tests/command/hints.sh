#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# `subutai hints`: finds the call after which the turn is held, keeps what helps, writes a file that `run` takes; refusals.
. "$(dirname "$0")/lib.sh"
# shellcheck disable=SC2034 # read by check
status=0 out='' err=''
TMPDIR=$scratch/tmp
mkdir "$TMPDIR"
export TMPDIR
no_folder_left() {
    is "$(ls "$TMPDIR")" ""
}

# Four threads hold the turn for 5 ms after each unlock in `take`, one after the other; without that they sleep together.
cat >holds.c <<'END'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int items = 24;
__attribute__((noinline)) static int take(void) {
    pthread_mutex_lock(&mutex);
    int item = items > 0 ? items-- : 0;
    pthread_mutex_unlock(&mutex); /* here */
    return item;
}
static void *work(void *unused) {
    const struct timespec section = {.tv_nsec = 5000000};
    while (take() != 0)
        syscall(SYS_nanosleep, &section, NULL); /* seen by no library */
    return unused;
}
int main(int argc, char **argv) {
    pthread_t thread[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, work, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    puts("done");
    if (argc > 1)
        for (;;)
            pause();
    return 0;
}
END
cat >none.c <<'END'
int main(void) {
    return 0;
}
END
$CC -g -O1 -pthread holds.c -o holds && $CC none.c -o none || exit 99
place=$(grep -n '/\* here' holds.c | cut -d: -f1)

subutai hints -o found.hints --runs 4 -- ./holds
check "hints are found" is "$status $err" "0 "
check "by the call after which the turn is held" matches "$out" "holds\.c:$place take \(holds\): 0\.[0-9]+ times as long"
check "one is kept" matches "$out" "^kept|"$'\n'"kept"
check "and measured beside the program alone and without hints" matches "$out" \
    'without the library: .*under det, without hints: .*under det, with these: '
out=$(cat found.hints)
check "the file says what it is and for what" matches "$out" $'^subutai-hints 1\n# Found by subutai hints for: \\./holds\n'
check "why" matches "$out" "# holds\.c:$place take \(holds\): 4 threads, [0-9.]+ ms computed after each operation"
check "and has the call site without the folder" matches "$out" $'\n(give-up-turn|soft-barrier) holds\+0x[0-9a-f]+ [0-9]+'
check "nothing is left" no_folder_left
for ((i = 0; i < 5; i++)); do
    rm -f log
    run "$SUBUTAI" run --engine det --hints found.hints --schedule log -- ./holds
    run "$SUBUTAI" schedule info log
    echo "$status $out"
done | grep -E '^schedule|^hints|holds' | sort -u >seen
out=$(cat seen)
check "run takes the file: one schedule, with these hints" is "$(wc -l <seen)" 2
cp holds 'my app'
subutai hints --runs 1 --sites 1 -- './my app'
check "without a file: on stdout" matches "$out" '^subutai-hints 1'
cat >one.sh <<'END'
#!/bin/sh
./holds
END
chmod +x one.sh
subutai hints --runs 4 -- ./one.sh
check "a program that another one starts is named by its path" matches "$out" "(give-up-turn|soft-barrier) $PWD/holds\+0x"
printf '%s\n' "$out" >child.hints
run "$SUBUTAI" run --engine det --hints child.hints --verbose 2 -- ./one.sh
check "and the file is good for it" matches "$err" 'hints: the turn was given up [1-9]|[1-9][0-9]* waits at soft'
printf 'subutai-hints 1\ngive-up-turn "my app+0x%x" 5\n' 0x1200 >blank.hints
run "$SUBUTAI" run --engine det --hints blank.hints -- './my app'
check "a name with a blank stands in quotes" is "$status $err" "0 "
subutai hints --runs 1 --progress -- ./holds
check "--progress: a line for each run" matches "$err" 'call site 1 of 6 at most, holds\.c:[0-9]+ take \(holds\), give-up-turn: run 1 of 1: '

cat >picky.sh <<'END'
#!/bin/sh
! grep -qs soft-barrier "$SUBUTAI_HINTS" && ./holds
END
chmod +x picky.sh
subutai hints -o picky.hints --runs 3 --sites 1 --progress -- ./picky.sh
check "a candidate that has failed is not run again" is "$status $(grep -c 'soft-barrier: run' <<<"$err")" "0 1"
check "and is dropped" matches $'\n'"$out" $'\n''dropped  soft-barrier  .*: a run has failed'
# The second of its runs with a soft barrier is late, as on a machine that stands still for a moment. Other hints fail.
cat >late.sh <<'END'
#!/bin/sh
! grep -qsE 'give-up-turn|keep-turn' "$SUBUTAI_HINTS" || exit 3
if grep -qs soft-barrier "$SUBUTAI_HINTS"; then
    echo >>runs
    [ "$(wc -l <runs)" -ne 2 ] || sleep 1
fi
exec ./holds
END
chmod +x late.sh
kept_again='again, soft-barrier: run 1 of 3: .*kept     soft-barrier'
for _ in 1 2 3; do
    rm -f runs
    subutai hints -o late.hints --runs 3 --sites 1 --progress -- ./late.sh
    ! matches "$err$out" "$kept_again" || break
done
check "a hint that was slower in one of three runs is measured again, and kept" matches "$err$out" "$kept_again"
check "the others are not" is "$(grep -c 'again, \(give-up\|keep\)-turn' <<<"$err")" 0
cat >natively.sh <<'END'
#!/bin/sh
./holds
[ -n "$SUBUTAI_ENGINE" ]
END
chmod +x natively.sh
subutai hints -o natively.hints --runs 3 --sites 1 -- ./natively.sh
check "a program that fails without the library has its times with and without hints all the same" \
    matches "$(cat natively.hints)" 'under det, without hints: [0-9.]+ m?s .*under det, with these: [0-9.]+ m?s '
# Each of three functions is called by threads of its own: hints at all of them are a set, and one alone is not enough.
cat >three.c <<'END'
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
#define TAKE(name) \
    __attribute__((noinline)) static void name(void) { \
        pthread_mutex_lock(&mutex); \
        pthread_mutex_unlock(&mutex); \
        __asm__ volatile(""); /* no tail call */ \
    }
TAKE(first)
TAKE(second)
TAKE(third)
static void (*const takes[])(void) = {first, second, third};
static void *work(void *number) {
    const struct timespec section = {.tv_nsec = 2000000};
    for (int i = 0; i < 10; i++) {
        takes[(long)number % 3]();
        syscall(SYS_nanosleep, &section, NULL);
    }
    return NULL;
}
int main(void) {
    pthread_t thread[6];
    for (long i = 0; i < 6; i++)
        pthread_create(&thread[i], NULL, work, (void *)i);
    for (int i = 0; i < 6; i++)
        pthread_join(thread[i], NULL);
    return 0;
}
END
$CC -g -O1 -pthread three.c -o three || exit 99
kept='kept     a set         keep-turn at [0-9]+ call sites?, give-up-turn at [0-9]+: 0'
for _ in 1 2 3; do # what is kept is by times, which others' programs change
    subutai hints -o three.hints --runs 3 --sites 1 -- ./three
    ! matches "$out" "$kept" || break
done
check "hints that help together are a set" matches "$out" "$kept"
n_hints=$(sed -n 's/^# The first \([0-9]*\) hints below are a set.*/\1/p' three.hints)
# The hints of the set, with their comments.
set=$(awk -v n="$n_hints" '/hints below are a set/ { is_in = 1 } is_in && seen < n { print } is_in && /^[gk].*-turn / { seen++ }' three.hints)
check "which are as many as the file says" is "$(grep -c '^[gk].*-turn ' <<<"$set") $((n_hints > 1))" "$n_hints 1"
check "each with what threads compute there" is "$(grep -c '^# three.c:.* computed after each operation$' <<<"$set")" "$n_hints"
check "what each alone cost others is not known, and not said" is "$(grep -c 'cost others' <<<"$set")" 0

refuses 'hints: no program given \(legal: subutai hints' hints
refuses "hints: --engine glibc takes no hints \(legal: det\)" hints --engine glibc -- ./holds
refuses "hints: --hints chooses nothing here \(legal: " hints --hints found.hints -- ./holds
refuses "hints: --schedule chooses nothing here" hints --schedule log -- ./holds
refuses "hints: --runs: '0' is not a legal value \(legal: 1 to 1000\)" hints --runs 0 -- ./holds
refuses "hints: --sites: 'x' is not a legal value \(legal: 1 to 100\)" hints --sites x -- ./holds
refuses "hints: under the engine det the program ends with exit 1 \(legal: " hints -- false
refuses "hints: under the engine det the program ends with timeout" hints --timeout 1 -- ./holds on
refuses "hints: the program does not synchronize \(legal: one with threads\)" hints -- ./none
refuses "hints: --out: .*none/f" hints -o none/f -- ./holds
if $CC -static none.c -o static 2>/dev/null; then
    refuses "hints: './static' cannot be served: .* \(legal: a program that subutai doctor calls served\)" hints -- ./static
fi
check "nothing is left" no_folder_left
check "an old file stays if nothing was found out" grep -q '^subutai-hints 1' found.hints
subutai hints -o found.hints -- false
check "as it was" grep -q 'for: ./holds' found.hints
run timeout -s INT 1 "$SUBUTAI" hints -o found.hints -- ./holds on
check "a signal ends the command" is "$status" 124
check "and the program, and removes what was there for the runs" no_folder_left
check "and leaves the file" grep -q 'for: ./holds' found.hints
finish
