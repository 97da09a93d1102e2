/* SPDX-License-Identifier: LGPL-2.1-or-later */
#define SWITCH_SCHED_ITSELF
#include "switch_sched.h"

#include "core/cpus.h"
#include "core/handlers.h"
#include "core/priority.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/resource.h>

#include "choices.h"
#include "core/sites.h"
#include "switch/eligibility.h"
#include "switch/monitor.h"
#include "switch/state.h"
#include "wait/wake_gap.h"

enum { STACK_BYTES = 64 * 1024, MAX_REGS = 64, MAX_TICKS = 64 };

struct thread {
    uint32_t *word; /* a futex word: blocked on it, or paused */
    uint32_t runs;  /* a futex word; 0: it has ended */
    bool is_joined;
    uint32_t sleeps; /* how often it was */
    uint64_t mask;   /* of signals */
    void (*handler)(void);
    void *(*routine)(void *);
    void *argument;
    struct sbt_regs regs;
    struct sbt_thread *self; /* the thread-local storage that it has when it goes on */
    struct sbt_thread own;
    struct direct_self direct; /* comes with `own` */
};

static bool is_monitor(const struct thread *t) {
    return t->routine == sbt_monitor_main;
}

struct sbt_thread *sched_self;
struct sbt_real sbt_real;
uint32_t sbt_n_runnable, sbt_n_cpus, sbt_n_cpus_at_once, sched_n_cpus_most;

static char stacks[SCHED_MAX_THREADS][STACK_BYTES] __attribute__((aligned(64)));
static struct thread thread[SCHED_MAX_THREADS];
static uint32_t n_threads, current;
/* A bit a thread: can go on; pauses; has ended. The others are blocked. */
static uint32_t ready, paused, ended;
static struct sbt_thread root_self;
static struct sbt_regs root;
static bool under_way, with_monitor, leaves, by_chance;
static const char *wrong;
static uint64_t now_ns, random_state, n_switches, n_came_again;

/* An object that the program has destroyed: filled with FREED, and to stay so. */
enum { FREED = 0x5A };
static const void *freed;
static size_t freed_bytes;

static struct choices choices;
static uint32_t n_preempted, max_preempted, ticks_in_vain, ticker;

/* Registers that have been left, and not been resumed since: only those may be resumed. */
static struct {
    const struct sbt_regs *regs;
    bool left;
} known[MAX_REGS];

/* ---- choosing ---- */
static void to_root(void) {
    struct sbt_regs nowhere, to = {root.sp, sbt_tls_base()};
    under_way = false;
    sched_self = &root_self;
    sbt_regs_switch(&nowhere, &to, NULL);
    abort();
}

/* The thread that this is the thread-local storage of; n_threads: the one that sets all up. */
static uint32_t owner_of(const struct sbt_thread *own) {
    size_t at = (size_t)((uintptr_t)own - (uintptr_t)&thread[0].own) / sizeof thread[0];
    return at < n_threads ? (uint32_t)at : n_threads;
}

struct direct_self *sched_direct_self(void) {
    static struct direct_self roots;
    uint32_t i = owner_of(sched_self);
    return i < n_threads ? &thread[i].direct : &roots;
}

void sched_wrong(const char *what) {
    if (wrong == NULL)
        wrong = what;
    to_root();
    abort();
}

static uint64_t next_random(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static uint32_t choose(uint32_t n) {
    if (n == 1)
        return 0;
    if (by_chance)
        return (uint32_t)(next_random() >> 33) % n;
    if (choices_are_full(&choices))
        sched_wrong("it does not come to an end");
    return choices_choose(&choices, n);
}

static void go_on_with(uint32_t next) {
    uint32_t last = current;
    if (next == last)
        return;
    thread[last].self = sched_self;
    current = next;
    sched_self = thread[next].self;
    struct sbt_regs to = {thread[next].regs.sp, sbt_tls_base()};
    sbt_regs_switch(&thread[last].regs, &to, &thread[next]);
}

static void take(uint32_t next) {
    if (next != ticker)
        ticks_in_vain = 0;
    if (choices_are_full(&choices))
        sched_wrong("it does not come to an end");
    choices.course[choices.n_points++] = (uint8_t)next;
}

/* No thread is ready: the next that pauses goes on. */
static uint32_t tick(void) {
    for (uint32_t k = 1; k <= n_threads; k++) {
        uint32_t i = (ticker + k) % n_threads;
        if ((paused & 1u << i) == 0)
            continue;
        ticker = i;
        if (++ticks_in_vain > MAX_TICKS)
            sched_wrong("a thread waits for ever (the monitor has nothing to do)");
        return i;
    }
    if (ended != (1u << n_threads) - 1)
        sched_wrong("a thread waits for ever");
    to_root();
    abort();
}

/*
 * The thread that runs goes on for as long as it can; another thread in its place is a preemption. A thread that pauses
 * goes on by a preemption too, or when no other thread can.
 */
static void reschedule(void) {
    uint32_t me = 1u << current, stays = (ready & me) != 0, next;
    uint32_t others = !stays ? ready : n_preempted < max_preempted ? (ready | paused) & ~me : 0;
    if (others == 0) {
        next = stays ? current : tick();
    } else if (stays + (others & (others - 1)) == 0) {
        next = bits_nth(others, 0);
    } else {
        /* What is given was chosen from as many before. */
        bool given = choices.n < choices.n_given;
        uint32_t chosen = given ? choices.chosen[choices.n++] : choose(stays + bits_count(others));
        next = chosen < stays ? current : bits_nth(others, chosen - stays);
        n_preempted += stays && next != current;
    }
    take(next);
    ready |= 1u << next;
    paused &= ~(1u << next);
    go_on_with(next);
}

void sched_point(void) {
    if (!under_way)
        return;
    if (n_preempted >= max_preempted && (ready & 1u << current) != 0)
        take(current);
    else
        reschedule();
}

void sched_interrupt(void (*handler)(void)) {
    thread[current].handler = handler;
}

void sched_free(void *object, size_t bytes) {
    memset(object, FREED, bytes);
    freed = object;
    freed_bytes = bytes;
}

bool sched_is_freed(const void *object) {
    return freed == object;
}

/* ---- the kernel ---- */
static void block(uint32_t *word, bool until_deadline) {
    ready &= ~(1u << current);
    paused |= (uint32_t)until_deadline << current;
    thread[current].word = word;
    thread[current].sleeps++;
    reschedule();
    thread[current].word = NULL;
}

/* Only where the monitor leaves do deadlines come: then when no other thread can go on, as the end of a pause does. */
int sched_futex_wait(uint32_t *word, uint32_t expected, const struct sbt_deadline *deadline) {
    sched_point();
    if (*word != expected)
        return 0;
    if (thread[current].handler != NULL && sched_self->in_lot == 0) {
        void (*handler)(void) = thread[current].handler;
        thread[current].handler = NULL;
        handler();
        return 0;
    }
    block(word, deadline != NULL && leaves);
    return 0;
}

static long wake(const uint32_t *word, int n) {
    long woken = 0;
    for (uint32_t i = 0; i < n_threads && woken < n; i++)
        if (((ready | ended) & 1u << i) == 0 && thread[i].word == word) {
            ready |= 1u << i;
            paused &= ~(1u << i);
            woken++;
        }
    return woken;
}

long sched_futex_wake(uint32_t *word, int n) {
    sched_point();
    return wake(word, n);
}

void sched_pause(void) {
    ready &= ~(1u << current);
    paused |= 1u << current;
    reschedule();
}

uint64_t sched_now_ns(void) {
    return now_ns += 1000000; /* a thread that looks at the clock finds that it has waited long enough */
}

/* The monitor reads a thread's state in /proc; the descriptor tells which. */
long sched_syscall(long nr, long a, long b, long c) {
    if (nr == SYS_rt_sigprocmask) {
        *(uint64_t *)c = thread[current].mask;
        if (b != 0)
            thread[current].mask = *(const uint64_t *)b;
        return 0;
    }
    if (nr == SYS_clock_gettime) {
        uint64_t now = sched_now_ns();
        *(struct timespec *)b = (struct timespec){(time_t)(now / 1000000000), (long)(now % 1000000000)};
        return 0;
    }
    if (nr == SYS_getcpu) {
        *(unsigned *)a = current % 2;
        return 0;
    }
    if (nr == SYS_getrusage) {
        ((struct rusage *)b)->ru_nvcsw = thread[current].sleeps;
        return 0;
    }
    if (nr == SYS_mmap) { /* the pool: real memory, of b bytes */
        void *memory =
            mmap(NULL, (size_t)b, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        return memory == MAP_FAILED ? -ENOMEM : (long)memory;
    }
    if (nr == SYS_prlimit64) /* no limits */
        return -ENOSYS;
    if (nr == SYS_openat)
        return strtol((const char *)b + strlen("/proc/self/task/"), NULL, 10);
    if (nr != SYS_read)
        return 0;
    sched_point();
    strcpy((char *)b, (ready & 1u << (a - 1)) != 0 ? "1 (a) R 0" : "1 (a) S 0");
    return (long)strlen((char *)b);
}

/* ---- fibers ---- */
static void set_left(const struct sbt_regs *regs, bool left) {
    uint32_t i = 0;
    while (known[i].regs != NULL && known[i].regs != regs)
        if (++i == MAX_REGS)
            sched_wrong("more registers than the test has room for");
    if (!left && (known[i].regs == NULL || !known[i].left))
        sched_wrong("a fiber is resumed that has not been left: it is in two places");
    known[i].regs = regs;
    known[i].left = left;
}

void *sched_regs_switch(struct sbt_regs *from, const struct sbt_regs *to, void *value) {
    struct sbt_regs real = {to->sp, sbt_tls_base()};
    set_left(from, true);
    set_left(to, false);
    sched_self = to->tls;
    return sbt_regs_switch(from, &real, value);
}

void sched_regs_make(struct sbt_regs *regs, void *stack, size_t bytes, void (*entry)(void *value), void *tls) {
    sbt_regs_make(regs, stack, bytes, entry, tls);
    set_left(regs, true);
}

/* ---- what libsubutai/switch wants of the rest: here, and in switch_rest.c ---- */
/* The process has used all of one CPU's time. */
void sbt_clock_read(clockid_t clock, struct timespec *now) {
    (void)clock;
    *now = (struct timespec){(time_t)(now_ns / 1000000000), (long)(now_ns % 1000000000)};
}

/* A fiber's is its home thread's. */
uint32_t sbt_thread_tid(void) {
    uint32_t i = owner_of(sched_self);
    return i < n_threads ? i + 1 : SCHED_MAX_THREADS + 1; /* the thread that sets all up */
}

/* ---- threads ---- */
static void begin(void *argument) {
    struct thread *t = argument;
    t->routine(t->argument);
    ended |= 1u << current;
    ready &= ~(1u << current);
    if (leaves && is_monitor(t) && ended == (1u << n_threads) - 1)
        sched_wrong("the monitor is the last thread to end: it calls exit()");
    t->runs = 0;
    wake(&t->runs, INT_MAX);
    reschedule();
    abort();
}

static int create(pthread_t *id, const pthread_attr_t *attr, void *(*routine)(void *), void *argument) {
    (void)attr;
    *id = n_threads;
    if (routine == sbt_monitor_main && !with_monitor)
        return 0;
    if (n_threads == SCHED_MAX_THREADS)
        return EAGAIN;
    struct thread *t = &thread[n_threads];
    *t = (struct thread){.routine = routine, .argument = argument, .runs = 1};
    ready |= 1u << n_threads;
    t->self = &t->own;
    sbt_regs_make(&t->regs, stacks[n_threads], STACK_BYTES, begin, sbt_tls_base());
    n_threads++;
    return 0;
}

/* A course is over when every thread has ended, this caller and those it would wait for. One that leaves is others' to
 * wait for. */
void sbt_thread_await_end(pthread_t id) {
    if (!leaves)
        return;
    struct thread *t = &thread[id];
    if (t->is_joined)
        sched_wrong("a thread is joined twice");
    t->is_joined = true;
    while (t->runs != 0)
        sched_futex_wait(&t->runs, 1, NULL);
}

uint32_t sched_n_monitors(void) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_threads; i++)
        n += is_monitor(&thread[i]) && thread[i].runs != 0;
    return n;
}

struct program_thread {
    void (*routine)(void *);
    void *argument;
};
static struct program_thread program[SCHED_MAX_THREADS];
static uint32_t n_program;

/* As abi/thread.c does it. */
static void *program_thread(void *argument) {
    struct program_thread *p = argument;
    sbt_switch_thread_begin();
    p->routine(p->argument);
    sbt_switch_thread_end();
    sbt_switch_thread_gone();
    return NULL;
}

void sched_thread(void (*routine)(void *), void *argument) {
    pthread_t id;
    program[n_program] = (struct program_thread){routine, argument};
    sbt_n_runnable++;
    sbt_switch_before_create();
    if (create(&id, NULL, program_thread, &program[n_program++]) != 0)
        sched_wrong("more threads than the test has room for");
}

static const char *left_over(void) {
    struct sbt_switch_state *s = SBT_SWITCH;
    uint32_t n_free = 0;
    for (struct sbt_fiber *c = s->pool_free; c != NULL; c = c->next)
        n_free++;
    if (n_free != s->pool_used)
        return "a fiber has not been given back";
    uint32_t n_runnable = sbt_n_runnable;
    for (uint32_t i = 0; i < s->n_carriers; i++)
        n_runnable -= s->carrier[i].n_parked;
    if (n_runnable != n_program) /* that they have ended is abi's to count */
        return "the number of runnable threads is wrong";
    for (uint32_t i = 0; i < s->n_carriers; i++)
        if (s->carrier[i].queue[SBT_WOKEN].head != NULL || s->carrier[i].queue[SBT_YIELDED].head != NULL ||
            s->carrier[i].n != 0)
            return "something is left in a queue";
    for (uint32_t i = 0; i < SBT_TABLE_BUCKETS; i++)
        if (s->bucket[i].head != NULL)
            return "a fiber is left in the table";
    for (size_t i = 0; i < freed_bytes; i++)
        if (((const unsigned char *)freed)[i] != FREED)
            return "an object was written after it had been destroyed";
    for (uint32_t i = 0; leaves && i < n_threads; i++)
        if (is_monitor(&thread[i]) && !thread[i].is_joined)
            return "no thread has waited for a monitor's end";
    uint32_t n_sleeps = 0;
    for (uint32_t i = 0; i < n_threads; i++)
        n_sleeps += thread[i].routine == sbt_carrier_main ? thread[i].sleeps : 0;
    return s->sleeps > n_sleeps ? "more sleeps have been counted than there were" : NULL;
}

/* A fiber keeps its home stack for good. */
static void forget(struct sbt_fiber *f) {
    char *home_stack = f->home_stack;
    memset(f, 0, sizeof *f);
    f->home_stack = home_stack;
}

static uint32_t n_monitors_ever(void) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_threads; i++)
        n += is_monitor(&thread[i]);
    return n;
}

static void run(const struct sched_how *how, sched_setup *setup, const char *(*at_end)(void)) {
    struct sbt_regs to;
    for (uint32_t i = 0; i < SBT_SWITCH->pool_used; i++)
        forget(sbt_pool_nth(i));
    /* Not the carriers that no thread can have come near: it is done for each schedule. */
    memset(SBT_SWITCH, 0, (size_t)((char *)&SBT_SWITCH->carrier[SBT_SWITCH->n_carriers + 1] - (char *)SBT_SWITCH));
    memset(SBT_SWITCH->bucket, 0, sizeof SBT_SWITCH->bucket);
    memset(known, 0, sizeof known);
    memset(&root_self, 0, sizeof root_self);
    sched_self = &root_self;
    sbt_real.pthread_create = create;
    sbt_real.sigaction = sigaction;
    with_monitor = how->with_monitor != SCHED_ALONE;
    leaves = how->with_monitor == SCHED_LEAVING;
    max_preempted = by_chance ? UINT32_MAX : how->n_preemptions;
    ready = paused = ended = 0;
    n_threads = n_program = n_preempted = ticks_in_vain = ticker = choices.n = choices.n_points = sbt_n_runnable = 0;
    wrong = NULL;
    freed = NULL;
    freed_bytes = 0;
    now_ns = 1000000000; /* a course is the same again, whenever it comes */
    sbt_switch_want(how->with_monitor == SCHED_BY_TURNS ? SBT_SWITCH_BY_TURNS
                    : leaves                            ? SBT_SWITCH_IF_IT_PAYS
                                                        : SBT_SWITCH_ANYWAY);
    setup();
    sbt_n_runnable = n_program;
    sbt_switch_thread_gone();
    under_way = true;
    current = choose(n_threads);
    sched_self = thread[current].self;
    to = (struct sbt_regs){thread[current].regs.sp, sbt_tls_base()};
    sbt_regs_switch(&root, &to, &thread[current]);
    if (wrong == NULL)
        wrong = left_over();
    if (wrong == NULL && at_end != NULL)
        wrong = at_end();
    for (uint32_t i = 0; i < SBT_SWITCH->n_carriers; i++)
        n_switches += SBT_SWITCH->carrier[i].pops;
    n_came_again += n_monitors_ever() > 1;
}

/*
 * A walk in which all threads wait at home finds nothing wrong, and shows nothing. Switches are counted from the
 * beginning of a walk to the end of the schedules by chance after it: a scenario in which one thread stays at home may
 * have a switch in one of 30 of its schedules, and by chance in one of 200000.
 */
static const char *unless_no_fiber_switched(void) {
    if (leaves)
        return n_came_again == 0 ? "no monitor has come again, in any schedule" : NULL;
    return n_switches == 0 ? "no carrier has run a fiber, in any schedule" : NULL;
}

static void show_course(void) {
    printf("# %s; threads: ", wrong);
    for (uint32_t i = 0; i < n_threads; i++)
        printf("%u %s%s", i,
               thread[i].routine == sbt_carrier_main ? "carrier"
               : is_monitor(&thread[i])              ? "monitor"
                                                     : "home",
               i + 1 < n_threads ? ", " : "\n# course:");
    choices_show_course(&choices);
}

const char *sched_walk(const struct sched_how *how, sched_setup *setup, const char *(*at_end)(void), uint64_t limit,
                       bool show, uint64_t *n) {
    by_chance = false;
    choices.n_given = 0;
    n_switches = n_came_again = 0;
    for (*n = 1;; ++*n) {
        run(how, setup, at_end);
        if (wrong != NULL) {
            if (show)
                show_course();
            return wrong;
        }
        if (!choices_next(&choices) || *n == limit)
            return unless_no_fiber_switched();
    }
}

const char *sched_roam(const struct sched_how *how, sched_setup *setup, const char *(*at_end)(void), uint64_t n,
                       uint64_t seed) {
    by_chance = true;
    choices.n_given = 0;
    random_state = seed * 2 + 1;
    for (uint64_t i = 0; i < n; i++) {
        run(how, setup, at_end);
        if (wrong != NULL) {
            show_course();
            return wrong;
        }
    }
    return unless_no_fiber_switched();
}
