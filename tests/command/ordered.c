/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The output of this program depends on the order of its synchronization: each thread adds its number to a sum under a
 * lock such that the order counts.
 *
 * usage: ordered counters  threads race for a mutex
 *        ordered all       the same with every kind of object, deadlines, sleeps, creation, ends, locks in destructors
 *        ordered exits    threads end by pthread_exit, which unwinds their stacks
 *        ordered allocates the allocator has a lock: the C library takes it when it creates a thread
 *        ordered stacks    the same, and a thread that has ended frees in the C library, under a lock that creations
 * take ordered nap       a thread sleeps for no time while another one yields ordered ahead     a thread waits a second
 * while another makes 1.4 million operations in less ordered pipe      a thread waits for another process's bytes
 *        ordered stdio     the same by fgets, a call that the library does not see
 *        ordered calls     the same with calls that a program makes seldom, or if it is compiled with _FORTIFY_SOURCE
 *        ordered stall     a thread waits for a plain variable that another one writes
 *        ordered clock     the same, and it reads a clock meanwhile
 *        ordered woken     threads wait for a plain variable that one writes that a mutex has kept waiting
 *        ordered signals   the same, and the one that writes is interrupted again and again while it waits for the turn
 *        ordered forks     a handler forks while a thread that creates another one waits for the turn
 *        ordered restarts  a wait on a futex is restarted after a handler, and another one waits before it goes on
 *        ordered unmaps    the word of a futex is unmapped while a thread waits for the turn
 *        ordered loads LIB a thread waits on a futex again and again while another loads LIB
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 5
#define ROUNDS 100
#define YIELDS 16

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_barrier_t barrier;
static pthread_spinlock_t spin;
static pthread_key_t key;
static sem_t sem;
enum { MUTEX, RWLOCK, SEM, SPIN, N_SUMS };
static uint64_t sums[N_SUMS]; /* each under its own object */
static int tokens;

static void add_to(int which, uint64_t number) {
    sums[which] = (sums[which] ^ number) * 0x100000001B3u;
}

static void add(uint64_t number) {
    add_to(MUTEX, number);
}

static void locked_add(uint64_t number) {
    pthread_mutex_lock(&mutex);
    add(number);
    pthread_mutex_unlock(&mutex);
}

static void compute(uint64_t number) {
    for (volatile uint64_t i = 0; i < number % 7 * 300; i++)
        ;
}

static void *counter(void *argument) {
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

static void *post(void *unused) {
    sem_post(&sem);
    return unused;
}

/* As an allocator of the program's own: jemalloc locks too. */
static pthread_mutex_t allocator = PTHREAD_MUTEX_INITIALIZER;
static bool allocator_locks, free_locks, calloc_sleeps;
static _Thread_local int allocations;

extern void *__libc_calloc(size_t n, size_t bytes);
extern void __libc_free(void *memory);

void *calloc(size_t n, size_t bytes) {
    const struct timespec second = {.tv_sec = 1};
    if (calloc_sleeps)
        syscall(SYS_nanosleep, &second, NULL);
    if (!allocator_locks)
        return __libc_calloc(n, bytes);
    pthread_mutex_lock(&allocator);
    allocations++;
    compute((uint64_t)allocations);
    void *memory = __libc_calloc(n, bytes);
    pthread_mutex_unlock(&allocator);
    return memory;
}

void free(void *memory) {
    if (free_locks)
        pthread_mutex_lock(&allocator);
    __libc_free(memory);
    if (free_locks)
        pthread_mutex_unlock(&allocator);
}

static void *allocate(void *argument) {
    for (int i = 0; i < ROUNDS / 10; i++) {
        void *volatile memory = calloc(1, (size_t)(uintptr_t)argument); /* volatile: else the compiler leaves it out */
        free(memory);
        locked_add((uintptr_t)argument);
    }
    return NULL;
}

/* The C library allocates in the main thread's creations, beside the others' allocations. */
static int with_allocator(void) {
    pthread_t thread[3 * THREADS];
    allocator_locks = true;
    for (uintptr_t i = 0; i < 3 * THREADS; i++)
        if (pthread_create(&thread[i], NULL, allocate, (void *)(i + 1)) != 0)
            return 1;
    for (int i = 0; i < 3 * THREADS; i++)
        pthread_join(thread[i], NULL);
    allocator_locks = false;
    printf("%d %016llx\n", allocations > 0, (unsigned long long)sums[MUTEX]);
    return 0;
}

/* Stacks that the C library does not keep: a thread that has ended frees what belongs to them, under a lock of the C
 * library's that creations take. */
static int with_large_stacks(void) {
    pthread_t thread;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, (size_t)48 << 20);
    free_locks = true;
    for (int i = 0; i < ROUNDS; i++) {
        if (pthread_create(&thread, &attr, post, NULL) != 0)
            return 1;
        sem_wait(&sem);
    }
    free_locks = false;
    pthread_attr_destroy(&attr);
    puts("done");
    return 0;
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

static int fds[2];

static void *reader(void *argument) {
    char c = 0;
    (void)argument;
    if (read(fds[0], &c, 1) == 1)
        locked_add(c == 'x');
    return NULL;
}

static void *line_reader(void *argument) {
    char line[8];
    FILE *in = fdopen(fds[0], "r");
    (void)argument;
    if (in != NULL && fgets(line, sizeof line, in) != NULL)
        locked_add(line[0] == 'x');
    return NULL;
}

/* The writer gets on while the reader waits. */
static int through_pipe(void *(*routine)(void *)) {
    pthread_t thread;
    if (pipe(fds) != 0)
        return 1;
    pthread_create(&thread, NULL, routine, NULL);
    for (int i = 0; i < ROUNDS; i++)
        locked_add(0);
    if (write(fds[1], "x\n", 2) != 2)
        return 1;
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}

/* The size of the array is the last argument, or comes after n. */
extern ssize_t __read_chk(int fd, void *buffer, size_t n, size_t size);
extern ssize_t __recv_chk(int fd, void *buffer, size_t n, size_t size, int flags);
extern ssize_t __recvfrom_chk(int fd, void *buffer, size_t n, size_t size, int flags, struct sockaddr *from,
                              socklen_t *from_size);
extern int __poll_chk(struct pollfd *fds, nfds_t n, int ms, size_t size);
extern int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask, size_t size);

static const char *const calls[] = {"read_chk", "recv_chk", "recvfrom_chk", "poll_chk", "ppoll_chk",
                                    "recvmmsg", "system",   "eventfd_read", "flock"};
enum { N_CALLS = sizeof calls / sizeof *calls };

/* Waits until a byte comes, or for `flock` until the lock is free. */
static ssize_t call(size_t i) {
    char c[8];
    struct iovec part = {c, 1};
    struct mmsghdr message = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
    struct pollfd in = {fds[0], POLLIN, 0};
    eventfd_t value;
    return i == 0   ? __read_chk(fds[0], c, 1, sizeof c)
           : i == 1 ? __recv_chk(fds[0], c, 1, sizeof c, 0)
           : i == 2 ? __recvfrom_chk(fds[0], c, 1, sizeof c, 0, NULL, NULL)
           : i == 3 ? __poll_chk(&in, 1, -1, sizeof in)
           : i == 4 ? __ppoll_chk(&in, 1, NULL, NULL, sizeof in)
           : i == 5 ? recvmmsg(fds[0], &message, 1, 0, NULL)
           : i == 6 ? system("head -c 1 >/dev/null") == 0
           : i == 7 ? eventfd_read(fds[0], &value) == 0
                    : flock(fds[0], LOCK_EX) == 0;
}

static void *caller(void *i) {
    locked_add(call((uintptr_t)i) == 1);
    return NULL;
}

static int open_ends(size_t i) {
    char name[] = "/tmp/ordered-XXXXXX";
    if (i == 7)
        return (fds[0] = fds[1] = eventfd(0, 0)) < 0;
    if (i < 7)
        return socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0 || (i == 6 && dup2(fds[0], STDIN_FILENO) != STDIN_FILENO);
    fds[0] = mkstemp(name);
    fds[1] = open(name, O_RDWR);
    unlink(name);
    return fds[0] < 0 || fds[1] < 0 || flock(fds[1], LOCK_EX) != 0;
}

/* Each time the others get on while a thread waits. */
static int through_calls(void) {
    const uint64_t one = 1;
    for (size_t i = 0; i < N_CALLS; i++) {
        pthread_t thread;
        if (open_ends(i) != 0)
            return 1;
        pthread_create(&thread, NULL, caller, (void *)(uintptr_t)i);
        for (int k = 0; k < ROUNDS; k++)
            locked_add(0);
        if (i == N_CALLS - 1 ? flock(fds[1], LOCK_UN) != 0 : write(fds[1], &one, sizeof one) != sizeof one)
            return 1;
        pthread_join(thread, NULL);
        puts(calls[i]);
    }
    return 0;
}

static atomic_int flag, setter_tid;

static void *setter(void *argument) {
    (void)argument;
    atomic_store(&setter_tid, gettid());
    locked_add(1);
    atomic_store(&flag, 1);
    return NULL;
}

static int stalled(bool reads_clock) {
    struct timespec now;
    pthread_t thread;
    pthread_create(&thread, NULL, setter, NULL);
    while (atomic_load(&flag) == 0)
        if (reads_clock)
            clock_gettime(CLOCK_MONOTONIC, &now);
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}

static void *spinner(void *argument) {
    for (int i = 0; i < YIELDS / 2; i++)
        sched_yield();
    while (atomic_load(&flag) == 0)
        ;
    return argument;
}

/*
 * The setter waits for a mutex. It is woken, and the turn goes to a thread that loops already: no thread waits for the
 * turn but the one that slept. That is so for one number of yields.
 */
static void wake_while_others_loop(int n_yields_before) {
    pthread_t looping, kept_waiting;
    atomic_store(&flag, 0);
    pthread_mutex_lock(&mutex);
    pthread_create(&looping, NULL, spinner, NULL);
    pthread_create(&kept_waiting, NULL, setter, NULL);
    for (int i = 0; i < n_yields_before; i++)
        sched_yield();
    pthread_mutex_unlock(&mutex);
    while (atomic_load(&flag) == 0)
        ;
    pthread_join(looping, NULL);
    pthread_join(kept_waiting, NULL);
}

static int stalled_after_wait(void) {
    for (int i = 0; i < YIELDS; i++)
        wake_while_others_loop(i);
    puts("done");
    return 0;
}

static void on_signal(int number) {
    (void)number;
}

/* The waiting thread's sleeps are interrupted sooner than it would look for a stall. */
static int stalled_by_signals(void) {
    struct sigaction action = {.sa_handler = on_signal};
    pthread_t thread;
    sigaction(SIGUSR1, &action, NULL);
    pthread_create(&thread, NULL, setter, NULL);
    while (atomic_load(&flag) == 0) {
        syscall(SYS_tgkill, getpid(), atomic_load(&setter_tid), SIGUSR1);
        for (volatile int i = 0; i < 20000; i++)
            ;
    }
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}

static pid_t forked = -1;

static void fork_now(int number) {
    (void)number;
    forked = fork();
}

static void *compute_with_turn(void *argument) {
    struct timespec now, end;
    sigset_t alarms;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarms, NULL);
    locked_add(1); /* when the creator has been expelled */
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += 2;
    do { /* serially, many readings of a clock would pass the turn */
        for (volatile int i = 0; i < 10000000; i++)
            ;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
    locked_add(1);
    return argument;
}

/* In the child the mutex may be held for ever. */
static int create_some(void) {
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, post, NULL) != 0)
            return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    return 3;
}

/* A creator sleeps in its allocator, is expelled, and waits for the turn. Meanwhile a handler forks. */
static int forked_in_creation(void) {
    const struct itimerval soon = {.it_value = {.tv_sec = 1, .tv_usec = 500000}};
    struct sigaction action = {.sa_handler = fork_now};
    pthread_t computing, created;
    int status = -1;
    sigaction(SIGALRM, &action, NULL);
    pthread_create(&computing, NULL, compute_with_turn, NULL);
    setitimer(ITIMER_REAL, &soon, NULL);
    calloc_sleeps = true;
    pthread_create(&created, NULL, counter, (void *)1);
    calloc_sleeps = false;
    if (forked == 0)
        _exit(create_some());
    pthread_join(computing, NULL);
    pthread_join(created, NULL);
    bool has_child = forked > 0 && waitpid(forked, &status, 0) == forked;
    printf("%d %d\n", has_child, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    return 0;
}

static uint32_t word;

static long futex(uint32_t *at, int op, uint32_t value, const void *more, uint32_t *at2) {
    return syscall(SYS_futex, at, op | FUTEX_PRIVATE_FLAG, value, more, at2, value);
}

static void compute_ms(long ms) {
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ms);
}

static void yield_often(void) {
    for (int i = 0; i < YIELDS; i++)
        sched_yield();
}

static void count(int number) {
    (void)number;
    atomic_fetch_add(&flag, 1);
}

static void count_and_wait(int number) {
    count(number);
    sem_wait(&sem);
}

static void *futex_waiter(void *argument) {
    bool is_woken = futex(&word, FUTEX_WAIT, 0, NULL, NULL) == 0;
    puts(is_woken ? "done" : strerrorname_np(errno));
    return argument;
}

/* The thread is restarted, waits for the turn with that, and a handler with a wait of its own comes. */
static int restarted(void) {
    static const struct {
        int signal;
        void (*handler)(int);
    } ways[] = {{SIGUSR1, count}, {SIGUSR2, count_and_wait}};
    pthread_t thread;
    sem_wait(&sem);
    pthread_create(&thread, NULL, futex_waiter, NULL);
    yield_often();
    for (int i = 0; i < 2; i++) {
        struct sigaction action = {.sa_handler = ways[i].handler, .sa_flags = SA_RESTART};
        sigaction(ways[i].signal, &action, NULL);
        pthread_kill(thread, ways[i].signal);
        while (atomic_load(&flag) == i)
            ;
        compute_ms(20); /* with the turn */
    }
    sched_yield();
    sem_post(&sem);
    yield_often();
    __atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
    futex(&word, FUTEX_WAKE, 1, NULL, NULL);
    pthread_join(thread, NULL);
    return 0;
}

static uint32_t *page;

static void *wait_for_unmapped(void *requeues) {
    const void *one = (const void *)1;
    int op = requeues != NULL ? FUTEX_CMP_REQUEUE : FUTEX_WAIT;
    futex(page, op, 1, requeues != NULL ? one : NULL, &word); /* fails: the value is another */
    atomic_store(&flag, 1);
    long r = futex(page, op, 0, requeues != NULL ? one : NULL, &word);
    puts(r == -1 ? strerrorname_np(errno) : "no error");
    return NULL;
}

static int unmapped(void) {
    for (uintptr_t i = 0; i < 2; i++) {
        pthread_t thread;
        page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED)
            return 1;
        atomic_store(&flag, 0);
        pthread_create(&thread, NULL, wait_for_unmapped, (void *)i);
        sched_yield();
        while (atomic_load(&flag) == 0)
            ;
        compute_ms(20); /* with the turn */
        munmap(page, 4096);
        pthread_join(thread, NULL);
    }
    return 0;
}

static void *wait_in_vain(void *argument) {
    for (int i = 0; i < 200; i++) {
        futex(&word, FUTEX_WAIT, 1, NULL, NULL);
        for (volatile int k = 0; k < 20000; k++)
            ;
    }
    return argument;
}

static int loaded(const char *library) {
    pthread_t thread;
    pthread_create(&thread, NULL, wait_in_vain, NULL);
    bool is_there = dlopen(library, RTLD_NOW) != NULL;
    pthread_join(thread, NULL);
    puts(is_there ? "done" : dlerror());
    return 0;
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
    for (int i = 0; i < 700000; i++) {
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

int main(int argc, char **argv) {
    const char *what = argc == 2 || (argc == 3 && strcmp(argv[1], "loads") == 0) ? argv[1] : "";
    pthread_barrier_init(&barrier, NULL, THREADS);
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    pthread_key_create(&key, destroyed);
    sem_init(&sem, 0, 1);
    if (strcmp(what, "counters") == 0)
        return run(counter, THREADS);
    if (strcmp(what, "all") == 0)
        return run(everything, THREADS);
    if (strcmp(what, "exits") == 0)
        return run(leaver, THREADS);
    if (strcmp(what, "allocates") == 0)
        return with_allocator();
    if (strcmp(what, "stacks") == 0)
        return with_large_stacks();
    if (strcmp(what, "pipe") == 0)
        return through_pipe(reader);
    if (strcmp(what, "stdio") == 0)
        return through_pipe(line_reader);
    if (strcmp(what, "ahead") == 0)
        return ahead();
    if (strcmp(what, "calls") == 0)
        return through_calls();
    if (strcmp(what, "stall") == 0)
        return stalled(false);
    if (strcmp(what, "clock") == 0)
        return stalled(true);
    if (strcmp(what, "woken") == 0)
        return stalled_after_wait();
    if (strcmp(what, "signals") == 0)
        return stalled_by_signals();
    if (strcmp(what, "forks") == 0)
        return forked_in_creation();
    if (strcmp(what, "nap") == 0)
        return nap();
    if (strcmp(what, "restarts") == 0)
        return restarted();
    if (strcmp(what, "unmaps") == 0)
        return unmapped();
    if (argc == 3)
        return loaded(argv[2]);
    fprintf(stderr, "usage: ordered "
                    "counters|all|exits|allocates|stacks|nap|ahead|pipe|stdio|calls|stall|clock|woken|signals|forks|"
                    "restarts|unmaps|loads LIBRARY\n");
    return 2;
}
