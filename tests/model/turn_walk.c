/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Every interleaving of a few threads over the turn (engine/det/turn.h): all must reach one schedule.
 *
 * A thread's script is a list of operations. Between two operations it computes, for as long as it likes: that is, an
 * operation is enabled as soon as its thread has the turn, and any thread may take any time to reach its next one. What
 * a thread does outside of the turn is a step of its own ("computes"), so the walk has every order of arrivals. The
 * schedule is the list of operations, with their threads; each end of the walk must have the same.
 *
 * Three mistakes must be found: an operation without the turn, a lock that is handed to the thread that comes first,
 * and a section that is over when its thread asks for the turn.
 *
 * A thread may give the turn up after an operation, for a budget of lbdr.h, and threads may meet at a soft barrier. The
 * schedule is one all the same, a section lasts for exactly its budget, and no thread waits for another that computes.
 *
 * In some scenarios a thread may offer to be served at a barrier (engine/det/offer.c). The thread that passes the turn
 * to it does so in a step of its own, and the thread may take the offer back at any time.
 *
 * In some scenarios a signal handler interrupts a thread while it waits, at any point, and keeps it until all others
 * have ended. Then the schedule is not the same, but no other thread may wait for it, and a signal wakes one thread.
 *
 * A thread may keep the turn behind an operation.
 *
 * usage: turn-walk                   every scenario is right
 *        turn-walk --wrong SCENARIO  turn.c has a mistake, which that scenario finds
 */
#include "interleave.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "turn_state.h"

#define BARRIER_THREADS 2
#define BARRIER_TURNS 4
#define WEIGHT 3                  /* of a section; other operations weigh 1 */
#define TAKEN_BACK 2              /* offers, at most */
#define SHORT (1u << MAX_THREADS) /* of `may_be_interrupted`: the handlers may return at any time */

static const char *wrong;
static const char *const *scripts;
static int n_threads;
static unsigned may_be_interrupted; /* bit per thread; 0: the scenario has one schedule */
static uint8_t interrupted_from;    /* when all of these threads have come to that place in their scripts */
static enum { NONE, WITHOUT_TURN, FIRST_COMER, OVER_ON_ARRIVAL } mistake;
static enum { NO_OFFERS, OFFERS, OFFERS_STAND } offers; /* OFFERS_STAND: none is taken back, so each must be served */
static bool has_schedule;
static uint8_t schedule[MAX_OPS];
static void give_up(struct state *s, int t) {
    uint64_t turns = lbdr_start(&lbdr, (uint32_t)t, 0, WEIGHT, &turn);
    if (!state_find_supplements())
        wrong = "more supplements than the walk has room for";
    turn_give_up(&turn, turns);
    s->left[t] = (uint32_t)turns;
}

/* The last one to come does not wait. */
static void meet(struct state *s, int t) {
    if (turn_waiting(&turn, BARRIER, TURN_EXACT) + 1 == BARRIER_THREADS) {
        turn_wake(&turn, BARRIER, UINT32_MAX);
        s->at[t]++;
    } else {
        turn_block(&turn, BARRIER, turn.now + BARRIER_TURNS * TURN_NS, TURN_EXACT, false);
        turn_soften(&turn);
    }
}

/* The last one lets all others go, which need no turn for that. */
static void arrive(void) {
    uint32_t first;
    if (turn_waiting(&turn, BARRIER, TURN_EXACT) + 1 < (uint32_t)n_threads) {
        turn_block(&turn, BARRIER, TURN_NEVER, TURN_EXACT, false);
        return;
    }
    while ((first = turn_first(&turn, BARRIER)) != TURN_NO_THREAD) {
        turn_wake_thread(&turn, first, TURN_WOKEN);
        turn_go_on(&turn, first);
    }
}

/*
 * With the turn: lock (L: and keep the turn), unlock, signal, wait (gives the mutex up; the script locks it again), t
 * and T sleep, k until a turn has been passed and one has been kept, end; give the turn up; meet at the soft barrier,
 * and behind it go on from there; arrive at the barrier of all threads.
 */
static void operate(struct state *s, int t, char op) {
    if ((op == 'l' || op == 'L') && s->held != 0) {
        turn_block(&turn, MUTEX, TURN_NEVER, 0, false);
        return;
    }
    s->at[t]++;
    s->schedule[s->n_ops++] = (uint8_t)(t << 4 | (op & 15));
    switch (op) {
    case 'l':
    case 'L':
        s->held = 1;
        break;
    case 'w':
    case 'u':
        s->held = 0;
        turn_wake(&turn, MUTEX, 1);
        if (op == 'w')
            turn_block(&turn, CONDITION, TURN_NEVER, TURN_EXACT, false);
        break;
    case 's':
        turn_wake(&turn, CONDITION, 1);
        break;
    case 't':
    case 'T':
        turn_block(&turn, CONDITION, turn.now + (op == 't' ? 3 : 12) * TURN_NS, 0, false);
        break;
    case 'k':
        turn_block(&turn, CONDITION, turn.now + TURN_NS + TURN_KEPT_NS, 0, false);
        break;
    case 'e':
        turn_end(&turn);
        break;
    case 'g':
        give_up(s, t);
        break;
    case 'b':
        meet(s, t);
        break;
    case 'B':
        arrive();
        break;
    case 'p':
        break;
    default:
        wrong = "an unknown operation in a script";
    }
}

static bool may_operate(const struct state *s, int t) {
    if (mistake == OVER_ON_ARRIVAL && s->turn.thread[t].state == TURN_SECTION)
        return true;
    if (s->turn.thread[t].state != TURN_RUNNABLE || s->arrived[t] == 2)
        return false;
    if (mistake == WITHOUT_TURN)
        return true;
    return s->turn.holder == (uint32_t)t || (mistake == FIRST_COMER && s->held == 0);
}

static bool have_others_ended(const struct state *s, int t) {
    for (int i = 0; i < n_threads; i++)
        if (i != t && s->is_away[i] == 0 && scripts[i][s->at[i]] != '\0')
            return false;
    return true;
}

/* What must be so after each step. */
static void look(const struct state *s) {
    uint32_t n = 0, n_back = 0, n_soft = 0, n_measured = 0;
    for (int i = 0; i < n_threads; i++) {
        const struct turn_thread *thread = &s->turn.thread[i];
        bool is_runnable = thread->state == TURN_RUNNABLE;
        n += is_runnable;
        n_back += thread->is_back;
        n_soft += thread->is_soft;
        n_measured += (s->lbdr.thread[i].measured != 0) - (s->lbdr.section[i].is_used != 0);
        if (thread->is_soft && thread->state != TURN_SECTION && thread->state != TURN_BLOCKED)
            wrong = "a deadline is soft that there is not";
        if (thread->state == TURN_SECTION && s->left[i] == 0)
            wrong = "a section goes on after its budget";
        if (thread->state == TURN_RUNNABLE && thread->reason == TURN_TIMED_OUT && s->left[i] != 0)
            wrong = "a section is over before its budget";
        if (thread->is_back && (!is_runnable || s->turn.holder == (uint32_t)i))
            wrong = "a thread is back that does not wait for the turn";
        if (s->turn.offer[i] == TURN_OFFERED && !is_runnable)
            wrong = "a thread that does not wait for the turn offers";
        if ((s->arrived[i] == 2) != (s->turn.offer[i] != TURN_NO_OFFER))
            wrong = "an offer stands and does not, or the other way round";
        if (is_runnable != ((s->turn.runnable >> i & 1) != 0))
            wrong = "a bit is wrong";
        if (s->is_away[i] != 0 && is_runnable)
            wrong = "an absent thread is in the round";
        if (thread->is_absent && thread->state != TURN_BLOCKED)
            wrong = "absence has outlived the wait";
        if ((thread->state == TURN_BLOCKED || thread->state == TURN_SECTION) && thread->deadline <= s->turn.now)
            wrong = "a deadline has come, and its thread waits";
        if (s->is_away[i] != (thread->state == TURN_OUTSIDE || thread->is_absent))
            wrong = "a thread is absent and is not, or the other way round";
    }
    if (n != s->turn.n_runnable)
        wrong = "the runnable threads are miscounted";
    if (n_measured != 0)
        wrong = "a section is measured that there is not";
    if (n_soft != s->turn.n_soft)
        wrong = "the soft deadlines are miscounted";
    if (n == 0 && n_soft != 0)
        wrong = "no thread is runnable, and a soft deadline has not come";
    if (n_back != s->turn.n_back)
        wrong = "the threads that are back are miscounted";
    if ((s->turn.holder == TURN_NO_THREAD) != (n == 0) ||
        (n != 0 && s->turn.thread[s->turn.holder].state != TURN_RUNNABLE))
        wrong = "a thread that is not runnable has the turn, or none has it";
}

/* As det_join_round and is_present (engine/det). */
static void interrupt(struct state *s, int t) {
    state_load(s);
    uint32_t waiting = turn_waiting(&turn, CONDITION, TURN_EXACT);
    turn_absent(&turn, (uint32_t)t);
    if (turn.holder == TURN_NO_THREAD || turn.thread[turn.holder].state != TURN_RUNNABLE)
        turn_choose(&turn);
    if (turn_waiting(&turn, CONDITION, TURN_EXACT) != waiting)
        wrong = "woken without a signal";
    state_save(s);
    s->is_away[t] = 1;
    s->n_interrupts++;
}

static void come_back(struct state *s, int t) {
    state_load(s);
    if (turn_present(&turn, (uint32_t)t) && turn.holder == TURN_NO_THREAD)
        turn_choose(&turn);
    state_save(s);
    s->is_away[t] = 0;
}

static bool may_interrupt(const struct state *s, int t) {
    for (int i = 0; i < n_threads; i++)
        if ((may_be_interrupted >> i & 1) != 0 && s->at[i] < interrupted_from)
            return false;
    return (may_be_interrupted >> t & 1) != 0 && s->waits[t] != 0 && s->n_interrupts < 2;
}

/* Only an overdue thread's deadline makes it jump. */
static void look_at_time(uint64_t before) {
    bool jumps = turn.now > before + TURN_NS;
    for (int i = 0; i < n_threads; i++)
        jumps = jumps && !(turn.thread[i].overdue && turn.thread[i].deadline == turn.now);
    if (jumps)
        wrong = "time has jumped, and the clock has not";
}

/* As det_hints_op (engine/det): what the thread does after the operation is counted with it. */
static void count(struct state *s, int t, char op) {
    if (lbdr.thread[t].measured != 0)
        lbdr_end(&lbdr, (uint32_t)t, turn.thread[t].reason == TURN_TIMED_OUT);
    s->left[t] = 0;
    lbdr_count(&lbdr, (uint32_t)t, op == 'g' ? WEIGHT : 1);
    turn.thread[t].reason = TURN_WOKEN; /* it has been looked at */
}

/* A turn of that thread is over. */
static void count_turn(struct state *s, int t) {
    for (int i = 0; i < n_threads; i++)
        if (i != t && s->left[i] > 0)
            s->left[i]--;
}

/* The section that is over when its thread comes. */
static void come_to_end(int t) {
    turn.holder = (uint32_t)t;
    turn.n_soft--;
    turn.thread[t].is_soft = false;
    turn_return(&turn, (uint32_t)t);
}

/*
 * What has changed by that pass: a wait for turns alone is over early if no thread is runnable, one of them at a time;
 * no other wait ever is.
 */
static void look_at_ends(const struct turn_thread *before) {
    uint32_t n_early = 0;
    for (int i = 0; i < n_threads; i++) {
        const struct turn_thread *thread = &turn.thread[i];
        bool has_waited = before[i].state == TURN_BLOCKED || before[i].state == TURN_SECTION;
        bool is_woken = before[i].state == TURN_BLOCKED && thread->reason != TURN_TIMED_OUT;
        if (thread->state != TURN_RUNNABLE || !has_waited || is_woken || thread->deadline <= turn.now)
            continue;
        n_early++;
        if (!before[i].is_soft)
            wrong = "a sleep is over before its time";
    }
    if (n_early > 0 && turn.n_runnable != 1)
        wrong = "a soft deadline has come early, and another thread is runnable";
}

/* As keep (engine/det/hints.c). True: the turn is not passed. */
static bool keep(const struct state *s, int t, uint8_t at) {
    return scripts[t][at] == 'L' && s->at[t] != at && turn_keep(&turn);
}

/* With the turn. */
static void make_operation(struct state *s, int t) {
    uint8_t at = s->at[t];
    struct turn_thread threads[MAX_THREADS];
    if (turn.thread[t].state == TURN_SECTION)
        come_to_end(t);
    turn.holder = (uint32_t)t;
    count(s, t, scripts[t][at]);
    uint32_t waiting = turn_waiting(&turn, CONDITION, TURN_EXACT);
    operate(s, t, scripts[t][at]);
    if (turn_waiting(&turn, CONDITION, TURN_EXACT) + (scripts[t][at] == 's') < waiting)
        wrong = "a signal wakes two";
    s->waits[t] = turn.thread[t].state == TURN_BLOCKED;
    uint64_t before = turn.now;
    memcpy(threads, turn.thread, sizeof threads);
    bool is_kept = keep(s, t, at);
    if (is_kept)
        s->passes[t] = 0;
    else
        turn_pass(&turn);
    count_turn(s, t);
    look_at_time(before);
    look_at_ends(threads);
    if (s->arrived[t] != 2)                                            /* else it looks at its offer first */
        s->arrived[t] = s->at[t] == at || scripts[t][s->at[t]] == 'p'; /* after its wait it goes on without computing */
}

/* As det_serve (engine/det). */
static void serve(struct state *s) {
    uint32_t served;
    state_load(s);
    while ((served = turn_serve(&turn)) != TURN_NO_THREAD && wrong == NULL) {
        if (served != turn.holder)
            wrong = "a thread is served and has not the turn";
        make_operation(s, (int)served);
    }
    state_save(s);
}

/* A thread asks for the turn: with an offer, or without. */
static int ask(struct state *s, int t, int way) {
    bool may_offer = offers != NO_OFFERS && scripts[t][s->at[t]] == 'B';
    s->arrived[t] = 1;
    if (!may_offer || way != 0)
        return 1;
    state_load(s);
    s->arrived[t] = turn_offer(&turn, (uint32_t)t) ? 2 : 1;
    state_save(s);
    return offers == OFFERS_STAND ? 1 : 2;
}

/* Its own look at its offer: it has been served, or takes it back. */
static int look_at_offer(struct state *s, int t) {
    bool is_served = s->turn.offer[t] == TURN_SERVED;
    if (!is_served && (offers == OFFERS_STAND || s->n_taken_back == TAKEN_BACK))
        return 0;
    state_load(s);
    s->arrived[t] = turn_withdraw(&turn, (uint32_t)t);
    state_save(s);
    if (is_served && s->arrived[t] != 0)
        wrong = "a thread is served, and makes the operation too";
    s->n_taken_back += s->arrived[t];
    return 1;
}

static int step(void *state, int t, int way) {
    struct state *s = state;
    if (s->passes[t] != 0) {
        s->passes[t] = 0;
        serve(s);
        look(s);
        return 1;
    }
    if (s->arrived[t] == 2 && look_at_offer(s, t) != 0) {
        look(s);
        return 1;
    }
    if (scripts[t][s->at[t]] == '\0' || s->arrived[t] == 2)
        return 0;
    if (s->is_away[t] != 0) {
        if ((may_be_interrupted & SHORT) == 0 && !have_others_ended(s, t))
            return 0;
        come_back(s, t);
        look(s);
        return 1;
    }
    if (way == 0 && may_interrupt(s, t)) {
        interrupt(s, t);
        look(s);
        return 2;
    }
    if (s->arrived[t] == 0 && (offers == NO_OFFERS || s->turn.thread[t].state != TURN_BLOCKED)) {
        int ways = ask(s, t, way);
        look(s);
        return ways;
    }
    /* The clock outside may pass a deadline at any time. */
    if (s->turn.thread[t].state == TURN_BLOCKED && s->turn.thread[t].deadline != TURN_NEVER &&
        !s->turn.thread[t].overdue) {
        state_load(s);
        turn_overdue(&turn, (uint32_t)t);
        if (turn.holder == TURN_NO_THREAD)
            turn_choose(&turn);
        state_save(s);
        look(s);
        return 1;
    }
    if (!may_operate(s, t))
        return 0;
    state_load(s);
    make_operation(s, t);
    state_save(s);
    s->passes[t] = offers != NO_OFFERS;
    if (mistake == NONE)
        look(s);
    return 1;
}

static void at_end(const void *state) {
    const struct state *s = state;
    for (int t = 0; t < n_threads; t++)
        if (scripts[t][s->at[t]] != '\0' || s->arrived[t] == 2)
            wrong = "a thread waits for ever";
    if (may_be_interrupted != 0)
        return;
    if (!has_schedule)
        memcpy(schedule, s->schedule, sizeof schedule);
    else if (memcmp(schedule, s->schedule, sizeof schedule) != 0)
        wrong = "another schedule";
    has_schedule = true;
}

static void print(const void *state, int t, int way) {
    const struct state *s = state;
    (void)way;
    printf("#   thread %d, operation %c\n", t, scripts[t][s->at[t]]);
}

struct scenario {
    const char *what;
    const char *script[MAX_THREADS + 1];
    bool without_seed; /* a signal that no thread waits for yet is lost, and then the script never ends */
    unsigned may_be_interrupted;
    uint8_t interrupted_from;
    int offers;
};

static const struct scenario scenarios[] = {
    {"a barrier", {"BBe", "BBe", "BBe"}, false, 0, 0, NO_OFFERS},
    {"offers at a barrier", {"BBe", "BBe", "BBe"}, false, 0, 0, OFFERS},
    {"offers that stand", {"BBBe", "BBBe", "BBBe", "BBBe"}, false, 0, 0, OFFERS_STAND},
    {"offers beside a lock", {"BluBe", "luBBe", "BBlue"}, false, 0, 0, OFFERS},
    {"offers long before the turn", {"luBe", "lululuBe", "luluBe"}, false, 0, 0, OFFERS},
    {"offers beside a sleep", {"BtBe", "tBBe", "BTBe"}, false, 0, 0, OFFERS},
    {"offers beside sections", {"gBgBe", "BgBe", "BBge"}, false, 0, 0, OFFERS},
    {"a turn that is kept", {"LuLue", "luLue", "Lulue"}, false, 0, 0, NO_OFFERS},
    {"kept, beside sleeps", {"LuLuLue", "kLue", "LuTlukLue"}, false, 0, 0, NO_OFFERS},
    {"kept, beside sections", {"LuLuLue", "gLugLue", "lugLue"}, false, 0, 0, NO_OFFERS},
    {"kept, beside offers", {"LuBLue", "BLue", "LuBe"}, false, 0, 0, OFFERS},
    {"three threads lock", {"lulue", "lulue", "lulue"}, false, 0, 0, NO_OFFERS},
    {"four threads lock", {"lue", "lulue", "lue", "lue"}, false, 0, 0, NO_OFFERS},
    {"a signal", {"lwlue", "lusssse", "lue"}, true, 0, 0, NO_OFFERS},
    {"sleeps", {"tlue", "luttlue", "lulue"}, false, 0, 0, NO_OFFERS},
    {"all sleep", {"te", "tte", "te"}, false, 0, 0, NO_OFFERS},
    {"a sleep between two waits", {"lwlue", "Te", "lwlue", "lululululululululululululusse"}, true, 0, 0, NO_OFFERS},
    {"a sleep behind a wait", {"lwlue", "te", "lululululwlue", "lululululululululusse"}, true, 0, 0, NO_OFFERS},
    {"two give up", {"gge", "gge", "lulue"}, false, 0, 0, NO_OFFERS},
    {"all give up", {"gge", "ge", "gge"}, false, 0, 0, NO_OFFERS},
    {"one gives up", {"lgugue", "lululululue", "lulue"}, false, 0, 0, NO_OFFERS},
    {"one gives up, another sleeps", {"ggge", "tlulue", "lulute"}, false, 0, 0, NO_OFFERS},
    {"one gives up, alone but for a wait", {"ggglusse", "lwlue", "lgue"}, true, 0, 0, NO_OFFERS},
    {"a soft barrier", {"bplue", "lubpe", "lulue"}, false, 0, 0, NO_OFFERS},
    {"a soft barrier, one too many", {"bpbpe", "bpe", "lulue"}, false, 0, 0, NO_OFFERS},
    {"a soft barrier alone", {"bpte", "lbpue", "le"}, true, 0, 0, NO_OFFERS},
    {"a soft barrier and sections", {"gbpge", "bpgbpe", "lgue"}, false, 0, 0, NO_OFFERS},
    {"a sleep beside a soft barrier", {"lbpue", "te"}, false, 0, 0, NO_OFFERS},
    {"a handler, a soft barrier beside sections", {"Tbpe", "Tge", "lululululugge"}, false, 1, 0, NO_OFFERS},
    {"a handler, a soft barrier", {"bplue", "bplue", "gglue"}, false, 3, 0, NO_OFFERS},
    {"a short handler, a soft barrier", {"bplue", "bplue", "gglue"}, false, 3 | SHORT, 0, NO_OFFERS},
    {"a handler, threads lock", {"lue", "lue", "lue"}, false, 6, 0, NO_OFFERS},
    {"a handler, four threads lock", {"lue", "lue", "lue", "lulue"}, false, 14, 0, NO_OFFERS},
    {"a handler, two signals", {"lwlue", "lwlue", "lulululusse"}, true, 3, 2, NO_OFFERS},
    {"a handler, sleeps", {"tlue", "tlue", "lulue"}, false, 3, 0, NO_OFFERS},
    {"a short handler, threads lock", {"lue", "lue", "lulue"}, false, 7 | SHORT, 0, NO_OFFERS},
    {"a short handler, two signals", {"lwlue", "lwlue", "lulululusse"}, true, 3 | SHORT, 2, NO_OFFERS},
};

static bool walk(const struct scenario *which, uint64_t seed, bool show, uint64_t *n_states) {
    struct state first;
    memset(&first, 0, sizeof first);
    scripts = which->script;
    may_be_interrupted = which->may_be_interrupted;
    interrupted_from = which->interrupted_from;
    offers = which->offers;
    for (n_threads = 0; scripts[n_threads] != NULL;)
        n_threads++;
    state_begin(n_threads);
    turn_begin(&turn, seed);
    lbdr_begin(&lbdr);
    for (int i = 1; i < n_threads; i++) /* two stages, and the main thread's */
        lbdr_create(&lbdr, turn_create(&turn), (uintptr_t)i % 2 + 1);
    state_save(&first);
    wrong = NULL;
    has_schedule = false;
    struct interleave what = {
        .bytes = sizeof first, .n_threads = n_threads, .step = step, .at_end = at_end, .wrong = &wrong, .print = print};
    return interleave_walk(&what, &first, show, n_states);
}

enum { N_SCENARIOS = sizeof scenarios / sizeof scenarios[0] };

/* N_SCENARIOS: there is none. */
static size_t scenario_of(const char *what) {
    size_t i = 0;
    while (i < N_SCENARIOS && strcmp(scenarios[i].what, what) != 0)
        i++;
    return i;
}

static int is_wrong(const char *what) {
    uint64_t n_states;
    size_t i = scenario_of(what);
    if (i == N_SCENARIOS) {
        printf("Bail out! no scenario %s\n", what);
        return 1;
    }
    bool found = !walk(&scenarios[i], 0, false, &n_states);
    printf("1..1\n%sok 1 - found by %s: %s\n", found ? "" : "not ", what, found ? wrong : "nothing");
    return !found;
}

int main(int argc, char **argv) {
    static const uint64_t seeds[] = {0, 1, 7};
    size_t n = 0, failed = 0;
    uint64_t n_states;
    if (argc == 3 && strcmp(argv[1], "--wrong") == 0)
        return is_wrong(argv[2]);
    for (size_t i = 0; i < N_SCENARIOS; i++)
        for (size_t k = 0; k < (scenarios[i].without_seed ? 1 : sizeof seeds / sizeof seeds[0]); k++) {
            bool right = walk(&scenarios[i], seeds[k], true, &n_states);
            printf("%sok %zu - %s, seed %" PRIu64 ": %s, %" PRIu64 " states\n", right ? "" : "not ", ++n,
                   scenarios[i].what, seeds[k], scenarios[i].may_be_interrupted == 0 ? "one schedule" : "all end",
                   n_states);
            failed += !right;
        }
    static const char *const mistakes[] = {"", "operations without the turn", "a free lock goes to the first comer",
                                           "a section is over when its thread comes"};
    for (int m = WITHOUT_TURN; m <= OVER_ON_ARRIVAL; m++) {
        mistake = m;
        bool found = !walk(&scenarios[m == OVER_ON_ARRIVAL ? scenario_of("two give up") : 0], 0, false, &n_states);
        printf("%sok %zu - mistake found: %s\n", found ? "" : "not ", ++n, mistakes[m]);
        failed += !found;
    }
    printf("1..%zu\n", n);
    return failed != 0;
}
