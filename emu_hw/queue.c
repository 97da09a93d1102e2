/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "queue.h"

/* R head.w0, [R next.w0, W next.w0,] W head.w0: 4, or 2 for the last free one. */
static inline __attribute__((always_inline)) uint16_t take_free(struct hw_spm *spm, struct hw_spm_use *use) {
    uint16_t at = spm->free_head, next = hw_link_next(hw_spm_get(use, at));
    if (next != HW_NIL)
        hw_spm_set(use, next, hw_link(false, HW_NIL, hw_link_next(hw_spm_get(use, next))));
    else
        spm->free_tail = HW_NIL;
    spm->free_head = next;
    spm->n_free--;
    hw_spm_set(use, at, hw_link(true, HW_NIL, HW_NIL));
    return at;
}

/* R tail.w0, W tail.w0, W elem.w0: always 3. Without a tail the first two go to the element itself. */
static inline __attribute__((always_inline)) void give_free(struct hw_spm *spm, struct hw_spm_use *use, uint16_t at) {
    uint16_t tail = spm->free_tail;
    uint32_t word = hw_spm_get(use, tail != HW_NIL ? tail : at);
    if (tail != HW_NIL) {
        hw_spm_set(use, tail, hw_link(false, hw_link_prev(word), at));
    } else {
        hw_spm_set(use, at, word);
        spm->free_head = at;
    }
    hw_spm_set(use, at, hw_link(false, tail, HW_NIL));
    spm->free_tail = at;
    spm->n_free++;
}

/* R/W at.w0 with another prev. Without such an element: R/W of `self`, unchanged. */
static inline __attribute__((always_inline)) void set_prev(struct hw_spm_use *use, uint16_t at, uint16_t self,
                                                           uint16_t prev) {
    uint32_t word = hw_spm_get(use, at != HW_NIL ? at : self);
    if (at != HW_NIL)
        hw_spm_set(use, at, hw_link(true, prev, hw_link_next(word)));
    else
        hw_spm_set(use, self, word);
}

static inline __attribute__((always_inline)) void set_next(struct hw_spm_use *use, uint16_t at, uint16_t self,
                                                           uint16_t next) {
    uint32_t word = hw_spm_get(use, at != HW_NIL ? at : self);
    if (at != HW_NIL)
        hw_spm_set(use, at, hw_link(true, hw_link_prev(word), next));
    else
        hw_spm_set(use, self, word);
}

void hw_queue_put(struct hw_spm *spm, uint32_t index, uint32_t waiter) {
    struct hw_spm_use own = hw_spm_begin(spm), *use = &own;
    uint32_t queue = hw_spm_get(use, hw_control_word(index, 1));
    uint16_t head = hw_high(queue), tail = hw_low(queue);
    uint16_t at = take_free(spm, use);
    hw_spm_set(use, at + 1u, waiter);
    if (tail != HW_NIL) {
        set_next(use, tail, tail, at);
        hw_spm_set(use, at, hw_link(true, tail, HW_NIL));
    } else {
        head = at;
    }
    hw_spm_set(use, hw_control_word(index, 1), hw_pair(head, at));
    hw_spm_end(spm, use);
}

void hw_queue_drop_first(struct hw_spm *spm, uint32_t index, struct hw_first *first) {
    struct hw_spm_use own = hw_spm_begin(spm), *use = &own;
    uint16_t at = first->at, next = hw_link_next(hw_spm_get(use, at));
    hw_spm_set(use, hw_control_word(index, 1), next != HW_NIL ? hw_pair(next, first->tail) : 0);
    set_prev(use, next, at, HW_NIL);
    give_free(spm, use, at);
    first->at = next;
    hw_spm_end(spm, use);
}

void hw_queue_splice(struct hw_spm *spm, uint32_t to, uint32_t from, uint16_t head, uint16_t tail) {
    struct hw_spm_use own = hw_spm_begin(spm), *use = &own;
    uint32_t queue = hw_spm_get(use, hw_control_word(to, 1));
    uint16_t to_head = hw_high(queue), to_tail = hw_low(queue);
    set_next(use, to_tail, head, head);
    set_prev(use, head, head, to_tail);
    hw_spm_set(use, hw_control_word(to, 1), hw_pair(to_head != HW_NIL ? to_head : head, tail));
    hw_spm_set(use, hw_control_word(from, 1), 0);
    hw_spm_end(spm, use);
}

bool hw_queue_remove(struct hw_spm *spm, uint32_t index, uint32_t waiter) {
    struct hw_spm_use own = hw_spm_begin(spm), *use = &own;
    uint32_t queue = hw_spm_get(use, hw_control_word(index, 1));
    uint16_t head = hw_high(queue), tail = hw_low(queue);
    for (uint16_t at = head; at != HW_NIL;) {
        bool found = hw_spm_get(use, at + 1u) == waiter;
        uint32_t word = hw_spm_get(use, at);
        uint16_t prev = hw_link_prev(word), next = hw_link_next(word);
        if (found) {
            if (prev != HW_NIL)
                set_next(use, prev, prev, next);
            if (next != HW_NIL)
                set_prev(use, next, next, prev);
            if (at == head || at == tail)
                hw_spm_set(use, hw_control_word(index, 1), hw_pair(at == head ? next : head, at == tail ? prev : tail));
            give_free(spm, use, at);
            hw_spm_end(spm, use);
            return true;
        }
        at = next;
    }
    hw_spm_end(spm, use);
    return false;
}
