/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The machine of real threads. Its network is emu_hw's, under one lock, at the times of the host's clock: a cycle takes
 * time_scale ns, and with a time scale of 0 the network and all costs take no time.
 *
 * Threads wait by pthread's conditions and mutexes. With libsubutai preloaded those are the library's: a thread that
 * waits is switched away from, where that is possible.
 *
 * A thread is stuck if nothing under way ends its wait. When each thread that has not ended is stuck, the run fails.
 */
#ifndef ATAC_LIVE_H
#define ATAC_LIVE_H

#include <pthread.h>

#include "inbox.h"
#include "machine.h"
#include "optical.h"

struct live_config {
    struct hw_optical_config optical;
    uint32_t n_threads; /* thread t is on core t modulo the number of cores */
    struct atac_settings settings;
    uint32_t time_scale;  /* ns a cycle */
    uint32_t stack_bytes; /* of each thread; 0: pthread's default */
};

/*
 * prepare, if not NULL, is called first; then body by each thread. NULL, or what is wrong, valid until the next run.
 * *n_cycles: from the beginning of the threads to the end of the last, in cycles; with a time scale of 0 in ns.
 */
const char *live_run(const struct live_config *config, void (*prepare)(void *argument), void (*body)(void *argument),
                     void *argument, uint64_t *n_cycles);

/* ---- inside ---- */

enum live_wait { LIVE_RUNS, LIVE_FOR_MESSAGE, LIVE_FOR_WORD };

struct live_thread {
    pthread_t thread;
    pthread_cond_t awake;
    uint32_t number, core;
    /* Under the lock: */
    enum live_wait wait;
    bool stuck;
    uint32_t channel, word; /* that it waits for */
};

struct live {
    pthread_mutex_t lock;
    struct hw_optical net;
    void *net_memory;
    struct {
        void *data;
        uint32_t bytes, sender;
    } * slots;           /* a message's data and thread, by its slot */
    uint32_t n_channels; /* that have been made */
    struct live_thread *threads;
    uint32_t n_threads, n_begun, n_living, n_stuck;
    bool go;     /* all threads have been made */
    bool failed; /* written under the lock, read anywhere */
    char error[160];
    bool costs; /* calls take the time of the model */
    uint64_t begin_ns, end_ns, ns_a_cycle;
    uint64_t *words;
    uint32_t n_words;
    /* If threads share cores: */
    bool shares;
    struct sim_inboxes inboxes;
    uint64_t *core_free_ns; /* when the core has computed what threads have asked for; changed without the lock */
};
extern struct live live;
extern _Thread_local struct live_thread *live_self; /* NULL: no thread of the run */

uint64_t live_cycles(void);
/* Until that time. May block. */
void live_wait_until(uint64_t cycles);
/* Costs of the model. May block. */
void live_compute(uint64_t n_cycles);
/* If the run has failed the calling thread ends here. */
void live_check(void);
void live_lock(void);
void live_unlock(void);
/* With the lock: the run fails. The first text stays. */
void live_note_failure(const char *text);
/* The same, and the calling thread, which is one of the run, ends; the lock is given up. */
_Noreturn void live_fail_locked(const char *text);
/* With the lock: until the thread's condition is signalled, or until that time; UINT64_MAX: for ever. */
void live_block(enum live_wait wait, uint64_t until);
/* With the lock: a wait of that thread may be over. */
void live_wake(struct live_thread *t);

#define LIVE_TOO_FAST "threads send faster than others receive"

/* live_network.c */
bool live_network_init(const struct hw_optical_config *config, uint32_t n_threads);
void live_network_free(void);
void live_subscribe(uint32_t channel);
void live_set_filter(struct hw_filter filter);
void live_send(uint32_t channel, uint32_t signature, uint32_t tag, const void *data, uint32_t size);
bool live_receive(uint32_t channel, uint64_t deadline, struct atac_received *received);

/* live_words.c */
bool live_words_init(void);
void live_words_free(void);
uint32_t live_n_words(void);
uint32_t live_words(uint32_t n);
uint64_t live_load(uint32_t word);
void live_store(uint32_t word, uint64_t value);
uint64_t live_fetch_add(uint32_t word, uint64_t n);
uint64_t live_swap(uint32_t word, uint64_t value);
uint64_t live_compare_and_swap(uint32_t word, uint64_t expected, uint64_t value);
uint64_t live_spin_while(uint32_t word, uint64_t old);
void live_futex_wait(uint32_t word, uint64_t expected);
void live_futex_wake(uint32_t word, uint32_t n);

#endif
