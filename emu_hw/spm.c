/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "spm.h"

#include <string.h>

bool hw_spm_init(struct hw_spm *spm, uint8_t *bytes, uint32_t n_control, uint32_t n_queue, uint32_t ni,
                 uint32_t n_tiles) {
    struct hw_layout layout;
    if (!hw_layout_init(&layout, n_tiles, n_control) || n_queue > HW_MAX_SPM_BYTES / HW_QUEUE_BYTES ||
        hw_spm_n_bytes(n_control, n_queue) > HW_MAX_SPM_BYTES || ni >= n_tiles)
        return false;
    *spm = (struct hw_spm){.bytes = bytes,
                           .n_control = (uint16_t)n_control,
                           .n_queue = (uint16_t)n_queue,
                           .ni = (uint16_t)ni,
                           .layout = layout};
    memset(bytes, 0, hw_spm_n_bytes(n_control, n_queue));
    hw_spm_free_all(spm);
    for (uint32_t i = 0; i < n_control; i++)
        hw_spm_poke(spm, hw_control_word(i, 0), hw_id_make(&layout, ni, HW_KIND_NONE, 0, 0, i));
    return true;
}

void hw_spm_free_all(struct hw_spm *spm) {
    uint32_t first = hw_control_word(spm->n_control, 0), n = spm->n_queue;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = first + 2 * i;
        hw_spm_poke(spm, at, hw_link(false, i ? at - 2 : HW_NIL, i + 1 < n ? at + 2 : HW_NIL));
        hw_spm_poke(spm, at + 1, 0);
    }
    spm->free_head = n ? (uint16_t)first : HW_NIL;
    spm->free_tail = n ? (uint16_t)(first + 2 * (n - 1)) : HW_NIL;
    spm->n_free = (uint16_t)n;
    spm->n_reserved = 0;
}

uint32_t hw_spm_n_waiting(const struct hw_spm *spm, uint32_t index) {
    uint32_t n = 0;
    for (uint32_t at = hw_high(hw_spm_peek(spm, hw_control_word(index, 1))); at != HW_NIL && n <= spm->n_queue; n++)
        at = hw_link_next(hw_spm_peek(spm, at));
    return n;
}

static bool is_idle(const struct hw_spm *spm, uint32_t index) {
    uint32_t tag = hw_spm_tag(spm, index), state = hw_spm_peek(spm, hw_control_word(index, 2));
    enum hw_kind kind = hw_id_kind(&spm->layout, tag);
    if ((tag & HW_ID_IN_USE) == 0 || hw_spm_peek(spm, hw_control_word(index, 1)) != 0)
        return false;
    if (kind == HW_KIND_BARRIER)
        return hw_high(state) == 0;
    if (kind == HW_KIND_CONDITION)
        return true;
    if (hw_low(state) != 0)
        return false;
    for (uint32_t i = 0; i < spm->n_control; i++) {
        uint32_t other = hw_spm_tag(spm, i);
        if ((other & HW_ID_IN_USE) != 0 && hw_id_kind(&spm->layout, other) == HW_KIND_CONDITION &&
            hw_id_bound(&spm->layout, other) == index)
            return false;
    }
    return true;
}

uint32_t hw_spm_next_idle(const struct hw_spm *spm, uint32_t *hand, uint32_t but) {
    for (uint32_t i = 0; i < spm->n_control; i++) {
        uint32_t index = (*hand + i) % spm->n_control, tag = hw_spm_tag(spm, index);
        if (tag != but && is_idle(spm, index)) {
            *hand = index + 1;
            return tag;
        }
    }
    return 0;
}

/* ---- validity ---- */

struct walk {
    const struct hw_spm *spm;
    const char *why;
    uint32_t n_seen;
    uint8_t seen[HW_MAX_SPM_BYTES / HW_QUEUE_BYTES / 8 + 1];
};

static bool wrong(struct walk *walk, const char *why) {
    walk->why = why;
    return false;
}

/* Follows one list from head to tail; every element must be new to this walk. */
static bool walk_list(struct walk *walk, uint32_t head, uint32_t tail, bool in_use, uint32_t *n) {
    const struct hw_spm *spm = walk->spm;
    uint32_t first = hw_control_word(spm->n_control, 0), prev = HW_NIL;
    *n = 0;
    for (uint32_t at = head; at != HW_NIL; (*n)++) {
        if (at < first || at >= first + 2u * spm->n_queue || (at - first) % 2 != 0)
            return wrong(walk, "a pointer that is no queue element");
        uint32_t number = (at - first) / 2, word = hw_spm_peek(spm, at), waiter = hw_spm_peek(spm, at + 1);
        if (walk->seen[number / 8] >> number % 8 & 1)
            return wrong(walk, "an element in two places");
        walk->seen[number / 8] |= (uint8_t)(1u << number % 8);
        walk->n_seen++;
        if (((word & HW_LINK_IN_USE) != 0) != in_use)
            return wrong(walk, in_use ? "a queued element with F clear" : "a free element with F set");
        if (word & HW_LINK_RESERVED)
            return wrong(walk, "the reserved bit is set");
        if (hw_link_prev(word) != prev)
            return wrong(walk, "prev is not the element before");
        if (in_use && hw_low(waiter) >= spm->layout.n_tiles)
            return wrong(walk, "a waiter on a core that does not exist");
        prev = at;
        at = hw_link_next(word);
    }
    return tail == prev ? true : wrong(walk, "tail is not the last element");
}

static bool walk_control(struct walk *walk, uint32_t index, uint32_t *n_promised) {
    const struct hw_spm *spm = walk->spm;
    const struct hw_layout *layout = &spm->layout;
    uint32_t id = hw_spm_tag(spm, index);
    uint32_t queue = hw_spm_peek(spm, hw_control_word(index, 1)), state = hw_spm_peek(spm, hw_control_word(index, 2));
    bool in_use = (id & HW_ID_IN_USE) != 0;
    enum hw_kind kind = hw_id_kind(layout, id);
    if (hw_id_ni(layout, id) != spm->ni || hw_id_index(layout, id) != index)
        return wrong(walk, "a self pointer that does not point to itself");
    if (in_use != (kind != HW_KIND_NONE))
        return wrong(walk, "a control element in use without a kind, or free with one");
    if (hw_id_bound(layout, id) >= spm->n_control || (kind != HW_KIND_CONDITION && hw_id_bound(layout, id) != 0))
        return wrong(walk, "bound to nothing that can be bound to");
    uint32_t n;
    if (!walk_list(walk, hw_high(queue), hw_low(queue), true, &n))
        return false;
    uint32_t value = hw_high(state), max = hw_low(state);
    switch (kind) {
    case HW_KIND_NONE:
        return n == 0 ? true : wrong(walk, "waiters on a free control element");
    case HW_KIND_MUTEX:
        return max <= 1 && (max == 1 || (n == 0 && value == 0)) ? true : wrong(walk, "waiters on a free mutex");
    case HW_KIND_CONDITION:
        return state == 0 ? true : wrong(walk, "a condition with a value");
    case HW_KIND_BARRIER:
        *n_promised += max - 1 - value;
        return value == n && value < max ? true : wrong(walk, "a barrier that lost count");
    }
    return false;
}

bool hw_spm_is_valid(const struct hw_spm *spm, const char **why) {
    struct walk walk = {.spm = spm};
    uint32_t n_free = 0, n_promised = 0;
    bool ok = walk_list(&walk, spm->free_head, spm->free_tail, false, &n_free);
    for (uint32_t i = 0; ok && i < spm->n_control; i++)
        ok = walk_control(&walk, i, &n_promised);
    if (ok && walk.n_seen != spm->n_queue)
        ok = wrong(&walk, "an element in no place");
    if (ok && n_free != spm->n_free)
        ok = wrong(&walk, "the number of free elements is not the free list's");
    if (ok && spm->n_reserved != (spm->reserving ? n_promised : 0))
        ok = wrong(&walk, "more or fewer elements promised than barriers will need");
    if (ok && spm->n_reserved > spm->n_free)
        ok = wrong(&walk, "more elements promised than there are");
    if (!ok && why)
        *why = walk.why;
    return ok;
}
