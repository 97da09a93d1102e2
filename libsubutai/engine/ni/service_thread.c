/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The NI service threads: each serves a block of tiles. With nothing to do a service thread looks for a while, if that
 * takes no core away from the program (wait/adapt.h), and then sleeps until a request is handed in.
 *
 * glibc counts them among the process's threads, so they would keep the process alive. The program's last thread ends
 * them, and waits until they have ended.
 */
#include "engine/ni/service_thread.h"

#include <signal.h>

#include "core/log.h"
#include "core/thread.h"
#include "engine/ni/serve.h"
#include "engine/ni/service.h"
#include "engine/ni/settle.h"
#include "os/futex.h"
#include "os/real.h"
#include "wait/park.h"
#include "wait/yield_gate.h"

#define STACK_BYTES (256 * 1024) /* room for libnuma and the dynamic linker too; the thread's own frames are small */
#define EAGER_LOOKS 8000         /* looks at mailboxes, in a row, while no thread of this process wants the core */
#define EAGER_TURNS 1000         /* turns through all mailboxes, at most */
#define EAGER_TURNS_FEW 100      /* turns, if the program's threads outnumber the cores */
#define CALLED_TIMES 10          /* as many turns after a wake-up */
#define MAX_YIELDS 64
#define LONG_TURN_NS 200000 /* a yield that took longer was behind a thread that computes */

static bool look_at_mailboxes(const struct ni_service *s) {
    bool any = false;
    uint32_t n = __atomic_load_n(&s->n_occupied, __ATOMIC_ACQUIRE); /* pairs with ni_service_occupy */
    for (uint32_t i = 0; i < n; i++) {
        struct ni_tile *tile = &ni_machine.tiles[s->occupied[i]];
        if (ni_has_arrivals(tile)) {
            ni_serve_and_hand_over(tile);
            any = true;
        }
    }
    return any;
}

/* The relaxed look is a hint; the exchange's acquire pairs with ni_service_hand_over. */
static bool look_at_sent(struct ni_service *s) {
    bool any = false;
    if (ni_services.n == 1)
        return false;
    for (uint32_t i = s->from / 64; i <= (s->to - 1) / 64; i++) {
        if (__atomic_load_n(&s->sent[i], __ATOMIC_RELAXED) == 0)
            continue;
        any = true;
        for (uint64_t bits = __atomic_exchange_n(&s->sent[i], 0, __ATOMIC_ACQUIRE); bits != 0; bits &= bits - 1)
            ni_serve_and_hand_over(&ni_machine.tiles[i * 64 + (uint32_t)__builtin_ctzll(bits)]);
    }
    return any;
}

/*
 * Serve what is due. True: there was something. Otherwise *next_cycles is when there will be something; UINT64_MAX: not
 * known.
 */
static bool look(struct ni_service *s, uint64_t *next_cycles) {
    bool any = look_at_mailboxes(s);
    any |= look_at_sent(s);
    *next_cycles = UINT64_MAX;
    if (ni_machine.time_scale == 0)
        return any;
    uint64_t now = ni_now_cycles();
    for (uint32_t i = s->from; i < s->to; i++) {
        struct ni_tile *tile = &ni_machine.tiles[i];
        uint64_t next = __atomic_load_n(&tile->next_cycles, __ATOMIC_RELAXED);
        if (next <= now) {
            ni_serve_and_hand_over(tile);
            any = true;
            next = __atomic_load_n(&tile->next_cycles, __ATOMIC_RELAXED);
        }
        if (next < *next_cycles)
            *next_cycles = next;
    }
    return any;
}

/* ni_service_wake says why no request is missed. `quit` is not missed either: it is set before the waking. */
static void doze(struct ni_service *s) {
    uint64_t next;
    __atomic_store_n(&s->state, NI_DOZES, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* pairs with ni_service_wake's */
    if (!look(s, &next) && next == UINT64_MAX && __atomic_load_n(&ni_services.quit, __ATOMIC_RELAXED) == 0)
        sbt_park(&s->state, NI_DOZES, NULL);
    s->called = __atomic_exchange_n(&s->state, NI_AWAKE, __ATOMIC_RELAXED) == NI_CALLED;
}

/* Look again and again for a moment. True: there was something. */
static bool look_eagerly(struct ni_service *s, uint64_t *next_cycles) {
    bool found = false;
    if (!ni_service_has_core() || !ni_eager_pays(&s->eager))
        return false;
    uint32_t turns = EAGER_TURNS_FEW, n = __atomic_load_n(&s->n_occupied, __ATOMIC_RELAXED);
    if (sbt_cores_to_spare()) { /* other processes may still want the core */
        turns = EAGER_LOOKS / (n + 1);
        turns = turns > EAGER_TURNS ? EAGER_TURNS : turns < EAGER_TURNS_FEW ? EAGER_TURNS_FEW : turns;
        if (s->called) /* the threads try it when they have served themselves for a while (NI_OWN) */
            turns *= CALLED_TIMES;
    }
    s->called = false;
    for (uint32_t i = 0; i < turns && !found; i++) {
        found = look(s, next_cycles);
        sbt_cpu_relax();
    }
    ni_eager_done(&s->eager, found);
    return found;
}

/*
 * With more threads than cores this thread yields instead of sleeping. Its next turn comes when the other threads have
 * had theirs and have handed in their requests. Then it serves all of them at once, where a sleeper would be woken for
 * each. It does not yield beside a thread that computes: that thread's turn takes milliseconds, and being woken is
 * quicker.
 */
static bool look_in_turn(struct ni_service *s, uint64_t *next_cycles) {
    for (uint32_t i = 0; i < MAX_YIELDS; i++) {
        uint64_t now = sbt_now_ns(), took = sbt_yield_gate_pass(&sbt_yield_gate, &now);
        bool found = look(s, next_cycles);
        if (found || took == 0 || took > LONG_TURN_NS)
            return found;
    }
    return false;
}

static void *serve(void *argument) {
    struct ni_service *s = argument;
    ni_settle(s->number, s->from, s->to);
    s->called = true;
    sbt_runnable_add(1); /* not before: a thread that is called is none of the runnable threads (service.c, leave) */
    __atomic_store_n(&s->state, NI_AWAKE, __ATOMIC_RELAXED);
    while (__atomic_load_n(&ni_services.quit, __ATOMIC_ACQUIRE) == 0) {
        uint64_t next = UINT64_MAX;
        if (look_eagerly(s, &next) || look(s, &next))
            continue;
        if (next != UINT64_MAX)
            ni_wait_until(next, 0); /* a packet is on its way */
        else if (!ni_service_has_core() || !look_in_turn(s, &next))
            doze(s);
    }
    sbt_runnable_add(-1);
    return NULL;
}

/* The caller has blocked all signals, and so does the new thread: handlers run on the program's threads. */
static bool create(struct ni_service *s) {
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    s->state = NI_CALLED;
    int r = sbt_real.pthread_create(&s->thread, &attr, serve, s);
    pthread_attr_destroy(&attr);
    return r == 0;
}

/*
 * End the first n threads. The caller has made the state CHANGING: no new service threads begin before these have
 * ended.
 */
static void stop(uint32_t n) {
    /* a producer that still saw RUNNING has handed in its request, which ni_service_thread_end serves */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&ni_services.quit, 1, __ATOMIC_RELEASE);
    for (uint32_t i = 0; i < n; i++)
        ni_service_wake(&ni_machine.tiles[ni_services.service[i].from]);
    for (uint32_t i = 0; i < n; i++)
        sbt_thread_await_end(ni_services.service[i].thread);
    __atomic_store_n(&ni_services.state, NI_SERVICES_STOPPED, __ATOMIC_RELEASE);
}

/* Create all of them, or none. */
static void begin(void) {
    uint32_t n = 0;
    while (n < ni_services.n && create(&ni_services.service[n]))
        n++;
    if (n < ni_services.n) { /* a limit of threads: all or none, because the tiles are dealt out already */
        sbt_log(1, "no NI threads can be created: threads serve themselves", NULL);
        ni_services.unable = true;
        stop(n);
        return;
    }
    __atomic_store_n(&ni_services.state, NI_SERVICES_RUNNING, __ATOMIC_RELEASE);
}

/*
 * All signals are blocked until the state says whether the threads run. A handler that forked in between would leave
 * its child with a thread that goes on creating, and then believes in threads that only the parent has.
 */
void ni_service_thread_begin(void) {
    sigset_t all, old;
    uint32_t seen = NI_SERVICES_STOPPED;
    if (ni_services.n == 0 || ni_services.unable ||
        __atomic_load_n(&ni_services.state, __ATOMIC_RELAXED) != NI_SERVICES_STOPPED ||
        !__atomic_compare_exchange_n(&ni_services.state, &seen, NI_SERVICES_CHANGING, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return;
    ni_settle_start();
    sigfillset(&all);
    sbt_real.pthread_sigmask(SIG_SETMASK, &all, &old);
    __atomic_store_n(&ni_services.quit, 0, __ATOMIC_RELAXED);
    begin();
    sbt_real.pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/*
 * All signals are blocked from before the look at the state until the threads have ended. The child of a handler that
 * forked in between would go on to wait for threads that only the parent has.
 */
void ni_service_thread_end(void) {
    sigset_t all, old;
    uint32_t seen = NI_SERVICES_RUNNING;
    if (ni_services.n == 0)
        return;
    sigfillset(&all);
    sbt_real.pthread_sigmask(SIG_SETMASK, &all, &old);
    if (__atomic_compare_exchange_n(&ni_services.state, &seen, NI_SERVICES_CHANGING, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED)) {
        stop(ni_services.n);
        for (uint32_t i = 0; i < ni_machine.n_tiles; i++)
            ni_serve(&ni_machine.tiles[i]); /* the requests that they have left, due or not */
    }
    sbt_real.pthread_sigmask(SIG_SETMASK, &old, NULL);
}
