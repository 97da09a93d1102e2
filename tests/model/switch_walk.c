/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Waiting by switching, its own code (libsubutai/switch) under a scheduler of the test's: every schedule of small
 * programs with at most so many preemptions, then schedules by chance. No thread may wait for ever, no fiber be
 * resumed that has not been left, none be forgotten, those made ready in a row run in that order, and what the program
 * has destroyed be left alone.
 *
 *   switch-walk [--long | --wrong SCENARIO]
 *
 * At most SCHEDULES of each, and a third of that with servers, in order; of a scenario that says so, all. What is
 * walked in order alters the ends of schedules first. The planted mistakes that a walk finds so, it finds in its first
 * 120000 schedules, most of them in 40000, or at the end of a whole walk; the others are found by chance. So a walk
 * that is cut off is followed by more schedules by chance. --long: all, and one preemption more. --wrong: the code has
 * a mistake, which that scenario has to find.
 */
#include "part.h"
#include "switch_barrier.h"
#include "switch_mutex.h"
#include "switch_rwlock.h"
#include "switch_scenarios.h"
#include "switch_sched.h"

#include <limits.h>
#include <stdio.h>

#include "engine/direct/direct.h"
#include "engine/engine.h"
#include "switch/state.h"
#include "wait/parking_lot.h"

enum { N_WORDS = 3, SCHEDULES = 150000, MOST = 600000, BY_CHANCE = 20000, BY_CHANCE_IF_CUT = 40000 };

static const struct scenario *scenario;
static uint32_t woken[MAX_PROGRAM], word[N_WORDS], is_open[N_WORDS];
static uint32_t *token[MAX_PROGRAM];
static uint32_t noted[MAX_PROGRAM], n_noted;
static uint32_t n_waiting_seen; /* by Q: of 0 and 1, in that order */
static bool seen_on_carrier;
static bool in_order, one_before_zero, zero_is_next, inner_for_long;
static uint32_t n_passed; /* fresh fibers that went before 0, which yields in vain */
static bool woke_alone;   /* G has seen three parked and woken them, on the only carrier */

static bool starts_later(uint32_t i) {
    return scenario->script[i][0] == '+';
}

static bool is_parked(uint32_t i) {
    return token[i] != NULL && *token[i] == SBT_TOKEN_PARKED;
}

/* No thread of the scenario has a reason to go home but its end. */
static bool no_thread_is_pinned(void) {
    for (uint32_t i = 0; i < MAX_PROGRAM && scenario->script[i] != NULL; i++)
        if (strpbrk(scenario->script[i], "hH") != NULL)
            return false;
    return scenario->with_monitor == SCHED_ALONE;
}

static uint32_t n_servers_of(enum objects objects) {
    return objects == SERVED || objects == FOUND_SERVED ? 1 : objects == SERVED_2 || objects == FOUND_SERVED_2 ? 2 : 0;
}

static bool of_mutexes(enum objects objects) {
    return objects == MUTEX || objects == DELEGATED || objects == FOUND || n_servers_of(objects) != 0;
}

static bool has_served; /* a server has run a section, in any schedule of this scenario */

static uint32_t n_held[MAX_PROGRAM]; /* mutexes, by each thread */

static bool is_on_server(void) {
    const struct sbt_fiber *f = sbt_self.fiber;
    return sbt_switch_servers != 0 && f != NULL && f->carrier != NULL &&
           (uint32_t)(f->carrier - SBT_SWITCH->carrier) < sbt_switch_servers;
}

/* A server runs sections and nothing else of a program. */
static void look_at_server(uint32_t me, char letter) {
    n_held[me] += letter == 'L' || letter == 'l';
    n_held[me] -= letter == 'U' || letter == 'd';
    const struct sbt_fiber *f = sbt_self.fiber;
    if (sbt_switch_servers != 0 && f != NULL && f->section != NULL && f->server > sbt_switch_servers)
        sched_wrong("a section is to run on a server that is not there");
    if (!is_on_server())
        return;
    has_served = true;
    if (n_held[me] == 0 || f->section == NULL)
        sched_wrong("a server runs a thread that is in no section");
    if (f->carrier != &SBT_SWITCH->carrier[f->server - 1])
        sched_wrong("a server runs a section that another one has");
}

/* The next letter unlocks another mutex than the one of the section that a server runs: the section goes on. */
static const void *outer_section(char letter) {
    const void *section = is_on_server() ? sbt_self.fiber->section : NULL;
    bool unlocks = letter == 'U' || letter == 'd';
    return unlocks && section != walk_mutex_object(letter == 'd') ? section : NULL;
}

static void sleep_until_open(uint32_t n) {
    while (is_open[n] == 0)
        sched_futex_wait(&is_open[n], 0, NULL);
}

static void handler(void) {
    sleep_until_open(0);
}

static void follow(void *argument);

static bool is_on_carrier(void) {
    return sbt_self.fiber != NULL && sbt_self.fiber->carrier != NULL;
}

static const struct sbt_fiber *first_queued(void) {
    return SBT_SWITCH->carrier[0].queue[SBT_WOKEN].head;
}

static bool is_of(const struct sbt_fiber *f, uint32_t i) {
    return f != NULL && &f->token == token[i];
}

/* On the only carrier: 0 is woken alone behind 2, and goes before it. So is 1, and goes behind it. */
static void wake_alone(void) {
    woke_alone = is_on_carrier() && is_parked(0) && is_parked(1) && is_parked(2);
    word[0] = 1;
    woken[2]++;
    if (token[2] != NULL)
        sbt_fiber_unpark(token[2]);
    direct_futex_wake(&word[0], false, 1, 1u << 0);
    direct_futex_wake(&word[0], false, 1, 1u << 1);
    const struct sbt_fiber *f = first_queued();
    if (woke_alone && !(is_of(f, 0) && is_of(f->next, 2) && is_of(f->next->next, 1)))
        sched_wrong("of two fibers that were woken alone, one behind the other, not the first alone went first");
}

/* Of 0, which has gone first. As many as may go first in a row have: 3 is woken alone, and goes behind the others. */
static void wake_behind(void) {
    bool is_second = woke_alone && is_on_carrier() && is_parked(3) && is_of(first_queued(), 2);
    word[1] = 1;
    direct_futex_wake(&word[1], false, 1, UINT32_MAX);
    if (is_second && !is_of(first_queued(), 2))
        sched_wrong("too many fibers that were woken alone went first in a row");
}

/* Of 0, which looks in vain: it is queued behind one that is fresh. */
static bool zero_is_behind_fresh(void) {
    const struct sbt_runq *queue = SBT_SWITCH->carrier[0].queue;
    return queue[SBT_FRESH].head != NULL && queue[SBT_YIELDED].head != NULL && is_of(queue[SBT_YIELDED].head, 0);
}

/* The caller has got something done. On the only carrier it goes before all but the next one that yields in vain. */
static void yield_fresh(uint32_t me) {
    const struct sbt_runq *queue = SBT_SWITCH->carrier[0].queue;
    const struct sbt_fiber *next = queue[SBT_YIELDED].head, *behind = NULL;
    if (is_on_carrier() && next != NULL && first_queued() == NULL && queue[SBT_FRESH].head == NULL)
        behind = next->next;
    if (is_on_carrier() && zero_is_behind_fresh() && ++n_passed > 2)
        sched_wrong("a fiber that yields in vain had to wait for too many others");
    sbt_self.progress++;
    sbt_switch_yield_asked();
    for (uint32_t i = 0; behind != NULL && i < n_noted; i++)
        if (noted[i] != me && is_of(behind, noted[i]))
            sched_wrong("a fiber that had got something done went behind one that yields in vain");
}

static uint32_t step(uint32_t me, const char *at) {
    uint32_t n = (uint32_t)(at[1] - '0');
    switch (*at) {
    case 'p':
        while (woken[me] == 0)
            sbt_fiber_park(NULL);
        woken[me]--;
        return 1;
    case 'u':
        woken[n]++;
        if (token[n] != NULL)
            sbt_fiber_unpark(token[n]);
        return 2;
    case 'w':
        while (word[n] == 0)
            sbt_switch_wait(&word[n], 0, NULL);
        return 2;
    case 'k':
        word[n] = 1;
        sbt_switch_wake(&word[n], INT_MAX);
        return 2;
    case 'j':
        while (word[n] == 0)
            direct_futex_wait(&word[n], false, 0, 1u << me, NULL, 0);
        return 2;
    case 'J': /* both words change, and all waiters move to the second before they are woken */
        word[1] = word[0] = 1;
        direct_futex_requeue(&word[0], &word[1], false, &(struct sbt_futex_moved){0, UINT32_MAX}, NULL);
        direct_futex_wake(&word[1], false, INT_MAX, UINT32_MAX);
        return 1;
    case 'F': /* by its bit, one waiter after the other */
        word[n] = 1;
        for (uint32_t i = 0; i < MAX_PROGRAM; i++)
            direct_futex_wake(&word[n], false, 1, 1u << i);
        return 2;
    case 'y':
        sbt_switch_yield(false);
        return 1;
    case 'Y':
        yield_fresh(me);
        return 1;
    case '-':
        n_passed = me == 0 ? 0 : n_passed;
        sbt_switch_yield_asked();
        return 1;
    case 'h':
        sbt_pin_hold();
        sbt_pin_release();
        return 1;
    case 'H':
        sbt_pin_hold();
        return 1;
    case 'R':
        sbt_pin_release();
        return 1;
    case 'b':
        sleep_until_open(n);
        return 2;
    case 'I':
        sched_interrupt(handler);
        return 1;
    case 'o':
        is_open[n] = 1;
        sched_futex_wake(&is_open[n], INT_MAX);
        return 2;
    case 'f':
        in_order = is_parked(0) && is_parked(1);
        return 1;
    case 'g': /* on the only carrier, on which no other fiber can run before this one has left it */
        one_before_zero = sbt_self.fiber->carrier != NULL && is_parked(1) &&
                          (uint32_t *)SBT_SWITCH->carrier[0].queue[SBT_YIELDED].head == token[0];
        return 1;
    case 'G':
        wake_alone();
        return 1;
    case 'z':
        wake_behind();
        return 1;
    case 'Q':
        n_waiting_seen +=
            n_noted == 0 && is_parked(n_waiting_seen); /* a fiber is used again when its thread has ended */
        seen_on_carrier = sbt_self.fiber != NULL && sbt_self.fiber->carrier != NULL;
        return 1;
    case 'B':
        walk_barrier_wait(no_thread_is_pinned());
        return 1;
    case 'D':
        walk_barrier_destroy();
        return 1;
    case 'L':
        walk_mutex_lock();
        return 1;
    case 'U':
        walk_mutex_unlock();
        return 1;
    case 'l':
        walk_other_lock();
        return 1;
    case 'd':
        walk_other_unlock();
        return 1;
    case 'O':
        walk_mutex_change();
        return 1;
    case 'C':
        walk_cond_wait();
        return 1;
    case 'M':
        walk_turn();
        return 1;
    case 's':
        walk_cond_signal();
        return 1;
    case 'S':
        walk_turn();
        walk_cond_signal();
        return 1;
    case 'A':
        walk_cond_broadcast(100);
        return 1;
    case 'Z':
        walk_cond_broadcast(1);
        return 1;
    case 'X':
        walk_cond_destroy();
        return 1;
    case 'T':
    case 't':
        walk_trylock(*at == 'T');
        return 1;
    case 'V':
    case 'v':
        walk_trylock_undo(*at == 'V');
        return 1;
    case 'q':
        inner_for_long = true;
        for (int i = 0; i < 17; i++) {
            walk_trylock(false);
            walk_trylock_undo(false);
        }
        return 1;
    case 'i':
        zero_is_next =
            sbt_self.fiber->carrier != NULL && (uint32_t *)SBT_SWITCH->carrier[0].queue[SBT_WOKEN].head == token[0];
        return 1;
    case 'r':
        walk_rwlock_read();
        return 1;
    case 'x':
        walk_rwlock_write();
        return 1;
    case 'e':
        walk_rwlock_unlock();
        return 1;
    case 'E':
        walk_rwlock_unlock_and_destroy();
        return 1;
    case 'c':
        sbt_n_cpus = n;
        return 2;
    case 'a':
        noted[n_noted++] = me;
        return 1;
    case 'N':
        sched_thread(follow, (void *)(uintptr_t)n);
        return 2;
    case 'K':
        while (sched_n_monitors() != 0 &&
               __atomic_load_n(&SBT_SWITCH->monitor_sleeps, __ATOMIC_RELAXED) == SBT_MONITOR_AWAKE)
            sched_pause();
        sched_pause();
        return 1;
    case 'W':
        while (sched_n_monitors() != 0)
            sched_pause();
        return 1;
    case 'P':
        do
            sched_pause();
        while (sched_n_monitors() == 0);
        return 1;
    case 'm':
    case 'n':
        sbt_lot_requeue(&word[*at == 'm'], &word[*at == 'n'], 1);
        return 1;
    default:
        sched_wrong("a script has a letter that means nothing");
    }
}

static void follow(void *argument) {
    uint32_t me = (uint32_t)(uintptr_t)argument;
    token[me] = sbt_fiber_word();
    for (const char *at = scenario->script[me] + starts_later(me); *at != '\0';) {
        const char letter = *at;
        const void *outer = outer_section(letter);
        at += step(me, at);
        look_at_server(me, letter);
        if (outer != NULL && sbt_self.fiber->section != outer)
            sched_wrong("an inner unlock ended the section around it");
    }
}

/* Under the read-write lock. */
static uint32_t n_sections(void) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < MAX_PROGRAM && scenario->script[i] != NULL; i++)
        for (const char *at = scenario->script[i]; *at != '\0'; at++)
            n += *at == 'e' || *at == 'E';
    return n;
}

/* That a script lets the program use, and no fewer than at first. */
static uint32_t most_cpus(void) {
    uint32_t most = scenario->n_carriers + n_servers_of(scenario->objects);
    for (uint32_t i = 0; i < MAX_PROGRAM && scenario->script[i] != NULL; i++)
        for (const char *at = scenario->script[i]; (at = strchr(at, 'c')) != NULL; at++)
            most = (uint32_t)(at[1] - '0') > most ? (uint32_t)(at[1] - '0') : most;
    return most;
}

static void setup(void) {
    memset(woken, 0, sizeof woken);
    memset(word, 0, sizeof word);
    memset(is_open, 0, sizeof is_open);
    memset(token, 0, sizeof token);
    memset(n_held, 0, sizeof n_held);
    n_noted = n_waiting_seen = n_passed = 0;
    in_order = one_before_zero = zero_is_next = inner_for_long = woke_alone = false;
    walk_forget_waits();
    if (scenario->barrier != 0)
        walk_barrier_setup(scenario->barrier);
    sbt_switch_servers = 0;
    if (of_mutexes(scenario->objects))
        walk_mutex_setup(scenario->objects != MUTEX, scenario->objects >= FOUND && scenario->objects <= FOUND_SERVED_2,
                         n_servers_of(scenario->objects));
    else if (scenario->objects != NONE)
        walk_rwlock_setup(n_sections(), scenario->objects == RWLOCK_OF_WRITERS);
    walk_n_looks = scenario->n_looks;
    sbt_n_cpus = scenario->n_carriers + sbt_switch_servers;
    sched_n_cpus_most = most_cpus();
    for (uint32_t i = 0; i < MAX_PROGRAM && scenario->script[i] != NULL; i++)
        if (!starts_later(i))
            sched_thread(follow, (void *)(uintptr_t)i);
}

static uint32_t most_carriers; /* in any schedule of this scenario */

/* Where usable CPUs become more, carriers do in some of the schedules. */
static const char *unless_none_was_added(void) {
    return scenario->with_monitor != SCHED_LEAVING && most_carriers < most_cpus()
               ? "no carrier has been added, in any schedule"
               : NULL;
}

static const char *unless_none_was_served(void) {
    return n_servers_of(scenario->objects) != 0 && !has_served ? "no server has run a section, in any schedule" : NULL;
}

/* Where one server has both mutexes, and a thread takes one alone, sections are behind others' in some schedules. */
static const char *unless_none_was_behind(void) {
    bool apart = false;
    for (uint32_t i = 0; i < MAX_PROGRAM && scenario->script[i] != NULL; i++)
        apart = apart || (strchr(scenario->script[i], 'l') != NULL && strchr(scenario->script[i], 'L') == NULL);
    return apart && n_servers_of(scenario->objects) == 1 && !walk_has_been_behind
               ? "no section was behind another mutex's, in any schedule"
               : NULL;
}

/* Two have waited for the mutex in that order, and 2 has unlocked it: it was their turn, in that order. */
static const char *unless_in_turn(void) {
    bool bounded = scenario->n_carriers == 1 && seen_on_carrier && scenario->objects == DELEGATED;
    if (n_waiting_seen < 2)
        return NULL;
    if (noted[0] != 0)
        return "the first waiter was not the first to get the mutex";
    if (bounded && (noted[1] != 2 || noted[2] != 1))
        return "a batch had no end while another fiber was runnable";
    return noted[1] == 1 || noted[2] == 1 ? NULL : "the second waiter was not the second to get the mutex";
}

static const char *at_end(void) {
    most_carriers = SBT_SWITCH->n_carriers > most_carriers ? SBT_SWITCH->n_carriers : most_carriers;
    if (scenario->barrier != 0)
        return walk_barrier_at_end();
    if (zero_is_next && inner_for_long && noted[0] != 0)
        return "a thread that holds the outer mutex for long never yielded at the inner one";
    if (zero_is_next && !inner_for_long && (noted[0] != 1 || noted[1] != 0 || noted[2] != 1))
        return "a thread that unlocked two mutexes did not yield at the outer one, and only there";
    if (unless_in_turn() != NULL)
        return unless_in_turn();
    if (of_mutexes(scenario->objects))
        return walk_mutex_at_end();
    if (scenario->objects != NONE)
        return walk_rwlock_at_end();
    if (one_before_zero && noted[0] != 1)
        return "a fiber that was woken had to wait for a fiber that yielded";
    return in_order && (noted[0] != 0 || noted[1] != 1) ? "two fibers that were woken in a row ran in the other order"
                                                        : NULL;
}

static uint64_t most_schedules(void) {
    return scenario->is_whole ? MOST : SCHEDULES / (n_servers_of(scenario->objects) != 0 ? 3 : 1);
}

/* The monitor mends a wake-up that a carrier has not got: without it none may be missing. */

static void say_wrong(const char *wrong) {
    if (wrong != NULL)
        printf("# %s\n", wrong);
}

int main(int argc, char **argv) {
    const size_t n = sizeof scenarios / sizeof *scenarios;
    bool longer = argc == 2 && strcmp(argv[1], "--long") == 0, mistaken = argc == 3 && strcmp(argv[1], "--wrong") == 0;
    struct part part = {0, 1};
    size_t n_wrong = 0, n_points = 0;
    if (!longer && !mistaken && !part_parse(argc, argv, &part)) {
        fprintf(stderr, "usage: %s [--long | --wrong SCENARIO | --part K/N]\n", argv[0]);
        return 2;
    }
    if (sbt_regs_unusable() != NULL) {
        printf("1..0 # SKIP %s\n", sbt_regs_unusable());
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        scenario = &scenarios[i];
        if (mistaken ? strcmp(scenario->name, argv[2]) != 0 : !part_has(&part, i))
            continue;
        most_carriers = 0;
        has_served = walk_has_been_behind = false;
        struct sched_how how = {scenario->with_monitor, scenario->n_preemptions + (longer ? 1 : 0)};
        uint64_t n_schedules, limit = longer ? UINT64_MAX : most_schedules();
        const char *wrong = sched_walk(&how, setup, at_end, limit, !mistaken, &n_schedules);
        if (wrong == NULL && scenario->is_whole && n_schedules == limit && !mistaken)
            wrong = "it has more schedules than are walked";
        if (mistaken && wrong == NULL)
            wrong = sched_roam(&how, setup, at_end, 200000, i);
        if (mistaken && wrong == NULL)
            wrong = unless_none_was_served();
        if (mistaken && wrong == NULL)
            wrong = unless_none_was_behind();
        if (wrong == NULL)
            wrong = unless_none_was_added();
        n_wrong += wrong != NULL;
        if (mistaken && wrong != NULL) {
            printf("1..1\nok 1 - found by '%s' in schedule %llu: %s\n", scenario->name, (unsigned long long)n_schedules,
                   wrong);
            return 0;
        }
        if (mistaken)
            continue;
        printf("%sok %zu - %s: %llu schedules%s, at most %u preemptions\n", wrong != NULL ? "not " : "", ++n_points,
               scenario->name, (unsigned long long)n_schedules, n_schedules == limit ? " of more" : "",
               how.n_preemptions);
        say_wrong(wrong);
        const unsigned n_by_chance = n_schedules == limit ? BY_CHANCE_IF_CUT : BY_CHANCE;
        wrong = sched_roam(&how, setup, at_end, n_by_chance, i);
        if (wrong == NULL) /* among all of those */
            wrong = unless_none_was_served();
        if (wrong == NULL)
            wrong = unless_none_was_behind();
        n_wrong += wrong != NULL;
        printf("%sok %zu - %s: %u schedules by chance\n", wrong != NULL ? "not " : "", ++n_points, scenario->name,
               n_by_chance);
        say_wrong(wrong);
        fflush(stdout);
    }
    if (mistaken)
        printf("not ok 1 - the mistake was not found\n");
    printf("1..%zu\n", mistaken ? 1 : n_points);
    return mistaken || n_wrong != 0;
}
