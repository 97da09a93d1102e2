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
#include "ni_walk.h"

const struct scenario *scenario;
struct ni_tile tiles[N_TILES];
struct ni_thread records[MAX_PROGRAM];
uint32_t n_left;
uint32_t n_created;
uint32_t created[NI_MAX_SERVICES];
uint32_t n_parents;
uint32_t fed;
uint32_t n_sent;
uint64_t now_cycles;
uint32_t handed_in[MAX_PROGRAM], n_stepped[MAX_PROGRAM], n_served[MAX_PROGRAM];
uint32_t n_before[MAX_PROGRAM];
uint32_t last_at[MAX_PROGRAM][2][N_TILES];
bool blocked;
bool has_forked;
bool doubled;
uint32_t looks[N_TILES];
struct ni_walk_thread program[MAX_PROGRAM];

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
        ni_walk_wait_uncounted(&n_served[t->id], seen);
}

static void serve_forgotten(const struct hw_packet *packet) {
    ni_walk_note(&tiles[hw_packet_destination(&ni_machine.layout, packet)], packet);
    ni_walk_tell(packet, NULL);
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
            ni_walk_wait_uncounted(&n_stepped[n], seen);
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
    sbt_real.pthread_create = ni_walk_create;
    sbt_real.pthread_sigmask = ni_walk_mask;
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
