/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Scenes of programs with a pinned main thread: they call pthread_exit or install signal handlers. As
 * subject.c otherwise.
 */
#include "scene.h"

#include <fcntl.h>
#include <mqueue.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>

#define ROUNDS 300

/* ---- threads that have moved end, are joined by others that have, and the last one ends the process ---- */
static void *end_by_exit(void *number) {
    for (int i = 0; i < 20; i++)
        meet();
    if ((long)number % 2 == 0)
        pthread_exit(number);
    return number;
}

static void ends(void) {
    for (int i = 0; i < 20; i++)
        run(N, end_by_exit);
}

static void *end_last(void *main_thread) {
    thread_join(*(pthread_t *)main_thread);
    for (int i = 0; i < 20; i++)
        meet();
    return NULL;
}

static void main_ends_first(void) {
    static pthread_t self;
    self = pthread_self();
    OK(pthread_barrier_init(&barrier, NULL, 1));
    OK(pthread_detach(thread_start(end_last, &self)));
    pthread_exit(NULL);
}

/* ---- a handler wakes, and forks, wherever it strikes: the main thread has ended, so on carriers mostly ---- */
#define POSTS 2000

static sem_t posted;
static atomic_int n_posted, n_taken;
static pthread_t main_self;

static void post(int signo) {
    (void)signo;
    int saved = errno;
    if (atomic_fetch_add(&n_posted, 1) < POSTS)
        OK_ERRNO(sem_post(&posted));
    errno = saved;
}

static void *take(void *number) {
    bool odd = (long)number % 2 != 0;
    while (atomic_fetch_add(&n_taken, 1) < POSTS) {
        OK_ERRNO(sem_wait(&posted));
        for (int i = 0; odd && i < 50; i++)
            sched_yield();
    }
    return number;
}

static void *post_and_take(void *unused) {
    struct itimerval every = {{0, 150}, {0, 150}}, never = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = post, .sa_flags = SA_RESTART};
    thread_join(main_self);
    OK_ERRNO(sem_init(&posted, 0, 0));
    OK_ERRNO(sigaction(SIGALRM, &action, NULL));
    OK_ERRNO(setitimer(ITIMER_REAL, &every, NULL));
    run(N, take); /* ends only if no wake-up is lost: only the handler posts */
    OK_ERRNO(setitimer(ITIMER_REAL, &never, NULL));
    exit(0);
    return unused;
}

static void handlers_post(void) {
    main_self = pthread_self();
    OK(pthread_detach(thread_start(post_and_take, NULL)));
    pthread_exit(NULL);
}

static void fork_now(int signo) {
    (void)signo;
    int saved = errno;
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    child_join(pid);
    errno = saved;
}

static void *meet_often(void *number) {
    for (int i = 0; i < 20 * ROUNDS; i++)
        meet();
    return number;
}

static void *fork_and_meet(void *unused) {
    struct itimerval every = {{0, 5000}, {0, 5000}}, never = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = fork_now, .sa_flags = SA_RESTART};
    thread_join(main_self);
    OK_ERRNO(sigaction(SIGALRM, &action, NULL));
    OK_ERRNO(setitimer(ITIMER_REAL, &every, NULL));
    run(N, meet_often);
    OK_ERRNO(setitimer(ITIMER_REAL, &never, NULL));
    exit(0);
    return unused;
}

static void handlers_fork(void) {
    main_self = pthread_self();
    OK(pthread_detach(thread_start(fork_and_meet, NULL)));
    pthread_exit(NULL);
}

/*
 * ---- a handler forks while its thread waits in a barrier: in the child that goes on waiting, for a thread of the
 * child's. Meanwhile other threads of the child's wait by switching, which nothing but their own wake-ups may end ----
 */
static pthread_barrier_t pair;
static long forked; /* the thread that forks: the first has the first fiber, as the child's first new thread might */
static sem_t for_child;
static bool child_dozes;
static _Atomic pid_t child_of_handler;
static atomic_bool is_child;

/*
 * A thread of which some waits have ended by their deadlines spends the next one asleep in the kernel, on its fiber's
 * token. If that fiber were the one of the thread that forked, that thread would take the wake-up from the token. The
 * last deadline is beyond the test's time limit.
 */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t opens;
    bool is_open;
} gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};

static void doze_at_gate(void) {
    struct timespec soon, end = time_in_ms(CLOCK_REALTIME, 3600000);
    OK(pthread_mutex_lock(&gate.mutex));
    for (int i = 0; i < 5; i++) {
        soon = time_in_us(CLOCK_REALTIME, 100);
        while (pthread_cond_timedwait(&gate.opens, &gate.mutex, &soon) != ETIMEDOUT) {
        }
    }
    while (!gate.is_open)
        OK(pthread_cond_timedwait(&gate.opens, &gate.mutex, &end));
    OK(pthread_mutex_unlock(&gate.mutex));
}

static void open_gate(void) {
    OK(pthread_mutex_lock(&gate.mutex));
    gate.is_open = true;
    OK(pthread_cond_broadcast(&gate.opens));
    OK(pthread_mutex_unlock(&gate.mutex));
}

static void *wait_in_child(void *unused) {
    if (child_dozes)
        doze_at_gate();
    else
        OK_ERRNO(sem_wait(&for_child));
    return unused;
}

static void *meet_in_child(void *unused) {
    sleep_us(1000);
    pthread_barrier_wait(&pair);
    return unused;
}

static void fork_and_return(int signo) {
    (void)signo;
    pid_t pid = fork();
    if (pid == 0) {
        is_child = true;
        for (int i = 0; i < N; i++)
            threads[i] = thread_start(wait_in_child, NULL);
        sleep_us(20000); /* they wait by now */
        thread_start(meet_in_child, NULL);
    } else {
        child_of_handler = pid;
    }
}

static void *be_forked_in_barrier(void *number) {
    for (int i = 0; i < ROUNDS; i++)
        meet();
    if ((long)number == 1) {
        sleep_us(20000);
        OK(pthread_kill(threads[forked], SIGUSR1));
        while (child_of_handler == 0)
            sleep_us(100);
        child_join_with(child_of_handler, 7);
    }
    if ((long)number == 1 || (long)number == forked)
        pthread_barrier_wait(&pair);
    if (is_child) {
        open_gate();
        for (int i = 0; i < N; i++)
            OK_ERRNO(sem_post(&for_child));
        for (int i = 0; i < N; i++)
            thread_join(threads[i]);
        _exit(7);
    }
    return number;
}

static void fork_in_barrier(void) {
    struct sigaction action = {.sa_handler = fork_and_return, .sa_flags = SA_RESTART};
    OK_ERRNO(sigaction(SIGUSR1, &action, NULL));
    OK(pthread_barrier_init(&pair, NULL, 2));
    OK_ERRNO(sem_init(&for_child, 0, 0));
    run(N, be_forked_in_barrier);
}

static void fork_last_in_barrier(void) {
    forked = N - 1;
    fork_in_barrier();
}

static void fork_among_dozing(void) {
    child_dozes = true;
    fork_in_barrier();
}

/* ---- credentials, where all threads block all signals, and one sleeps in the kernel ---- */
static int channel[2];

static void *block_and_read(void *number) {
    char byte;
    sigset_t all;
    sigfillset(&all);
    OK(pthread_sigmask(SIG_SETMASK, &all, NULL));
    for (int i = 0; i < ROUNDS; i++)
        meet();
    if ((long)number == 0) {
        OK_ERRNO(setegid(getegid()));
        CHECK(write(channel[1], "", 1) == 1);
    } else if ((long)number == 1) {
        CHECK(read(channel[0], &byte, 1) == 1);
    }
    meet();
    return number;
}

static void ends_with_signals_blocked(void) {
    OK_ERRNO(pipe(channel));
    run(N, block_and_read);
}

/* ---- a signal by number ends what can be interrupted, in a program that is not known to send any ---- */
static sem_t nothing;
static pthread_t receiver;
static atomic_long receiver_tid;
static atomic_int n_received;
static atomic_bool interrupted;

static void receive(int signal) {
    (void)signal;
    CHECK(pthread_equal(pthread_self(), receiver));
    atomic_fetch_add(&n_received, 1);
}

static void *be_interrupted(void *number) {
    if ((long)number == 1) {
        receiver = pthread_self();
        receiver_tid = proc_kernel_thread();
    }
    for (int i = 0; i < ROUNDS; i++)
        meet();
    if ((long)number == 1) {
        CHECK(sem_wait(&nothing) == -1 && errno == EINTR && n_received > 0);
        interrupted = true;
    }
    if ((long)number == 0) {
        while (!interrupted) { /* one that comes before it waits interrupts nothing: until one has */
            sleep_ms(50);
            CHECK(syscall(SYS_tgkill, getpid(), (int)receiver_tid, SIGUSR1) == 0 || interrupted);
        }
    }
    return number;
}

static void interrupts_by_number(void) {
    OK_ERRNO(sem_init(&nothing, 0, 0));
    OK_ERRNO(sigaction(SIGUSR1, &(struct sigaction){.sa_handler = receive}, NULL));
    run(N, be_interrupted);
}

/*
 * ---- main has the kernel's turn to wait for, while two fibers switch to each other and one of them yields ----
 * Under a real-time policy, on one core (scenes.sh), no other thread gives it that. One of them begins with one more
 * yield: each then leaves and comes in the other order of the carrier's turns.
 */
static pthread_mutex_t turn_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_cond = PTHREAD_COND_INITIALIZER;
static int turns; /* given, protected by turn_mutex */
static atomic_bool turns_over;

static void *take_turns(void *unused) {
    OK(pthread_mutex_lock(&turn_mutex));
    for (int taken = 0; !turns_over; taken = turns)
        while (turns == taken && !turns_over)
            OK(pthread_cond_wait(&turn_cond, &turn_mutex));
    OK(pthread_mutex_unlock(&turn_mutex));
    return unused;
}

static void *give_turns(void *yields_first) {
    if (yields_first != NULL)
        sched_yield();
    do {
        OK(pthread_mutex_lock(&turn_mutex));
        turns++;
        OK(pthread_cond_signal(&turn_cond));
        OK(pthread_mutex_unlock(&turn_mutex));
        sched_yield();
    } while (!turns_over);
    return NULL;
}

static void main_gets_a_turn(bool yields_first) {
    pthread_t taker = thread_start(take_turns, NULL);
    pthread_t giver = thread_start(give_turns, yields_first ? &turns : NULL);
    sleep_ms(50);
    turns_over = true;
    thread_join(giver);
    OK(pthread_mutex_lock(&turn_mutex));
    OK(pthread_cond_broadcast(&turn_cond));
    OK(pthread_mutex_unlock(&turn_mutex));
    thread_join(taker);
    printf("%d turns\n", turns);
}

static void main_gets_even_turns(void) {
    main_gets_a_turn(false);
}

static void main_gets_odd_turns(void) {
    main_gets_a_turn(true);
}

/*
 * ---- the same, while two fibers hand a turn to each other and never yield: natively the kernel gives main its turn at
 * each wait ----
 */
static void *hand_turns_on(void *number) {
    int own = (int)(long)number;
    OK(pthread_mutex_lock(&turn_mutex));
    while (!turns_over) {
        turns += turns % 2 == own;
        OK(pthread_cond_signal(&turn_cond));
        while (turns % 2 != own && !turns_over)
            OK(pthread_cond_wait(&turn_cond, &turn_mutex));
    }
    OK(pthread_cond_signal(&turn_cond));
    OK(pthread_mutex_unlock(&turn_mutex));
    return NULL;
}

static void main_gets_waits(void) {
    pthread_t first = thread_start(hand_turns_on, (void *)0L), second = thread_start(hand_turns_on, (void *)1L);
    sleep_ms(50);
    turns_over = true;
    thread_join(first);
    thread_join(second);
    printf("%d turns\n", turns);
}

/* ---- main computes for a millisecond at a time, on the core of fibers that yield until it is done: a yield is a whole
 * turn ---- */
#define STEPS 100
#define STEP_OUTSIDE                                                                                                   \
    10 /* before it another process gives all threads a real-time policy, if the environment says so                   \
        */

static atomic_int step;

static void *yield_until_each_step(void *unused) {
    for (int i = 1; i <= STEPS; i++) {
        while (step < i)
            sched_yield();
        OK_ERRNO(sem_post(&nothing));
    }
    return unused;
}

static double cpu_ms(void) {
    struct timespec now;
    OK_ERRNO(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now));
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* The C library's functions for policies are not called: the library must ask the kernel. */
static void set_policy_from_outside(void) {
    char command[64];
    snprintf(command, sizeof command, "chrt -a -f -p 1 %ld", (long)getpid());
    CHECK_INT(system(command), 0);
}

static void main_gets_long_turns(void) {
    OK_ERRNO(sem_init(&nothing, 0, 0));
    for (int i = 0; i < N; i++)
        threads[i] = thread_start(yield_until_each_step, NULL);
    for (int i = 1; i <= STEPS; i++) {
        if (i == STEP_OUTSIDE && getenv("POLICY_FROM_OUTSIDE") != NULL)
            set_policy_from_outside();
        double begin = cpu_ms();
        while (cpu_ms() < begin + 1)
            ;
        step = i;
        for (int k = 0; k < N; k++)
            OK_ERRNO(sem_wait(&nothing));
    }
    for (int i = 0; i < N; i++)
        thread_join(threads[i]);
}

/*
 * ---- a notification of a message queue outlives the beginning of switching, whichever of the two comes first ----
 * The notification's signal is pending, blocked, as soon as the message has been sent. Where the system grants no queue
 * there is nothing to see.
 */
static void *meet_and_nap(void *argument) {
    for (int i = 0; i < ROUNDS; i++)
        meet();
    sleep_ms(20); /* the monitor has begun by now, and closes what descriptors it has been given */
    for (int i = 0; i < ROUNDS; i++)
        meet();
    return argument;
}

static void be_notified(bool by_number, bool first) {
    const struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
    struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 1};
    char name[64];
    sigset_t blocked;
    snprintf(name, sizeof name, "/switch-notified-%ld", (long)getpid());
    mqd_t queue = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, &attributes);
    if (queue == (mqd_t)-1)
        fprintf(stderr, "no message queue: %s\n", strerror(errno));
    else
        OK_ERRNO(mq_unlink(name));
    OK_ERRNO(sigemptyset(&blocked));
    OK_ERRNO(sigaddset(&blocked, SIGUSR2));
    OK(pthread_sigmask(SIG_BLOCK, &blocked, NULL));
    if (!first)
        run(N, meet_and_nap);
    if (queue != (mqd_t)-1 && by_number)
        CHECK(syscall(SYS_mq_notify, queue, &event) == 0);
    else if (queue != (mqd_t)-1)
        OK_ERRNO(mq_notify(queue, &event));
    run(N, meet_and_nap);
    if (queue == (mqd_t)-1)
        return;
    OK_ERRNO(mq_send(queue, "", 1, 0));
    OK_ERRNO(sigpending(&blocked));
    CHECK(sigismember(&blocked, SIGUSR2) == 1);
}

static void notified(void) {
    be_notified(false, true);
}

static void notified_late(void) {
    be_notified(false, false);
}

static void notified_by_number(void) {
    be_notified(true, true);
}

int main(int argc, char **argv) {
    static const struct scene scenes[] = {
        {"ends", ends},
        {"main-ends-first", main_ends_first},
        {"fork-in-barrier", fork_in_barrier},
        {"fork-last-in-barrier", fork_last_in_barrier},
        {"fork-among-dozing", fork_among_dozing},
        {"handlers-post", handlers_post},
        {"handlers-fork", handlers_fork},
        {"ends-with-signals-blocked", ends_with_signals_blocked},
        {"interrupts-by-number", interrupts_by_number},
        {"notified", notified},
        {"notified-late", notified_late},
        {"notified-by-number", notified_by_number},
        {"main-gets-even-turns", main_gets_even_turns},
        {"main-gets-odd-turns", main_gets_odd_turns},
        {"main-gets-waits", main_gets_waits},
        {"main-gets-long-turns", main_gets_long_turns},
        {NULL, NULL},
    };
    return play(argc, argv, scenes);
}
