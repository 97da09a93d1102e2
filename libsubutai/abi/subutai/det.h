/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Hints for deterministic runs (subutai run --engine det): where a program with source tells the engine what it cannot
 * know. A hint changes the order of the threads, and with it the schedule's hash; but the order is still the same in
 * each run, except for performance-critical sections. Without source the same hints go into a file by call site:
 * docs/deterministic.md of Subutai.
 *
 * Without the library, and under every other engine, these functions do nothing and return 0. There is nothing to link
 * with: the functions are looked for when the program is loaded. With clang a program must be position-independent for
 * that (-fPIE or -fPIC); otherwise they do nothing.
 *
 * None of them is a cancellation point, or may be called in a signal handler.
 */
#ifndef SUBUTAI_DET_H
#define SUBUTAI_DET_H

#ifdef __cplusplus
extern "C" {
#endif

#define SUBUTAI_DET_HINTS 1024         /* numbers of hints: below this */
#define SUBUTAI_DET_MAX_WEIGHT 1000000 /* of a section */

/*
 * A barrier at which threads wait for others so that what they compute next is computed at the same time. Nothing
 * depends on it: the wait is over after a number of turns even if the others have not come. The fields are the
 * library's; an object without a wait under way needs no destruction.
 */
typedef struct subutai_soft_barrier {
    unsigned threads, turns;
    unsigned number; /* of the object in the schedule; 0: not used yet */
} subutai_soft_barrier_t;

#define SUBUTAI_SOFT_BARRIER_INITIALIZER(threads, turns)                                                               \
    { (threads), (turns), 0 }

/*
 * What the library exports. Weak: NULL without it. In a program that is not position-independent a weak function is 0
 * from the linking on, unless its address is loaded from a table: noplt. Use the functions below.
 */
#if defined(__has_attribute)
#if __has_attribute(noplt)
#define SUBUTAI_DET_WEAK __attribute__((weak, noplt))
#endif
#endif
#ifndef SUBUTAI_DET_WEAK
#define SUBUTAI_DET_WEAK __attribute__((weak))
#endif
extern int subutai_det_give_up_turn(unsigned hint, unsigned weight) SUBUTAI_DET_WEAK;
extern int subutai_det_soft_barrier_wait(subutai_soft_barrier_t *barrier) SUBUTAI_DET_WEAK;
extern int subutai_det_pcs(int begins) SUBUTAI_DET_WEAK;

/*
 * The caller computes for long now, without synchronization: the others need not wait for it. LBDR's give_up_turn (Chen
 * and others, IEICE 2015, section 3.1): the engine passes the caller over for a budget of turns, which it learns for
 * each hint.
 *
 * hint    number of this place in the program, below SUBUTAI_DET_HINTS
 * weight  how many times longer the section is than what usually follows an operation, up to SUBUTAI_DET_MAX_WEIGHT;
 *         0: not known (100 is taken)
 *
 * 0, or EINVAL: a number is too large. Waits for the turn, as each operation does.
 */
static inline int subutai_give_up_turn(unsigned hint, unsigned weight) {
    return subutai_det_give_up_turn != 0 ? subutai_det_give_up_turn(hint, weight) : 0;
}

/*
 * A soft barrier (PARROT: Cui and others, SOSP 2013, section 3.3) for so many threads, at which none waits for more
 * than so many turns. Does not block. 0, or EINVAL: one of the numbers is 0.
 */
static inline int subutai_soft_barrier_init(subutai_soft_barrier_t *barrier, unsigned threads, unsigned turns) {
    const subutai_soft_barrier_t fresh = SUBUTAI_SOFT_BARRIER_INITIALIZER(threads, turns);
    *barrier = fresh;
    return threads == 0 || turns == 0 ? 22 /* EINVAL */ : 0;
}

/*
 * Wait until `threads` threads wait here, the caller counted, or the turns are over, or no thread can go on otherwise.
 * Blocks for so long. 0, or EINVAL: the object has not been initialised.
 */
static inline int subutai_soft_barrier_wait(subutai_soft_barrier_t *barrier) {
    return subutai_det_soft_barrier_wait != 0 ? subutai_det_soft_barrier_wait(barrier) : 0;
}

/*
 * A performance-critical section of the calling thread (PARROT, section 3.4): operations inside are made in whatever
 * order they come, and no thread waits for the caller between them. The schedule is not the same in each run then; each
 * of these operations is counted as a return from outside. Sections may be inside of sections. Waits for the turn.
 */
static inline void subutai_pcs_begin(void) {
    if (subutai_det_pcs != 0)
        subutai_det_pcs(1);
}

static inline void subutai_pcs_end(void) {
    if (subutai_det_pcs != 0)
        subutai_det_pcs(0);
}

#ifdef __cplusplus
}
#endif

#endif
