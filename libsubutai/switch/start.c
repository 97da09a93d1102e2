/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Beginning and end of switching: the decision whether this process is switched, its carriers and its monitor.
 *
 * The decision is made before the first thread is created. By then all libraries that the program is linked with are
 * loaded, and a process with one thread has nothing to switch to.
 */
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "core/cpus.h"
#include "core/log.h"
#include "core/options.h"
#include "core/sites.h"
#include "core/thread.h"
#include "os/fence.h"
#include "os/objects.h"
#include "os/proc.h"
#include "os/real.h"
#include "switch/eligibility.h"
#include "switch/mask.h"
#include "switch/monitor.h"
#include "switch/recall.h"
#include "switch/receive.h"
#include "switch/share.h"
#include "switch/state.h"

#define STACK_BYTES ((size_t)256 << 10) /* a carrier's, beside its TLS: only the library's code runs on it */
#define SHARE 16                        /* the library's memory is at most this part of what the program may have */

union sbt_switch_memory sbt_switch_memory __attribute__((aligned(SBT_PAGE_MAX)));
bool sbt_switch_wanted;
bool sbt_switch_interrupts;
bool (*sbt_switch_idle_work)(void);
void (*sbt_switch_each_look)(const struct sbt_switch_look *look);
bool sbt_switch_insisted;
bool sbt_switch_is_needed;
bool sbt_switch_starts_early;
bool sbt_switch_weighs;
enum sbt_switch_want sbt_switch_how;
static bool wiped; /* the kernel wipes the state in forked children */

uint32_t sbt_switch_running_load(void) {
    return __atomic_load_n(&SBT_SWITCH->running, __ATOMIC_RELAXED);
}

/*
 * A wait in the handler may have taken the token that was meant for the interrupted wait:
 *  1. The fiber has told its wakers that it waits. A signal comes before it sleeps.
 *  2. A waker gives it the token.
 *  3. A wait in the handler takes the token, and looks again at what it waits for.
 *  4. The handler returns, and the fiber would sleep for ever.
 * So it gets a token back, and the interrupted wait looks again too. Relaxed: the fiber's own.
 */
static void look_again(void) {
    uint32_t none = SBT_TOKEN_NONE;
    if (sbt_self.fiber != NULL)
        __atomic_compare_exchange_n(&sbt_self.fiber->token, &none, SBT_TOKEN_TOKEN, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED);
}

static void handler_entered(void) {
    sbt_leave_undo();
    sbt_switch_mask_changed();
}

static void handler_returned(void *context) {
    sbt_switch_mask_changed();
    sbt_signal_stack_returned(context);
    look_again();
}

void sbt_switch_want(enum sbt_switch_want how) {
    sbt_switch_wanted = true;
    sbt_switch_how = how;
    sbt_switch_insisted = how == SBT_SWITCH_ANYWAY || how == SBT_SWITCH_BY_TURNS;
    sbt_switch_weighs = how == SBT_SWITCH_IF_IT_PAYS || how == SBT_SWITCH_BY_TURNS;
    /* a fiber may wait in a handler: the kernel sets the mask when the handler begins, and when it returns */
    sbt_handlers_put_back = sbt_leave_put_back;
    sbt_handlers_entered = handler_entered;
    sbt_handlers_returned = handler_returned;
    sbt_recall_begin();
    if (how != SBT_SWITCH_IF_IT_PAYS) /* otherwise before the first recall, or before the program asks for SIGRTMAX */
        sbt_recall_reserve();
}

/* ---- the end ---- */
static void quit(struct sbt_switch_state *s) {
    __atomic_store_n(&s->running, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&s->quit, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&s->monitor_sleeps, SBT_MONITOR_AWAKE, __ATOMIC_SEQ_CST); /* pairs with sleep_to_the_end */
    sbt_futex_wake(&s->monitor_sleeps, 1);
    /*
     * Pairs with sbt_switch_add_carriers. It raises n_carriers and then looks at `quit`. So either this wakes the
     * carrier that is added, or none is added.
     */
    for (uint32_t i = 0; i < __atomic_load_n(&s->n_carriers, __ATOMIC_SEQ_CST); i++) {
        __atomic_store_n(&s->carrier[i].asleep, 0, __ATOMIC_RELEASE);
        sbt_futex_wake(&s->carrier[i].asleep, 1);
    }
    if (__atomic_load_n(&s->has_monitor, __ATOMIC_ACQUIRE) > SBT_MONITOR_BEGINS) /* first: it may create carriers */
        sbt_thread_await_end(s->monitor);
    /* In this order: while a carrier creates others, n_own grows, and those come after it. */
    for (uint32_t i = 0; i < __atomic_load_n(&s->n_own, __ATOMIC_ACQUIRE); i++)
        sbt_thread_await_end(s->own[i]);
    s->n_own = 0;
}

/*
 * glibc ends the process when its last thread ends, by exit() on that thread, and it counts carriers and the monitor as
 * threads. So the program's last thread ends them first. Exit handlers then run on a thread of the program, with its
 * signal mask and its file descriptors. That may also be a thread that passed this point earlier.
 */
void sbt_switch_thread_gone(void) {
    struct sbt_switch_state *s = SBT_SWITCH;
    int32_t n = __atomic_sub_fetch(&s->n_threads, 1, __ATOMIC_ACQ_REL);
    if (sbt_switch_running_load() == 0)
        return;
    if (n == 0)
        sbt_runq_tell_monitor_alone();
    else if (n < 0)
        quit(s);
}

/* ---- the beginning ---- */
static int add_tls(struct dl_phdr_info *info, size_t size, void *bytes) {
    (void)size;
    for (size_t i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS)
            *(size_t *)bytes += info->dlpi_phdr[i].p_memsz + info->dlpi_phdr[i].p_align;
    return 0;
}

/* glibc puts a thread's static TLS on its stack. */
static size_t own_stack_bytes(void) {
    size_t bytes = STACK_BYTES;
    sbt_objects_iterate(add_tls, &bytes);
    return bytes;
}

static bool create(pthread_t *thread, void *(*routine)(void *), void *argument) {
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, own_stack_bytes());
    int r = sbt_real.pthread_create(thread, &attr, routine, argument);
    pthread_attr_destroy(&attr);
    return r == 0;
}

/* Not after the process has begun to end, nor after switching has: then a system call may be fatal. */
static bool may_create(const struct sbt_switch_state *s) {
    return __atomic_load_n(&s->quit, __ATOMIC_SEQ_CST) == 0 &&
           (__atomic_load_n(&s->no_more, __ATOMIC_SEQ_CST) & SBT_SWITCH_ENDED) == 0;
}

/*
 * Create carriers until there are n_carriers. False: one cannot be created. Pairs with sbt_switch_end, which stores
 * that switching has ended, fences, and waits while carriers are being created. So either this sees the end, or that
 * waits for the carriers.
 */
static bool create_carriers(struct sbt_switch_state *s) {
    bool can = true;
    __atomic_store_n(&s->creating, 1, __ATOMIC_SEQ_CST);
    for (uint32_t i = s->n_own; can && i < s->n_carriers && may_create(s); i++) {
        can = create(&s->own[i], sbt_carrier_main, &s->carrier[i]);
        if (can)
            __atomic_store_n(&s->n_own, i + 1, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&s->creating, 0, __ATOMIC_RELEASE);
    return can;
}

/* A carrier for each of n CPUs, and one that rests if the machine has more of them. */
static uint32_t with_rest(const struct sbt_switch_state *s, uint32_t n) {
    return n < s->n_most ? n + 1 : s->n_most;
}

static uint32_t at_most(uint32_t n, uint32_t most) {
    return n < most ? n : most;
}

/* Carriers that are to be active: as many as usable CPUs, of which one at least is no server. */
static uint32_t n_to_be_active(uint32_t n_most) {
    uint32_t n = at_most(sbt_usable_cpus(), n_most);
    return n > sbt_switch_servers ? n : sbt_switch_servers + 1;
}

bool sbt_switch_start_carriers(void) {
    struct sbt_switch_state *s = SBT_SWITCH;
    uint32_t n = n_to_be_active(s->n_most);
    if (s->n_own != 0)
        return true;
    __atomic_store_n(&s->n_active, n, __ATOMIC_RELAXED);
    __atomic_store_n(&s->n_carriers, with_rest(s, n), __ATOMIC_RELEASE);
    if (s->signal_stacks != 0 && !sbt_signal_stack_start(s->carrier, s->n_most))
        return false;
    return create_carriers(s);
}

static bool has_monitor(uint32_t state) {
    return state == SBT_MONITOR_BEGINS || state == SBT_MONITOR_RUNS;
}

static bool start_monitor(struct sbt_switch_state *s) {
    uint32_t was = __atomic_load_n(&s->has_monitor, __ATOMIC_ACQUIRE);
    if (has_monitor(was) || !__atomic_compare_exchange_n(&s->has_monitor, &was, SBT_MONITOR_BEGINS, false,
                                                         __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return true;
    if (was == SBT_MONITOR_LEFT)
        sbt_thread_await_end(s->monitor);
    bool runs = create(&s->monitor, sbt_monitor_main, NULL);
    __atomic_store_n(&s->has_monitor, runs ? SBT_MONITOR_RUNS : SBT_MONITOR_NONE, __ATOMIC_RELEASE);
    return runs;
}

/*
 * Pairs with a thread that creates another: it counts that one in n_threads, and then looks whether there is a monitor.
 * So either this sees the new thread, or the creator sees that the monitor has left and starts another. If both do, the
 * exchanges decide.
 */
bool sbt_switch_monitor_leaves(void) {
    struct sbt_switch_state *s = SBT_SWITCH;
    uint32_t runs = SBT_MONITOR_RUNS, left = SBT_MONITOR_LEFT;
    if (!__atomic_compare_exchange_n(&s->has_monitor, &runs, left, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        return false; /* its creator has not come so far as to say that it runs */
    return __atomic_load_n(&s->n_threads, __ATOMIC_SEQ_CST) == 0 ||
           !__atomic_compare_exchange_n(&s->has_monitor, &left, SBT_MONITOR_RUNS, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED);
}

uint32_t sbt_switch_n_own(void) {
    const struct sbt_switch_state *s = SBT_SWITCH;
    return __atomic_load_n(&s->n_own, __ATOMIC_RELAXED) +
           has_monitor(__atomic_load_n(&s->has_monitor, __ATOMIC_RELAXED));
}

/*
 * No handler of the program runs on carriers and monitor. The C library's own handlers may: to change its credentials
 * it waits for every thread. The result is the mask from before, for sbt_mask_set.
 */
static uint64_t block_all(void) {
    uint64_t all = ~SBT_MASK_RESERVED;
    return sbt_mask_set(&all);
}

static bool is_short(int limit, size_t bytes) {
    struct {
        uint64_t now, most;
    } of = {UINT64_MAX, UINT64_MAX};
    return sbt_syscall6(SYS_prlimit64, 0, limit, 0, (long)&of, 0, 0) == 0 && of.now / SHARE < bytes;
}

/*
 * Would the pool and the stacks of carriers and monitor take too much of the limits on memory? If they took more than a
 * small part, the program's own threads might find no room.
 */
static bool is_too_much(uint32_t n_own) {
    size_t bytes = SBT_POOL_BYTES + n_own * own_stack_bytes();
    return is_short(RLIMIT_AS, bytes) || is_short(RLIMIT_DATA, bytes);
}

/* ---- usable CPUs become more or fewer ---- */
static void wake_rested(struct sbt_switch_state *s, uint32_t from, uint32_t to) {
    sbt_fence_light(); /* pairs with the heavy fence of a carrier that goes to rest (find) */
    for (uint32_t i = from; i < to; i++) {
        __atomic_store_n(&s->carrier[i].asleep, 0, __ATOMIC_RELEASE);
        sbt_futex_wake(&s->carrier[i].asleep, 1);
    }
}

static void set_active(struct sbt_switch_state *s, uint32_t n) {
    uint32_t before = __atomic_load_n(&s->n_active, __ATOMIC_RELAXED);
    __atomic_store_n(&s->n_active, n, __ATOMIC_RELAXED);
    if (before < n)
        wake_rested(s, before, n);
}

void sbt_switch_follow_cpus(void) {
    struct sbt_switch_state *s = SBT_SWITCH;
    uint32_t n_own = __atomic_load_n(&s->n_own, __ATOMIC_ACQUIRE);
    uint32_t most = __atomic_load_n(&s->n_most, __ATOMIC_RELAXED), n = n_to_be_active(most);
    if (SBT_LIKELY(n == __atomic_load_n(&s->n_active, __ATOMIC_RELAXED)) || n_own == 0)
        return;
    bool too_few = n >= n_own && n_own < most; /* the last one is woken, and creates the others */
    __atomic_store_n(&s->n_wanted, too_few ? n : 0, __ATOMIC_RELAXED);
    set_active(s, too_few ? n_own : n);
}

void sbt_switch_add_carriers(struct sbt_carrier *x) {
    struct sbt_switch_state *s = SBT_SWITCH;
    uint32_t n = __atomic_load_n(&s->n_wanted, __ATOMIC_RELAXED);
    if (x != &s->carrier[s->n_own - 1] || n < s->n_own)
        return;
    __atomic_store_n(&s->n_wanted, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&s->n_carriers, with_rest(s, n), __ATOMIC_SEQ_CST);
    sbt_switch_leave();
    uint64_t before = block_all();
    bool all = !is_too_much(s->n_carriers - s->n_own) && create_carriers(s);
    sbt_mask_set(&before);
    sbt_switch_enter();
    if (!all)
        __atomic_store_n(&s->n_most, s->n_own, __ATOMIC_RELAXED);
}

/* ---- the decision ---- */
static const char *start(struct sbt_switch_state *s) {
    s->n_most = at_most(sbt_cpus_most(), SBT_CARRIERS_MAX);
    s->n_most = s->n_most > sbt_switch_servers ? s->n_most : sbt_switch_servers + 1;
    s->n_active = n_to_be_active(s->n_most);
    if (is_too_much(with_rest(s, s->n_active) + 1))
        return "the limit of address space leaves too little for carrier threads";
    if (!sbt_pool_start())
        return "there is no address space for fibers";
    s->main_mask = sbt_mask_set(NULL) & ~sbt_recall_signals;
    s->all_pinned = sbt_switch_weighs;
    if (sbt_switch_weighs && !sbt_switch_starts_early)
        return NULL;
    uint64_t before = block_all();
    const char *why = !sbt_switch_start_carriers()              ? "the carrier threads cannot be created"
                      : !sbt_switch_weighs && !start_monitor(s) ? "the monitor thread cannot be created"
                                                                : NULL;
    sbt_mask_set(&before);
    if (why != NULL)
        quit(s);
    return why;
}

/* Not where a monitor has found that the program may not be switched, nor after switching has ended (may_create). */
static bool has_use_for_monitor(const struct sbt_switch_state *s) {
    return __atomic_load_n(&s->is_refused, __ATOMIC_RELAXED) == 0 && may_create(s);
}

/*
 * Where it is found out whether switching pays there are no carriers until it does, and no monitor while the program
 * has a single thread beside its first: with a CPU for each of the two, switching has nothing to give. The monitor
 * creates the carriers. So it must inherit what the program's first thread began with. If no thread but one is left,
 * and there are no carriers, it leaves (monitor.c).
 */
static void begin_to_watch(struct sbt_switch_state *s, int32_t n_threads) {
    bool may_pay = n_threads > 1 || sbt_usable_cpus() == 1 || sbt_switch_how == SBT_SWITCH_BY_TURNS;
    if (!may_pay || has_monitor(__atomic_load_n(&s->has_monitor, __ATOMIC_SEQ_CST)) || sbt_switch_running_load() == 0 ||
        !has_use_for_monitor(s) || sbt_pin_inherited() != SBT_PIN_NOT)
        return;
    uint64_t before = block_all();
    start_monitor(s); /* if it cannot be created all threads go on waiting adaptively */
    sbt_mask_set(&before);
}

/* Can a process be switched here at all? NULL: yes. */
static const char *not_here(void) {
    const char *why = sbt_regs_unusable();
    if (why != NULL)
        return why;
#ifdef SBT_PREFIX
    /* A signal to a thread that is away would find its home thread, and neither recall it nor end its wait. */
    if (!sbt_switch_insisted)
        return "a library that is linked to the program does not see the signals and cancellations that it sends";
#endif
    if (!sbt_fork_wipes() && !sbt_switch_insisted)
        return "the kernel does not clear memory in forked children";
    if (sbt_syscall0(SYS_getpid) < 0 || sbt_syscall0(SYS_gettid) < 0)
        return "a filter of system calls does not let threads know their ids";
#ifdef SBT_OBSERVED
    if (!sbt_switch_insisted && sbt_options.value[SBT_OPT_RECORD].s != NULL)
        return "a recorded thread keeps its kernel thread, so that its CPU time can be measured";
#endif
    return NULL;
}

const char *sbt_switch_judge(bool *pins_main) {
    static struct sbt_eligibility e;
    static char line[SBT_SENTENCE_SIZE];
    /*
     * Before the look at the loaded objects: the dynamic linker's lock orders that look and a load. So either the look
     * sees what another thread loads, or that thread sees `judged`, and judges it (sbt_eligibility_after_load).
     */
    __atomic_store_n(&SBT_SWITCH->judged, 1, __ATOMIC_RELEASE);
    sbt_eligibility_judge(&e);
    sbt_eligibility_add_known(&e);
    *pins_main = e.pins_main;
    SBT_SWITCH->signal_stacks = e.signal_stacks;
    sbt_eligibility_allow_for(&e);
    if (e.recalls && !sbt_recall_start() && !sbt_switch_insisted)
        return "the program uses all real-time signals, and Subutai needs one for signals to single threads";
    if (e.reason == NULL || sbt_switch_insisted)
        return NULL;
    return sbt_eligibility_sentence(line, e.object, e.symbol, e.reason);
}

/*
 * Is the program judged before its first thread? Otherwise when there is a sign that switching pays: judging takes a
 * while. Under a filter the calls of a start may be fatal. Where mutexes are to be delegated it is said at once that
 * none will be: there may never be such a sign.
 */
static bool is_judged_now(void) {
    return !sbt_switch_weighs || sbt_switch_starts_early || sbt_switch_is_needed || sbt_eligibility_knows_reason();
}

static void decide(struct sbt_switch_state *s) {
    bool pins_main = false;
    const char *why = not_here();
    if (why == NULL && is_judged_now())
        why = sbt_switch_judge(&pins_main);
    if (why == NULL)
        why = start(s);
    if (why != NULL) {
        sbt_switch_say(false, why);
        return;
    }
    s->process = sbt_syscall0(SYS_getpid);
    sbt_share_begin();
    __atomic_store_n(&s->running, 1, __ATOMIC_RELEASE);
    if (!sbt_switch_weighs)
        sbt_sites_spin(false);
    sbt_receive_check_idle();
    bool is_main = sbt_thread_tid() == (uint32_t)sbt_syscall0(SYS_getpid);
    if (is_main) {
        s->main_thread = pthread_self();
        s->main_tid = sbt_thread_tid();
    }
    if (is_main && !pins_main)
        sbt_switch_thread_begin();
    sbt_log(2, sbt_switch_weighs ? "waiting by switching while that gets more done" : "waiting by switching", NULL);
}

/* As in a forked child: nothing is left of carriers and monitor, and the caller has no fiber. */
static void forget(void) {
    sbt_self.fiber = NULL;
    sbt_self.in_switch = 0;
    sbt_pin_release();
    memset(&sbt_switch_memory, 0, sizeof sbt_switch_memory);
}

void sbt_switch_leave_alone(void) {
    struct sbt_switch_state *s = SBT_SWITCH;
    if (SBT_LIKELY(sbt_switch_running_load() == 0) || __atomic_load_n(&s->n_threads, __ATOMIC_RELAXED) > 0 ||
        sbt_self.in_switch != 0 || sbt_syscall0(SYS_getpid) != s->process)
        return;
    sbt_pin_hold();
    quit(s);
    sbt_proc_await_alone();
    forget();
}

void sbt_switch_before_create(void) {
    struct sbt_switch_state *s = SBT_SWITCH;
    uint32_t seen = 0;
    int32_t n = __atomic_add_fetch(&s->n_threads, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&s->decided, __ATOMIC_RELAXED) == 0 &&
        __atomic_compare_exchange_n(&s->decided, &seen, 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        decide(s);
    if (sbt_switch_weighs)
        begin_to_watch(s, n);
}

/*
 * Carriers and monitor stay with the parent. The kernel has wiped the state. If it cannot, this does so, a little late.
 */
void sbt_switch_fork_child(void) {
    struct sbt_fiber *f = sbt_self.fiber;
    if (sbt_switch_wanted && !(wiped && sbt_fork_wipes())) {
        forget();
    } else {
        sbt_self.fiber = NULL;
        sbt_self.in_switch = 0;
        sbt_pin_release();
    }
    if (f != NULL)
        sbt_pool_fork_child(f);
}

__attribute__((constructor)) static void wipe_in_children(void) {
    wiped = sbt_syscall3(SYS_madvise, &sbt_switch_memory, sizeof sbt_switch_memory, MADV_WIPEONFORK) == 0;
}
