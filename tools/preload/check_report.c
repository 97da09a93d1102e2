/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What `subutai check` has found, as text and as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_run.h"
#include "json_file.h"
#include "words.h"

static const char *const verdict_names[] = {"same", "other_output", "other_schedule"};

/* How many different values the first runs of the orders have. */
static size_t n_distinct(const struct check *c, uint64_t (*value)(const struct check_run *)) {
    size_t n = 0;
    for (size_t i = 0; i < c->n_orders; i++) {
        size_t j = 0;
        while (j < i && value(&c->orders[j].runs[0]) != value(&c->orders[i].runs[0]))
            j++;
        n += j == i;
    }
    return n;
}

static uint64_t schedule_of(const struct check_run *run) {
    return run->schedule;
}

static uint64_t output_of(const struct check_run *run) {
    return run->output;
}

/* The first run that failed; NULL: none. */
static const struct check_run *first_failed(const struct check *c, const struct check_order *o) {
    for (size_t i = 0; i < c->n_runs; i++)
        if (check_failed(&o->runs[i]))
            return &o->runs[i];
    return NULL;
}

/* "subutai run --engine det --seed 7 -- ./app", allocated. */
static char *repeat(const struct check *c, const struct check_order *o) {
    size_t n = 0;
    for (char **word = c->argv; *word != NULL; word++)
        n += strlen(*word) + 1;
    char *words = cmd_allocate(n, 1), *quoted = cmd_allocate(4 * n + 8, 1), *at = words;
    for (char **word = c->argv; *word != NULL; word++)
        at = stpcpy(at, *word) + 1;
    size_t length = words_quote(quoted, 4 * n + 8, words, n);
    char *options = cmd_format("%s", "");
    for (size_t i = 0; i < SBT_N_OPTIONS; i++) {
        if (c->settings.text[i] == NULL || i == SBT_OPT_ENGINE || i == SBT_OPT_SEED)
            continue;
        char *longer = cmd_format("%s--%s=%s ", options, sbt_option_table[i].name, c->settings.text[i]);
        free(options);
        options = longer;
    }
    char *text =
        cmd_format("subutai run --engine det --seed %" PRIu64 " %s-- %.*s", o->seed, options, (int)length, quoted);
    free(words);
    free(quoted);
    free(options);
    return text;
}

struct findings {
    size_t n_failing, n_other_output, n_other_schedule; /* orders */
    uint64_t n_outside;
    const struct check_order *failing; /* the first that always fails; or the first that does */
};

static struct findings find(const struct check *c) {
    struct findings f = {.n_failing = 0};
    for (size_t i = 0; i < c->n_orders; i++) {
        const struct check_order *o = &c->orders[i];
        f.n_failing += o->n_failed > 0;
        f.n_other_output += o->verdict == CHECK_OTHER_OUTPUT;
        f.n_other_schedule += o->verdict == CHECK_OTHER_SCHEDULE;
        f.n_outside += o->runs[0].n_outside;
        if (o->n_failed > 0 && (f.failing == NULL || (o->n_failed == c->n_runs && f.failing->n_failed < c->n_runs)))
            f.failing = o;
    }
    return f;
}

static int status_of(const struct findings *f) {
    return f->n_failing + f->n_other_output + f->n_other_schedule > 0 ? CMD_DIFFERENT : CMD_OK;
}

/* ---- text ---- */

static void print_order(const struct check *c, const struct check_order *o) {
    char outcome[32];
    const struct check_run *failed = first_failed(c, o);
    if (failed != NULL)
        printf("seed %" PRIu64 ": %s in %zu of %zu runs\n", o->seed, trial_outcome(&failed->trial, outcome),
               o->n_failed, c->n_runs);
    if (o->verdict == CHECK_OTHER_OUTPUT)
        printf("seed %" PRIu64
               ": the same schedule and another output in %zu of %zu runs: threads race for data without "
               "synchronization, or the input is another (time, random numbers, addresses)\n",
               o->seed, o->n_differ, c->n_runs);
    if (o->verdict != CHECK_OTHER_SCHEDULE)
        return;
    printf("seed %" PRIu64 ": another schedule in %zu of %zu runs; run %zu differs from run 1 after %" PRIu64
           " operations and ends of waits:\n",
           o->seed, o->n_differ, c->n_runs, o->other + 1, o->n_common);
    for (int i = 0; i < 2; i++)
        printf("  run %zu: %s\n", i == 0 ? (size_t)1 : o->other + 1,
               o->difference[i] != NULL ? o->difference[i] : "no log");
    if (o->runs[0].n_outside > 0)
        printf("  %" PRIu64 " returns from outside: the outside decides when they come\n", o->runs[0].n_outside);
}

static void text(const struct check *c, const struct findings *f) {
    const struct check_run *first = &c->orders[0].runs[0];
    if (!first->has_log)
        printf("the program does not synchronize: its order is the only one\n");
    for (size_t i = 0; i < c->n_orders; i++)
        print_order(c, &c->orders[i]);
    printf("%zu order%s, %zu run%s of each: %zu schedule%s, %zu output%s; %zu order%s failed, %zu with another output, "
           "%zu with another schedule\n",
           c->n_orders, c->n_orders == 1 ? "" : "s", c->n_runs, c->n_runs == 1 ? "" : "s", n_distinct(c, schedule_of),
           n_distinct(c, schedule_of) == 1 ? "" : "s", n_distinct(c, output_of),
           n_distinct(c, output_of) == 1 ? "" : "s", f->n_failing, f->n_failing == 1 ? "" : "s", f->n_other_output,
           f->n_other_schedule);
    if (c->n_orders == 1 && status_of(f) == CMD_OK)
        printf("schedule %016" PRIx64 ", %" PRIu64 " operations, %" PRIu64 " returns from outside\n", first->schedule,
               first->n_ops, first->n_outside);
    if (f->failing != NULL) {
        char *command = repeat(c, f->failing);
        printf("to repeat it: %s\n", command);
        free(command);
    }
}

/* ---- JSON ---- */

static void json_order(struct json *j, const struct check *c, const struct check_order *o) {
    char hash[17], outcome[32];
    const struct check_run *first = &o->runs[0], *failed = first_failed(c, o);
    snprintf(hash, sizeof hash, "%016" PRIx64, first->schedule);
    json_line(j);
    json_open(j, NULL, '{');
    json_uint(j, "seed", o->seed);
    json_text(j, "verdict", verdict_names[o->verdict]);
    json_uint(j, "differ", o->n_differ);
    json_uint(j, "failed", o->n_failed);
    json_text(j, "outcome", trial_outcome(failed != NULL ? &failed->trial : &first->trial, outcome));
    json_text(j, "schedule", first->has_log ? hash : NULL);
    json_uint(j, "operations", first->n_ops);
    json_uint(j, "outside", first->n_outside);
    json_uint(j, "stalls", first->n_stalls);
    snprintf(hash, sizeof hash, "%016" PRIx64, first->output);
    json_text(j, "output", hash);
    if (o->verdict == CHECK_OTHER_SCHEDULE) {
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
    json_uint(&j, "schedules", n_distinct(c, schedule_of));
    json_uint(&j, "outputs", n_distinct(c, output_of));
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
