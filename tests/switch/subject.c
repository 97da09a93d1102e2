/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Programs that waiting by switching is for, main thread included, in scenes of what could go wrong there: one scene
 * per run, by name. Without pthread_exit and signal handlers, for which the main thread would stay at home
 * (subject_pin.c).
 */
#include "scene.h"

#include <dirent.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define ROUNDS 300

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static atomic_int n_moved, n_away, turn, flag;
static atomic_bool over;
static int channel[2];
static _Thread_local int own;

/* ---- what is a thread's own goes with it ---- */
static void *carry(void *number) {
    static const int roundings[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    int id = (int)(long)number, rounding = roundings[id % 4];
    pthread_t self = pthread_self();
    long first = proc_kernel_thread();
    bool moved = false;
    own = id;
    fesetround(rounding);
    for (int i = 0; i < ROUNDS; i++) {
        errno = 1000 + id;
        meet();
        CHECK(errno == 1000 + id);
        CHECK(own == id);
        CHECK(pthread_equal(self, pthread_self()));
        CHECK(fegetround() == rounding);
        moved = moved || proc_kernel_thread() != first;
    }
    if (moved)
        atomic_fetch_add(&n_moved, 1);
    return number;
}

static void own_state(void) {
    run(N, carry);
    printf("%d threads ran on another's kernel thread\n", n_moved);
    CHECK(getenv("SWITCHED") == NULL || n_moved > 0);
}

/* ---- asleep in the kernel on every carrier: the others go on ---- */
static void *read_or_work(void *number) {
    int id = (int)(long)number;
    char byte;
    for (int i = 0; i < 20; i++)
        meet(); /* away from home by now */
    if (id >= 2) {
        CHECK(read(channel[0], &byte, 1) == 1);
    } else {
        for (int i = 0; i < ROUNDS; i++) {
            OK(pthread_mutex_lock(&mutex));
            while (turn != id)
                OK(pthread_cond_wait(&cond, &mutex));
            turn = 1 - id;
            OK(pthread_cond_broadcast(&cond));
            OK(pthread_mutex_unlock(&mutex));
        }
        for (int i = 0; id == 0 && i < N - 2; i++)
            CHECK(write(channel[1], "", 1) == 1);
    }
    meet();
    return number;
}

static void kernel_sleepers(void) {
    OK_ERRNO(pipe(channel));
    run(N, read_or_work);
}

/* ---- all threads but one spin on a variable that this one sets: no call that could let it run ---- */
/* ---- short sleeps in the kernel by all threads: better pinned, until there are none any more ---- */
static void *sleep_and_meet(void *number) {
    long id = (long)number, first = proc_kernel_thread();
    bool switched = getenv("SWITCHED") != NULL;
    for (int rounds_at_home = 0, rounds = 0; !over; rounds++) {
        sleep_us(20);
        if (proc_kernel_thread() != first)
            atomic_fetch_add(&n_away, 1);
        meet();
        if (id == 0) {
            rounds_at_home = atomic_exchange(&n_away, 0) == 0 ? rounds_at_home + 1 : 0;
            over = rounds_at_home == 100;
            if (over)
                printf("all at home after %d rounds\n", rounds);
        }
        meet();
    }
    for (int rounds = 0; switched && over; rounds++) {
        if (proc_kernel_thread() != first)
            atomic_fetch_add(&n_away, 1);
        meet();
        if (id == 0 && n_away > 0) {
            over = false;
            printf("away again after %d rounds\n", rounds);
        }
        meet();
    }
    return number;
}

static void sleepers_stay_in(void) {
    run(N, sleep_and_meet);
}

static void *spin_or_set(void *number) {
    for (int i = 0; i < 20; i++)
        meet();
    if ((long)number == N - 1) {
        OK(pthread_mutex_lock(&mutex));
        flag = 1;
        OK(pthread_mutex_unlock(&mutex));
    }
    while (!flag)
        ;
    meet();
    return number;
}

static void spinners(void) {
    run(N, spin_or_set);
}

/* ---- the same, politely ---- */
static void *yield_in_turn(void *number) {
    int id = (int)(long)number;
    meet();
    for (int i = 0; i < 20; i++) {
        while (turn != id)
            sched_yield();
        turn = (id + 1) % 32;
    }
    return number;
}

static void yielders(void) {
    run(32, yield_in_turn);
}

/* ---- fibers that yield beside a process that computes: the kernel would give that process a slice each time ---- */
enum { BESIDE_NS = 150000000, TRIES_BESIDE = 20 };

static atomic_long n_yields;

static void *yield_beside(void *number) {
    meet();
    long n = 0;
    for (int64_t begin = now_ns(CLOCK_MONOTONIC); now_ns(CLOCK_MONOTONIC) - begin < BESIDE_NS; n++)
        sched_yield();
    n_yields += n;
    return number;
}

/* How often the kernel has taken the core away. */
static long n_taken_away(void) {
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return usage.ru_nivcsw;
}

static bool yields_are_switches(void) {
    long before = n_taken_away();
    n_yields = 0;
    run(8, yield_beside);
    return n_taken_away() - before < n_yields / 128; /* without care, at one of 64 yields */
}

/* BESIDE: on one core. Where more processes compute threads are sent home at times, so that there are many tries. */
static void yielders_beside(void) {
    if (getenv("BESIDE") == NULL) {
        yields_are_switches();
        return;
    }
    pid_t computes = fork();
    if (computes == 0) {
        alarm(600);
        for (;;)
            ;
    }
    bool are = false;
    for (int i = 0; i < TRIES_BESIDE && !are; i++)
        are = yields_are_switches();
    CHECK(kill(computes, SIGKILL) == 0 && waitpid(computes, NULL, 0) == computes);
    CHECK(are);
}

/* ---- deadlines ---- */
static void *wait_with_deadline(void *number) {
    for (int i = 0; i < 5; i++) {
        meet();
        int64_t begin = now_ns(CLOCK_MONOTONIC);
        struct timespec at = time_in_ms(CLOCK_REALTIME, 20);
        pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
        pthread_cond_t c = PTHREAD_COND_INITIALIZER;
        OK(pthread_mutex_lock(&m));
        int r;
        while ((r = pthread_cond_timedwait(&c, &m, &at)) == 0)
            ;
        CHECK(r == ETIMEDOUT);
        CHECK(now_ns(CLOCK_MONOTONIC) - begin > 15000000);
        OK(pthread_mutex_unlock(&m));
    }
    return number;
}

static void deadlines(void) {
    run(N, wait_with_deadline);
}

/* ---- a thread that has moved forks, and the child has threads of its own ---- */
static atomic_int forker_is_gone;

/* In the child: the thread that has forked ends, the others go on. */
static void *outlive(void *unused) {
    while (!forker_is_gone)
        sched_yield();
    n_moved = 0;
    run(4, carry);
    CHECK(getenv("SWITCHED") == NULL || n_moved > 0);
    _exit(0);
    return unused;
}

static void *fork_on_the_way(void *number) {
    own = 100 + (int)(long)number;
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 20; k++)
            meet();
        pid_t pid = fork();
        SYS(pid);
        if (pid == 0) {
            CHECK(own == 100 + (int)(long)number);
            n_moved = 0;
            run(4, carry);
            CHECK(getenv("SWITCHED") == NULL || n_moved > 0);
            if (i % 2 == 0)
                _exit(0);
            thread_start(outlive, NULL);
            forker_is_gone = 1; /* all but: what is left of it are its last instructions */
            return number;
        }
        child_join(pid);
    }
    return number;
}

static void forks(void) {
    run(4, fork_on_the_way);
}

/* ---- the main thread is one of the fibers that move; the kernel knows the owner of its mutex ---- */
static pthread_mutex_t inherits;
enum { MANY_ROUNDS = 10 * ROUNDS }; /* on a busy machine one carrier makes hundreds before the other one comes */

static void *want_it(void *number) {
    for (int i = 0; i < 20; i++)
        meet();
    OK(pthread_mutex_lock(&inherits));
    OK(pthread_mutex_unlock(&inherits));
    for (int i = 0; i < MANY_ROUNDS; i++)
        meet();
    return number;
}

static void main_moves(void) {
    pthread_mutexattr_t attr;
    long first = proc_kernel_thread();
    bool moved = false;
    OK(pthread_mutexattr_init(&attr));
    OK(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT));
    OK(pthread_mutex_init(&inherits, &attr));
    OK(pthread_barrier_init(&barrier, NULL, 4));
    OK(pthread_mutex_lock(&inherits)); /* before there are other threads */
    for (long i = 0; i < 3; i++)
        OK(pthread_create(&threads[i], NULL, want_it, (void *)i));
    for (int i = 0; i < 20; i++) {
        meet();
        CHECK(proc_kernel_thread() == first); /* or it could not unlock */
    }
    OK(pthread_mutex_unlock(&inherits));
    for (int i = 0; i < MANY_ROUNDS; i++) {
        meet();
        moved = moved || proc_kernel_thread() != first;
    }
    CHECK(getenv("SWITCHED") == NULL || moved);
    for (int i = 0; i < 3; i++)
        thread_join(threads[i]);
}

/* ---- a wait for a futex that the kernel serves is spent at home, where no other thread needs the kernel thread ----
 */
static uint32_t *shared; /* other processes may have that memory too */
static long sleepers_home;

/* The kernel thread that sleeps in a call with that address as its first argument; 0: none does. */
static long sleeps_at(const void *address) {
    char file[64], line[64], wanted[64];
    long found = 0;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    snprintf(wanted, sizeof wanted, "%d 0x%lx ", SYS_futex, (unsigned long)(uintptr_t)address);
    for (const struct dirent *d; found == 0 && (d = readdir(tasks)) != NULL;) {
        long tid = strtol(d->d_name, NULL, 10);
        snprintf(file, sizeof file, "/proc/self/task/%ld/syscall", tid);
        FILE *f = tid != 0 ? fopen(file, "re") : NULL;
        if (f != NULL && fgets(line, sizeof line, f) != NULL && strncmp(line, wanted, strlen(wanted)) == 0)
            found = tid;
        if (f != NULL)
            fclose(f);
    }
    closedir(tasks);
    return found;
}

static void *wait_in_kernel_or_look(void *number) {
    long id = (long)number, home = proc_kernel_thread(), at;
    for (int i = 0; i < 50; i++) {
        if (id == 0) {
            sleepers_home = home;
            *shared = 0;
        }
        meet();
        meet();
        if (id == 0) {
            atomic_fetch_add(&n_away, proc_kernel_thread() != home);
            while (__atomic_load_n(shared, __ATOMIC_ACQUIRE) == 0)
                syscall(SYS_futex, shared, FUTEX_WAIT, 0, NULL, NULL, 0);
        } else if (id == 1) {
            while ((at = sleeps_at(shared)) == 0)
                sched_yield();
            CHECK(at == sleepers_home);
            __atomic_store_n(shared, 1, __ATOMIC_RELEASE);
            syscall(SYS_futex, shared, FUTEX_WAKE, 1, NULL, NULL, 0);
        }
    }
    return number;
}

static void kernel_serves(void) {
    FILE *f = fopen("/proc/thread-self/syscall", "re");
    char line[64];
    bool readable = f != NULL && fgets(line, sizeof line, f) != NULL;
    if (f != NULL)
        fclose(f);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    if (!readable) { /* kernels without it, and sandboxes */
        puts("/proc tells of no system calls");
        return;
    }
    run(4, wait_in_kernel_or_look);
    printf("%d waits began on another's kernel thread\n", n_away);
    CHECK(getenv("SWITCHED") == NULL || n_away > 0);
}

int main(int argc, char **argv) {
    static const struct scene scenes[] = {
        {"own-state", own_state},
        {"kernel-sleepers", kernel_sleepers},
        {"spinners", spinners},
        {"yielders", yielders},
        {"yielders-beside", yielders_beside},
        {"deadlines", deadlines},
        {"forks", forks},
        {"main-moves", main_moves},
        {"sleepers-stay-in", sleepers_stay_in},
        {"kernel-serves", kernel_serves},
        {NULL, NULL},
    };
    return play(argc, argv, scenes);
}
