/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rounds in which all threads meet, and how they end.
 *
 * Thread 0 decides before each round whether it is the last round and leaves the answer, with the round's number, in
 * one of two plain variables. Two suffice: thread 0 writes the same variable again only on its way into the round after
 * next. Before that every thread has arrived in the next round, and so has read the variable. A barrier that lets a
 * thread through early therefore shows as a wrong number.
 */
#ifndef BENCH_ROUNDS_H
#define BENCH_ROUNDS_H

#include <stdalign.h>

#include "bench.h"

struct bench_round {
    alignas(BENCH_LINE) uint64_t number;
    bool last;
};
static struct bench_round bench_rounds[2];

/* Of thread 0, before it meets the others in round `number`. share: bench_share. */
static inline void bench_round_begin(struct bench *b, uint64_t number, uint64_t share) {
    bench_rounds[number & 1].number = number;
    bench_rounds[number & 1].last = !bench_more(b, number + 1, share);
}

/* Of each thread, when it has met the others: was that round the last? */
static inline bool bench_round_is_last(uint64_t number) {
    if (bench_rounds[number & 1].number != number)
        bench_check_equal("the round a thread left in", bench_rounds[number & 1].number, number);
    return bench_rounds[number & 1].last;
}

#endif
