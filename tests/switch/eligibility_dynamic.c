/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a program does when it has been waiting by switching for a while: loads code, looks functions up, changes its
 * kernel threads or asks the kernel for something. One scene per run. The plug-ins are named by the environment.
 */
#include "scene.h"

#include <dirent.h>
#include <dlfcn.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define ROUNDS 200
#define MANY 64

static atomic_int n_moved, n_strays, n_handled;
static atomic_bool ended;
static pthread_t receiver;
static atomic_long receiver_tid;
static int channel[2];
static void (*deed)(void); /* of thread 0, while the others are away */

static void *symbol_of(void *handle, const char *name) {
    void *symbol = dlsym(handle, name);
    CHECK(symbol != NULL);
    return symbol;
}

static void load(const char *variable, int answer) {
    int (*function)(int);
    const char *path = getenv(variable);
    CHECK(path != NULL);
    void *plugin = dlopen(path, RTLD_NOW);
    if (plugin == NULL)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(plugin != NULL);
    *(void **)(void *)&function = symbol_of(plugin, "plugin_answer");
    CHECK(function(0) == answer);
}

/* ---- one does it, and the others go on: do they still move, or are they all at home? ---- */
static void *meet_and_watch(void *number) {
    long first = proc_kernel_thread();
    bool moved = false;
    for (int i = 0; i < ROUNDS; i++)
        meet();
    if ((long)number == 0)
        deed();
    meet();
    for (int i = 0; i < ROUNDS; i++) {
        bool away = proc_kernel_thread() != first;
        moved = moved || away;
        if (away && (long)number != 0)
            atomic_fetch_add(&n_strays, 1);
        meet();
    }
    atomic_fetch_add(&n_moved, moved);
    return number;
}

static void all_meet(void (*what)(void), bool ends) {
    deed = what;
    run(N, meet_and_watch);
    printf("%d threads ran on another's kernel thread afterwards, %d times\n", n_moved, n_strays);
    CHECK(getenv("SWITCHED") == NULL || (n_strays == 0) == ends);
}

static void load_harmless(void) {
    load("PLUGIN_HARMLESS", 42);
}

static void loads_harmless(void) {
    all_meet(load_harmless, false);
}

static void load_refused(void) {
    load("PLUGIN_REFUSED", 41);
}

static void ends_for_a_plugin(void) {
    all_meet(load_refused, true);
}

static void load_by_caller(void) {
    int (*function)(void);
    void *plugin = dlopen(getenv("PLUGIN_HARMLESS"), RTLD_NOW);
    CHECK(plugin != NULL);
    /* Not by the program's path, unless the test has been given one. */
    CHECK(getenv("LD_LIBRARY_PATH") != NULL || dlopen("libswitch-inner.so", RTLD_NOW) == NULL);
    *(void **)(void *)&function = symbol_of(plugin, "plugin_of_caller");
    CHECK(function() == 0);
}

static void loads_by_caller(void) {
    all_meet(load_by_caller, false);
}

static void look_up(void) {
    pid_t (*function)(void);
    *(void **)(void *)&function = symbol_of(RTLD_DEFAULT, "gettid");
    CHECK(function() == gettid()); /* the C library's own would tell the carrier's */
    CHECK(dlsym(RTLD_DEFAULT, "no_such_function") == NULL && dlerror() != NULL);
    CHECK(dlsym(RTLD_NEXT, "no_such_function") == NULL && dlerror() != NULL);
}

static void looks_up(void) {
    all_meet(look_up, false);
}

static void look_up_hidden(void) {
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    CHECK(libc != NULL);
    symbol_of(libc, "gettid");
}

static void ends_for_a_hidden_one(void) {
    all_meet(look_up_hidden, true);
}

/* ---- look-ups of a version: of the function that a look-up without one finds ---- */
#if defined(__x86_64__)
#define OLDEST "GLIBC_2.2.5"
#else
#define OLDEST "GLIBC_2.17"
#endif

static void *version_of(void *handle, const char *name, const char *version) {
    void *symbol = dlvsym(handle, name, version);
    CHECK(symbol != NULL && dlerror() == NULL);
    return symbol;
}

static void look_up_versions(void) {
    static const char *const names[] = {"pthread_mutex_lock", "pthread_sigmask", "dlsym"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CHECK(version_of(RTLD_DEFAULT, names[i], OLDEST) == symbol_of(RTLD_DEFAULT, names[i]));
        CHECK(version_of(RTLD_NEXT, names[i], OLDEST) == symbol_of(RTLD_NEXT, names[i]));
    }
    CHECK(version_of(RTLD_DEFAULT, "gettid", "GLIBC_2.30") == symbol_of(RTLD_DEFAULT, "gettid"));
    CHECK(version_of(RTLD_DEFAULT, "qsort", OLDEST) == symbol_of(RTLD_DEFAULT, "qsort"));
    CHECK(dlvsym(RTLD_DEFAULT, "gettid", "GLIBC_0.1") == NULL && dlerror() != NULL && dlerror() == NULL);
    CHECK(dlvsym(RTLD_DEFAULT, "no_such_function", OLDEST) == NULL && dlerror() != NULL);
}

static void looks_up_versions(void) {
    all_meet(look_up_versions, false);
}

static void look_up_hidden_version(void) {
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    CHECK(libc != NULL);
    version_of(libc, "gettid", "GLIBC_2.30");
}

static void ends_for_a_hidden_version(void) {
    all_meet(look_up_hidden_version, true);
}

static void look_up_refused_version(void) {
    version_of(RTLD_DEFAULT, "sighold", OLDEST);
}

static void ends_for_a_refused_version(void) {
    all_meet(look_up_refused_version, true);
}

static void look_up_refused(void) {
    symbol_of(RTLD_DEFAULT, "sigset");
}

static void ends_for_a_refused_one(void) {
    all_meet(look_up_refused, true);
}

static void *read_only(void *argument) {
    char byte;
    CHECK(read(channel[0], &byte, 1) == 1);
    return argument;
}

/* ---- credentials: all kernel threads have them, carriers and the monitor too; some compute or sleep meanwhile ----
 */
static long group_of(const char *task) {
    char path[300], ids[64];
    long effective = -1;
    snprintf(path, sizeof path, "self/task/%s", task);
    if (proc_status(path, "Gid:", ids, sizeof ids))
        CHECK_INT(sscanf(ids, "%*d %ld", &effective), 1);
    return effective;
}

static void change_group(void) {
    gid_t other = geteuid() == 0 ? 65534 : getegid();
    int n = 0;
    OK_ERRNO(setegid(other));
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
        long group = task->d_name[0] != '.' ? group_of(task->d_name) : -1;
        CHECK(group < 0 || group == (long)other);
        n += group >= 0;
    }
    closedir(tasks);
    CHECK(n > N);
    printf("%d kernel threads\n", n);
    ended = true;
    CHECK(write(channel[1], "", 1) == 1);
}

static bool in_a_handler;

static void read_one(int unused) {
    char byte;
    (void)unused;
    CHECK(read(channel[0], &byte, 1) == 1);
}

static void *compute_or_read(void *number) {
    long first = proc_kernel_thread();
    for (int i = 0; i < ROUNDS; i++)
        meet();
    if ((long)number == 0)
        deed();
    else if ((long)number == 1 && in_a_handler)
        OK_ERRNO(raise(SIGUSR1));
    else if ((long)number == 1)
        read_one(0);
    else if ((long)number < 4)
        while (!ended)
            ;
    for (int i = 0; i < ROUNDS; i++) {
        meet();
        CHECK(proc_kernel_thread() == first);
    }
    return number;
}

static void ends_for_credentials(void) {
    deed = change_group;
    OK_ERRNO(pipe(channel));
    run(N, getenv("SWITCHED") != NULL ? compute_or_read : meet_and_watch);
}

/* The reader is in a handler that blocks every signal, the recall of a fiber to its home thread included. */
static void ends_for_credentials_in_a_handler(void) {
    struct sigaction action = {.sa_handler = read_one}, set;
    sigfillset(&action.sa_mask);
    OK_ERRNO(sigaction(SIGUSR1, &action, NULL));
    OK_ERRNO(sigaction(SIGUSR1, NULL, &set));
    for (int i = SIGRTMIN; i <= SIGRTMAX; i++)
        CHECK(sigismember(&set.sa_mask, i) == 1);
    in_a_handler = true;
    ends_for_credentials();
}

/* In a child, where the fibers that were away in the parent are no thread's. */
static void fork_and_change(void) {
    pid_t child = fork();
    if (child == 0) {
        OK_ERRNO(pipe(channel));
        for (int i = 0; i < N; i++)
            OK(pthread_create(&threads[i], NULL, read_only, NULL));
        OK_ERRNO(setegid(getegid()));
        _exit(0);
    }
    child_join(child);
}

static void credentials_in_a_child(void) {
    all_meet(fork_and_change, false);
}

/* ---- before there are threads ---- */
static void nothing_at_all(void) {}

static void never_for_a_hidden_one(void) {
    look_up_hidden();
    all_meet(nothing_at_all, true);
}

/* ---- a lock that is taken in a call-back of the dynamic linker, for which a thread that loads something waits ---- */
static pthread_mutex_t called_back = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_called_back = PTHREAD_COND_INITIALIZER;
static atomic_bool has_locked, is_inside;

static int call_back(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)info, (void)size, (void)unused;
    is_inside = true;
    OK(pthread_mutex_lock(&called_back));
    ended = true;
    OK(pthread_cond_broadcast(&is_called_back));
    OK(pthread_mutex_unlock(&called_back));
    return 1;
}

static void *load_and_wait(void *number) {
    for (int i = 0; i < ROUNDS; i++)
        meet();
    if ((long)number == 0) {
        CHECK(dlopen(getenv("PLUGIN_HARMLESS"), RTLD_NOW) != NULL);
        OK(pthread_mutex_lock(&called_back));
        has_locked = true;
        while (!is_inside)
            sched_yield();
        while (!ended)
            OK(pthread_cond_wait(&is_called_back, &called_back));
        OK(pthread_mutex_unlock(&called_back));
    } else if ((long)number == 1) {
        while (!has_locked)
            sched_yield();
        dl_iterate_phdr(call_back, NULL);
    }
    meet();
    return number;
}

static void loaders_lock(void) {
    run(N, load_and_wait);
}

/* ---- names ---- */
static void *be_called(void *number) {
    char mine[16], name[16] = "", path[64], line[32] = "";
    long first = proc_kernel_thread();
    snprintf(mine, sizeof mine, "player %ld", (long)number);
    for (int i = 0; i < 20; i++)
        meet();
    OK_ERRNO(prctl(PR_SET_NAME, mine));
    for (int i = 0; i < ROUNDS; i++) {
        meet();
        CHECK(i % 50 != 0 || (prctl(PR_GET_NAME, name) == 0 && strcmp(name, mine) == 0));
        if (proc_kernel_thread() != first)
            n_moved = 1;
    }
    snprintf(path, sizeof path, "/proc/self/task/%ld/comm", first);
    FILE *file = fopen(path, "re");
    CHECK(file != NULL && fgets(line, sizeof line, file) != NULL);
    fclose(file);
    line[strcspn(line, "\n")] = '\0';
    CHECK(strcmp(line, mine) == 0);
    return number;
}

static void names(void) {
    run(N, be_called);
    CHECK(getenv("SWITCHED") == NULL || n_moved);
}

/* ---- system calls by number: some are any thread's, others belong to one kernel thread ---- */
static void *ask(void *number) {
    static int unused;
    long first = proc_kernel_thread();
    bool moved = false;
    char byte;
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(syscall(SYS_getrandom, &byte, (size_t)1, 0u) == 1);
        CHECK(syscall(SYS_futex, &unused, 1 /* wake */, 1, NULL, NULL, 0) == 0);
        if ((long)number == 1)
            CHECK(syscall(SYS_close, -1) == -1 && errno == EBADF);
        meet();
        moved = moved || proc_kernel_thread() != first;
    }
    atomic_fetch_add(&n_moved, moved);
    CHECK((long)number != 1 || getenv("SWITCHED") == NULL || proc_kernel_thread() == first);
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(syscall(SYS_gettid) == first);
        CHECK(syscall(SYS_close, -1) == -1 && errno == EBADF);
        meet();
        CHECK(proc_kernel_thread() == first);
    }
    return number;
}

static void asks_the_kernel(void) {
    run(N, ask);
    CHECK(getenv("SWITCHED") == NULL || n_moved > 1);
}

/* ---- a signal for a thread by its number ---- */
static void handle(int signal) {
    (void)signal;
    CHECK(pthread_equal(pthread_self(), receiver));
    atomic_fetch_add(&n_handled, 1);
}

static void *receive(void *number) {
    if ((long)number == 1) {
        receiver = pthread_self();
        receiver_tid = proc_kernel_thread();
    }
    for (int i = 0; i < ROUNDS; i++)
        meet();
    for (int i = 0; (long)number == 0 && i < 100; i++) {
        CHECK((i % 2 == 0 ? syscall(SYS_tgkill, getpid(), (int)receiver_tid, SIGUSR1)
                          : tgkill(getpid(), (int)receiver_tid, SIGUSR1)) == 0);
        while (n_handled <= i)
            sched_yield();
    }
    for (int i = 0; i < ROUNDS; i++)
        meet();
    return number;
}

static void signals_by_number(void) {
    OK_ERRNO(sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handle, .sa_flags = SA_RESTART}, NULL));
    run(N, receive);
    CHECK(n_handled == 100);
}

/* ---- children, without the handlers of fork ---- */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* The child shares the memory and does what its thread goes home for. */
static __attribute__((noinline)) pid_t vforked(void) {
    pid_t child = vfork();
    if (child == 0) {
        if (syscall(SYS_setsid) > 0 && nice(0) != -1 && setegid(getegid()) == 0)
            execl("/bin/sh", "sh", "-c", "exit 3", (char *)NULL); /* which the parent must not become */
        _exit(1);
    }
    return child;
}

static void *have_children(void *number) {
    pid_t child;
    for (int i = 0; i < ROUNDS; i++) {
        meet();
        if (i % 50 == (int)(long)number + 25) /* where it came from the barrier: on a carrier */
            child_join_with(vforked(), 3);
        if (i % 50 != (int)(long)number)
            continue;
        OK(pthread_mutex_lock(&mutex));
        if ((child = _Fork()) == 0) {
            bool good = pthread_mutex_unlock(&mutex) == 0 && pthread_mutex_lock(&mutex) == 0;
            _exit(good ? 0 : 1);
        }
        OK(pthread_mutex_unlock(&mutex));
        child_join(child);
    }
    return number;
}

static void children(void) {
    run(N, have_children);
}

/* ---- children and threads by clone, and by its system call ---- */
#define STACK_BYTES ((size_t)64 << 10)

static void *meet_often(void *unused) {
    for (int i = 0; i < ROUNDS / 4; i++)
        meet();
    return unused;
}

/* A process of its own: it locks what its parent held, and meets threads of its own. */
static int be_a_process(void *parent) {
    CHECK(getppid() == (pid_t)(long)parent);
    OK(pthread_mutex_unlock(&mutex));
    OK(pthread_barrier_init(&barrier, NULL, 4));
    for (int i = 0; i < 3; i++)
        OK(pthread_create(&threads[i], NULL, meet_often, NULL));
    meet_often(NULL);
    for (int i = 0; i < 3; i++)
        OK(pthread_join(threads[i], NULL));
    OK(pthread_mutex_lock(&mutex));
    return 5;
}

static int execute(void *path) {
    execl(path, "sh", "-c", "exit 3", (char *)NULL);
    return 1;
}

static void clone_processes(void) {
    char *stack = malloc(STACK_BYTES);
    CHECK(stack != NULL);
    CHECK(clone(NULL, stack + STACK_BYTES, SIGCHLD, NULL) == -1 && errno == EINVAL);
    for (int i = 0; i < 10; i++) {
        OK(pthread_mutex_lock(&mutex));
        child_join_with(clone(be_a_process, stack + STACK_BYTES, SIGCHLD, (void *)(long)getpid()), 5);
        pid_t tid = 0;
        pid_t child = clone(be_a_process, stack + STACK_BYTES, SIGCHLD | CLONE_PARENT_SETTID, (void *)(long)getpid(),
                            &tid, NULL, NULL);
        CHECK(tid == child);
        child_join_with(child, 5);
        OK(pthread_mutex_unlock(&mutex));
    }
    free(stack);
}

static void clones_processes(void) {
    all_meet(clone_processes, false);
}

static void clone_by_number(void) {
    OK(pthread_mutex_lock(&mutex));
    long parent = getpid(), child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0)
        _exit(be_a_process((void *)parent));
    child_join_with((pid_t)child, 5);
    uint64_t arguments[8] = {[4] = SIGCHLD};
    child = syscall(SYS_clone3, arguments, sizeof arguments);
    if (child == 0)
        _exit(be_a_process((void *)parent));
    child_join_with((pid_t)child, 5);
    OK(pthread_mutex_unlock(&mutex));
    CHECK(syscall(SYS_clone3, NULL, sizeof arguments) == -1 && errno == EFAULT);
}

static void clones_by_number(void) {
    all_meet(clone_by_number, false);
}

/* In the same memory, while its creator stands still. */
static void clone_as_vfork(void) {
    char *stack = malloc(STACK_BYTES);
    CHECK(stack != NULL);
    for (int i = 0; i < 2; i++) {
        int flags = CLONE_VM | CLONE_VFORK | SIGCHLD;
        child_join_with(clone(execute, stack + STACK_BYTES, flags, (void *)(uintptr_t) "/bin/sh"), 3);
        meet();
    }
    free(stack);
}

static void *meet_or_vfork(void *number) {
    long first = proc_kernel_thread();
    bool moved = false;
    for (int i = 0; i < ROUNDS; i++) {
        meet();
        moved = moved || proc_kernel_thread() != first;
    }
    if ((long)number == 0)
        clone_as_vfork();
    else
        for (int i = 0; i < 2; i++)
            meet();
    for (int i = 0; i < 4 * ROUNDS; i++) {
        meet();
        CHECK((long)number != 0 || getenv("SWITCHED") == NULL || proc_kernel_thread() == first);
    }
    atomic_fetch_add(&n_moved, moved);
    return number;
}

static void clones_as_vfork(void) {
    run(N, meet_or_vfork);
    CHECK(getenv("SWITCHED") == NULL || n_moved > 1);
}

/*
 * In the same memory and with the same thread-local storage, beside its creator: both wait, and each is woken for
 * itself.
 */
static sem_t for_child;
static atomic_int child_stage;

static int wait_beside(void *unused) {
    (void)unused;
    child_stage = 1;
    while (sem_wait(&for_child) != 0)
        ;
    child_stage = 2;
    return 7;
}

static void *meet_or_clone(void *number) {
    static char *stack;
    long first = proc_kernel_thread();
    pid_t child = 0;
    for (int i = 0; i < ROUNDS; i++)
        meet();
    if ((long)number == 0) {
        stack = malloc(STACK_BYTES);
        CHECK(stack != NULL);
        child = clone(wait_beside, stack + STACK_BYTES, CLONE_VM | SIGCHLD, NULL);
        CHECK(child > 0);
        meet();
    } else {
        if ((long)number == 1) {
            while (child_stage != 1)
                sched_yield();
            sleep_ms(20); /* the child sleeps, and so does its creator, at the barrier */
            OK_ERRNO(sem_post(&for_child));
            while (child_stage != 2)
                sched_yield();
        }
        meet();
    }
    for (int i = 0; i < ROUNDS; i++) {
        meet();
        CHECK((long)number != 0 || proc_kernel_thread() == first);
    }
    if ((long)number == 0) {
        child_join_with(child, 7);
        free(stack);
    }
    return number;
}

static void clones_beside(void) {
    OK_ERRNO(sem_init(&for_child, 0, 0));
    run(N, meet_or_clone);
}

/* A thread that the C library does not know. */
static int be_a_thread(void *done) {
    atomic_store((atomic_int *)done, 1);
    return 0; /* to clone, which ends the thread */
}

static void clone_a_thread(void) {
    static atomic_int done;
    static pid_t left = 1; /* the kernel clears it when the thread has ended, and wakes by the same word */
    char *stack = malloc(STACK_BYTES);
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
    CHECK(stack != NULL);
    CHECK(clone(be_a_thread, stack + STACK_BYTES, flags, &done, NULL, NULL, &left) > 0);
    while (__atomic_load_n(&left, __ATOMIC_ACQUIRE) != 0)
        sched_yield();
    CHECK(done == 1);
    free(stack);
}

static void ends_for_a_thread_of_clone(void) {
    all_meet(clone_a_thread, true);
}

/* ---- a filter that kills a thread for a system call that the program itself never makes ---- */
static void kill_for_membarrier(bool by_number) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    OK_ERRNO(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    if (by_number)
        CHECK(syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    else
        OK_ERRNO(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

/* ---- a filter of the calling thread alone: it stays at home, and so do the threads that it creates ---- */
static void install_filter(unsigned flags, bool by_prctl) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getcpu, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrusage, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prlimit64, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    OK_ERRNO(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    if (by_prctl)
        OK_ERRNO(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
    else
        CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) == 0);
}

static pthread_barrier_t more; /* of all threads, and one more for each that has a filter */

/* Meet there. Has the caller been on another kernel thread? */
static bool moves(void) {
    long first = proc_kernel_thread();
    bool moved = false;
    for (int i = 0; i < ROUNDS; i++) {
        int r = pthread_barrier_wait(&more);
        CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
        moved = moved || proc_kernel_thread() != first;
    }
    return moved;
}

static void *stay(void *argument) {
    CHECK(!moves());
    return argument;
}

/* It and its threads have its parent's filter. */
static void be_filtered(void) {
    OK(pthread_barrier_init(&more, NULL, 3));
    for (int i = 0; i < 3; i++)
        OK(pthread_create(&threads[i], NULL, stay, NULL));
    for (int i = 0; i < 3; i++)
        OK(pthread_join(threads[i], NULL));
    _exit(0);
}

static void *filter_one(void *number) {
    pthread_t own;
    bool filters = (long)number < 2;
    for (int i = 0; i < ROUNDS; i++)
        meet();
    if (filters) {
        install_filter(0, (long)number == 0);
        OK(pthread_create(&own, NULL, stay, NULL));
        pid_t child = fork();
        if (child == 0)
            be_filtered();
        child_join(child);
    }
    bool moved = moves();
    CHECK(!filters || !moved);
    atomic_fetch_add(&n_moved, moved);
    if (filters)
        OK(pthread_join(own, NULL));
    return number;
}

static void filters_single_threads(void) {
    OK(pthread_barrier_init(&more, NULL, N + 2));
    run(N, filter_one);
    CHECK(getenv("SWITCHED") == NULL || n_moved > 0);
}

/* What the kernel can do is asked without rules. */
static void ask_for_filters(void) {
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, NULL) == -1 && errno == EFAULT);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) == -1);
}

static void asks_for_filters(void) {
    ask_for_filters();
    all_meet(ask_for_filters, false);
}

/* All in one bucket of the lot: some have to sleep until it is free. */
static void *many(void *number) {
    static pthread_mutex_t filtered_mutex = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t filtered_cond = PTHREAD_COND_INITIALIZER;
    for (int i = 0; i < 10 * ROUNDS; i++) {
        OK(pthread_mutex_lock(&filtered_mutex));
        OK(pthread_cond_broadcast(&filtered_cond));
        struct timespec soon = time_now(CLOCK_REALTIME);
        CHECK(pthread_cond_timedwait(&filtered_cond, &filtered_mutex, &soon) != EINVAL);
        OK(pthread_mutex_unlock(&filtered_mutex));
    }
    return number;
}

static void filtered(void) {
    kill_for_membarrier(false);
    run(MANY, many);
}

static void filtered_by_number(void) {
    kill_for_membarrier(true);
    run(MANY, many);
}

/* Of all threads, while they wait by switching: the library's own too, which look once a millisecond from then on. */
static void filter_all(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getcpu, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    OK_ERRNO(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0);
    sleep_ms(50);
}

static void ends_for_a_filter(void) {
    all_meet(filter_all, true);
}

/* From the start: it is the second time that the program runs. */
static void filtered_from_the_start(void) {
    if (getenv("FILTERED") == NULL) {
        char self[4096], scene[] = "filtered-from-the-start", *again[] = {self, scene, NULL};
        ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
        CHECK(n > 0);
        self[n] = '\0';
        kill_for_membarrier(false);
        setenv("FILTERED", "1", 1);
        execv(self, again);
    }
    CHECK(getenv("FILTERED") != NULL);
    run(MANY, many);
}

int main(int argc, char **argv) {
    static const struct scene scenes[] = {
        {"loads-harmless", loads_harmless},
        {"ends-for-a-plugin", ends_for_a_plugin},
        {"loads-by-caller", loads_by_caller},
        {"looks-up", looks_up},
        {"ends-for-a-hidden-one", ends_for_a_hidden_one},
        {"ends-for-a-refused-one", ends_for_a_refused_one},
        {"ends-for-credentials", ends_for_credentials},
        {"ends-for-credentials-in-a-handler", ends_for_credentials_in_a_handler},
        {"ends-for-a-filter", ends_for_a_filter},
        {"credentials-in-a-child", credentials_in_a_child},
        {"looks-up-versions", looks_up_versions},
        {"ends-for-a-hidden-version", ends_for_a_hidden_version},
        {"ends-for-a-refused-version", ends_for_a_refused_version},
        {"never-for-a-hidden-one", never_for_a_hidden_one},
        {"loaders-lock", loaders_lock},
        {"names", names},
        {"asks-the-kernel", asks_the_kernel},
        {"signals-by-number", signals_by_number},
        {"children", children},
        {"clones-processes", clones_processes},
        {"clones-by-number", clones_by_number},
        {"clones-as-vfork", clones_as_vfork},
        {"clones-beside", clones_beside},
        {"ends-for-a-thread-of-clone", ends_for_a_thread_of_clone},
        {"filters-single-threads", filters_single_threads},
        {"asks-for-filters", asks_for_filters},
        {"never-under-a-filter", filtered},
        {"never-under-a-filter-by-number", filtered_by_number},
        {"filtered-from-the-start", filtered_from_the_start},
        {NULL, NULL},
    };
    return play(argc, argv, scenes);
}
