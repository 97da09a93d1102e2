#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The engine det where threads may wait by switching: --wait auto begins to switch and changes no schedule; a fiber that
# sleeps in the kernel with the turn keeps no other thread; where a fiber ends the process is part of the schedule.
. "$(dirname "$0")/lib.sh"

# Threads that do little but lock. With `leave` one of them ends the process, beside the others. With `allocate` the
# allocator locks. With `alone` the process must have one thread in the end: 4 if it has not. With `long` they do it long
# enough for a trial of switching, also beside others.
cat >passes.c <<'END'
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { THREADS = 6, ROUNDS = 8000, TIMES_LONG = 25 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, allocator = PTHREAD_MUTEX_INITIALIZER;
static uint64_t sum;
static bool leaves, allocates;
static int rounds = ROUNDS;
extern void *__libc_calloc(size_t n, size_t bytes);
void *calloc(size_t n, size_t bytes) {
    if (allocates)
        pthread_mutex_lock(&allocator);
    void *memory = __libc_calloc(n, bytes);
    if (allocates)
        pthread_mutex_unlock(&allocator);
    return memory;
}
static void *adder(void *number) {
    for (int i = 0; i < rounds; i++) {
        pthread_mutex_lock(&mutex);
        sum = sum * 31 + (uintptr_t)number;
        pthread_mutex_unlock(&mutex);
        for (volatile int k = 0; leaves && k < 30000; k++)
            ;
        if (leaves && number == NULL && i == 20)
            exit(3);
    }
    return NULL;
}
int main(int n, char **words) {
    pthread_t threads[THREADS];
    leaves = n > 1 && strcmp(words[1], "leave") == 0;
    allocates = n > 1 && strcmp(words[1], "allocate") == 0;
    if (n > 1 && strcmp(words[1], "long") == 0)
        rounds *= TIMES_LONG;
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, adder, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%016llx\n", (unsigned long long)sum);
    return n > 1 && strcmp(words[1], "alone") == 0 && unshare(CLONE_THREAD) != 0 ? 4 : 0;
}
END
$CC -O1 -pthread passes.c -o passes

# ends WAIT WORD...: one more line of `ends`: status, output, schedule.
ends() {
    rm -f log
    run "$SUBUTAI" run --engine det --wait "$1" --verbose 3 --log log -- ./passes "${@:2}"
    echo "$status $out $(sed -n 's/.*[^-]schedule \([0-9a-f]\{16\}\)/\1/p' log)" >>ends
    out=$(sort -u ends)
}
one() {
    is "$(wc -l <<<"$out")" 1 && matches "$out" '^[03] [0-9a-f]* ?[0-9a-f]{16}, [0-9]+ operations, 0 returns from outside$'
}

for wait in adaptive auto switch 'turns!'; do
    ends "$wait"
done
check "the schedule is the same with each way of waiting" one
: >ends
ends switch long
for ((i = 0, switched = 0; switched == 0 && i < 3; i++)); do # what pays beside other work is not always seen
    ends auto long
    grep -q 'switching pays' log && switched=1
done
check "--wait auto begins to switch" is $switched 1
check "and the schedule is the same" one
: >ends
for ((i = 0; i < 5; i++)); do
    ends auto allocate
done
check "the allocator locks: what the library allocates comes at no point that the clock decides" one
: >ends
for ((i = 0; i < 20; i++)); do
    ends switch leave
done
check "a fiber ends the process: one schedule" one
: >ends
for ((i = 0; i < 20; i++)); do
    ends switch alone
done
check "carriers are gone when the process has one thread: it may change its namespaces" one
for wait in switch 'turns!'; do
    within 20 "$SUBUTAI" run --engine det --wait "$wait" --log told -- "$ORDERED" stdio
    check "a fiber sleeps in a call that the library does not see, with the turn: the others go on ($wait)" is \
        "$status $out $(cat told)" "0 done "
done
finish
