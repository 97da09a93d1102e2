/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The sizes of frames (os/cfa.h): by tables made here, by damaged ones, and by this program's own beside libgcc's word.
 */
#include <string.h>
#include <unwind.h>

#include "lib/suite.h"
#include "os/cfa.h"

enum { RSP = 7, RBP = 6, FUNCTION = 0x1000, ROOM = 256 };

static uint8_t bytes[ROOM];
static size_t n, entry; /* of the FDE */

static void put(unsigned byte) {
    bytes[n++] = (uint8_t)byte;
}

static void put_word(uint32_t word) {
    memcpy(bytes + n, &word, sizeof word);
    n += sizeof word;
}

/* The length of what begins there: all up to here. */
static void end_at(size_t begin) {
    const uint32_t length = (uint32_t)(n - begin - sizeof length);
    memcpy(bytes + begin, &length, sizeof length);
}

/* A CIE as gcc writes it, CFA = rsp + 8, and the beginning of an FDE. */
static void begin(const char *augmentation) {
    n = 0;
    put_word(0);
    put_word(0);
    put(1);
    for (const char *c = augmentation; *c != '\0'; c++)
        put((unsigned char)*c);
    put(0);
    put(1);    /* code alignment */
    put(0x78); /* data alignment: -8 */
    put(16);   /* the return address's column */
    put(1);
    put(0x1b); /* pointers: 4 bytes, relative */
    put(0x0c); /* def_cfa */
    put(RSP);
    put(8);
    put(0x90); /* offset of column 16 */
    put(1);
    end_at(0);
    entry = n;
    put_word(0);
    put_word((uint32_t)n);
    put_word(0);
    put_word(0x100);
    put(0);
}

/* The frame at that return address; 0: not known. */
static uint32_t at(uintptr_t address) {
    uint32_t size = 0;
    end_at(entry);
    return sbt_cfa_in(&(struct sbt_fde){bytes + entry, FUNCTION}, address, &size) ? size : 0;
}

TEST(cfa__is_that_of_the_row_before_the_return_address) {
    begin("zR");
    put(0x41); /* a byte on */
    put(0x0e);
    put(16);
    put(0x02); /* 200 bytes on */
    put(200);
    put(0x0e);
    put(0x90); /* 400 */
    put(3);
    ck_assert_uint_eq(at(FUNCTION + 1), 8); /* the call ends where the next row begins */
    ck_assert_uint_eq(at(FUNCTION + 2), 16);
    ck_assert_uint_eq(at(FUNCTION + 201), 16);
    ck_assert_uint_eq(at(FUNCTION + 202), 400);
}

TEST(cfa__of_a_frame_pointer_or_an_expression_is_not_fixed) {
    begin("zR");
    put(0x41);
    put(0x0d); /* def_cfa_register */
    put(RBP);
    put(0x41);
    put(0x0c);
    put(RSP);
    put(32);
    put(0x41);
    put(0x0f);
    put(2);
    put(0x77);
    put(0x08);
    put(0x41);
    put(0x0c);
    put(RSP);
    put(8);
    ck_assert_uint_eq(at(FUNCTION + 1), 8);
    ck_assert_uint_eq(at(FUNCTION + 2), 0);
    ck_assert_uint_eq(at(FUNCTION + 3), 32);
    ck_assert_uint_eq(at(FUNCTION + 4), 0);
    ck_assert_uint_eq(at(FUNCTION + 5), 8);
}

TEST(cfa__remembered_rows_come_back) {
    begin("zR");
    put(0x0e);
    put(24);
    put(0x0a);
    put(0x41);
    put(0x0e);
    put(8);
    put(0x41);
    put(0x0b);
    ck_assert_uint_eq(at(FUNCTION + 1), 24);
    ck_assert_uint_eq(at(FUNCTION + 2), 8);
    ck_assert_uint_eq(at(FUNCTION + 3), 24);
}

TEST(cfa__instructions_for_other_registers_are_passed_over) {
    static const uint8_t others[] = {0x00, 0x83, 0x02, 0xc3, 0x05, 0x03, 0x81, 0x02, 0x06, 0x03,
                                     0x07, 0x03, 0x08, 0x03, 0x09, 0x03, 0x05, 0x10, 0x03, 0x02,
                                     0x77, 0x08, 0x16, 0x03, 0x01, 0x77, 0x2e, 0x10};
    begin("zR");
    memcpy(bytes + n, others, sizeof others);
    n += sizeof others;
    put(0x0e);
    put(48);
    ck_assert_uint_eq(at(FUNCTION + 9), 48);
}

TEST(cfa__what_is_not_known_is_refused) {
    static const unsigned unknown[] = {0x01, 0x11, 0x12, 0x17, 0x3f};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        begin("zR");
        put(unknown[i]);
        ck_assert_uint_eq(at(FUNCTION + 9), 0);
    }
    begin("zRS"); /* of a signal: its address is no return address */
    ck_assert_uint_eq(at(FUNCTION + 9), 0);
    begin("xR");
    ck_assert_uint_eq(at(FUNCTION + 9), 0);
    begin("zR");
    put(0x0b); /* nothing has been remembered */
    ck_assert_uint_eq(at(FUNCTION + 9), 0);
    begin("zR");
    for (int i = 0; i < 20; i++)
        put(0x0a);
    ck_assert_uint_eq(at(FUNCTION + 9), 0);
    begin("zR");
    put(0x0e); /* the number is cut */
    put(0x80);
    ck_assert_uint_eq(at(FUNCTION + 9), 0);
    begin("zR");
    put(0x10); /* the block is longer than the table */
    put(3);
    put(100);
    ck_assert_uint_eq(at(FUNCTION + 9), 0);
    begin("zR");
    put(0x0e); /* no room for a return address */
    put(0);
    ck_assert_uint_eq(at(FUNCTION + 9), 0);
}

#if defined(__x86_64__)
struct walk {
    uintptr_t address, cfa; /* of the frame before */
    unsigned n_fixed;
    bool is_right;
};

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *argument) {
    struct walk *w = argument;
    uint32_t size;
    if (w->address != 0 && sbt_cfa_at(w->address, &size)) {
        w->n_fixed++;
        w->is_right = w->is_right && _Unwind_GetCFA(context) == w->cfa + size;
    }
    w->address = _Unwind_GetIP(context);
    w->cfa = _Unwind_GetCFA(context);
    return _URC_NO_REASON;
}

TEST(cfa__is_what_libgcc_finds, "each frame of this program and of its libraries") {
    struct walk w = {.is_right = true};
    _Unwind_Backtrace(step, &w);
    CHECK(w.is_right);
    CHECK(w.n_fixed >= 1); /* the C library's, whatever this program is compiled with */
}
#endif
