/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A call with a number of arguments that is known only then (observe/openmp_invoke.S): each comes to its place. */
#include <stdint.h>

#include "lib/suite.h"

enum { MOST = 19 };

void rec_openmp_invoke(void (*function)(int *, int *, ...), int *thread, int *in_team, void **args, long n);

static int thread = 7, in_team = 8, n_seen;

/* The value of an argument; room for eight more is read as registers. */
static void *value(intptr_t i) {
    return (void *)(0x1234567800000000 + i);
}

static void see(void *got, intptr_t i) {
    CHECK(got == value(i));
    n_seen++;
}

/* The compiler takes the stack to be aligned here. */
static void see_places(const int *a, const int *b) {
    _Alignas(16) volatile char aligned[16] = {0};
    CHECK(a == &thread);
    CHECK(b == &in_team);
    CHECK_INT((uintptr_t)&aligned[0] % 16, 0);
}

#define P(i) void *a##i
#define S(i) see(a##i, i)
static void take0(int *a, int *b) {
    see_places(a, b);
}

static void take3(int *a, int *b, P(0), P(1), P(2)) {
    see_places(a, b);
    S(0), S(1), S(2);
}

static void take4(int *a, int *b, P(0), P(1), P(2), P(3)) {
    take3(a, b, a0, a1, a2);
    S(3);
}

static void take5(int *a, int *b, P(0), P(1), P(2), P(3), P(4)) {
    take4(a, b, a0, a1, a2, a3);
    S(4);
}

static void take6(int *a, int *b, P(0), P(1), P(2), P(3), P(4), P(5)) {
    take5(a, b, a0, a1, a2, a3, a4);
    S(5);
}

static void take7(int *a, int *b, P(0), P(1), P(2), P(3), P(4), P(5), P(6)) {
    take6(a, b, a0, a1, a2, a3, a4, a5);
    S(6);
}

static void take8(int *a, int *b, P(0), P(1), P(2), P(3), P(4), P(5), P(6), P(7)) {
    take7(a, b, a0, a1, a2, a3, a4, a5, a6);
    S(7);
}

static void take19(int *a, int *b, P(0), P(1), P(2), P(3), P(4), P(5), P(6), P(7), P(8), P(9), P(10), P(11), P(12),
                   P(13), P(14), P(15), P(16), P(17), P(18)) {
    take8(a, b, a0, a1, a2, a3, a4, a5, a6, a7);
    S(8), S(9), S(10), S(11), S(12), S(13), S(14), S(15), S(16), S(17), S(18);
}

TEST(invoke__arguments, "in registers and on the stack, of which the words are odd or even") {
    static const struct {
        void (*function)(void);
        int n;
    } all[] = {{(void (*)(void))take0, 0}, {(void (*)(void))take3, 3},    {(void (*)(void))take4, 4},
               {(void (*)(void))take5, 5}, {(void (*)(void))take6, 6},    {(void (*)(void))take7, 7},
               {(void (*)(void))take8, 8}, {(void (*)(void))take19, MOST}};
    void *args[MOST + 8] = {NULL};
    for (intptr_t i = 0; i < MOST; i++)
        args[i] = value(i);
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        n_seen = 0;
        rec_openmp_invoke((void (*)(int *, int *, ...))all[i].function, &thread, &in_team, args, all[i].n);
        CHECK_INT(n_seen, all[i].n);
    }
}
