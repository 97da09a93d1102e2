/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Packets: the header's bits, both ways, and what is recognised as malformed. */
#include <stdbool.h>

#include "lib/suite.h"
#include "packet.h"

static const uint32_t n_tiles_of[] = {1, 2, 64, 128, 129, 256, 1024};

TEST(bits_of_the_header) {
    struct hw_layout layout;
    ck_assert(hw_layout_init(&layout, 64, 4));
    struct hw_message m = {.destination = 0x3a,
                           .source = 0x15,
                           .op = HW_OP_COND_WAIT,
                           .argument = 0x41,
                           .primitive = 0xdeadbeef,
                           .thread = 0x1234,
                           .core = 0x15};
    struct hw_packet p = hw_packet_encode(&layout, &m);
    ck_assert_uint_eq(p.flit[0], 0x3a150000 | 8 << 7 | 0x41);
    ck_assert_uint_eq(p.flit[1], 0xdeadbeef);
    ck_assert_uint_eq(p.flit[2], 0x12340015);
    ck_assert(hw_layout_init(&layout, 1024, 4));
    m.destination = 0x3ff;
    m.source = 0x200;
    p = hw_packet_encode(&layout, &m);
    ck_assert_uint_eq(p.flit[0], 0xffe00000 | 8 << 7 | 0x41);
}

TEST(both_ways) {
    for (size_t i = 0; i < sizeof n_tiles_of / sizeof *n_tiles_of; i++) {
        struct hw_layout layout;
        ck_assert(hw_layout_init(&layout, n_tiles_of[i], 4));
        for (uint32_t destination = 0; destination < n_tiles_of[i]; destination += 1 + n_tiles_of[i] / 9)
            for (uint32_t source = 0; source < n_tiles_of[i]; source += 1 + n_tiles_of[i] / 7)
                for (uint32_t op = 0; op < 32; op++) {
                    struct hw_message m = {.destination = destination,
                                           .source = source,
                                           .op = (enum hw_op)op,
                                           .argument = (destination ^ source ^ op) & 0x7f,
                                           .primitive = destination * 0x9e3779b9u,
                                           .thread = (uint16_t)(op * 977),
                                           .core = (uint16_t)source};
                    struct hw_packet p = hw_packet_encode(&layout, &m);
                    struct hw_message back = hw_packet_decode(&layout, &p);
                    ck_assert_uint_eq(back.destination, m.destination);
                    ck_assert_uint_eq(back.source, m.source);
                    ck_assert_int_eq(back.op, m.op);
                    ck_assert_uint_eq(back.argument, m.argument);
                    ck_assert_uint_eq(back.primitive, m.primitive);
                    ck_assert_uint_eq(back.thread, m.thread);
                    ck_assert_uint_eq(back.core, m.core);
                }
    }
}

/* GRANT and RELEASE: argument 1 is for one that was queued, and for the last to arrive. Nothing else does. */
TEST(ends_of_waits) {
    struct hw_layout layout;
    unsigned n_grants = 0, n_releases = 0, n_others = 0;
    ck_assert(hw_layout_init(&layout, 64, 4));
    for (uint32_t op = 0; op < 32; op++)
        for (uint32_t argument = 0; argument < 128; argument++) {
            struct hw_message m = {.destination = 7, .op = (enum hw_op)op, .argument = argument, .primitive = 4711};
            struct hw_packet p = hw_packet_encode(&layout, &m);
            bool ends = hw_packet_ends_wait(&p);
            n_grants += ends && op == HW_OP_GRANT && argument == 1;
            n_releases += ends && op == HW_OP_RELEASE && argument == 0;
            n_others += ends;
        }
    ck_assert_uint_eq(n_grants, 1);
    ck_assert_uint_eq(n_releases, 1);
    ck_assert_uint_eq(n_others, 2);
}

TEST(malformed) {
    for (size_t i = 0; i < sizeof n_tiles_of / sizeof *n_tiles_of; i++) {
        struct hw_layout layout;
        ck_assert(hw_layout_init(&layout, n_tiles_of[i], 4));
        uint32_t ni = n_tiles_of[i] - 1, bits = layout.tile_bits;
        uint32_t id = HW_ID_IN_USE | hw_id_make(&layout, ni, HW_KIND_MUTEX, 1, 0, 0);
        const struct hw_packet good = hw_packet_request(&layout, HW_OP_LOCK, id, ni, 77);
        ck_assert(hw_packet_is_request(&layout, &good, ni));
        /* Every single bit of the header that is turned over is noticed, but for those that make another request. */
        for (uint32_t bit = 0; bit < 32; bit++) {
            struct hw_packet p = good;
            p.flit[0] ^= UINT32_C(1) << bit;
            uint32_t op = p.flit[0] >> 7 & 31;
            bool other_request = bit >= 7 && bit < 12 && op >= HW_OP_DEALLOC && op < HW_N_REQUESTS;
            ck_assert_int_eq(hw_packet_is_request(&layout, &p, ni), other_request);
        }
        struct hw_packet p = good;
        p.flit[2] ^= 1; /* an answer for another thread */
        ck_assert(!hw_packet_is_request(&layout, &p, ni));
        p = good;
        p.flit[1] ^= UINT32_C(1) << layout.self_bits; /* another NI's primitive */
        ck_assert(!hw_packet_is_request(&layout, &p, ni));
        if (n_tiles_of[i] < 1u << bits) {
            p = good;
            p.flit[0] |= ((1u << bits) - 1) << (32 - 2 * bits); /* a core that does not exist */
            p.flit[2] |= (1u << bits) - 1;
            ck_assert(!hw_packet_is_request(&layout, &p, ni));
        }
        for (uint32_t op = HW_N_REQUESTS; op < 32; op++) {
            p = hw_packet_request(&layout, (enum hw_op)op, id, ni, 77);
            ck_assert(!hw_packet_is_request(&layout, &p, ni));
        }
        p = hw_packet_alloc(&layout, HW_OP_ALLOC_MUTEX, ni, 1, ni, 0);
        ck_assert(!hw_packet_is_request(&layout, &p, ni));
        p = hw_packet_alloc(&layout, HW_OP_ALLOC_BARRIER, ni, 0, ni, 0);
        ck_assert(!hw_packet_is_request(&layout, &p, ni));
        p = hw_packet_alloc(&layout, HW_OP_ALLOC_BARRIER, ni, 65536, ni, 0);
        ck_assert(!hw_packet_is_request(&layout, &p, ni));
        p = hw_packet_alloc(&layout, HW_OP_ALLOC_BARRIER, ni, 65535, ni, 0);
        ck_assert(hw_packet_is_request(&layout, &p, ni));
    }
}

TEST(nack_says_what_and_why) {
    for (uint32_t op = 0; op < HW_N_REQUESTS; op++)
        for (uint32_t reason = 0; reason <= HW_REASON_UNBOUND; reason++) {
            uint32_t argument = hw_nack_argument((enum hw_op)op, (enum hw_reason)reason);
            ck_assert_uint_lt(argument, 128);
            ck_assert_int_eq(hw_nack_op(argument), op);
            ck_assert_int_eq(hw_nack_reason(argument), reason);
        }
}
