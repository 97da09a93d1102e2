/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "steal_machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "code_sched.h"
#include "machine.h"
#include "pile.h"

enum { MOST_DATA = 44, MOST_QUEUED = 4, MOST_WORDS = 80 };

struct message {
    uint32_t signature, tag, size, from;
    unsigned char data[MOST_DATA];
    uint32_t unused; /* a line in all */
};

/* What is behind the last message is 0, so that equal queues are equal bytes. */
struct queue {
    struct message message[MOST_QUEUED];
    uint32_t n, unused;
};

static struct queue *way;    /* [from * n_threads + to] */
static struct queue *buffer; /* [core] */
static struct network {
    struct hw_filter filter[STEAL_MOST_THREADS];
    uint32_t n_timeouts[STEAL_MOST_THREADS];
} * net;
static uint64_t *words;
static uint32_t n_words, n_threads, most_timeouts, in_setup_for;
static bool instant;

/* In the place of malloc and free in the walked sources. */
void *steal_malloc(size_t bytes);
void steal_free(void *memory);

void *steal_malloc(size_t bytes) {
    return code_alloc(bytes);
}

void steal_free(void *memory) {
    (void)memory;
}

/* Every draw, in the place of a random one (linked in for pile_random). */
uint32_t __wrap_pile_random(DWorkPile *pile, uint32_t n);
uint32_t __wrap_pile_random(DWorkPile *pile, uint32_t n) {
    (void)pile;
    return code_choose(n);
}

void steal_machine_be(uint32_t thread) {
    in_setup_for = thread;
}

static uint32_t self(void) {
    return code_self() >= 0 ? (uint32_t)code_self() : in_setup_for;
}

static uint64_t cycles(void) {
    return 1;
}

static void compute(uint64_t n) {
    (void)n;
}

static void fail(const char *text) {
    static char why[160];
    snprintf(why, sizeof why, "%s", text);
    code_wrong(why);
}

/* ---- messages ---- */

static void append(struct queue *queue, const struct message *m) {
    if (queue->n == MOST_QUEUED) {
        printf("Bail out! more than %d messages under way\n", MOST_QUEUED);
        exit(1);
    }
    struct message before = queue->message[queue->n];
    queue->message[queue->n++] = *m;
    code_changed(&queue->message[queue->n - 1], &before, sizeof before);
}

static struct message take_first(struct queue *queue) {
    struct message first = queue->message[0];
    memmove(queue->message, queue->message + 1, (MOST_QUEUED - 1) * sizeof first);
    memset(&queue->message[MOST_QUEUED - 1], 0, sizeof first);
    queue->n--;
    return first;
}

static void arrive(uint32_t to, const struct message *m) {
    if (hw_filter_passes(&net->filter[to], m->signature))
        append(&buffer[to], m);
}

static uint32_t n_channels(void) {
    return 1;
}

static uint32_t channel(void) {
    return 0;
}

static void subscribe(uint32_t number) {
    (void)number; /* in setup, before the first message */
}

static void set_filter(struct hw_filter filter) {
    code_point(&net->filter[self()], CODE_WRITE);
    net->filter[self()] = filter;
}

static void send(uint32_t number, uint32_t signature, uint32_t tag, const void *data, uint32_t size) {
    struct message m = {.signature = signature, .tag = tag, .size = size, .from = self()};
    (void)number;
    if (size > MOST_DATA) {
        printf("Bail out! a message of %u bytes\n", size);
        exit(1);
    }
    memcpy(m.data, data, size);
    code_point(net, CODE_WRITE);
    for (uint32_t to = 0; to < n_threads; to++)
        if (to != m.from && instant)
            arrive(to, &m);
        else if (to != m.from)
            append(&way[m.from * n_threads + to], &m);
}

static bool receive(uint32_t number, uint64_t deadline, struct atac_received *received) {
    struct queue *own = &buffer[self()];
    (void)number;
    for (;;) {
        code_point(own, CODE_READ);
        if (own->n != 0)
            break;
        if (deadline == 0)
            return false;
        if (deadline != UINT64_MAX && net->n_timeouts[self()] < most_timeouts && code_choose(2) != 0) {
            net->n_timeouts[self()]++;
            return false;
        }
        code_relax();
    }
    struct message m = take_first(own);
    received->head = (struct hw_optical_message){
        .size = m.size, .tag = m.tag, .channel = 0, .signature = m.signature, .wavelength = m.from};
    memcpy(&received->payload, m.data, sizeof received->payload);
    if (received->room != 0)
        memcpy(received->data, m.data, m.size < received->room ? m.size : received->room);
    return true;
}

_Noreturn void steal_network(void) {
    for (;;) {
        uint32_t n = 0, waiting[STEAL_MOST_THREADS * STEAL_MOST_THREADS];
        code_point(net, CODE_READ);
        for (uint32_t i = 0; i < n_threads * n_threads; i++)
            if (way[i].n != 0)
                waiting[n++] = i;
        if (n == 0) {
            code_relax();
            continue;
        }
        uint32_t which = waiting[code_choose(n)];
        struct message m = take_first(&way[which]);
        arrive(which % n_threads, &m);
    }
}

/* ---- shared words ---- */

static uint32_t words_left(void) {
    return MOST_WORDS - n_words;
}

static uint32_t new_words(uint32_t n) {
    uint32_t first = n_words;
    n_words += (n + ATAC_WORDS_OF_LINE - 1) / ATAC_WORDS_OF_LINE * ATAC_WORDS_OF_LINE;
    if (n_words > MOST_WORDS) {
        printf("Bail out! more than %d words\n", MOST_WORDS);
        exit(1);
    }
    return first;
}

static uint64_t load(uint32_t word) {
    code_point(&words[word], CODE_READ);
    return words[word];
}

static uint64_t set(uint32_t word, uint64_t value) {
    uint64_t before = words[word];
    words[word] = value;
    code_changed(&words[word], &before, sizeof before);
    return before;
}

static uint64_t swap(uint32_t word, uint64_t value) {
    code_point(&words[word], CODE_WRITE);
    return set(word, value);
}

static void store(uint32_t word, uint64_t value) {
    swap(word, value);
}

static uint64_t fetch_add(uint32_t word, uint64_t n) {
    code_point(&words[word], CODE_WRITE);
    return set(word, words[word] + n);
}

static uint64_t compare_and_swap(uint32_t word, uint64_t expected, uint64_t value) {
    code_point(&words[word], CODE_WRITE);
    return words[word] == expected ? set(word, value) : words[word];
}

static uint64_t spin_while(uint32_t word, uint64_t old) {
    uint64_t value;
    while ((value = load(word)) == old)
        code_relax();
    return value;
}

/* The words of mutexes, which alone have futexes, are small numbers: the first half is all. */
static const uint32_t *half(uint32_t word) {
    return (const uint32_t *)(const void *)&words[word];
}

static void futex_wait(uint32_t word, uint64_t expected) {
    code_wait(half(word), (uint32_t)expected);
}

static void futex_wake(uint32_t word, uint32_t n) {
    code_wake(half(word), n);
}

static const struct atac_machine machine = {.self = self,
                                            .cycles = cycles,
                                            .compute = compute,
                                            .fail = fail,
                                            .n_channels = n_channels,
                                            .channel = channel,
                                            .subscribe = subscribe,
                                            .set_filter = set_filter,
                                            .send = send,
                                            .receive = receive,
                                            .n_words = words_left,
                                            .words = new_words,
                                            .load = load,
                                            .store = store,
                                            .fetch_add = fetch_add,
                                            .swap = swap,
                                            .compare_and_swap = compare_and_swap,
                                            .spin_while = spin_while,
                                            .futex_wait = futex_wait,
                                            .futex_wake = futex_wake};

void steal_machine_init(uint32_t threads, uint32_t timeouts, bool is_instant) {
    n_threads = threads;
    most_timeouts = timeouts;
    instant = is_instant;
    n_words = 0;
    net = code_alloc(sizeof *net);
    buffer = code_alloc(threads * sizeof *buffer);
    way = is_instant ? NULL : code_alloc(threads * threads * sizeof *way);
    words = code_alloc(MOST_WORDS * sizeof *words);
    for (uint32_t i = 0; i < threads; i++)
        net->filter[i] = hw_filter_open();
    atac_machine = &machine;
}
