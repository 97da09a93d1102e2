/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The watcher: a thread that looks every few milliseconds, while there is anything to see, whether ready contexts wait
 * for carriers that do not get on. Those it sends home, where the kernel runs them. So what a context does on a carrier
 * (sleep in the kernel, compute for a second, spin until another does something) delays the others by a few
 * milliseconds and never for good, and needs no thread that would first have to be created.
 *
 * A context found asleep in the kernel on its carrier is told to wait at home for a while: it does input or output. A
 * program of which many are found so, and that switches seldom, loses more by that than it gains: all of it waits at
 * home then, for a time that is doubled whenever it turns out to have been too short.
 */
#include "switch/inner.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <string.h>

#define TICK_NS 2000000
#ifndef QUIET_TICKS    /* the model test takes another */
#define QUIET_TICKS 10 /* without anything made ready, before the watcher sleeps until there is */
#endif
#ifndef SHORT_ONES     /* and another */
#define SHORT_ONES 200 /* contexts taken in a tick, if they go on for less than 10 us each */
#endif
#define HOMEBODY_FIRST 64
#define HOMEBODY_MOST 65536
/* In switches, of which each saves 3 to 5 us: one found asleep has kept its carrier for up to a tick. */
#define COST_OF_SLEEPER 500
#define COST_OF_SLEEP 8
#define COST_MANY (8 * COST_OF_SLEEPER)
#define MEMORY_TICKS 64 /* after which what has been counted weighs half */
#define AT_HOME_FIRST_NS 250000000u
#define AT_HOME_MOST_NS 64000000000u

/*
 * Its own, empty table of file descriptors: the program must not meet with the watcher's, nor lose its lowest free one
 * to it, nor may a forked child inherit one. False: the kernel has no such thing, and nobody's sleep is looked at.
 */
static bool own_descriptors(void) {
    return sbt_syscall3(SYS_close_range, 0, ~0u, CLOSE_RANGE_UNSHARE) == 0;
}

/* Is the kernel thread asleep? Its state in /proc is the first letter behind the last parenthesis. */
static bool sleeps(uint32_t tid) {
    char path[64] = "/proc/self/task/", text[256], *p = path + strlen(path), digits[12];
    int n_digits = 0;
    do {
        digits[n_digits++] = (char)('0' + tid % 10);
        tid /= 10;
    } while (tid != 0);
    while (n_digits > 0)
        *p++ = digits[--n_digits];
    strcpy(p, "/stat");
    long fd = sbt_syscall6(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (fd < 0)
        return false;
    long n = sbt_syscall3(SYS_read, fd, text, sizeof text - 1);
    sbt_syscall3(SYS_close, fd, 0, 0);
    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *end = strrchr(text, ')');
    return end != NULL && end[1] == ' ' && end[2] != 'R';
}

static bool make_homebody(struct sbt_context *c) {
    if (__atomic_load_n(&c->homebody, __ATOMIC_RELAXED) != 0)
        return false;
    uint32_t next = c->homebody_next;
    next = next == 0 ? HOMEBODY_FIRST : next < HOMEBODY_MOST ? next * 2 : next;
    c->homebody_next = next;
    __atomic_store_n(&c->homebody, next, __ATOMIC_RELAXED);
    return true;
}

struct watch {
    bool sees_sleepers;
    uint32_t pops[SBT_CARRIERS_MAX];  /* as seen the time before */
    uint32_t stuck[SBT_CARRIERS_MAX]; /* looks in a row that found something ready and no progress */
    uint32_t cost, switches;          /* of late */
    uint32_t ticks;
    uint64_t at_home_ns, until_ns; /* how long everybody waits at home the next time, and until when the last */
};

/* Does the program do better without? */
static void weigh(struct sbt_switch_state *s, struct watch *w) {
    if (++w->ticks % MEMORY_TICKS == 0) {
        w->cost /= 2;
        w->switches /= 2;
    }
    w->cost += __atomic_exchange_n(&s->sleeps, 0, __ATOMIC_RELAXED) * COST_OF_SLEEP;
    if (__atomic_load_n(&s->all_home, __ATOMIC_RELAXED) != 0) /* these are on their way */
        w->cost = w->switches = 0;
    if (w->cost < COST_MANY || w->switches >= w->cost)
        return;
    uint64_t now = sbt_now_ns();
    if (w->at_home_ns == 0 || now - w->until_ns > 16 * w->at_home_ns)
        w->at_home_ns = AT_HOME_FIRST_NS;
    else if (w->at_home_ns < AT_HOME_MOST_NS)
        w->at_home_ns *= 2;
    w->until_ns = now + w->at_home_ns;
    w->cost = w->switches = 0;
    __atomic_store_n(&s->all_home, 1, __ATOMIC_RELAXED);
}

static void let_out(struct sbt_switch_state *s, const struct watch *w) {
    if (__atomic_load_n(&s->all_home, __ATOMIC_RELAXED) != 0 && sbt_now_ns() >= w->until_ns)
        __atomic_store_n(&s->all_home, 0, __ATOMIC_RELAXED);
}

/* Contexts to send home from a carrier that is stuck: faster and faster, and all if nobody else can run them. */
static uint32_t n_to_send(uint32_t stuck, bool all_held_up) {
    return all_held_up || stuck > 16 ? UINT32_MAX : 1u << (stuck - 1);
}

/*
 * Somebody waits here, while another carrier sleeps that has found only such as soon waited again. These do not: so few
 * have been taken in a whole tick. Or the carrier itself does not get on.
 */
static void rouse_for(struct sbt_carrier *x) {
    __atomic_store_n(&x->skip, __atomic_load_n(&x->skip, __ATOMIC_RELAXED) / 4, __ATOMIC_RELAXED);
    __atomic_store_n(&x->skip_left, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&x->robbed_in_vain, 0, __ATOMIC_RELAXED);
}

static bool somebody_waits(const struct sbt_switch_state *s) {
    for (uint32_t i = 0; i < s->n_carriers; i++)
        if (__atomic_load_n(&s->carrier[i].n, __ATOMIC_RELAXED) != 0)
            return true;
    return false;
}

/*
 * One look. True: something is ready and waits. Who sleeps on its carrier while nobody is made ready is in nobody's
 * way: to find out costs as much as a hundred switches, on a core that a thread of the program's may have to itself.
 */
static bool look(struct sbt_switch_state *s, struct watch *w, bool pushed) {
    uint32_t n_held_up = 0, n_waiting = 0;
    bool sleepers_matter =
        w->sees_sleepers && (pushed || somebody_waits(s) || __atomic_load_n(&s->all_held, __ATOMIC_RELAXED) != 0);
    /* Nobody is to be seen any more, and the program may have forbidden system calls. */
    bool ended = (__atomic_load_n(&s->no_more, __ATOMIC_RELAXED) & SBT_SWITCH_ENDED) != 0;
    bool somebody_sleeps = __atomic_load_n(&s->idle, __ATOMIC_RELAXED) != 0;
    for (uint32_t i = 0; i < s->n_carriers; i++) {
        struct sbt_carrier *x = &s->carrier[i];
        uint32_t n = __atomic_load_n(&x->n, __ATOMIC_RELAXED), now = __atomic_load_n(&x->pops, __ATOMIC_RELAXED);
        w->stuck[i] = n > 0 && now == w->pops[i] ? w->stuck[i] + 1 : 0;
        n_waiting += n;
        if (n > 0 && (now == w->pops[i] || (somebody_sleeps && now - w->pops[i] < SHORT_ONES)))
            rouse_for(x);
        struct sbt_context *c = __atomic_load_n(&x->current, __ATOMIC_RELAXED);
        if (c != NULL && now == w->pops[i] && sleepers_matter && !ended &&
            sleeps(__atomic_load_n(&x->tid, __ATOMIC_RELAXED)) && __atomic_load_n(&x->current, __ATOMIC_RELAXED) == c &&
            __atomic_load_n(&x->pops, __ATOMIC_RELAXED) == now) {
            n_held_up++;
            w->cost += make_homebody(c) ? COST_OF_SLEEPER : 0;
        }
        w->switches += now - w->pops[i];
        w->pops[i] = now;
    }
    __atomic_store_n(&s->all_held, n_held_up == s->n_carriers, __ATOMIC_RELAXED);
    sbt_fence_light(); /* pairs with the heavy one of a carrier that has nothing to run since that was looked at */
    if (__atomic_load_n(&s->idle, __ATOMIC_RELAXED) != 0)
        __atomic_store_n(&s->all_held, 0, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < s->n_carriers; i++) {
        struct sbt_carrier *x = &s->carrier[i];
        if (w->stuck[i] == 0)
            continue;
        for (uint32_t k = n_to_send(w->stuck[i], n_held_up == s->n_carriers); k > 0; k--) {
            struct sbt_context *c = sbt_ready_take(x);
            if (c == NULL)
                break;
            sbt_home_call(c);
        }
    }
    return n_waiting > 0;
}

/* Until there is something to see, or everybody has been at home for long enough. */
static void sleep_long(struct sbt_switch_state *s, const struct watch *w) {
    const uint64_t second = 1000000000;
    struct sbt_deadline until = {CLOCK_MONOTONIC, {(time_t)(w->until_ns / second), (long)(w->until_ns % second)}};
    sbt_futex_wait(&s->watcher_sleeps, 1, __atomic_load_n(&s->all_home, __ATOMIC_RELAXED) != 0 ? &until : NULL);
}

void *sbt_watcher_main(void *unused) {
    struct sbt_switch_state *s = SBT_SWITCH;
    struct watch w = {.sees_sleepers = own_descriptors()};
    uint32_t quiet = 0;
    while (__atomic_load_n(&s->quit, __ATOMIC_RELAXED) == 0) {
        sbt_pause_ns(TICK_NS);
        bool pushed = __atomic_exchange_n(&s->pushes, 0, __ATOMIC_RELAXED) != 0;
        quiet = look(s, &w, pushed) || pushed ? 0 : quiet + 1;
        weigh(s, &w);
        let_out(s, &w);
        if (quiet < QUIET_TICKS)
            continue;
        quiet = 0;
        __atomic_store_n(&s->watcher_sleeps, 1, __ATOMIC_RELAXED);
        /* Pairs with the light one in sbt_ready_push. Not to be had: it goes on looking. */
        if (sbt_fence_heavy() && __atomic_load_n(&s->pushes, __ATOMIC_RELAXED) == 0 &&
            __atomic_load_n(&s->quit, __ATOMIC_RELAXED) == 0)
            sleep_long(s, &w);
        __atomic_store_n(&s->watcher_sleeps, 0, __ATOMIC_RELAXED);
    }
    return unused;
}
