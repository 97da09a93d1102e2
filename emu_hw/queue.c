/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "queue.h"

/* R head.w0, [R next.w0, W next.w0,] W head.w0: 4, or 2 for the last free one. */
static uint16_t take_free(struct hw_spm *spm) {
    uint16_t at = spm->free_head, next = hw_link_next(hw_spm_read(spm, at));
    if (next != HW_NIL)
        hw_spm_write(spm, next, hw_link(false, HW_NIL, hw_link_next(hw_spm_read(spm, next))));
    else
        spm->free_tail = HW_NIL;
    spm->free_head = next;
    spm->n_free--;
    hw_spm_write(spm, at, hw_link(true, HW_NIL, HW_NIL));
    return at;
}

/* R tail.w0, W tail.w0, W elem.w0: always 3; without a tail the first two go to the element itself. */
static void give_free(struct hw_spm *spm, uint16_t at) {
    uint16_t tail = spm->free_tail;
    uint32_t word = hw_spm_read(spm, tail != HW_NIL ? tail : at);
    if (tail != HW_NIL) {
        hw_spm_write(spm, tail, hw_link(false, hw_link_prev(word), at));
    } else {
        hw_spm_write(spm, at, word);
        spm->free_head = at;
    }
    hw_spm_write(spm, at, hw_link(false, tail, HW_NIL));
    spm->free_tail = at;
    spm->n_free++;
}

/* R/W at.w0 with another prev; of no element: of `self`, unchanged. */
static void set_prev(struct hw_spm *spm, uint16_t at, uint16_t self, uint16_t prev) {
    uint32_t word = hw_spm_read(spm, at != HW_NIL ? at : self);
    if (at != HW_NIL)
        hw_spm_write(spm, at, hw_link(true, prev, hw_link_next(word)));
    else
        hw_spm_write(spm, self, word);
}

static void set_next(struct hw_spm *spm, uint16_t at, uint16_t self, uint16_t next) {
    uint32_t word = hw_spm_read(spm, at != HW_NIL ? at : self);
    if (at != HW_NIL)
        hw_spm_write(spm, at, hw_link(true, hw_link_prev(word), next));
    else
        hw_spm_write(spm, self, word);
}

void hw_queue_put(struct hw_spm *spm, uint32_t index, uint32_t who) {
    uint32_t queue = hw_spm_read(spm, hw_control_word(index, 1));
    uint16_t head = hw_high(queue), tail = hw_low(queue);
    uint16_t at = take_free(spm);
    hw_spm_write(spm, at + 1u, who);
    if (tail != HW_NIL) {
        set_next(spm, tail, tail, at);
        hw_spm_write(spm, at, hw_link(true, tail, HW_NIL));
    } else {
        head = at;
    }
    hw_spm_write(spm, hw_control_word(index, 1), hw_pair(head, at));
}

void hw_queue_drop_first(struct hw_spm *spm, uint32_t index, struct hw_first *first) {
    uint16_t at = first->at, next = hw_link_next(hw_spm_read(spm, at));
    hw_spm_write(spm, hw_control_word(index, 1), next != HW_NIL ? hw_pair(next, first->tail) : 0);
    set_prev(spm, next, at, HW_NIL);
    give_free(spm, at);
    first->at = next;
}

void hw_queue_splice(struct hw_spm *spm, uint32_t to, uint32_t from, uint16_t head, uint16_t tail) {
    uint32_t queue = hw_spm_read(spm, hw_control_word(to, 1));
    uint16_t to_head = hw_high(queue), to_tail = hw_low(queue);
    set_next(spm, to_tail, head, head);
    set_prev(spm, head, head, to_tail);
    hw_spm_write(spm, hw_control_word(to, 1), hw_pair(to_head != HW_NIL ? to_head : head, tail));
    hw_spm_write(spm, hw_control_word(from, 1), 0);
}

bool hw_queue_remove(struct hw_spm *spm, uint32_t index, uint32_t who) {
    uint32_t queue = hw_spm_read(spm, hw_control_word(index, 1));
    uint16_t head = hw_high(queue), tail = hw_low(queue);
    for (uint16_t at = head; at != HW_NIL;) {
        bool found = hw_spm_read(spm, at + 1u) == who;
        uint32_t word = hw_spm_read(spm, at);
        uint16_t prev = hw_link_prev(word), next = hw_link_next(word);
        if (found) {
            if (prev != HW_NIL)
                set_next(spm, prev, prev, next);
            if (next != HW_NIL)
                set_prev(spm, next, next, prev);
            if (at == head || at == tail)
                hw_spm_write(spm, hw_control_word(index, 1),
                             hw_pair(at == head ? next : head, at == tail ? prev : tail));
            give_free(spm, at);
            return true;
        }
        at = next;
    }
    return false;
}
