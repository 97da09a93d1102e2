/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * scenes NAME FILE [THREAD US]... : a trace made by hand, of which the report's sentences can be worked out. Each
 * THREAD has waited for a core for so many microseconds, by the kernel's count; of the others that is not known.
 */
#include <errno.h>

#include "last_block.h"
#include "scene_calls.h"

enum { MUTEX, COND };

/* The main thread works for 200 us and is off the processor for 800. */
static void off_cpu(void) {
    lock(0, 100, 100.1, MUTEX, 1, 1);
    unlock(0, 100.2, MUTEX);
    sleeps(800);
    lock(0, 950, 950.1, MUTEX, 2, 1);
    unlock(0, 950.2, MUTEX);
    end(0, 1000);
}

/* The same, and another thread works for 700 us meanwhile, and does not end what the main thread does. */
static void off_cpu_beside(void) {
    create(0, 0, 1);
    end(1, 700);
    off_cpu();
}

/* Two threads take turns at a lock that they hold for 50 us, of which they are off the processor for 45. */
static void lock_over_io(void) {
    create(0, 0, 1);
    for (unsigned i = 0; i < 10; i++) {
        lock(i % 2, i == 0 ? 20 : 50 * i, 50 + 50 * i, MUTEX, i + 1, 1);
        sleeps(45);
        unlock(i % 2, 99.9 + 50 * i, MUTEX);
    }
    end(1, 560);
    end(0, 600);
}

/* The main thread sleeps until it ends the program. Two others hold a lock in turns, for 45 us, and wait for it. */
static void server(void) {
    create(0, 0, 1);
    create(0, 10, 2);
    for (unsigned i = 0; i < 20; i++) {
        lock(1 + i % 2, i < 2 ? 21 + i : 45 * i, 45 + 45 * i, MUTEX, i + 1, 1);
        unlock(1 + i % 2, 89.9 + 45 * i, MUTEX);
    }
    end(1, 960);
    end(2, 970);
    sleeps(975);
    end(0, 1000);
}

/* The same main thread. Thread 2 has the lock for 700 us, which thread 1 has to wait for, besides three short waits. */
static void server_parks(void) {
    create(0, 0, 1);
    create(0, 10, 2);
    for (unsigned i = 0; i < 4; i++) {
        double at = 21 + 20 * i, until = i < 3 ? at + 10 : 800;
        lock(2, at, at + 0.1, MUTEX, 2 * i + 1, 1);
        lock(1, at + 2, until + 1, MUTEX, 2 * i + 2, 1);
        unlock(1, until + 2, MUTEX);
        unlock(2, until, MUTEX);
    }
    end(1, 960);
    end(2, 970);
    sleeps(975);
    end(0, 1000);
}

/* 1100 times one of 50 locks that were made at one place; 80 ns of work each time. */
static void many_locks(void) {
    for (unsigned i = 0; i < 1100; i++) {
        double at = 0.2 * i;
        lock(0, at + 0.04, at + 0.05, i % 50, i / 50 + 1, 1);
        call(0, at + 0.09, at + 0.2,
             (struct sbt_trace_event){.op = SBT_TRACE_MUTEX_UNLOCK,
                                      .type = SBT_TRACE_MUTEX,
                                      .object = i % 50,
                                      .other = SBT_TRACE_NONE,
                                      AT(99)});
    }
    end(0, 220);
}

/*
 * Twenty times the main thread wakes all threads that wait for the condition. Thread 1 has something to do each time,
 * and thread 2 waits again with the mutex held, or with `one` only thread 2 waits, and is signalled.
 */
static void in_vain(bool one) {
    uint64_t mutex = 0;
    create(0, 0, 1);
    create(0, 10, 2);
    lock(1, 20, 20.1, MUTEX, ++mutex, 1);
    if (!one)
        wait_(1, 21, 115, COND, 1, MUTEX, 4);
    else
        unlock(1, 21, MUTEX);
    lock(2, 22, 22.1, MUTEX, ++mutex, 1);
    for (unsigned i = 0; i < 20; i++) {
        double at = 100 * (i + 1);
        lock(0, at - 1, at - 0.9, MUTEX, ++mutex, 1);
        wait_(2, i == 0 ? 23 : at - 79, at + (one ? 15 : 17), COND, i + 1, MUTEX, mutex + (one ? 1 : 2));
        call(0, at, at + 10,
             (struct sbt_trace_event){.op = one ? SBT_TRACE_COND_SIGNAL : SBT_TRACE_COND_BROADCAST,
                                      .type = SBT_TRACE_COND,
                                      .object = COND,
                                      .other = SBT_TRACE_NONE,
                                      .order = i + 1,
                                      AT(97)});
        unlock(0, at + 12, MUTEX);
        mutex++; /* of thread 2's wait */
        if (one)
            continue;
        unlock(1, at + 16, MUTEX);
        lock(1, at + 18, at + 22, MUTEX, mutex + 2, 1);
        mutex += 2;
        if (i < 19)
            wait_(1, at + 22.5, at + 115, COND, i + 2, MUTEX, mutex + 2);
        else
            unlock(1, at + 22.5, MUTEX);
    }
    unlock(2, 2050, MUTEX);
    end(1, 2060);
    end(2, 2070);
    end(0, 2100);
}

static void broadcast_storm(void) {
    in_vain(false);
}

static void futile_wakeups(void) {
    in_vain(true);
}

/* 16 threads work for 75 us each, and then wait for the lock, which the main thread holds for 1 ms. */
static void too_many_threads(void) {
    enum { N = 17 };
    lock(0, 0, 0.1, MUTEX, 1, 1);
    for (uint32_t i = 1; i < N; i++)
        call(0, 0.2 * i, 0.2 * i + 0.1,
             (struct sbt_trace_event){.op = SBT_TRACE_THREAD_CREATE, .object = SBT_TRACE_NONE, .other = i, AT(94)});
    unlock(0, 1000, MUTEX);
    end(0, 1001);
    for (uint32_t i = 1; i < N; i++) {
        lock(i, 75, 999, MUTEX, 1 + i, 1);
        unlock(i, 999.5, MUTEX);
        end(i, 1000);
    }
}

/* The main thread waits for a lock that thread 1 has for all the time, for 400 us, and for a condition, until it gives
 * up. */
static void timed_out(void) {
    create(0, 0, 1);
    lock(1, 20, 20.1, MUTEX, 1, 1);
    unlock(1, 980, MUTEX);
    call(0, 100, 500,
         (struct sbt_trace_event){.op = SBT_TRACE_MUTEX_LOCK,
                                  .type = SBT_TRACE_MUTEX,
                                  .object = MUTEX,
                                  .other = SBT_TRACE_NONE,
                                  .result = ETIMEDOUT,
                                  AT(1)});
    call(0, 600, 900,
         (struct sbt_trace_event){.op = SBT_TRACE_COND_WAIT,
                                  .type = SBT_TRACE_COND,
                                  .object = COND,
                                  .other = SBT_TRACE_NONE,
                                  .result = ETIMEDOUT,
                                  AT(96)});
    end(1, 990);
    end(0, 1000);
}

static const struct {
    const char *name;
    void (*plays)(void);
} scenes[] = {{"off-cpu", off_cpu},
              {"off-cpu-beside", off_cpu_beside},
              {"lock-over-io", lock_over_io},
              {"server", server},
              {"server-parks", server_parks},
              {"many-locks", many_locks},
              {"broadcast-storm", broadcast_storm},
              {"futile-wakeups", futile_wakeups},
              {"too-many-threads", too_many_threads},
              {"timed-out", timed_out}};

int main(int argc, char **argv) {
    for (size_t i = 0; argc > 2 && i < sizeof scenes / sizeof *scenes; i++) {
        if (strcmp(argv[1], scenes[i].name) != 0)
            continue;
        scene_write(argv[2]);
        scenes[i].plays();
        scene_must(sbt_trace_finish(scene.writer) == 0 && last_block_read(argv[2]));
        for (int a = 3; a + 1 < argc; a += 2)
            last_block_add(TRACE_DEFINE_QUEUED, strtoull(argv[a], NULL, 10), us_to_ns(strtod(argv[a + 1], NULL)));
        scene_must(last_block_write(argv[2]));
        return 0;
    }
    return 2;
}
