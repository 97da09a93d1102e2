/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * While a thread loads code, futex waits of other threads may look what was loaded, and take the dynamic linker's lock
 * for that. They must not do so at each wait: the thread may not come back to the caller of dlopen for long. This
 * program counts the looks by a dl_iterate_phdr of its own.
 */
#include "futex_waiter.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

enum { WAITS = 20000 };

static atomic_int n_looks;
static atomic_bool is_loaded, may_end;

int dl_iterate_phdr(int (*callback)(struct dl_phdr_info *, size_t, void *), void *argument) {
    static int (*next)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
    if (next == NULL)
        *(void **)(void *)&next = dlsym(RTLD_NEXT, "dl_iterate_phdr");
    atomic_fetch_add(&n_looks, 1);
    return next(callback, argument);
}

/* Loads in a frame that it stays below of. */
__attribute__((noinline)) static void load_and_stay(void) {
    CHECK(dlopen("libm.so.6", RTLD_NOW) != NULL);
    atomic_store(&is_loaded, true);
    while (!atomic_load(&may_end))
        sleep_ms(1);
}
__attribute__((noinline)) static void go_deeper(int times) {
    char here[512];
    __asm__ volatile("" : : "r"(here) : "memory");
    if (times == 0)
        load_and_stay();
    else
        go_deeper(times - 1);
    __asm__ volatile("" : : "r"(here) : "memory"); /* no tail call */
}
static void *load(void *unused) {
    go_deeper(4);
    return unused;
}

/* Waits that end at once; how many milliseconds they took. */
static int64_t make_waits(void) {
    int64_t begin = now_ns(CLOCK_MONOTONIC);
    for (int i = 0; i < WAITS; i++)
        CHECK_ERRNO(futex(&word, FUTEX_WAIT, 1, NULL, NULL, 0), EAGAIN);
    return (now_ns(CLOCK_MONOTONIC) - begin) / 1000000;
}

TEST(futex_loading__waits_meanwhile_seldom_look,
     "at most two looks in a millisecond, but in an order each looks; and none after the thread's end") {
    const char *engine = getenv("SUBUTAI_ENGINE");
    bool in_order = engine != NULL && strcmp(engine, "det") == 0;
    make_waits();
    pthread_t thread = thread_start(load, NULL);
    while (!atomic_load(&is_loaded))
        sleep_ms(1);
    int before = atomic_load(&n_looks);
    int64_t took = make_waits();
    CHECK(in_order || atomic_load(&n_looks) - before <= 2 * (took + 2));
    atomic_store(&may_end, true);
    thread_join(thread);
    before = atomic_load(&n_looks);
    make_waits();
    CHECK_INT(atomic_load(&n_looks), before);
}
