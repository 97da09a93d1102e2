/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What `subutai check` has found, as text and as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_run.h"
#include "json_file.h"
#include "words.h"

enum { STUCK_MOST = 16 }; /* threads of a deadlock that are printed */

static const char *const verdict_names[] = {"same", "other_output", "other_schedule"};

static int by_value(const void *a, const void *b) {
    const uint64_t *p = a, *q = b;
    return (*p > *q) - (*p < *q);
}

struct values {
    uint64_t *list;
    size_t n;
};

static size_t n_distinct(struct values *v) {
    size_t n = 0;
    qsort(v->list, v->n, sizeof *v->list, by_value);
    for (size_t i = 0; i < v->n; i++)
        n += i == 0 || v->list[i] != v->list[i - 1];
    free(v->list);
    return n;
}

/*
 * A run that does not differ from the first one of its order is left out, whatever its hash says: where a run is cut
 * that was ended depends on the machine.
 */
static void count_distinct(const struct check *c, size_t *n_schedules, size_t *n_outputs) {
    struct values schedules = {cmd_allocate(c->n_orders * c->n_runs, sizeof *schedules.list), 0};
    struct values outputs = {cmd_allocate(c->n_orders * c->n_runs, sizeof *outputs.list), 0};
    for (const struct check_order *o = c->orders; o < c->orders + c->n_orders; o++)
        for (const struct check_run *run = o->runs; run < o->runs + c->n_runs; run++) {
            if (run == o->runs || run->has_other_schedule)
                schedules.list[schedules.n++] = run->schedule;
            if (run == o->runs || run->has_other_output)
                outputs.list[outputs.n++] = run->output;
        }
    *n_schedules = n_distinct(&schedules);
    *n_outputs = n_distinct(&outputs);
}

/* The first run that failed; NULL: none. */
static const struct check_run *first_failed(const struct check *c, const struct check_order *o) {
    for (size_t i = 0; i < c->n_runs; i++)
        if (check_failed(&o->runs[i]))
            return &o->runs[i];
    return NULL;
}

/* Words, each with its NUL behind it. */
struct words {
    char *text;
    size_t n;
};

static void add_word(struct words *w, const char *word) {
    size_t bytes = strlen(word) + 1;
    w->text = cmd_reallocate(w->text, w->n + bytes, 1);
    memcpy(w->text + w->n, word, bytes);
    w->n += bytes;
}

static void add_option(struct words *w, const char *name, const char *value) {
    char *word = cmd_format("--%s=%s", name, value);
    add_word(w, word);
    free(word);
}

/* "subutai run --engine det --seed 7 -- ./app", as a shell reads it, allocated. */
static char *repeat(const struct check *c, const struct check_order *o) {
    struct words w = {NULL, 0};
    if (c->given_library != NULL)
        add_option(&w, "library", c->given_library);
    for (size_t i = 0; i < SBT_N_OPTIONS; i++)
        if (c->settings.text[i] != NULL && i != SBT_OPT_ENGINE && i != SBT_OPT_SEED)
            add_option(&w, sbt_option_table[i].name, c->settings.text[i]);
    add_word(&w, "--");
    for (char **word = c->argv; *word != NULL; word++)
        add_word(&w, *word);
    char *quoted = cmd_allocate(4 * w.n + 8, 1);
    size_t length = words_quote(quoted, 4 * w.n + 8, w.text, w.n);
    char *text = cmd_format("subutai run --engine det --seed %" PRIu64 " %.*s", o->seed, (int)length, quoted);
    free(w.text);
    free(quoted);
    return text;
}

struct findings {
    size_t n_failing, n_other_output, n_other_schedule; /* orders */
    size_t n_schedules, n_outputs;
    const struct check_order *failing; /* the first that always fails; or the first that does */
};

static struct findings find(const struct check *c) {
    struct findings f = {.n_failing = 0};
    count_distinct(c, &f.n_schedules, &f.n_outputs);
    for (size_t i = 0; i < c->n_orders; i++) {
        const struct check_order *o = &c->orders[i];
        f.n_failing += o->n_failed > 0;
        f.n_other_output += o->n_runs[CHECK_OTHER_OUTPUT] > 0;
        f.n_other_schedule += o->n_runs[CHECK_OTHER_SCHEDULE] > 0;
        if (o->n_failed > 0 && (f.failing == NULL || (o->n_failed == c->n_runs && f.failing->n_failed < c->n_runs)))
            f.failing = o;
    }
    return f;
}

static int status_of(const struct findings *f) {
    return f->n_failing + f->n_other_output + f->n_other_schedule > 0 ? CMD_DIFFERENT : CMD_OK;
}

/* ---- text ---- */

/* Its threads wait for each other, and it was ended because of that, or for another reason meanwhile. */
static const char *outcome_of(const struct check_run *run, char buffer[static 32]) {
    return run->n_stuck > 0 && check_was_ended(run) ? "deadlock" : trial_outcome(&run->trial, buffer);
}

static void print_failure(const struct check *c, const struct check_order *o, const struct check_run *failed) {
    char outcome[32];
    bool is_unknown = failed->trial.timed_out && failed->n_stuck == 0;
    printf("seed %" PRIu64 ": %s in %zu of %zu runs%s\n", o->seed, outcome_of(failed, outcome), o->n_failed, c->n_runs,
           is_unknown ? ": a loop, a wait for the outside, or --timeout is too short" : "");
    for (size_t i = 0; i < failed->n_stuck && i < STUCK_MOST; i++)
        printf("  thread %" PRIu32 "%s cannot go on: %s\n", failed->stuck[i].thread,
               failed->stuck[i].thread == 0 ? " (main)" : "", failed->stuck[i].text);
    if (failed->n_stuck > STUCK_MOST)
        printf("  and %zu more\n", failed->n_stuck - STUCK_MOST);
    if (failed->said != NULL && failed->n_stuck == 0)
        printf("  the library said: %s\n", failed->said);
}

/* What makes runs differ where the outside and futexes do not. */
static const char *own_cause(const struct check *c) {
    return c->is_serial ? "the input is another (time, random numbers, process ids, addresses)"
                        : "threads race for data without synchronization, or the input is another (time, random "
                          "numbers, process ids, addresses); with --serial no threads race";
}

/* What the order does not decide. */
static bool tells_futexes(const struct check *c, const struct check_run *run) {
    return run->n_futexes > 0 && !c->is_serial;
}

static void print_difference(const struct check *c, const struct check_order *o) {
    const struct check_run *first = &o->runs[0], *other = &o->runs[o->other];
    printf("seed %" PRIu64 ": another schedule in %zu of %zu runs; run %zu differs from run 1 after %" PRIu64
           " operations and ends of waits:\n",
           o->seed, o->n_runs[CHECK_OTHER_SCHEDULE], c->n_runs, o->other + 1, o->n_common);
    for (int i = 0; i < 2; i++)
        printf("  run %zu: %s\n", i == 0 ? (size_t)1 : o->other + 1, o->difference[i]);
    if (first->n_outside + other->n_outside > 0)
        printf("  %" PRIu64 " and %" PRIu64 " returns from outside: the outside decides when they come\n",
               first->n_outside, other->n_outside);
    if (tells_futexes(c, first) || tells_futexes(c, other))
        printf("  %" PRIu64 " and %" PRIu64 " operations on futexes: whether they are made is not the engine's order "
               "(with --serial it is)\n",
               first->n_futexes, other->n_futexes);
    if (first->n_outside + other->n_outside == 0 && !tells_futexes(c, first) && !tells_futexes(c, other))
        printf("  %s\n", own_cause(c));
    if (first->said != NULL || other->said != NULL)
        printf("  the library said: %s\n", first->said != NULL ? first->said : other->said);
}

static void print_output(const struct check_order *o) {
    for (int i = 0; i < 2; i++) {
        printf("  run %zu: %s", i == 0 ? (size_t)1 : o->other_output + 1, o->output.stream);
        if (o->output.line > 0)
            printf(", line %zu", o->output.line);
        printf(": %s\n", o->output.text[i]);
    }
}

static void print_order(const struct check *c, const struct check_order *o) {
    const struct check_run *failed = first_failed(c, o);
    if (failed != NULL)
        print_failure(c, o, failed);
    if (o->n_runs[CHECK_OTHER_OUTPUT] > 0)
        printf("seed %" PRIu64 ": the same schedule and another output in %zu of %zu runs: %s\n", o->seed,
               o->n_runs[CHECK_OTHER_OUTPUT], c->n_runs, own_cause(c));
    if (o->n_runs[CHECK_OTHER_OUTPUT] > 0)
        print_output(o);
    if (o->n_runs[CHECK_OTHER_SCHEDULE] > 0)
        print_difference(c, o);
}

static void print_run(const struct check *c, const struct check_run *run) {
    printf("schedule %016" PRIx64 ", %" PRIu64 " operation%s, %" PRIu64 " return%s from outside", run->schedule,
           run->n_ops, cmd_s(run->n_ops), run->n_outside, cmd_s(run->n_outside));
    if (run->n_processes > 1)
        printf(", of %zu processes", run->n_processes);
    if (tells_futexes(c, run))
        printf(", %" PRIu64
               " of them on futexes: whether they are made is not the engine's order (with --serial it is)",
               run->n_futexes);
    putchar('\n');
}

static void text(const struct check *c, const struct findings *f) {
    const struct check_run *first = &c->orders[0].runs[0];
    if (first->n_processes == 0)
        printf("the program does not synchronize: its order is the only one\n");
    for (size_t i = 0; i < c->n_orders; i++)
        print_order(c, &c->orders[i]);
    printf("%zu order%s, %zu run%s of each: %zu schedule%s, %zu output%s; %zu order%s failed, %zu with another output, "
           "%zu with another schedule\n",
           c->n_orders, cmd_s(c->n_orders), c->n_runs, cmd_s(c->n_runs), f->n_schedules, cmd_s(f->n_schedules),
           f->n_outputs, cmd_s(f->n_outputs), f->n_failing, cmd_s(f->n_failing), f->n_other_output,
           f->n_other_schedule);
    if (c->n_orders == 1 && status_of(f) == CMD_OK)
        print_run(c, first);
    if (f->failing != NULL) {
        char *command = repeat(c, f->failing);
        printf("to repeat it: %s\n", command);
        free(command);
    }
}

/* ---- JSON ---- */

static void json_deadlock(struct json *j, const struct check_run *run) {
    json_open(j, "deadlock", '[');
    for (const struct check_stuck *s = run->stuck; s < run->stuck + run->n_stuck; s++) {
        const char *object = schedule_object_name(s->op);
        json_open(j, NULL, '{');
        json_uint(j, "process", s->process);
        json_uint(j, "thread", s->thread);
        json_text(j, "waits_in", schedule_op_name(s->op));
        if (s->object != 0 && object != NULL) {
            json_text(j, "object_kind", object);
            json_uint(j, "object", s->object);
        }
        if (s->other != SCHEDULE_NONE)
            json_uint(j, object != NULL ? "held_by" : "joins", s->other);
        if (s->place != NULL)
            json_text(j, "place", s->place);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void json_order(struct json *j, const struct check *c, const struct check_order *o) {
    char hash[17], outcome[32];
    const struct check_run *first = &o->runs[0], *failed = first_failed(c, o);
    snprintf(hash, sizeof hash, "%016" PRIx64, first->schedule);
    json_line(j);
    json_open(j, NULL, '{');
    json_uint(j, "seed", o->seed);
    json_text(j, "verdict", verdict_names[o->verdict]);
    json_uint(j, "other_output", o->n_runs[CHECK_OTHER_OUTPUT]);
    json_uint(j, "other_schedule", o->n_runs[CHECK_OTHER_SCHEDULE]);
    json_uint(j, "failed", o->n_failed);
    json_text(j, "outcome", outcome_of(failed != NULL ? failed : first, outcome));
    json_deadlock(j, failed != NULL ? failed : first);
    json_text(j, "said", failed != NULL ? failed->said : first->said);
    json_uint(j, "processes", first->n_processes);
    json_text(j, "schedule", first->n_processes > 0 ? hash : NULL);
    json_uint(j, "operations", first->n_ops);
    json_uint(j, "futexes", first->n_futexes);
    json_uint(j, "outside", first->n_outside);
    json_uint(j, "stalls", first->n_stalls);
    snprintf(hash, sizeof hash, "%016" PRIx64, first->output);
    json_text(j, "output", hash);
    if (o->output.stream != NULL) {
        json_open(j, "output_difference", '{');
        json_uint(j, "run", o->other_output + 1);
        json_text(j, "in", o->output.stream);
        if (o->output.line > 0)
            json_uint(j, "line", o->output.line);
        json_text(j, "a", o->output.text[0]);
        json_text(j, "b", o->output.text[1]);
        json_close(j, '}');
    }
    if (o->n_runs[CHECK_OTHER_SCHEDULE] > 0) {
        json_open(j, "difference", '{');
        json_uint(j, "run", o->other + 1);
        json_uint(j, "common", o->n_common);
        json_text(j, "a", o->difference[0]);
        json_text(j, "b", o->difference[1]);
        json_close(j, '}');
    }
    json_close(j, '}');
}

static void json(const struct check *c, const struct findings *f) {
    struct json j = json_on(stdout);
    char *command = f->failing != NULL ? repeat(c, f->failing) : NULL;
    json_open(&j, NULL, '{');
    json_uint(&j, "runs", c->n_runs);
    json_uint(&j, "orders", c->n_orders);
    json_uint(&j, "schedules", f->n_schedules);
    json_uint(&j, "outputs", f->n_outputs);
    json_uint(&j, "failing", f->n_failing);
    json_uint(&j, "other_output", f->n_other_output);
    json_uint(&j, "other_schedule", f->n_other_schedule);
    json_text(&j, "repeat", command);
    json_open(&j, "by_order", '[');
    for (size_t i = 0; i < c->n_orders; i++)
        json_order(&j, c, &c->orders[i]);
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
    free(command);
}

int check_report(const struct check *c) {
    struct findings f = find(c);
    (c->json ? json : text)(c, &f);
    return status_of(&f);
}
