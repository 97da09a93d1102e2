/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The hint file: which call sites have hints. A call site is looked up once, at its first operation, and where hints
 * are for some callers, once with each caller; then a table has the answer. A symbol is looked up in the symbol table
 * of the file when the first call site of that file comes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>

#include "core/log.h"
#include "decimal.h"
#include "engine/det/hints.h"
#include "engine/det/places.h"
#include "os/arch.h"
#include "os/elf_image.h"
#include "os/memory.h"
#include "os/signals.h"

enum {
    MAX_SITES = 16384
}; /* a power of 2; the table is full at three quarters, and further sites are looked up anew */

static struct hint_sites {
    char path[4096];
    char text[HINTS_MAX_BYTES + 1];
    size_t n_bytes, n_hints;
    struct hint read[HINTS_MAX];
    struct site_hint {
        const struct hint *read;
        struct det_hint act;
        struct spot {
            uint64_t first, end;    /* in the module's file; equal: the symbol is not there */
            const char *looked_for; /* the module's path for which these are so; NULL: none */
        } call, caller[HINTS_CALLERS];
        bool is_used;
    } hint[HINTS_MAX];
    bool has_callers;
    uint32_t n_sites;
    struct site {
        uintptr_t address;              /* 0: free */
        uintptr_t chain[HINTS_CALLERS]; /* callers; 0: not known, or not needed */
        const struct det_hint *hint;
        uint32_t weight;
        uint32_t needs; /* callers; of the one with none */
    } site[MAX_SITES];
} * the_hints;

/* ---- reading ---- */

/* 0, or an errno value. The file's end is where the text ends. */
static int read_text(long fd) {
    long n;
    while ((n = sbt_syscall3(SYS_read, fd, the_hints->text + the_hints->n_bytes,
                             sizeof the_hints->text - the_hints->n_bytes)) > 0)
        the_hints->n_bytes += (size_t)n;
    return n < 0 ? (int)-n : the_hints->n_bytes > HINTS_MAX_BYTES ? EFBIG : 0;
}

static int read_file(const char *path) {
    uint64_t signals = sbt_signals_block(); /* a read may end with EINTR */
    long fd = sbt_syscall6(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0, 0, 0);
    int r = fd < 0 ? (int)-fd : read_text(fd);
    if (fd >= 0)
        sbt_syscall3(SYS_close, fd, 0, 0);
    sbt_signals_restore(signals);
    return r;
}

static int refuse(const char *before, const char *why) {
    sbt_log(0, "hints: ", the_hints->path, before, why, NULL);
    return EINVAL;
}

/* What is done; the rest is known when the call site comes. */
static struct det_hint act_of(const struct hint *h, uint32_t id) {
    return (struct det_hint){.kind = h->kind == HINT_GIVE_UP        ? DET_HINT_GIVE_UP
                                     : h->kind == HINT_KEEP         ? DET_HINT_KEEP
                                     : h->kind == HINT_SOFT_BARRIER ? DET_HINT_SOFT_BARRIER
                                                                    : DET_HINT_PCS,
                             .id = id,
                             .weight = h->weight,
                             .threads = h->threads,
                             .turns = h->turns,
                             .key = &the_hints->hint[id],
                             .said = 2 * (uint64_t)h->line};
}

static int parse(void) {
    struct hints_reader r;
    const struct hint *h;
    char error[512];
    if (!hints_begin(&r, the_hints->text, the_hints->n_bytes, the_hints->read, error, sizeof error))
        return refuse(":", error);
    while ((h = hints_next(&r, error, sizeof error)) != NULL) {
        uint32_t id = (uint32_t)the_hints->n_hints++;
        the_hints->hint[id] = (struct site_hint){.read = h, .act = act_of(h, id)};
        the_hints->has_callers |= h->n_callers != 0;
    }
    return error[0] != '\0' ? refuse(":", error) : 0;
}

int det_hint_sites_start(const char *path) {
    the_hints = sbt_memory_map(sizeof *the_hints);
    if (the_hints == NULL || !det_places_start())
        return ENOMEM;
    strncpy(the_hints->path, path, sizeof the_hints->path - 1);
    int r = read_file(path);
    const char *why = r == EFBIG ? "too large (legal: a mebibyte)" : strerrordesc_np(r);
    return r != 0 ? refuse(": ", why != NULL ? why : "unknown error") : parse();
}

struct schedule_hints det_hint_sites_summary(void) {
    return (struct schedule_hints){.hash = hints_hash(the_hints->text, the_hints->n_bytes), .n = the_hints->n_hints};
}

/* Paths are kept by places.h, and may be others now. */
void det_hint_sites_begin(void) {
    the_hints->n_sites = 0;
    memset(the_hints->site, 0, sizeof the_hints->site);
    for (size_t i = 0; i < the_hints->n_hints; i++) {
        the_hints->hint[i].call.looked_for = NULL;
        for (unsigned k = 0; k < HINTS_CALLERS; k++)
            the_hints->hint[i].caller[k].looked_for = NULL;
        the_hints->hint[i].is_used = false;
    }
}

/* ---- call sites ---- */

/* Look the symbol up in the file. */
static void find_symbol(struct spot *spot, const struct hints_call *call, const char *path) {
    uint64_t offset, size;
    long end = -1, image = -1;
    uint64_t signals = sbt_signals_block();
    long fd = sbt_syscall6(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0, 0, 0);
    if (fd >= 0) {
        end = sbt_syscall3(SYS_lseek, fd, 0, SEEK_END);
        if (end > 0)
            image = sbt_syscall6(SYS_mmap, 0, end, PROT_READ, MAP_PRIVATE, fd, 0);
        sbt_syscall3(SYS_close, fd, 0, 0);
    }
    sbt_signals_restore(signals);
    if (image < 0 && image > -4096)
        return;
    if (sbt_elf_image_function((const void *)image, (size_t)end, call->symbol.at, call->symbol.n, &offset, &size)) {
        spot->first = offset + call->offset;
        spot->end = call->is_whole ? offset + size : spot->first + 1;
    }
    sbt_syscall3(SYS_munmap, image, end, 0);
}

/* A return address, as a place in a file; path NULL: it is in none. The address is in the call, as in the log. */
struct code {
    const char *path;
    uint64_t offset;
};

static struct code code_of(uintptr_t return_address) {
    uintptr_t address = return_address - 1;
    uint32_t range = return_address != 0 ? det_range_of(address) : DET_NO_RANGE;
    if (range == DET_NO_RANGE)
        return (struct code){NULL, 0};
    const struct det_range *place = det_range(range);
    return (struct code){place->path, address - place->start + place->offset};
}

static bool is_at(struct spot *spot, const struct hints_call *call, const struct code *code) {
    if (code->path == NULL || !hints_is_module(&call->module, code->path))
        return false;
    if (spot->looked_for != code->path) {
        spot->looked_for = code->path;
        spot->first = call->offset;
        spot->end = call->symbol.n == 0 ? spot->first + 1 : spot->first;
        if (call->symbol.n != 0)
            find_symbol(spot, call, code->path);
    }
    return code->offset >= spot->first && code->offset < spot->end;
}

/* A call and its callers, as far as they are known. */
struct calls {
    struct code call, caller[HINTS_CALLERS];
};

static bool fits(struct site_hint *h, const struct calls *c) {
    bool is = is_at(&h->call, &h->read->call, &c->call);
    for (unsigned k = 0; k < h->read->n_callers && is; k++)
        is = is_at(&h->caller[k], &h->read->caller[k], &c->caller[k]);
    return is;
}

/* Of hints with so many callers: the first that fits, and the first weight, where none is known yet. */
static void choose(struct site *s, const struct calls *calls, unsigned n_callers, bool *has_weight) {
    for (size_t i = 0; i < the_hints->n_hints; i++) {
        struct site_hint *h = &the_hints->hint[i];
        bool is_weight = h->read->kind == HINT_WEIGHT, is_given = is_weight || h->read->kind == HINT_GIVE_UP;
        if ((is_weight ? *has_weight : s->hint != NULL) || h->read->n_callers != n_callers || !fits(h, calls))
            continue;
        h->is_used = true;
        if (!is_weight)
            s->hint = &h->act;
        if (is_given && !*has_weight) {
            s->weight = h->read->weight;
            *has_weight = is_weight;
        }
    }
    *has_weight = *has_weight || (s->hint != NULL && s->hint->kind == DET_HINT_GIVE_UP); /* no other's then */
}

/* How many callers hints for that call say at most. */
static uint32_t needs(const struct code *call) {
    uint32_t n = 0;
    for (size_t i = 0; i < the_hints->n_hints; i++) {
        struct site_hint *h = &the_hints->hint[i];
        if (h->read->n_callers > n && is_at(&h->call, &h->read->call, call))
            n = h->read->n_callers;
    }
    return n;
}

/* A hint with more callers goes before one with fewer. */
static void look_up(struct site *s) {
    struct calls calls = {.call = code_of(s->address)};
    bool has_weight = false;
    for (unsigned k = 0; k < HINTS_CALLERS; k++)
        calls.caller[k] = code_of(s->chain[k]);
    s->weight = 1;
    s->needs = needs(&calls.call);
    for (unsigned n = HINTS_CALLERS + 1; n-- > 0;)
        choose(s, &calls, n, &has_weight);
}

static struct site find_site(uintptr_t site, const uintptr_t *chain, unsigned n) {
    struct site sought = {.address = site};
    uint64_t hash = site;
    for (unsigned k = 0; k < n; k++) {
        sought.chain[k] = chain[k];
        hash = hash * SCHEDULE_HASH_FACTOR ^ chain[k];
    }
    uint32_t i = (uint32_t)(hash * SCHEDULE_HASH_FACTOR >> 40) % MAX_SITES;
    for (; the_hints->site[i].address != 0; i = (i + 1) % MAX_SITES)
        if (the_hints->site[i].address == site &&
            memcmp(the_hints->site[i].chain, sought.chain, sizeof sought.chain) == 0)
            return the_hints->site[i];
    look_up(&sought);
    if (the_hints->n_sites < MAX_SITES / 4 * 3) {
        the_hints->n_sites++;
        the_hints->site[i] = sought;
    }
    return sought;
}

bool det_hint_sites_have_callers(void) {
    return the_hints->has_callers;
}

unsigned det_hint_site_needs(uintptr_t site) {
    return find_site(site, NULL, 0).needs;
}

const struct det_hint *det_hint_at(uintptr_t site, const uintptr_t *chain, uint32_t *weight) {
    struct site s = find_site(site, NULL, 0);
    if (chain != NULL && s.needs != 0)
        s = find_site(site, chain, s.needs);
    *weight = s.weight;
    return s.hint;
}

void det_hint_sites_stop(void) {
    char line[DECIMAL_SIZE];
    for (size_t i = 0; i < the_hints->n_hints; i++)
        if (!the_hints->hint[i].is_used)
            sbt_log(2, "hints: ", the_hints->path, ":", decimal_of(line, the_hints->hint[i].read->line),
                    ": no operation was made there", NULL);
}
