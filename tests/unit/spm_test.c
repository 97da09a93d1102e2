/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The scratchpad: sizes, the bits of Figs. 6 and 7 where they belong, accesses counted, and a checker that can fail. */
#include "hw_check.h"

#include "queue.h"

#include <string.h>

TEST(sizes) {
    ck_assert_uint_eq(hw_spm_n_bytes(HW_DEFAULT_CONTROL, HW_DEFAULT_QUEUE), 1024);
    ck_assert_uint_eq(hw_spm_min_bytes(64), 516);
    uint8_t bytes[1024];
    struct hw_spm spm;
    ck_assert(hw_spm_init(&spm, bytes, 1, 63, 0, 64));
    ck_assert(hw_spm_init(&spm, bytes, 1, 0, 0, 1));
    ck_assert(hw_spm_is_valid(&spm, NULL));
    ck_assert(!hw_spm_init(&spm, bytes, 0, 122, 0, 64));
    ck_assert(!hw_spm_init(&spm, bytes, HW_MAX_CONTROL + 1, 1, 0, 64));
    ck_assert(!hw_spm_init(&spm, bytes, 4, 122, 64, 64));
    ck_assert(!hw_spm_init(&spm, bytes, 4, 122, 0, 0));
    ck_assert(!hw_spm_init(&spm, bytes, 4, 122, 0, HW_MAX_TILES + 1));
    ck_assert(!hw_spm_init(&spm, bytes, 4, HW_MAX_SPM_BYTES / HW_QUEUE_BYTES, 0, 64));
    ck_assert_uint_eq(spm.n_control, 1); /* a refused call changes nothing */
}

/* Every split of some size is a valid scratchpad: its last element can be reached. */
TEST(splits) {
    static uint8_t bytes[HW_MAX_SPM_BYTES];
    const uint32_t controls[] = {1, 2, 3, 5, 16, 64, 255, 256}, queues[] = {0, 1, 2, 63, 122, 1023, 16000};
    for (size_t c = 0; c < sizeof controls / sizeof *controls; c++)
        for (size_t q = 0; q < sizeof queues / sizeof *queues; q++)
            for (uint32_t tiles = 1; tiles <= HW_MAX_TILES; tiles *= 4) {
                struct hw_spm spm;
                const char *why = "";
                ck_assert(hw_spm_init(&spm, bytes, controls[c], queues[q], tiles - 1, tiles));
                ck_assert_msg(hw_spm_is_valid(&spm, &why), "%s", why);
                ck_assert_uint_eq(spm.n_free, queues[q]);
                uint32_t last = hw_spm_tag(&spm, controls[c] - 1);
                ck_assert_uint_eq(hw_id_index(&spm.layout, last), controls[c] - 1);
                ck_assert_uint_eq(hw_id_ni(&spm.layout, last), tiles - 1);
            }
}

/* Bits of the figures, written out by hand. The figures number from the left: their bit 0 is a program's bit 31. */
TEST(bits_of_the_figures) {
    struct hw_config config = hw_config_default();
    struct bench_ni b;
    bench_open(&b, &config, 0x25);
    uint32_t mutex = bench_alloc(&b, HW_OP_ALLOC_MUTEX, 0);
    uint32_t condition = bench_alloc(&b, HW_OP_ALLOC_CONDITION, mutex);
    uint32_t barrier = bench_alloc(&b, HW_OP_ALLOC_BARRIER, 0x55);
    ck_assert_uint_eq(mutex, 0xa5400010);     /* F, NI 0x25, mutex, first generation, index 0 */
    ck_assert_uint_eq(condition, 0xa5800011); /* bound to 0, index 1 */
    ck_assert_uint_eq(barrier, 0xa5c00012);
    bench_do(&b, HW_OP_LOCK, mutex, 0x3f, 0x1234);
    bench_do(&b, HW_OP_LOCK, mutex, 0x07, 0xabcd);
    bench_do(&b, HW_OP_LOCK, mutex, 0x08, 0x0102);
    bench_do(&b, HW_OP_BARRIER_WAIT, barrier, 0x09, 0x0304);
    const uint8_t control[36] = {
        0xa5, 0x40, 0x00, 0x10, 0x00, 0x0c, 0x00, 0x0e, 0x34, 0x3f, 0x00, 0x01, /* queue 12..14; owner 34 on 3f */
        0xa5, 0x80, 0x00, 0x11, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* */
        0xa5, 0xc0, 0x00, 0x12, 0x00, 0x10, 0x00, 0x10, 0x00, 0x01, 0x00, 0x55, /* one of 0x55 has arrived */
    };
    const uint8_t queue[32] = {
        0x80, 0x00, 0x00, 0x0e, 0xab, 0xcd, 0x00, 0x07, /* F, prev nil, next 14 */
        0x80, 0x0c, 0x00, 0x00, 0x01, 0x02, 0x00, 0x08, /* F, prev 12, next nil */
        0x80, 0x00, 0x00, 0x00, 0x03, 0x04, 0x00, 0x09, /* */
        0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x00, /* head of the free list */
    };
    ck_assert_mem_eq(b.bytes, control, sizeof control);
    ck_assert_mem_eq(b.bytes + 48, queue, sizeof queue);
    bench_close(&b);
}

/* An ID survives taking apart and putting together in the paper's and in the wide layout, for every split. */
TEST(ids) {
    for (uint32_t tiles = 1; tiles <= HW_MAX_TILES; tiles += tiles < 130 ? 43 : 149)
        for (uint32_t n_control = 1; n_control <= HW_MAX_CONTROL; n_control += 17) {
            struct hw_layout layout;
            ck_assert(hw_layout_init(&layout, tiles, n_control));
            ck_assert_uint_ge(layout.generation_bits, 3);
            uint32_t g = (1u << layout.generation_bits) - 1;
            uint32_t id = hw_id_make(&layout, tiles - 1, HW_KIND_CONDITION, g, n_control / 2, n_control - 1);
            ck_assert(!(id & HW_ID_IN_USE));
            ck_assert_uint_eq(hw_id_ni(&layout, id), tiles - 1);
            ck_assert_int_eq(hw_id_kind(&layout, id), HW_KIND_CONDITION);
            ck_assert_uint_eq(hw_id_generation(&layout, id), g);
            ck_assert_uint_eq(hw_id_bound(&layout, id), n_control / 2);
            ck_assert_uint_eq(hw_id_index(&layout, id), n_control - 1);
            uint32_t other = hw_id_make(&layout, tiles - 1, HW_KIND_MUTEX, 0, 0, n_control / 2);
            ck_assert(hw_id_is_bound_to(&layout, id, other));
            ck_assert(!hw_id_is_bound_to(&layout, id, other ^ 1) || n_control == 1);
        }
    struct hw_layout layout;
    ck_assert(hw_layout_init(&layout, 64, 4));
    ck_assert_uint_eq(layout.generation_bits, 18);
}

TEST(accesses_are_counted) {
    uint8_t bytes[1024];
    struct hw_spm spm;
    ck_assert(hw_spm_init(&spm, bytes, 4, 122, 0, 64));
    ck_assert_uint_eq(hw_spm_n_accesses(&spm), 0);
    hw_spm_write(&spm, 3, 0x12345678);
    ck_assert_uint_eq(hw_spm_read(&spm, 3), 0x12345678);
    ck_assert_uint_eq(bytes[12], 0x12);
    ck_assert_uint_eq(bytes[15], 0x78);
    hw_spm_peek(&spm, 3);
    ck_assert_uint_eq(spm.n_reads, 1);
    ck_assert_uint_eq(spm.n_writes, 1);
}

static uint32_t n_accesses_of_put(struct hw_spm *spm, uint32_t index, uint32_t waiter) {
    uint64_t before = hw_spm_n_accesses(spm);
    hw_queue_put(spm, index, waiter);
    return (uint32_t)(hw_spm_n_accesses(spm) - before);
}

/* Put: 5, 7, 8 and 10 accesses, by whether the queue was empty and whether it took the last free element. */
TEST(accesses_of_the_queue) {
    uint8_t bytes[2 * HW_CONTROL_BYTES + 3 * HW_QUEUE_BYTES];
    struct hw_spm spm;
    ck_assert(hw_spm_init(&spm, bytes, 2, 3, 0, 64));
    ck_assert_uint_eq(n_accesses_of_put(&spm, 0, 1), 7);
    ck_assert_uint_eq(n_accesses_of_put(&spm, 0, 2), 10);
    ck_assert_uint_eq(n_accesses_of_put(&spm, 1, 3), 5);
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t before = hw_spm_n_accesses(&spm);
        struct hw_first first = hw_queue_first(&spm, 0);
        hw_queue_first_waiter(&spm, &first);
        hw_queue_drop_first(&spm, 0, &first);
        ck_assert_uint_eq(first.waiter, i + 1);
        ck_assert_uint_eq(hw_spm_n_accesses(&spm) - before, 9); /* onto an empty free list, and the last waiter */
    }
    ck_assert_uint_eq(n_accesses_of_put(&spm, 1, 4), 10);
    ck_assert_uint_eq(n_accesses_of_put(&spm, 1, 5), 8);
    ck_assert_uint_eq(spm.n_free, 0);
    ck_assert_uint_eq(hw_spm_n_waiting(&spm, 1), 3);
}

/* Take a waiter out of every place in queues of every length; the others stay in order. */
TEST(remove_anywhere) {
    enum { MAX = 6 };
    for (uint32_t n = 1; n <= MAX; n++)
        for (uint32_t out = 0; out < n; out++) {
            uint8_t bytes[HW_CONTROL_BYTES + MAX * HW_QUEUE_BYTES];
            struct hw_spm spm;
            ck_assert(hw_spm_init(&spm, bytes, 1, n, 0, 64));
            for (uint32_t i = 0; i < n; i++)
                hw_queue_put(&spm, 0, i);
            uint64_t before = hw_spm_n_accesses(&spm);
            ck_assert(!hw_queue_remove(&spm, 0, n));
            ck_assert_uint_eq(hw_spm_n_accesses(&spm) - before, 1 + 2 * n);
            before = hw_spm_n_accesses(&spm);
            ck_assert(hw_queue_remove(&spm, 0, out));
            uint32_t n_neighbours = (out > 0) + (out + 1 < n);
            ck_assert_uint_eq(hw_spm_n_accesses(&spm) - before,
                              1 + 2 * (out + 1) + 2 * n_neighbours + (n_neighbours < 2) + 3);
            for (uint32_t i = 0; i < n; i++)
                if (i != out) {
                    struct hw_first first = hw_queue_first(&spm, 0);
                    hw_queue_first_waiter(&spm, &first);
                    ck_assert_uint_eq(first.waiter, i);
                    hw_queue_drop_first(&spm, 0, &first);
                }
            ck_assert_uint_eq(spm.n_free, n);
            ck_assert_uint_eq(hw_spm_peek(&spm, 1), 0);
        }
}

/*
 * The checker must notice damage: of a scratchpad in the middle of its work every bit that means something is turned
 * over, one at a time. Bits without a meaning are those of free elements' thread words, of waiters' threads and cores
 * (another waiter is still a waiter), of generations, of a free control element's last state, of the owner, and of the
 * mutex that a condition is bound to (it may be gone).
 */
TEST(checker_sees_damage) {
    struct hw_config config = hw_config_default();
    config.n_queue = 12;
    struct bench_ni b;
    bench_open(&b, &config, 3);
    uint32_t mutex = bench_alloc(&b, HW_OP_ALLOC_MUTEX, 0);
    uint32_t condition = bench_alloc(&b, HW_OP_ALLOC_CONDITION, mutex);
    uint32_t barrier = bench_alloc(&b, HW_OP_ALLOC_BARRIER, 4);
    for (uint32_t i = 0; i < 3; i++)
        bench_do(&b, HW_OP_LOCK, mutex, i, i);
    bench_do(&b, HW_OP_COND_WAIT, condition, 0, 0);
    bench_do(&b, HW_OP_BARRIER_WAIT, barrier, 5, 5);
    uint32_t n_damaged = 0;
    for (uint32_t bit = 0; bit < hw_config_spm_bytes(&config) * 8; bit++) {
        uint32_t word = bit / 32, in_word = 31 - bit % 32, first = hw_control_word(config.n_control, 0);
        bool control = word < first;
        uint32_t field = control ? word % 3 : (word - first) % 2;
        bool generation = control && field == 0 && in_word >= 4 && in_word < 22;
        bool is_bound = word == hw_control_word(1, 0) && in_word >= 2 && in_word < 4;
        bool is_owner = word == hw_control_word(0, 2) && in_word >= 16;
        bool free_state = word == hw_control_word(3, 2);
        if ((!control && field == 1) || generation || is_bound || is_owner || free_state)
            continue;
        b.bytes[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
        ck_assert_msg(!hw_spm_is_valid(&b.ni.spm, NULL), "word %u bit %u", word, in_word);
        b.bytes[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
        n_damaged++;
    }
    ck_assert(hw_spm_is_valid(&b.ni.spm, NULL));
    ck_assert_uint_gt(n_damaged, 600);
    struct hw_spm spm = b.ni.spm;
    spm.free_head = HW_NIL;
    ck_assert(!hw_spm_is_valid(&spm, NULL));
    spm = b.ni.spm;
    spm.n_free++;
    ck_assert(!hw_spm_is_valid(&spm, NULL));
    spm = b.ni.spm;
    spm.n_reserved--;
    ck_assert(!hw_spm_is_valid(&spm, NULL));
    bench_close(&b);
}

/* What the search for room names, in its order, other than `but`. */
static void ck_idle(const struct bench_ni *b, uint32_t but, const uint32_t *expected, size_t n) {
    uint32_t hand = 0;
    for (size_t i = 0; i < 2 * n; i++) /* goes round */
        ck_assert_uint_eq(hw_spm_next_idle(&b->ni.spm, &hand, but), expected[i % n]);
    if (n == 0)
        ck_assert_uint_eq(hw_spm_next_idle(&b->ni.spm, &hand, but), 0);
}

/* The driver's search for room names exactly what EVICT takes. */
TEST(next_idle) {
    struct hw_config config = hw_config_default();
    struct bench_ni b;
    bench_open(&b, &config, 0);
    ck_assert_uint_eq(config.n_control, 4);
    ck_idle(&b, 0, NULL, 0);
    uint32_t mutex = bench_alloc(&b, HW_OP_ALLOC_MUTEX, 0), id = bench_alloc(&b, HW_OP_ALLOC_CONDITION, mutex);
    uint32_t barrier = bench_alloc(&b, HW_OP_ALLOC_BARRIER, 2), other = bench_alloc(&b, HW_OP_ALLOC_MUTEX, 0);
    ck_idle(&b, 0, (const uint32_t[]){id, barrier, other}, 3); /* a condition is bound to the first */
    ck_idle(&b, barrier, (const uint32_t[]){id, other}, 2);
    bench_do(&b, HW_OP_LOCK, mutex, 3, 3);
    bench_do(&b, HW_OP_COND_WAIT, id, 3, 3);
    ck_idle(&b, 0, (const uint32_t[]){barrier, other}, 2);
    bench_do(&b, HW_OP_BARRIER_WAIT, barrier, 4, 4);
    bench_do(&b, HW_OP_LOCK, other, 5, 5);
    ck_idle(&b, 0, NULL, 0);
    bench_do(&b, HW_OP_SIGNAL, id, 6, 6); /* 3 gets the mutex again */
    ck_idle(&b, 0, (const uint32_t[]){id}, 1);
    bench_do(&b, HW_OP_EVICT, id, 6, 6);
    ck_answer(&b, 0, HW_OP_EVICTED, id, 6, 6);
    ck_idle(&b, 0, NULL, 0);
    bench_do(&b, HW_OP_UNLOCK, mutex, 3, 3);
    ck_idle(&b, 0, (const uint32_t[]){mutex}, 1);
    ck_idle(&b, mutex, NULL, 0);
    bench_close(&b);
}
