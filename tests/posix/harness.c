/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runner and helpers of the POSIX suite: one Check suite per test, so that each gets its own process, time limit and
 * TAP line as soon as it is over. Check's own TAP writer knows no skip and no description, hence the lines come from
 * here.
 *
 * usage: program [-l] [TEST...]    (-l lists; without names all tests run)
 */
#include "harness.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEST_SECONDS 20 /* Check multiplies by CK_TIMEOUT_MULTIPLIER */

extern const struct posix_test *const __start_posix_tests[];
extern const struct posix_test *const __stop_posix_tests[];

/* The running test's word to the runner, in memory shared with its process. */
static struct report { char skipped[200]; } * report;

/* Process that runs the test itself; every other one below it is a child of the test's own. */
static pid_t test_process;

const struct timespec time_nsec_too_big = {0, 1000000000}, time_nsec_negative = {0, -1},
                      time_seconds_negative = {-1, 0}, time_epoch = {0, 0};
atomic_int signals_seen;

const char *test_errno_name(int number) {
    const char *name = number == 0 ? "0" : strerrorname_np(number);
    return name != NULL ? name : "an unknown error";
}

void test_fail(const char *file, int line, const char *format, ...) {
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (getpid() == test_process)
        _ck_assert_failed(file, line, "Check failed", "%s", text);
    /* Check's message pipe belongs to the test process; a child tells the reader directly and its parent by status. */
    char whole[600];
    int n = snprintf(whole, sizeof whole, "# in a child process: %s:%d: %s\n", file, line, text);
    if (write(STDERR_FILENO, whole, (size_t)n) != n)
        _exit(98);
    _exit(99);
}

void test_skip(const char *reason) {
    if (getpid() != test_process)
        FAIL("skip in a child process: %s", reason);
    snprintf(report->skipped, sizeof report->skipped, "%s", reason);
    _exit(EXIT_SUCCESS);
}

pthread_t thread_start(void *(*routine)(void *), void *argument) {
    pthread_t thread;
    OK(pthread_create(&thread, NULL, routine, argument));
    return thread;
}

void *thread_join(pthread_t thread) {
    void *value;
    OK(pthread_join(thread, &value));
    return value;
}

void thread_join_cancelled(pthread_t thread) {
    CHECK(thread_join(thread) == PTHREAD_CANCELED);
}

void stay_on_one_cpu(void) {
    cpu_set_t set;
    SYS(sched_getaffinity(0, sizeof set, &set));
    for (int i = 0, n = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set) && n++ > 0)
            CPU_CLR(i, &set);
    SYS(sched_setaffinity(0, sizeof set, &set));
}

void sleep_ms(long ms) {
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0)
        CHECK_INT(errno, EINTR);
}

void settle(void) {
    sleep_ms(30);
}

void await(const atomic_int *counter, int value) {
    while (atomic_load(counter) < value)
        sleep_ms(1);
}

void *shared_memory(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

pid_t child_start(void (*routine)(void *), void *argument) {
    pid_t child = fork();
    SYS(child);
    if (child == 0) {
        routine(argument);
        _exit(0);
    }
    return child;
}

void child_join(pid_t child) {
    int status;
    pid_t got;
    do
        got = waitpid(child, &status, 0);
    while (got == -1 && errno == EINTR);
    CHECK_INT(got, child);
    if (WIFSIGNALED(status))
        FAIL("the child process died of signal %d", WTERMSIG(status));
    if (WEXITSTATUS(status) != 0)
        FAIL("the child process exited with %d", WEXITSTATUS(status));
}

void run_in_child(void (*routine)(void *), void *argument) {
    child_join(child_start(routine, argument));
}

struct timespec time_now(clockid_t clock) {
    struct timespec now;
    SYS(clock_gettime(clock, &now));
    return now;
}

struct timespec time_in(clockid_t clock, long ms) {
    struct timespec t = time_now(clock);
    long long ns = (long long)t.tv_sec * 1000000000 + t.tv_nsec + (long long)ms * 1000000;
    return (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
}

long time_since_ms(clockid_t clock, struct timespec start) {
    struct timespec now = time_now(clock);
    return (long)(((long long)now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000);
}

bool another_round(int done, int least, int most) {
    static struct timespec begin;
    if (done == 0)
        begin = time_now(CLOCK_MONOTONIC);
    return done < least || (done < most && time_since_ms(CLOCK_MONOTONIC, begin) < 2000);
}

static void count_signal(int signo) {
    (void)signo;
    atomic_fetch_add(&signals_seen, 1);
}

void signal_counter(int signo, bool restart) {
    struct sigaction action = {.sa_handler = count_signal, .sa_flags = restart ? SA_RESTART : 0};
    sigemptyset(&action.sa_mask);
    SYS(sigaction(signo, &action, NULL));
    atomic_store(&signals_seen, 0);
}

static void note_test_process(void) {
    test_process = getpid();
}

/* Those named, or all; without those named with a minus sign before. */
static bool wanted(const char *name, int argc, char **argv) {
    bool found = argc == 1 || argv[1][0] == '-';
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-' && strcmp(argv[i] + 1, name) == 0)
            return false;
        found = found || strcmp(argv[i], name) == 0;
    }
    return found;
}

/* One TAP line; returns false for a failure. Newlines would end the line, so a message is cut at the first. */
static bool run_one(const struct posix_test *test, int number) {
    TCase *tcase = tcase_create(test->check.name);
    tcase_set_timeout(tcase, TEST_SECONDS);
    tcase_add_checked_fixture(tcase, note_test_process, NULL);
    _tcase_add_test(tcase, &test->check, 0, 0, 0, 1);
    Suite *suite = suite_create(test->check.name);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_FORK);
    memset(report, 0, sizeof *report);
    srunner_run_all(runner, CK_SILENT);

    bool passed = srunner_ntests_run(runner) == 1 && srunner_ntests_failed(runner) == 0;
    printf("%s %d - %s: %s", passed ? "ok" : "not ok", number, test->check.name, test->what);
    if (passed && report->skipped[0] != '\0')
        printf(" # SKIP %s", report->skipped);
    printf("\n");
    if (!passed) {
        TestResult **failures = srunner_failures(runner);
        for (int i = 0; i < srunner_ntests_failed(runner); i++)
            printf("# %s:%d: %.*s\n", tr_lfile(failures[i]), tr_lno(failures[i]),
                   (int)strcspn(tr_msg(failures[i]), "\n"), tr_msg(failures[i]));
        free(failures);
    }
    fflush(stdout);
    srunner_free(runner);
    return passed;
}

/* Compilers emit the entries in any order; the reader wants the source's. */
static int by_source_line(const void *a, const void *b) {
    const TTest *x = &(*(const struct posix_test *const *)a)->check,
                *y = &(*(const struct posix_test *const *)b)->check;
    int files = strcmp(x->file, y->file);
    return files != 0 ? files : x->line - y->line;
}

int main(int argc, char **argv) {
    size_t n_known = (size_t)(__stop_posix_tests - __start_posix_tests);
    const struct posix_test **tests = malloc(n_known * sizeof *tests);
    report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (tests == NULL || report == MAP_FAILED) {
        printf("Bail out! no memory for the runner\n");
        return EXIT_FAILURE;
    }
    memcpy(tests, __start_posix_tests, n_known * sizeof *tests);
    qsort(tests, n_known, sizeof *tests, by_source_line);

    int n_wanted = 0, n_failed = 0, number = 0;
    bool list = argc == 2 && strcmp(argv[1], "-l") == 0;
    for (size_t i = 0; i < n_known; i++)
        if (list)
            printf("%s: %s\n", tests[i]->check.name, tests[i]->what);
        else
            n_wanted += wanted(tests[i]->check.name, argc, argv);
    if (!list) {
        if (n_wanted == 0)
            printf("Bail out! no such test\n");
        else
            printf("1..%d\n", n_wanted);
        fflush(stdout);
        for (size_t i = 0; i < n_known; i++)
            if (wanted(tests[i]->check.name, argc, argv))
                n_failed += !run_one(tests[i], ++number);
    }
    free(tests);
    return n_failed == 0 && (list || n_wanted > 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}
