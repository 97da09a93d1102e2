/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Kernel ids of threads, in a program that waits by switching: a thread reads its own wherever it runs, goes on
 * switching, and what other threads do with the id happens to it. One scene per run; a hang is ended by the test's time
 * limit.
 */
#include "scene.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define ROUNDS 200
#define TIMES 20
#define IOPRIO_OF_THREAD 1
#define IOPRIO_IDLE (3 << 13)

static atomic_int n_moved, n_handled, n_wrong;
static int n_before; /* handled before this target began */
static atomic_bool over;

static void some_moved(void) {
    printf("%d threads ran on another's kernel thread\n", n_moved);
    CHECK(getenv("SWITCHED") == NULL || n_moved > 0);
}

static bool is_away(void) {
    return proc_kernel_thread() != gettid();
}

/* ---- the id is its own all the time, and to ask for it keeps no thread at home ---- */
static void *ask(void *number) {
    long first = proc_kernel_thread();
    bool moved = false;
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_INT(gettid(), first);
        CHECK_INT(syscall(SYS_gettid), first);
        meet();
        moved = moved || proc_kernel_thread() != first;
    }
    atomic_fetch_add(&n_moved, moved);
    return number;
}

static void stable(void) {
    run(N, ask);
    some_moved();
}

/* A child is a process of its own, and has another id. */
static void *fork_and_ask(void *number) {
    for (int i = 0; i < 10; i++) {
        meet();
        long mine = gettid();
        pid_t child = fork();
        SYS(child);
        if (child == 0)
            _exit(gettid() == getpid() && syscall(SYS_gettid) == getpid() && gettid() != mine ? 0 : 1);
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK_INT(status, 0);
        CHECK_INT(gettid(), mine);
        child = vfork();
        if (child == 0)
            _exit(gettid() == getpid() && syscall(SYS_gettid) == getpid() ? 0 : 1);
        CHECK(waitpid(child, &status, 0) == child);
        CHECK_INT(status, 0);
        CHECK_INT(gettid(), mine);
    }
    return number;
}

static void forked(void) {
    run(4, fork_and_ask);
}

/*
 * ---- a target away from home, which computes or waits, and a thread that does something with its id ----
 * The target says when the kernel thread that runs it is its own again.
 */
enum where { COMPUTES, WAITS };

static enum where where;
static pthread_t target;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, busy = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static atomic_long target_id;
static atomic_bool target_is_there, enough;
static bool (*has_happened)(void); /* asked by the target, on the kernel thread that runs it */
static void (*prepare)(void), (*finish)(void);
static atomic_int n_free;

static void *be_target(void *unused) {
    bool happened = false;
    target_id = gettid();
    for (int i = 0; i < 20; i++)
        meet();
    for (int i = 0; i < 1000 && !is_away(); i++) {
        OK(pthread_mutex_lock(&busy)); /* the others keep it, so it waits by switching */
        OK(pthread_mutex_unlock(&busy));
        sched_yield();
    }
    atomic_fetch_add(&n_moved, is_away());
    if (prepare != NULL)
        prepare();
    target_is_there = true;
    OK(pthread_mutex_lock(&mutex));
    while (where == WAITS && !enough)
        OK(pthread_cond_wait(&cond, &mutex));
    OK(pthread_mutex_unlock(&mutex));
    while (!happened || !enough) /* without a wait */
        happened = happened || has_happened();
    return unused;
}

static void *keep_busy(void *unused) {
    keep_carriers_busy(&busy, &over);
    return unused;
}

static void *do_to_it(void *act) {
    long mine = proc_kernel_thread();
    bool moved = false;
    for (int i = 0; i < 20; i++)
        meet();
    while (!target_is_there)
        sched_yield();
    (*(void (**)(void))act)();
    OK(pthread_mutex_lock(&mutex));
    enough = true;
    OK(pthread_cond_broadcast(&cond));
    OK(pthread_mutex_unlock(&mutex));
    while (!over) { /* the thread that knows another's id is as free as before */
        OK(pthread_mutex_lock(&busy));
        moved = moved || proc_kernel_thread() != mine;
        OK(pthread_mutex_unlock(&busy));
        sched_yield();
    }
    atomic_fetch_add(&n_free, moved);
    return NULL;
}

static void to_target(void (*act)(void), bool (*happened)(void)) {
    void (*what)(void) = act;
    has_happened = happened;
    for (int i = 0; i < TIMES; i++) {
        pthread_t others[4];
        where = i % 2 == 0 ? COMPUTES : WAITS;
        target_is_there = enough = over = false;
        n_before = n_handled;
        OK(pthread_barrier_init(&barrier, NULL, 6));
        OK(pthread_create(&target, NULL, be_target, NULL));
        for (int k = 0; k < 4; k++)
            OK(pthread_create(&others[k], NULL, keep_busy, NULL));
        pthread_t actor = thread_start(do_to_it, (void *)&what);
        thread_join(target);
        over = true;
        for (int k = 0; k < 4; k++)
            thread_join(others[k]);
        thread_join(actor);
        if (finish != NULL)
            finish();
        OK(pthread_barrier_destroy(&barrier));
    }
    some_moved();
    CHECK(getenv("SWITCHED") == NULL || n_free > 0);
}

/* ---- CPUs ---- */
static char one_cpu[256];
static cpu_set_t one;

static bool is_on_one(void) {
    char cpus[256];
    CHECK(proc_status("thread-self", "Cpus_allowed_list:", cpus, sizeof cpus));
    return strcmp(cpus, one_cpu) == 0;
}

static void learn_one(void) {
    cpu_set_t all;
    int cpu = 0;
    OK_ERRNO(sched_getaffinity(0, sizeof all, &all));
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    snprintf(one_cpu, sizeof one_cpu, "%d", cpu);
}

static void set_cpus(void) {
    OK_ERRNO(sched_setaffinity((pid_t)target_id, sizeof one, &one));
}

static void set_cpus_by_syscall(void) {
    OK_ERRNO(syscall(SYS_sched_setaffinity, target_id, sizeof one, &one));
}

static void cpus(void) {
    learn_one();
    to_target(set_cpus, is_on_one);
    to_target(set_cpus_by_syscall, is_on_one);
}

/* ---- niceness, input and output ---- */
static bool is_nice(void) {
    return getpriority(PRIO_PROCESS, 0) == 19;
}

static void make_nice(void) {
    OK_ERRNO(syscall(SYS_setpriority, PRIO_PROCESS, target_id, 19));
}

static bool is_patient(void) {
    return !is_away() && syscall(SYS_ioprio_get, IOPRIO_OF_THREAD, 0) == IOPRIO_IDLE;
}

static void make_patient(void) {
    OK_ERRNO(syscall(SYS_ioprio_set, IOPRIO_OF_THREAD, target_id, IOPRIO_IDLE));
}

static void priorities(void) {
    to_target(make_nice, is_nice);
    to_target(make_patient, is_patient);
}

/* ---- signals ---- */
static void note(int signal) {
    (void)signal;
    if (!pthread_equal(pthread_self(), target) || gettid() != target_id)
        atomic_fetch_add(&n_wrong, 1);
    atomic_fetch_add(&n_handled, 1);
}

static bool is_handled(void) {
    return n_handled > n_before;
}

static void send_tkill(void) {
    OK_ERRNO(syscall(SYS_tkill, target_id, SIGUSR1));
}

static void send_tgkill(void) {
    OK_ERRNO(tgkill(getpid(), (pid_t)target_id, SIGUSR1));
}

static void send_queue(void) {
    siginfo_t info = {.si_signo = SIGUSR1, .si_code = SI_QUEUE};
    OK_ERRNO(syscall(SYS_rt_tgsigqueueinfo, getpid(), target_id, SIGUSR1, &info));
}

static void send_by_timer(void) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    struct itimerspec soon = {.it_value = {0, 100000}};
    timer_t timer;
    event._sigev_un._tid = (pid_t)target_id;
    OK_ERRNO(timer_create(CLOCK_MONOTONIC, &event, &timer));
    OK_ERRNO(timer_settime(timer, 0, &soon, NULL));
    while (!is_handled())
        sched_yield();
    OK_ERRNO(timer_delete(timer));
}

static void send_by_timer_of_the_kernel(void) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    struct itimerspec soon = {.it_value = {0, 100000}};
    int timer;
    event._sigev_un._tid = (pid_t)target_id;
    OK_ERRNO(syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer));
    OK_ERRNO(syscall(SYS_timer_settime, timer, 0, &soon, NULL));
    while (!is_handled())
        sched_yield();
    OK_ERRNO(syscall(SYS_timer_delete, timer));
}

static void signals(void) {
    static void (*const ways[])(void) = {send_tkill, send_tgkill, send_queue, send_by_timer,
                                         send_by_timer_of_the_kernel};
    OK_ERRNO(sigaction(SIGUSR1, &(struct sigaction){.sa_handler = note, .sa_flags = SA_RESTART}, NULL));
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        to_target(ways[i], is_handled);
    CHECK_INT(n_wrong, 0);
}

/* ---- a file that stands for the thread ---- */
static bool is_home(void) {
    return !is_away();
}

static void open_it(void) {
    int file = (int)syscall(SYS_pidfd_open, target_id, O_EXCL);
    if (file < 0 && (errno == EINVAL || errno == ENOENT))
        return; /* the kernel opens no thread's */
    SYS(file);
    close(file);
}

static bool is_home_or_cannot(void) {
    int file = (int)syscall(SYS_pidfd_open, getpid(), O_EXCL);
    bool cannot = file < 0;
    close(file);
    return cannot || is_home();
}

static void files(void) {
    to_target(open_it, is_home_or_cannot);
    CHECK(getenv("SWITCHED") == NULL || n_moved > 1); /* the first one's file for main keeps no later thread at home */
}

/* ---- the owner of a futex with priority inheritance ---- */
static uint32_t pi;
static pthread_t waiter;

/* Without a system call, as a lock function does that no thread is in the way of. */
static void take_it(void) {
    CHECK_INT(__atomic_exchange_n(&pi, (uint32_t)gettid(), __ATOMIC_ACQUIRE), 0);
}

static void *wait_for_owner(void *unused) {
    OK_ERRNO(syscall(SYS_futex, &pi, FUTEX_LOCK_PI_PRIVATE, 0, NULL));
    OK_ERRNO(syscall(SYS_futex, &pi, FUTEX_UNLOCK_PI_PRIVATE));
    return unused;
}

static void want_it(void) {
    waiter = thread_start(wait_for_owner, NULL);
}

static bool is_given_at_home(void) {
    if (is_away())
        return false;
    OK_ERRNO(syscall(SYS_futex, &pi, FUTEX_UNLOCK_PI_PRIVATE));
    return true;
}

static void wait_for_waiter(void) {
    thread_join(waiter);
}

static void inheritance(void) {
    prepare = take_it;
    finish = wait_for_waiter;
    to_target(want_it, is_given_at_home);
}

int main(int argc, char **argv) {
    static const struct scene scenes[] = {
        {"tid-stable", stable},
        {"tid-forked", forked},
        {"tid-cpus", cpus},
        {"tid-priorities", priorities},
        {"tid-signals", signals},
        {"tid-files", files},
        {"tid-inheritance", inheritance},
        {NULL, NULL},
    };
    return play(argc, argv, scenes);
}
