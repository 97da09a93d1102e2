/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Every schedule, one after the other: for the schedulers of switch_sched.c and ni_sched.c. A run makes a choice at
 * each point where several threads could go on. Next time the last choice that has an option left takes that option.
 */
#ifndef TESTS_MODEL_CHOICES_H
#define TESTS_MODEL_CHOICES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { MAX_CHOICES = 20000, MAX_POINTS = 20000 };

struct choices {
    uint8_t chosen[MAX_CHOICES], of[MAX_CHOICES]; /* which option, of how many */
    uint8_t course[MAX_POINTS];                   /* the thread that went on at each point */
    uint32_t n, n_given, n_points;                /* the first n_given choices are given */
};

static inline bool choices_are_full(const struct choices *c) {
    return c->n == MAX_CHOICES || c->n_points == MAX_POINTS;
}

/* One of n options, if they are not full. */
static inline uint32_t choices_choose(struct choices *c, uint32_t n) {
    if (c->n >= c->n_given)
        c->chosen[c->n] = 0;
    c->of[c->n] = (uint8_t)n;
    return c->chosen[c->n++];
}

/* After a run: the choices of the next one. False: there is none. */
static inline bool choices_next(struct choices *c) {
    while (c->n > 0 && c->chosen[c->n - 1] + 1 == c->of[c->n - 1])
        c->n--;
    if (c->n == 0)
        return false;
    c->chosen[c->n - 1]++;
    c->n_given = c->n;
    return true;
}

/* How many points each thread went on for. */
static inline void choices_show_course(const struct choices *c) {
    for (uint32_t i = 0, length = 1; i < c->n_points; i++, length++)
        if (i + 1 == c->n_points || c->course[i + 1] != c->course[i]) {
            printf(" %ux%u", length, c->course[i]);
            length = 0;
        }
    printf("\n");
}

/* Without the instruction for it, which not all x86-64 have, the compiler calls a function. */
static inline uint32_t bits_count(uint32_t bits) {
    uint32_t n = 0;
    for (; bits != 0; bits &= bits - 1)
        n++;
    return n;
}

/* The nth bit that is set. */
static inline uint32_t bits_nth(uint32_t bits, uint32_t n) {
    for (; n > 0; n--)
        bits &= bits - 1;
    return (uint32_t)__builtin_ctz(bits);
}

#endif
