/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See schedule.h. */
#include "engine/det/schedule.h"

#include <string.h>

#include "engine/det/det.h"
#include "engine/det/file.h"
#include "engine/det/site.h"
#include "os/code_maps.h"
#include "os/memory.h"

/* MAX_SITES: a power of 2. The table is full at three quarters; further call sites are not known. */
enum { MAX_SITES = 16384, MAX_RANGES = 512, MAX_READINGS = 64 };

static struct schedule_log {
    struct sbt_lock lock;
    struct det_file file;
    bool is_forked;
    uint32_t last_thread;
    uint64_t last_ns;
    uint64_t n_stalls;
    struct det_look stall; /* the last that was written */
    struct {
        bool is_there;
        enum schedule_op op;
        uint32_t thread, site;
    } pending; /* an operation, until its object is known: they stand together, whatever threads come back */
    uint32_t n_sites, n_ranges, n_readings;
    struct {
        uintptr_t start, end;
        uint64_t offset;
        uint32_t module; /* UINT32_MAX: no file's */
    } range[MAX_RANGES];
    uint32_t n_modules;
    struct {
        uintptr_t address; /* 0: free */
        uint32_t number;   /* 0: of no file */
    } site[MAX_SITES];
    struct det_site_ways ways;
    char line[SBT_CODE_MAPS_LINE];
} * the_log;

bool det_schedule_start(const char *path) {
    the_log = sbt_memory_map(sizeof *the_log);
    if (the_log == NULL)
        return false;
    det_file_start(&the_log->file, path, SCHEDULE_FULL);
    return true;
}

bool det_schedule_begin(uint64_t seed, bool is_forked) {
    struct schedule_header header = {.magic = SCHEDULE_MAGIC,
                                     .version = SCHEDULE_VERSION,
                                     .bytes = sizeof header,
                                     .seed = seed,
                                     .process = (uint32_t)sbt_syscall0(SYS_getpid),
                                     .parent = (uint32_t)sbt_syscall0(SYS_getppid),
                                     .turn_ns = TURN_NS,
                                     .is_forked = is_forked};
    if (the_log == NULL)
        return false;
    the_log->lock = (struct sbt_lock){0};
    the_log->last_thread = 0;
    the_log->last_ns = the_log->n_stalls = 0;
    the_log->stall = (struct det_look){0};
    the_log->pending.is_there = false;
    the_log->n_sites = the_log->n_ranges = the_log->n_readings = the_log->n_modules = 0;
    memset(the_log->site, 0, sizeof the_log->site);
    the_log->is_forked = is_forked;
    return det_file_begin(&the_log->file, &header, sizeof header, is_forked);
}

/* ---- tokens ---- */

static uint8_t *put_head(uint8_t *at, unsigned kind, uint32_t thread) {
    uint64_t now = __atomic_load_n(&det_round->turn.now, __ATOMIC_RELAXED);
    uint64_t passed = now > the_log->last_ns ? now - the_log->last_ns : 0;
    if (thread == the_log->last_thread && passed == TURN_NS) {
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

static uint32_t range_of(uintptr_t address) {
    for (uint32_t i = 0; i < the_log->n_ranges; i++)
        if (address - the_log->range[i].start < the_log->range[i].end - the_log->range[i].start)
            return i;
    return UINT32_MAX;
}

static void visit(void *unused, uint64_t start, uint64_t end, uint64_t offset, const char *path) {
    uint8_t token[SCHEDULE_MAX_TOKEN] = {SCHEDULE_MODULE};
    size_t n = strnlen(path, SCHEDULE_MAX_PATH);
    (void)unused;
    if (the_log->n_ranges == MAX_RANGES || range_of(start) != UINT32_MAX)
        return;
    __typeof(&the_log->range[0]) range = &the_log->range[the_log->n_ranges++];
    range->start = start;
    range->end = end;
    range->offset = offset;
    range->module = UINT32_MAX;
    if (path[0] != '/') /* made at run time, or the kernel's */
        return;
    range->module = the_log->n_modules++;
    if (!det_file_write(&the_log->file, token, (size_t)(schedule_put(token + 1, n) - token), path, n))
        __atomic_store_n(&det_round->is_logged, false, __ATOMIC_RELAXED);
}

/* The number of the site; it is written before its first use. */
static uint32_t define(uintptr_t address) {
    uint8_t token[SCHEDULE_MAX_TOKEN] = {SCHEDULE_SITE};
    uint32_t i = range_of(address);
    if (i == UINT32_MAX && the_log->n_readings < MAX_READINGS) {
        the_log->n_readings++;
        sbt_code_maps_read(the_log->line, visit, NULL);
        i = range_of(address);
    }
    if (i == UINT32_MAX || the_log->range[i].module == UINT32_MAX)
        return 0;
    uint8_t *at = schedule_put(token + 1, the_log->range[i].module);
    write_out(token, schedule_put(at, address - the_log->range[i].start + the_log->range[i].offset));
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

/* ---- the interface ---- */

static bool is_own_call(enum schedule_op op) {
    return op == SCHEDULE_BEGIN || op == SCHEDULE_END; /* the library's, and not the program's */
}

/* Its object, or the thread that it is about, is told next. */
static bool is_about(enum schedule_op op) {
    return op <= SCHEDULE_SEM_POST || op == SCHEDULE_CREATE || op == SCHEDULE_JOIN || op == SCHEDULE_DETACH ||
           op == SCHEDULE_CANCEL || (op >= SCHEDULE_FUTEX_WAIT && op <= SCHEDULE_FUTEX_REQUEUE);
}

static bool is_worth_a_file(enum schedule_op op) {
    return op != SCHEDULE_FORK && op != SCHEDULE_LEAVE && op != SCHEDULE_SLEEP;
}

SBT_NOINLINE void det_schedule_op(enum schedule_op op, uint32_t thread) {
    sbt_lock_take(&the_log->lock);
    write_pending();
    uint32_t site = is_own_call(op) ? 0 : site_of(det_site(&the_log->ways, __builtin_frame_address(0)));
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
    write_head(SCHEDULE_RESUME + reason, thread);
    sbt_lock_drop(&the_log->lock);
}

void det_schedule_return(uint32_t thread, enum schedule_return how) {
    sbt_lock_take(&the_log->lock);
    write_head(SCHEDULE_RETURN + how, thread);
    sbt_lock_drop(&the_log->lock);
}

/* Several threads find the same stall. */
void det_schedule_stall(uint32_t thread) {
    uint64_t now = __atomic_load_n(&det_round->turn.now, __ATOMIC_RELAXED);
    sbt_lock_take(&the_log->lock);
    if (the_log->stall.holder != thread || the_log->stall.logical != now || the_log->stall.since_ns == 0) {
        the_log->stall = (struct det_look){thread, now, 1};
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
