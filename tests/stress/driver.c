/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * torture: the driver. Runs the chosen tortures one after the other, prints TAP, watches for hangs and crashes.
 *
 *   torture [--list] [--only NAME[,NAME...]] [--skip NAME[,NAME...]] [--ops N] [--threads N] [--seed N]
 *           [--scale PERCENT] [--seconds S] [--within S] [--hours H] [--stall S] [--freeze] [--fatal]
 *
 * A torture ends after its operations. --seconds bounds each by time as well, and --within all of them together: a
 * torture then gets half of the time that is left, and at least one second. A torture that is stopped checks its
 * invariants like any other.
 *
 * A hang is found by progress: when no thread has completed an operation for --stall seconds (60), the watchdog says
 * which torture and seed it was and what each thread did last, then aborts, or with --freeze stops there so that a
 * debugger can look. Seeds are random unless given and always printed; the interleaving is the kernel's, so a seed
 * repeats the choices of a run, not its timing.
 */
#include "slots.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/tap.h"

static const struct torture *const groups[] = {
    mutex_tortures,  cond_tortures,    barrier_tortures, rwlock_tortures, sem_tortures,
    spin_tortures,   once_tortures,    cancel_tortures,  fork_tortures,   churn_tortures,
    memory_tortures, release_tortures, c11_tortures,     mixed_tortures,  futex_tortures,
};

/* What this build cannot run, and why. */
static struct {
    unsigned need;
    bool lacking;
    const char *why;
} lacks[] = {
    {NEEDS_FORK, HAVE_TSAN, "ThreadSanitizer does not follow a threaded process through fork"},
    {NEEDS_CANCEL, HAVE_TSAN, "ThreadSanitizer's interceptors are not left cleanly by cancellation"},
    {NEEDS_SIGNALS, HAVE_TSAN, "ThreadSanitizer delays signal handlers until a call it intercepts"},
    {NEEDS_C11, TSAN_OF_GLIBC, "ThreadSanitizer does not know the C11 functions"},
    {NEEDS_EARLY_DESTROY, TSAN_OF_GLIBC, "ThreadSanitizer reads the barrier after the wait"},
    {NEEDS_MANY, HAVE_TSAN, "too much shadow memory for ThreadSanitizer"},
    {NEEDS_BETTER, false, "glibc itself fails it; SUBUTAI_ENGINE names no other engine"}, /* set by main */
};

static struct {
    bool list, freeze;
    const char *only, *skip;
    uint64_t ops, seed, seconds, within, stall, scale;
    double hours;
    unsigned threads;
} option = {.stall = 60, .scale = 100};

bool torture_fatal;
static struct run current;
/* What runs, for reports from any thread. */
static _Atomic(const struct torture *) now_torture;
static _Atomic uint64_t now_seed;
static atomic_uint now_threads;
static _Atomic int64_t current_ends_ns; /* 0: no limit */

const char *torture_now_name(void) {
    const struct torture *t = atomic_load_explicit(&now_torture, memory_order_relaxed);
    return t != NULL ? t->name : "(none)";
}

uint64_t torture_now_seed(void) {
    return atomic_load_explicit(&now_seed, memory_order_relaxed);
}

void torture_hung(int pid, const char *what) {
    dprintf(STDOUT_FILENO, "# STALLED pid %d: %s in %s, seed %llu\n", pid, what, torture_now_name(),
            (unsigned long long)torture_now_seed());
    while (option.freeze)
        pause();
    if (pid == getpid())
        abort();
}

/* ---- watchdog ---- */
static uint64_t progress_of_all(void) {
    uint64_t n = atomic_load_explicit(&torture_ended, memory_order_relaxed);
    for (unsigned i = 0; i < MAX_THREADS; i++)
        n += atomic_load_explicit(&torture_slots[i].progress, memory_order_relaxed);
    return n;
}

static void report_threads(void) {
    unsigned shown = 0;
    for (unsigned i = 0; i < MAX_THREADS; i++) {
        const struct slot *slot = &torture_slots[i];
        int tid = atomic_load_explicit(&slot->tid, memory_order_relaxed);
        if (tid == 0)
            continue;
        if (++shown <= 100)
            dprintf(STDOUT_FILENO, "#   thread %d: %llu operations, last at %s\n", tid,
                    (unsigned long long)atomic_load_explicit(&slot->progress, memory_order_relaxed),
                    atomic_load_explicit(&slot->last, memory_order_relaxed));
    }
    if (shown > 100)
        dprintf(STDOUT_FILENO, "#   and %u threads more\n", shown - 100);
}

static void *watch(void *unused) {
    (void)unused;
    uint64_t seen = 0;
    int64_t since = now_ns(CLOCK_MONOTONIC);
    for (;;) {
        sleep_ms(100);
        uint64_t progress = progress_of_all();
        int64_t now = now_ns(CLOCK_MONOTONIC);
        int64_t ends = atomic_load_explicit(&current_ends_ns, memory_order_relaxed);
        if (ends != 0 && now >= ends)
            atomic_store_explicit(&current.stop, true, memory_order_relaxed);
        if (progress != seen) {
            seen = progress;
            since = now;
        } else if (now - since >= (int64_t)option.stall * NS_PER_S) {
            dprintf(STDOUT_FILENO, "# no progress for %llu s; torture %s, seed %llu, %u threads\n",
                    (unsigned long long)option.stall, torture_now_name(), (unsigned long long)torture_now_seed(),
                    atomic_load_explicit(&now_threads, memory_order_relaxed));
            report_threads();
            torture_hung(getpid(), "no progress");
        }
    }
    return NULL;
}

static void start_watchdog(void) {
    sigset_t all, before;
    pthread_t id;
    pthread_attr_t attr;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_attr_small(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&id, &attr, watch, NULL) != 0) {
        dprintf(STDERR_FILENO, "torture: cannot start the watchdog\n");
        exit(2);
    }
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* A crash says what ran; write and nothing else, the state of the process is unknown. */
static void crashed(int number, siginfo_t *info, void *context) {
    (void)context;
    char text[256];
    int n = snprintf(text, sizeof text, "# STALLED pid %d: signal %d at address %p in %s, seed %llu\n", (int)getpid(),
                     number, info->si_addr, torture_now_name(), (unsigned long long)torture_now_seed());
    if (write(STDOUT_FILENO, text, (size_t)n) != n)
        _exit(3);
    while (option.freeze)
        pause();
    signal(number, SIG_DFL); /* returning repeats the fault */
}

static void catch_crashes(void) {
    struct sigaction action = {.sa_sigaction = crashed, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    if (HAVE_TSAN || HAVE_ASAN)
        return; /* the sanitizer's own report says more */
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}

/* ---- command line ---- */
static void refuse(const char *what, const char *text) {
    fprintf(stderr, "torture: %s '%s' (see the head of driver.c; --list names the tortures)\n", what, text);
    exit(2);
}

static uint64_t number(const char *name, const char *text) {
    char *end;
    errno = 0;
    uint64_t n = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0)
        refuse(name, text);
    return n;
}

static bool named(const char *list, const char *name) {
    size_t n = strlen(name);
    for (; *list != '\0'; list += strcspn(list, ","), list += *list == ',')
        if (strcspn(list, ",") == n && strncmp(list, name, n) == 0)
            return true;
    return false;
}

static const struct torture *find(const char *name, size_t length) {
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
        for (const struct torture *t = groups[g]; t->name != NULL; t++)
            if (strlen(t->name) == length && strncmp(t->name, name, length) == 0)
                return t;
    return NULL;
}

static void check_names(const char *list) {
    for (const char *at = list; *at != '\0'; at += strcspn(at, ","), at += *at == ',')
        if (find(at, strcspn(at, ",")) == NULL)
            refuse("no such torture in", list);
}

static void read_options(int argc, char **argv) {
    option.seed = (uint64_t)now_ns(CLOCK_REALTIME) % 1000000000 + (uint64_t)getpid();
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        if (strcmp(name, "--list") == 0)
            option.list = true;
        else if (strcmp(name, "--freeze") == 0)
            option.freeze = true;
        else if (strcmp(name, "--fatal") == 0)
            torture_fatal = true;
        else if (i + 1 == argc)
            refuse("unknown option, or value missing:", name);
        else if (strcmp(name, "--only") == 0)
            check_names(option.only = argv[++i]);
        else if (strcmp(name, "--skip") == 0)
            check_names(option.skip = argv[++i]);
        else if (strcmp(name, "--ops") == 0)
            option.ops = number(name, argv[++i]);
        else if (strcmp(name, "--seed") == 0)
            option.seed = number(name, argv[++i]);
        else if (strcmp(name, "--scale") == 0)
            option.scale = number(name, argv[++i]);
        else if (strcmp(name, "--seconds") == 0)
            option.seconds = number(name, argv[++i]);
        else if (strcmp(name, "--within") == 0)
            option.within = number(name, argv[++i]);
        else if (strcmp(name, "--stall") == 0)
            option.stall = number(name, argv[++i]);
        else if (strcmp(name, "--hours") == 0)
            option.hours = strtod(argv[++i], NULL);
        else if (strcmp(name, "--threads") == 0) {
            option.threads = (unsigned)number(name, argv[++i]);
            if (option.threads < 2 || option.threads > 1000)
                refuse("threads: 2 to 1000, not", argv[i]);
        } else
            refuse("unknown option", name);
    }
}

/* ---- running ---- */
static const char *why_not(const struct torture *t) {
    for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++)
        if ((t->needs & lacks[i].need) != 0 && lacks[i].lacking)
            return lacks[i].why;
    return NULL;
}

static int64_t first_start_ns;

/* When a torture that starts at `start` is stopped; 0: never. */
static int64_t end_of(int64_t start) {
    int64_t end = option.seconds != 0 ? start + (int64_t)option.seconds * NS_PER_S : 0;
    if (option.within != 0) {
        int64_t half = (first_start_ns + (int64_t)option.within * NS_PER_S - start) / 2;
        int64_t own = start + (half > NS_PER_S ? half : NS_PER_S);
        end = end == 0 || own < end ? own : end;
    }
    return end;
}

/* One point of the test; true if it passed. */
static bool run_one(const struct torture *t, uint64_t seed) {
    const char *why = why_not(t);
    if (why != NULL) {
        tap_skip(t->name, why);
        return true;
    }
    current.torture = t;
    current.seed = seed;
    current.ops = option.ops != 0 ? option.ops : t->ops * option.scale / 100;
    current.ops = current.ops != 0 ? current.ops : 1;
    current.threads = option.threads != 0 ? option.threads : t->threads;
    atomic_store_explicit(&now_torture, t, memory_order_relaxed);
    atomic_store_explicit(&now_seed, seed, memory_order_relaxed);
    atomic_store_explicit(&now_threads, current.threads, memory_order_relaxed);
    unsigned failures = torture_failures();
    uint64_t checks = torture_checks();
    int64_t start = now_ns(CLOCK_MONOTONIC);
    atomic_store(&current.stop, false);
    atomic_store(&current_ends_ns, end_of(start));
    t->run(&current);
    atomic_store(&current_ends_ns, 0);
    if (atomic_load(&current.stop))
        torture_note("stopped after its time");
    failures = torture_failures() - failures;
    tap_point(failures == 0, "%s: %s; %llu checks, %u failed, %u ms, seed %llu", t->name, t->what,
              (unsigned long long)(torture_checks() - checks), failures,
              (unsigned)((now_ns(CLOCK_MONOTONIC) - start) / 1000000), (unsigned long long)seed);
    DID();
    return failures == 0;
}

int main(int argc, char **argv) {
    read_options(argc, argv);
    if (option.list) {
        for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
            for (const struct torture *t = groups[g]; t->name != NULL; t++)
                printf("%-22s %s (%u threads, %llu operations)\n", t->name, t->what, t->threads,
                       (unsigned long long)t->ops);
        return 0;
    }
    const char *engine = getenv("SUBUTAI_ENGINE");
    for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++)
        if (lacks[i].need == NEEDS_BETTER)
            lacks[i].lacking = engine == NULL || strcmp(engine, "glibc") == 0;
    torture_enter();
    catch_crashes();
    start_watchdog();
    int64_t end = now_ns(CLOCK_MONOTONIC) + (int64_t)(option.hours * 3600e9);
    uint64_t seed = option.seed;
    unsigned failed = 0;
    do {
        first_start_ns = now_ns(CLOCK_MONOTONIC);
        for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
            for (const struct torture *t = groups[g]; t->name != NULL; t++)
                if ((option.only == NULL || named(option.only, t->name)) &&
                    (option.skip == NULL || !named(option.skip, t->name)))
                    failed += !run_one(t, seed);
        seed++;
    } while (now_ns(CLOCK_MONOTONIC) < end && failed == 0);
    tap_note("%llu checks, %u tortures failed", (unsigned long long)torture_checks(), failed);
    return tap_end();
}
