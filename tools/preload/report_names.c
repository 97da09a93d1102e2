/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of a report, each made once; see report_names.h. */
#include "report_names.h"

#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "demangle.h"
#include "python_lock.h"
#include "symbols.h"

struct names {
    const struct sbt_trace *trace;
    const struct rep_report *report;
    struct symbols *symbols;
    struct site_name *sites; /* [n_sites] */
    char **places;           /* [n_sites], short */
    char **objects, **object_symbols, **object_delegated, **threads;
    bool *object_asked;
    struct progress *progress; /* NULL: none is shown */
    unsigned long n_asked;
};

static const struct site_name nothing = {.place = (char *)""};

struct names *names_new(const struct sbt_trace *trace, const struct rep_report *report) {
    struct names *n = cmd_allocate(1, sizeof *n);
    *n = (struct names){.trace = trace,
                        .report = report,
                        .symbols = symbols_new(),
                        .sites = cmd_allocate(report->info.n_sites, sizeof *n->sites),
                        .places = cmd_allocate(report->info.n_sites, sizeof *n->places),
                        .objects = cmd_allocate(report->info.n_objects, sizeof *n->objects),
                        .object_symbols = cmd_allocate(report->info.n_objects, sizeof *n->object_symbols),
                        .object_delegated = cmd_allocate(report->info.n_objects, sizeof *n->object_delegated),
                        .object_asked = cmd_allocate(report->info.n_objects, sizeof *n->object_asked),
                        .threads = cmd_allocate(report->info.n_threads, sizeof *n->threads)};
    return n;
}

static void free_all(char **texts, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        free(texts[i]);
    free(texts);
}

void names_free(struct names *n) {
    for (uint32_t i = 0; i < n->report->info.n_sites; i++) {
        free(n->sites[i].place);
        free(n->sites[i].file);
        free(n->sites[i].function);
        free(n->sites[i].module);
        free(n->sites[i].symbol);
    }
    free(n->sites);
    free_all(n->places, n->report->info.n_sites);
    free_all(n->objects, n->report->info.n_objects);
    free_all(n->object_symbols, n->report->info.n_objects);
    free_all(n->object_delegated, n->report->info.n_objects);
    free_all(n->threads, n->report->info.n_threads);
    free(n->object_asked);
    symbols_free(n->symbols);
    free(n);
}

void names_watch(struct names *n, struct progress *progress) {
    n->progress = progress;
}

/* A name is about to be looked up, in files perhaps. */
static void ask(struct names *n) {
    n->n_asked++;
    if (n->progress != NULL)
        progress_count(n->progress, n->n_asked, "names looked up");
}

static char *copy(const char *text) {
    return text != NULL ? cmd_format("%s", text) : NULL;
}

const struct site_name *names_site(struct names *n, uint32_t site) {
    struct place place;
    if (site >= n->report->info.n_sites)
        return &nothing;
    struct site_name *s = &n->sites[site];
    if (s->asked)
        return s;
    ask(n);
    symbols_place(n->symbols, sbt_trace_site_name(n->trace, site), &place);
    *s = (struct site_name){.place = copy(place.text),
                            .file = copy(place.file),
                            .function = copy(place.function),
                            .module = copy(place.module),
                            .symbol = copy(place.symbol),
                            .line = place.line,
                            .asked = true};
    return s;
}

uint32_t names_next_site(const struct names *n, uint32_t site) {
    for (site = site == REP_NONE ? 0 : site + 1; site < n->report->info.n_sites; site++)
        if (n->sites[site].asked)
            return site;
    return REP_NONE;
}

const char *names_place(struct names *n, uint32_t site) {
    const struct site_name *s = names_site(n, site);
    if (site >= n->report->info.n_sites || s->place[0] == '\0')
        return "?";
    if (n->places[site] == NULL) {
        bool has_module = s->file != NULL || s->function != NULL; /* behind it, as " (app)" */
        size_t length = strlen(s->place) - (has_module ? strlen(s->module) + strlen(" ()") : 0);
        n->places[site] = cmd_format("%.*s", (int)length, s->place);
    }
    return n->places[site];
}

const char *names_symbol(struct names *n, uint32_t object) {
    if (object >= n->report->info.n_objects)
        return NULL;
    if (n->object_asked[object])
        return n->object_symbols[object];
    n->object_asked[object] = true;
    ask(n);
    uint64_t address = sbt_trace_object_address(n->trace, object), into;
    struct sbt_trace_module module;
    for (uint32_t i = 0; address != 0 && sbt_trace_module(n->trace, i, &module); i++) {
        const char *name = symbols_data(n->symbols, module.path, module.start, module.offset, address, &into);
        if (name == NULL)
            continue;
        n->object_symbols[object] = into == 0 ? cmd_format("%s", name) : cmd_format("%s+0x%jx", name, (uintmax_t)into);
        break;
    }
    return n->object_symbols[object];
}

/* The library knows one that is never initialised by the call that first found it locked. */
static uint32_t site_to_delegate(const struct rep_report *r, uint32_t object) {
    if (r->objects[object].made_by_init)
        return r->objects[object].made;
    for (size_t i = 0; i < r->n_site_pairs; i++) /* the most first */
        if (r->site_pairs[i].object == object)
            return r->site_pairs[i].waiter_site;
    return r->objects[object].made;
}

/*
 * Has the text no letter that means something to a shell, or to --engines? OpenMP's locks, no mutexes, have such.
 * MOST_NAME: many times what templates make, and no command line to read.
 */
static bool is_name(const char *text) {
    enum { MOST_NAME = 4000 };
    static const char of_name[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-.";
    return text[0] != '\0' && text[strspn(text, of_name)] == '\0' && strlen(text) < MOST_NAME;
}

const char *names_delegated(struct names *n, uint32_t object) {
    const struct rep_report *r = n->report;
    if (object >= r->info.n_objects || r->objects[object].type != SBT_TRACE_MUTEX)
        return NULL;
    const char *symbol = names_symbol(n, object);
    if (symbol != NULL)
        return is_name(symbol) && strncmp(symbol, "openmp_", strlen("openmp_")) != 0 ? symbol : NULL;
    if (n->object_delegated[object] == NULL) {
        uint32_t at = site_to_delegate(r, object);
        const char *site = at < r->info.n_sites ? sbt_trace_site_name(n->trace, at) : "", *slash = strrchr(site, '/');
        n->object_delegated[object] = cmd_format("%s", slash != NULL ? slash + 1 : site);
    }
    return is_name(n->object_delegated[object]) ? n->object_delegated[object] : NULL;
}

bool names_says_delegated(struct names *n, uint32_t object) {
    const char *symbol = names_symbol(n, object);
    return symbol != NULL ? strcmp(symbol, names_object(n, object)) == 0
                          : site_to_delegate(n->report, object) == n->report->objects[object].made;
}

/* "app::pool+0x28" of "_ZN3app4poolE+0x28". */
static char *readable(const char *symbol) {
    size_t length = strcspn(symbol, "+");
    char *base = cmd_format("%.*s", (int)length, symbol), *name = demangle(base);
    char *text = cmd_format("%s%s", name != NULL ? name : base, symbol + length);
    free(name);
    free(base);
    return text;
}

bool names_is_openmps(struct names *n, uint32_t object) {
    const char *symbol = names_symbol(n, object);
    return symbol != NULL && (strcmp(symbol, "openmp_regions") == 0 || strcmp(symbol, "openmp_tasks") == 0);
}

static bool is_python_lock(unsigned type, const char *symbol) {
    const size_t length = strlen(PYTHON_LOCK_IN);
    return symbol != NULL && (type == SBT_TRACE_COND || type == SBT_TRACE_MUTEX) &&
           strncmp(symbol, PYTHON_LOCK_IN, length) == 0 && (symbol[length] == '+' || symbol[length] == '\0');
}

const char *names_object(struct names *n, uint32_t object) {
    if (object >= n->report->info.n_objects)
        return "-";
    if (n->objects[object] == NULL) {
        const struct rep_object *o = &n->report->objects[object];
        const char *symbol = names_symbol(n, object);
        n->objects[object] =
            is_python_lock(o->type, symbol) ? cmd_format("GIL (%s)", symbol)
            : symbol != NULL                ? readable(symbol)
            : o->made != REP_NONE && names_site(n, o->made)->place[0] != '\0'
                ? cmd_format("%s#%u (%s)", sbt_trace_type_name(o->type), object, names_place(n, o->made))
                : cmd_format("%s#%u", sbt_trace_type_name(o->type), object);
    }
    return n->objects[object];
}

char *names_stack(struct names *n, uint32_t stack, unsigned most) {
    uint32_t sites[NAMES_MOST_FRAMES];
    uint32_t n_sites = stack != 0 ? sbt_trace_stack(n->trace, stack, sites, NAMES_MOST_FRAMES) : 0;
    char *text = NULL;
    for (uint32_t i = 0; i < n_sites && i < most && i < NAMES_MOST_FRAMES; i++) {
        const char *function = names_site(n, sites[i])->function;
        char *longer = cmd_format("%s%s%s", text != NULL ? text : "", text != NULL ? " < " : "",
                                  function != NULL ? function : names_place(n, sites[i]));
        free(text);
        text = longer;
    }
    return text;
}

const char *names_routine(struct names *n, uint32_t thread) {
    return names_site(n, sbt_trace_thread_routine(n->trace, thread))->function;
}

const char *names_thread(struct names *n, uint32_t thread) {
    if (thread >= n->report->info.n_threads)
        return "?";
    if (n->threads[thread] == NULL) {
        const char *routine = names_routine(n, thread);
        n->threads[thread] = thread == 0       ? cmd_format("main")
                             : routine != NULL ? cmd_format("%s#%u", routine, thread)
                                               : cmd_format("thread#%u", thread);
    }
    return n->threads[thread];
}
