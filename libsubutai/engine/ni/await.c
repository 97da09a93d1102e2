/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Waiting for an answer: actively for a moment, then parked on the thread's own state word, or on the barrier's epoch.
 *
 * A waiter that falls asleep and a server that answers do not miss each other, because each changes the state word by a
 * single atomic operation. The waiter parks only while the word has no answer. The server sees NI_PARKED if the waiter
 * came first.
 */
#include "engine/ni/await.h"

#include <errno.h>
#include <pthread.h>

#include "engine/ni/mailbox.h"
#include "engine/ni/serve.h"
#include "engine/ni/service.h"
#include "engine/ni/tile.h"
#include "wait/park.h"

static struct sbt_adapt soon; /* how long waits for the hardware alone last; shared by all threads */

/*
 * Take an answer out of the record. The state word is relaxed. The acquire that saw the answer comes before, and the
 * next request is handed in afterwards by a release; its answer is the word's next change.
 */
static void got(struct ni_thread *t, int which, struct hw_message *message) {
    *message = hw_packet_decode(&ni_machine.layout, &t->answer[which].packet);
    t->posted[which] = 0;
    if (which == NI_ANSWER_WITHDRAW && message->op == HW_OP_WITHDRAWN)
        t->posted[NI_ANSWER_MAIN] = 0;
    uint64_t at = t->answer[which].at_cycles;
    if (which == NI_ANSWER_MAIN) /* a withdrawal has been answered before: no other thread writes the word now */
        __atomic_store_n(&t->state, 0, __ATOMIC_RELAXED);
    else
        __atomic_fetch_and(&t->state, ~(NI_ANSWERED(which) | NI_PARKED), __ATOMIC_RELAXED);
    if (ni_machine.time_scale != 0)
        ni_tile_delay(&ni_machine.tiles[t->tile], at, t->answer[which].rest_ns);
}

/*
 * If cores run both sides at once, an answer comes within about a microsecond. That is worth about a hundred looks, one
 * in each turn. The word's cache line is the thread's own; only the answer takes it away.
 */
#define EAGER_TURNS 100

/* The acquire pairs with the release of step.c, answer. */
static bool answered(const struct ni_thread *t, int which) {
    return (__atomic_load_n(&t->state, __ATOMIC_ACQUIRE) & NI_ANSWERED(which)) != 0;
}

static bool look(const struct ni_thread *t, int which) {
    for (uint32_t i = 0; i < EAGER_TURNS; i++) {
        if (answered(t, which))
            return true;
        sbt_cpu_relax();
    }
    return false;
}

static void serve_instead(struct ni_thread *t) {
    ni_go_inside(t);
    ni_serve_instead(t);
    ni_leave_inside(t);
}

static bool eagerly(struct ni_thread *t, int which) {
    if (!t->trust.left)
        return answered(t, which);
    if (SBT_UNLIKELY(ni_machine.time_scale != 0)) {
        if (!ni_eager_pays(&t->eager))
            return false;
        bool found = look(t, which);
        ni_eager_done(&t->eager, found);
        return found;
    }
    if (look(t, which)) {
        ni_service_judge(t, false);
        return true;
    }
    serve_instead(t);
    return answered(t, which);
}

static void no_longer(void *unused) {
    (void)unused;
    sbt_runnable_add(-1);
}

/*
 * Sleep until a server has the core that it needs for an answer. This thread could as well run in its place, so it
 * counts as runnable: otherwise there would seem to be a core to spare when all threads wait like this.
 */
static int park_for_server(uint32_t *word, uint32_t expected, const uint32_t *wake_word) {
    int r;
    pthread_cleanup_push(no_longer, NULL);
    sbt_runnable_add(1);
    r = sbt_park_own(word, expected, wake_word, NULL, false);
    pthread_cleanup_pop(1);
    return r;
}

int ni_await(struct ni_thread *t, int which, const struct sbt_deadline *deadline, struct sbt_adapt *memory,
             bool cancelable, struct hw_message *message) {
    uint32_t state;
    if (eagerly(t, which)) {
        got(t, which, message);
        return 0;
    }
    if (memory == NULL)
        memory = &soon;
    struct sbt_active active;
    sbt_active_begin(&active, memory);
    for (;;) {
        state = __atomic_load_n(&t->state, __ATOMIC_ACQUIRE); /* pairs with step.c, answer */
        if ((state & NI_ANSWERED(which)) != 0)
            break;
        if (sbt_active_step(&active))
            continue;
        uint32_t *wake_word = sbt_waiter_word();
        __atomic_store_n(&t->wake_word, wake_word, __ATOMIC_RELAXED);
        /*
         * Release: a server that answers from here on sees by which word to wake (step.c, answer, acquires). If the
         * thread is parked already, by a wait that has timed out, the word is stored again: it may have been another
         * word.
         */
        if (!__atomic_compare_exchange_n(&t->state, &state, state | NI_PARKED, false, __ATOMIC_RELEASE,
                                         __ATOMIC_RELAXED))
            continue;
        int r = memory == &soon ? park_for_server(&t->state, state | NI_PARKED, wake_word)
                                : sbt_park_own(&t->state, state | NI_PARKED, wake_word, deadline, cancelable);
        if (r == ETIMEDOUT && (__atomic_load_n(&t->state, __ATOMIC_ACQUIRE) & NI_ANSWERED(which)) == 0)
            return ETIMEDOUT;
    }
    sbt_active_end(&active, memory);
    got(t, which, message);
    return 0;
}

/*
 * The step of the last arrival writes all answers and then changes the epoch (step.c, open_barrier). A waiter goes to
 * sleep like this:
 *  1. It reads the epoch (acquire, pairs with the release of that change).
 *  2. It looks for its answer.
 *  3. It sleeps only while the epoch has the value from step 1.
 *
 * NI_ASLEEP is set by relaxed operations: it carries no data, and the compare-and-swap that changes the epoch sees it
 * or fails.
 */
void ni_await_barrier(struct ni_thread *t, uint32_t id, struct hw_message *message) {
    uint32_t *epoch = &ni_home(id)->epochs[hw_id_index(&ni_machine.layout, id)];
    struct sbt_active active;
    if (!eagerly(t, NI_ANSWER_MAIN)) {
        sbt_active_begin(&active, &t->barriers);
        for (;;) {
            uint32_t seen = __atomic_load_n(epoch, __ATOMIC_ACQUIRE); /* read before the answer */
            if ((__atomic_load_n(&t->state, __ATOMIC_ACQUIRE) & NI_ANSWERED(NI_ANSWER_MAIN)) != 0)
                break;
            if (sbt_active_step(&active))
                continue;
            if ((seen & NI_ASLEEP) != 0 ||
                __atomic_compare_exchange_n(epoch, &seen, seen | NI_ASLEEP, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
                sbt_park(epoch, seen | NI_ASLEEP, NULL);
        }
        sbt_active_end(&active, &t->barriers);
    }
    got(t, NI_ANSWER_MAIN, message);
}

struct hw_message ni_ask(struct ni_thread *t, enum hw_op op, uint32_t id, const void *object) {
    struct hw_message message;
    ni_post(t, op, id, object);
    ni_await(t, NI_ANSWER_MAIN, NULL, NULL, false, &message);
    return message;
}

bool ni_withdraw(struct ni_thread *t, uint32_t id, struct hw_message *message) {
    struct hw_message answer;
    ni_post(t, HW_OP_WITHDRAW, id, NULL);
    ni_await(t, NI_ANSWER_WITHDRAW, NULL, NULL, false, &answer);
    if (answer.op == HW_OP_WITHDRAWN)
        return true;
    /* The request, or its primitive, is gone: the answer has been sent, or comes when the mutex is unlocked. */
    ni_await(t, NI_ANSWER_MAIN, NULL, message->op == HW_OP_COND_WAIT ? &t->conditions : NULL, false, message);
    return false;
}
