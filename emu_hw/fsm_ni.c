/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A network interface outside of its steps: its configuration, its beginning, and what it forgets after a fork. */
#include "fsm.h"

#include "queue.h"

/*
 * After a fork the two processes deal out IDs in different steps of the generation: the parent's next allocations of an
 * element take the generations that follow, the child's every 1003rd. So an ID that the parent deals out, and that is
 * copied into the child's memory a moment after the NI was, is stale in the child, unless the parent has dealt the same
 * element out about a thousand times in that moment. Even, so that each step is odd and reaches all generations.
 */
enum { GENERATIONS_LEFT_OUT_BY_FORK = 1002 };

struct hw_config hw_config_default(void) {
    return (struct hw_config){.n_tiles = 64,
                              .n_control = HW_DEFAULT_CONTROL,
                              .n_queue = HW_DEFAULT_QUEUE,
                              .full = HW_FULL_HOLD,
                              .reserve = true,
                              .timing = hw_timing_default()};
}

struct hw_config hw_config_paper(void) {
    struct hw_config config = hw_config_default();
    config.full = HW_FULL_AGAIN;
    config.reserve = false;
    return config;
}

bool hw_ni_init(struct hw_ni *ni, const struct hw_config *config, uint32_t number, uint8_t *bytes) {
    struct hw_spm spm;
    if (!hw_spm_init(&spm, bytes, config->n_control, config->n_queue, number, config->n_tiles))
        return false;
    spm.reserving = config->reserve;
    *ni = (struct hw_ni){.spm = spm, .timing = config->timing, .full = config->full};
    return true;
}

/* The primitive's ID is stale from now on. */
static void forget_primitive(struct hw_ni *ni, uint32_t index) {
    struct hw_spm *spm = &ni->spm;
    uint32_t generation = hw_id_generation(&spm->layout, hw_spm_tag(spm, index));
    hw_spm_poke(spm, hw_control_word(index, 0), hw_id_make(&spm->layout, spm->ni, HW_KIND_NONE, generation, 0, index));
    hw_spm_poke(spm, hw_control_word(index, 2), 0);
    ni->n_control_used--;
}

/* The waiters of a barrier become thread HW_NO_THREAD. False: there was no such barrier. Its word 2 is of an earlier
 * use, or there are fewer elements than it needs. */
static bool forget_arrived(struct hw_spm *spm, uint32_t index) {
    uint32_t state = hw_spm_peek(spm, hw_control_word(index, 2));
    uint32_t n_arrived = hw_high(state), n_threads = hw_low(state);
    if (n_arrived >= n_threads)
        return false;
    uint32_t n_to_come = spm->reserving ? n_threads - 1 - n_arrived : 0;
    if (n_arrived + n_to_come > (uint32_t)(spm->n_free - spm->n_reserved))
        return false;
    for (uint32_t n = n_arrived; n > 0; n--)
        hw_queue_put(spm, index, hw_pair(HW_NO_THREAD, spm->ni));
    spm->n_reserved = (uint16_t)(spm->n_reserved + n_to_come);
    return true;
}

static void forget_queue(struct hw_ni *ni, uint32_t index) {
    struct hw_spm *spm = &ni->spm;
    uint32_t tag = hw_spm_tag(spm, index), state = hw_spm_peek(spm, hw_control_word(index, 2));
    enum hw_kind kind = hw_id_kind(&spm->layout, tag);
    hw_spm_poke(spm, hw_control_word(index, 1), 0);
    if (!(tag & HW_ID_IN_USE))
        return;
    ni->n_control_used++;
    if (kind == HW_KIND_BARRIER) {
        if (!forget_arrived(spm, index))
            forget_primitive(ni, index);
    } else if (kind == HW_KIND_CONDITION || hw_low(state) != 1) { /* a mutex with another number is of an earlier use */
        hw_spm_poke(spm, hw_control_word(index, 2), 0);
    }
}

void hw_ni_forget_waiters(struct hw_ni *ni) {
    struct hw_spm *spm = &ni->spm;
    uint64_t n_reads = spm->n_reads, n_writes = spm->n_writes;
    hw_spm_free_all(spm);
    spm->generation_skip += GENERATIONS_LEFT_OUT_BY_FORK;
    ni->stats = (struct hw_ni_stats){0};
    ni->n_control_used = 0;
    for (uint32_t i = 0; i < spm->n_control; i++)
        forget_queue(ni, i);
    spm->n_reads = n_reads;
    spm->n_writes = n_writes;
}

bool hw_ni_would_hold(const struct hw_ni *ni, const struct hw_packet *lock) {
    const struct hw_spm *spm = &ni->spm;
    uint32_t id = lock->flit[1], index = hw_id_index(&spm->layout, id);
    return spm->n_free <= spm->n_reserved && index < spm->n_control && hw_spm_tag(spm, index) == id &&
           hw_low(hw_spm_peek(spm, hw_control_word(index, 2))) != 0;
}

const char *hw_state_name(enum hw_state state) {
    static const char names[HW_N_STATES][20] = {
        "Allocation",          "Deallocation",     "Mutex Lock",    "Mutex Unlock", "Barrier Wait", "Condition Wait",
        "Condition Broadcast", "Condition Signal", "Mutex Trylock", "Withdraw",     "Evict",        "Refuse"};
    return (uint32_t)state < HW_N_STATES ? names[state] : "?";
}
