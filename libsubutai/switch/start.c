/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Beginning and end: whether this process is to be switched, its carriers and its watcher, the pool of contexts.
 *
 * Decided before the first thread is created: all libraries that the program is linked with are there by then, and a
 * process with one thread has nobody to switch to.
 */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "core/init.h"
#include "core/log.h"
#include "core/real.h"
#include "core/thread.h"
#include "switch/inner.h"

union sbt_switch_memory sbt_switch_memory __attribute__((aligned(SBT_PAGE_MAX)));
bool sbt_switch_wanted;
bool sbt_switch_interrupts;
bool (*sbt_switch_idle_work)(void);
bool sbt_switch_insisted;
static bool wiped;               /* in forked children, by the kernel */
static struct sbt_context *pool; /* address space only, until used; never given back */
static struct sbt_husk main_husk;
static pthread_key_t main_key;
static bool main_key_made;

uint32_t sbt_switch_running_load(void) {
    return __atomic_load_n(&SBT_SWITCH->running, __ATOMIC_RELAXED);
}

void sbt_switch_want(bool insist) {
    sbt_switch_wanted = true;
    sbt_switch_insisted = insist;
    sbt_handlers_returned = sbt_switch_mask_changed; /* by the return, of a context that has waited in the handler */
    sbt_summon_reserve();
}

/* ---- the pool ---- */
struct sbt_context *sbt_pool_get(void) {
    struct sbt_switch_state *s = SBT_SWITCH;
    sbt_switch_enter();
    sbt_switch_take(&s->pool_guard);
    struct sbt_context *c = s->pool_free;
    if (c != NULL)
        s->pool_free = c->next;
    else if (s->pool_used < SBT_POOL_MAX)
        c = &pool[s->pool_used];
    /* The first time in this process, or taken out after its last thread had ended: it may join again. */
    if (c != NULL && (c == &pool[s->pool_used] || __atomic_load_n(&c->in_crowd, __ATOMIC_RELAXED) != SBT_CROWD_JOINED))
        __atomic_store_n(&c->in_crowd, SBT_CROWD_NOT, __ATOMIC_RELAXED);
    if (c == &pool[s->pool_used])
        s->pool_used++;
    sbt_switch_drop(&s->pool_guard);
    sbt_switch_leave();
    return c;
}

void sbt_pool_put(struct sbt_context *c) {
    struct sbt_switch_state *s = SBT_SWITCH;
    sbt_switch_enter();
    sbt_switch_take(&s->pool_guard);
    c->next = s->pool_free;
    s->pool_free = c;
    sbt_switch_drop(&s->pool_guard);
    sbt_switch_leave();
}

struct sbt_context *sbt_pool_find(pthread_t thread, uint32_t tid) {
    uint32_t n = __atomic_load_n(&SBT_SWITCH->pool_used, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < n; i++)
        if ((thread != 0 && __atomic_load_n(&pool[i].thread, __ATOMIC_RELAXED) == thread) ||
            (tid != 0 && __atomic_load_n(&pool[i].tid, __ATOMIC_RELAXED) == tid))
            return &pool[i];
    return NULL;
}

bool sbt_context_is_word(const uint32_t *word) {
    return pool != NULL && (uintptr_t)word - (uintptr_t)pool < SBT_POOL_MAX * sizeof *pool;
}

struct sbt_context *sbt_pool_nth(uint32_t i) {
    return &pool[i];
}

uint32_t sbt_pool_index(const struct sbt_context *c) {
    return (uint32_t)(c - pool);
}

/* ---- the end ---- */
static void quit(struct sbt_switch_state *s) {
    __atomic_store_n(&s->running, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&s->quit, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&s->watcher_sleeps, 0, __ATOMIC_RELAXED);
    sbt_futex_wake(&s->watcher_sleeps, 1);
    for (uint32_t i = 0; i < s->n_carriers; i++) {
        __atomic_store_n(&s->carrier[i].asleep, 0, __ATOMIC_RELEASE);
        sbt_futex_wake(&s->carrier[i].asleep, 1);
    }
}

/*
 * Glibc ends the process when its last thread ends; carriers and watcher are threads to it. They follow the program's
 * last one.
 */
void sbt_switch_thread_gone(void) {
    struct sbt_switch_state *s = SBT_SWITCH;
    if (__atomic_sub_fetch(&s->n_threads, 1, __ATOMIC_ACQ_REL) < 0 && sbt_switch_running_load() != 0)
        quit(s);
}

/* The main thread ends by pthread_exit: as a destructor of its thread-specific data, which a normal exit does not run.
 */
static void main_gone(void *unused) {
    (void)unused;
    sbt_switch_thread_end();
    sbt_switch_thread_gone();
}

/* ---- the beginning ---- */
static bool create(void *(*routine)(void *), void *argument) {
    pthread_t thread;
    if (sbt_real.pthread_create(&thread, NULL, routine, argument) != 0)
        return false;
    pthread_detach(thread);
    return true;
}

/*
 * Handlers of the program's may run on carriers, which have a TLS of their own, but not on the watcher; the C library's
 * may: it waits for every thread to change its credentials.
 */
static bool create_watcher(void) {
    uint64_t all = ~SBT_MASK_RESERVED, before = sbt_mask_set(&all);
    bool created = create(sbt_watcher_main, NULL);
    sbt_mask_set(&before);
    return created;
}

static const char *start(struct sbt_switch_state *s) {
    const size_t bytes = SBT_POOL_MAX * sizeof *pool;
    if (pool == NULL) {
        void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            return "there is no address space for contexts";
        pool = memory;
    }
    if (!main_key_made && pthread_key_create(&main_key, main_gone) != 0)
        return "there is no thread-specific key";
    main_key_made = true;
    uint32_t n = sbt_n_cpus < SBT_CARRIERS_MAX ? sbt_n_cpus : SBT_CARRIERS_MAX;
    s->n_carriers = n;
    s->base_mask = sbt_mask_set(NULL) & ~sbt_kick_bits;
    for (uint32_t i = 0; i < n; i++)
        if (!create(sbt_carrier_main, &s->carrier[i])) {
            s->n_carriers = i;
            quit(s);
            return "threads to carry contexts cannot be created";
        }
    if (!create_watcher()) {
        quit(s);
        return "a thread to watch over contexts cannot be created";
    }
    return NULL;
}

static const char *not_here(bool *main_stays) {
    static struct sbt_eligibility e;
    static char line[512];
    const char *why = sbt_regs_unusable();
    *main_stays = true;
    if (why != NULL)
        return why;
    if (!sbt_thread_wipes_on_fork() && !sbt_switch_insisted)
        return "the kernel does not clear memory in forked children";
#ifdef SBT_OBSERVED
    if (!sbt_switch_insisted && sbt_options.value[SBT_OPT_RECORD].s != NULL)
        return "a thread that is recorded stays on a kernel thread, whose CPU time is its work";
#endif
    sbt_switch_judge(&e);
    sbt_switch_recall(&e);
    *main_stays = e.main_stays;
    sbt_switch_allow_for(&e);
    if (e.summons && !sbt_summon_start() && !sbt_switch_insisted)
        return "no real-time signal is left to fetch threads by";
    if (e.reason == NULL || sbt_switch_insisted)
        return NULL;
    const char *parts[] = {e.object, " uses ", e.symbol, ", which ", e.reason};
    line[0] = '\0';
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        strncat(line, parts[i], sizeof line - 1 - strlen(line));
    return line;
}

static void decide(struct sbt_switch_state *s) {
    bool main_stays;
    const char *why = not_here(&main_stays);
    if (why == NULL)
        why = start(s);
    if (why != NULL) {
        sbt_log(1, "waiting adaptively, not by switching: ", why, NULL);
        return;
    }
    s->process = sbt_syscall0(SYS_getpid);
    __atomic_store_n(&s->running, 1, __ATOMIC_RELEASE);
    bool is_main = sbt_thread_tid() == (uint32_t)sbt_syscall0(SYS_getpid);
    if (is_main) {
        s->main_thread = pthread_self();
        s->main_tid = sbt_thread_tid();
    }
    if (is_main && !sbt_self.counted) /* counted: in a child that another thread than the first has forked */
        pthread_setspecific(main_key, &main_key);
    if (is_main && !main_stays)
        sbt_switch_thread_begin(&main_husk);
    sbt_log(2, "waiting by switching", NULL);
}

void sbt_switch_before_create(void) {
    struct sbt_switch_state *s = SBT_SWITCH;
    uint32_t seen = 0;
    __atomic_fetch_add(&s->n_threads, 1, __ATOMIC_RELAXED);
    if (__atomic_load_n(&s->decided, __ATOMIC_RELAXED) == 0 &&
        __atomic_compare_exchange_n(&s->decided, &seen, 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        decide(s);
}

/* Carriers and watcher are the parent's. The kernel has wiped the state, or this does, a little late. */
void sbt_switch_fork_child(void) {
    sbt_self.context = NULL;
    sbt_self.in_switch = 0;
    sbt_switch_release();
    if (sbt_switch_wanted && !(wiped && sbt_thread_wipes_on_fork()))
        memset(&sbt_switch_memory, 0, sizeof sbt_switch_memory);
}

__attribute__((constructor)) static void wipe_in_children(void) {
    wiped = madvise(&sbt_switch_memory, sizeof sbt_switch_memory, MADV_WIPEONFORK) == 0;
}
