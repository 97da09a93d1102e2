/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The sizes of frames (os/cfa.h): by tables made here, by damaged ones, and by this program's own beside libgcc's word.
 */
#include <string.h>
#include <unwind.h>

#include "lib/suite.h"
#include "os/cfa.h"
#include "os/unwinder.h"

enum { RSP = 7, RBP = 6, FUNCTION = 0x1000, ROOM = 256 };
/* DWARF's instructions, DW_CFA_*. */
enum {
    ADVANCE = 0x40, /* | bytes */
    ADVANCE1 = 0x02,
    REMEMBER = 0x0a,
    RESTORE = 0x0b,
    CFA = 0x0c,
    CFA_REGISTER = 0x0d,
    CFA_OFFSET = 0x0e,
    CFA_EXPRESSION = 0x0f
};

static uint8_t bytes[ROOM];
static size_t n, entry; /* of the FDE */

static void put(unsigned byte) {
    bytes[n++] = (uint8_t)byte;
}

static void put_all(const void *from, size_t size) {
    if (size != 0)
        memcpy(bytes + n, from, size);
    n += size;
}

static void put_word(uint32_t word) {
    put_all(&word, sizeof word);
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
    static const uint8_t rows[] = {ADVANCE | 1, CFA_OFFSET, 16, ADVANCE1, 200, CFA_OFFSET, 0x90, 3}; /* 400 */
    begin("zR");
    put_all(rows, sizeof rows);
    ck_assert_uint_eq(at(FUNCTION + 1), 8); /* the call ends where the next row begins */
    ck_assert_uint_eq(at(FUNCTION + 2), 16);
    ck_assert_uint_eq(at(FUNCTION + 201), 16);
    ck_assert_uint_eq(at(FUNCTION + 202), 400);
}

/* The frames of the first rows, from the first byte on. */
static void check_rows(const uint8_t *rows, size_t size, const uint32_t *frames, size_t n_frames) {
    begin("zR");
    put_all(rows, size);
    for (size_t i = 0; i < n_frames; i++)
        ck_assert_uint_eq(at(FUNCTION + 1 + i), frames[i]);
}

TEST(cfa__of_a_frame_pointer_or_an_expression_is_not_fixed) {
    static const uint8_t rows[] = {
        ADVANCE | 1, CFA_REGISTER, RBP,  ADVANCE | 1, CFA, RSP, 32, ADVANCE | 1, CFA_EXPRESSION,
        2,           0x77,         0x08, ADVANCE | 1, CFA, RSP, 8};
    static const uint32_t frames[] = {8, 0, 32, 0, 8};
    check_rows(rows, sizeof rows, frames, 5);
}

TEST(cfa__remembered_rows_come_back) {
    static const uint8_t rows[] = {CFA_OFFSET, 24, REMEMBER, ADVANCE | 1, CFA_OFFSET, 8, ADVANCE | 1, RESTORE};
    static const uint32_t frames[] = {24, 8, 24};
    check_rows(rows, sizeof rows, frames, 3);
}

TEST(cfa__instructions_for_other_registers_are_passed_over) {
    static const uint8_t others[] = {0x00, 0x83, 0x02, 0xc3, 0x05, 0x03, 0x81, 0x02, 0x06, 0x03,
                                     0x07, 0x03, 0x08, 0x03, 0x09, 0x03, 0x05, 0x10, 0x03, 0x02,
                                     0x77, 0x08, 0x16, 0x03, 0x01, 0x77, 0x2e, 0x10};
    begin("zR");
    put_all(others, sizeof others);
    put(CFA_OFFSET);
    put(48);
    ck_assert_uint_eq(at(FUNCTION + 9), 48);
}

static void check_refused(const char *augmentation, const uint8_t *instructions, size_t size) {
    begin(augmentation);
    put_all(instructions, size);
    ck_assert_uint_eq(at(FUNCTION + 9), 0);
}

TEST(cfa__what_is_not_known_is_refused) {
    static const uint8_t unknown[] = {0x01, 0x11, 0x12, 0x17, 0x3f};
    for (size_t i = 0; i < sizeof unknown; i++)
        check_refused("zR", &unknown[i], 1);
    check_refused("zRS", NULL, 0); /* of a signal: its address is no return address */
    check_refused("xR", NULL, 0);
    check_refused("zR", &(const uint8_t){RESTORE}, 1); /* nothing has been remembered */
    uint8_t deep[20];
    memset(deep, REMEMBER, sizeof deep);
    check_refused("zR", deep, sizeof deep);
    check_refused("zR", (const uint8_t[]){CFA_OFFSET, 0x80}, 2); /* the number is cut */
    check_refused("zR", (const uint8_t[]){0x10, 3, 100}, 3);     /* the block is longer than the table */
    check_refused("zR", (const uint8_t[]){CFA_OFFSET, 0}, 2);    /* no room for a return address */
}

struct sbt_unwinder sbt_unwinder; /* the library's own would be looked for in what is loaded */

#if defined(__x86_64__)
extern const void *_Unwind_Find_FDE(void *address, struct dwarf_eh_bases *bases);

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
    sbt_unwinder.find_fde = _Unwind_Find_FDE;
    _Unwind_Backtrace(step, &w);
    CHECK(w.is_right);
    CHECK(w.n_fixed >= 1); /* the C library's, whatever this program is compiled with */
}
#endif
