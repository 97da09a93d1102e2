/* SPDX-License-Identifier: LGPL-2.1-or-later */
#define SWITCH_SCHED_ITSELF
#include "switch_sched.h"

#include "core/handlers.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>

#include "switch/inner.h"

enum { STACK_BYTES = 64 * 1024, MAX_CHOICES = 20000, MAX_POINTS = 20000, MAX_REGS = 64, MAX_TICKS = 64 };
enum state { READY, BLOCKED, PAUSED, ENDED };

struct thread {
    enum state state;
    uint32_t *word;  /* BLOCKED: on it */
    uint32_t sleeps; /* how often it was */
    uint64_t mask;   /* of signals */
    void (*handler)(void);
    void *(*routine)(void *);
    void *argument;
    struct sbt_regs regs;
    struct sbt_thread *self; /* whose thread-local storage it has when it goes on */
    struct sbt_thread own;
};

struct sbt_thread *sched_self;
struct sbt_real sbt_real;
uint32_t sbt_n_runnable, sbt_n_cpus;

static char stacks[SCHED_MAX_THREADS][STACK_BYTES] __attribute__((aligned(64)));
static struct thread thread[SCHED_MAX_THREADS];
static uint32_t n_threads, current;
static struct sbt_thread root_self;
static struct sbt_regs root;
static bool under_way, with_watcher, by_chance;
static const char *wrong;
static uint64_t now_ns, random_state, n_switches;

/* What the program has destroyed: filled with FREED, and to stay so. */
enum { FREED = 0x5A };
static const void *freed;
static size_t freed_bytes;

/* The schedule: what was chosen of how many at each point where there was a choice. */
static uint8_t chosen[MAX_CHOICES], of[MAX_CHOICES];
static uint32_t n_chosen, n_given; /* the first n_given are given */
static uint32_t n_preempted, max_preempted, n_points, ticks_in_vain, ticker;
static uint8_t course[MAX_POINTS]; /* who went on at each point */

/* Registers that have been left, and not been gone on with since: only those may be gone on with. */
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
    if (n_chosen == MAX_CHOICES)
        sched_wrong("it does not come to an end");
    if (n_chosen >= n_given)
        chosen[n_chosen] = 0;
    of[n_chosen] = (uint8_t)n;
    return chosen[n_chosen++];
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

/*
 * Who goes on? The one that runs, as long as it can; another instead is a preemption. A thread that pauses goes on by a
 * preemption too, or when there is nobody else.
 */
static void reschedule(void) {
    uint8_t option[SCHED_MAX_THREADS];
    uint32_t n = 0;
    bool stays = thread[current].state == READY;
    if (stays)
        option[n++] = (uint8_t)current;
    bool others = !stays || n_preempted < max_preempted;
    for (uint32_t i = 0; others && i < n_threads; i++)
        if (i != current && (thread[i].state == READY || (stays && thread[i].state == PAUSED)))
            option[n++] = (uint8_t)i;
    for (uint32_t k = 1; n == 0 && k <= n_threads; k++) /* in turn */
        if (thread[(ticker + k) % n_threads].state == PAUSED) {
            option[n++] = (uint8_t)(ticker = (ticker + k) % n_threads);
            if (++ticks_in_vain > MAX_TICKS)
                sched_wrong("somebody waits for ever (the watcher has nothing to do)");
        }
    if (n == 0) {
        for (uint32_t i = 0; i < n_threads; i++)
            if (thread[i].state != ENDED)
                sched_wrong("somebody waits for ever");
        to_root();
    }
    uint32_t next = option[choose(n)];
    n_preempted += stays && next != current;
    if (next != ticker)
        ticks_in_vain = 0;
    thread[next].state = READY;
    if (n_points == MAX_POINTS)
        sched_wrong("it does not come to an end");
    course[n_points++] = (uint8_t)next;
    go_on_with(next);
}

void sched_point(void) {
    if (under_way)
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
int sched_futex_wait(uint32_t *word, uint32_t expected, const struct sbt_deadline *deadline) {
    (void)deadline;
    sched_point();
    if (*word != expected)
        return 0;
    if (thread[current].handler != NULL && sched_self->in_lot == 0) {
        void (*handler)(void) = thread[current].handler;
        thread[current].handler = NULL;
        handler();
        return 0;
    }
    thread[current].state = BLOCKED;
    thread[current].word = word;
    thread[current].sleeps++;
    reschedule();
    return 0;
}

long sched_futex_wake(uint32_t *word, int n) {
    long woken = 0;
    sched_point();
    for (uint32_t i = 0; i < n_threads && woken < n; i++)
        if (thread[i].state == BLOCKED && thread[i].word == word) {
            thread[i].state = READY;
            woken++;
        }
    return woken;
}

void sched_pause(void) {
    thread[current].state = PAUSED;
    reschedule();
}

uint64_t sched_now_ns(void) {
    return now_ns += 1000000; /* whoever looks at the clock finds that he has waited long enough */
}

/* The watcher reads a thread's state in /proc; the descriptor tells which. */
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
    if (nr == SYS_openat)
        return strtol((const char *)b + strlen("/proc/self/task/"), NULL, 10);
    if (nr != SYS_read)
        return 0;
    sched_point();
    strcpy((char *)b, thread[a - 1].state == READY ? "1 (a) R 0" : "1 (a) S 0");
    return (long)strlen((char *)b);
}

/* ---- contexts ---- */
static void set_left(const struct sbt_regs *regs, bool left) {
    uint32_t i = 0;
    while (known[i].regs != NULL && known[i].regs != regs)
        if (++i == MAX_REGS)
            sched_wrong("more registers than the test has room for");
    if (!left && (known[i].regs == NULL || !known[i].left))
        sched_wrong("a context is gone on with that has not been left: it is in two places");
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

/* ---- what libsubutai/switch wants of the rest ---- */
void sbt_switch_judge(struct sbt_eligibility *e) {
    memset(e, 0, sizeof *e);
}

void sbt_switch_judge_new(struct sbt_eligibility *e) {
    memset(e, 0, sizeof *e);
}

void sbt_switch_judge_symbol(struct sbt_eligibility *e, const char *file, const char *symbol) {
    (void)e, (void)file, (void)symbol;
}

bool sbt_thread_wipes_on_fork(void) {
    return true;
}

/* A context's is its home's. */
uint32_t sbt_thread_tid(void) {
    for (uint32_t i = 0; i < n_threads; i++)
        if (&thread[i].own == sched_self)
            return i + 1;
    return SCHED_MAX_THREADS + 1; /* who sets all up */
}

union sbt_thread_process sbt_thread_process = {.known = 1};

void sbt_thread_fork_noticed(void) {}

void (*sbt_handlers_returned)(void);
uint64_t sbt_handlers_spared;

void sbt_handlers_catch_up(void) {
    sched_wrong("handlers are put off where there are none");
}

void sbt_log(unsigned verbosity, const char *first, ...) {
    (void)verbosity, (void)first;
}

/* ---- threads ---- */
static void begin(void *argument) {
    struct thread *t = argument;
    t->routine(t->argument);
    t->state = ENDED;
    reschedule();
    abort();
}

static int create(pthread_t *id, const pthread_attr_t *attr, void *(*routine)(void *), void *argument) {
    (void)attr;
    *id = 0;
    if (routine == sbt_watcher_main && !with_watcher)
        return 0;
    if (n_threads == SCHED_MAX_THREADS)
        return EAGAIN;
    struct thread *t = &thread[n_threads];
    *t = (struct thread){.state = READY, .routine = routine, .argument = argument};
    t->self = &t->own;
    sbt_regs_make(&t->regs, stacks[n_threads], STACK_BYTES, begin, sbt_tls_base());
    n_threads++;
    return 0;
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
    struct sbt_husk husk;
    sbt_switch_thread_begin(&husk);
    p->routine(p->argument);
    sbt_switch_thread_end();
    sbt_switch_thread_gone();
    return NULL;
}

void sched_thread(void (*routine)(void *), void *argument) {
    pthread_t id;
    program[n_program] = (struct program_thread){routine, argument};
    sbt_switch_before_create();
    if (create(&id, NULL, program_thread, &program[n_program++]) != 0)
        sched_wrong("more threads than the test has room for");
}

static const char *left_over(void) {
    struct sbt_switch_state *s = SBT_SWITCH;
    uint32_t n_free = 0;
    for (struct sbt_context *c = s->pool_free; c != NULL; c = c->next)
        n_free++;
    if (n_free != s->pool_used)
        return "a context has not been given back";
    uint32_t n_runnable = sbt_n_runnable;
    for (uint32_t i = 0; i < s->n_carriers; i++)
        n_runnable -= s->carrier[i].n_parked;
    if (n_runnable != n_program) /* that they have ended is abi's to count */
        return "the number of runnable threads is wrong";
    for (uint32_t i = 0; i < s->n_carriers; i++)
        if (s->carrier[i].queue[SBT_WOKEN].head != NULL || s->carrier[i].queue[SBT_GAVE_WAY].head != NULL ||
            s->carrier[i].n != 0)
            return "something is left in a queue";
    for (uint32_t i = 0; i < SBT_TABLE_BUCKETS; i++)
        if (s->bucket[i].head != NULL)
            return "somebody is left in the table";
    for (size_t i = 0; i < freed_bytes; i++)
        if (((const unsigned char *)freed)[i] != FREED)
            return "an object was written after it had been destroyed";
    uint32_t n_sleeps = 0;
    for (uint32_t i = 0; i < n_threads; i++)
        n_sleeps += thread[i].routine == sbt_carrier_main ? thread[i].sleeps : 0;
    return s->sleeps > n_sleeps ? "more sleeps have been counted than there were" : NULL;
}

static void run(const struct sched_how *how, sched_setup *setup, const char *(*at_end)(void)) {
    struct sbt_regs to;
    for (uint32_t i = 0; i < SBT_SWITCH->pool_used; i++)
        memset(sbt_pool_nth(i), 0, sizeof *sbt_pool_nth(i));
    memset(&sbt_switch_memory, 0, sizeof sbt_switch_memory);
    memset(known, 0, sizeof known);
    memset(&root_self, 0, sizeof root_self);
    sched_self = &root_self;
    sbt_real.pthread_create = create;
    sbt_real.sigaction = sigaction;
    with_watcher = how->with_watcher;
    max_preempted = by_chance ? UINT32_MAX : how->n_preemptions;
    n_threads = n_program = n_preempted = n_points = ticks_in_vain = n_chosen = sbt_n_runnable = 0;
    wrong = NULL;
    freed = NULL;
    freed_bytes = 0;
    sbt_switch_want(true);
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
}

/* A walk in which everybody waits at home finds nothing wrong, and says nothing. */
static const char *unless_nobody_switched(void) {
    return n_switches == 0 ? "no carrier has gone on with anybody, in any schedule" : NULL;
}

static void show_course(void) {
    printf("# %s; threads: ", wrong);
    for (uint32_t i = 0; i < n_threads; i++)
        printf("%u %s%s", i,
               thread[i].routine == sbt_carrier_main   ? "carrier"
               : thread[i].routine == sbt_watcher_main ? "watcher"
                                                       : "home",
               i + 1 < n_threads ? ", " : "\n# course:");
    for (uint32_t i = 0, length = 1; i < n_points; i++, length++)
        if (i + 1 == n_points || course[i + 1] != course[i]) {
            printf(" %ux%u", length, course[i]);
            length = 0;
        }
    printf("\n");
}

const char *sched_walk(const struct sched_how *how, sched_setup *setup, const char *(*at_end)(void), uint64_t limit,
                       bool show, uint64_t *n) {
    by_chance = false;
    n_given = 0;
    n_switches = 0;
    for (*n = 1;; ++*n) {
        run(how, setup, at_end);
        if (wrong != NULL) {
            if (show)
                show_course();
            return wrong;
        }
        while (n_chosen > 0 && chosen[n_chosen - 1] + 1 == of[n_chosen - 1])
            n_chosen--;
        if (n_chosen == 0 || *n == limit)
            return unless_nobody_switched();
        chosen[n_chosen - 1]++;
        n_given = n_chosen;
    }
}

const char *sched_roam(const struct sched_how *how, sched_setup *setup, const char *(*at_end)(void), uint64_t n,
                       uint64_t seed) {
    by_chance = true;
    random_state = seed * 2 + 1;
    n_switches = 0;
    for (uint64_t i = 0; i < n; i++) {
        run(how, setup, at_end);
        if (wrong != NULL) {
            show_course();
            return wrong;
        }
    }
    return unless_nobody_switched();
}
