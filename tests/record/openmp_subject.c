/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * OpenMP programs with regions, barriers and sections in known numbers. usage: openmp-subject WHAT
 * Each prints OK if what it has computed is right: a barrier or section of the run-time library that did not get
 * through would show.
 */
#include <dlfcn.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { N_THREADS = 4, N_ROUNDS = 50 };

static long plain[4]; /* under critical sections and a lock */

/* One explicit barrier, a loop and sections with barriers at their ends, two critical sections and a lock. */
static bool regions(void) {
    omp_lock_t lock;
    int met[N_ROUNDS] = {0}, together = 0;
    long in_loop = 0, in_sections = 0;
    omp_init_lock(&lock);
    for (int round = 0; round < N_ROUNDS; round++) {
#pragma omp parallel num_threads(N_THREADS)
        {
#pragma omp atomic
            met[round]++;
#pragma omp barrier
            int seen;
#pragma omp atomic read
            seen = met[round];
#pragma omp critical
            plain[0] += seen == N_THREADS;
#pragma omp critical(of_the_sum)
            plain[1]++;
            omp_set_lock(&lock);
            plain[2]++;
            omp_unset_lock(&lock);
#pragma omp for schedule(dynamic, 3) reduction(+ : in_loop)
            for (int i = 0; i < 20; i++)
                in_loop += i;
#pragma omp sections reduction(+ : in_sections)
            {
#pragma omp section
                in_sections++;
#pragma omp section
                in_sections++;
            }
        }
#pragma omp atomic
        together++;
    }
    if (omp_test_lock(&lock) == 0 || omp_test_lock(&lock) != 0)
        return false;
    omp_unset_lock(&lock);
    omp_destroy_lock(&lock);
    return plain[0] == N_ROUNDS * N_THREADS && plain[1] == plain[0] && plain[2] == plain[0] &&
           in_loop == N_ROUNDS * 190 && in_sections == 2 * N_ROUNDS && together == N_ROUNDS;
}

/* A nested lock is taken twice by a thread, or tried when it is held. */
static bool nest(void) {
    omp_nest_lock_t lock;
    long n = 0, n_tried = 0;
    bool right = true;
    omp_init_nest_lock(&lock);
#pragma omp parallel num_threads(N_THREADS) reduction(+ : n_tried) reduction(&& : right)
    for (int i = 0; i < N_ROUNDS; i++) {
        omp_set_nest_lock(&lock);
        omp_set_nest_lock(&lock);
        n++;
        right = right && omp_test_nest_lock(&lock) == 3;
        for (int k = 0; k < 3; k++)
            omp_unset_nest_lock(&lock);
        if (omp_test_nest_lock(&lock) == 1) {
            omp_set_nest_lock(&lock);
            n_tried++;
            omp_unset_nest_lock(&lock);
            omp_unset_nest_lock(&lock);
        }
    }
    right = right && omp_test_nest_lock(&lock) == 1 && n == (long)N_THREADS * N_ROUNDS && n_tried >= 0;
    omp_unset_nest_lock(&lock);
    omp_destroy_nest_lock(&lock);
    fprintf(stderr, "%ld\n", n + n_tried + 1);
    return right;
}

/* Sections of a loop in the order of its rounds. */
static bool ordered(void) {
    long n = 0;
    bool right = true;
#pragma omp parallel for ordered schedule(dynamic) num_threads(N_THREADS)
    for (int i = 0; i < 2 * N_ROUNDS; i++)
#pragma omp ordered
        right = right && n++ == i;
    return right && n == 2 * N_ROUNDS;
}

/* Two teams are in ordered sections at once: the first section of each waits for the other's. */
static bool ordered_teams(void) {
    int n[2] = {0}, n_within = 0;
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
    {
        int *mine = &n[omp_get_thread_num()];
#pragma omp parallel for ordered schedule(static, 1) num_threads(2)
        for (int i = 0; i < N_ROUNDS; i++)
#pragma omp ordered
        {
            *mine += *mine == i;
            __atomic_fetch_add(&n_within, i == 0, __ATOMIC_RELAXED);
            while (__atomic_load_n(&n_within, __ATOMIC_RELAXED) < 2)
                usleep(100);
        }
    }
    return n[0] == N_ROUNDS && n[1] == N_ROUNDS;
}

/* Reductions in loops of teams that clang's run-time library reduces in different ways. */
static bool reductions(void) {
    long n = 0, most = 0;
    for (int round = 0; round < 2 * N_ROUNDS; round++)
#pragma omp parallel num_threads(2 + 4 * (round % 2))
    {
#pragma omp for reduction(+ : n) reduction(max : most)
        for (int i = 0; i < 20; i++) {
            n += i;
            most = most > i ? most : i;
        }
    }
    return n == 2 * N_ROUNDS * 190 && most == 19;
}

/* Tasks that threads run while they wait at the end of a reduction have regions with reductions of their own. */
static bool reductions_in_tasks(void) {
    long n = 0, inner = 0;
    omp_set_max_active_levels(2);
    for (int round = 0; round < N_ROUNDS; round++)
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == round % 2)
            for (int task = 0; task < 4; task++)
#pragma omp task shared(inner)
            {
                long mine = 0;
#pragma omp parallel num_threads(3) shared(mine)
                {
#pragma omp for reduction(+ : mine)
                    for (int i = 0; i < 20; i++)
                        mine += i;
                }
#pragma omp atomic
                inner += mine;
            }
#pragma omp for reduction(+ : n)
        for (int i = 0; i < 20; i++)
            n += i;
    }
    return n == N_ROUNDS * 190 && inner == 4 * n;
}

/* More variables than there are registers for arguments, and regions of one thread with barriers. */
static bool many(void) {
    long a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8, i = 9, k = 10, sum = 0;
    double x = 0.5, y = 0.25;
#pragma omp parallel num_threads(N_THREADS) firstprivate(a, b, c, d, e, f, g, x) reduction(+ : sum)
    {
        a += omp_get_thread_num();
        sum += a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * k + (long)(x + 3 * y);
        if (omp_get_thread_num() == 1) {
#pragma omp parallel if (sum < 0)
            {
#pragma omp barrier
#pragma omp atomic
                h += 0;
            }
        }
#pragma omp barrier
    }
    return sum == N_THREADS * 386 + 6;
}

static omp_lock_t in_handlers;

static void handle(int signal) {
    (void)signal;
    omp_set_lock(&in_handlers);
    omp_unset_lock(&in_handlers);
}

/* A handler's calls come in the midst of the thread's own. */
static bool handlers(void) {
    enum { N_LOCKS = 100000 };
    struct sigaction action = {.sa_handler = handle};
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    sigset_t alarms;
    omp_lock_t lock;
    long n = 0;
    omp_init_lock(&lock);
    omp_init_lock(&in_handlers);
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarms, NULL);
    if (sigaction(SIGALRM, &action, NULL) != 0)
        return false;
#pragma omp parallel num_threads(3)
    {
        if (omp_get_thread_num() == 0) {
            pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
            setitimer(ITIMER_REAL, &often, NULL);
        }
        for (int i = 0; i < N_LOCKS; i++) {
            omp_set_lock(&lock);
            n++;
            omp_unset_lock(&lock);
        }
        if (omp_get_thread_num() == 0)
            pthread_sigmask(SIG_BLOCK, &alarms, NULL);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    return n == 3 * N_LOCKS;
}

/* A task that runs in a thread at the end of a region has a region of its own. */
static bool in_tasks(void) {
    long n = 0, n_tasks = 0;
    omp_set_max_active_levels(2);
    for (int round = 0; round < N_ROUNDS; round++)
#pragma omp parallel num_threads(N_THREADS)
    {
#pragma omp single nowait
        for (int i = 0; i < 40; i++)
#pragma omp task
        {
            if (i % 10 == 0) {
#pragma omp parallel num_threads(2)
                {
#pragma omp barrier
#pragma omp atomic
                    n++;
                }
            }
#pragma omp critical
            n_tasks++;
        }
    }
    return n == N_ROUNDS * 8 && n_tasks == N_ROUNDS * 40;
}

/* Teams of three sizes at one place. */
static bool sizes(void) {
    int n = 0;
    for (int round = 0; round < 3 * N_ROUNDS; round++)
#pragma omp parallel num_threads(2 + round % 3)
    {
#pragma omp atomic
        n++;
#pragma omp barrier
    }
    return n == N_ROUNDS * (2 + 3 + 4);
}

/* Each thread of a team has a team of its own. */
static bool nested(void) {
    int n = 0;
    omp_set_max_active_levels(2);
    for (int round = 0; round < N_ROUNDS; round++)
#pragma omp parallel num_threads(2)
    {
#pragma omp parallel num_threads(2)
        {
#pragma omp barrier
#pragma omp atomic
            n++;
        }
#pragma omp barrier
#pragma omp atomic
        n++;
    }
    return n == 6 * N_ROUNDS;
}

/* One region. At its end the workers wait until the program ends. */
static bool once(void) {
    int n = 0;
#pragma omp parallel num_threads(N_THREADS)
    {
#pragma omp atomic
        n++;
    }
    return n == N_THREADS;
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Works for so long at least. */
static void work(uint64_t us) {
    uint64_t begin_ns = now_ns();
    while (now_ns() - begin_ns < us * 1000)
        ;
}

/* Tasks run in threads that wait at barriers, and take locks there. */
static bool tasks(void) {
    long n = 0;
#pragma omp parallel num_threads(N_THREADS)
#pragma omp single
    for (int i = 0; i < 1000; i++)
#pragma omp task
#pragma omp critical
        n++;
    return n == 1000;
}

struct aligned {
    _Alignas(64) long of[8];
};

#ifdef __clang__ /* knows no such array in a task */
#define LENGTH_OF_VARIABLE 5
#else /* for which the compiler writes a function that copies the task's data */
#pragma GCC diagnostic ignored "-Wvla"
#define LENGTH_OF_VARIABLE n_long
#endif

/* Tasks of which the run-time library copies the data in different ways: tasks of all sorts, and loops of tasks. */
static bool kinds_of_tasks(int n_long) {
    enum { N = 40 };
    long sum = 0, ordered_sum = 0, reduced = 0, in_loop = 0, in_big_loop = 0, several = 0;
    long variable[LENGTH_OF_VARIABLE];
    struct aligned big = {{0}};
    bool right = true;
    for (int i = 0; i < n_long; i++)
        variable[i] = i;
    big.of[7] = 7;
#pragma omp parallel num_threads(N_THREADS)
#pragma omp single
    {
        for (int i = 0; i < N; i++) {
#pragma omp task firstprivate(variable, big, i) untied
            {
                if ((uintptr_t)&big % 64 != 0 || big.of[7] != 7 || variable[n_long - 1] != n_long - 1)
#pragma omp atomic write
                    right = false;
                variable[i % n_long] = big.of[i % 8] = -1; /* its own */
#pragma omp atomic
                sum += i;
            }
#pragma omp task if (i % 2 == 0) final(i % 3 == 0) priority(i % 2) depend(out : ordered_sum)
            ordered_sum = ordered_sum == i ? i + 1 : -N;
        }
#pragma omp taskgroup task_reduction(+ : reduced)
        for (int i = 0; i < N; i++)
#pragma omp task in_reduction(+ : reduced)
            reduced += i;
#pragma omp taskloop grainsize(3) firstprivate(variable) shared(in_loop)
        for (int i = 0; i < N; i++)
#pragma omp atomic
            in_loop += i + variable[n_long - 1] - (n_long - 1);
#pragma omp taskloop num_tasks(7) nogroup shared(in_big_loop)
        for (unsigned long long i = 0; i < N; i++)
#pragma omp atomic
            in_big_loop += (long)i;
#pragma omp taskloop if (n_long < 0) reduction(+ : several)
        for (long i = 0; i < N; i++)
            several += i;
    }
    const long all = N * (N - 1) / 2;
    return right && sum == all && ordered_sum == N && reduced == all && in_loop == all && in_big_loop == all &&
           several == all;
}

/* A task that is over when an event has come. LLVM's library knows no such tasks of gcc's, and not that name. */
static bool detached(void) {
    void (*fulfill)(omp_event_handle_t);
    int n = 0;
    *(void **)(void *)&fulfill = dlsym(RTLD_DEFAULT, "omp_fulfill_event");
#pragma omp parallel num_threads(N_THREADS)
#pragma omp single
    for (int i = 0; i < N_ROUNDS; i++) {
        omp_event_handle_t event;
#pragma omp task detach(event) firstprivate(i) shared(n)
        {
            n += n == i;
            fulfill(event);
        }
#pragma omp taskwait
    }
    return n == N_ROUNDS;
}

/* More tasks than there is room for on a stack, run at once: the data of each is made when its turn comes. */
static bool many_in_a_loop(void) {
    enum { MANY = 100000 };
    long n = 0, n_in_team = 0;
#pragma omp taskloop grainsize(1) shared(n)
    for (int i = 0; i < MANY; i++)
        n++;
#pragma omp parallel num_threads(2)
#pragma omp single
#pragma omp taskloop grainsize(1) shared(n_in_team)
    for (int i = 0; i < MANY; i++)
#pragma omp atomic
        n_in_team++;
    return n == MANY && n_in_team == MANY;
}

static bool kinds(void) {
    return kinds_of_tasks(5) && many_in_a_loop();
}

/* Does the thread sleep? */
static bool sleeps(long tid) {
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%ld/stat", tid);
    FILE *f = fopen(path, "r");
    const char *end = f != NULL && fgets(line, sizeof line, f) != NULL ? strrchr(line, ')') : NULL;
    if (f != NULL)
        fclose(f);
    return end != NULL && strncmp(end, ") S", 3) == 0;
}

/* In each round one thread sleeps at a barrier until it gets a task, and the other one then sleeps until that is over.
 */
static bool task_waits(void) {
    enum { N_WAITS = 5 };
    int n = 0;
    for (int round = 0; round < N_WAITS; round++) {
        long tids[2] = {0};
#pragma omp parallel num_threads(2)
        {
            const long tid = syscall(SYS_gettid);
            __atomic_store_n(&tids[omp_get_thread_num()], tid, __ATOMIC_RELEASE);
#pragma omp single
            {
                const long *other = &tids[1 - omp_get_thread_num()];
                int begun = 0;
                for (int n_asleep = 0; n_asleep < 5; usleep(100)) /* and not in a short sleep of the recorder's */
                    n_asleep = sleeps(__atomic_load_n(other, __ATOMIC_ACQUIRE)) ? n_asleep + 1 : 0;
#pragma omp task shared(begun, n)
                {
                    __atomic_store_n(&begun, 1, __ATOMIC_RELEASE);
                    while (!sleeps(tid))
                        usleep(100);
                    n++;
                }
                while (__atomic_load_n(&begun, __ATOMIC_ACQUIRE) == 0)
                    __asm__ volatile("" : : : "memory");
#pragma omp taskwait
            }
        }
    }
    return n == N_WAITS;
}

/* Undeferred tasks in a task that a thread runs while it waits. It does not wait in between. */
static bool tasks_at_once(void) {
    int n = 0;
    for (int round = 0; round < N_ROUNDS; round++)
#pragma omp parallel num_threads(2)
#pragma omp single
        for (int i = 0; i < 4; i++)
#pragma omp task shared(n)
            for (int k = 0; k < 20; k++) {
                work(5);
#pragma omp task if (k < 0) shared(n)
#pragma omp atomic
                n++;
            }
    return n == N_ROUNDS * 80;
}

static void add_since(uint64_t *sum_ns, uint64_t begin_ns) {
    __atomic_fetch_add(sum_ns, now_ns() - begin_ns, __ATOMIC_RELAXED);
}

/* Tasks within each other, which work around the others' time. How long: on standard error. */
static bool task_times(void) {
    uint64_t inner_ns = 0, outer_ns = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    for (int i = 0; i < 6; i++)
#pragma omp task shared(inner_ns, outer_ns)
    {
        uint64_t begin_ns = now_ns();
        work(2000);
        for (int k = 0; k < 5; k++)
#pragma omp task shared(inner_ns)
        {
            uint64_t inner_begin_ns = now_ns();
            work(1000);
            add_since(&inner_ns, inner_begin_ns);
        }
        add_since(&outer_ns, begin_ns);
#pragma omp taskwait
        begin_ns = now_ns();
        work(2000);
        add_since(&outer_ns, begin_ns);
    }
    fprintf(stderr, "%ju %ju\n", (uintmax_t)outer_ns, (uintmax_t)inner_ns);
    return inner_ns != 0;
}

/* Tasks that have one task each: deeper than there is room for if each takes a good deal more of the stack. */
static void descend(int depth, bool at_once, bool waits, int *n) {
    if (depth == 0)
        return;
#pragma omp task if (!at_once) firstprivate(depth, at_once, waits)
    {
#pragma omp atomic
        ++*n;
        descend(depth - 1, at_once, waits, n);
    }
    if (waits) {
#pragma omp taskwait
    }
}

static bool deep(void) {
    enum { DEPTH = 10000 };
    int n = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
        descend(DEPTH, true, false, &n);
        descend(DEPTH, true, true, &n);
        descend(DEPTH, false, true, &n);
    }
    return n == 3 * DEPTH;
}

/* Regions of one thread wait for no other. */
static bool alone(void) {
    int n = 0;
    for (int i = 0; i < N_ROUNDS; i++)
#pragma omp parallel num_threads(1)
    {
#pragma omp barrier
#pragma omp critical
        n++;
    }
    return n == N_ROUNDS;
}

/* The compiler may call the run-time library at two places for one barrier. */
extern void GOMP_barrier(void);
static bool doubled(void) {
    int n = 0;
#pragma omp parallel num_threads(2)
    for (int round = 0; round < N_ROUNDS; round++) {
        if (omp_get_thread_num() == round % 2) {
            GOMP_barrier();
#pragma omp atomic
            n += 2;
        } else {
            __asm__ volatile("" : : : "memory"); /* or the compiler makes one call of the two */
            GOMP_barrier();
            __asm__ volatile("" : : : "memory");
#pragma omp atomic
            n++;
        }
    }
    return n == 3 * N_ROUNDS;
}

static void *team(void *n) {
    for (int round = 0; round < N_ROUNDS; round++)
#pragma omp parallel num_threads(2)
    {
#pragma omp barrier
#pragma omp atomic
        ++*(int *)n;
    }
    return NULL;
}

/* Several threads have teams in the same region at the same time. */
static bool threads(void) {
    pthread_t all[3];
    int n[3] = {0};
    for (int i = 0; i < 3; i++)
        if (pthread_create(&all[i], NULL, team, &n[i]) != 0)
            return false;
    for (int i = 0; i < 3; i++)
        pthread_join(all[i], NULL);
    return n[0] == 2 * N_ROUNDS && n[1] == n[0] && n[2] == n[0];
}

/* A child that a region has forked, which ends, and one that goes on with regions of its own. */
static bool forks(void) {
    int n_right = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
        int status = 1;
        pid_t child = fork();
        if (child == 0)
            _exit(3);
        if (waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3)
            n_right++;
    }
    return n_right == 1 && once();
}

/* What dlerror says, before the first region of the process and behind it. */
static bool errors(void) {
    static char name[3000] = "./no-such-library", before[4000];
    memset(name + strlen(name), 'x', sizeof name - strlen(name) - 1);
    bool right = dlerror() == NULL && dlopen(name, RTLD_NOW) == NULL;
    const char *said = dlerror();
    right = right && said != NULL && strlen(said) >= sizeof name && strlen(said) < sizeof before;
    strcpy(before, right ? said : "");
    right = right && dlopen(name, RTLD_NOW) == NULL;
    once();
    said = dlerror();
    right = right && said != NULL && strcmp(said, before) == 0 && dlerror() == NULL;
    regions(); /* other functions of the run-time library, and no error of the program's */
    return right && dlerror() == NULL;
}

/* A call that succeeds ends the error, also if the first region of the process comes before it. */
static bool errors_end(void) {
    bool right = dlopen("no-such-library", RTLD_NOW) == NULL;
    once();
    return right && dlopen(NULL, RTLD_NOW) != NULL && dlerror() == NULL;
}

/* A worker ends the process in a region. */
static bool ends(void) {
    once();
#pragma omp parallel num_threads(N_THREADS)
    if (omp_get_thread_num() == 1) {
        puts("OK");
        fflush(stdout);
        _exit(0);
    }
    return false;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        bool (*run)(void);
    } all[] = {{"regions", regions},
               {"sizes", sizes},
               {"nested", nested},
               {"once", once},
               {"tasks", tasks},
               {"kinds", kinds},
               {"detached", detached},
               {"task_waits", task_waits},
               {"tasks_at_once", tasks_at_once},
               {"task_times", task_times},
               {"deep", deep},
               {"alone", alone},
               {"doubled", doubled},
               {"handlers", handlers},
               {"in_tasks", in_tasks},
               {"threads", threads},
               {"forks", forks},
               {"ends", ends},
               {"errors", errors},
               {"errors_end", errors_end},
               {"nest", nest},
               {"ordered", ordered},
               {"reductions", reductions},
               {"many", many},
               {"ordered_teams", ordered_teams},
               {"reductions_in_tasks", reductions_in_tasks}};
    omp_set_dynamic(0);
    for (size_t i = 0; argc == 2 && i < sizeof all / sizeof *all; i++)
        if (strcmp(argv[1], all[i].name) == 0) {
            bool right = all[i].run();
            puts(right ? "OK" : "wrong");
            return right ? 0 : 1;
        }
    return 2;
}
