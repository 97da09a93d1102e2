/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs the tests of a program: one Check suite for each, so that each gets its own process, time limit and TAP line as
 * soon as it is over. Check's own TAP writer knows no skip and no description, hence the lines come from here.
 *
 * usage: program [-l] [TEST...]    (-l lists; without names all tests run; -TEST leaves one out)
 *
 * A test may take 60 s, or what CK_DEFAULT_TIMEOUT says; CK_TIMEOUT_MULTIPLIER, for busy machines and emulators,
 * multiplies either.
 */
#include "suite.h"

#include "tap.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TEST_SECONDS 60 /* of which none takes more than a few on a machine that does nothing else */

extern const struct suite_test *const __start_suite_tests[];
extern const struct suite_test *const __stop_suite_tests[];

/* The running test's word to the runner, in memory shared with its process. */
static struct report { char skipped[200]; } * report;

/* Process that runs the test itself; every other one below it is a child of the test's own. */
static pid_t test_process;

void check_failed(const char *file, int line, const char *text) {
    if (getpid() == test_process)
        _ck_assert_failed(file, line, "Check failed", "%s", text);
    /* Check's message pipe belongs to the test process; a child tells the reader directly and its parent by status. */
    char whole[1024];
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

static int n_times(const struct suite_test *test) {
    return test->n == NULL ? 1 : test->n();
}

/* One TAP line. */
static void run_one(const struct suite_test *test, int number) {
    TCase *tcase = tcase_create(test->check.name);
    if (getenv("CK_DEFAULT_TIMEOUT") == NULL)
        tcase_set_timeout(tcase, TEST_SECONDS);
    tcase_add_checked_fixture(tcase, note_test_process, NULL);
    _tcase_add_test(tcase, &test->check, 0, 0, number, number + 1);
    Suite *suite = suite_create(test->check.name);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_FORK);
    memset(report, 0, sizeof *report);
    srunner_run_all(runner, CK_SILENT);

    char name[300], which[16] = "";
    if (test->n != NULL)
        snprintf(which, sizeof which, " %d", number);
    snprintf(name, sizeof name, "%s%s%s%s", test->check.name, which, test->what[0] != '\0' ? ": " : "", test->what);
    bool passed = srunner_ntests_run(runner) == 1 && srunner_ntests_failed(runner) == 0;
    if (passed && report->skipped[0] != '\0')
        tap_skip(name, report->skipped);
    else
        tap_point(passed, "%s", name);
    if (!passed) {
        TestResult **failures = srunner_failures(runner);
        for (int i = 0; i < srunner_ntests_failed(runner); i++)
            tap_note("%s:%d: %s", tr_lfile(failures[i]), tr_lno(failures[i]), tr_msg(failures[i]));
        free(failures);
    }
    srunner_free(runner);
}

/* Compilers emit the entries in any order; the reader wants the source's. */
static int by_source_line(const void *a, const void *b) {
    const TTest *x = &(*(const struct suite_test *const *)a)->check,
                *y = &(*(const struct suite_test *const *)b)->check;
    int files = strcmp(x->file, y->file);
    return files != 0 ? files : x->line - y->line;
}

static int run_wanted(const struct suite_test *const *tests, size_t n_known, int argc, char **argv) {
    int n = 0;
    for (size_t i = 0; i < n_known; i++)
        n += wanted(tests[i]->check.name, argc, argv) ? n_times(tests[i]) : 0;
    if (n == 0)
        return tap_bail_out("no such test");
    tap_plan((unsigned)n);
    for (size_t i = 0; i < n_known; i++)
        for (int k = 0; wanted(tests[i]->check.name, argc, argv) && k < n_times(tests[i]); k++)
            run_one(tests[i], k);
    return tap_end();
}

int main(int argc, char **argv) {
    size_t n_known = (size_t)(__stop_suite_tests - __start_suite_tests);
    const struct suite_test **tests = malloc(n_known * sizeof *tests);
    report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (tests == NULL || report == MAP_FAILED)
        return tap_bail_out("no memory for the runner");
    memcpy(tests, __start_suite_tests, n_known * sizeof *tests);
    qsort(tests, n_known, sizeof *tests, by_source_line);
    int status = 0;
    if (argc == 2 && strcmp(argv[1], "-l") == 0)
        for (size_t i = 0; i < n_known; i++)
            printf("%s: %s\n", tests[i]->check.name, tests[i]->what);
    else
        status = run_wanted(tests, n_known, argc, argv);
    free(tests);
    return status;
}
