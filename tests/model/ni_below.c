/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is below the code of serving in the walk: machine, steps, waiting, threads. It checks what the code asks of it.
 */
#include "engine/ni/broadcast.h"
#include "ni_walk.h"

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

/* The walk's machine has no optical network. */
uint64_t ni_broadcast_request(uint32_t from, uint32_t to, uint64_t issued_cycles) {
    (void)from;
    (void)to;
    sched_wrong("a broadcast is sent over an optical network");
    return issued_cycles;
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
void ni_walk_note(const struct ni_tile *tile, const struct hw_packet *packet) {
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
void ni_walk_tell(const struct hw_packet *packet, struct ni_work *work) {
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
    ni_walk_note(tile, packet);
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
    ni_walk_tell(&packet, work);
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
    ni_walk_tell(packet, work);
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
void ni_walk_wait_uncounted(const uint32_t *word, uint32_t expected) {
    sbt_runnable_add(-1);
    sched_wait(word, expected);
    sbt_runnable_add(1);
}

int sbt_park(uint32_t *word, uint32_t expected, const struct sbt_deadline *deadline) {
    (void)deadline;
    ni_walk_wait_uncounted(word, expected);
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

int ni_walk_create(pthread_t *id, const pthread_attr_t *attr, void *(*routine)(void *), void *argument) {
    (void)attr;
    if (n_created == scenario->n_creatable)
        return EAGAIN;
    serve = routine;
    *id = created[n_created] = sched_thread((scenario->starved & 1u << n_created) != 0 ? starve : routine, argument);
    n_created++;
    return 0;
}

/* The masks of a single thread are changed: of the thread that has service threads begin. */
int ni_walk_mask(int how, const sigset_t *set, sigset_t *old) {
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
