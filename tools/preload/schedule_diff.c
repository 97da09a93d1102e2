/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See schedule_diff.h. */
#include "schedule_diff.h"

#include <stdlib.h>

#include "command.h"

static const char *const stall_words[] = {"stall", "released"};

bool schedule_read(const char *subcommand, struct schedule_log *log, struct schedule_event *e) {
    char *error;
    if (schedule_next(log, e, &error))
        return true;
    if (error != NULL)
        cmd_refuse("%s: %s", subcommand, error);
    return false;
}

struct schedule_log *schedule_take(const char *subcommand, const char *path) {
    char *error;
    struct schedule_log *log = schedule_open(path, &error);
    if (log == NULL)
        cmd_refuse("%s: %s", subcommand, error != NULL ? error : "out of memory");
    return log;
}

static const char *verb_of(const struct schedule_event *e) {
    switch (e->kind) {
    case SCHEDULE_EVENT_OP:
    case SCHEDULE_EVENT_DEADLOCK:
        return schedule_op_name((enum schedule_op)e->what);
    case SCHEDULE_EVENT_RESUME:
        return schedule_reason_name((enum schedule_reason)e->what);
    case SCHEDULE_EVENT_RETURN:
        return schedule_return_name((enum schedule_return)e->what);
    case SCHEDULE_EVENT_SECTION:
        return "give_up";
    default:
        return stall_words[e->kind == SCHEDULE_EVENT_RELEASED];
    }
}

static const char *kind_of(const struct schedule_event *e) {
    static const char *const names[SCHEDULE_N_EVENTS] = {"operation", "resume",  "return",  "stall",
                                                         "released",  "section", "deadlock"};
    return names[e->kind];
}

static char *site_of(const struct schedule_log *log, uint32_t number) {
    char *site = schedule_site(log, number);
    if (site == NULL)
        cmd_refuse("out of memory");
    return site;
}

char *schedule_hint_name(uint64_t hint) {
    return hint % 2 == 0 ? cmd_format("line %ju", (uintmax_t)hint / 2)
                         : cmd_format("the program's hint %ju", (uintmax_t)hint / 2);
}

static char *section_text(uint64_t number, const struct schedule_event *e) {
    char *hint = schedule_hint_name(e->hint);
    char *text = cmd_format("%ju %ju thread %u gives the turn up for %ju turn%s (%s)", (uintmax_t)number,
                            (uintmax_t)e->time_ns, e->thread, (uintmax_t)e->turns, cmd_s(e->turns), hint);
    free(hint);
    return text;
}

/* "SITE<CALLER<CALLER", as far as they are known. Allocated. */
static char *calls_text(const struct schedule_log *log, struct symbols *symbols, const struct schedule_event *e) {
    char *site = site_of(log, e->site);
    char *text = cmd_format("%s", site[0] != '\0' ? symbols_name(symbols, site) : "");
    free(site);
    for (size_t i = 0; i < SCHEDULE_MAX_CALLERS && e->caller[i] != 0; i++) {
        char *caller = site_of(log, e->caller[i]);
        char *longer = cmd_format("%s<%s", text, symbols_name(symbols, caller));
        free(caller);
        free(text);
        text = longer;
    }
    return text;
}

static void callers_json(struct json *j, const struct schedule_log *log, struct symbols *symbols,
                         const struct schedule_event *e) {
    if (e->caller[0] == 0)
        return;
    json_open(j, "callers", '[');
    for (size_t i = 0; i < SCHEDULE_MAX_CALLERS && e->caller[i] != 0; i++) {
        char *caller = site_of(log, e->caller[i]);
        json_open(j, NULL, '{');
        json_text(j, "site", caller);
        json_text(j, "place", symbols_name(symbols, caller));
        json_close(j, '}');
        free(caller);
    }
    json_close(j, ']');
}

char *schedule_what_text(const struct schedule_log *log, struct symbols *symbols, const struct schedule_event *e) {
    char *object, *other;
    bool waits = e->kind == SCHEDULE_EVENT_DEADLOCK;
    const char *what = e->kind == SCHEDULE_EVENT_OP || waits ? schedule_object_name((enum schedule_op)e->what) : NULL;
    object = e->object != 0 && what != NULL ? cmd_format(" %s#%u", what, e->object) : cmd_format("%s", "");
    other = e->other == SCHEDULE_NONE ? cmd_format("%s", "")
                                      : cmd_format(" %s thread %u", waits && what != NULL ? "held by" : "of", e->other);
    char *place = calls_text(log, symbols, e);
    char *text = cmd_format("%s%s%s%s%s", verb_of(e), object, other, place[0] != '\0' ? " " : "", place);
    free(place);
    free(object);
    free(other);
    return text;
}

char *schedule_text(const struct schedule_log *log, struct symbols *symbols, uint64_t number,
                    const struct schedule_event *e) {
    if (e->kind == SCHEDULE_EVENT_SECTION)
        return section_text(number, e);
    char *what = schedule_what_text(log, symbols, e);
    const char *before = e->kind == SCHEDULE_EVENT_RETURN     ? "returns "
                         : e->kind == SCHEDULE_EVENT_DEADLOCK ? "cannot go on: "
                                                              : "";
    char *text =
        cmd_format("%ju %ju thread %u %s%s", (uintmax_t)number, (uintmax_t)e->time_ns, e->thread, before, what);
    free(what);
    return text;
}

void schedule_json(struct json *j, const struct schedule_log *log, struct symbols *symbols, uint64_t number,
                   const struct schedule_event *e) {
    char *site = site_of(log, e->site);
    json_uint(j, "number", number);
    json_uint(j, "time_ns", e->time_ns);
    json_uint(j, "thread", e->thread);
    json_text(j, "kind", kind_of(e));
    json_text(j, "what", verb_of(e));
    if (e->object != 0) {
        json_text(j, "object_kind",
                  e->kind == SCHEDULE_EVENT_OP || e->kind == SCHEDULE_EVENT_DEADLOCK
                      ? schedule_object_name((enum schedule_op)e->what)
                      : NULL);
        json_uint(j, "object", e->object);
    }
    if (e->other != SCHEDULE_NONE)
        json_uint(j, "other", e->other);
    if (e->kind == SCHEDULE_EVENT_SECTION) {
        char *hint = schedule_hint_name(e->hint);
        json_text(j, "hint", hint);
        json_uint(j, "turns", e->turns);
        free(hint);
    }
    if (e->has_real) {
        json_uint(j, "real_ns", e->real_ns);
        json_uint(j, "waited_ns", e->waited_ns);
    }
    if (site[0] != '\0') {
        json_text(j, "site", site);
        json_text(j, "place", symbols_name(symbols, site));
    }
    callers_json(j, log, symbols, e);
    free(site);
}

static bool is_compared(const struct schedule_event *e) {
    return e->kind == SCHEDULE_EVENT_OP || e->kind == SCHEDULE_EVENT_RESUME;
}

static bool is_same(struct schedule_log *const logs[2], const struct schedule_event *a,
                    const struct schedule_event *b) {
    return a->kind == b->kind && a->what == b->what && a->thread == b->thread && a->object == b->object &&
           a->other == b->other && schedule_same_site(logs[0], a->site, logs[1], b->site);
}

/* Is it the last of a log that is cut in front of what the operation is about? */
static bool is_cut_in(const struct schedule_log *log, const struct schedule_event *e,
                      const struct schedule_event *other) {
    return schedule_place(log) == schedule_bytes(log) && schedule_totals_of(log) == NULL && e->kind == other->kind &&
           e->what == other->what && e->thread == other->thread && e->object == 0 && e->other == SCHEDULE_NONE;
}

static void end_there(struct schedule_difference *d, int i) {
    d->side[i].has_event = false;
    d->side[i].is_cut = true;
}

void schedule_compare(const char *subcommand, struct schedule_log *const logs[2], struct schedule_difference *d) {
    *d = (struct schedule_difference){.n = 0};
    for (;;) {
        for (int i = 0; i < 2; i++) {
            do {
                d->side[i].has_event = schedule_read(subcommand, logs[i], &d->side[i].event);
                d->side[i].number++;
            } while (d->side[i].has_event && !is_compared(&d->side[i].event));
            d->side[i].is_cut = !d->side[i].has_event && schedule_totals_of(logs[i]) == NULL;
        }
        if (!d->side[0].has_event || !d->side[1].has_event)
            break;
        const struct schedule_event *a = &d->side[0].event, *b = &d->side[1].event;
        if (!is_same(logs, a, b)) {
            if (is_cut_in(logs[0], a, b))
                end_there(d, 0);
            else if (is_cut_in(logs[1], b, a))
                end_there(d, 1);
            return;
        }
        d->n++;
    }
    d->is_same = !d->side[0].has_event && !d->side[1].has_event;
}
