/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A fork waits for a thread that looks at the loaded objects, also if the whole process is stopped meanwhile for longer
 * than the fork has patience: as on a machine that stands still. The clock goes on then, and the thread does not.
 * It does not wait for ever: the program may fork in its own call-back of dl_iterate_phdr, for which the thread waits.
 */
#include "topic.h"

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "lib/asleep.h"

#define STOPPED_MS 3600 /* the longest patience that is measured by a clock is less */
#define LOOKS_ON_MS 300

static atomic_int long_look, looks; /* the next look takes long; one that does has begun */
static pid_t forks, *stopped;
static atomic_int *goes_on;

static int look_long(struct dl_phdr_info *info, size_t size, void *argument) {
    struct {
        int (*callback)(struct dl_phdr_info *, size_t, void *);
        void *argument;
    } *look = argument;
    int r = look->callback(info, size, look->argument);
    if (atomic_exchange(&long_look, 0) != 0) {
        atomic_store(&looks, 1);
        await_asleep(&forks);
        __atomic_store_n(stopped, getpid(), __ATOMIC_SEQ_CST);
        await(goes_on, 1);
        sleep_ms(LOOKS_ON_MS);
    }
    return r;
}

int dl_iterate_phdr(int (*callback)(struct dl_phdr_info *, size_t, void *), void *argument) {
    static int (*next)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
    struct {
        int (*callback)(struct dl_phdr_info *, size_t, void *);
        void *argument;
    } look = {callback, argument};
    if (next == NULL)
        *(void **)(void *)&next = dlsym(RTLD_NEXT, "dl_iterate_phdr");
    return next(look_long, &look);
}

static void stop_it(void *unused) {
    (void)unused;
    pid_t process;
    while ((process = __atomic_load_n(stopped, __ATOMIC_SEQ_CST)) == 0)
        sleep_ms(1);
    SYS(kill(process, SIGSTOP));
    sleep_ms(STOPPED_MS);
    atomic_store(goes_on, 1);
    SYS(kill(process, SIGCONT));
}
static void *nothing(void *unused) {
    return unused;
}
static void *create_one(void *looks_long) {
    atomic_store(&long_look, looks_long != NULL);
    thread_join(thread_start(nothing, NULL));
    return NULL;
}
static void do_nothing_in_child(void *unused) {
    (void)unused;
}
static void create_one_in_child(void *unused) {
    create_one(unused); /* which never ends if the lock is held */
}
TEST(fork_stopped__waits_for_a_look, "the process is stopped for 3.6 s in a fork that waits for a look") {
    stopped = shared_memory(sizeof *stopped + sizeof *goes_on);
    goes_on = (atomic_int *)(stopped + 1);
    pid_t other = child_start(stop_it, NULL);
    pthread_t thread = thread_start(create_one, &long_look);
    await(&looks, 1);
    asleep_from_here(&forks);
    run_in_child(create_one_in_child, NULL);
    thread_join(thread);
    child_join(other);
}

/* ---- in a call-back ---- */
static atomic_int n_ticks;
static void tick(int signal) {
    (void)signal;
    atomic_fetch_add(&n_ticks, 1);
}
static pid_t looker;
static void *look_meanwhile(void *unused) {
    asleep_from_here(&looker);
    return create_one(unused);
}
static int fork_here(struct dl_phdr_info *info, size_t size, void *argument) {
    (void)info;
    (void)size;
    *(pthread_t *)argument = thread_start(look_meanwhile, NULL);
    await_asleep(&looker);
    child_join(child_start(do_nothing_in_child, NULL));
    return 1;
}
TEST(fork_stopped__in_a_call_back, "a fork for which a look waits, with a timer that is quicker than its patience") {
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 20000}, {0, 20000}}, never = {{0, 0}, {0, 0}};
    pthread_t thread;
    SYS(sigaction(SIGALRM, &action, NULL));
    SYS(setitimer(ITIMER_REAL, &often, NULL));
    CHECK_INT(dl_iterate_phdr(fork_here, &thread), 1);
    SYS(setitimer(ITIMER_REAL, &never, NULL));
    thread_join(thread);
    CHECK(atomic_load(&n_ticks) > 0);
}
