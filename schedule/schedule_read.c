/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "schedule_read.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schedule_input.h"

struct place {
    uint32_t module;
    uint64_t offset;
};

struct schedule_log {
    struct schedule_input in;
    size_t at; /* of the file */
    struct schedule_header header;
    struct schedule_totals totals;
    struct schedule_hints hints;
    bool has_totals, is_full, has_hints, has_real;
    uint64_t time_ns, hash, real_ns, waited_ns;
    uint32_t thread;
    uint32_t caller[SCHEDULE_MAX_CALLERS]; /* of the next operation */
    unsigned n_callers;
    char **modules;
    struct place *sites; /* from number 1 on: sites[number - 1] */
    size_t n_modules, n_sites;
};

static bool fail(const struct schedule_log *log, size_t at, char **error, const char *format, ...) {
    char what[256];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    if (asprintf(error, "'%s': byte %zu: %s", log->in.path, at, what) < 0)
        *error = NULL;
    return false;
}

/* ---- opening ---- */

/* The next n bytes; false: there are not so many. */
static bool copy_next(struct schedule_log *log, void *to, size_t n) {
    size_t copied = schedule_input_copy(&log->in, log->at, to, n);
    log->at += copied;
    return copied == n;
}

static bool read_header(struct schedule_log *log, char **error) {
    struct schedule_header *h = &log->header;
    bool is_whole = copy_next(log, h, sizeof *h);
    size_t n = log->at;
    if (log->in.read_error != 0)
        return fail(log, n, error, "%s", strerror(log->in.read_error));
    if (n < sizeof h->magic || memcmp(h->magic, (const char[])SCHEDULE_MAGIC, sizeof h->magic) != 0)
        return fail(log, 0, error,
                    "not a schedule log (legal: what subutai run --engine det --schedule FILE has written)");
    if (!is_whole)
        return fail(log, n, error, "the header is cut (it has %zu bytes)", sizeof *h);
    if (h->version != SCHEDULE_VERSION)
        return fail(log, sizeof h->magic, error, "version %" PRIu32 " is unknown (legal: %d)", h->version,
                    SCHEDULE_VERSION);
    if (h->bytes != sizeof *h || h->turn_ns == 0)
        return fail(log, sizeof h->magic + sizeof h->version, error, "the header is damaged");
    return true;
}

struct schedule_log *schedule_open(const char *path, char **error) {
    struct schedule_log *log = calloc(1, sizeof *log);
    *error = NULL;
    if (log == NULL) {
        *error = strdup("out of memory");
        return NULL;
    }
    if (schedule_input_open(&log->in, path, error) && read_header(log, error)) {
        schedule_rewind(log);
        return log;
    }
    schedule_close(log);
    return NULL;
}

static void forget_tables(struct schedule_log *log) {
    for (size_t i = 0; i < log->n_modules; i++)
        free(log->modules[i]);
    log->n_modules = log->n_sites = 0;
}

void schedule_rewind(struct schedule_log *log) {
    forget_tables(log);
    log->at = sizeof log->header;
    log->time_ns = log->hash = log->real_ns = 0;
    log->thread = log->n_callers = 0;
    log->has_totals = log->is_full = log->has_hints = log->has_real = false;
}

void schedule_close(struct schedule_log *log) {
    forget_tables(log);
    schedule_input_close(&log->in);
    free(log->modules);
    free(log->sites);
    free(log);
}

/* ---- tokens ---- */

static bool get(struct schedule_log *log, uint64_t most, uint64_t *number, char **error) {
    size_t begin = log->at;
    *number = 0;
    int byte = 0;
    for (unsigned shift = 0; shift < 7 * SCHEDULE_MAX_NUMBER && (byte = schedule_input_byte(&log->in, log->at)) >= 0;
         shift += 7) {
        log->at++;
        if (shift == 63 && byte > 1)
            break;
        *number |= (uint64_t)(byte & 127) << shift;
        if ((byte & 128) == 0)
            return *number <= most ||
                   fail(log, begin, error, "the number %" PRIu64 " is too large (legal: up to %" PRIu64 ")", *number,
                        most);
    }
    return fail(log, begin, error, byte < 0 ? "the log is cut in a number" : "not a number");
}

static bool get_head(struct schedule_log *log, uint8_t kind, struct schedule_event *e, char **error) {
    uint64_t thread = log->thread, passed = log->header.turn_ns;
    if ((kind & SCHEDULE_NEXT) == 0 &&
        (!get(log, SCHEDULE_NONE - 1, &thread, error) || !get(log, UINT64_MAX - log->time_ns, &passed, error)))
        return false;
    log->thread = (uint32_t)thread;
    log->time_ns += passed;
    *e = (struct schedule_event){.thread = log->thread, .time_ns = log->time_ns, .other = SCHEDULE_NONE};
    return true;
}

/* Room for another element; the number of elements doubles. */
static bool grow(struct schedule_log *log, void **array, size_t n, size_t size, char **error) {
    if ((n & (n - 1)) != 0)
        return true;
    void *larger = reallocarray(*array, n == 0 ? 1 : 2 * n, size);
    if (larger == NULL)
        return fail(log, log->at, error, "out of memory");
    *array = larger;
    return true;
}

static bool get_module(struct schedule_log *log, char **error) {
    uint64_t n;
    void *array = log->modules;
    if (!get(log, SCHEDULE_MAX_PATH, &n, error))
        return false;
    if (n > log->in.n_bytes - log->at)
        return fail(log, log->at, error, "the log is cut in a path");
    if (!grow(log, &array, log->n_modules, sizeof *log->modules, error))
        return false;
    log->modules = array;
    char *path = calloc(n + 1, 1);
    if (path == NULL)
        return fail(log, log->at, error, "out of memory");
    log->modules[log->n_modules++] = path;
    return copy_next(log, path, n) || fail(log, log->at, error, "the log is cut in a path");
}

static bool get_site(struct schedule_log *log, char **error) {
    uint64_t module, offset;
    size_t at = log->at;
    void *array = log->sites;
    if (!get(log, UINT32_MAX, &module, error) || !get(log, UINT64_MAX, &offset, error))
        return false;
    if (module >= log->n_modules)
        return fail(log, at, error, "module %" PRIu64 " is unknown (legal: below %zu)", module, log->n_modules);
    if (!grow(log, &array, log->n_sites, sizeof *log->sites, error))
        return false;
    log->sites = array;
    log->sites[log->n_sites++] = (struct place){(uint32_t)module, offset};
    return true;
}

static bool get_hints(struct schedule_log *log, char **error) {
    log->has_hints = true;
    return get(log, UINT64_MAX, &log->hints.flags, error) && get(log, UINT64_MAX, &log->hints.hash, error) &&
           get(log, UINT64_MAX, &log->hints.n, error);
}

static bool get_time(struct schedule_log *log, char **error) {
    uint64_t passed;
    log->has_real = true;
    if (!get(log, UINT64_MAX - log->real_ns, &passed, error) || !get(log, UINT64_MAX, &log->waited_ns, error))
        return false;
    log->real_ns += passed;
    return true;
}

static bool get_totals(struct schedule_log *log, char **error) {
    size_t begin = log->at;
    int byte;
    if (!copy_next(log, &log->totals, sizeof log->totals))
        return fail(log, begin, error, "the log is cut in its totals");
    for (size_t at = log->at; (byte = schedule_input_byte(&log->in, at)) >= 0;
         at++) /* zeros stay if the file was moved meanwhile */
        if (byte != 0)
            return fail(log, at, error, "the log goes on behind its totals");
    if (log->totals.hash != log->hash)
        return fail(log, begin, error,
                    "the hash is %016" PRIx64 ", and that of the operations %016" PRIx64 ": the log is damaged",
                    log->totals.hash, log->hash);
    log->has_totals = true;
    return true;
}

/* What belongs to the operation, and definitions, up to the next event. */
static bool get_rest(struct schedule_log *log, struct schedule_event *e, char **error) {
    uint64_t number;
    for (;;) {
        int kind = schedule_input_byte(&log->in, log->at);
        if (kind != SCHEDULE_OBJECT && kind != SCHEDULE_OTHER)
            return true;
        log->at++;
        if (!get(log, SCHEDULE_NONE - 1, &number, error))
            return false;
        if (kind == SCHEDULE_OTHER) {
            e->other = (uint32_t)number;
        } else {
            e->object = (uint32_t)number;
            log->hash = schedule_hash_object(log->hash, (uint32_t)number);
        }
    }
}

static bool get_known_site(struct schedule_log *log, uint32_t *site, char **error) {
    uint64_t number;
    size_t at = log->at;
    if (!get(log, UINT32_MAX, &number, error))
        return false;
    *site = (uint32_t)number;
    return number <= log->n_sites ||
           fail(log, at, error, "call site %" PRIu64 " is unknown (legal: up to %zu)", number, log->n_sites);
}

static bool get_caller(struct schedule_log *log, char **error) {
    if (log->n_callers == SCHEDULE_MAX_CALLERS)
        return fail(log, log->at - 1, error, "a caller too many (legal: %d of an operation)", SCHEDULE_MAX_CALLERS);
    return get_known_site(log, &log->caller[log->n_callers++], error);
}

static bool get_op(struct schedule_log *log, struct schedule_event *e, unsigned op, char **error) {
    if (!get_known_site(log, &e->site, error))
        return false;
    memcpy(e->caller, log->caller, log->n_callers * sizeof *log->caller);
    log->n_callers = 0;
    e->kind = SCHEDULE_EVENT_OP;
    e->what = op;
    log->hash = schedule_hash_op(log->hash, e->thread, (enum schedule_op)op);
    return get_rest(log, e, error);
}

static bool get_deadlock(struct schedule_log *log, struct schedule_event *e, char **error) {
    uint64_t op, object, other;
    size_t at = log->at;
    if (!get(log, UINT8_MAX, &op, error))
        return false;
    if (op >= SCHEDULE_N_OPS)
        return fail(log, at, error, "operation %" PRIu64 " is unknown (legal: up to %d)", op, SCHEDULE_N_OPS - 1);
    if (!get_known_site(log, &e->site, error) || !get(log, UINT32_MAX, &object, error) ||
        !get(log, SCHEDULE_NONE, &other, error))
        return false;
    e->kind = SCHEDULE_EVENT_DEADLOCK;
    e->what = (unsigned)op;
    e->object = (uint32_t)object;
    e->other = other == 0 ? SCHEDULE_NONE : (uint32_t)other - 1;
    return true;
}

static bool get_event(struct schedule_log *log, uint8_t kind, struct schedule_event *e, char **error) {
    unsigned k = kind & ~(unsigned)SCHEDULE_NEXT;
    size_t at = log->at - 1;
    bool is_known =
        (k >= SCHEDULE_OP && k < SCHEDULE_OP + SCHEDULE_N_OPS) || (k >= SCHEDULE_RESUME && k <= SCHEDULE_DEADLOCK);
    if (!is_known)
        return fail(log, at, error, "a token of kind %u is unknown: the log is damaged", kind);
    if (!get_head(log, kind, e, error))
        return false;
    e->has_real = log->has_real && k < SCHEDULE_RETURN;
    e->real_ns = log->real_ns;
    e->waited_ns = log->waited_ns;
    if (k < SCHEDULE_RESUME)
        return get_op(log, e, k - SCHEDULE_OP, error);
    if (k < SCHEDULE_RETURN) {
        e->kind = SCHEDULE_EVENT_RESUME;
        e->what = k - SCHEDULE_RESUME;
        log->hash = schedule_hash_resume(log->hash, e->thread, (enum schedule_reason)e->what);
    } else if (k < SCHEDULE_STALL || k == SCHEDULE_PCS_RETURN) {
        e->kind = SCHEDULE_EVENT_RETURN;
        e->what = k < SCHEDULE_STALL ? k - SCHEDULE_RETURN : SCHEDULE_FROM_PCS;
    } else if (k == SCHEDULE_DEADLOCK) {
        return get_deadlock(log, e, error);
    } else if (k == SCHEDULE_SECTION) {
        e->kind = SCHEDULE_EVENT_SECTION;
        return get(log, UINT64_MAX, &e->hint, error) && get(log, UINT64_MAX, &e->turns, error);
    } else {
        e->kind = k == SCHEDULE_STALL ? SCHEDULE_EVENT_STALL : SCHEDULE_EVENT_RELEASED;
    }
    return true;
}

bool schedule_next(struct schedule_log *log, struct schedule_event *event, char **error) {
    int kind;
    *error = NULL;
    while (!log->has_totals && !log->is_full && (kind = schedule_input_byte(&log->in, log->at)) > SCHEDULE_CUT) {
        bool is_well = true;
        log->at++;
        switch (kind) {
        case SCHEDULE_MODULE:
            is_well = get_module(log, error);
            break;
        case SCHEDULE_SITE:
            is_well = get_site(log, error);
            break;
        case SCHEDULE_HINTS:
            is_well = get_hints(log, error);
            break;
        case SCHEDULE_TIME:
            is_well = get_time(log, error);
            break;
        case SCHEDULE_CALLER:
            is_well = get_caller(log, error);
            break;
        case SCHEDULE_FULL:
            log->is_full = true;
            break;
        case SCHEDULE_FINISH:
            is_well = get_totals(log, error);
            break;
        default:
            if (!get_event(log, (uint8_t)kind, event, error))
                return false;
            event->hash = log->hash;
            return true;
        }
        if (!is_well)
            return false;
    }
    return log->in.read_error != 0 && fail(log, log->at, error, "%s", strerror(log->in.read_error));
}

/* ---- what it says ---- */

const struct schedule_header *schedule_header_of(const struct schedule_log *log) {
    return &log->header;
}

const struct schedule_totals *schedule_totals_of(const struct schedule_log *log) {
    return log->has_totals ? &log->totals : NULL;
}

const struct schedule_hints *schedule_hints_of(const struct schedule_log *log) {
    return log->has_hints ? &log->hints : NULL;
}

bool schedule_is_full(const struct schedule_log *log) {
    return log->is_full;
}

uint64_t schedule_place(const struct schedule_log *log) {
    return log->at;
}

uint64_t schedule_bytes(const struct schedule_log *log) {
    return log->in.n_bytes;
}

char *schedule_site(const struct schedule_log *log, uint32_t site) {
    char *name = NULL;
    if (site == 0)
        return strdup("");
    const struct place *p = &log->sites[site - 1];
    return asprintf(&name, "%s+0x%" PRIx64, log->modules[p->module], p->offset) < 0 ? NULL : name;
}

bool schedule_same_site(const struct schedule_log *a, uint32_t site_a, const struct schedule_log *b, uint32_t site_b) {
    if (site_a == 0 || site_b == 0)
        return site_a == site_b;
    const struct place *p = &a->sites[site_a - 1], *q = &b->sites[site_b - 1];
    return p->offset == q->offset && strcmp(a->modules[p->module], b->modules[q->module]) == 0;
}
