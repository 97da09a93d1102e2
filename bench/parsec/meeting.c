/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Barriers for streamcluster; see meeting.h. The two-phase barrier fills until all are inside, then drains until all
 * have left; no thread enters while it drains, so that a fast thread cannot be counted twice in one round.
 */
#include "meeting.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* About 0.1 ms at 3 GHz, as long as PARSEC's barrier spins. */
#define MAX_LOOKS 35000

enum { FILLING, DRAINING };

const char *const meeting_names[N_MEETING_KINDS] = {"pthread", "cond", "spin"};

void must(int error, const char *call) {
    if (error != 0) {
        fprintf(stderr, "streamcluster: %s: %s\n", call, strerror(error));
        _Exit(1);
    }
}

void meeting_init(struct meeting *m, enum meeting_kind kind, unsigned n_threads) {
    m->kind = kind;
    m->n_threads = n_threads;
    m->n_inside = 0;
    atomic_init(&m->phase, FILLING);
    if (kind == MEETING_PTHREAD) {
        must(pthread_barrier_init(&m->barrier, NULL, n_threads), "pthread_barrier_init");
    } else {
        must(pthread_mutex_init(&m->mutex, NULL), "pthread_mutex_init");
        must(pthread_cond_init(&m->phase_changed, NULL), "pthread_cond_init");
    }
}

void meeting_destroy(struct meeting *m) {
    if (m->kind == MEETING_PTHREAD) {
        must(pthread_barrier_destroy(&m->barrier), "pthread_barrier_destroy");
    } else {
        must(pthread_cond_destroy(&m->phase_changed), "pthread_cond_destroy");
        must(pthread_mutex_destroy(&m->mutex), "pthread_mutex_destroy");
    }
}

/* Relaxed: a thread that acts on the phase has read it again under the mutex, which orders everything else. */
static int phase_of(struct meeting *m) {
    return atomic_load_explicit(&m->phase, memory_order_relaxed);
}

/* Called and returns with the mutex held; releases it in between. */
static void await_phase(struct meeting *m, int wanted) {
    if (m->kind == MEETING_SPIN && phase_of(m) != wanted) {
        int error;
        must(pthread_mutex_unlock(&m->mutex), "pthread_mutex_unlock");
        for (int looks = 0; phase_of(m) != wanted && looks < MAX_LOOKS; looks++)
            ;
        while ((error = pthread_mutex_trylock(&m->mutex)) == EBUSY)
            ;
        must(error, "pthread_mutex_trylock");
    }
    while (phase_of(m) != wanted)
        must(pthread_cond_wait(&m->phase_changed, &m->mutex), "pthread_cond_wait");
}

static void change_phase(struct meeting *m, int phase) {
    atomic_store_explicit(&m->phase, phase, memory_order_relaxed);
    must(pthread_cond_broadcast(&m->phase_changed), "pthread_cond_broadcast");
}

void meeting_wait(struct meeting *m) {
    if (m->kind == MEETING_PTHREAD) {
        int result = pthread_barrier_wait(&m->barrier);
        must(result == PTHREAD_BARRIER_SERIAL_THREAD ? 0 : result, "pthread_barrier_wait");
        return;
    }
    must(pthread_mutex_lock(&m->mutex), "pthread_mutex_lock");
    await_phase(m, FILLING);
    if (++m->n_inside == m->n_threads)
        change_phase(m, DRAINING);
    else
        await_phase(m, DRAINING);
    if (--m->n_inside == 0)
        change_phase(m, FILLING);
    must(pthread_mutex_unlock(&m->mutex), "pthread_mutex_unlock");
}
