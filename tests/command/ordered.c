/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The output of this program depends on the order of its synchronization: each thread adds its number to a sum under a
 * lock such that the order counts. usage: ordered WHAT; what there is stands above main.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/time.h>

#include "ordered.h"

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_barrier_t barrier;
static pthread_spinlock_t spin;
static pthread_key_t key;
sem_t sem;
uint64_t sums[N_SUMS];
static int tokens;
atomic_int flag;

void add_to(int which, uint64_t number) {
    sums[which] = (sums[which] ^ number) * 0x100000001B3u;
}

static void add(uint64_t number) {
    add_to(MUTEX, number);
}

void locked_add(uint64_t number) {
    pthread_mutex_lock(&mutex);
    add(number);
    pthread_mutex_unlock(&mutex);
}

void compute(uint64_t number) {
    for (volatile uint64_t i = 0; i < number % 7 * 300; i++)
        ;
}

void *counter(void *argument) {
    for (int i = 0; i < ROUNDS; i++) {
        compute((uint64_t)(uintptr_t)argument + (uint64_t)i);
        locked_add((uintptr_t)argument);
    }
    return NULL;
}

static void first(void) {
    locked_add(91);
}

static void destroyed(void *value) {
    locked_add((uintptr_t)value + 50);
}

static void wait_a_moment(void) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_nsec += 300000;
    at.tv_sec += at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    pthread_mutex_lock(&mutex);
    add(pthread_cond_timedwait(&cond, &mutex, &at) == ETIMEDOUT ? 7 : 8);
    pthread_mutex_unlock(&mutex);
}

static void *everything(void *argument) {
    uintptr_t number = (uintptr_t)argument;
    pthread_setspecific(key, argument);
    pthread_once(&once, first);
    for (int i = 0; i < ROUNDS / 10; i++) {
        compute(number);
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
            locked_add(number + 10);
        pthread_mutex_lock(&mutex);
        tokens++;
        pthread_cond_signal(&cond);
        while (tokens == 0)
            pthread_cond_wait(&cond, &mutex);
        tokens--;
        add(number);
        pthread_mutex_unlock(&mutex);
        pthread_rwlock_wrlock(&rwlock);
        add_to(RWLOCK, number);
        pthread_rwlock_unlock(&rwlock);
        pthread_rwlock_rdlock(&rwlock);
        pthread_rwlock_unlock(&rwlock);
        sem_wait(&sem);
        add_to(SEM, number);
        sem_post(&sem);
        pthread_spin_lock(&spin);
        add_to(SPIN, number);
        pthread_spin_unlock(&spin);
        if (pthread_mutex_trylock(&mutex) == 0) {
            add(number + 60);
            pthread_mutex_unlock(&mutex);
        }
        sched_yield();
        if (i % 4 == 0)
            usleep((useconds_t)(100 * number));
        if (i == 5)
            wait_a_moment();
    }
    return NULL;
}

static void *leaver(void *argument) {
    for (int i = 0; i < ROUNDS / 10; i++) {
        compute((uint64_t)(uintptr_t)argument);
        locked_add((uintptr_t)argument);
    }
    pthread_exit(NULL);
}

void *post(void *unused) {
    sem_post(&sem);
    return unused;
}

static int run(void *(*routine)(void *), uintptr_t n) {
    pthread_t thread[THREADS], late;
    for (uintptr_t i = 0; i < n; i++)
        pthread_create(&thread[i], NULL, routine, (void *)(i + 1));
    for (uintptr_t i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    pthread_create(&late, NULL, counter, (void *)n);
    pthread_join(late, NULL);
    for (int i = 1; i < N_SUMS; i++)
        add(sums[i]);
    printf("%016llx\n", (unsigned long long)sums[MUTEX]);
    return 0;
}

static int counters(void) {
    return run(counter, THREADS);
}

static int all_kinds(void) {
    return run(everything, THREADS);
}

static int exits(void) {
    return run(leaver, THREADS);
}

static void *waiter(void *argument) {
    struct timespec at;
    (void)argument;
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_sec++;
    pthread_mutex_lock(&mutex);
    while (pthread_cond_timedwait(&cond, &mutex, &at) != ETIMEDOUT)
        ;
    pthread_mutex_unlock(&mutex);
    return NULL;
}

/* Logical time runs ahead of the kernel's. */
static int ahead(void) {
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    pthread_t thread;
    pthread_create(&thread, NULL, waiter, NULL);
    for (int i = 0; i < 6000000; i++) {
        pthread_mutex_lock(&own);
        pthread_mutex_unlock(&own);
    }
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}

static atomic_uint n_yields;

static void *yielder(void *argument) {
    (void)argument;
    while (atomic_load(&flag) == 0) {
        sched_yield();
        atomic_fetch_add(&n_yields, 1);
    }
    return NULL;
}

/* The kernel's time runs ahead of logical time. A sleep of nothing is over after a few turns all the same. */
static int nap(void) {
    pthread_t thread;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    for (clock_t begin = clock(); clock() - begin < CLOCKS_PER_SEC / 20;)
        ;
    pthread_create(&thread, NULL, yielder, NULL);
    unsigned before = atomic_load(&n_yields);
    nanosleep(&(struct timespec){0, 0}, NULL);
    unsigned after = atomic_load(&n_yields);
    atomic_store(&flag, 1);
    pthread_join(thread, NULL);
    printf("%s\n", after - before < 1000 ? "done" : "overslept");
    return 0;
}

/*
 * As in a library that has deadlines by the time of day and waits by another clock: how far away the deadline is
 * follows from a second reading. What the clocks say in between is another in each run. All threads read at once.
 */
static void *poller(void *argument) {
    struct timeval begin;
    struct timespec now, at;
    for (int i = 0; i < ROUNDS / 10; i++) {
        pthread_barrier_wait(&barrier);
        gettimeofday(&begin, NULL);
        compute((uintptr_t)argument);
        clock_gettime(CLOCK_REALTIME, &now);
        int64_t in_ns = (begin.tv_sec - now.tv_sec) * 1000000000 + begin.tv_usec * 1000 - now.tv_nsec + 200000;
        clock_gettime(CLOCK_MONOTONIC, &at);
        at.tv_sec += (at.tv_nsec + in_ns) / 1000000000;
        at.tv_nsec = (at.tv_nsec + in_ns) % 1000000000;
        pthread_mutex_lock(&mutex);
        add(pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &at) == ETIMEDOUT ? (uintptr_t)argument : 99);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static int deadlines_from_clocks(void) {
    return run(poller, THREADS);
}

/* Many threads, all at once, that meet and then race for a mutex. */
static void *one_of_many(void *argument) {
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 5; i++)
        locked_add((uintptr_t)argument);
    return NULL;
}

static int many(void) {
    enum { MANY = 2000 };
    static pthread_t threads[MANY];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    pthread_barrier_init(&barrier, NULL, MANY);
    for (uintptr_t i = 0; i < MANY; i++)
        if (pthread_create(&threads[i], &attributes, one_of_many, (void *)(i + 1)) != 0)
            return 1;
    for (int i = 0; i < MANY; i++)
        pthread_join(threads[i], NULL);
    pthread_attr_destroy(&attributes);
    printf("%016" PRIx64 "\n", sums[MUTEX]);
    return 0;
}

/* The process ends without its exit handlers, by a thread that others may still run beside. */
static int quits(void) {
    counters();
    fflush(stdout);
    _exit(0);
}
static int quits_quickly(void) {
    counters();
    fflush(stdout);
    quick_exit(0);
}

static pthread_barrier_t pair;
static sem_t gate;

static void *spinner(void *unused) {
    (void)unused;
    sem_wait(&gate);
    while (atomic_load(&flag) == 0)
        ;
    return NULL;
}

static void *released(void *unused) {
    (void)unused;
    pthread_barrier_wait(&pair);
    atomic_store(&flag, 1);
    return NULL;
}

/* The turn comes from the last thread at the barrier to one that waits for what the released thread writes. */
static int goes_on(void) {
    pthread_t threads[2];
    pthread_barrier_init(&pair, NULL, 2);
    sem_init(&gate, 0, 0);
    pthread_create(&threads[0], NULL, spinner, NULL);
    pthread_create(&threads[1], NULL, released, NULL);
    sched_yield(); /* the other one waits at the barrier before this thread comes */
    sem_post(&gate);
    pthread_barrier_wait(&pair);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    puts("done");
    return 0;
}

/* What a clock shows while a thread computes: it goes on, and other functions show no less. */
static int clocks(void) {
    struct timespec begin, end, of_day;
    struct timeval day;
    uint64_t n = 0;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do
        clock_gettime(CLOCK_MONOTONIC, &end);
    while (n++ < 100000000 && (end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec < 5000000);
    clock_gettime(CLOCK_REALTIME, &of_day);
    gettimeofday(&day, NULL);
    time_t seconds = time(NULL), stored;
    bool is_right =
        n < 100000000 &&
        (day.tv_sec > of_day.tv_sec || (day.tv_sec == of_day.tv_sec && day.tv_usec >= of_day.tv_nsec / 1000)) &&
        seconds >= day.tv_sec && timespec_get(&end, TIME_UTC) == TIME_UTC && end.tv_sec >= seconds &&
        time(&stored) == stored && stored >= end.tv_sec && timespec_get(&end, 99) == 0;
    puts(is_right ? "done" : "wrong");
    return 0;
}

static const struct {
    const char *name;
    int (*run)(void);
} ways[] = {
    {"counters", counters},           /* threads race for a mutex */
    {"quits", quits},                 /* the same, and the process leaves by _exit */
    {"quits-quickly", quits_quickly}, /* and by quick_exit */
    {"all", all_kinds},            /* every kind of object, deadlines, sleeps, creation, ends, locks in destructors */
    {"exits", exits},              /* threads end by pthread_exit, which unwinds their stacks */
    {"allocates", with_allocator}, /* the allocator has a lock: the C library takes it when it creates a thread */
    {"stacks", with_large_stacks}, /* an ended thread frees in the C library, under a lock that creations take */
    {"forks", forked_in_creation}, /* a handler forks while a thread that creates another waits for the turn */
    {"nap", nap},                  /* a thread sleeps for no time while another one yields */
    {"many", many},                /* 2000 threads */
    {"barrier", goes_on},          /* a thread that a barrier lets go needs no turn for that */
    {"clocks", clocks},            /* the time goes on while a thread reads it */
    {"set-back", clock_set_back},  /* the time of day is set back */
    {"steps", clock_in_steps},     /* a time is shown for a fifth of a millisecond of CPU time at most */
    {"stamps", clock_of_two},      /* what another thread has been shown is no later than the time now */
    {"filtered", clock_filtered},  /* a filter hides what a thread has done */
    {"deadlines", deadlines_from_clocks}, /* how far away they are follows from two readings of a clock */
    {"ahead", ahead},                   /* a thread waits a second while another makes 12 million operations in less */
    {"pipe", through_pipe},             /* a thread waits for bytes that another one writes */
    {"stdio", through_stdio},           /* the same by fgets, a call that the library does not see */
    {"stdio-last", leaves_after_stdio}, /* such a call, and the process ends behind it */
    {"rings", through_rings},           /* io_uring, and asynchronous I/O of the kernel */
    {"queues", through_queues},         /* queues and semaphores of System V and POSIX */
    {"looks", loops_of_looks},          /* calls that do not wait, again and again */
    {"looks-within", looks_within},     /* the same, at what threads of the process give */
    {"parts", waits_of_parts},          /* waits of which a clock says how much is left */
    {"left", waits_of_what_is_left},    /* the same, where the machine stands still between two readings */
    {"dozes", dozes},                   /* sleeps without a file, and such calls now and then */
    {"calls", through_calls},           /* calls that are made seldom, or are compiled with _FORTIFY_SOURCE */
    {"notified", notified_often},       /* a timer makes threads faster than the turn is passed */
    {"aio", begun_from_nowhere},        /* threads of asynchronous I/O make the first operations */
    {"profiled", profiled},             /* signals of a timer come at any place */
    {"starved", starved},               /* a thread computes with next to no processor */
    {"stall", stalled},                 /* a thread waits for a plain variable that another one writes */
    {"clock", stalled_at_clock},        /* the same, and it reads a clock meanwhile */
    {"woken", stalled_after_wait},      /* the thread that writes it was kept waiting by a mutex */
    {"signals", stalled_by_signals},    /* the thread that writes it is interrupted again and again */
    {"lost", stalled_by_lost_wake},     /* a thread is given the turn and not woken */
    {"computes", stalled_and_naps},     /* a thread computes for long, and sleeps now and then, unseen */
    {"naps", stalled_by_naps},          /* a thread sleeps unseen until another one writes a variable */
    {"naps-late", late_naps},           /* the same on a busy CPU */
    {"filtered-sleep", filtered_sleep}, /* a thread sleeps unseen, and a filter ends what opens a file */
    {"watched", watched},               /* a thread sleeps a second again and again, and another one locks */
    {"late", late},                     /* a thread sleeps while another computes between its operations */
    {"served", served_in_handler},      /* a thread at a barrier is in a handler when the turn comes to it */
    {"takes", offer_taken_back},        /* the handler makes an operation before the turn comes to its thread */
    {"guest", guest_of_served},         /* and after that */
    {"leaves", offer_of_ended},         /* the handler ends its thread */
    {"copies", offer_and_fork},         /* the handler forks */
    {"copied", served_and_fork},        /* and the child returns from it */
    {"way", way_made},                  /* a thread has the turn next, and does not wait until another has computed */
    {"leave", left_twice},              /* by exit, and meanwhile by _exit of the thread that has the turn */
    {"writers", many_writers},          /* 200 threads wait for a read-write lock, to write */
    {"joins", reader_before_writer}, /* a reader goes before a writer that was woken, and needs a reader that waits */
    {"held-up", held_up_reader},     /* a reader that waits is in a handler, and a writer waits behind it */
    {"restarts", restarted},         /* a wait on a futex is restarted, and a handler waits before it goes on */
    {"restarts-in-place", restarted_in_place}, /* while it is restarted again and again it stays in the queue */
    {"unmaps", unmapped},                      /* the word of a futex is unmapped while a thread waits for the turn */
};

/* Or `loads LIBRARY`: a thread waits on a futex again and again while another loads the library. */
int main(int argc, char **argv) {
    pthread_barrier_init(&barrier, NULL, THREADS);
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    pthread_key_create(&key, destroyed);
    sem_init(&sem, 0, 1);
    for (size_t i = 0; argc == 2 && i < sizeof ways / sizeof *ways; i++)
        if (strcmp(argv[1], ways[i].name) == 0)
            return ways[i].run();
    if (argc == 3 && strcmp(argv[1], "loads") == 0)
        return loaded(argv[2]);
    fputs("usage: ordered WHAT, or ordered loads LIBRARY\n", stderr);
    return 2;
}
