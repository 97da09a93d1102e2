/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared words: lines, their homes, and what a core has in its cache. */
#include "program_share.h"

static uint32_t home_of(const struct sim_program *p, uint32_t line) {
    return line % p->config.n_cores;
}

/* Of a thread, or before the run, which then fails. */
static uint32_t refuse_words(struct sim_program *p, const char *what, uint32_t n) {
    if (p->running != NULL)
        sim_program_fail(p, "%s %u shared words", what, n);
    p->status = sim_refuse(&p->error, SIM_USAGE, "%s %u shared words", what, n);
    return UINT32_MAX;
}

uint32_t sim_n_words(struct sim_program *p) {
    sim_program_settle(p);
    return SIM_PROGRAM_MAX_WORDS - p->n_lines * SIM_WORDS_OF_LINE;
}

uint32_t sim_words(struct sim_program *p, uint32_t n) {
    sim_program_settle(p);
    uint32_t first = p->n_lines, most = SIM_PROGRAM_MAX_WORDS / SIM_WORDS_OF_LINE;
    uint32_t more = n / SIM_WORDS_OF_LINE + (n % SIM_WORDS_OF_LINE != 0);
    if (more > most - first)
        return refuse_words(p, "no room for", n);
    if (first + more > p->lines_capacity) {
        uint32_t capacity = 2 * (first + more);
        struct sim_cache_line *lines = realloc(p->lines, capacity * sizeof *lines);
        if (lines == NULL)
            return refuse_words(p, "no memory for", n);
        p->lines = lines;
        p->lines_capacity = capacity;
    }
    for (uint32_t i = first; i < first + more; i++)
        p->lines[i] = (struct sim_cache_line){.owner = SIM_NO_OWNER};
    p->n_lines += more;
    return first * SIM_WORDS_OF_LINE;
}

/* ---- an access ---- */

static bool has_line(const struct sim_cache_line *line, uint32_t core, enum sim_access access) {
    return access == SIM_LOAD ? hw_optical_bit(line->sharers, core) : line->owner == core;
}

static void perform(struct sim_cache_line *line, struct sim_fiber *t) {
    uint64_t *word = &line->word[t->word % SIM_WORDS_OF_LINE];
    t->result = *word;
    switch (t->access) {
    case SIM_LOAD:
        break;
    case SIM_ADD:
        *word += t->operand;
        break;
    case SIM_COMPARE_AND_SWAP:
        if (*word != t->expected)
            break;
        *word = t->operand;
        break;
    case SIM_STORE:
    case SIM_SWAP:
        *word = t->operand;
        break;
    }
}

static void share(struct sim_cache_line *line, uint32_t core) {
    line->sharers[core / 64] |= UINT64_C(1) << core % 64;
}

/*
 * All other copies are invalid from now on. A thread that spins on one asks for the line again when it is told so, as
 * any load does. The answer is how long it takes the home.
 */
static uint64_t invalidate(struct sim_program *p, const struct sim_fiber *writer, uint64_t start) {
    uint32_t number = writer->word / SIM_WORDS_OF_LINE, core = writer->core, home = home_of(p, number);
    struct sim_cache_line *line = &p->lines[number];
    uint64_t longest = 0, sent = 0;
    for (uint32_t w = 0; w < SIM_MAX_CORES / 64; w++)
        for (uint64_t rest = line->sharers[w]; rest != 0; rest &= rest - 1) {
            uint32_t other = w * 64 + (uint32_t)__builtin_ctzll(rest);
            if (other == core) {
                sim_share_tell_spinning(p, writer, core, number, start);
                continue;
            }
            uint64_t there = sent + sim_program_way(p, home, other, HW_MESH_N_FLITS);
            uint64_t back = there + sim_program_way(p, other, home, HW_MESH_N_FLITS);
            longest = back > longest ? back : longest;
            sent += p->config.memory.invalidate_flits;
            sim_share_tell_spinning(p, writer, other, number, start + there);
        }
    for (uint32_t w = 0; w < SIM_MAX_CORES / 64; w++)
        line->sharers[w] = 0;
    return longest;
}

/* The request has arrived at the line's home. */
static bool at_home(struct sim_program *p, struct sim_fiber *t) {
    const struct sim_memory_costs *costs = &p->config.memory;
    uint32_t number = t->word / SIM_WORDS_OF_LINE, home = home_of(p, number), core = t->core;
    struct sim_cache_line *line = &p->lines[number];
    uint64_t now = sim_program_now(p), start = line->free_cycles > now ? line->free_cycles : now;
    uint64_t served = start + costs->directory_cycles;
    if (line->owner == SIM_NO_OWNER)
        served += costs->dram_cycles;
    else
        served += sim_program_way(p, home, line->owner, HW_MESH_N_FLITS) +
                  sim_program_way(p, line->owner, home, costs->line_flits);
    line->owner = SIM_NO_OWNER;
    if (t->access != SIM_LOAD) {
        served += invalidate(p, t, start + costs->directory_cycles);
        line->owner = core;
    }
    share(line, core);
    perform(line, t);
    line->free_cycles = served;
    p->n_transfers++;
    t->then = sim_fiber_goes_on;
    sim_fiber_call(p, t, served + sim_program_way(p, home, core, costs->line_flits) + costs->hit_cycles);
    return false;
}

/* Other schedules for the same program. */
static uint64_t jitter(struct sim_program *p) {
    uint64_t *state = &p->config.jitter_seed;
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*state >> 33) % (p->config.jitter_cycles + 1u);
}

static uint64_t access_word(struct sim_program *p, enum sim_access access, uint32_t word, uint64_t operand,
                            uint64_t expected) {
    struct sim_fiber *t = p->running;
    uint32_t number = word / SIM_WORDS_OF_LINE;
    if (number >= p->n_lines)
        sim_program_fail(p, "thread %u: there is no shared word %u", t->number, word);
    if (p->config.jitter_cycles != 0)
        sim_compute(p, jitter(p));
    sim_fiber_settle(p, t);
    t->access = access;
    t->word = word;
    t->operand = operand;
    t->expected = expected;
    if (has_line(&p->lines[number], t->core, access)) {
        perform(&p->lines[number], t);
        if (p->core_free != NULL && access != SIM_LOAD)
            sim_share_tell_spinning(p, t, t->core, number, sim_program_now(p));
        t->ahead = p->config.memory.hit_cycles;
        return t->result;
    }
    uint64_t way = sim_program_way(p, t->core, home_of(p, number), HW_MESH_N_FLITS);
    sim_fiber_call(p, t, sim_program_now(p) + p->config.memory.hit_cycles + way);
    sim_fiber_stop(p, t, SIM_FOR_TIME, at_home);
    return t->result;
}

uint64_t sim_load(struct sim_program *p, uint32_t word) {
    return access_word(p, SIM_LOAD, word, 0, 0);
}

void sim_store(struct sim_program *p, uint32_t word, uint64_t value) {
    access_word(p, SIM_STORE, word, value, 0);
}

uint64_t sim_fetch_add(struct sim_program *p, uint32_t word, uint64_t n) {
    return access_word(p, SIM_ADD, word, n, 0);
}

uint64_t sim_swap(struct sim_program *p, uint32_t word, uint64_t value) {
    return access_word(p, SIM_SWAP, word, value, 0);
}

uint64_t sim_compare_and_swap(struct sim_program *p, uint32_t word, uint64_t expected, uint64_t value) {
    return access_word(p, SIM_COMPARE_AND_SWAP, word, value, expected);
}

uint64_t sim_spin_while(struct sim_program *p, uint32_t word, uint64_t old) {
    struct sim_fiber *t = p->running;
    for (;;) {
        uint64_t value = sim_load(p, word);
        if (value != old)
            return value;
        sim_fiber_settle(p, t);
        /* The copy may have become invalid on its way here: then it is asked for again at once. */
        if (hw_optical_bit(p->lines[word / SIM_WORDS_OF_LINE].sharers, t->core) &&
            p->lines[word / SIM_WORDS_OF_LINE].word[word % SIM_WORDS_OF_LINE] == old)
            sim_fiber_stop(p, t, SIM_FOR_CHANGE, sim_fiber_goes_on);
    }
}

/* ---- futexes ---- */

/* The server is done with one more request, or woken thread, then. */
static uint64_t serve(struct sim_program *p) {
    uint64_t now = sim_program_now(p);
    p->server_free_cycles =
        (p->server_free_cycles > now ? p->server_free_cycles : now) + p->config.memory.server_cycles;
    return p->server_free_cycles;
}

static void reply(struct sim_program *p, struct sim_fiber *t, uint64_t at) {
    t->then = sim_fiber_goes_on;
    sim_fiber_call(p, t, at + sim_program_way(p, 0, t->core, HW_MESH_N_FLITS));
}

static uint64_t *word_at_server(struct sim_program *p, uint32_t word) {
    return &p->lines[word / SIM_WORDS_OF_LINE].word[word % SIM_WORDS_OF_LINE];
}

static void sleep_at_server(struct sim_program *p, struct sim_fiber *t) {
    t->wait = SIM_FOR_WAKE;
    t->next_sleeper = NULL;
    if (p->last_sleeper != NULL)
        p->last_sleeper->next_sleeper = t;
    else
        p->first_sleeper = t;
    p->last_sleeper = t;
}

static bool wait_at_server(struct sim_program *p, struct sim_fiber *t) {
    uint64_t done = serve(p);
    if (*word_at_server(p, t->word) != t->expected)
        reply(p, t, done);
    else
        sleep_at_server(p, t);
    return false;
}

/* The server is done with the request itself at `done`. */
static void wake_sleepers(struct sim_program *p, struct sim_fiber *t, uint64_t done) {
    struct sim_fiber **link = &p->first_sleeper, *last = NULL;
    t->result = 0;
    while (*link != NULL && t->result < t->n_wake) {
        struct sim_fiber *sleeper = *link;
        if (sleeper->word != t->word) {
            last = sleeper;
            link = &sleeper->next_sleeper;
            continue;
        }
        *link = sleeper->next_sleeper;
        if (p->last_sleeper == sleeper)
            p->last_sleeper = last;
        t->result++;
        done = serve(p);
        reply(p, sleeper, done);
    }
    reply(p, t, done);
}

static bool wake_at_server(struct sim_program *p, struct sim_fiber *t) {
    wake_sleepers(p, t, serve(p));
    return false;
}

static bool meet_at_server(struct sim_program *p, struct sim_fiber *t) {
    uint64_t done = serve(p), *count = word_at_server(p, t->word);
    if (++*count < t->expected) {
        sleep_at_server(p, t);
        return false;
    }
    *count = 0;
    t->n_wake = UINT32_MAX;
    wake_sleepers(p, t, done);
    return false;
}

static void call_server(struct sim_program *p, uint32_t word, sim_fiber_then *then) {
    struct sim_fiber *t = p->running;
    if (word / SIM_WORDS_OF_LINE >= p->n_lines)
        sim_program_fail(p, "thread %u: there is no shared word %u", t->number, word);
    sim_compute(p, p->config.memory.system_cycles);
    sim_fiber_settle(p, t);
    t->word = word;
    sim_fiber_call(p, t, sim_program_now(p) + sim_program_way(p, t->core, 0, HW_MESH_N_FLITS));
    sim_fiber_stop(p, t, SIM_FOR_TIME, then);
    sim_compute(p, p->config.memory.system_cycles);
}

void sim_futex_wait(struct sim_program *p, uint32_t word, uint64_t expected) {
    p->running->expected = expected;
    call_server(p, word, wait_at_server);
}

uint32_t sim_futex_wake(struct sim_program *p, uint32_t word, uint32_t n) {
    struct sim_fiber *t = p->running;
    t->n_wake = n;
    call_server(p, word, wake_at_server);
    return (uint32_t)t->result;
}

void sim_server_barrier(struct sim_program *p, uint32_t word, uint32_t n_threads) {
    p->running->expected = n_threads;
    call_server(p, word, meet_at_server);
}
