/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Code that is loaded and functions that are looked up while threads are switched, names, system calls and signals by
 * number; and the list of all scenes. The plug-ins are named by the environment.
 */
#include "eligibility_dynamic.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static atomic_int n_handled;
static atomic_bool ended;
static pthread_t receiver;
static atomic_long receiver_tid;

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
static void read_by_number(char *byte) {
    int file = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/environ", O_RDONLY | O_CLOEXEC);
    SYS(file);
    CHECK(syscall(SYS_read, file, byte, (size_t)1) == 1 && syscall(SYS_lseek, file, 0L, SEEK_CUR) == 1);
    CHECK(syscall(SYS_close, file) == 0);
}

static void *ask(void *number) {
    static int unused;
    long first = proc_kernel_thread();
    bool moved = false;
    char byte;
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(syscall(SYS_getrandom, &byte, (size_t)1, 0u) == 1);
        read_by_number(&byte);
        CHECK(syscall(SYS_futex, &unused, 1 /* wake */, 1, NULL, NULL, 0) == 0);
        if ((long)number == 1)
            CHECK(syscall(SYS_fsync, -1) == -1 && errno == EBADF);
        meet();
        moved = moved || proc_kernel_thread() != first;
    }
    atomic_fetch_add(&n_moved, moved);
    CHECK((long)number != 1 || getenv("SWITCHED") == NULL || proc_kernel_thread() == first);
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(syscall(SYS_gettid) == first);
        CHECK(syscall(SYS_fsync, -1) == -1 && errno == EBADF);
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
        {"filtered-one-wakes", filtered_one_wakes},
        {"asks-for-filters", asks_for_filters},
        {"never-under-a-filter", filtered},
        {"never-under-a-filter-by-number", filtered_by_number},
        {"filtered-from-the-start", filtered_from_the_start},
        {NULL, NULL},
    };
    return play(argc, argv, scenes);
}
