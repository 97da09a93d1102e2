/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The count of cache misses that the kernel's page and the processor's counter say together. Oracle: perf_event.h.
 */
#include "lib/suite.h"
#include "observe/misses.h"

static struct perf_event_mmap_page page;
static uint64_t value;          /* the counter's */
static uint32_t asked;          /* the counter that was read last */
static unsigned n_reads, moves; /* at so many reads the kernel is in between, and adds 1000 to the offset */

static uint64_t reads(uint32_t number) {
    asked = number;
    n_reads++;
    if (moves > 0) {
        moves--;
        page.lock += 2;
        page.offset += 1000;
    }
    return value;
}

static void begins(uint32_t index, int64_t offset, uint16_t width, uint64_t counter) {
    page = (struct perf_event_mmap_page){.index = index, .offset = offset, .pmc_width = width, .cap_user_rdpmc = 1};
    value = counter;
    n_reads = moves = 0;
}

static uint64_t count(void) {
    struct rec_missed missed = {0};
    ck_assert(rec_misses_of(&page, reads, &missed));
    return missed.n;
}

TEST(counts, "offset and counter, of which the first of pmc_width bits is the sign") {
    begins(3, 500, 48, 7);
    ck_assert_uint_eq(count(), 507);
    ck_assert_uint_eq(asked, 2);
    begins(1, 500, 48, (UINT64_C(1) << 48) - 20); /* counters begin below 0, to overflow after a period */
    ck_assert_uint_eq(count(), 480);
    begins(1, 500, 48, UINT64_C(0xABCD000000000000) + 9); /* what is beyond the width is not the counter's */
    ck_assert_uint_eq(count(), 509);
    begins(1, 500, 64, UINT64_MAX);
    ck_assert_uint_eq(count(), 499);
}

TEST(kernel_in_between, "it is read again") {
    begins(1, 0, 48, 5);
    moves = 2;
    ck_assert_uint_eq(count(), 2005);
    ck_assert_uint_eq(n_reads, 3);
}

TEST(away, "how long the counter was not on the processor") {
    struct rec_missed missed = {0};
    begins(1, 0, 48, 5);
    page.time_enabled = 700;
    page.time_running = 500;
    ck_assert(rec_misses_of(&page, reads, &missed));
    ck_assert_uint_eq(missed.away_ns, 200);
}

TEST(no_count, "the counter is not the program's, or not on the processor") {
    struct rec_missed missed;
    begins(0, 500, 48, 7);
    ck_assert(!rec_misses_of(&page, reads, &missed));
    begins(1, 500, 48, 7);
    page.cap_user_rdpmc = 0;
    ck_assert(!rec_misses_of(&page, reads, &missed));
    begins(1, 500, 0, 7);
    ck_assert(!rec_misses_of(&page, reads, &missed));
    ck_assert_uint_eq(n_reads, 0);
}
