/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See schedule.h. */
#include "engine/det/schedule.h"

#include <string.h>

#include "engine/det/det.h"
#include "engine/det/file.h"
#include "engine/det/places.h"
#include "os/clock.h"
#include "os/memory.h"

/* MAX_SITES: a power of 2. The table is full at three quarters; further call sites are not known. */
enum { MAX_SITES = 16384 };

static struct schedule_log {
    struct sbt_lock lock;
    struct det_file file;
    bool is_forked, is_timed;
    unsigned n_callers;
    uint64_t time_ns; /* of the last event with a time */
    uint32_t last_thread;
    uint64_t last_ns;
    uint64_t n_stalls;
    struct det_look stall; /* the last that was written */
    struct {
        bool is_there;
        enum schedule_op op;
        uint32_t thread, site;
    } pending; /* an operation, until its object is known: they stand together, whatever threads come back */
    uint32_t n_sites, n_modules;
    uint32_t module[DET_RANGES]; /* plus 1; 0: not written */
    struct {
        uintptr_t address; /* 0: free */
        uint32_t number;   /* 0: of no file */
    } site[MAX_SITES];
} * the_log;

bool det_schedule_start(const char *path, bool is_timed, unsigned n_callers) {
    the_log = sbt_memory_map(sizeof *the_log);
    if (the_log == NULL || !det_places_start())
        return false;
    the_log->is_timed = is_timed;
    the_log->n_callers = n_callers;
    det_file_start(&the_log->file, path, SCHEDULE_FULL);
    return true;
}

/* Without hints and with all of LBDR on, there is no such token. */
static bool write_hints(const struct schedule_hints *hints) {
    uint8_t token[SCHEDULE_MAX_TOKEN + SCHEDULE_MAX_NUMBER] = {SCHEDULE_HINTS};
    if (hints == NULL)
        return true;
    uint8_t *end = schedule_put(schedule_put(schedule_put(token + 1, hints->flags), hints->hash), hints->n);
    return det_file_write(&the_log->file, token, (size_t)(end - token), NULL, 0);
}

bool det_schedule_begin(uint64_t seed, bool is_forked, const struct schedule_hints *hints) {
    struct schedule_header header = {.magic = SCHEDULE_MAGIC,
                                     .version = SCHEDULE_VERSION,
                                     .bytes = sizeof header,
                                     .seed = seed,
                                     .process = (uint32_t)sbt_syscall0(SYS_getpid),
                                     .parent = (uint32_t)sbt_syscall0(SYS_getppid),
                                     .turn_ns = TURN_KEPT_NS,
                                     .is_forked = is_forked};
    if (the_log == NULL)
        return false;
    the_log->lock = (struct sbt_lock){0};
    the_log->last_thread = 0;
    the_log->last_ns = the_log->n_stalls = the_log->time_ns = 0;
    the_log->stall = (struct det_look){0};
    the_log->pending.is_there = false;
    the_log->n_sites = the_log->n_modules = 0;
    memset(the_log->module, 0, sizeof the_log->module);
    memset(the_log->site, 0, sizeof the_log->site);
    the_log->is_forked = is_forked;
    return det_file_begin(&the_log->file, &header, sizeof header, is_forked) && write_hints(hints);
}

/* ---- tokens ---- */

static uint8_t *put_head(uint8_t *at, unsigned kind, uint32_t thread) {
    uint64_t now = __atomic_load_n(&det_round->turn.now, __ATOMIC_RELAXED);
    uint64_t passed = now > the_log->last_ns ? now - the_log->last_ns : 0;
    if (thread == the_log->last_thread && passed == TURN_KEPT_NS) {
        *at++ = (uint8_t)(kind | SCHEDULE_NEXT);
    } else {
        *at++ = (uint8_t)kind;
        at = schedule_put(schedule_put(at, thread), passed);
    }
    the_log->last_thread = thread;
    the_log->last_ns += passed;
    return at;
}

static void write_out(const uint8_t *token, const uint8_t *end) {
    if (!det_file_write(&the_log->file, token, (size_t)(end - token), NULL, 0))
        __atomic_store_n(&det_round->is_logged, false, __ATOMIC_RELAXED);
}

static void write_head(unsigned kind, uint32_t thread) {
    uint8_t token[SCHEDULE_MAX_TOKEN];
    write_out(token, put_head(token, kind, thread));
}

static uint8_t *put_pending(uint8_t *at) {
    if (!the_log->pending.is_there)
        return at;
    the_log->pending.is_there = false;
    return schedule_put(put_head(at, SCHEDULE_OP + the_log->pending.op, the_log->pending.thread),
                        the_log->pending.site);
}

/* What the operation is about, and the operation. */
static void write_about(unsigned kind, uint64_t number) {
    uint8_t tokens[2 * SCHEDULE_MAX_TOKEN], *at = put_pending(tokens);
    if (at == tokens)
        return;
    *at++ = (uint8_t)kind;
    write_out(tokens, schedule_put(at, number));
}

static void write_pending(void) {
    uint8_t token[SCHEDULE_MAX_TOKEN], *end = put_pending(token);
    if (end != token)
        write_out(token, end);
}

/* ---- call sites ---- */

/* The number of the range's file; it is written before its first use. */
static uint32_t module_of(uint32_t range) {
    uint8_t token[SCHEDULE_MAX_TOKEN] = {SCHEDULE_MODULE};
    const char *path = det_range(range)->path;
    size_t n = strnlen(path, SCHEDULE_MAX_PATH);
    if (the_log->module[range] == 0) {
        the_log->module[range] = ++the_log->n_modules;
        if (!det_file_write(&the_log->file, token, (size_t)(schedule_put(token + 1, n) - token), path, n))
            __atomic_store_n(&det_round->is_logged, false, __ATOMIC_RELAXED);
    }
    return the_log->module[range] - 1;
}

/* The number of the site; it is written before its first use. */
static uint32_t define(uintptr_t address) {
    uint8_t token[SCHEDULE_MAX_TOKEN] = {SCHEDULE_SITE};
    uint32_t i = det_range_of(address);
    if (i == DET_NO_RANGE || det_range(i)->path[0] == '\0')
        return 0;
    uint8_t *at = schedule_put(token + 1, module_of(i));
    write_out(token, schedule_put(at, address - det_range(i)->start + det_range(i)->offset));
    return ++the_log->n_sites;
}

static uint32_t site_of(uintptr_t return_address) {
    uintptr_t address = return_address - 1; /* in the call: behind it may be another line, or function */
    uint32_t i = (uint32_t)(address * SCHEDULE_HASH_FACTOR >> 40) % MAX_SITES;
    if (return_address == 0)
        return 0;
    for (; the_log->site[i].address != 0; i = (i + 1) % MAX_SITES)
        if (the_log->site[i].address == address)
            return the_log->site[i].number;
    if (the_log->n_sites >= MAX_SITES / 4 * 3)
        return 0;
    uint32_t number = define(address);
    the_log->site[i].address = number != 0 ? address : 0;
    the_log->site[i].number = number;
    return number;
}

/* ---- times ---- */

/* When the next event happens, and for how long its thread has waited for the turn before. */
static void write_time(void) {
    uint8_t token[SCHEDULE_MAX_TOKEN] = {SCHEDULE_TIME};
    if (!the_log->is_timed)
        return;
    uint64_t now = sbt_now_ns(), arrived = det_self.arrived_ns != 0 ? det_self.arrived_ns : now;
    det_self.arrived_ns = 0;
    uint8_t *at = schedule_put(token + 1, the_log->time_ns != 0 ? now - the_log->time_ns : 0);
    the_log->time_ns = now;
    write_out(token, schedule_put(at, now - arrived));
}

/* ---- the interface ---- */

/* Its object, or the thread that it is about, is told next. */
static bool is_about(enum schedule_op op) {
    return op <= SCHEDULE_SEM_POST || op == SCHEDULE_CREATE || op == SCHEDULE_JOIN || op == SCHEDULE_DETACH ||
           op == SCHEDULE_CANCEL || op == SCHEDULE_SOFT_BARRIER ||
           (op >= SCHEDULE_FUTEX_WAIT && op <= SCHEDULE_FUTEX_REQUEUE);
}

static bool is_worth_a_file(enum schedule_op op) {
    return op != SCHEDULE_FORK && op != SCHEDULE_LEAVE && op != SCHEDULE_SLEEP;
}

unsigned det_schedule_callers(void) {
    return the_log != NULL ? the_log->n_callers : 0;
}

/* Of the next operation. The chain ends where a caller is not known. */
static void write_callers(const uintptr_t *chain) {
    uint8_t token[SCHEDULE_MAX_TOKEN] = {SCHEDULE_CALLER};
    uint32_t caller;
    for (unsigned i = 0; chain != NULL && i < the_log->n_callers && (caller = site_of(chain[i])) != 0; i++)
        write_out(token, schedule_put(token + 1, caller));
}

void det_schedule_op(enum schedule_op op, uint32_t thread, uintptr_t return_address, const uintptr_t *chain) {
    sbt_lock_take(&the_log->lock);
    write_pending();
    write_time();
    uint32_t site = site_of(return_address);
    write_callers(chain);
    if (is_worth_a_file(op))
        det_file_make(&the_log->file);
    the_log->pending.is_there = true;
    the_log->pending.op = op;
    the_log->pending.thread = thread;
    the_log->pending.site = site;
    if (!is_about(op))
        write_pending();
    sbt_lock_drop(&the_log->lock);
}

void det_schedule_object(uint32_t object) {
    sbt_lock_take(&the_log->lock);
    write_about(SCHEDULE_OBJECT, object);
    sbt_lock_drop(&the_log->lock);
}

void det_schedule_other(uint32_t thread) {
    sbt_lock_take(&the_log->lock);
    write_about(SCHEDULE_OTHER, thread);
    sbt_lock_drop(&the_log->lock);
}

void det_schedule_resume(uint32_t thread, enum schedule_reason reason) {
    sbt_lock_take(&the_log->lock);
    write_pending();
    write_time();
    write_head(SCHEDULE_RESUME + reason, thread);
    sbt_lock_drop(&the_log->lock);
}

void det_schedule_return(uint32_t thread, enum schedule_return how) {
    sbt_lock_take(&the_log->lock);
    write_head(how == SCHEDULE_FROM_PCS ? SCHEDULE_PCS_RETURN : SCHEDULE_RETURN + how, thread);
    sbt_lock_drop(&the_log->lock);
}

/* Several threads find the same stall. */
void det_schedule_stall(uint32_t thread) {
    uint64_t now = __atomic_load_n(&det_round->turn.now, __ATOMIC_RELAXED);
    sbt_lock_take(&the_log->lock);
    if (the_log->stall.holder != thread || the_log->stall.logical != now || the_log->stall.since_ns == 0) {
        the_log->stall = (struct det_look){.holder = thread, .logical = now, .since_ns = 1};
        the_log->n_stalls++;
        write_head(SCHEDULE_STALL, thread);
    }
    sbt_lock_drop(&the_log->lock);
}

void det_schedule_released(uint32_t thread) {
    sbt_lock_take(&the_log->lock);
    the_log->n_stalls++;
    write_head(SCHEDULE_RELEASED, thread);
    sbt_lock_drop(&the_log->lock);
}

void det_schedule_deadlock(const struct schedule_deadlock *d, uintptr_t site) {
    uint8_t token[SCHEDULE_MAX_TOKEN + 3 * SCHEDULE_MAX_NUMBER];
    sbt_lock_take(&the_log->lock);
    write_pending();
    uint32_t number = site_of(site);
    uint8_t *end = schedule_put(schedule_put(put_head(token, SCHEDULE_DEADLOCK, d->thread), d->op), number);
    write_out(token, schedule_put(schedule_put(end, d->object), d->other == TURN_NO_THREAD ? 0 : d->other + 1));
    sbt_lock_drop(&the_log->lock);
}

void det_schedule_section(uint32_t thread, uint64_t hint, uint64_t turns) {
    uint8_t token[SCHEDULE_MAX_TOKEN + 2 * SCHEDULE_MAX_NUMBER];
    sbt_lock_take(&the_log->lock);
    write_pending();
    write_out(token, schedule_put(schedule_put(put_head(token, SCHEDULE_SECTION, thread), hint), turns));
    sbt_lock_drop(&the_log->lock);
}

void det_schedule_keep(void) {
    sbt_lock_take(&the_log->lock);
    det_places_read();
    det_file_keep(&the_log->file);
    sbt_lock_drop(&the_log->lock);
}

void det_schedule_end(const struct schedule_totals *totals) {
    struct schedule_totals t = *totals;
    static const uint8_t finish = SCHEDULE_FINISH;
    sbt_lock_take(&the_log->lock);
    if (__atomic_load_n(&det_round->is_logged, __ATOMIC_RELAXED)) {
        t.n_stalls = the_log->n_stalls;
        write_pending();
        __atomic_store_n(&det_round->is_logged, false, __ATOMIC_RELAXED);
        det_file_write(&the_log->file, &finish, 1, &t, sizeof t);
        det_file_end(&the_log->file);
    }
    sbt_lock_drop(&the_log->lock);
}
