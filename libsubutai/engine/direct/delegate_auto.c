/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `--delegate auto`: samples of contended mutexes, and which of them are delegated at present.
 *
 * A free mutex is taken, and unlocked, as if there were none of this. Of the locks that find a mutex locked one in
 * DIRECT_SHARE_EVERY is timed: the wait, and the section. The section's end is found by the bit TIMED of the mutex's
 * word, which sends the unlock to the slow path. While threads are not switched nothing could come of it, and none is.
 *
 * What is known of a mutex is in a table here, by its address, and not in the mutex: the monitor decides, and must not
 * touch a mutex that the program may have freed. The table has sets of WAYS places, a cache line each. A mutex for
 * which its set has no room is not watched. The monitor frees the place of a mutex of which nothing has come for long,
 * and in a full set that of one that is not worth delegating: the mutex that is found locked most often takes it. An
 * address may be used again, by another mutex: that is taken for the first one until the samples say otherwise.
 *
 * Any answer is right at any time, because a mutex may be delegated for one thread's lock and not for another's unlock:
 * the waiters wait in the same queue either way (delegate.h, "threads that are not switched"). So everything is
 * relaxed.
 */
#include "engine/direct/delegate_auto.h"

#include <string.h>

#include "core/log.h"
#include "engine/direct/delegate_place.h"
#include "engine/direct/direct.h"
#include "switch/switch.h"

#define SETS 32
#define WAYS 4
#define QUIET_ROUNDS 64   /* without samples, after which a mutex's place is free */
#define VAIN_ROUNDS 4     /* not worth delegating, after which it is if the set is full */
#define FEW_NS 400000000u /* and of a round with few samples */
#define TRIALS_APART_NS 250000000u
#define SERVERS_ROUND_NS 100000000u          /* after which a mutex may get another server */
#define SERVERS_ROUND_LONGEST_NS 2000000000u /* and if few sections were handed over: beside other programs */

struct place {
    const void *key;    /* the mutex; NULL: the place is free; atomic */
    uint32_t delegated; /* atomic, the monitor's */
    uint32_t server;    /* 1 + its number; 0: the mutex's address says it; atomic, the monitor's */
} __attribute__((aligned(16)));

/* Atomic, and only added to. */
static struct sums {
    uint64_t n, n_long, busy_ns, n_handed;
    uint64_t section_ns; /* the part of busy_ns in sections */
    uint64_t n_behind;   /* the part of n_handed behind other mutexes' sections */
} __attribute__((aligned(64))) sums[SETS * WAYS];

/* The monitor's own. */
static struct watched {
    struct direct_share_state state;
    struct direct_share_sums then; /* at the beginning of this round */
    uint64_t since_ns;             /* 0: the place was free */
    uint32_t n_quiet, n_vain;      /* rounds in a row */
    bool answer;                   /* of the last trial */
    uint64_t mean_ns;              /* of its sections when last known; 0: not known */
} watched[SETS * WAYS];

static struct place places[SETS * WAYS] __attribute__((aligned(64)));
static struct sums served_then[SETS * WAYS]; /* at the beginning of this round of servers */
static uint64_t served_since_ns;             /* 0: there is none */
static struct sums served_kept[SETS * WAYS]; /* while a trial is under way: of the round so far, */
static uint64_t served_kept_ns;              /* and how long it was. 0: it goes on */
static enum direct_share_how how_decided;
static uint64_t next_trial_ns;
static struct direct_auto_counts counts; /* atomic */

bool direct_auto, direct_auto_samples;

void direct_auto_start(enum direct_share_how how) {
    how_decided = how;
    direct_auto = true;
}

/* ---- threads ---- */

static struct place *set_of(const void *key) {
    uint64_t mixed = (uint64_t)(uintptr_t)key * UINT64_C(0x9E3779B97F4A7C15);
    return &places[(mixed >> 59) % SETS * WAYS];
}

static struct place *find(const void *key) {
    struct place *set = set_of(key);
    for (int i = 0; i < WAYS; i++)
        if (__atomic_load_n(&set[i].key, __ATOMIC_RELAXED) == key)
            return &set[i];
    return NULL;
}

/* Two threads may give a mutex two places. Then it is watched in the first, and the monitor frees the other. */
static struct place *find_or_claim(const void *key) {
    struct place *at = find(key), *set = set_of(key);
    for (int i = 0; i < WAYS && at == NULL; i++) {
        const void *none = NULL;
        if (__atomic_compare_exchange_n(&set[i].key, &none, key, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            at = &set[i];
    }
    return at;
}

bool direct_auto_delegates(const struct sbt_mutex *mx) {
    const struct place *at = find(mx);
    return at != NULL && __atomic_load_n(&at->delegated, __ATOMIC_RELAXED) != 0;
}

void direct_auto_begin_section(struct sbt_mutex *mx, uint64_t since_ns) {
    struct place *at = find_or_claim(mx);
    uint64_t now = sbt_now_ns();
    if (at == NULL)
        return;
    __atomic_fetch_add(&sums[at - places].busy_ns, now - since_ns, __ATOMIC_RELAXED);
    direct_self.timed = mx;
    direct_self.timed_ns = now;
    __atomic_fetch_or(&mx->state, DIRECT_TIMED, __ATOMIC_RELAXED);
}

/* Another thread's lock may have been timed, or the thread's last timed lock may have been of another mutex. */
uint32_t direct_auto_end_section(struct sbt_mutex *mx) {
    struct place *at = direct_self.timed == mx ? find(mx) : NULL;
    direct_self.timed = NULL;
    if (at != NULL) {
        struct sums *s = &sums[at - places];
        uint64_t ns = sbt_now_ns() - direct_self.timed_ns;
        __atomic_fetch_add(&s->busy_ns, ns, __ATOMIC_RELAXED);
        __atomic_fetch_add(&s->section_ns, ns, __ATOMIC_RELAXED);
        __atomic_fetch_add(&s->n_long, ns >= direct_share_long_ns(how_decided), __ATOMIC_RELAXED);
        __atomic_fetch_add(&s->n, 1, __ATOMIC_RELAXED);
    }
    return __atomic_fetch_and(&mx->state, ~(uint32_t)DIRECT_TIMED, __ATOMIC_RELAXED) & ~(uint32_t)DIRECT_TIMED;
}

void direct_auto_handed(const struct sbt_mutex *mx, bool behind) {
    const struct place *at = find(mx);
    if (at == NULL)
        return;
    __atomic_fetch_add(&sums[at - places].n_handed, 1, __ATOMIC_RELAXED);
    if (behind)
        __atomic_fetch_add(&sums[at - places].n_behind, 1, __ATOMIC_RELAXED);
}

static uint32_t server_of(const struct place *at, const void *key) {
    uint32_t server = at != NULL ? __atomic_load_n(&at->server, __ATOMIC_RELAXED) : 0;
    return server != 0 ? server - 1 : direct_place_by_address(key, sizeof(struct sbt_mutex), sbt_switch_servers);
}

uint32_t direct_auto_server(const struct sbt_mutex *mx) {
    return server_of(find(mx), mx);
}

/* ---- the monitor ---- */

static struct direct_share_sums read_sums(size_t i) {
    return (struct direct_share_sums){__atomic_load_n(&sums[i].n, __ATOMIC_RELAXED),
                                      __atomic_load_n(&sums[i].n_long, __ATOMIC_RELAXED),
                                      __atomic_load_n(&sums[i].busy_ns, __ATOMIC_RELAXED)};
}

/* How the round that has ended was; it goes on otherwise. */
static enum direct_share share_of(struct watched *w, size_t i, const struct sbt_switch_look *look) {
    struct direct_share_sums now = read_sums(i),
                             in_round = {now.n - w->then.n, now.n_long - w->then.n_long, now.busy_ns - w->then.busy_ns};
    enum direct_share share = direct_share_of(&in_round, look->now_ns - w->since_ns, look->n_threads);
    if (share != DIRECT_SHARE_UNKNOWN) {
        w->n_quiet = in_round.n == 0 ? w->n_quiet + 1 : 0;
        bool worth_it = share == DIRECT_SHARE_BETWEEN || share == DIRECT_SHARE_HOT;
        w->n_vain = worth_it ? 0 : w->n_vain + 1;
        w->then = now;
        w->since_ns = look->now_ns;
    }
    return share;
}

static void say(const void *key, const char *what) {
    char address[2 * sizeof key + 1];
    size_t at = sizeof address - 1;
    address[at] = '\0';
    for (uintptr_t rest = (uintptr_t)key; at > 0 && (rest != 0 || at == sizeof address - 1); rest /= 16)
        address[--at] = "0123456789abcdef"[rest % 16];
    sbt_log(3, "the mutex at 0x", address + at, what, NULL);
}

static void answer(struct watched *w, const void *key, bool delegated) {
    if (w->answer == delegated)
        return;
    w->answer = delegated;
    __atomic_fetch_add(delegated ? &counts.begun : &counts.ended, 1, __ATOMIC_RELAXED);
    say(key, delegated ? " is delegated" : " is not delegated any more");
}

static void set_delegated(size_t i, bool delegated) {
    if ((__atomic_load_n(&places[i].delegated, __ATOMIC_RELAXED) != 0) != delegated)
        __atomic_store_n(&places[i].delegated, delegated, __ATOMIC_RELAXED);
}

static struct sums read_served(size_t i) {
    return (struct sums){.n = __atomic_load_n(&sums[i].n, __ATOMIC_RELAXED),
                         .n_handed = __atomic_load_n(&sums[i].n_handed, __ATOMIC_RELAXED),
                         .section_ns = __atomic_load_n(&sums[i].section_ns, __ATOMIC_RELAXED),
                         .n_behind = __atomic_load_n(&sums[i].n_behind, __ATOMIC_RELAXED)};
}

/* What the mutex has added in this round of servers is not the next one's. */
static void free_place(size_t i) {
    watched[i] = (struct watched){0};
    served_then[i] = read_served(i);
    served_kept[i] = (struct sums){0};
    set_delegated(i, false);
    __atomic_store_n(&places[i].server, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&places[i].key, NULL, __ATOMIC_RELAXED);
}

static bool is_set_full(size_t i) {
    bool full = true;
    for (size_t k = i / WAYS * WAYS; k < (i / WAYS + 1) * WAYS; k++)
        full = full && __atomic_load_n(&places[k].key, __ATOMIC_RELAXED) != NULL;
    return full;
}

/* In a full set also what has been tried in vain: a hot mutex that has no place is worse than a trial too many. */
static bool is_forgotten(size_t i, uint64_t now_ns) {
    const struct watched *w = &watched[i];
    if (w->state.pays.switches || sbt_pays_is_in_trial(&w->state.pays))
        return false;
    return (w->n_quiet >= QUIET_ROUNDS && now_ns >= w->state.pays.next_ns) ||
           ((w->n_vain >= VAIN_ROUNDS || now_ns - w->since_ns >= FEW_NS) && is_set_full(i));
}

static void step(size_t i, const void *key, const struct sbt_switch_look *look, bool *is_tried) {
    struct watched *w = &watched[i];
    if (w->since_ns == 0) {
        w->since_ns = look->now_ns;
        w->then = read_sums(i);
    }
    bool was_in_trial = sbt_pays_is_in_trial(&w->state.pays);
    bool may_try = was_in_trial || (!*is_tried && look->now_ns >= next_trial_ns);
    struct sbt_pays_seen seen = {.now_ns = look->now_ns,
                                 .progress = look->progress,
                                 .n_switches = __atomic_load_n(&sums[i].n_handed, __ATOMIC_RELAXED),
                                 .crowded = true};
    bool delegated = direct_share_step(&w->state, share_of(w, i, look), how_decided, may_try, &seen);
    bool in_trial = sbt_pays_is_in_trial(&w->state.pays);
    *is_tried = *is_tried || in_trial;
    if (was_in_trial && !in_trial)
        next_trial_ns = look->now_ns + TRIALS_APART_NS;
    set_delegated(i, delegated);
    if (!in_trial)
        answer(w, key, delegated);
    if (is_forgotten(i, look->now_ns))
        free_place(i);
}

/* ---- the monitor: servers ---- */

static void begin_round(uint64_t now_ns) {
    for (size_t i = 0; i < SETS * WAYS; i++)
        served_then[i] = read_served(i);
    served_since_ns = now_ns;
    served_kept_ns = 0;
}

/* By pointer: gcc says that passing such an alignment has changed. */
static struct sums read_served_since(size_t i, const struct sums *then) {
    struct sums now = read_served(i);
    return (struct sums){.n = now.n - then->n,
                         .n_handed = now.n_handed - then->n_handed,
                         .section_ns = now.section_ns - then->section_ns,
                         .n_behind = now.n_behind - then->n_behind};
}

/* A trial has its own changes. What happens in it is no part of the round, which goes on afterwards. */
static void hold_round(uint64_t now_ns) {
    if (served_kept_ns != 0)
        return;
    for (size_t i = 0; i < SETS * WAYS; i++)
        served_kept[i] = read_served_since(i, &served_then[i]);
    served_kept_ns = now_ns - served_since_ns + 1;
}

static void resume_round(uint64_t now_ns) {
    if (served_kept_ns == 0)
        return;
    for (size_t i = 0; i < SETS * WAYS; i++)
        served_then[i] = read_served_since(i, &served_kept[i]);
    served_since_ns = now_ns - (served_kept_ns - 1);
    served_kept_ns = 0;
}

/*
 * In this round. The time is that of the sections of the mutex that were timed, for each one that was handed over; if
 * none was timed in this round, of those before.
 */
static struct direct_placed placed_in_round(size_t i, const void *key) {
    struct sums in_round = read_served_since(i, &served_then[i]);
    struct watched *w = &watched[i];
    if (in_round.n != 0)
        w->mean_ns = in_round.section_ns / in_round.n + 1;
    return (struct direct_placed){server_of(&places[i], key), in_round.n_handed, in_round.n_behind,
                                  in_round.n_handed * w->mean_ns};
}

static void move_to(size_t i, const void *key, uint32_t server) {
    __atomic_store_n(&places[i].server, server + 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&counts.moved, 1, __ATOMIC_RELAXED);
    say(key, " has another server");
}

/* False: the round goes on, if it may, since few sections were handed over. */
static bool move_one(bool may_go_on) {
    struct direct_placed placed[SETS * WAYS];
    const void *keys[SETS * WAYS];
    size_t places_of[SETS * WAYS], n = 0;
    bool all_known = true;
    for (size_t i = 0; i < SETS * WAYS; i++) {
        keys[n] = __atomic_load_n(&places[i].key, __ATOMIC_RELAXED);
        if (keys[n] != NULL && __atomic_load_n(&places[i].delegated, __ATOMIC_RELAXED) != 0) {
            placed[n] = placed_in_round(i, keys[n]);
            all_known = all_known && (placed[n].n_handed == 0 || placed[n].ns != 0);
            places_of[n++] = i;
        }
    }
    if (may_go_on && !direct_place_is_enough(placed, n))
        return false;
    struct direct_move move;
    if (all_known && direct_place_move(placed, n, sbt_switch_servers, &move))
        move_to(places_of[move.which], keys[move.which], move.server);
    return true;
}

/* For tests: each mutex has another server each time that it is delegated. */
static void move_all(void) {
    for (size_t i = 0; i < SETS * WAYS; i++) {
        const void *key = __atomic_load_n(&places[i].key, __ATOMIC_RELAXED);
        if (key != NULL && __atomic_load_n(&places[i].delegated, __ATOMIC_RELAXED) != 0)
            move_to(i, key, (server_of(&places[i], key) + 1) % sbt_switch_servers);
    }
}

static void look_at_servers(uint64_t now_ns, bool is_tried) {
    if (sbt_switch_servers < 2)
        return;
    if (how_decided == DIRECT_SHARE_BY_TURNS) {
        move_all();
        return;
    }
    if (served_since_ns == 0)
        begin_round(now_ns);
    if (is_tried) {
        hold_round(now_ns);
        return;
    }
    resume_round(now_ns);
    uint64_t ns = now_ns - served_since_ns;
    if (ns >= SERVERS_ROUND_NS && move_one(ns < SERVERS_ROUND_LONGEST_NS))
        begin_round(now_ns);
}

/* A trial that is under way when the monitor sleeps, or when the way of waiting changes, says nothing. */
static void abandon_trials(const struct sbt_switch_look *look) {
    served_since_ns = 0;
    for (size_t i = 0; i < SETS * WAYS; i++) {
        struct watched *w = &watched[i];
        if (sbt_pays_is_in_trial(&w->state.pays))
            set_delegated(i, sbt_pays_abandon(&w->state.pays, look->now_ns));
        w->since_ns = 0;
    }
}

void direct_auto_look(const struct sbt_switch_look *look) {
    if (!direct_auto)
        return;
    if (__atomic_load_n(&direct_auto_samples, __ATOMIC_RELAXED) != look->steady)
        __atomic_store_n(&direct_auto_samples, look->steady, __ATOMIC_RELAXED);
    if (!look->steady) {
        abandon_trials(look);
        return;
    }
    bool is_tried = false;
    for (size_t i = 0; i < SETS * WAYS; i++)
        is_tried = is_tried || sbt_pays_is_in_trial(&watched[i].state.pays);
    for (size_t i = 0; i < SETS * WAYS; i++) {
        const void *key = __atomic_load_n(&places[i].key, __ATOMIC_RELAXED);
        if (key != NULL)
            step(i, key, look, &is_tried);
    }
    look_at_servers(look->now_ns, is_tried);
}

void direct_auto_fork_child(void) {
    if (!direct_auto)
        return;
    for (size_t i = 0; i < SETS * WAYS; i++)
        free_place(i);
    direct_auto_samples = false;
    next_trial_ns = served_since_ns = 0;
    counts = (struct direct_auto_counts){0, 0, 0};
}

struct direct_auto_counts direct_auto_counted(void) {
    return (struct direct_auto_counts){__atomic_load_n(&counts.begun, __ATOMIC_RELAXED),
                                       __atomic_load_n(&counts.ended, __ATOMIC_RELAXED),
                                       __atomic_load_n(&counts.moved, __ATOMIC_RELAXED)};
}
