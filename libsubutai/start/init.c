/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Start-up, in an order that works from inside malloc:
 *  1. The options are read from the environment, by no call that could allocate.
 *  2. The engine is installed.
 *  3. glibc's functions are looked up. An allocator may lock its own mutexes during a look-up, and a lock taken under
 *     one engine must not be released under another. So this step comes after step 2.
 */
#include "start/init.h"
#include "core/handlers.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/log.h"
#include "core/object.h"
#include "core/priority.h"
#include "core/sites.h"
#include "core/thread.h"
#include "engine/engine.h"
#include "os/arch.h"
#include "os/fence.h"
#include "os/fork.h"
#include "os/futex.h"
#include "os/initial.h"
#include "os/memory.h"
#include "os/objects.h"
#include "os/program_time.h"
#include "os/real.h"
#include "os/unwind.h"
#include "os/unwinder.h"
#include "switch/switch.h"
#include "wait/park.h"
#include "wait/parking_lot.h"
#include "wait/wake_gap.h"

/*
 * A sanitizer builds its own model of mutexes, threads and memory on glibc's functions. The symbol is there if the
 * program has one.
 */
extern void __asan_init(void) __attribute__((weak));
extern void __tsan_init(void) __attribute__((weak));
extern void __msan_init(void) __attribute__((weak));

const char *sbt_init_sanitizer(void) {
    if (sbt_real_is_linked)
        return NULL; /* on purpose: the sanitizer instruments the library too */
    return __asan_init != NULL   ? "AddressSanitizer"
           : __tsan_init != NULL ? "ThreadSanitizer"
           : __msan_init != NULL ? "MemorySanitizer"
                                 : NULL;
}

static void fork_prepare(void) {
    sbt_pin_hold(); /* the child gets the forking kernel thread and no other */
    if (sbt_engine.fork_prepare != NULL)
        sbt_engine.fork_prepare();
    if (sbt_engine.order != NULL)
        sbt_engine.order->fork_begin();
    sbt_objects_fork_prepare();
}

static void fork_parent(void) {
    sbt_objects_fork_parent();
    if (sbt_engine.order != NULL)
        sbt_engine.order->fork_parent();
    sbt_pin_release();
}

static void fork_child(void) {
    sbt_handlers_start();
    sbt_sites_fork_child();
    sbt_switch_fork_child();
    if (sbt_fork_child()) {
        sbt_lot_fork_child();
        sbt_objects_fork_child();
    }
    sbt_wake_gap_fork_child();
    sbt_engine.fork_child();
}

/* A privileged program gets the defaults: its caller must neither steer it nor make it write files. */
static char *const *environment(void) {
    return sbt_auxiliary(AT_SECURE, 1) != 0 ? NULL : sbt_environment();
}

static void give_up(const char *why, const char *what, const char *more) {
    sbt_options.value[SBT_OPT_VERBOSE].u = 1;
    sbt_log(1, why, what, more, NULL);
    sbt_syscall3(SYS_exit_group, 2, 0, 0);
}

/* The command says it for its own options, and takes them out of the environment (tools/preload/env.c). */
static void report_idle_options(void) {
    for (int i = 0; i < SBT_N_OPTIONS; i++) {
        const char *why = sbt_option_idle(&sbt_options, (enum sbt_option_id)i);
        if (why != NULL)
            sbt_log(1, sbt_option_table[i].env, " does nothing: ", why, NULL);
    }
}

static void want_switching(const struct sbt_engine *engine) {
    uint64_t wait = sbt_options.value[SBT_OPT_WAIT].u;
    if (wait == SBT_WAIT_ADAPTIVE || (wait == SBT_WAIT_AUTO && !engine->weighs_switching))
        return;
    if (wait != SBT_WAIT_AUTO || sbt_options.given[SBT_OPT_DELEGATE])
        sbt_log_may_say_in_tree();
    const char *why = engine->why_not_switched != NULL ? engine->why_not_switched(&sbt_options) : NULL;
    if (why != NULL) {
        char line[160] = "the engine ";
        strncat(strcat(strcat(line, engine->name), " "), why, 100);
        sbt_log_in_tree("", "threads are not switched but wait adaptively: ", line);
        return;
    }
    sbt_switch_is_needed = sbt_options.given[SBT_OPT_DELEGATE];
    sbt_switch_starts_early = engine->order != NULL;
    sbt_switch_idle_work = engine->idle_work;
    sbt_switch_each_look = engine->each_look;
    sbt_switch_yield_to_kernel = sbt_wait_offer;
    sbt_switch_want(wait == SBT_WAIT_AUTO     ? SBT_SWITCH_IF_IT_PAYS
                    : wait == SBT_WAIT_SWITCH ? SBT_SWITCH_IF_SAFE
                    : wait == SBT_WAIT_TURNS  ? SBT_SWITCH_BY_TURNS
                                              : SBT_SWITCH_ANYWAY);
}

static void find_real(void) {
    const char *missing = sbt_real_start();
    if (missing != NULL)
        give_up("this C library has no ", missing, ": cannot serve or pass on anything");
}

/*
 * An allocator may lock during the look-ups. Direct serves it, and glibc takes the mutexes over: a mutex that is locked
 * during a look-up is unlocked before the look-up ends, and an unlocked mutex of ours is all-zero.
 */
static void pass_on(void) {
    sbt_engine = sbt_engine_direct;
    find_real();
    sbt_all_theirs = SBT_KIND_SHARED;
    sbt_engine = sbt_engine_glibc;
}

static bool is_text(size_t id) {
    const enum sbt_option_kind kind = sbt_option_table[id].kind;
    return sbt_options.given[id] && (kind == SBT_OPTION_STRING || kind == SBT_OPTION_LOCKS || kind == SBT_OPTION_MAP);
}

/* They are in the environment, which a program may overwrite (redis, for its title). Without memory they stay there. */
static void keep_texts(void) {
    size_t n = 0;
    for (size_t i = 0; i < SBT_N_OPTIONS; i++)
        n += is_text(i) ? strlen(sbt_options.value[i].s) + 1 : 0;
    char *text = n != 0 ? sbt_memory_map(n) : NULL;
    for (size_t i = 0; i < SBT_N_OPTIONS && text != NULL; i++)
        if (is_text(i)) {
            n = strlen(sbt_options.value[i].s) + 1;
            sbt_options.value[i].s = memcpy(text, sbt_options.value[i].s, n);
            text += n;
        }
}

static void start(void) {
    char error[1024];
    sbt_unwinder_start();
    /* First: a sanitizer that has not started yet does so inside the first string function that this calls. */
    const char *tool = sbt_init_sanitizer();
    if (tool != NULL)
        pass_on();
    sbt_clock_start();
    if (!sbt_options_load(&sbt_options, environment(), error, sizeof error))
        give_up(error, "", "");
    keep_texts();
    sbt_thread_start();
    sbt_priority_start();
    sbt_handlers_start();
    sbt_thread_tid(); /* read now: a vfork child shares this memory, and must not be the first to ask */
    sbt_lot_start();

    const struct sbt_engine *engine = sbt_engine_table[sbt_options.value[SBT_OPT_ENGINE].u];
    if (engine->passes_through) {
        if (tool == NULL)
            pass_on();
        sbt_log(2, "engine ", engine->name, NULL);
        report_idle_options();
        return;
    }
    if (tool != NULL) {
        sbt_log(1, "stepping aside, the program runs on plain glibc: it is built with ", tool, NULL);
        return;
    }
    sbt_fence_start();
    int r = engine->start(&sbt_options); /* before anything can be locked */
    if (r == EINVAL)
        sbt_syscall3(SYS_exit_group, 2, 0, 0);
    if (r != 0)
        give_up("the engine does not start: ", engine->name, "");
    sbt_engine = *engine; /* it serves an allocator that locks during the look-ups */
    find_real();
    sbt_thread_learn();
    sbt_program_time_start();
    const char *unknown = sbt_layout_learn();
    if (unknown != NULL)
        give_up("this C library's ", unknown, " layout is not one that objects can be told apart in");
    sbt_engine.thread_enter();
    sbt_log(2, "engine ", engine->name, NULL);
    report_idle_options();
    sbt_wake_gap_start(sbt_options.value[SBT_OPT_WAKE_GAP].u);
    want_switching(engine);
}

#define STARTING_PAUSE_NS 50000 /* between two looks of a thread that waits for the start by another thread */

/* Relaxed where only the starting thread can see its own value. STARTED is released to all other threads. */
static enum { UNBORN, STARTING, STARTED } progress;
static uint32_t starter; /* kernel thread id */

bool sbt_init_done(void) {
    return __atomic_load_n(&progress, __ATOMIC_ACQUIRE) == STARTED;
}

void sbt_init(void) {
    int seen = __atomic_load_n(&progress, __ATOMIC_ACQUIRE); /* pairs with the release below */
    if (SBT_LIKELY(seen == STARTED))
        return;
    uint32_t self = (uint32_t)sbt_syscall0(SYS_gettid);
    if (seen == UNBORN &&
        __atomic_compare_exchange_n((int *)&progress, &seen, STARTING, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        __atomic_store_n(&starter, self, __ATOMIC_RELEASE);
        start();
        __atomic_store_n((int *)&progress, STARTED, __ATOMIC_RELEASE);
        return;
    }
    /*
     * The starting thread may come here from within its own start (an allocator's lock inside a look-up): it goes on
     * with what is there. Another thread waits until the library has started.
     */
    while (__atomic_load_n(&starter, __ATOMIC_ACQUIRE) != self &&
           __atomic_load_n((int *)&progress, __ATOMIC_ACQUIRE) != STARTED)
        sbt_pause_ns(STARTING_PAUSE_NS);
}

/* Take this library out of LD_PRELOAD: programs that this process starts run without it. */
static void leave_children_alone(void) {
    Dl_info self;
    char *list = sbt_environment_value("LD_PRELOAD");
    if (list == NULL || dladdr((void *)&sbt_options, &self) == 0)
        return;
    char *out = list;
    for (char *in = list; *in != '\0';) {
        size_t n = strcspn(in, ": ");
        const char *base = memrchr(in, '/', n);
        const char *own = strrchr(self.dli_fname, '/');
        base = base != NULL ? base + 1 : in;
        own = own != NULL ? own + 1 : self.dli_fname;
        bool ours = strlen(own) == n - (size_t)(base - in) && strncmp(base, own, strlen(own)) == 0;
        if (!ours) {
            if (out != list)
                *out++ = ':';
            memmove(out, in, n);
            out += n;
        }
        in += n + (in[n] != '\0');
    }
    *out = '\0';
}

__attribute__((destructor)) static void destruct(void) {
    if (sbt_engine.stop != NULL)
        sbt_engine.stop();
    if (sbt_switch_wanted && (sbt_options.value[SBT_OPT_WAIT].u != SBT_WAIT_AUTO || sbt_switch_is_needed))
        sbt_log_process_ends();
}

void sbt_process_leaves(void) {
    if (sbt_init_done() && sbt_engine.order != NULL)
        sbt_engine.order->leave();
}

__attribute__((constructor)) static void construct(void) {
    sbt_init();
    if (sbt_unwind_construct() && sbt_engine.order != NULL)
        sbt_engine.order->unwinder_loaded();
    if (sbt_engine.order != NULL)
        at_quick_exit(sbt_process_leaves);
    pthread_atfork(fork_prepare, fork_parent, fork_child);
    if (sbt_options.value[SBT_OPT_CHILDREN].u == 0)
        leave_children_alone();
}
