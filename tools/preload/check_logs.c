/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The folder of `subutai check`, and the schedule logs in it. A run has a log for each of its processes that
 * synchronizes: "000003-000001" for the first, "000003-000001.PID" for the others (docs/schedule-format.md). Which
 * processes are the same in two runs cannot be said by their ids; so logs that are equal are matched first, and those
 * that are left in the order of their names. "000003-000001,said" has what the library said.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check_run.h"
#include "folder.h"

/* Always as long: the stack of a program begins behind its environment, which has the name. */
static char *name_of(size_t order, size_t run) {
    return cmd_format("%06zu-%06zu", order, run);
}

char *check_log(const struct check *c, size_t order, size_t run) {
    return cmd_format("%s/%06zu-%06zu", c->folder, order, run);
}

char *check_said(const struct check *c, size_t order, size_t run) {
    return cmd_format("%s/%06zu-%06zu,said", c->folder, order, run);
}

/* ---- the logs of a run ---- */

struct found {
    const char *folder;
    struct check_logs logs;
};

static void add_log(void *context, int directory, const char *name) {
    struct found *found = context;
    struct check_logs *logs = &found->logs;
    struct stat st;
    const char *rest = name + strcspn(name, ".,");
    if (*rest == ',' || fstatat(directory, name, &st, 0) != 0)
        return;
    logs->list = cmd_reallocate(logs->list, logs->n + 1, sizeof *logs->list);
    struct check_process *p = &logs->list[logs->n++];
    *p = (struct check_process){.path = cmd_format("%s/%s", found->folder, name)};
    if (*rest == '.')
        sscanf(rest, ".%lu.%lu", &p->id, &p->number);
}

/* The first process, and then by their ids: that is by age, mostly. */
static int by_age(const void *a, const void *b) {
    const struct check_process *p = a, *q = b;
    return p->id != q->id ? (p->id > q->id) - (p->id < q->id) : (p->number > q->number) - (p->number < q->number);
}

/* Otherwise the process was ended before it had written the log's header. */
static bool is_begun(const char *path) {
    FILE *file = fopen(path, "re");
    int first = file != NULL ? getc(file) : EOF;
    if (file != NULL)
        fclose(file);
    return first != EOF && first != '\0';
}

_Noreturn static void refuse_room(const char *why) {
    cmd_refuse("check: %s (legal: TMPDIR, a folder with room for the logs)", why);
}

static void read_log(struct check_process *p, struct check_run *run) {
    struct schedule_event e;
    struct schedule_log *log = schedule_take("check", p->path);
    size_t n_before = run->n_stuck;
    while (schedule_read("check", log, &e)) {
        p->n_ops += e.kind == SCHEDULE_EVENT_OP;
        run->n_futexes +=
            e.kind == SCHEDULE_EVENT_OP && e.what >= SCHEDULE_FUTEX_WAIT && e.what <= SCHEDULE_FUTEX_REQUEUE;
        run->n_outside += e.kind == SCHEDULE_EVENT_RETURN;
        run->n_stalls += e.kind == SCHEDULE_EVENT_STALL || e.kind == SCHEDULE_EVENT_RELEASED;
        p->schedule = e.hash;
        if (e.kind == SCHEDULE_EVENT_DEADLOCK)
            check_deadlock_add(run, log, &e);
        else if (run->n_stuck > n_before)
            check_deadlock_forget(run, n_before);
    }
    if (schedule_is_full(log))
        refuse_room("the log of a run is not whole: its file could not grow");
    schedule_close(log);
}

/* The first line of what the library said; and a log that could not be written is no answer. */
static void read_said(const struct check *c, size_t order, size_t number, struct check_run *run) {
    static const char own[] = "subutai: ";
    char *path = check_said(c, order, number), *line = NULL;
    size_t size = 0;
    FILE *file = fopen(path, "re");
    free(path);
    for (ssize_t n; file != NULL && (n = getline(&line, &size, file)) > 0;) {
        char *text = strncmp(line, own, sizeof own - 1) == 0 ? line + sizeof own - 1 : line;
        text[strcspn(text, "\n")] = '\0';
        if (strncmp(text, "the schedule log ends", 21) == 0)
            refuse_room(text);
        if (run->said == NULL)
            run->said = cmd_format("%s", text);
    }
    free(line);
    if (file != NULL)
        fclose(file);
}

void check_logs_read(const struct check *c, size_t order, size_t number) {
    struct check_run *run = &c->orders[order].runs[number];
    struct found found = {c->folder, {NULL, 0}};
    struct check_logs *logs = &run->logs;
    char *name = name_of(order, number);
    read_said(c, order, number, run);
    folder_visit(name, add_log, &found);
    struct check_logs all = found.logs;
    free(name);
    if (all.n > 0)
        qsort(all.list, all.n, sizeof *all.list, by_age);
    *logs = (struct check_logs){all.list, 0};
    for (size_t i = 0; i < all.n; i++) {
        struct check_process p = all.list[i];
        if (!is_begun(p.path)) {
            free(p.path);
            continue;
        }
        read_log(&p, run);
        run->n_ops += p.n_ops;
        run->schedule += schedule_hash_object(p.schedule, (uint32_t)p.n_ops); /* in any order */
        logs->list[logs->n++] = p;
    }
    if (logs->n == 1)
        run->schedule = logs->list[0].schedule;
    run->n_processes = logs->n;
}

void check_logs_remove(const struct check *c, size_t order, size_t number) {
    struct check_logs *logs = &c->orders[order].runs[number].logs;
    char *name = name_of(order, number);
    folder_remove_files(name);
    free(name);
    for (size_t i = 0; i < logs->n; i++)
        free(logs->list[i].path);
    free(logs->list);
    *logs = (struct check_logs){NULL, 0};
}

/* ---- do they differ? ---- */

/* Put aside what both have. */
static void match(struct check_logs *a, struct check_logs *b) {
    for (size_t i = 0; i < a->n; i++)
        a->list[i].is_matched = false;
    for (size_t j = 0; j < b->n; j++) {
        struct check_process *q = &b->list[j];
        q->is_matched = false;
        for (size_t i = 0; i < a->n && !q->is_matched; i++) {
            struct check_process *p = &a->list[i];
            if (!p->is_matched && p->schedule == q->schedule && p->n_ops == q->n_ops)
                p->is_matched = q->is_matched = true;
        }
    }
}

/* The first that is not matched; now it is. NULL: there is none. */
static struct check_process *take(struct check_logs *logs) {
    for (size_t i = 0; i < logs->n; i++)
        if (!logs->list[i].is_matched) {
            logs->list[i].is_matched = true;
            return &logs->list[i];
        }
    return NULL;
}

/* Where a run was cut that was ended, or has crashed, is no difference. */
static bool is_cut_alone(const struct schedule_difference *d) {
    return (d->side[0].is_cut || d->side[1].is_cut) && !(d->side[0].has_event && d->side[1].has_event);
}

static void describe(struct check_order *o, struct check_run *const runs[2], struct check_process *const processes[2],
                     struct schedule_log *const logs[2], const struct schedule_difference *d) {
    struct symbols *symbols = symbols_new();
    o->n_common = d->n;
    for (int i = 0; i < 2; i++) {
        char *event = processes[i] == NULL   ? cmd_format("no further process has synchronized")
                      : d->side[i].has_event ? schedule_text(logs[i], symbols, d->side[i].number, &d->side[i].event)
                                             : cmd_format("the schedule ends there");
        size_t number = processes[i] != NULL ? (size_t)(processes[i] - runs[i]->logs.list) + 1 : 0;
        o->difference[i] = number != 0 && runs[i]->logs.n > 1
                               ? cmd_format("process %zu of %zu: %s", number, runs[i]->logs.n, event)
                               : cmd_format("%s", event);
        free(event);
    }
    symbols_free(symbols);
}

/* The logs of two processes; one of them may be NULL. */
static bool differ(struct check_order *o, struct check_run *const runs[2], struct check_process *const processes[2]) {
    struct schedule_log *logs[2] = {NULL, NULL};
    struct schedule_difference d = {.n = 0};
    for (int i = 0; i < 2; i++)
        logs[i] = processes[i] != NULL ? schedule_take("check", processes[i]->path) : NULL;
    bool differs = !check_was_ended(runs[0]) && !check_was_ended(runs[1]);
    if (logs[0] != NULL && logs[1] != NULL) {
        schedule_compare("check", logs, &d);
        differs = !d.is_same && !is_cut_alone(&d);
    } else {
        int i = logs[0] == NULL;
        d.side[i].has_event = schedule_read("check", logs[i], &d.side[i].event);
        d.side[i].number = 1;
    }
    if (differs && o->difference[0] == NULL)
        describe(o, runs, processes, logs, &d);
    for (int i = 0; i < 2; i++)
        if (logs[i] != NULL)
            schedule_close(logs[i]);
    return differs;
}

bool check_logs_differ(const struct check *c, size_t order, size_t number) {
    struct check_order *o = &c->orders[order];
    struct check_run *runs[2] = {&o->runs[0], &o->runs[number]};
    match(&runs[0]->logs, &runs[1]->logs);
    for (;;) {
        struct check_process *processes[2] = {take(&runs[0]->logs), take(&runs[1]->logs)};
        if (processes[0] == NULL && processes[1] == NULL)
            return false;
        if (differ(o, runs, processes))
            return true;
    }
}
