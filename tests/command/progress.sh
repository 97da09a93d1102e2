#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The line that says how far the command is: on a terminal, after two seconds, and gone when the command goes on.
. "$(dirname "$0")/lib.sh"

if ! command -v script >/dev/null; then
    skip "the progress lines" "no command script"
    finish
    exit
fi

# For the command, not for programs that it runs, each look at the clock takes a second; with QUICK 30 ms.
cat >clock.c <<'END_OF_CLOCK'
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *at) {
    static long n;
    int r = (int)syscall(SYS_clock_gettime, clock, at);
    if (r == 0 && clock == CLOCK_MONOTONIC && strcmp(program_invocation_short_name, "subutai") == 0) {
        long ms = (getenv("QUICK") != NULL ? 30 : 1000) * n++;
        *at = (struct timespec){1000 + ms / 1000, ms % 1000 * 1000000};
    }
    return r;
}
END_OF_CLOCK
$CC -shared -fPIC clock.c -o clock.so || exit 99
cat >locks.c <<'END_OF_LOCKS'
#include <pthread.h>
static pthread_mutex_t mutexes[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static void *lock(void *mutex) {
    for (int i = 0; i < 50000; i++) {
        pthread_mutex_lock(mutex);
        pthread_mutex_unlock(mutex);
    }
    return 0;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, lock, &mutexes[0]);
    lock(&mutexes[1]);
    pthread_join(thread, 0);
    return 0;
}
END_OF_LOCKS
$CC -pthread locks.c -o locks || exit 99

# on_terminal ARG...: subutai with stdout and stderr on a terminal, where time flies; $out has both.
on_terminal() {
    LD_PRELOAD=$scratch/clock.so run script -qec "$(printf '%q ' "$SUBUTAI" "$@")" /dev/null
}
# The line that begins with $1 was there, and more than once; each time from the line's beginning.
shown() {
    local n
    n=$(tr '\r' '\n' <<<"$out" | grep -cE "^$1 \[[#.]{30}\] +[0-9]+ %, [0-9]+ s left")
    ((n >= 2))
}
# And behind it the command has cleared it, before anything else.
cleared() {
    tr '\r' '\n' <<<"$out" | awk -v name="$1 [" '
        seen && ! cleared { if (substr($0, 1, 3) == "\033[K") cleared = 1; else if (index($0, name) != 1) exit 1 }
        index($0, name) == 1 { seen = 1; cleared = 0 }
        END { exit ! (seen && cleared) }'
}

subutai record --engine glibc -o locks.sbt -- ./locks
check "a trace of many events" test "$status $("$SUBUTAI" trace info --json locks.sbt | jq '.events > 160000')" = "0 true"

on_terminal report locks.sbt
check "report: the line is shown" shown locks.sbt
check "report: and cleared before the report" cleared locks.sbt
check "report: which follows" matches "$status $out" "^0 .*Objects"
on_terminal report --predict locks.sbt
check "report --predict: many locks, each for one thread; their trace is changed" shown 'changing the trace'
check "report --predict: and cleared" cleared 'changing the trace'
on_terminal report --perfetto locks.pftrace locks.sbt
check "report --perfetto" shown locks.sbt
on_terminal trace to-perfetto -o again.pftrace locks.sbt
check "trace to-perfetto" shown locks.sbt
check "trace to-perfetto: cleared at the end" cleared locks.sbt
on_terminal trace to-perfetto --json -o locks.json locks.sbt
check "trace to-perfetto --json" shown locks.sbt
on_terminal profile --full -o out --engine glibc -- ./locks
check "profile: while it makes its report" shown out/locks.sbt
check "profile: and then the report" matches "$status $out" "^0 .*Objects"

size=$(stat -c %s locks.sbt)
head -c $((size - 20)) locks.sbt >damaged.sbt
printf '\xff\xff\xff\xff\xff\xff' | dd of=damaged.sbt bs=1 seek=$((size * 9 / 10)) conv=notrunc status=none
on_terminal report damaged.sbt
check "a damaged trace: the line is cleared before the refusal" matches "$status $(tr '\r' '\n' <<<"$out")" \
    $'^2 (.*\n)*\033\\[Ksubutai: report: '

# Nowhere else is there a line, however long it takes.
LD_PRELOAD=$scratch/clock.so run "$SUBUTAI" report locks.sbt
check "no terminal: nothing on stderr" is "$status $err" "0 "
LD_PRELOAD=$scratch/clock.so run "$SUBUTAI" profile --full -o out --engine glibc -- ./locks
check "profile without a terminal" test "$status $(grep -c ' s left' <<<"$err")" = "0 0"
# And on a terminal none that would be gone at once.
QUICK=1 on_terminal report locks.sbt
check "less than two seconds: no line" test "$status $(grep -c ' s left' <<<"$out")" = "0 0"
finish
