/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Requests set aside by a network interface (engine/ni/held.h), against an array that is searched from its beginning:
 * which of them goes on next, in what order, and what it costs to find out.
 */
#include <stdlib.h>

#include "engine/ni/held.h"
#include "lib/suite.h"

enum { N_ELEMENTS = 130, N = 600, STEPS = 100000 };

static struct ni_held_queue queue[N_ELEMENTS];
static struct ni_held held;
static struct ni_held_request request[N];
static bool busy[N_ELEMENTS]; /* the mutex there is held */
static int order[N], n_held;  /* the array */

static void setup(void) {
    held.element = queue;
    ni_held_clear(&held, N_ELEMENTS);
    n_held = 0;
    for (int i = 0; i < N; i++)
        request[i].set = NULL;
    for (int i = 0; i < N_ELEMENTS; i++)
        busy[i] = true;
}

static bool waits(const void *tile, const struct ni_held_request *r) {
    if (tile != &held || r->place == NI_HELD_NOWHERE)
        ck_abort_msg("asked about what waits for no element"); /* a passed assertion is a system call */
    return busy[r->place];
}

static int next(bool room) {
    struct ni_held_request *r = ni_held_next(&held, room, waits, &held);
    return r == NULL ? -1 : (int)(r - request);
}

static int next_of_array(bool room) {
    for (int i = 0; i < n_held; i++) {
        uint32_t place = request[order[i]].place;
        if (room || place == NI_HELD_NOWHERE || !busy[place])
            return order[i];
    }
    return -1;
}

static void add(int i, uint32_t place) {
    ni_held_add(&held, &request[i], place);
    order[n_held++] = i;
}

static int place_in_array(int i) {
    for (int k = 0; k < n_held; k++)
        if (order[k] == i)
            return k;
    return -1;
}

static void take_out(int i) {
    ni_held_remove(&request[i]);
    if (request[i].set != NULL || place_in_array(i) < 0)
        ck_abort_msg("%d is still there", i);
    int k = place_in_array(i);
    for (n_held--; k < n_held; k++)
        order[k] = order[k + 1];
}

TEST(as_an_array_searched_from_its_beginning) {
    setup();
    srandom(1);
    for (int step = 0; step < STEPS; step++) {
        int i = (int)(random() % N);
        uint32_t element = (uint32_t)(random() % N_ELEMENTS), place = random() % 16 == 0 ? NI_HELD_NOWHERE : element;
        bool room = random() % 4 == 0;
        if (request[i].set == NULL)
            add(i, place);
        else if (random() % 3 == 0)
            take_out(i); /* withdrawn */
        busy[element] = random() % 64 != 0;
        int found = next(room);
        if (found != next_of_array(room))
            ck_abort_msg("step %d: %d, not %d", step, found, next_of_array(room));
        if (found >= 0 && random() % 2 == 0) {
            if (random() % 4 == 0) {
                ni_held_remove(&request[found]);
                ni_held_put_back(&held, &request[found]);
            } else {
                take_out(found);
            }
        }
    }
}

TEST(a_thousand_for_one_element_cost_one_look) {
    setup();
    for (int i = 0; i < N; i++)
        add(i, 7);
    uint64_t before = held.n_looks;
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(next(false), -1);
        ck_assert_int_eq(next(true), i);
        take_out(i);
    }
    ck_assert_uint_eq(held.n_looks - before, 2 * N);
}

TEST(forgotten_all_at_once) {
    setup();
    for (int i = 0; i < 10; i++)
        add(i, (uint32_t)i % 3);
    ni_held_clear(&held, N_ELEMENTS);
    ck_assert_int_eq(next(true), -1);
    ck_assert_int_eq(next(false), -1);
    busy[1] = false;
    ck_assert_int_eq(next(false), -1);
    n_held = 0;
    add(11, 1);
    ck_assert_int_eq(next(false), 11);
}
