/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Programs that load libgomp late, and others at the edge of how its futex calls are served. Each prints what it
 * computed: the same under any engine.
 *
 *   late LIBRARY     threads exist, and use mutexes and conditions, when LIBRARY and with it libgomp is loaded
 *   copy LIBGOMP     a second copy of libgomp, loaded while a team of the first one waits
 *   unload LIBRARY   LIBRARY, and with it libgomp, is loaded and unloaded again and again
 *   fork LIBRARY     the child of a fork loads LIBRARY, before and after its parent has
 *   signals LIBRARY  a handler interrupts the teams all the time
 *   filter LIBRARY   a filter of system calls forbids mprotect from before libgomp's first thread on
 *   hidden LIBRARY   libgomp's code may be executed, and not read
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/checks.h"

typedef long work(int n_threads, int rounds);

static void *symbol(const char *file, const char *name) {
    void *library = dlopen(file, RTLD_NOW), *found = library != NULL ? dlsym(library, name) : NULL;
    if (found == NULL)
        FAIL("%s: %s", file, dlerror());
    return found;
}

static work *load(const char *file) {
    work *function;
    *(void **)(void *)&function = symbol(file, "omp_library_work");
    return function;
}

/* ---- threads beside ---- */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static int turn;
static atomic_bool over;
enum { BESIDE = 4 };

static void *take_turns(void *number) {
    const int me = (int)(intptr_t)number;
    pthread_mutex_lock(&mutex);
    while (!atomic_load(&over)) {
        if (turn % BESIDE == me) {
            turn++;
            pthread_cond_broadcast(&turned);
        } else {
            pthread_cond_wait(&turned, &mutex);
        }
    }
    pthread_cond_broadcast(&turned);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static pthread_t beside[BESIDE];

static void begin_beside(void) {
    for (intptr_t i = 0; i < BESIDE; i++)
        OK(pthread_create(&beside[i], NULL, take_turns, (void *)i));
}

/* They may not have begun yet: a busy machine starts the teams' threads first. */
static void end_beside(void) {
    pthread_mutex_lock(&mutex);
    while (turn == 0)
        pthread_cond_wait(&turned, &mutex);
    atomic_store(&over, true);
    pthread_cond_broadcast(&turned);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < BESIDE; i++)
        OK(pthread_join(beside[i], NULL));
}

static work *loaded;
static const char *file;

static void *load_and_work(void *unused) {
    work *function = load(file);
    (void)unused;
    printf("by the thread that loaded it: %ld\n", function(8, 50));
    loaded = function;
    return NULL;
}

static void *only_work(void *unused) {
    (void)unused;
    printf("by another thread: %ld\n", loaded(8, 50));
    return NULL;
}

static void late(void) {
    pthread_t thread;
    begin_beside();
    OK(pthread_create(&thread, NULL, load_and_work, NULL));
    OK(pthread_join(thread, NULL));
    OK(pthread_create(&thread, NULL, only_work, NULL));
    OK(pthread_join(thread, NULL));
    printf("by main: %ld\n", loaded(8, 50));
    end_beside();
}

/* ---- a copy: by the functions that the compiler calls ---- */
struct gomp {
    void (*parallel)(void (*function)(void *), void *data, unsigned n_threads, unsigned flags);
    void (*barrier)(void);
    atomic_long passed;
    struct gomp *inner;
};

static struct gomp gomp_of(const char *library) {
    struct gomp g = {0};
    *(void **)(void *)&g.parallel = symbol(library, "GOMP_parallel");
    *(void **)(void *)&g.barrier = symbol(library, "GOMP_barrier");
    return g;
}

static void meet(void *argument) {
    struct gomp *g = argument;
    for (int i = 0; i < 200; i++) {
        g->barrier();
        atomic_fetch_add(&g->passed, 1);
        if (i == 100 && g->inner != NULL)
            g->inner->parallel(meet, g->inner, 3, 0);
    }
}

static void copy(void) {
    struct gomp first = gomp_of("libgomp.so.1");
    first.parallel(meet, &first, 4, 0); /* its threads wait for more from here on */
    struct gomp second = gomp_of(file);
    CHECK(second.parallel != first.parallel);
    first.inner = &second;
    first.parallel(meet, &first, 4, 0);
    second.parallel(meet, &second, 4, 0);
    printf("%ld and %ld\n", atomic_load(&first.passed), atomic_load(&second.passed));
}

/* ---- unload ---- */
static int count_gomp(struct dl_phdr_info *info, size_t size, void *n) {
    (void)size;
    *(int *)n += strstr(info->dlpi_name, "libgomp") != NULL;
    return 0;
}

static int n_gomp(void) {
    int n = 0;
    dl_iterate_phdr(count_gomp, &n);
    return n;
}

static int n_threads(void) {
    int n = 0;
    DIR *tasks = opendir("/proc/self/task");
    while (readdir(tasks) != NULL)
        n++;
    closedir(tasks);
    return n;
}

static void *work_once(void *handle) {
    work *function;
    *(void **)(void *)&function = dlsym(handle, "omp_library_work");
    CHECK(function != NULL);
    return (void *)function(6, 30);
}

/* The threads of a team end with the thread that has it, but a moment later. */
static void unload(void) {
    enum { TIMES = 30 };
    long sum = 0;
    for (int i = 0; i < TIMES; i++) {
        pthread_t thread;
        void *handle = dlopen(file, RTLD_NOW), *result;
        CHECK(handle != NULL);
        CHECK_INT(n_gomp(), 1);
        OK(pthread_create(&thread, NULL, work_once, handle));
        OK(pthread_join(thread, &result));
        sum += (long)result;
        for (int still = 0, n = n_threads(); still < 50; still++) { /* other threads may be the tested library's */
            usleep(1000);
            if (n != n_threads())
                still = 0;
            n = n_threads();
        }
        CHECK_INT(dlclose(handle), 0);
        CHECK_INT(n_gomp(), 0);
        if (i % 3 == 0) /* the next one comes to lie elsewhere */
            CHECK(mmap(NULL, 1 << 16, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
    }
    printf("%d times: %ld\n", TIMES, sum);
}

/* ---- fork ---- */
static void in_child(const char *what) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        printf("%s: %ld\n", what, load(file)(6, 50));
        exit(0); /* the exit handlers run */
    }
    int status;
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, 0);
}

static void *leave(void *unused) {
    (void)unused;
    pthread_exit(NULL);
}

/* A child of a thread that had a team would wait for threads that it has not. So another thread has the parent's. The
 * team's threads leave by pthread_exit, a moment after it was joined. The first pthread_exit of a process loads a
 * library, and a child that was forked meanwhile finds the loader in the midst (glibc asserts that it is not). So a
 * first thread leaves before. */
static void forks(void) {
    pthread_t thread;
    OK(pthread_create(&thread, NULL, leave, NULL));
    OK(pthread_join(thread, NULL));
    in_child("child, before");
    begin_beside();
    in_child("child beside threads");
    OK(pthread_create(&thread, NULL, load_and_work, NULL));
    OK(pthread_join(thread, NULL));
    in_child("child, afterwards");
    end_beside();
}

/* ---- signals ---- */
static atomic_int n_signals;

static void count(int signal) {
    (void)signal;
    atomic_fetch_add(&n_signals, 1);
}

static void signals(void) {
    const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
    work *function = load(file);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    long sum = function(8, 300);
    while (atomic_load(&n_signals) < 5)
        function(8, 300);
    setitimer(ITIMER_REAL, &never, NULL);
    printf("with signals: %ld\n", sum);
}

/* ---- what the library cannot do ---- */
static void filtered(void) {
    static const struct sock_filter no_mprotect[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ, SYS_mprotect, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET, PROT_EXEC, 0, 1),
        BPF_STMT(BPF_RET, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof no_mprotect / sizeof *no_mprotect,
                                       (struct sock_filter *)(uintptr_t)no_mprotect};
    work *function = load(file);
    CHECK_INT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_INT(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program), 0);
    printf("filtered: %ld\n", function(8, 50));
}

static int hide(struct dl_phdr_info *info, size_t size, void *n) {
    (void)size;
    if (strstr(info->dlpi_name, "libgomp") == NULL)
        return 0;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        const uintptr_t begin = (info->dlpi_addr + p->p_vaddr) & ~(uintptr_t)4095,
                        end = (info->dlpi_addr + p->p_vaddr + p->p_memsz + 4095) & ~(uintptr_t)4095;
        if (p->p_type != PT_LOAD || (p->p_flags & PF_X) == 0)
            continue;
        CHECK_INT(mprotect((void *)begin, end - begin, PROT_EXEC), 0);
        ++*(int *)n;
    }
    return 0;
}

static void hidden(void) {
    work *function = load(file);
    int n = 0;
    dl_iterate_phdr(hide, &n);
    CHECK_INT(n, 1);
    printf("hidden: %ld\n", function(8, 50));
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } edges[] = {{"late", late},       {"copy", copy},       {"unload", unload}, {"fork", forks},
                 {"signals", signals}, {"filter", filtered}, {"hidden", hidden}};
    setenv("OMP_WAIT_POLICY", "passive", 0);
    for (size_t i = 0; argc == 3 && i < sizeof edges / sizeof *edges; i++) {
        if (strcmp(argv[1], edges[i].name) != 0)
            continue;
        file = argv[2];
        edges[i].run();
        return 0;
    }
    FAIL("usage: omp-edges EDGE LIBRARY");
}
