/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/ni/broadcast.h"

#include <errno.h>
#include <string.h>

#include "engine/ni/stats.h"
#include "optical.h"
#include "os/lock.h"
#include "os/memory.h"

enum {
    INTERFACE_CYCLES = 300, /* of a core, in software, for each message: docs/atac.md */
    N_CHANNELS = 64,
    REQUESTS = 0, /* the channel of the conditions' broadcasts; barriers have the others */
    FIRST_SLOTS = 256,
    EPISODES =
        4 /* of which a port keeps counts: those under way are two, more only with more threads than a barrier's */
};

/* What a core has of an episode. */
struct count {
    uint64_t episode;
    uint32_t n;
    uint64_t at_cycles; /* its last message was retrieved */
};

/* A core's side of a channel. All-zero: it does not listen. */
struct port {
    bool listens;
    uint64_t from;         /* messages before this one were counted when it began to listen */
    uint64_t last_episode; /* in which a thread of the core came */
    uint64_t free_cycles;  /* its core has retrieved the last message */
    struct count count[EPISODES];
};

struct channel {
    uint32_t serial; /* 0: it has had no barrier */
    uint32_t *word;  /* of its barrier; NULL: free */
    uint64_t n_sent; /* of all its barriers: what is still under way of an earlier one has a lower number */
    uint64_t episode;
    uint32_t arrived;      /* of this episode; */
    uint64_t first_cycles; /* when the first of them was sent */
    uint32_t inside;       /* threads that have come and not gone */
};

/* What a message says, by its slot. */
struct note {
    uint64_t number, episode; /* of the channel's messages; the barrier's */
};

static struct sbt_lock lock; /* of all that follows */
static struct hw_optical net;
static struct hw_optical_config config;
static void *memory;
static struct note *notes;
static size_t pool_bytes; /* of nodes, slots and notes: one mapping */
static struct channel channels[N_CHANNELS];
static struct port *ports; /* [channel * n_tiles + tile] */
static uint32_t hand;      /* where the next search for a channel begins */
static uint64_t n_found, n_without_channel;
/*
 * Where and since when each thread waits. Its server writes it, and while it waits no other thread does: its requests
 * and its grant are those of one NI.
 */
static struct wait {
    uint64_t began_cycles;
    uint32_t condition;
} * waits;
/* The last broadcast of the condition in each control element. Each is under its tile's lock. */
static struct told { uint64_t stepped_cycles, known_cycles; } * told;

static struct port *port_of(uint32_t channel, uint32_t tile) {
    return &ports[(size_t)channel * ni_machine.n_tiles + tile];
}

/* ---- start ---- */

int ni_broadcast_start(const struct sbt_options *options) {
    bool wanted = options->value[SBT_OPT_NETWORK].u == SBT_NETWORK_ATAC;
    ni_machine.optical = wanted;
    ni_machine.broadcast_cycles = wanted ? (uint32_t)INTERFACE_CYCLES : ni_machine.config.timing.handover_cycles;
    if (!wanted || !ni_machine.timed)
        return 0;
    config = hw_optical_config_default();
    config.n_cores = ni_machine.n_tiles;
    config.n_channels = N_CHANNELS;
    memory = ni_get_memory(hw_optical_bytes(&config));
    ports = ni_get_memory((size_t)N_CHANNELS * ni_machine.n_tiles * sizeof *ports);
    waits = ni_get_memory(NI_MAX_THREADS * sizeof *waits);
    told = ni_get_memory((size_t)ni_machine.n_tiles * ni_machine.config.n_control * sizeof *told);
    if (memory == NULL || ports == NULL || told == NULL || waits == NULL)
        return ENOMEM;
    return hw_optical_init(&net, &config, memory) ? 0 : EINVAL;
}

/* The child has one thread and no waiters. Its barriers get channels anew: all serial numbers so far are stale. */
void ni_broadcast_fork_child(void) {
    lock = (struct sbt_lock){0};
    if (memory == NULL)
        return;
    for (uint32_t i = 0; i < N_CHANNELS; i++)
        channels[i] = (struct channel){.serial = channels[i].serial};
    sbt_memory_clear(ports, (size_t)N_CHANNELS * ni_machine.n_tiles * sizeof *ports);
    sbt_memory_clear(memory, hw_optical_bytes(&config));
    hw_optical_init(&net, &config, memory);
    notes = NULL; /* the next message gets room of its own: the parent may have been about to move it */
    pool_bytes = 0;
    n_found = n_without_channel = 0;
    memset(told, 0, (size_t)ni_machine.n_tiles * ni_machine.config.n_control * sizeof *told);
}

/* ---- messages ---- */

/*
 * Room for more messages, twice as much as there was, or what cores that no thread asks for give back. False: there is
 * no memory; then messages are not sent, and no thread waits for them.
 */
static bool make_room(void) {
    for (uint32_t i = 0; i < config.n_cores; i++)
        hw_optical_advance(&net, i, net.last_sent_cycles);
    if (net.n_free_slots > 0 && 2 * net.n_free_slots >= net.n_slots && 2 * net.n_free_nodes >= net.n_nodes)
        return true;
    uint32_t n_slots = net.n_slots != 0 ? 2 * net.n_slots : FIRST_SLOTS;
    uint32_t n_nodes = n_slots * (config.n_cores > 1 ? config.n_cores - 1 : 1);
    size_t node_bytes = n_nodes * sizeof *net.nodes, slot_bytes = n_slots * sizeof *net.slots;
    size_t bytes = node_bytes + slot_bytes + n_slots * sizeof *notes;
    char *pool = ni_get_memory(bytes);
    if (pool == NULL)
        return false;
    struct hw_optical_node *nodes = (struct hw_optical_node *)(void *)pool;
    struct hw_optical_slot *slots = (struct hw_optical_slot *)(void *)(pool + node_bytes);
    struct note *more = (struct note *)(void *)(pool + node_bytes + slot_bytes);
    if (notes != NULL) {
        memcpy(nodes, net.nodes, net.n_nodes * sizeof *nodes);
        memcpy(slots, net.slots, net.n_slots * sizeof *slots);
        memcpy(more, notes, net.n_slots * sizeof *notes);
        sbt_memory_unmap(net.nodes, pool_bytes);
    }
    notes = more;
    pool_bytes = bytes;
    hw_optical_extend(&net, nodes, n_nodes, slots, n_slots);
    return true;
}

/*
 * When it was sent: threads hand in when the host lets them, so a message that is late in the model is sent with the
 * last one. False: there is no memory.
 */
static bool send(uint32_t channel, uint32_t tile, const struct note *note, uint64_t *at_cycles) {
    struct hw_optical_message message = {.size = 4, .channel = channel, .signature = 1, .wavelength = tile};
    uint32_t slot;
    if (*at_cycles < net.last_sent_cycles)
        *at_cycles = net.last_sent_cycles;
    while (hw_optical_send(&net, &message, *at_cycles, &slot) != HW_OPTICAL_OK)
        if (!make_room())
            return false;
    notes[slot] = *note;
    return true;
}

/* All that was sent has been retrieved by then. */
static uint64_t later_than_all(void) {
    return UINT64_MAX / 4;
}

static void stop_listening(uint32_t channel, uint32_t tile) {
    struct hw_optical_received received;
    hw_optical_unsubscribe(&net, tile, channel, net.last_sent_cycles);
    while (hw_optical_receive(&net, tile, channel, later_than_all(), &received))
        net.cores[tile].counts.n_received--; /* no thread has it */
    *port_of(channel, tile) = (struct port){0};
}

/* ---- channels ---- */

static void release(uint32_t number) {
    struct channel *c = &channels[number];
    for (uint32_t i = 0; i < ni_machine.n_tiles; i++)
        if (port_of(number, i)->listens)
            stop_listening(number, i);
    *c = (struct channel){.serial = c->serial, .n_sent = c->n_sent};
}

/* The barrier's channel; 0: it has none, or has lost it. A relaxed load: the lock orders it. */
static uint32_t channel_of(const uint32_t *word) {
    uint32_t serial = __atomic_load_n(word, __ATOMIC_RELAXED), number = serial % N_CHANNELS;
    return serial != 0 && channels[number].serial == serial && channels[number].word == word ? number : 0;
}

/*
 * A channel for a barrier that has none: a free one, or that of a barrier at rest. An object at the same address that
 * was freed without destroy has none any longer.
 */
static uint32_t give_channel(uint32_t *word) {
    uint32_t number = 0;
    for (uint32_t i = 1; i < N_CHANNELS; i++)
        if (channels[i].word == word)
            release(i);
    for (uint32_t i = 1; i < N_CHANNELS && number == 0; i++)
        number = channels[i].word == NULL && channels[i].inside == 0 ? i : 0;
    for (uint32_t i = 1; i < N_CHANNELS && number == 0; i++) {
        hand = hand % (N_CHANNELS - 1) + 1;
        if (channels[hand].arrived == 0 && channels[hand].inside == 0)
            release(number = hand);
    }
    if (number == 0)
        return 0;
    channels[number].serial = channels[number].serial == 0 ? N_CHANNELS + number : channels[number].serial + N_CHANNELS;
    channels[number].word = word;
    __atomic_store_n(word, channels[number].serial, __ATOMIC_RELAXED);
    return number;
}

/*
 * Arrivals of this episode without a channel, at a barrier that has none; its word counts them, as multiples of
 * N_CHANNELS, which are no serial numbers of barriers. With the first arrival of the next episode it may get a channel:
 * in the middle of one, messages would end its waits too late or too early for good.
 */
static uint32_t missed_of(const uint32_t *word, uint32_t of) {
    uint32_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    return seen % N_CHANNELS == 0 && seen / N_CHANNELS < of ? seen / N_CHANNELS : 0;
}

static void miss(uint32_t *word, uint32_t missed, uint32_t of) {
    __atomic_store_n(word, missed + 1 < of ? (missed + 1) * N_CHANNELS : 0, __ATOMIC_RELAXED);
}

void ni_broadcast_forget(uint32_t *word) {
    if (memory == NULL || __atomic_load_n(word, __ATOMIC_RELAXED) == 0)
        return;
    sbt_lock_take(&lock);
    uint32_t number = channel_of(word);
    if (number != 0 && channels[number].inside == 0)
        release(number);
    else if (number != 0)
        channels[number].word = NULL; /* the last thread that goes releases it */
    sbt_lock_drop(&lock);
    __atomic_store_n(word, 0, __ATOMIC_RELAXED);
}

/* ---- barriers ---- */

static void count(struct port *port, uint64_t episode, uint64_t at_cycles) {
    struct count *c = &port->count[episode % EPISODES];
    if (c->n == 0 || c->episode != episode)
        *c = (struct count){.episode = episode};
    c->n++;
    c->at_cycles = at_cycles > c->at_cycles ? at_cycles : c->at_cycles;
}

/* The core retrieves a message that is available then, one after another. */
static void retrieve(struct port *port, uint64_t available_cycles, uint64_t episode) {
    uint64_t from = available_cycles > port->free_cycles ? available_cycles : port->free_cycles;
    port->free_cycles = from + config.check_cycles + INTERFACE_CYCLES;
    count(port, episode, port->free_cycles);
}

static void listen(uint32_t number, uint32_t tile) {
    *port_of(number, tile) = (struct port){.listens = true, .from = channels[number].n_sent};
    hw_optical_subscribe(&net, tile, number, net.last_sent_cycles);
}

/*
 * A core that has just begun to listen finds what was sent for this episode before, as if it had listened since that
 * began. The messages are taken to have come one after another, so only the time of the first is kept.
 */
static void retrieve_earlier(const struct channel *c, struct port *port) {
    uint64_t way = config.transport_cycles + config.controller_cycles, take = config.check_cycles + INTERFACE_CYCLES;
    uint64_t from = c->first_cycles + way > port->free_cycles ? c->first_cycles + way : port->free_cycles;
    port->free_cycles = from + c->arrived * take;
    for (uint32_t i = 0; i < c->arrived; i++)
        count(port, c->episode, port->free_cycles);
    n_found += c->arrived;
}

/* A core to which no thread has come for two episodes does not listen any longer. */
static void drop_unused(uint32_t number) {
    for (uint32_t i = 0; i < ni_machine.n_tiles; i++) {
        const struct port *port = port_of(number, i);
        if (port->listens && port->last_episode + 2 < channels[number].episode)
            stop_listening(number, i);
    }
}

static struct ni_arrival arrive(uint32_t tile, uint32_t *word, uint32_t of, uint64_t called_cycles) {
    uint32_t number = channel_of(word), missed = number == 0 ? missed_of(word, of) : 0;
    struct ni_arrival arrival = {0, of, 0, called_cycles, called_cycles + INTERFACE_CYCLES};
    if (number == 0 && missed == 0)
        number = give_channel(word);
    if (number == 0) {
        n_without_channel++;
        miss(word, missed, of);
        return arrival;
    }
    struct channel *c = &channels[number];
    struct port *port = port_of(number, tile);
    struct note note = {.number = c->n_sent, .episode = c->episode};
    bool begins = !port->listens;
    if (begins)
        listen(number, tile);
    if (!send(number, tile, &note, &arrival.sent_cycles))
        return arrival;
    arrival.serial = c->serial;
    arrival.episode = c->episode;
    port->last_episode = c->episode;
    if (port->free_cycles < arrival.sent_cycles) /* before that its core was busy, or not there */
        port->free_cycles = arrival.sent_cycles;
    count(port, c->episode, arrival.sent_cycles);
    if (begins && c->arrived > 0)
        retrieve_earlier(c, port);
    c->first_cycles = c->arrived == 0 ? arrival.sent_cycles : c->first_cycles;
    c->n_sent++;
    c->inside++;
    if (++c->arrived >= of) {
        c->arrived = 0;
        c->episode++;
        drop_unused(number);
    }
    return arrival;
}

struct ni_arrival ni_broadcast_arrive(uint32_t tile, uint32_t *word, uint32_t of, uint64_t called_cycles) {
    sbt_lock_take(&lock);
    struct ni_arrival arrival = arrive(tile, word, of, called_cycles);
    sbt_lock_drop(&lock);
    return arrival;
}

/* What the core has for the channel, early messages of the next episode too. Until it has all of this episode. */
static void retrieve_all(uint32_t number, uint32_t tile, const struct ni_arrival *arrival) {
    struct port *port = port_of(number, tile);
    const struct count *own = &port->count[arrival->episode % EPISODES];
    struct hw_optical_received received;
    while (own->n < arrival->of && hw_optical_receive(&net, tile, number, later_than_all(), &received)) {
        const struct note *note = &notes[received.slot];
        if (note->number >= port->from)
            retrieve(port, received.available_cycles, note->episode);
        else
            net.cores[tile].counts.n_received--;
    }
}

/* Alone with its messages: what the wait would have taken if no other thread had to be waited for. */
static void add_latency(const struct ni_arrival *arrival, uint64_t gone_cycles) {
    uint64_t all = gone_cycles - arrival->called_cycles;
    struct ni_cycles cycles = {.handover = INTERFACE_CYCLES};
    if (arrival->of > 1) {
        cycles.network = config.transport_cycles + config.controller_cycles;
        cycles.fsm = (uint64_t)(arrival->of - 1) * (config.check_cycles + INTERFACE_CYCLES);
    }
    uint64_t least = cycles.handover + cycles.network + cycles.fsm;
    if (all < least) /* messages that other threads of its core have retrieved */
        cycles.fsm = all > cycles.handover + cycles.network ? all - cycles.handover - cycles.network : 0;
    else
        cycles.waited = all - least;
    ni_stats_add_barrier(&cycles);
}

uint64_t ni_broadcast_leave(uint32_t tile, const struct ni_arrival *arrival) {
    if (arrival->serial == 0)
        return arrival->sent_cycles;
    uint32_t number = arrival->serial % N_CHANNELS;
    sbt_lock_take(&lock);
    struct channel *c = &channels[number];
    uint64_t gone = arrival->sent_cycles;
    if (c->serial == arrival->serial && c->inside > 0) { /* not in a child, where all channels are new */
        retrieve_all(number, tile, arrival);
        const struct count *own = &port_of(number, tile)->count[arrival->episode % EPISODES];
        if (own->episode == arrival->episode && own->at_cycles > gone)
            gone = own->at_cycles;
        if (--c->inside == 0 && c->word == NULL)
            release(number);
    }
    add_latency(arrival, gone);
    sbt_lock_drop(&lock);
    return gone;
}

/* ---- broadcasts ---- */

uint64_t ni_broadcast_request(uint32_t from, uint32_t to, uint64_t issued_cycles) {
    uint64_t at = issued_cycles + INTERFACE_CYCLES;
    struct hw_optical_received received = {0};
    struct note note = {0};
    sbt_lock_take(&lock);
    hw_optical_advance(&net, to, later_than_all()); /* what was sent before is not for it */
    hw_optical_subscribe(&net, to, REQUESTS, net.last_sent_cycles);
    if (send(REQUESTS, from, &note, &at))
        hw_optical_receive(&net, to, REQUESTS, later_than_all(), &received);
    hw_optical_unsubscribe(&net, to, REQUESTS, net.last_sent_cycles);
    sbt_lock_drop(&lock);
    return received.available_cycles > at ? received.available_cycles
                                          : at + config.transport_cycles + config.controller_cycles;
}

static struct told *told_of(uint32_t condition) {
    uint32_t tile = hw_id_ni(&ni_machine.layout, condition), index = hw_id_index(&ni_machine.layout, condition);
    bool is = tile < ni_machine.n_tiles && index < ni_machine.config.n_control;
    return is ? &told[(size_t)tile * ni_machine.config.n_control + index] : NULL;
}

void ni_broadcast_stepped(uint32_t condition, uint64_t issued_cycles, uint64_t stepped_cycles) {
    struct told *last = told != NULL ? told_of(condition) : NULL;
    uint64_t there = issued_cycles + INTERFACE_CYCLES + config.transport_cycles + config.controller_cycles;
    if (last != NULL)
        *last = (struct told){stepped_cycles, there + config.check_cycles + INTERFACE_CYCLES};
}

void ni_broadcast_waits(uint32_t thread, uint32_t condition, uint64_t began_cycles) {
    if (waits != NULL && thread < NI_MAX_THREADS)
        waits[thread] = (struct wait){began_cycles, condition};
}

uint32_t ni_broadcast_resume(uint32_t thread, uint64_t granted_cycles, uint32_t resume_cycles) {
    if (waits == NULL || thread >= NI_MAX_THREADS || waits[thread].condition == 0)
        return resume_cycles;
    const struct told *last = told_of(waits[thread].condition);
    if (last == NULL || last->known_cycles == 0 || last->stepped_cycles < waits[thread].began_cycles)
        return resume_cycles;
    uint64_t left = last->known_cycles > granted_cycles ? last->known_cycles - granted_cycles : 0;
    return left < resume_cycles ? (uint32_t)left : resume_cycles;
}

/* ---- at the end ---- */

void ni_broadcast_take(void) {
    sbt_lock_take(&lock);
}

void ni_broadcast_drop(void) {
    sbt_lock_drop(&lock);
}

struct ni_broadcast_counts ni_broadcast_sum(bool taken) {
    struct ni_broadcast_counts counts = {0};
    if (memory == NULL)
        return counts;
    for (uint32_t i = 0; taken && i < config.n_cores; i++)
        hw_optical_advance(&net, i, later_than_all());
    struct hw_optical_counts sum = hw_optical_sum(&net);
    return (struct ni_broadcast_counts){.n_messages = sum.n_sent,
                                        .n_retrieved = sum.n_received + n_found,
                                        .n_transferred = sum.n_transferred,
                                        .delay_cycles = sum.delay_cycles,
                                        .max_lambda = sum.max_lambda,
                                        .max_buffer = sum.max_buffer,
                                        .n_without_channel = n_without_channel};
}
