/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls that wait for the outside, where the recorder may not look or does not come to the end of what it does. What
 * it does is the argument. Knows nothing of Subutai.
 */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/checks.h"
#include "lib/clock.h"
#include "lib/proc.h"

enum { WAIT_US = 5000, N_JUMPS = 200, JUMP_US = 1000, N_POSTS = 2000, POST_US = 100, N_AFTERWARDS = 100 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void touch(void) {
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_unlock(&mutex));
}

static void touch_and_wait(void) {
    for (int i = 0; i < 3; i++) {
        touch();
        usleep(WAIT_US);
    }
}

/* ---- what a program may forbid itself ---- */

/* From now on getrusage ends the process. `flags` that the kernel does not know: it stays as it is. */
static long forbid(unsigned flags) {
    struct sock_filter rules[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrusage, 0, 1),
                                  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                                  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    OK_ERRNO(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    return flags == 0 ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)
                      : syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

static void filtered(void) {
    touch_and_wait();
    CHECK_INT(forbid(0), 0);
    touch_and_wait();
    pid_t child = fork();
    if (child == 0) {
        touch_and_wait();
        _exit(0);
    }
    int status = -1;
    SYS(waitpid(child, &status, 0));
    CHECK_INT(status, 0);
}

/* Many: more than a window of a schedule's file has room for (engine/det/file.h). */
static unsigned n_touches = 1;
static bool without_input;
static rlim_t most_of_a_file;

static void *touch_on_thread(void *unused) {
    for (unsigned i = 0; i < n_touches; i++)
        touch();
    return unused;
}

static int open_descriptors(void) {
    int n = 0;
    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) != -1;
    return n;
}

/* Landlock: no file can be opened from now on, but for what is open. Prints "no" where the kernel does not have it. */
static void no_files(void) {
    struct landlock_ruleset_attr all = {.handled_access_fs = LANDLOCK_ACCESS_FS_READ_FILE |
                                                             LANDLOCK_ACCESS_FS_WRITE_FILE |
                                                             LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_MAKE_REG};
    long rules = syscall(SYS_landlock_create_ruleset, &all, sizeof all, 0);
    if (rules < 0) {
        puts("no");
        return;
    }
    pthread_t thread;
    if (without_input)
        OK_ERRNO(close(STDIN_FILENO));
    int input = fcntl(STDIN_FILENO, F_GETFD), n_open = open_descriptors();
    if (most_of_a_file != 0)
        OK_ERRNO(setrlimit(RLIMIT_FSIZE, &(struct rlimit){most_of_a_file, most_of_a_file}));
    OK_ERRNO(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    OK_ERRNO((int)syscall(SYS_landlock_restrict_self, rules, 0));
    CHECK_INT(fcntl(STDIN_FILENO, F_GETFD), input);
    OK_ERRNO(close((int)rules));
    CHECK_INT(open("t.txt", O_WRONLY | O_CREAT, 0600), -1);
    OK_ERRNO(close(STDERR_FILENO));
    OK(pthread_create(&thread, NULL, touch_on_thread, NULL));
    OK(pthread_join(thread, NULL));
    if (most_of_a_file != 0)
        CHECK_INT(open_descriptors(), n_open - 2); /* `rules` and standard error are closed */
    puts("yes");
}

static void no_files_and_much_to_say(void) {
    n_touches = 100000;
    no_files();
}

/* The first file that is opened gets the number 0. */
static void no_files_without_input(void) {
    without_input = true;
    no_files_and_much_to_say();
}

/* There is no room for a second window. */
static void no_files_and_no_room(void) {
    most_of_a_file = 300000;
    no_files_and_much_to_say();
}

static void refused(void) {
    CHECK_INT(forbid(~0U), -1);
    touch_and_wait();
}

/* Neither may read the processor's clock. */
static void strict(void) {
    int ends[2];
    char byte = 0;
    OK_ERRNO(pipe(ends));
    CHECK_INT(write(ends[1], &byte, 1), 1);
    OK_ERRNO(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
    CHECK_INT(read(ends[0], &byte, 1), 1);
    syscall(SYS_exit, 0);
}

static void without_clock(void) {
    int ends[2];
    char byte = 0;
    OK_ERRNO(pipe(ends));
#ifdef __x86_64__
    OK_ERRNO(prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0));
#endif
    CHECK_INT(write(ends[1], &byte, 1), 1);
    CHECK_INT(read(ends[0], &byte, 1), 1);
    syscall(SYS_exit_group, 0);
}

/* ---- handlers that interrupt the recorder, most of all ---- */

static sigjmp_buf back;
static sem_t posts;
static volatile int n_handled;

static void jump(int signal) {
    (void)signal;
    siglongjmp(back, 1);
}

static void post(int signal) {
    (void)signal;
    OK_ERRNO(sem_post(&posts));
    n_handled++;
}

/* From now on the handler comes after so many microseconds, and again and again if it is `post`. */
static void handle(void (*handler)(int), int us) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct itimerval time = {{0, handler == post ? us : 0}, {0, us}};
    OK_ERRNO(sigaction(SIGALRM, &action, NULL));
    OK_ERRNO(setitimer(ITIMER_REAL, &time, NULL));
}

static int zero(void) {
    int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    SYS(fd);
    return fd;
}

/* Requests with a time limit. */
static void jumps(void) {
    int fd = zero();
    char byte;
    for (volatile int i = 0; i < N_JUMPS; i++) {
        touch();
        if (sigsetjmp(back, 1) != 0)
            continue;
        handle(jump, JUMP_US);
        for (;;)
            CHECK_INT(read(fd, &byte, 1), 1);
    }
}

static void interrupts(void) {
    int fd = zero();
    char byte;
    OK_ERRNO(sem_init(&posts, 0, 0));
    touch();
    handle(post, POST_US);
    while (n_handled < N_POSTS)
        CHECK_INT(read(fd, &byte, 1), 1);
    signal(SIGALRM, SIG_IGN);
    for (int i = 0; i < N_AFTERWARDS; i++)
        OK_ERRNO(sem_wait(&posts));
    printf("%d\n", n_handled);
}

/* No call that the recorder sees. */
static void sleep_unseen(void) {
    struct timespec time = {0, 2 * WAIT_US * 1000};
    SYS(syscall(SYS_nanosleep, &time, NULL));
}

/* A child sends the signal when its parent has slept for a while. */
static void signal_asleep(pid_t parent) {
    char task[16], state[32];
    snprintf(task, sizeof task, "%d", (int)parent);
    for (int n_asleep = 0; n_asleep < 3; n_asleep = state[0] == 'S' ? n_asleep + 1 : 0) {
        sleep_unseen();
        CHECK(proc_status(task, "State:", state, sizeof state));
    }
    kill(parent, SIGALRM);
    _exit(0);
}

static void left(void) {
    int ends[2];
    char byte;
    pid_t self = getpid();
    struct sigaction action = {.sa_handler = jump, .sa_flags = SA_RESTART};
    OK_ERRNO(sigaction(SIGALRM, &action, NULL));
    OK_ERRNO(pipe(ends));
    touch();
    int64_t from_ns = now_ns(CLOCK_MONOTONIC);
    if (fork() == 0)
        signal_asleep(self);
    if (sigsetjmp(back, 1) == 0)
        CHECK_INT(read(ends[0], &byte, 1), 1);
    printf("%lld\n", (long long)(now_ns(CLOCK_MONOTONIC) - from_ns));
    for (int i = 0; i < 3; i++) {
        touch();
        sleep_unseen();
    }
}

/* ---- a child in the same memory ---- */

static int64_t waited_ns;

static void have_child(void) {
    touch();
    /* NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork): that is what is tested */
    pid_t child = vfork();
    if (child == 0) {
        touch_and_wait();
        _exit(0);
    }
    SYS(child);
    int64_t from_ns = now_ns(CLOCK_MONOTONIC);
    SYS(waitpid(child, NULL, 0));
    usleep(WAIT_US);
    waited_ns += now_ns(CLOCK_MONOTONIC) - from_ns;
    touch();
    sleep_unseen();
}

/* Prints for how long it waits. */
static void *vforks(void *unused) {
    have_child();
    have_child();
    printf("%lld\n", (long long)waited_ns);
    return unused;
}

static void vforks_at_the_end(void) {
    vforks(NULL);
    /* NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork): that is what is tested */
    pid_t child = vfork();
    if (child == 0)
        _exit(0);
}

/* ---- handlers on another stack, above the one that they interrupt: they have not left the recorder ---- */
enum { OTHER_STACK = 1 << 16 };

static char *other_stack(void) {
    char *stack = mmap(NULL, OTHER_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    SYS(stack == MAP_FAILED ? -1 : 0);
    return stack;
}

static void every(void (*handler)(int), int flags, suseconds_t us) {
    OK_ERRNO(sigaction(SIGALRM, &(struct sigaction){.sa_handler = handler, .sa_flags = flags | SA_RESTART}, NULL));
    OK_ERRNO(setitimer(ITIMER_REAL, &(struct itimerval){{0, us}, {0, us}}, NULL));
}

static void *touch_beside_handlers(void *stack) {
    sigset_t alarms;
    stack_t own = {.ss_sp = stack, .ss_size = OTHER_STACK, .ss_flags = (int)(1U << 31)}; /* SS_AUTODISARM */
    SYS(sigaltstack(&own, NULL));
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    OK(pthread_sigmask(SIG_UNBLOCK, &alarms, NULL));
    while (n_handled < N_POSTS)
        touch();
    signal(SIGALRM, SIG_IGN);
    return NULL;
}

static void disarmed(void) {
    pthread_t thread;
    sigset_t alarms;
    char *stack = other_stack(); /* before the thread's, and so above it */
    OK_ERRNO(sem_init(&posts, 0, 0));
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    OK(pthread_sigmask(SIG_BLOCK, &alarms, NULL));
    every(post, SA_ONSTACK, POST_US);
    OK(pthread_create(&thread, NULL, touch_beside_handlers, stack));
    OK(pthread_join(thread, NULL));
}

static const struct {
    const char *name;
    void (*does)(void);
} ways[] = {{"filtered", filtered},
            {"refused", refused},
            {"strict", strict},
            {"without-clock", without_clock},
            {"jumps", jumps},
            {"interrupts", interrupts},
            {"left", left},
            {"vforks", vforks_at_the_end},
            {"disarmed", disarmed},
            {"no-files", no_files},
            {"no-files-much", no_files_and_much_to_say},
            {"no-files-no-input", no_files_without_input},
            {"no-files-no-room", no_files_and_no_room}};

int main(int argc, char **argv) {
    for (size_t i = 0; argc == 2 && i < sizeof ways / sizeof *ways; i++) {
        if (strcmp(argv[1], ways[i].name) != 0)
            continue;
        ways[i].does();
        return 0;
    }
    return 2;
}
