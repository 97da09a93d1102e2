/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What keeps the main thread at home is judged when it happens. It comes home when the program installs a signal
 * handler: the kernel gives a signal to the process to the main thread first, and interrupts what that waits for. And
 * it does not leave home if it is bound to other CPUs than the process began with. One scene per run; a hang is ended
 * by the test's time limit.
 */
#include "scene.h"

#include <dlfcn.h>
#include <limits.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/syscall.h>

#define ROUNDS 100
#define BLOCK_MS 50 /* until a thread has come as far as to wait */

static pthread_t main_thread;
static atomic_int n_handled, n_at_home;
static sem_t sem;

static void count_it(int signal) {
    (void)signal;
    atomic_fetch_add(&n_at_home, pthread_equal(pthread_self(), main_thread) && proc_kernel_thread() == getpid());
    atomic_fetch_add(&n_handled, 1);
}

static void handle(void) {
    const struct sigaction action = {.sa_handler = count_it};
    SYS(sigaction(SIGUSR1, &action, NULL));
}

/* By number. How a handler returns is taken from what the C library has said to the kernel of an ignored signal. */
static void handle_by_number(void) {
    struct {
        void (*handler)(int);
        unsigned long more[8];
    } action;
    enum { MASK_BYTES = 8 };
    CHECK(signal(SIGUSR2, SIG_IGN) == SIG_DFL);
    SYS(syscall(SYS_rt_sigaction, SIGUSR2, NULL, &action, (size_t)MASK_BYTES));
    action.handler = count_it;
    action.more[0] &= ~(unsigned long)SA_RESTART;
    SYS(syscall(SYS_rt_sigaction, SIGUSR1, &action, NULL, (size_t)MASK_BYTES));
}

/* By code that is bound to the C library's own functions. */
static void handle_in_plugin(void) {
    int (*handle_by)(void (*handler)(int));
    void *plugin = dlopen(getenv("PLUGIN_HANDLES"), RTLD_NOW | RTLD_DEEPBIND);
    CHECK(plugin != NULL);
    *(void **)(void *)&handle_by = dlsym(plugin, "plugin_handle");
    CHECK(handle_by != NULL);
    SYS(handle_by(count_it));
}

/* By a function that ends switching, unless it is insisted on. */
static void handle_by_sigset(void) {
    void (*(*set)(int, void (*)(int)))(int);
    *(void **)(void *)&set = dlsym(RTLD_DEFAULT, "sigset");
    CHECK(set != NULL);
    CHECK(set(SIGUSR1, count_it) == SIG_DFL);
}

static void (*install)(void) = handle;

static void *meet_others(void *number) {
    for (int i = 0; i < ROUNDS; i++)
        meet();
    return number;
}

/* It does not end before: a change of its mask may make it take a signal that main is about to take. */
static void *meet_and_signal(void *number) {
    meet_others(number);
    sleep_ms(BLOCK_MS);
    install();
    sleep_ms(BLOCK_MS);
    SYS(kill(getpid(), SIGUSR1));
    while (n_handled == 0)
        sleep_ms(1);
    return number;
}

/* Main meets the others. In how many rounds was it away from home? */
static int main_meets(void *(*first_other)(void *)) {
    int n_away = 0;
    main_thread = pthread_self();
    OK(pthread_barrier_init(&barrier, NULL, N + 1));
    for (long i = 0; i < N; i++)
        threads[i] = thread_start(i == 0 ? first_other : meet_others, (void *)i);
    for (int i = 0; i < ROUNDS; i++) {
        meet();
        n_away += proc_kernel_thread() != getpid();
    }
    printf("main was away from home in %d of %d rounds\n", n_away, ROUNDS);
    return n_away;
}

static void all_end(void) {
    for (int i = 0; i < N; i++)
        thread_join(threads[i]);
    OK(pthread_barrier_destroy(&barrier));
}

static void check_switched(int n_away) {
    CHECK(getenv("SWITCHED") == NULL || n_away > 0);
}

static void check_handled_at_home(void) {
    CHECK_INT(n_handled, 1);
    CHECK_INT(n_at_home, 1);
}

/* ---- another thread installs one, while main waits ---- */
static void waits(void) {
    OK_ERRNO(sem_init(&sem, 0, 0));
    check_switched(main_meets(meet_and_signal));
    CHECK_ERRNO(sem_wait(&sem), EINTR);
    check_handled_at_home();
    all_end();
}

static void waits_by_number(void) {
    install = handle_by_number;
    waits();
}

static void waits_sigset(void) {
    install = handle_by_sigset;
    waits();
}

static void waits_plugin(void) {
    install = handle_in_plugin;
    waits();
}

/* ---- while main sleeps in a call that is never restarted: it is fetched by no signal ---- */
static void *meet_and_handle(void *number) {
    meet_others(number);
    sleep_ms(BLOCK_MS);
    handle();
    return number;
}

static void nanosleeps(void) {
    check_switched(main_meets(meet_and_handle));
    SYS(nanosleep(&(struct timespec){.tv_nsec = 4 * BLOCK_MS * 1000000}, NULL));
    all_end();
}

static void polls(void) {
    check_switched(main_meets(meet_and_handle));
    SYS(poll(NULL, 0, 4 * BLOCK_MS));
    all_end();
}

static void selects(void) {
    check_switched(main_meets(meet_and_handle));
    SYS(select(0, NULL, NULL, NULL, &(struct timeval){.tv_usec = 4 * BLOCK_MS * 1000}));
    all_end();
}

static void ppolls(void) {
    check_switched(main_meets(meet_and_handle));
    SYS(ppoll(NULL, 0, &(struct timespec){.tv_nsec = 4 * BLOCK_MS * 1000000}, NULL));
    all_end();
}

static void semops(void) {
    struct sembuf down = {.sem_op = -1};
    int set = semget(IPC_PRIVATE, 1, 0600);
    SYS(set);
    check_switched(main_meets(meet_and_handle));
    CHECK_ERRNO(semtimedop(set, &down, 1, &(struct timespec){.tv_nsec = 4 * BLOCK_MS * 1000000}), EAGAIN);
    SYS(semctl(set, 0, IPC_RMID));
    all_end();
}

static int queue;

static void *meet_handle_and_send(void *number) {
    const long message[2] = {1, 0};
    meet_and_handle(number);
    sleep_ms(BLOCK_MS);
    SYS(msgsnd(queue, message, sizeof *message, 0));
    return number;
}

static void receives(void) {
    long message[2];
    queue = msgget(IPC_PRIVATE, 0600);
    SYS(queue);
    check_switched(main_meets(meet_handle_and_send));
    CHECK_INT(msgrcv(queue, message, sizeof *message, 0, 0), sizeof *message);
    SYS(msgctl(queue, IPC_RMID, NULL));
    all_end();
}

/* ---- while main computes ---- */
static void computes(void) {
    check_switched(main_meets(meet_and_signal));
    while (n_handled == 0)
        ;
    check_handled_at_home();
    all_end();
}

/* ---- main itself does, away from home ---- */
static void itself(void) {
    check_switched(main_meets(meet_others));
    handle();
    CHECK_INT(proc_kernel_thread(), getpid());
    SYS(raise(SIGUSR1));
    check_handled_at_home();
    all_end();
    CHECK_INT(main_meets(meet_others), 0);
    all_end();
}

/* ---- another thread loads code that changes its mask, before anything tells that it may ---- */
static sem_t is_loaded;

static void *meet_and_load(void *number) {
    meet_others(number);
    OK_ERRNO(sem_wait(&is_loaded));
    CHECK(dlopen(getenv("PLUGIN_MASKS"), RTLD_NOW) != NULL);
    return meet_others(number);
}

static void *meet_twice(void *number) {
    meet_others(number);
    return meet_others(number);
}

static void others_mask(void) {
    int n_away = 0;
    OK(pthread_barrier_init(&barrier, NULL, N + 1));
    OK_ERRNO(sem_init(&is_loaded, 0, 0));
    for (long i = 0; i < N; i++)
        threads[i] = thread_start(i == 0 ? meet_and_load : meet_twice, (void *)i);
    for (int i = 0; i < ROUNDS; i++) {
        meet();
        n_away += proc_kernel_thread() != getpid();
    }
    check_switched(n_away);
    OK_ERRNO(sem_post(&is_loaded));
    for (int i = 0; i < ROUNDS; i++) { /* in the first one the plug-in is loaded */
        meet();
        CHECK_INT(proc_kernel_thread(), getpid());
    }
    all_end();
}

/* ---- what Intel's OpenMP library has, and never calls; any other library is taken at its word ---- */
static int main_meets_beside(const char *plugin) {
    CHECK(dlopen(getenv(plugin), RTLD_NOW) != NULL);
    int n_away = main_meets(meet_others);
    all_end();
    return n_away;
}

static void intels(void) {
    check_switched(main_meets_beside("PLUGIN_INTEL"));
}

static void may_mask(void) {
    CHECK_INT(main_meets_beside("PLUGIN_MAY_MASK"), 0);
}

/* ---- before there are other threads; and in a process that is forked from such a one ---- */
static void before(void) {
    handle();
    CHECK_INT(main_meets(meet_others), 0);
    all_end();
    pid_t child = fork();
    SYS(child);
    if (child == 0) {
        CHECK_INT(main_meets(meet_others), 0);
        all_end();
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_INT(status, 0);
}

/* ---- to ask for a handler, or to ignore the signal, changes nothing ---- */
static void none(void) {
    struct sigaction old;
    SYS(sigaction(SIGUSR1, NULL, &old));
    CHECK(old.sa_handler == SIG_DFL);
    CHECK(signal(SIGUSR1, SIG_IGN) == SIG_DFL);
    check_switched(main_meets(meet_others));
    CHECK(signal(SIGUSR1, SIG_DFL) == SIG_IGN);
    SYS(sigaction(SIGUSR1, NULL, &old));
    CHECK(old.sa_handler == SIG_DFL);
    all_end();
    check_switched(main_meets(meet_others));
    all_end();
}

/* ---- bound to one CPU after the other before there are threads, as LLVM's OpenMP looks at them; and back ---- */
static int bind_by_call(const cpu_set_t *cpus) {
    return sched_setaffinity(0, sizeof *cpus, cpus);
}

static int bind_by_thread(const cpu_set_t *cpus) {
    errno = pthread_setaffinity_np(pthread_self(), sizeof *cpus, cpus);
    return errno != 0 ? -1 : 0;
}

static int bind_by_syscall(const cpu_set_t *cpus) {
    return (int)syscall(SYS_sched_setaffinity, 0, sizeof *cpus, cpus);
}

static cpu_set_t all_cpus;

/* To the first and the last CPU in turn. False: there is one only. */
static bool bind_main(int (*bind)(const cpu_set_t *)) {
    cpu_set_t one;
    SYS(sched_getaffinity(0, sizeof all_cpus, &all_cpus));
    for (int i = 0, left = CPU_COUNT(&all_cpus); left > 0; i++) {
        if (!CPU_ISSET(i, &all_cpus) || --left > 1)
            continue;
        CPU_ZERO(&one);
        CPU_SET(i, &one);
        SYS(bind(&one));
    }
    return CPU_COUNT(&all_cpus) > 1;
}

static void bound_and_back_by(int (*bind)(const cpu_set_t *)) {
    bind_main(bind);
    CHECK_ERRNO(bind(&(cpu_set_t){{0}}), EINVAL);
    SYS(bind(&all_cpus));
    check_switched(main_meets(meet_others));
    all_end();
}

static void bound_by(int (*bind)(const cpu_set_t *)) {
    bool others = bind_main(bind);
    CHECK_ERRNO(bind(&(cpu_set_t){{0}}), EINVAL);
    int n_away = main_meets(meet_others);
    CHECK(n_away == 0 || !others);
    SYS(bind(&all_cpus)); /* too late */
    all_end();
    n_away = main_meets(meet_others);
    CHECK(n_away == 0 || !others);
    all_end();
}

static void bound_by_call(void) {
    bound_by(bind_by_call);
}

static void bound_by_thread(void) {
    bound_by(bind_by_thread);
}

static void bound_by_syscall(void) {
    bound_by(bind_by_syscall);
}

static void back_by_call(void) {
    bound_and_back_by(bind_by_call);
}

static void back_by_thread(void) {
    bound_and_back_by(bind_by_thread);
}

static void back_by_syscall(void) {
    bound_and_back_by(bind_by_syscall);
}

/*
 * ---- bound, and back, beside other threads, as Intel's build does for each thread that it creates. Bound, main has
 * that CPU wherever it waits, and so has a thread that it creates then, also after main has the others again.
 */
static atomic_int last_round; /* of the others; INT_MAX: main does not know yet */
static int n_met;             /* main's rounds */

static void *meet_until_last(void *number) {
    for (int i = 1; i <= last_round; i++)
        meet();
    return number;
}

static bool is_bound_to(const cpu_set_t *cpus) {
    cpu_set_t now;
    SYS(sched_getaffinity(0, sizeof now, &now));
    return CPU_EQUAL(&now, cpus);
}

static void *stay_bound(void *one) {
    for (int i = 1; i <= last_round; i++) {
        CHECK(is_bound_to(one));
        meet();
    }
    CHECK(proc_kernel_thread() == gettid());
    return NULL;
}

static void begin_rounds(int last) {
    n_met = 0;
    last_round = last;
    OK(pthread_barrier_init(&barrier, NULL, N + 1));
}

static bool meet_once(const cpu_set_t *cpus) {
    n_met++;
    meet();
    CHECK(is_bound_to(cpus));
    return proc_kernel_thread() != getpid();
}

static int meet_rounds(const cpu_set_t *cpus) {
    int n_away = 0;
    for (int i = 0; i < ROUNDS; i++)
        n_away += meet_once(cpus);
    return n_away;
}

/* For as long as that takes: beside others that have the CPUs the monitor keeps all threads at home for a while. */
static void meet_until_away(const cpu_set_t *cpus) {
    while (meet_rounds(cpus) == 0 && getenv("SWITCHED") != NULL)
        ;
}

static void end_rounds(const cpu_set_t *cpus) {
    last_round = n_met + 1; /* a thread that is late in this round or in the one before comes to that one */
    meet_once(cpus);
    all_end();
}

static cpu_set_t first_cpu(void) {
    cpu_set_t one;
    SYS(sched_getaffinity(0, sizeof all_cpus, &all_cpus));
    CPU_ZERO(&one);
    for (int i = 0; CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all_cpus))
            CPU_SET(i, &one);
    return one;
}

static void back_beside_by(int (*bind)(const cpu_set_t *)) {
    cpu_set_t one = first_cpu();
    begin_rounds(INT_MAX);
    for (long i = 0; i < N; i++)
        threads[i] = thread_start(meet_until_last, (void *)i);
    meet_until_away(&all_cpus);
    SYS(bind(&one));
    CHECK_ERRNO(bind(&(cpu_set_t){{0}}), EINVAL);
    CHECK(meet_rounds(&one) == 0 || CPU_EQUAL(&one, &all_cpus));
    SYS(bind(&all_cpus));
    meet_until_away(&all_cpus);
    end_rounds(&all_cpus);

    begin_rounds(INT_MAX);
    SYS(bind(&one));
    for (int i = 0; i < N; i++)
        threads[i] = thread_start(stay_bound, &one);
    SYS(bind(&all_cpus));
    meet_until_away(&all_cpus);
    end_rounds(&all_cpus);
}

/* A child of vfork that has the other CPUs again: main has not, nor have the threads that it creates. */
static void back_in_vforked(void) {
    cpu_set_t one = first_cpu();
    OK(pthread_barrier_init(&barrier, NULL, 1));
    thread_join(thread_start(meet_others, NULL));
    OK(pthread_barrier_destroy(&barrier));
    SYS(bind_by_call(&one));
    pid_t child = vfork();
    if (child == 0)
        _exit(bind_by_call(&all_cpus) != 0);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    begin_rounds(ROUNDS);
    for (int i = 0; i < N; i++)
        threads[i] = thread_start(stay_bound, &one);
    CHECK(meet_rounds(&one) == 0 || CPU_EQUAL(&one, &all_cpus));
    all_end();
}

static void back_beside_by_call(void) {
    back_beside_by(bind_by_call);
}

static void back_beside_by_thread(void) {
    back_beside_by(bind_by_thread);
}

static void back_beside_by_syscall(void) {
    back_beside_by(bind_by_syscall);
}

int main(int argc, char **argv) {
    static const struct scene scenes[] = {
        {"handler-while-main-waits", waits},
        {"handler-by-number-while-main-waits", waits_by_number},
        {"handler-of-plugin-while-main-waits", waits_plugin},
        {"ends-by-sigset-while-main-waits", waits_sigset},
        {"handler-while-main-nanosleeps", nanosleeps},
        {"handler-while-main-polls", polls},
        {"handler-while-main-selects", selects},
        {"handler-while-main-ppolls", ppolls},
        {"handler-while-main-semops", semops},
        {"handler-while-main-receives", receives},
        {"handler-while-main-computes", computes},
        {"handler-of-main-itself", itself},
        {"mask-of-plugin", others_mask},
        {"intels-library", intels},
        {"other-library-with-masks", may_mask},
        {"handler-before-threads", before},
        {"handler-none", none},
        {"bound-by-call", bound_by_call},
        {"bound-by-thread", bound_by_thread},
        {"bound-by-syscall", bound_by_syscall},
        {"bound-and-back-by-call", back_by_call},
        {"bound-and-back-by-thread", back_by_thread},
        {"bound-and-back-by-syscall", back_by_syscall},
        {"bound-and-back-beside-by-call", back_beside_by_call},
        {"bound-and-back-beside-by-thread", back_beside_by_thread},
        {"bound-and-back-beside-by-syscall", back_beside_by_syscall},
        {"bound-and-back-in-vforked", back_in_vforked},
        {NULL, NULL},
    };
    return play(argc, argv, scenes);
}
