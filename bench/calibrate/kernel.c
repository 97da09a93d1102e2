/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel's calls: nothing, futexes, and sleeping and waking across CPUs.
 *
 * A round of sleep and wake: (1) the sleeper, on the second CPU, says that it will sleep, and calls FUTEX_WAIT. (2) The
 * waker, on the first, lets the second CPU alone for the round's pause. (3) It changes the word and calls FUTEX_WAKE,
 * between two time stamps. The call says whether a thread slept; if not, the round does not count. (4) The sleeper
 * takes a time stamp when its call returns. The latency runs from the waker's first stamp to that.
 *
 * "Idle" and "deep": rounds with a short and a long pause, in turn. How soon a thread runs on an idle CPU depends on
 * this pause and on those before it: what puts the CPU to sleep (kernel, hypervisor, processor) guesses from the last
 * pauses how long the next one will be. Where all pauses were short, the latency after 20 us was 26 us in one run and
 * 44 us in another on one machine, and changed within runs. With long pauses among them it stays as it is.
 *
 * "Short": rounds with the short pause alone, after as many that do not count: a CPU with short pauses alone.
 *
 * "Busy": a third thread computes on the second CPU. "Remote": the same, and the sleeper is of SCHED_BATCH, so that it
 * takes nothing from that thread. Linux interrupts that thread all the same if its slice is over when another thread
 * comes to its CPU, and on some machines that was so in each round. So a round in which the sleeper has returned soon
 * does not count. After the others (5) that thread yields, so that rounds follow each other as threads do in a program;
 * after such a one it sleeps for a moment, and begins with a new slice.
 *
 * "Soon": rounds with pauses of each length up to LADDER_NS: soon.c.
 *
 * What sleeping and waking cost on a busy CPU is not measured here, because the waker's CPU sends the other one an
 * interrupt, which on a virtual machine is most of the time: turns.c.
 */
#include "calibrate.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define IDLE_PAUSE_NS 20000   /* the CPU has just become idle */
#define DEEP_PAUSE_NS 2000000 /* it has had time for what the kernel and the hypervisor do with idle CPUs */
#define BUSY_PAUSE_NS 500000  /* the sleeper has not had its share of the CPU for a while */
#define INTERRUPT_NS 100000   /* a sleeper that an interrupt lets in has returned by then */
#define HOPELESS_NS 1000000000

static long futex(_Atomic uint32_t *word, int operation, uint32_t value) {
    return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL);
}

static _Alignas(CALIBRATE_LINE) _Atomic uint32_t unused_word;

static void call_nothing(uint64_t n) {
    for (; n > 0; n--)
        syscall(SYS_getppid);
}

static void wake_nobody(uint64_t n) {
    for (; n > 0; n--)
        if (futex(&unused_word, FUTEX_WAKE, 1) != 0)
            fail("FUTEX_WAKE: %s", strerror(errno));
}

static void wait_changed(uint64_t n) {
    for (; n > 0; n--)
        if (futex(&unused_word, FUTEX_WAIT, 1) == 0 || errno != EAGAIN)
            fail("FUTEX_WAIT: %s", strerror(errno));
}

static struct {
    _Alignas(CALIBRATE_LINE) _Atomic uint32_t word;     /* the round; the sleeper waits until it changes */
    _Alignas(CALIBRATE_LINE) _Atomic uint32_t sleeping; /* the round in which the sleeper calls FUTEX_WAIT */
    _Alignas(CALIBRATE_LINE) _Atomic uint32_t woken;    /* the round in which it has returned; orders what follows */
    uint64_t woken_ns;                                  /* when it returned */
    _Alignas(CALIBRATE_LINE) _Atomic uint32_t rest;     /* the round in which the thread that computes yields, */
    _Atomic bool sleeps;                                /* or sleeps; ordered by `rest`; */
    _Alignas(CALIBRATE_LINE) _Atomic uint32_t rested;   /* the round in which it has done so */
    _Alignas(CALIBRATE_LINE) atomic_bool over, busy;
} shared;
static int pair[2];

static void *sleeper(void *unused) {
    pin_to(pair[1]);
    for (uint32_t round = 1; !atomic_load(&shared.over); round++) {
        atomic_store(&shared.sleeping, round);
        while (atomic_load(&shared.word) < round)
            if (futex(&shared.word, FUTEX_WAIT, round - 1) != 0 && errno != EAGAIN && errno != EINTR)
                fail("FUTEX_WAIT: %s", strerror(errno));
        shared.woken_ns = now_ns();
        atomic_store(&shared.woken, round);
    }
    return unused;
}

static void *hog(void *unused) {
    pin_to(pair[1]);
    uint32_t rested = 0;
    while (atomic_load_explicit(&shared.busy, memory_order_relaxed)) {            /* carries no data */
        uint32_t rest = atomic_load_explicit(&shared.rest, memory_order_acquire); /* of remote_rounds() */
        if (rest == rested)
            continue;
        if (atomic_load_explicit(&shared.sleeps, memory_order_relaxed))
            nanosleep(&(struct timespec){.tv_nsec = 1}, NULL);
        else
            sched_yield();
        rested = rest;
        atomic_store_explicit(&shared.rested, rested, memory_order_relaxed); /* neither does this */
    }
    return unused;
}

static void await(_Atomic uint32_t *word, uint32_t value) {
    while (atomic_load(word) < value)
        look_again();
}

static void pause_for(uint64_t ns) {
    for (uint64_t from = now_ns(); now_ns() - from < ns;)
        look_again();
}

static uint32_t n_rounds;

struct round {
    uint32_t number;
    bool slept; /* the call found the sleeper */
    uint64_t begin_ns, done_ns;
};

/* (1) to (3). */
static struct round wake_after(uint64_t pause_ns) {
    struct round round = {.number = ++n_rounds};
    await(&shared.sleeping, round.number);
    pause_for(pause_ns);
    round.begin_ns = now_ns();
    atomic_store(&shared.word, round.number);
    long n = futex(&shared.word, FUTEX_WAKE, 1);
    round.done_ns = now_ns();
    if (n < 0)
        fail("FUTEX_WAKE: %s", strerror(errno));
    round.slept = n == 1;
    return round;
}

/* A sleeper that never slept would make rounds without samples for ever. */
static void check_slept(const struct round *round, uint64_t hopeless, uint64_t pause_ns) {
    if (!round->slept && is_hopeless(hopeless))
        fail("no thread sleeps %ju ns after its FUTEX_WAIT", (uintmax_t)pause_ns);
}

/* What rounds with one pause give; `wake` may be NULL. */
struct rounds {
    struct samples *wake, *latency;
    uint64_t pause_ns;
};

static bool any_wanted(const struct rounds *kinds, size_t n_kinds, uint64_t end_ns) {
    for (size_t i = 0; i < n_kinds; i++)
        if (samples_wanted(kinds[i].latency, end_ns))
            return true;
    return false;
}

/* Rounds of each kind in turn. */
static void rounds_in_turn(const struct rounds *kinds, size_t n_kinds, double seconds) {
    double clock_ns = clock_cost_ns();
    uint64_t end_ns = now_ns() + (uint64_t)(seconds * 1e9), hopeless = hopeless_cpu_ns(seconds);
    for (size_t i = 0; any_wanted(kinds, n_kinds, end_ns); i++) {
        const struct rounds *kind = &kinds[i % n_kinds];
        struct round round = wake_after(kind->pause_ns);
        await(&shared.woken, round.number);
        check_slept(&round, hopeless, kind->pause_ns);
        if (round.slept && kind->wake != NULL)
            samples_add(kind->wake, (double)(round.done_ns - round.begin_ns) - clock_ns);
        if (round.slept)
            samples_add(kind->latency, (double)(shared.woken_ns - round.begin_ns) - clock_ns);
    }
}

enum { N_BEFORE_SHORT = 2000 };

/* Where the rounds that do not count last for so long, other processes are at work: no samples are better than late
 * ones. */
static void short_rounds(double seconds) {
    struct rounds alone = {samples_new("wake_short_ns"), samples_new("latency_short_ns"), IDLE_PAUSE_NS};
    uint64_t hopeless_ns = now_ns() + (uint64_t)(seconds * 1e9) + HOPELESS_NS;
    for (int i = 0; i < N_BEFORE_SHORT; i++) {
        if (now_ns() > hopeless_ns)
            return;
        await(&shared.woken, wake_after(IDLE_PAUSE_NS).number);
    }
    rounds_in_turn(&alone, 1, seconds);
}

enum { N_LADDERS_MAX = 50 };

static void climb(struct ladder *ladder, double clock_ns) {
    for (size_t step = 0; step < N_LADDER_STEPS; step++) {
        size_t i = step * 37 % N_LADDER_STEPS; /* no pause follows one of nearly its own length */
        struct round round = wake_after(ladder_pause_ns(i));
        await(&shared.woken, round.number);
        ladder->slept[i] = round.slept;
        ladder->wake_ns[i] = (double)(round.done_ns - round.begin_ns) - clock_ns;
        ladder->latency_ns[i] = (double)(shared.woken_ns - round.begin_ns) - clock_ns;
    }
}

/* As with short_rounds(): too few ladders give no samples. */
static void soon_rounds(double seconds, double idle_ns) {
    static struct ladder ladders[N_LADDERS_MAX];
    uint64_t end_ns = now_ns() + (uint64_t)(seconds * 1e9), hopeless_ns = end_ns + HOPELESS_NS;
    size_t n = 0;
    while (n < N_LADDERS_MAX && now_ns() < (n < N_SAMPLES_MIN ? hopeless_ns : end_ns))
        climb(&ladders[n++], clock_cost_ns());
    soon_of(ladders, n, idle_ns);
}

/* Where an interrupt comes in each round, samples with it are better than none. */
static void remote_rounds(struct samples *wake, double seconds) {
    double clock_ns = clock_cost_ns();
    uint64_t end_ns = now_ns() + (uint64_t)(seconds * 1e9);
    for (uint64_t hopeless = hopeless_cpu_ns(seconds); samples_wanted(wake, end_ns);) {
        struct round round = wake_after(IDLE_PAUSE_NS);
        pause_for(INTERRUPT_NS);
        bool interrupted = atomic_load(&shared.woken) == round.number;
        atomic_store_explicit(&shared.sleeps, interrupted, memory_order_relaxed);
        atomic_store_explicit(&shared.rest, round.number, memory_order_release);
        await(&shared.woken, round.number);
        await(&shared.rested, round.number);
        check_slept(&round, hopeless, IDLE_PAUSE_NS);
        if (round.slept && (!interrupted || is_hopeless(hopeless)))
            samples_add(wake, (double)(round.done_ns - round.begin_ns) - clock_ns);
    }
}

static void sleep_and_wake(double seconds) {
    struct samples *wake_remote = samples_new("wake_remote_ns");
    struct rounds busy = {NULL, samples_new("latency_busy_ns"), BUSY_PAUSE_NS};
    struct rounds idle[] = {{samples_new("wake_idle_ns"), samples_new("latency_idle_ns"), IDLE_PAUSE_NS},
                            {samples_new("wake_deep_ns"), samples_new("latency_deep_ns"), DEEP_PAUSE_NS}};
    pthread_t thread, computing;
    must(pthread_create(&thread, NULL, sleeper, NULL), "pthread_create");
    rounds_in_turn(idle, 2, seconds * 3 / 8);
    short_rounds(seconds / 8);
    soon_rounds(seconds / 8, samples_median(idle[0].wake));
    atomic_store(&shared.busy, true);
    must(pthread_create(&computing, NULL, hog, NULL), "pthread_create");
    rounds_in_turn(&busy, 1, seconds / 8);
    must(pthread_setschedparam(thread, SCHED_BATCH, &(struct sched_param){0}), "pthread_setschedparam");
    remote_rounds(wake_remote, seconds / 4);
    atomic_store(&shared.busy, false);
    must(pthread_join(computing, NULL), "pthread_join");
    atomic_store(&shared.over, true);
    atomic_store(&shared.word, n_rounds + 1);
    futex(&shared.word, FUTEX_WAKE, 1);
    must(pthread_join(thread, NULL), "pthread_join");
}

void measure_kernel(double seconds) {
    cpus_pair(pair);
    pin_to(pair[0]);
    samples_of_batches("call_ns", seconds * 0.1, call_nothing);
    samples_of_batches("wake_nobody_ns", seconds * 0.1, wake_nobody);
    samples_of_batches("wait_changed_ns", seconds * 0.1, wait_changed);
    measure_interrupts(seconds * 0.1, pair[0], pair[1]);
    sleep_and_wake(seconds * 0.6);
}
