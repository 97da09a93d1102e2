/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Start-up, in an order that works from inside malloc: the options come from the environment without a call that could
 * allocate; the engine is installed before glibc's functions are looked up, because an allocator may lock its own
 * mutexes during the look-up, and locks taken under one engine must not be released under another.
 */
#include "core/init.h"
#include "core/handlers.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/arch.h"
#include "core/fence.h"
#include "core/log.h"
#include "core/object.h"
#include "core/real.h"
#include "core/thread.h"
#include "engine/engine.h"
#include "switch/switch.h"
#include "wait/futex.h"
#include "wait/lot.h"

struct sbt_options sbt_options;
uint32_t sbt_all_theirs;

/* The values of glibc 2.34 to 2.40, for objects used while the real ones are being learnt. */
struct sbt_layout sbt_layout = {
    .cond = {36, 1},
    .barrier = {12, ~0u},
    .rwlock = {28, ~0u},
    .sem = {8, ~0u},
#if defined(__x86_64__)
    .spin_unlocked = 1,
#endif
};

const struct sbt_engine *const sbt_engine_table[SBT_N_ENGINES] = {
    [SBT_ENGINE_GLIBC] = &sbt_engine_glibc,
    [SBT_ENGINE_DIRECT] = &sbt_engine_direct,
    [SBT_ENGINE_NI] = &sbt_engine_ni,
};

/* A sanitizer's own mutex, thread and memory model is built on glibc's functions. Present if the program has it. */
extern void __asan_init(void) __attribute__((weak));
extern void __tsan_init(void) __attribute__((weak));
extern void __msan_init(void) __attribute__((weak));

static const char *sanitizer(void) {
#ifdef SBT_PREFIX
    return NULL; /* linked in on purpose, beside the sanitizer, not under it */
#else
    return __asan_init != NULL   ? "AddressSanitizer"
           : __tsan_init != NULL ? "ThreadSanitizer"
           : __msan_init != NULL ? "MemorySanitizer"
                                 : NULL;
#endif
}

/* The first word in which a shared object differs from a private one. False if they do not differ. */
static bool learn(struct sbt_mark *mark, const void *private_object, const void *shared_object, size_t bytes) {
    for (size_t at = 0; at + sizeof(uint32_t) <= bytes; at += sizeof(uint32_t)) {
        uint32_t a, b;
        memcpy(&a, (const char *)private_object + at, sizeof a);
        memcpy(&b, (const char *)shared_object + at, sizeof b);
        if (a != b) {
            mark->offset = (uint32_t)at;
            mark->mask = b & ~a;
            return mark->mask != 0;
        }
    }
    return false;
}

/* Initialise two of each with glibc's functions and compare. NULL, or what could not be told apart. */
static const char *learn_layout(void) {
    struct sbt_layout layout;
    pthread_cond_t cond[2];
    pthread_barrier_t barrier[2];
    pthread_rwlock_t rwlock[2];
    sem_t sem[2];
    pthread_condattr_t cond_attr;
    pthread_barrierattr_t barrier_attr;
    pthread_rwlockattr_t rwlock_attr;
    pthread_spinlock_t spin;

    memset(cond, 0, sizeof cond);
    memset(barrier, 0, sizeof barrier);
    memset(rwlock, 0, sizeof rwlock);
    memset(sem, 0, sizeof sem);
    pthread_condattr_init(&cond_attr);
    pthread_barrierattr_init(&barrier_attr);
    pthread_rwlockattr_init(&rwlock_attr);
    for (int shared = 0; shared < 2; shared++) {
        pthread_condattr_setpshared(&cond_attr, shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE);
        pthread_barrierattr_setpshared(&barrier_attr, shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE);
        pthread_rwlockattr_setpshared(&rwlock_attr, shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE);
        sbt_real.pthread_cond_init(&cond[shared], &cond_attr);
        sbt_real.pthread_barrier_init(&barrier[shared], &barrier_attr, 1);
        sbt_real.pthread_rwlock_init(&rwlock[shared], &rwlock_attr);
        sbt_real.sem_init(&sem[shared], shared, 0);
    }
    sbt_real.pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    layout.spin_unlocked = spin;
    const char *failed = !learn(&layout.cond, &cond[0], &cond[1], sizeof cond[0])               ? "condition"
                         : !learn(&layout.barrier, &barrier[0], &barrier[1], sizeof barrier[0]) ? "barrier"
                         : !learn(&layout.rwlock, &rwlock[0], &rwlock[1], sizeof rwlock[0])     ? "rwlock"
                         : !learn(&layout.sem, &sem[0], &sem[1], sizeof sem[0])                 ? "semaphore"
                                                                                                : NULL;
    if (failed == NULL && (layout.cond.offset < sizeof(struct sbt_cond) || layout.rwlock.offset < 12 ||
                           layout.rwlock.offset >= 48 || layout.barrier.offset != 12 || layout.sem.offset != 8))
        failed = "object"; /* glibc has moved a mark to where our fields are */
    if (failed == NULL)
        sbt_layout = layout;
    return failed;
}

static void fork_prepare(void) {
    sbt_switch_hold_home(); /* the child has the kernel thread that forks, and no other */
    if (sbt_engine.fork_prepare != NULL)
        sbt_engine.fork_prepare();
}

static void fork_parent(void) {
    sbt_switch_release();
}

static void fork_child(void) {
    sbt_handlers_start();
    sbt_switch_fork_child();
    if (sbt_thread_fork_child())
        sbt_lot_fork_child();
    sbt_engine.fork_child();
}

/*
 * The environment. Code that runs before the C library's own initialiser (DF_1_INITFIRST, .preinit_array) finds
 * `environ` still empty; the vector lies behind the arguments at the start of the stack. A privileged program is not to
 * be steered, nor made to write files, by whoever calls it: it gets the defaults.
 */
extern void *__libc_stack_end;

static char *const *environment(void) {
    if (getauxval(AT_SECURE) != 0)
        return NULL;
    if (environ != NULL)
        return environ;
    long arguments = *(long *)__libc_stack_end;
    return (char **)__libc_stack_end + 1 + arguments + 1;
}

static void give_up(const char *why, const char *what, const char *more) {
    sbt_options.value[SBT_OPT_VERBOSE].u = 1;
    sbt_log(1, why, what, more, NULL);
    sbt_syscall3(SYS_exit_group, 2, 0, 0);
}

static void want_switching(const struct sbt_engine *engine) {
    uint64_t wait = sbt_options.value[SBT_OPT_WAIT].u;
    if (wait == SBT_WAIT_ADAPTIVE)
        return;
    const char *why = engine->why_not_switched != NULL ? engine->why_not_switched(&sbt_options) : NULL;
    if (why != NULL) {
        sbt_log(1, "waiting adaptively, not by switching: engine ", engine->name, " ", why, NULL);
        return;
    }
    sbt_switch_idle_work = engine->idle_work;
    sbt_switch_want(wait == SBT_WAIT_SWITCH_INSIST);
}

static void start(void) {
    char error[512];
    if (!sbt_options_load(&sbt_options, environment(), error, sizeof error))
        give_up(error, "", "");
    sbt_thread_start();
    sbt_handlers_start();
    sbt_thread_tid(); /* now: a vfork child, which shares this memory, must not be the first to ask */
    sbt_lot_start();

    /*
     * During the look-ups an allocator may lock: direct serves that, whatever the engine is to be. What is locked there
     * is unlocked there, and an unlocked object of ours is all-zero, which glibc takes over as it is.
     */
    const struct sbt_engine *engine = sbt_engine_table[sbt_options.value[SBT_OPT_ENGINE].u];
    const char *tool = sanitizer();
    bool aside = engine->passes_through || tool != NULL;
    if (!aside)
        sbt_fence_start();
    int r = aside ? 0 : engine->start(&sbt_options); /* before anything can be locked */
    if (r == EINVAL)
        sbt_syscall3(SYS_exit_group, 2, 0, 0);
    if (r != 0)
        give_up("the engine does not start: ", engine->name, "");
    sbt_engine = aside ? sbt_engine_direct : *engine;
    const char *missing = sbt_real_start();
    if (missing != NULL)
        give_up("this C library has no ", missing, ": cannot serve or pass on anything");
    if (aside) {
        sbt_all_theirs = SBT_KIND_SHARED;
        sbt_engine = sbt_engine_glibc;
        if (tool != NULL && !engine->passes_through)
            sbt_log(1, "stepping aside, the program runs on plain glibc: it is built with ", tool, NULL);
        else
            sbt_log(2, "engine ", engine->name, NULL);
        return;
    }
    const char *unknown = learn_layout();
    if (unknown != NULL)
        give_up("this C library's ", unknown, " layout is not one that objects can be told apart in");
    sbt_engine.thread_enter();
    sbt_log(2, "engine ", engine->name, NULL);
    want_switching(engine);
}

/* Relaxed where only the starting thread itself can see its own value; STARTED is released to all others. */
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
    /* Within itself (an allocator's lock inside a look-up): go on with what is there. Beside another thread: wait for
     * it. */
    while (__atomic_load_n(&starter, __ATOMIC_ACQUIRE) != self &&
           __atomic_load_n((int *)&progress, __ATOMIC_ACQUIRE) != STARTED)
        sbt_pause_ns(50000);
}

/* Take this library out of LD_PRELOAD, so that programs started from here on run without it. */
static void leave_children_alone(void) {
    Dl_info self;
    char *list = getenv("LD_PRELOAD");
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
}

__attribute__((constructor)) static void construct(void) {
    sbt_init();
    pthread_atfork(fork_prepare, fork_parent, fork_child);
    if (sbt_options.value[SBT_OPT_CHILDREN].u == 0)
        leave_children_alone();
}
