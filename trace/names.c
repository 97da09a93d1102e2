/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Definitions, and the names made of them. Names are for people. A block with damaged definitions is passed over
 * here; the cursor that comes to the events of the block reports the damage.
 */
#include "read.h"

#include <stdio.h>
#include <stdlib.h>

void trace_definitions_begin(const struct sbt_trace *trace, uint64_t offset, const struct trace_block *header,
                             struct trace_definitions *walk) {
    const uint8_t *end = trace->bytes + offset + sizeof *header + trace_payload_bytes(header);
    unsigned n = trace->info.version > 1 ? TRACE_N_DEFINITIONS : TRACE_DEFINE_TOTALS + 1;
    *walk = (struct trace_definitions){.at = end - header->definition_bytes, .end = end, .n_known = n};
}

/* How many numbers each definition has, and whether a text follows them. */
static const struct {
    uint8_t n_numbers;
    bool text;
} shapes[] = {
    [TRACE_DEFINE_OBJECT] = {2, false},  [TRACE_DEFINE_SITE] = {2, false},    [TRACE_DEFINE_MODULE] = {3, true},
    [TRACE_DEFINE_COMMAND] = {0, true},  [TRACE_DEFINE_ENGINE] = {0, true},   [TRACE_DEFINE_PROCESS] = {3, false},
    [TRACE_DEFINE_TOTALS] = {3, false},  [TRACE_DEFINE_STACK] = {1, true},    [TRACE_DEFINE_MADE] = {3, false},
    [TRACE_DEFINE_ROUTINE] = {3, false}, [TRACE_DEFINE_PROFILE] = {3, false}, [TRACE_DEFINE_TALLIED] = {3, false},
    [TRACE_DEFINE_MISSES] = {3, false},  [TRACE_DEFINE_QUEUED] = {3, false},
};

int trace_definitions_next(struct trace_definitions *walk, struct trace_defined *defined) {
    if (walk->at == walk->end)
        return 0;
    unsigned what = *walk->at++;
    if (what < TRACE_DEFINE_OBJECT || what >= walk->n_known)
        return -1;
    *defined = (struct trace_defined){.what = (enum trace_definition)what};
    for (unsigned i = 0; i < shapes[what].n_numbers; i++) {
        walk->at = trace_get(walk->at, walk->end, &defined->number[i]);
        if (walk->at == NULL)
            return -1;
    }
    if (shapes[what].text) {
        walk->at = trace_get(walk->at, walk->end, &defined->n_text);
        if (walk->at == NULL || defined->n_text > TRACE_MAX_TEXT || defined->n_text > (uint64_t)(walk->end - walk->at))
            return -1;
        defined->text = (const char *)walk->at;
        walk->at += defined->n_text;
    }
    if (what == TRACE_DEFINE_OBJECT)
        defined->number[1] = walk->last_object += trace_unzigzag(defined->number[1]);
    if (what == TRACE_DEFINE_SITE)
        defined->number[1] = walk->last_site += trace_unzigzag(defined->number[1]);
    return 1;
}

static void add_module(struct trace_names *names, const struct trace_defined *d) {
    struct trace_module *longer = realloc(names->modules, (names->n_modules + 1) * sizeof *longer);
    if (longer == NULL)
        return;
    names->modules = longer;
    char *path = strndup(d->text, d->n_text);
    if (path != NULL)
        longer[names->n_modules++] = (struct trace_module){d->number[0], d->number[1], d->number[2], path};
}

/* Numbers are dense, so there are about as many stacks as definitions of stacks. Each has some bytes of the file. */
static void add_stack(struct sbt_trace *trace, const struct trace_defined *d) {
    struct trace_names *names = &trace->names;
    uint64_t number = d->number[0];
    if (number == 0 || number > trace->size)
        return;
    if (number > names->n_stacks) {
        size_t n = number > 2 * names->n_stacks ? number : 2 * names->n_stacks;
        struct trace_stack *longer = realloc(names->stacks, n * sizeof *longer);
        if (longer == NULL)
            return;
        memset(longer + names->n_stacks, 0, (n - names->n_stacks) * sizeof *longer);
        names->stacks = longer;
        names->n_stacks = n;
    }
    names->stacks[number - 1] = (struct trace_stack){(const uint8_t *)d->text, (uint32_t)d->n_text};
}

static void add_number(struct sbt_trace *trace, const struct trace_defined *d) {
    struct trace_names *names = &trace->names;
    if (d->what == TRACE_DEFINE_OBJECT && d->number[0] < trace->info.n_objects && names->objects != NULL)
        names->objects[d->number[0]] = d->number[1];
    if (d->what == TRACE_DEFINE_SITE && d->number[0] < trace->info.n_sites && names->sites != NULL)
        names->sites[d->number[0]] = d->number[1];
    if (d->what == TRACE_DEFINE_QUEUED && d->number[0] < trace->info.n_threads && names->queued != NULL)
        names->queued[d->number[0]] = d->number[1] < UINT64_MAX ? d->number[1] + 1 : 0;
    if (d->number[1] >= trace->info.n_sites)
        return;
    if (d->what == TRACE_DEFINE_MADE && d->number[0] < trace->info.n_objects && names->made != NULL)
        names->made[d->number[0]] = (struct sbt_trace_made){(uint32_t)d->number[1], (uint32_t)d->number[2]};
    if (d->what == TRACE_DEFINE_ROUTINE && d->number[0] < trace->info.n_threads && names->routines != NULL)
        names->routines[d->number[0]] = (uint32_t)d->number[1] + 1;
}

static void load_block(struct sbt_trace *trace, uint64_t offset) {
    struct trace_block header = trace_block_at(trace, offset);
    struct trace_names *names = &trace->names;
    struct trace_definitions walk;
    struct trace_defined d;
    if (header.definition_bytes == 0 || !trace_payload_whole(trace, offset, &header))
        return;
    trace_definitions_begin(trace, offset, &header, &walk);
    while (trace_definitions_next(&walk, &d) == 1) {
        if (d.what == TRACE_DEFINE_MODULE)
            add_module(names, &d);
        else if (d.what == TRACE_DEFINE_STACK)
            add_stack(trace, &d);
        else
            add_number(trace, &d);
    }
}

/* The caller's trace is const, since nothing changes that the caller can see. */
static struct trace_names *names_of(const struct sbt_trace *const_trace) {
    struct sbt_trace *trace = (struct sbt_trace *)(uintptr_t)const_trace;
    struct trace_names *names = &trace->names;
    if (names->loaded)
        return names;
    names->loaded = true;
    names->objects = calloc((size_t)trace->info.n_objects + 1, sizeof *names->objects);
    names->sites = calloc((size_t)trace->info.n_sites + 1, sizeof *names->sites);
    names->site_modules = malloc(((size_t)trace->info.n_sites + 1) * sizeof *names->site_modules);
    for (uint32_t i = 0; names->site_modules != NULL && i < trace->info.n_sites; i++)
        names->site_modules[i] = TRACE_NOT_LOOKED_FOR;
    names->routines = calloc((size_t)trace->info.n_threads + 1, sizeof *names->routines);
    names->queued = calloc((size_t)trace->info.n_threads + 1, sizeof *names->queued);
    if (trace->info.profile)
        names->made = malloc(((size_t)trace->info.n_objects + 1) * sizeof *names->made);
    for (uint32_t i = 0; names->made != NULL && i < trace->info.n_objects; i++)
        names->made[i] = (struct sbt_trace_made){.site = SBT_TRACE_NONE};
    for (size_t i = 0; i < trace->n_others; i++)
        load_block(trace, trace->others[i]);
    for (size_t i = 0; i < trace->n_blocks; i++)
        load_block(trace, trace->blocks[i]);
    return names;
}

uint64_t sbt_trace_object_address(const struct sbt_trace *trace, uint32_t object) {
    struct trace_names *names = names_of(trace);
    return object < trace->info.n_objects && names->objects != NULL ? names->objects[object] : 0;
}

bool sbt_trace_object_made(const struct sbt_trace *trace, uint32_t object, struct sbt_trace_made *made) {
    struct trace_names *names = names_of(trace);
    if (object >= trace->info.n_objects || names->made == NULL || names->made[object].site == SBT_TRACE_NONE)
        return false;
    *made = names->made[object];
    return true;
}

uint32_t sbt_trace_thread_routine(const struct sbt_trace *trace, uint32_t thread) {
    struct trace_names *names = names_of(trace);
    bool known = thread < trace->info.n_threads && names->routines != NULL && names->routines[thread] != 0;
    return known ? names->routines[thread] - 1 : SBT_TRACE_NONE;
}

bool sbt_trace_thread_queued(const struct sbt_trace *trace, uint32_t thread, uint64_t *ns) {
    const struct trace_names *names = names_of(trace);
    if (thread >= trace->info.n_threads || names->queued == NULL || names->queued[thread] == 0)
        return false;
    *ns = names->queued[thread] - 1;
    return true;
}

uint32_t sbt_trace_stack(const struct sbt_trace *trace, uint32_t stack, uint32_t *sites, uint32_t max) {
    struct trace_names *names = names_of(trace);
    uint32_t n = 0;
    if (stack == 0 || stack > names->n_stacks || names->stacks[stack - 1].at == NULL)
        return 0;
    const uint8_t *at = names->stacks[stack - 1].at, *end = at + names->stacks[stack - 1].n_bytes;
    uint64_t site;
    while (at < end && (at = trace_get(at, end, &site)) != NULL && site < trace->info.n_sites) {
        if (n < max)
            sites[n] = (uint32_t)site;
        n++;
    }
    return n;
}

/* The module that the address is in, counted from 1; 0: none. The latest, since a module may have been loaded in the
 * place of another one. */
static uint32_t module_of(const struct trace_names *names, uint64_t address) {
    uint32_t i = names->n_modules < UINT32_MAX ? (uint32_t)names->n_modules : 0;
    while (i > 0 && address - names->modules[i - 1].start >= names->modules[i - 1].length)
        i--;
    return i;
}

/*
 * A return address is behind the call, perhaps behind the whole function, so the name is that of the call's last byte.
 * Names are not kept: a stranger's trace can have very many sites in a module with a very long path.
 */
const char *sbt_trace_site_name(const struct sbt_trace *trace, uint32_t site) {
    struct trace_names *names = names_of(trace);
    if (site >= trace->info.n_sites || names->sites == NULL || names->site_modules == NULL || names->sites[site] == 0)
        return "";
    uint64_t address = names->sites[site] - 1;
    uint32_t *module = &names->site_modules[site];
    if (*module == TRACE_NOT_LOOKED_FOR)
        *module = module_of(names, address);
    if (*module == 0)
        return "";
    const struct trace_module *m = &names->modules[*module - 1];
    snprintf(names->site_name, sizeof names->site_name, "%s+0x%llx", m->path,
             (unsigned long long)(address - m->start + m->offset));
    return names->site_name;
}

bool sbt_trace_module(const struct sbt_trace *trace, uint32_t number, struct sbt_trace_module *module) {
    const struct trace_names *names = names_of(trace);
    if (number >= names->n_modules)
        return false;
    const struct trace_module *m = &names->modules[number];
    *module = (struct sbt_trace_module){m->path, m->start, m->length, m->offset};
    return true;
}

void trace_names_free(struct sbt_trace *trace) {
    struct trace_names *names = &trace->names;
    for (size_t i = 0; i < names->n_modules; i++)
        free(names->modules[i].path);
    free(names->modules);
    free(names->site_modules);
    free(names->stacks);
    free(names->routines);
    free(names->queued);
    free(names->made);
    free(names->sites);
    free(names->objects);
}
