/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which mutexes are delegated: the option `delegate`, and which of its entries a mutex is.
 *
 * The names are those that `subutai profile` and `subutai report` print, and they are looked up at the start: a lock in
 * static memory is known by its address, any other by where the program has initialised it. One that is never
 * initialised, a C++ mutex for instance, is known by the call that first found it locked.
 *
 * An entry that is not found is told of when the program creates a thread: a shell that starts the program has none.
 */
#include "engine/direct/delegate_list.h"

#include <string.h>

#include "core/log.h"
#include "core/thread.h"
#include "decimal.h"
#include "engine/direct/delegate.h"
#include "engine/direct/delegate_place.h"
#include "os/symtab.h"
#include "os/unwind.h"
#include "switch/switch.h"

#define ENTRIES_MOST 64

#define ANY_SERVER UINT32_MAX /* by the mutex's address */
#define NO_SERVER "there is no server of that name"

#define SHOWN 100

struct entry {
    const char *name; /* in the option's text, at the start: a program may overwrite its environment */
    size_t n;
    char shown[SHOWN]; /* the name, or its beginning */
    uint32_t server;
    struct sbt_place place;
    const char *why_not;               /* NULL: it is delegated */
    uint64_t sections, batches, waits; /* atomic */
};

bool direct_delegates;
static struct entry entries[ENTRIES_MOST];
uint32_t direct_n_delegates;
static const char *no_list;  /* the option's text, which is no list of names; NULL: it is one */
static const char *left_out; /* the first name for which there was no room; NULL: there was */
static char kept[1024];      /* what one of the two points to */
static bool all, by_site, told;
static uint32_t too_many, of_most; /* servers that were asked for, and how many may be; 0: no more than those */

/* ---- the option ---- */

/* Copy what fits in. */
static const char *keep(char *to, size_t size, const char *text, size_t n) {
    n = n < size - 1 ? n : size - 1;
    memcpy(to, text, n);
    to[n] = '\0';
    return to;
}

static struct entry *new_entry(const char *name, size_t n) {
    struct entry *e = &entries[direct_n_delegates];
    *e = (struct entry){.name = name, .n = n, .server = ANY_SERVER};
    keep(e->shown, sizeof e->shown, name, n);
    return e;
}

/* "NUMBER", of a server. False: there is none. */
static bool parse_server(const char *text, const char *end, uint32_t *server) {
    *server = 0;
    for (const char *c = text; c < end; c++) {
        if (*c < '0' || *c > '9' || *server >= SBT_SWITCH_SERVERS_MOST)
            return false;
        *server = *server * 10 + (uint32_t)(*c - '0');
    }
    return text < end && *server < sbt_switch_servers;
}

/* Is there a name between all commas, and before each server? */
static bool is_list(const char *text) {
    for (;; text++) {
        if (*text == '@' || *text == ',' || *text == '\0')
            return false;
        text += strcspn(text, ",");
        if (*text == '\0')
            return true;
    }
}

/* A word that is an answer of its own, of n bytes. */
static bool stands_alone(const char *name, size_t n) {
    static const char *const words[] = {"none", "all", "auto", "auto!", "turns!"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == n && memcmp(name, words[i], n) == 0)
            return true;
    return false;
}

/* Why nothing has that name. */
static const char *why_unknown(const char *name, size_t n) {
    const char *colon = memchr(name, ':', n);
    if (colon == NULL)
        return "the program and its libraries have none of that name";
    if (colon + 1 < name + n && colon[1] == ':')
        return "a C++ name is that of the linker, _ZN..., as profile and report print it";
    return "no source line is known while a program runs, and the command has not found this one: name its symbol, or "
           "its function+0xN";
}

static const char *look_up(struct entry *e, uint32_t nth) {
    const char *at = memchr(e->name, '@', e->n);
    size_t n = at != NULL ? (size_t)(at - e->name) : e->n;
    if (stands_alone(e->name, n))
        return "it stands alone, without other names and servers";
    if (at != NULL && !parse_server(at + 1, e->name + e->n, &e->server))
        return NO_SERVER;
    if (memchr(e->name, ':', n) != NULL || !sbt_symtab_find(e->name, n, nth, &e->place))
        return why_unknown(e->name, n);
    if (at == NULL && e->place.data != 0 && sbt_switch_servers != 0)
        e->server = (uint32_t)(e - entries) % sbt_switch_servers;
    if (memchr(e->name, '+', n) == NULL)
        e->place.code = 0; /* no call returns to a function's first byte */
    return e->place.data != 0 || e->place.code != 0 ? NULL : "it is a function: add a call's place in it, +0xN";
}

/* False: there is none of that number, or no room for it. */
static bool add_nth(const char *name, size_t n, uint32_t nth) {
    if (direct_n_delegates == ENTRIES_MOST) {
        left_out = left_out == NULL && nth == 0 ? keep(kept, sizeof kept, name, strlen(name)) : left_out;
        return false;
    }
    struct entry *e = new_entry(name, n);
    e->why_not = look_up(e, nth);
    if (nth > 0 && e->why_not != NULL)
        return false;
    direct_n_delegates++;
    direct_delegates = direct_delegates || e->why_not == NULL;
    by_site = by_site || e->place.code != 0;
    return e->place.data != 0;
}

/* Static variables of several source files may have one name: the program's reports cannot tell them apart either. */
static void add(const char *name, size_t n) {
    for (uint32_t nth = 0; n != 0 && left_out == NULL && add_nth(name, n, nth); nth++)
        ;
}

/* Every mutex is of the one entry, and delegate_auto.c says when it is delegated. False: that is not wanted. */
static bool start_auto(const char *text) {
    static const char *const hows[] = {
        [DIRECT_SHARE_TRIED] = "auto", [DIRECT_SHARE_ANYWAY] = "auto!", [DIRECT_SHARE_BY_TURNS] = "turns!"};
    for (int how = 0; how <= DIRECT_SHARE_BY_TURNS; how++)
        if (strcmp(text, hows[how]) == 0) {
            new_entry(text, strlen(text));
            direct_n_delegates++;
            all = direct_delegates = true;
            direct_auto_start((enum direct_share_how)how);
            return true;
        }
    return false;
}

void direct_delegate_start(const char *text, uint32_t n_servers) {
    if (text == NULL || strcmp(text, "none") == 0)
        return;
    if (!is_list(text)) {
        no_list = keep(kept, sizeof kept, text, strlen(text));
        return;
    }
    if (n_servers > sbt_usable_cpus() || n_servers > SBT_SWITCH_SERVERS_MOST) {
        too_many = n_servers;
        of_most = sbt_usable_cpus() < SBT_SWITCH_SERVERS_MOST ? sbt_usable_cpus() : SBT_SWITCH_SERVERS_MOST;
        return;
    }
    sbt_switch_servers = n_servers;
    if (start_auto(text))
        return;
    if (strcmp(text, "all") == 0 || (strncmp(text, "all@", 4) == 0 && strchr(text, ',') == NULL)) {
        struct entry *e = new_entry(text, strlen(text));
        direct_n_delegates++;
        if (text[3] == '@' && !parse_server(text + 4, text + e->n, &e->server))
            e->why_not = NO_SERVER;
        all = direct_delegates = e->why_not == NULL;
        if (!all)
            sbt_switch_servers = 0;
        return;
    }
    for (const char *end; *text != '\0'; text = *end != '\0' ? end + 1 : end) {
        end = text + strcspn(text, ",");
        add(text, (size_t)(end - text));
    }
    if (!direct_delegates)
        sbt_switch_servers = 0; /* they would have nothing to do */
}

static void say_what_is_not(void) {
    char servers[DECIMAL_SIZE], most[DECIMAL_SIZE];
    if (no_list != NULL)
        sbt_log(1, "nothing is delegated: '", no_list, "' is no list of names with commas", NULL);
    if (too_many != 0)
        sbt_log(1, "nothing is delegated: ", decimal_of(servers, too_many),
                of_most < SBT_SWITCH_SERVERS_MOST ? " servers are more than the CPUs, which are "
                                                  : " servers are more than the library has room for, which is ",
                decimal_of(most, of_most), NULL);
    for (uint32_t i = 0; i < direct_n_delegates; i++)
        if (entries[i].why_not != NULL)
            sbt_log(1, "not delegated: '", entries[i].shown, "': ", entries[i].why_not, NULL);
    if (left_out != NULL)
        sbt_log(1, "not delegated: '", left_out, "': there are more names than the library has room for", NULL);
}

/* The first call is of the first thread, when symbols can be looked up; the next one is of a thread that was created.
 */
void direct_delegate_thread_enter(void) {
    static uint32_t n_calls;
    if (SBT_LIKELY(direct_n_delegates + too_many == 0 && no_list == NULL) ||
        __atomic_load_n(&n_calls, __ATOMIC_RELAXED) >= 2)
        return;
    uint32_t call = __atomic_fetch_add(&n_calls, 1, __ATOMIC_RELAXED);
    if (call == 0 && by_site)
        sbt_unwind_want();
    if (call == 1)
        say_what_is_not();
    told = told || call == 1;
}

/* ---- which one is it? ---- */
static uint32_t find(const struct sbt_mutex *mx, uintptr_t site) {
    for (uint32_t i = 0; i < direct_n_delegates; i++) {
        const struct entry *e = &entries[i];
        if (all || (e->why_not == NULL && ((e->place.data != 0 && e->place.data == (uintptr_t)mx) ||
                                           (e->place.code != 0 && site - e->place.code <= e->place.more))))
            return i + 1;
    }
    return DIRECT_DELEGATED_NOT;
}

static _Unwind_Reason_Code note_program(struct _Unwind_Context *context, void *site) {
    uintptr_t address = sbt_unwinder.ip(context);
    if (sbt_is_own_code(address))
        return _URC_NO_REASON;
    *(uintptr_t *)site = address;
    return _URC_END_OF_STACK;
}

uint32_t direct_delegate_find(struct sbt_mutex *mx) {
    uintptr_t site = 0;
    if (sbt_unwind_can())
        sbt_unwinder.backtrace(note_program, &site);
    uint32_t found = find(mx, site);
    __atomic_store_n(&mx->delegated, found, __ATOMIC_RELAXED);
    return found;
}

void direct_mutex_init(pthread_mutex_t *m, const void *site) {
    if (SBT_UNLIKELY(by_site))
        __atomic_store_n(&sbt_mutex_of(m)->delegated, find(sbt_mutex_of(m), (uintptr_t)site), __ATOMIC_RELAXED);
}

/* The number of an entry; false: there is none, because two threads have found the mutex at different places. */
static bool is_entry(uint32_t delegated) {
    return delegated - 1 < direct_n_delegates;
}

/* Mutexes of one entry are spread over the servers, unless it names one. */
uint32_t direct_delegate_server(struct sbt_mutex *mx) {
    uint32_t delegated = direct_delegated(mx),
             server = is_entry(delegated) ? entries[delegated - 1].server : ANY_SERVER;
    if (server != ANY_SERVER)
        return server;
    return direct_auto ? direct_auto_server(mx) : direct_place_by_address(mx, sizeof *mx, sbt_switch_servers);
}

/* ---- what has been delegated ---- */
void direct_delegate_count(uint32_t delegated, bool begins_batch, bool waits) {
    if (!is_entry(delegated))
        return;
    struct entry *e = &entries[delegated - 1];
    __atomic_fetch_add(&e->sections, 1, __ATOMIC_RELAXED);
    if (begins_batch)
        __atomic_fetch_add(&e->batches, 1, __ATOMIC_RELAXED);
    if (waits)
        __atomic_fetch_add(&e->waits, 1, __ATOMIC_RELAXED);
}

static void say_what_was(const struct entry *e) {
    char sections[DECIMAL_SIZE], batches[DECIMAL_SIZE], waits[DECIMAL_SIZE];
    const char *n_waits = decimal_of(waits, __atomic_load_n(&e->waits, __ATOMIC_RELAXED));
    sbt_log(2, "delegated: '", e->shown, "': ", decimal_of(sections, __atomic_load_n(&e->sections, __ATOMIC_RELAXED)),
            " sections in ", decimal_of(batches, __atomic_load_n(&e->batches, __ATOMIC_RELAXED)), " batches",
            sbt_switch_servers != 0 ? ", behind those of other mutexes " : NULL, n_waits, NULL);
}

static void say_how_often(void) {
    struct direct_auto_counts n = direct_auto_counted();
    char begun[DECIMAL_SIZE], ended[DECIMAL_SIZE], moved[DECIMAL_SIZE];
    const char *n_moved = decimal_of(moved, n.moved);
    sbt_log(2, "mutexes that were delegated because it pays: ", decimal_of(begun, n.begun),
            ", and not any more: ", decimal_of(ended, n.ended),
            sbt_switch_servers > 1 ? ", moved to another server: " : NULL, n_moved, NULL);
}

void direct_delegate_stop(void) {
    for (uint32_t i = 0; told && i < direct_n_delegates; i++)
        if (entries[i].why_not == NULL)
            say_what_was(&entries[i]);
    if (told && direct_auto)
        say_how_often();
}
