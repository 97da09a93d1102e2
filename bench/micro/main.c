/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * subutai-bench KIND --threads N [...]: one run of one kind, one line of JSON on stdout.
 *
 * Exit status: 0 the run's invariants hold; 1 they do not, or the run did not end in time; 2 wrong arguments.
 * The clocks are read by the last worker itself, so that neither thread creation nor exit is measured; CPU time is
 * the process's, so that service threads of an engine count.
 */
#include "bench.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "json_file.h"

static struct bench bench;
static const struct bench_kind *kind;
static int gate[2], done[2]; /* pipes: the gate opens by end-of-file, done carries one byte from the last worker */
static atomic_int n_at_gate, n_finished;
static uint64_t start_wall_ns, start_cpu_ns, end_wall_ns, end_cpu_ns;
static double turns_per_ns; /* of the loop in spin_turns */

_Noreturn void bench_fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "subutai-bench %s: ", kind != NULL ? kind->name : "");
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    _exit(1);
}

_Noreturn void bench_refuse(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("subutai-bench: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(2);
}

void bench_check_equal(const char *what, uint64_t got, uint64_t want) {
    if (got != want)
        bench_fail("invariant violated: %s is %" PRIu64 ", must be %" PRIu64, what, got, want);
}

void *bench_alloc(size_t n, size_t size) {
    size_t bytes = (n * size + BENCH_LINE - 1) / BENCH_LINE * BENCH_LINE;
    void *memory = aligned_alloc(BENCH_LINE, bytes);
    if (memory == NULL)
        bench_fail("out of memory");
    return memset(memory, 0, bytes);
}

uint64_t bench_total_ops(const struct bench *b) {
    uint64_t total = 0;
    for (int i = 0; i < b->n_workers; i++)
        total += b->workers[i].ops;
    return total;
}

int bench_n_threads(const struct bench *b) {
    return b->threads;
}

int bench_at_least_two(const struct bench *b) {
    return b->threads > 2 ? b->threads : 2;
}

int bench_n_producers(const struct bench *b) {
    return b->threads / 2 > 0 ? b->threads / 2 : 1;
}

uint64_t bench_items_taken(const struct bench *b, const uint64_t *sums) {
    uint64_t ops[2] = {0, 0}, sum[2] = {0, 0};
    for (int i = 0; i < b->n_workers; i++) {
        ops[i >= bench_n_producers(b)] += b->workers[i].ops;
        sum[i >= bench_n_producers(b)] += sums[i];
    }
    bench_check_equal("the number of items taken", ops[1], ops[0]);
    bench_check_equal("the sum of items taken", sum[1], sum[0]);
    return ops[1];
}

static uint64_t clock_ns(clockid_t clock) {
    struct timespec t;
    if (clock_gettime(clock, &t) != 0)
        bench_fail("clock_gettime: %s", strerror(errno));
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void spin_turns(uint64_t turns) {
    for (; turns > 0; turns--)
        __asm__ volatile("");
}

/* The fastest of many short trials: a trial that was interrupted only seems slow. */
static void calibrate(void) {
    const uint64_t turns = 100000;
    uint64_t best_ns = UINT64_MAX;
    for (int i = 0; i < 50; i++) {
        uint64_t begin = clock_ns(CLOCK_MONOTONIC);
        spin_turns(turns);
        uint64_t took = clock_ns(CLOCK_MONOTONIC) - begin;
        best_ns = took < best_ns ? took : best_ns;
    }
    turns_per_ns = (double)turns / (double)(best_ns > 0 ? best_ns : 1);
}

void bench_busy_ns(uint64_t ns) {
    if (ns != 0)
        spin_turns((uint64_t)((double)ns * turns_per_ns));
}

static void *worker_main(void *argument) {
    struct bench_worker *w = argument;
    char byte;
    ssize_t n;
    atomic_fetch_add(&n_at_gate, 1);
    while ((n = read(gate[0], &byte, 1)) < 0 && errno == EINTR)
        ;
    if (n != 0)
        bench_fail("start gate: %s", strerror(errno));
    kind->worker(&bench, w);
    /* acq_rel: the last worker, and the main thread after the byte, see what every worker wrote. */
    if (atomic_fetch_add_explicit(&n_finished, 1, memory_order_acq_rel) + 1 == bench.n_workers) {
        end_wall_ns = clock_ns(CLOCK_MONOTONIC);
        end_cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        if (write(done[1], "", 1) != 1)
            bench_fail("end of the run: %s", strerror(errno));
    }
    return NULL;
}

/* True if the last worker has finished within that time. */
static bool finished_within(double seconds) {
    struct pollfd poll_done = {.fd = done[0], .events = POLLIN};
    uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + (uint64_t)(seconds * 1e9);
    for (;;) {
        uint64_t now = clock_ns(CLOCK_MONOTONIC);
        int left_ms = now < deadline ? (int)((deadline - now + 999999) / 1000000) : 0;
        int n = poll(&poll_done, 1, left_ms);
        if (n > 0)
            return true;
        if (n < 0 && errno != EINTR)
            bench_fail("poll: %s", strerror(errno));
        if (n == 0 && left_ms == 0)
            return false;
    }
}

static void run(double limit_seconds) {
    if (pipe(gate) != 0 || pipe(done) != 0)
        bench_fail("pipe: %s", strerror(errno));
    if (bench.cs_ns != 0 || bench.think_ns != 0)
        calibrate();
    bench.n_workers = kind->n_workers(&bench);
    bench.workers = bench_alloc((size_t)bench.n_workers, sizeof *bench.workers);
    kind->setup(&bench);
    for (int i = 0; i < bench.n_workers; i++) {
        bench.workers[i].id = i;
        bench_must(pthread_create(&bench.workers[i].thread, NULL, worker_main, &bench.workers[i]), "pthread_create");
    }
    while (atomic_load(&n_at_gate) < bench.n_workers)
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    start_cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    start_wall_ns = clock_ns(CLOCK_MONOTONIC);
    close(gate[1]);
    bool finished = !bench.by_ops && finished_within(bench.seconds);
    if (!finished && !bench.by_ops)
        atomic_store(&bench.stop, true);
    if (!finished && !finished_within(limit_seconds))
        bench_fail("hang: %d of %d threads have not finished %g s after they should have",
                   bench.n_workers - atomic_load(&n_finished), bench.n_workers, limit_seconds);
    for (int i = 0; i < bench.n_workers; i++)
        bench_must(pthread_join(bench.workers[i].thread, NULL), "pthread_join");
}

/* Of this program's own memory image; getrusage's figure starts with that of the process which started it. */
static long peak_kib(void) {
    long kib = -1;
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL && sscanf(line, "VmHWM: %ld", &kib) != 1)
        ;
    if (status == NULL || kib < 0)
        bench_fail("/proc/self/status tells no VmHWM");
    fclose(status);
    return kib;
}

static void put_fairness(struct json *j) {
    uint64_t min = UINT64_MAX, max = 0;
    for (int i = 0; i < bench.n_workers; i++) {
        min = bench.workers[i].ops < min ? bench.workers[i].ops : min;
        max = bench.workers[i].ops > max ? bench.workers[i].ops : max;
    }
    json_uint(j, "ops_min", min);
    json_uint(j, "ops_max", max);
}

static void report(uint64_t ops) {
    uint64_t wall_ns = end_wall_ns - start_wall_ns;
    struct json j = json_on(stdout);
    if (ops == 0)
        bench_fail("no operation was done");
    json_open(&j, NULL, '{');
    json_text(&j, "kind", kind->name);
    json_int(&j, "threads", bench.threads);
    json_uint(&j, "ops", ops);
    json_uint(&j, "wall_ns", wall_ns);
    json_uint(&j, "cpu_ns", end_cpu_ns - start_cpu_ns);
    json_real(&j, "ns_per_op", (double)wall_ns / (double)ops, 3);
    json_int(&j, "peak_kib", peak_kib());
    if (kind->uses & BENCH_FAIRNESS)
        put_fairness(&j);
    if (bench.put != NULL)
        bench.put(&bench, &j);
    json_close(&j, '}');
    json_end(&j);
    if (fflush(stdout) != 0)
        bench_fail("standard output: %s", strerror(errno));
}

static void list_kinds(void) {
    for (size_t i = 0; bench_kinds[i] != NULL; i++)
        puts(bench_kinds[i]->name);
}

static void help(void) {
    puts("usage: subutai-bench KIND --threads N [--cs-ns NS] [--think-ns NS] [--write-percent P]\n"
         "                     [--lock NAME] [--lines N] [--seconds S | --ops N] [--limit S]\n"
         "       subutai-bench --list\n"
         "Runs one kind of synchronization and prints one line of JSON.\n"
         "  --threads N        threads (default 2)\n"
         "  --cs-ns NS         busy time inside the critical section (default 0)\n"
         "  --think-ns NS      busy time outside it (default 0)\n"
         "  --write-percent P  share of write locks (rwlock only, default 10)\n"
         "  --lock NAME        lock (locks only, default posix); with +yield behind it waiting threads yield\n"
         "  --lines N          shared cache lines that a section touches (locks only, default 5)\n"
         "  --seconds S        run time (default 0.3)\n"
         "  --ops N            run until N operations are done instead\n"
         "  --limit S          seconds after which a run counts as hung (default 60)\n"
         "KIND, and what one operation is:");
    for (size_t i = 0; bench_kinds[i] != NULL; i++)
        printf("  %-18s %s\n", bench_kinds[i]->name, bench_kinds[i]->operation);
}

static const struct bench_kind *find_kind(const char *name) {
    for (size_t i = 0; bench_kinds[i] != NULL; i++)
        if (strcmp(bench_kinds[i]->name, name) == 0)
            return bench_kinds[i];
    char legal[512] = "";
    for (size_t i = 0; bench_kinds[i] != NULL; i++) {
        strcat(legal, i == 0 ? "" : ", ");
        strcat(legal, bench_kinds[i]->name);
    }
    bench_refuse("unknown kind '%s' (legal: %s)", name, legal);
}

static double parse_number(const char *option, const char *text, double min, double max, bool whole) {
    char *end;
    errno = 0;
    double value = text != NULL && *text != '\0' ? strtod(text, &end) : (end = (char *)"?", 0);
    if (*end != '\0' || errno != 0 || !(value >= min && value <= max) || (whole && value != (double)(uint64_t)value))
        bench_refuse("%s: illegal value '%s' (legal: %s%.12g to %.12g)", option, text != NULL ? text : "",
                     whole ? "whole numbers, " : "", min, max);
    return value;
}

/* The program beside this one that has the kind: rust-barrier is subutai-bench-rust's. */
_Noreturn static void run_elsewhere(const struct bench_kind *k, double limit_seconds) {
    char path[4096], threads[24], amount[32], limit[32];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
    if (n <= 0)
        bench_refuse("/proc/self/exe: %s", strerror(errno));
    path[n] = '\0';
    snprintf(strrchr(path, '/') + 1, 64, "subutai-bench-%.*s", (int)strcspn(k->name, "-"), k->name);
    snprintf(threads, sizeof threads, "%d", bench.threads);
    if (bench.by_ops)
        snprintf(amount, sizeof amount, "%" PRIu64, bench.ops_asked);
    else
        snprintf(amount, sizeof amount, "%g", bench.seconds);
    snprintf(limit, sizeof limit, "%g", limit_seconds);
    execl(path, path, k->name, "--threads", threads, bench.by_ops ? "--ops" : "--seconds", amount, "--limit", limit,
          (char *)NULL);
    bench_refuse("%s needs %s: %s; it is built where there is a compiler for it", k->name, path, strerror(errno));
}

/* The options behind the kind. Returns the seconds after which a run counts as hung. */
static double read_options(int argc, char **argv) {
    double limit_seconds = 60;
    for (int i = 2; i < argc; i += 2) {
        const char *option = argv[i], *text = argv[i + 1]; /* argv[argc] is NULL: a missing value */
        if (strcmp(option, "--threads") == 0)
            bench.threads = (int)parse_number(option, text, 1, 10000, true);
        else if (strcmp(option, "--cs-ns") == 0)
            bench.cs_ns = (uint64_t)parse_number(option, text, 0, 1e9, true);
        else if (strcmp(option, "--think-ns") == 0)
            bench.think_ns = (uint64_t)parse_number(option, text, 0, 1e9, true);
        else if (strcmp(option, "--write-percent") == 0)
            bench.write_percent = (unsigned)parse_number(option, text, 0, 100, true);
        else if (strcmp(option, "--lock") == 0)
            bench.lock = text != NULL ? text : "";
        else if (strcmp(option, "--lines") == 0)
            bench.lines = (unsigned)parse_number(option, text, 1, BENCH_MOST_LINES, true);
        else if (strcmp(option, "--seconds") == 0)
            bench.seconds = parse_number(option, text, 0.001, 86400, false), bench.by_ops = false;
        else if (strcmp(option, "--ops") == 0)
            bench.ops_asked = (uint64_t)parse_number(option, text, 1, 1e12, true), bench.by_ops = true;
        else if (strcmp(option, "--limit") == 0)
            limit_seconds = parse_number(option, text, 0.1, 86400, false);
        else
            bench_refuse(
                "unknown option '%s' (legal: --threads, --cs-ns, --think-ns, --write-percent, --lock, --lines, "
                "--seconds, --ops, --limit)",
                option);
    }
    return limit_seconds;
}

/* An option that means nothing to the kind is refused; --lock and --lines have a default where they mean something. */
static void check_uses(const struct bench_kind *wanted) {
    const struct {
        const char *option;
        bool given;
        unsigned use;
    } options[] = {
        {"--cs-ns", bench.cs_ns != 0, BENCH_CS},
        {"--think-ns", bench.think_ns != 0, BENCH_THINK},
        {"--write-percent", bench.write_percent != 10, BENCH_WRITES},
        {"--lock", bench.lock != NULL, BENCH_LOCKS},
        {"--lines", bench.lines != 0, BENCH_LOCKS},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].given && !(wanted->uses & options[i].use))
            bench_refuse("%s has no %s", wanted->name, options[i].option);
    bench.lock = bench.lock != NULL ? bench.lock : "posix";
    bench.lines = bench.lines != 0 ? bench.lines : 5;
}

int main(int argc, char **argv) {
    bench.threads = 2;
    bench.seconds = 0.3;
    bench.write_percent = 10;
    if (argc < 2)
        bench_refuse("no kind given (subutai-bench --help)");
    if (strcmp(argv[1], "--list") == 0 || strcmp(argv[1], "--help") == 0) {
        argv[1][2] == 'l' ? list_kinds() : help();
        return 0;
    }
    const struct bench_kind *wanted = find_kind(argv[1]);
    double limit_seconds = read_options(argc, argv);
    check_uses(wanted);
    if (wanted->worker == NULL)
        run_elsewhere(wanted, limit_seconds);
    kind = wanted;
    run(limit_seconds);
    report(kind->finish(&bench));
    return 0;
}
