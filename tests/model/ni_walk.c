/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Serving the network interfaces, its own code (engine/ni: mailbox, serve, service, service_thread) under a scheduler
 * of the test's: every schedule of small programs with at most so many preemptions. Each request must be served once,
 * and those of a thread to one NI in their order. No thread may wait for ever, and in the end no service thread may be
 * left. What else must be so stands where it is looked at. The state machines are not walked: a step only notes its
 * request. Mailboxes and the servers' arrays have room for few requests (tuning/engine/ni/bounds.h).
 *
 *   ni-walk [--long | --wrong SCENARIO]
 *
 * --long: one preemption more. --wrong: the code has a mistake, which that scenario has to find.
 */
#define NI_SCHED_ITSELF
#include "ni_sched.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/handlers.h"
#include "core/log.h"
#include "engine/ni/eager.h"
#include "engine/ni/mailbox.h"
#include "engine/ni/serve.h"
#include "engine/ni/service.h"
#include "engine/ni/service_thread.h"
#include "engine/ni/settle.h"
#include "engine/ni/step.h"
#include "engine/ni/thread.h"
#include "os/lock.h"
#include "os/real.h"
#include "wait/park.h"

enum { MAX_PROGRAM = 3, N_TILES = 4, N_CONTROL = 4, WAY_CYCLES = 100, GAP_CYCLES = 50 };

/*
 * A thread's script, after the number of its tile:
 *   uN  hand in a request to NI N
 *   aN  the same, and wait until it has been served
 *   oN  as uN, of a thread that has found its service thread late, and serves itself if it can
 *   wN  wait until something of thread N has been served, and all that it has handed in
 *   lN  the thread has found its service thread late, N times in a row
 *   sN  serve NI N, as a thread does that has held its lock
 *   fN  wait until what the mailbox of tile N holds has been served
 *   tN  end, and leave the record to a new thread on tile N, which follows the rest
 *   d   no longer be counted among the program's threads, as in the destructors of thread-specific data
 *   y   let the others go on
 *   b   have service threads begin, if there are to be any
 * The last thread that is counted ends the service threads. These are signal handlers of the first thread, and are not
 * counted:
 *   H   interrupts it where it is not inside the engine, and follows the rest in the meantime
 *   F   could not be deferred, so it interrupts it anywhere, and forks. What follows is the child: there are the first
 *       thread and the handler
 *   G   the same at a moment when no NI is served
 */
struct scenario {
    const char *name;
    const char *script[MAX_PROGRAM];
    uint32_t n_preemptions;
    uint32_t n_services;  /* 0: inline */
    uint32_t n_creatable; /* so many threads can be created, then no more */
    bool timed;           /* with a time scale */
    bool gaps;            /* the packets behind the first one find gaps before it, and are due at once */
    uint32_t n_cores;     /* 0: for all threads */
    uint32_t starved;     /* bit n: service thread n is awake, and gets no core until the program ends */
};

static const struct scenario *scenario;
static struct ni_tile tiles[N_TILES];
static struct ni_thread records[MAX_PROGRAM];
static uint32_t n_left;    /* threads of the program that have not ended */
static uint32_t n_created; /* service threads */
static uint32_t created[NI_MAX_SERVICES];
static uint32_t n_parents;  /* so many of them are the parent's; a forked child does not have them */
static uint32_t fed;        /* 1: starved service threads get a core */
static uint32_t n_sent;     /* packets */
static uint64_t now_cycles; /* model time: passes only while a thread waits for it */
static uint32_t handed_in[MAX_PROGRAM], n_stepped[MAX_PROGRAM], n_served[MAX_PROGRAM];
static uint32_t n_before[MAX_PROGRAM];            /* requests that the record's earlier thread has handed in */
static uint32_t last_at[MAX_PROGRAM][2][N_TILES]; /* of each thread: number of its last request that was served there */
static bool blocked;                              /* the signals of the thread that has service threads begin or end */
static bool has_forked;
static bool doubled; /* the child has served the request that the first thread was serving when it forked */

/* Of each thread of the program. */
static struct {
    bool is_counted;
    bool is_handing_in;
    bool leaves_all;                /* what it does now it leaves to the service threads */
    uint64_t due_at[N_TILES];       /* when the last of its packets to an NI reaches that */
    uint64_t turns_before[NI_RING]; /* of the home's mailbox, when it handed its request in */
    uint64_t last_before;           /* its record's `last` then */
    uint64_t claimed;               /* the position that it claimed, plus 1; 0: none, or not yet */
    uint32_t comes_after;           /* at a full ring: the thread that looked for a slot when it came, plus 1 */
} program[MAX_PROGRAM];
static uint32_t looks[N_TILES]; /* the thread that looks for a slot of a tile, plus 1 */

/* ---- what is below the code: machine, steps, waiting ---- */
struct ni_machine ni_machine;
struct sbt_real sbt_real;
struct sbt_yield_gate sbt_yield_gate;
_Thread_local struct sbt_thread sbt_self;
uint32_t sbt_n_runnable, sbt_n_cpus = 2;
bool sbt_fence_asymmetric;

uint64_t ni_scaled_cycles(void) {
    return now_cycles;
}

/* A hand-over ends long before its packet is due, so no time passes that is of interest here. */
void ni_tile_delay(struct ni_tile *tile, uint64_t cycles, uint64_t rest_ns) {
    (void)tile;
    (void)cycles;
    (void)rest_ns;
    sched_point();
}

struct ni_issue ni_tile_issue(struct ni_tile *tile) {
    (void)tile;
    return (struct ni_issue){ni_now_cycles(), 0};
}

uint64_t ni_wait_until(uint64_t cycles, uint64_t rest_ns) {
    (void)rest_ns;
    now_cycles = cycles > now_cycles ? cycles : now_cycles;
    sched_point();
    return 0;
}

struct hw_delivery ni_send(struct ni_tile *tile, uint32_t from, uint32_t to, uint64_t at_cycles) {
    if (tile->lock != 1 && !has_forked)
        sched_wrong("a packet is sent without the lock of an NI");
    if (from != to && scenario->timed)
        at_cycles += !scenario->gaps ? WAY_CYCLES : n_sent++ == 0 ? WAY_CYCLES + GAP_CYCLES : 0;
    if (tile == &tiles[from] && from != to) { /* its server sends on what it has just taken out of the mailbox */
        const struct hw_packet *packet = &tile->mailbox.ring[(tile->mailbox.head - 1) % NI_RING].packet;
        uint64_t *due = &program[packet->flit[2] >> 16].due_at[to];
        *due = at_cycles > *due ? at_cycles : *due;
    }
    return (struct hw_delivery){.head_cycles = at_cycles, .tail_cycles = at_cycles};
}

/* The state machine has the request. */
static void note(const struct ni_tile *tile, const struct hw_packet *packet) {
    uint32_t t = packet->flit[2] >> 16, number = packet->flit[1], ni = ni_number_of(tile);
    if (hw_packet_destination(&ni_machine.layout, packet) != ni)
        sched_wrong("a request is served by another NI");
    uint32_t *last = &last_at[t][number > n_before[t]][ni];
    if (has_forked && *last == number && !doubled) {
        doubled = true;
        return;
    }
    if (*last >= number)
        sched_wrong("a request is served again, or behind a later one of its thread");
    *last = number;
    n_stepped[t]++;
}

/* Another thread is told at a barrier. */
static bool waits_at_barrier(uint32_t t) {
    return t % 2 != 0;
}

/*
 * Its thread may learn of it, and is woken as the answers of step.c do it. The other threads of the program learn of it
 * at once.
 */
static void tell(const struct hw_packet *packet, struct ni_work *work) {
    uint32_t t = packet->flit[2] >> 16;
    if (n_served[t] == n_stepped[t])
        return;
    n_served[t]++;
    sched_wake(&n_stepped[t]);
    if (work != NULL && work->self == &records[t])
        return;
    if (work != NULL && waits_at_barrier(t)) {
        if (work->opened != NULL)
            sched_wake(work->opened);
        work->opened = &n_served[t];
    } else if (work != NULL && work->n_wakes < NI_MAX_WAKES) {
        work->wakes[work->n_wakes++] = &n_served[t];
    } else {
        sched_wake(&n_served[t]);
    }
}

/*
 * With a time scale only a service thread knows when a request is due. So a thread that hands in or waits leaves all
 * requests to it.
 */
static void check_server(void) {
    uint32_t self = sched_self();
    if (self < MAX_PROGRAM && program[self].leaves_all && ni_service_runs())
        sched_wrong("with a time scale a thread serves requests beside the service threads");
}

static void step(const struct ni_tile *tile, const struct hw_packet *packet, const struct ni_work *work) {
    if (tile->lock != 1 && !has_forked)
        sched_wrong("an NI makes a step without its lock");
    if (work->n_touched > NI_MAX_TOUCHED || work->n_wakes > NI_MAX_WAKES)
        sched_wrong("a server notes more than it has room for");
    check_server();
    note(tile, packet);
}

/* A request that is sorted behind others waits for those of its own thread only. */
static void check_due(const struct ni_tile *tile, const struct ni_request *r) {
    uint32_t t = r->packet.flit[2] >> 16, ni = ni_number_of(tile);
    if ((r->packet.flit[2] & 0xFFFF) != ni && r->at_cycles > program[t].due_at[ni])
        sched_wrong("a request waits for one of another thread that is due later");
}

void ni_step_request(struct ni_tile *tile, struct ni_request *r, struct ni_request *slot, struct ni_work *work) {
    struct hw_packet packet = r->packet;
    check_due(tile, r);
    step(tile, &packet, work);
    sched_point();
    ni_slot_free(slot);
    sched_point();
    tell(&packet, work);
}

/* A slot of a mailbox that was full when the thread called, with a request for the NI to which that belongs. */
static bool was_there(uint32_t t, const struct ni_tile *tile, uint32_t slot) {
    const struct ni_request *r = &tile->mailbox.ring[slot];
    return ni_turn_is_full(r->turn) && r->turn == program[t].turns_before[slot] &&
           hw_packet_destination(&ni_machine.layout, &r->packet) == ni_number_of(tile);
}

void ni_step_direct(struct ni_tile *tile, const struct hw_packet *packet, const struct ni_origin *origin,
                    struct ni_work *work) {
    uint32_t t = packet->flit[2] >> 16;
    (void)origin;
    for (uint32_t i = 0; i < N_TILES; i++)
        for (const struct ni_request *r = tiles[i].mailbox.ring; r < tiles[i].mailbox.ring + NI_RING; r++)
            if (ni_turn_is_full(r->turn) && r->packet.flit[2] >> 16 == t)
                sched_wrong("a thread serves itself, and an earlier request with its number is in a mailbox");
    for (uint32_t slot = 0; slot < NI_RING; slot++)
        if (was_there(t, tile, slot))
            sched_wrong("a thread serves itself before what was in the mailbox of the home when it called");
    step(tile, packet, work);
    tell(packet, work);
}

void ni_deliver_deferred(struct ni_thread *t) {
    (void)t;
    sched_wrong("a handler has deferred a request where there is none");
}

bool ni_eager_pays(struct ni_eager *e) {
    (void)e;
    return false;
}

void ni_eager_done(struct ni_eager *e, bool paid) {
    (void)e, (void)paid;
}

/* As sbt_park and the wait for an answer do it. */
static void wait_uncounted(const uint32_t *word, uint32_t expected) {
    sbt_runnable_add(-1);
    sched_wait(word, expected);
    sbt_runnable_add(1);
}

int sbt_park(uint32_t *word, uint32_t expected, const struct sbt_deadline *deadline) {
    (void)deadline;
    wait_uncounted(word, expected);
    return 0;
}

long sbt_wake(uint32_t *word, int n) {
    (void)n;
    return sched_wake(word);
}

bool sbt_waiter_wake(uint32_t *word) {
    return sched_wake(word) != 0;
}

uint64_t sbt_yield_gate_pass(struct sbt_yield_gate *gate, uint64_t *now_ns) {
    (void)gate, (void)now_ns;
    return 0;
}

/* Between two looks, at a full ring or at a slot that is to be served. */
void sbt_yield_gate_offer_or_pause(struct sbt_yield_gate *gate) {
    (void)gate;
    uint32_t self = sched_self();
    if (tiles[records[self].tile].mailbox.awaited != 0 && handed_in[self] > 0 && program[self].is_handing_in)
        looks[records[self].tile] = self + 1;
    sched_pause();
}

void sbt_lock_take_slow(struct sbt_lock *g) {
    while (g->word != 0)
        sched_pause();
    g->word = 1;
}

void sbt_lock_wake(struct sbt_lock *g) {
    (void)g;
}

uint64_t sched_now_ns(void) {
    return 1;
}

long sched_syscall(long nr) {
    (void)nr;
    return -ENOENT; /* there is one memory node */
}

void sbt_handlers_deliver(void) {
    sched_wrong("handlers are deferred where there are none");
}

void sbt_log(unsigned verbosity, const char *first, ...) {
    (void)verbosity, (void)first;
}

void ni_settle_start(void) {}

void ni_settle(uint32_t number, uint32_t from, uint32_t to) {
    (void)number, (void)from, (void)to;
}

static void *(*serve)(void *);

static void *starve(void *argument) {
    struct ni_service *s = argument;
    sbt_runnable_add(1);
    s->state = NI_AWAKE;
    while (fed == 0)
        sched_wait(&fed, 0);
    sbt_runnable_add(-1);
    return serve(argument);
}

static int create(pthread_t *id, const pthread_attr_t *attr, void *(*routine)(void *), void *argument) {
    (void)attr;
    if (n_created == scenario->n_creatable)
        return EAGAIN;
    serve = routine;
    *id = created[n_created] = sched_thread((scenario->starved & 1u << n_created) != 0 ? starve : routine, argument);
    n_created++;
    return 0;
}

/* The masks of a single thread are changed: of the thread that has service threads begin. */
static int mask(int how, const sigset_t *set, sigset_t *old) {
    (void)how, (void)set;
    blocked = old != NULL;
    return 0;
}

void sbt_thread_await_end(pthread_t id) {
    for (uint32_t i = 0; i < n_parents; i++)
        if (created[i] == id)
            sched_wrong("a forked child waits for a service thread of its parent's");
    sched_await_end((uint32_t)id);
}

/* ---- the program ---- */
static void begin_hand_in(struct ni_thread *t, uint32_t ni) {
    const struct ni_mailbox *own = &tiles[t->tile].mailbox;
    for (uint32_t i = 0; i < NI_RING; i++)
        program[t->id].turns_before[i] = tiles[ni].mailbox.ring[i].turn;
    program[t->id].comes_after = own->awaited != 0 ? looks[t->tile] : 0;
    program[t->id].claimed = 0;
    program[t->id].last_before = t->last;
    program[t->id].is_handing_in = true;
    program[t->id].leaves_all = scenario->timed && ni_service_runs();
}

/*
 * At a full ring no thread claims before the thread that looks for a slot when it comes. Of two such threads the first
 * to be done does not know the other's position yet.
 */
static void end_hand_in(const struct ni_thread *t) {
    uint32_t me = t->id;
    program[me].is_handing_in = program[me].leaves_all = false;
    program[me].claimed = t->last != program[me].last_before ? t->last : 0;
    if (looks[t->tile] == me + 1)
        looks[t->tile] = 0;
    for (uint32_t i = 0; i < MAX_PROGRAM; i++) {
        if (program[i].comes_after == me + 1 && program[i].claimed != 0 && program[i].claimed < program[me].claimed)
            sched_wrong("a thread claims a slot before the thread that looked for one when it came");
        if (program[i].comes_after == me + 1)
            program[i].comes_after = 0;
    }
}

/* A thread that has found the service thread late, or has called it, looks at it again after hundreds of requests. */
static void hand_in(struct ni_thread *t, uint32_t ni, uint16_t n_own) {
    t->trust.n_own = n_own;
    begin_hand_in(t, ni);
    ni_post_alloc(t, HW_OP_UNLOCK, ni, ++handed_in[t->id], NULL);
    end_hand_in(t);
}

/* As ni_await does it: what has been left to a service thread the thread serves itself before it waits. */
static void await(struct ni_thread *t) {
    if (t->trust.left && ni_machine.time_scale == 0) {
        if (n_served[t->id] == handed_in[t->id]) {
            ni_service_judge(t, false);
        } else {
            ni_go_inside(t);
            ni_serve_instead(t);
            ni_leave_inside(t);
        }
    }
    for (uint32_t seen; (seen = n_served[t->id]) < handed_in[t->id];)
        wait_uncounted(&n_served[t->id], seen);
}

static void serve_forgotten(const struct hw_packet *packet) {
    note(&tiles[hw_packet_destination(&ni_machine.layout, packet)], packet);
    tell(packet, NULL);
}

static bool is_served(void) {
    for (uint32_t i = 0; i < N_TILES; i++)
        if (tiles[i].lock != 0)
            return true;
    return false;
}

static void fork_in_handler(uint32_t self) {
    while (blocked)
        sched_pause();
    sched_alone(true);
    has_forked = true;
    n_parents = n_created;
    for (uint32_t i = 0; i < n_created; i++)
        sched_vanish(created[i]);
    for (uint32_t i = 1; i < MAX_PROGRAM && scenario->script[i] != NULL; i++)
        if (i != self)
            sched_vanish(i);
    n_left = program[0].is_counted;
    ni_service_fork_child();
    for (uint32_t i = 0; i < N_TILES; i++) {
        tiles[i].lock = 0;
        tiles[i].pending = NULL;
        __cds_wfcq_init(&tiles[i].queue_head, &tiles[i].queue_tail);
    }
    for (uint32_t i = 0; i < N_TILES; i++)
        ni_mailbox_fork_child(&tiles[i], serve_forgotten);
    n_served[0] = n_stepped[0];
    sched_wake(&n_served[0]);
    sched_alone(false);
}

/* False: the first thread has ended. */
static bool interrupt(void) {
    while (!sched_has_ended(0) && (records[0].inside != 0 || blocked))
        sched_pause();
    if (sched_has_ended(0))
        return false;
    sched_interrupt(0, true);
    return true;
}

static bool is_handler(uint32_t i) {
    return strpbrk(scenario->script[i], "FGH") != NULL;
}

static void be_counted_no_longer(uint32_t i) {
    if (!program[i].is_counted)
        return;
    program[i].is_counted = false;
    if (--n_left != 0)
        return;
    fed = 1;
    sched_wake(&fed);
    ni_service_thread_end();
    for (i = 0; i < n_created; i++)
        if (!sched_has_ended(created[i]))
            sched_wrong("a service thread outlives the program's last thread");
}

static uint32_t follow_one(struct ni_thread *t, const char *at) {
    uint32_t n = (uint32_t)(at[1] - '0');
    switch (*at) {
    case 'u':
        hand_in(t, n, 0);
        return 2;
    case 'a':
        hand_in(t, n, 0);
        await(t);
        return 2;
    case 'o':
        hand_in(t, n, 1);
        return 2;
    case 'w':
        for (uint32_t seen; (seen = n_stepped[n]) == 0 || n_served[n] < handed_in[n];)
            wait_uncounted(&n_stepped[n], seen);
        return 2;
    case 'l':
        if (t->trust.n_late != n || t->trust.n_own != (n != 0 ? NI_OWN << n : 0))
            sched_wrong("a thread judges its service thread wrongly");
        return 2;
    case 's':
        ni_serve(&tiles[n]);
        return 2;
    case 'f':
        program[t->id].leaves_all = scenario->timed && ni_service_runs();
        ni_fence(t, n);
        program[t->id].leaves_all = false;
        if (n == t->tile && n_stepped[t->id] < handed_in[t->id])
            sched_wrong("a thread has waited for its requests, and one has not been served");
        return 2;
    case 't':
        t->tile = (uint16_t)n;
        ni_service_occupy(n);
        n_before[t->id] = handed_in[t->id];
        return 2;
    case 'G':
        while (is_served())
            sched_pause();
        /* fall through */
    case 'F':
        fork_in_handler(t->id);
        return 1;
    case 'H':
        if (!interrupt())
            return (uint32_t)strlen(at);
        return 1;
    case 'd':
        be_counted_no_longer(t->id);
        return 1;
    case 'y':
        sched_pause();
        return 1;
    case 'b':
        ni_service_thread_begin();
        return 1;
    default:
        sched_wrong("a script has a letter that means nothing");
    }
}

static void *follow(void *argument) {
    struct ni_thread *t = argument;
    for (const char *at = scenario->script[t->id] + 1; *at != '\0';)
        at += follow_one(t, at);
    if (is_handler(t->id))
        sched_interrupt(0, false);
    be_counted_no_longer(t->id);
    return NULL;
}

static void setup_machine(void) {
    memset(tiles, 0, sizeof tiles);
    memset(records, 0, sizeof records);
    ni_machine.tiles = tiles;
    ni_machine.n_tiles = N_TILES;
    ni_machine.timed = scenario->timed;
    ni_machine.time_scale = scenario->timed;
    if (!hw_layout_init(&ni_machine.layout, N_TILES, N_CONTROL))
        sched_wrong("no layout");
    for (uint32_t i = 0; i < N_TILES; i++) {
        tiles[i].next_cycles = UINT64_MAX;
        __cds_wfcq_init(&tiles[i].queue_head, &tiles[i].queue_tail);
    }
}

static void setup(void) {
    static struct sbt_options options;
    setup_machine();
    memset(handed_in, 0, sizeof handed_in);
    memset(n_stepped, 0, sizeof n_stepped);
    memset(n_served, 0, sizeof n_served);
    memset(n_before, 0, sizeof n_before);
    memset(last_at, 0, sizeof last_at);
    memset(program, 0, sizeof program);
    memset(looks, 0, sizeof looks);
    n_left = n_created = n_parents = n_sent = fed = 0;
    sbt_n_cpus = scenario->n_cores != 0 ? scenario->n_cores : SCHED_MAX_THREADS;
    has_forked = doubled = blocked = false;
    now_cycles = 0;
    sbt_real.pthread_create = create;
    sbt_real.pthread_sigmask = mask;
    memset(&ni_services, 0, sizeof ni_services);
    options.value[SBT_OPT_NI_SERVICE].u = scenario->n_services != 0 ? SBT_NI_SERVICE_DEDICATED : SBT_NI_SERVICE_INLINE;
    options.value[SBT_OPT_NI_THREADS].u = scenario->n_services;
    ni_service_start(&options);
    for (uint32_t i = 0; i < MAX_PROGRAM && scenario->script[i] != NULL; i++) {
        records[i].id = (uint16_t)i;
        records[i].tile = (uint16_t)(scenario->script[i][0] - '0');
        ni_service_occupy(records[i].tile);
        sched_thread(follow, &records[i]);
        program[i].is_counted = !is_handler(i);
        n_left += program[i].is_counted;
        sbt_n_runnable = i + 1;
    }
}

static const char *at_end(void) {
    for (uint32_t i = 0; i < (has_forked ? 1 : MAX_PROGRAM); i++)
        if (n_stepped[i] != handed_in[i])
            return "a request is left";
    for (uint32_t i = 0; i < N_TILES; i++)
        if (tiles[i].lock != 0 || tiles[i].mailbox.full.word != 0 || tiles[i].mailbox.awaited != 0 ||
            tiles[i].mailbox.fenced.word != 0)
            return "a lock is held";
    for (uint32_t i = 0; i < N_TILES; i++)
        if (tiles[i].mailbox.head != tiles[i].mailbox.tail)
            return "the next request in a mailbox would not be found";
    if (has_forked)
        return NULL;
    if (ni_service_runs())
        return "there are to be service threads, and there is none";
    uint32_t n_program = 0;
    while (n_program < MAX_PROGRAM && scenario->script[n_program] != NULL)
        n_program++;
    return sbt_n_runnable != n_program ? "the number of runnable threads is wrong" : NULL;
}

static const struct scenario scenarios[] = {
    {"one serves while another hands in", {"0a0", "1a0"}, 3, 0, 0, false, false, 0, 0},
    {"an idle thread serves while others hand in", {"0a0a0", "1s0s0a0"}, 2, 0, 0, false, false, 0, 0},
    {"three hand in to one", {"0a1", "0a1", "1a1"}, 2, 0, 0, false, false, 0, 0},
    {"one overtakes its own request", {"0u1u2ya1", "3a1y"}, 2, 0, 0, false, false, 0, 0},
    {"one has a request in its mailbox", {"0u1w2a1", "0s0", "1a1"}, 2, 0, 0, false, false, 0, 0},
    {"a new thread gets a record with a request in a mailbox",
     {"0u1w2t2a1", "0s0", "1a1"},
     2,
     0,
     0,
     false,
     false,
     0,
     0},
    {"a service thread, two hand in", {"0ba0a1", "1a3"}, 1, 1, 1, false, false, 0, 0},
    {"two service threads, and one hands in to both", {"0ba0a3", "2a0"}, 1, 2, 2, false, false, 0, 0},
    {"two service threads sleep when they are to end", {"0by"}, 1, 2, 2, false, false, 0, 0},
    {"the last thread leaves requests", {"0bu0u3", "2u0"}, 1, 2, 2, false, false, 0, 0},
    {"only one of two service threads can be created", {"0ba3", "2a0"}, 1, 2, 1, false, false, 0, 0},
    {"no service thread can be created", {"0ba3", "2a0"}, 1, 2, 0, false, false, 0, 0},
    {"no core for the service thread", {"0ba0a1", "1a0a3"}, 2, 1, 1, false, false, 1, 0},
    {"left to a service thread", {"0ba0a1", "1a0a3"}, 1, 1, 1, false, false, 0, 0},
    {"left to a service thread without a core", {"0ba0a1", "1a0a3"}, 2, 1, 1, false, false, 0, 1},
    {"left to two service threads without a core", {"0ba3a1", "2a0"}, 2, 2, 2, false, false, 0, 3},
    {"left to two service threads, the second without a core", {"0bya3a1"}, 2, 2, 2, false, false, 0, 2},
    {"left to a service thread, and no thread waits", {"0byu1", "2w0a0"}, 2, 1, 1, false, false, 0, 0},
    {"two service threads, and no thread waits", {"0bu3", "2w0"}, 2, 2, 2, false, false, 0, 0},
    {"left to service threads that are to end", {"0bu0u3", "2u0"}, 2, 2, 2, false, false, 0, 0},
    {"a service thread sleeps and is called", {"0byya1a1a0", "1w0a3"}, 1, 1, 1, false, false, 0, 0},
    {"a core comes and goes", {"0ba0a1", "1w0a3"}, 2, 1, 1, false, false, 2, 0},
    {"two hand in at one tile", {"0bu0a1", "0u1a0"}, 2, 1, 1, false, false, 0, 0},
    {"two claim at once", {"0byu0", "0u0"}, 3, 1, 1, false, false, 0, 0},
    {"three hand in at one tile", {"0ba1", "0a0", "0a1"}, 1, 1, 1, false, false, 0, 0},
    {"two hand in at one tile beside its server", {"0a0f0", "0u0a1", "1s0s0"}, 2, 0, 0, false, false, 0, 0},
    {"the service thread sleeps and two hand in", {"0bya0ya0", "0ya0"}, 2, 1, 1, false, false, 0, 0},
    {"two hand in more than a tile holds", {"0byu1u1u1u1u1a1", "0u1a1"}, 1, 1, 1, false, false, 0, 1},
    {"three hand in more than a tile holds", {"0byu1u1u1u1u1a1", "0u1a1", "0a0"}, 1, 1, 1, false, false, 0, 1},
    {"a handler forks", {"0byu0u1a0", "0G"}, 2, 1, 1, false, false, 0, 1},
    {"a handler forks, and three hand in", {"0byu1a0", "0u1a1", "0G"}, 2, 1, 1, false, false, 0, 1},
    {"a handler forks at a full ring", {"0byu1u1u1u1yu1a1", "0yyu1a1", "0yyG"}, 2, 1, 1, false, false, 0, 1},
    {"a handler forks while NIs are served", {"0bu0u1a0", "0F"}, 2, 1, 1, false, false, 0, 0},
    {"a handler forks while its thread serves a mailbox", {"0byu0s0u1a0", "0F"}, 2, 1, 1, false, false, 0, 1},
    {"a handler forks while service threads begin", {"0ba3a0", "0F"}, 1, 2, 2, false, false, 0, 0},
    {"a handler forks while a thread is placed", {"0byt1a1", "2t3", "0F"}, 1, 1, 1, false, false, 0, 1},
    {"a handler forks while service threads end", {"0bu0", "0F"}, 1, 2, 2, false, false, 0, 0},
    {"a handler comes while its thread waits for its requests", {"0byu1f0", "0Hf0"}, 2, 1, 1, false, false, 0, 1},
    {"two hand in while service threads end", {"0byu0", "2du3"}, 1, 2, 2, false, false, 0, 0},
    {"more tiles than a server notes", {"0byu1u2u3u0", "3o0"}, 1, 1, 1, false, false, 0, 1},
    {"more tiles than a thread has room for", {"0byu1u2", "3o0w0"}, 1, 1, 1, false, false, 0, 0},
    {"more tiles than a service thread has room for", {"0byu1u2", "3w0"}, 1, 1, 1, false, false, 0, 0},
    {"a service thread is late twice", {"0bya1l1a1l2"}, 1, 1, 1, false, false, 0, 1},
    {"timed: a thread comes to a full ring", {"0byu1u1u1u1u1", "0u1"}, 1, 1, 1, true, false, 0, 0},
    {"timed: two hand in while service threads end", {"0byu1", "2du3"}, 1, 2, 2, true, false, 0, 0},
    {"timed: a thread waits for what is due", {"0byu0f0"}, 1, 1, 1, true, false, 0, 0},
    {"timed: a request finds a gap before another thread's", {"0byu1", "0a1"}, 1, 1, 1, true, true, 0, 0},
    {"timed: two requests are due at once", {"0bu1u1a1"}, 1, 1, 1, true, false, 0, 0},
    {"timed: a request finds a gap before another", {"0bu1u1a1"}, 1, 1, 1, true, true, 0, 0},
    {"timed: a thread serves beside the service thread", {"0bya1", "2s0"}, 2, 1, 1, true, false, 0, 0},
    {"timed: a thread waits for what is not due", {"0byu1f0"}, 1, 1, 1, true, false, 0, 0},
    {"timed: the last thread leaves what is not due", {"0bu1u3", "2u0"}, 1, 2, 2, true, false, 0, 0},
};

int main(int argc, char **argv) {
    const size_t n = sizeof scenarios / sizeof *scenarios;
    bool longer = argc == 2 && strcmp(argv[1], "--long") == 0, mistaken = argc == 3 && strcmp(argv[1], "--wrong") == 0;
    size_t n_wrong = 0;
    if (argc != 1 && !longer && !mistaken) {
        fprintf(stderr, "usage: %s [--long | --wrong SCENARIO]\n", argv[0]);
        return 2;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t n_schedules;
        scenario = &scenarios[i];
        if (mistaken && strcmp(scenario->name, argv[2]) != 0)
            continue;
        uint32_t n_preemptions = scenario->n_preemptions + (longer ? 1 : 0);
        const char *wrong = sched_walk(n_preemptions, setup, at_end, true, &n_schedules);
        n_wrong += wrong != NULL;
        if (mistaken) {
            printf("1..1\n%sok 1 - '%s' finds the mistake, in schedule %llu\n", wrong == NULL ? "not " : "",
                   scenario->name, (unsigned long long)n_schedules);
            return wrong == NULL;
        }
        printf("%sok %zu - %s: %llu schedules, at most %u preemptions\n", wrong != NULL ? "not " : "", i + 1,
               scenario->name, (unsigned long long)n_schedules, n_preemptions);
        fflush(stdout);
    }
    printf("1..%zu\n", mistaken ? 1 : n);
    return mistaken || n_wrong != 0;
}
