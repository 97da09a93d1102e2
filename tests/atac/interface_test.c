/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* <subutai/atac.h>: what each call of Table 4.2 does, and what it refuses. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/suite.h"
#include "live.h"
#include "run.h"
#include "subutai/atac.h"

static VirtualChannel *channels[2];
static VirtualChannelPort *first;
static uint64_t cycles;

static void make(struct sim_program *chip, void *argument) {
    (void)chip;
    (void)argument;
    for (int i = 0; i < 2; i++) {
        channels[i] = VirtualChannel_create();
        ck_assert_ptr_nonnull(channels[i]);
    }
}

static void run(uint32_t n_cores, sim_program_body *body) {
    struct atac_config config = atac_config_default();
    struct sim_error error = {""};
    config.chip.n_cores = n_cores;
    ck_assert_msg(atac_run(&config, make, body, NULL, &cycles, &error) == SIM_OK, "%s", error.text);
}

static void talks(struct sim_program *chip, void *argument) {
    (void)argument;
    Message m;
    VirtualChannelPort *port = VirtualChannelPort_new(channels[0]);
    sim_compute(chip, 10);
    if (sim_self(chip) == 0) {
        ck_assert(VirtualChannelPort_send_message(port, -42, 6, 9));
        ck_assert(VirtualChannelPort_send_message_long(port, "a long one", 11, 6, 10));
        ck_assert(!VirtualChannelPort_receive_message(port, &m)); /* no core receives its own */
    } else {
        char data[16] = "";
        ck_assert(VirtualChannelPort_wait_and_receive_message(port, &m));
        ck_assert(m.payload == -42 && m.signature == 6 && m.tag == 9 && m.sender == 0 && m.size == 4);
        ck_assert(VirtualChannelPort_wait_and_receive_message_long(port, &m, data, sizeof data));
        ck_assert_str_eq(data, "a long one");
        ck_assert(m.size == 11 && m.tag == 10);
        ck_assert(!VirtualChannelPort_receive_message(port, &m));
    }
    VirtualChannelPort_delete(port);
}

TEST(messages_and_long_messages) {
    run(5, talks);
}

static void cut(struct sim_program *chip, void *argument) {
    (void)argument;
    Message m;
    char data[4] = "xyz";
    VirtualChannelPort *port = VirtualChannelPort_new(channels[0]);
    sim_compute(chip, 10);
    if (sim_self(chip) == 0) {
        ck_assert(VirtualChannelPort_send_message_long(port, "0123456789", 10, 1, 0));
        ck_assert(VirtualChannelPort_send_message_long(port, NULL, 0, 1, 0));
    } else {
        sim_compute(chip, 1000);
        ck_assert(VirtualChannelPort_receive_message_long(port, &m, data, 2));
        ck_assert(m.size == 10 && memcmp(data, "01z", 4) == 0);
        ck_assert(VirtualChannelPort_receive_message_long(port, &m, data, 2));
        ck_assert(m.size == 0 && m.payload == 0 && data[0] == '0');
    }
    VirtualChannelPort_delete(port);
}

TEST(a_small_buffer, "gets the beginning; the size says how much there was") {
    run(2, cut);
}

static void filters(struct sim_program *chip, void *argument) {
    (void)argument;
    Message m;
    VirtualChannelPort *port = VirtualChannelPort_new(channels[0]);
    if (sim_self(chip) == 1)
        ck_assert(VirtualChannelPort_set_local_filter(port, 4, ATAC_AND, 4));
    sim_compute(chip, 10);
    if (sim_self(chip) == 0)
        for (int i = 1; i < 8; i++)
            VirtualChannelPort_send_message(port, i, i, i);
    sim_compute(chip, 10000);
    for (int i = sim_self(chip) == 0 ? 8 : sim_self(chip) == 1 ? 4 : 1; i < 8; i++) {
        ck_assert(VirtualChannelPort_receive_message(port, &m));
        ck_assert_int_eq(m.payload, i);
    }
    ck_assert(!VirtualChannelPort_receive_message(port, &m));
    VirtualChannelPort_delete(port);
}

TEST(a_local_filter, "is the core's own") {
    run(3, filters);
}

static void other_channel(struct sim_program *chip, void *argument) {
    (void)argument;
    Message m;
    VirtualChannelPort *port = VirtualChannelPort_new(channels[sim_self(chip) == 2]);
    sim_compute(chip, 10);
    if (sim_self(chip) == 0)
        VirtualChannelPort_send_message(port, 1, 1, 1);
    sim_compute(chip, 1000);
    ck_assert(VirtualChannelPort_receive_message(port, &m) == (sim_self(chip) == 1));
    VirtualChannelPort_delete(port);
}

TEST(channels_are_apart) {
    run(3, other_channel);
}

#define REFUSED(expression, error)                                                                                     \
    do {                                                                                                               \
        errno = 0;                                                                                                     \
        ck_assert(!(expression));                                                                                      \
        ck_assert_int_eq(errno, error);                                                                                \
    } while (0)

static void refused(struct sim_program *chip, void *argument) {
    (void)argument;
    static char data[ATAC_MAX_BYTES + 1];
    Message m;
    if (sim_self(chip) == 0) {
        first = VirtualChannelPort_new(channels[0]);
        REFUSED(VirtualChannelPort_send_message_long(first, data, ATAC_MAX_BYTES + 1, 1, 1), EMSGSIZE);
        REFUSED(VirtualChannelPort_send_message_long(first, data, -1, 1, 1), EINVAL);
        ck_assert(VirtualChannelPort_send_message_long(first, data, ATAC_MAX_BYTES, 1, 1));
        REFUSED(VirtualChannelPort_receive_message_long(first, &m, data, -1), EINVAL);
        REFUSED(VirtualChannelPort_receive_message(first, &m), 0);
        REFUSED(VirtualChannelPort_set_local_filter(first, 1, -1, 1), EINVAL);
        REFUSED(VirtualChannelPort_set_local_filter(first, 1, 3, 1), EINVAL);
        REFUSED(BarrierMaster_new(0) != NULL, EINVAL);
        for (int i = 2; i < 64; i++) {
            VirtualChannel *more = VirtualChannel_create();
            ck_assert_ptr_nonnull(more);
            free(more);
        }
        REFUSED(VirtualChannel_create() != NULL, ENOSPC);
        REFUSED(BarrierMaster_new(3) != NULL, ENOSPC);
        return;
    }
    sim_compute(chip, 100000);
    REFUSED(VirtualChannelPort_send_message(first, 1, 1, 1), EPERM);
    REFUSED(VirtualChannelPort_receive_message(first, &m), EPERM);
    REFUSED(VirtualChannelPort_wait_and_receive_message(first, &m), EPERM);
    REFUSED(VirtualChannelPort_set_local_filter(first, 1, 1, 1), EPERM);
}

TEST(refused_calls, "sizes, filter operations, another thread's port, one channel too many") {
    run(2, refused);
}

/* ---- real threads, three on two cores ---- */

static void make_small(void *argument) {
    make(NULL, argument);
    live.inboxes.most_bytes = 100 * sizeof(struct sim_letter);
}

static void reads_nothing(void *argument) {
    (void)argument;
    VirtualChannelPort *port = VirtualChannelPort_new(channels[0]);
    while (ATAC_self() == 0)
        VirtualChannelPort_send_message_long(port, NULL, 0, 1, 0);
    VirtualChannelPort_delete(port);
}

TEST(a_real_thread_that_does_not_read, "ends the run when there are too many letters in all inboxes") {
    struct live_config config = {.optical = hw_optical_config_default(), .n_threads = 3};
    config.optical.n_cores = 2;
    const char *why = live_run(&config, make_small, reads_nothing, NULL, &cycles);
    ck_assert_str_eq(why, "threads send faster than others receive");
}
