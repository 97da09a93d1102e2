/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the interface needs of the machine on which its threads run. There are three: simulated threads in virtual time
 * (virtual.c), real threads (live.c), and the walk through every interleaving (tests/model/steal_machine.c).
 *
 * Times are cycles of 1 ns of the machine's clock. Shared words are 64 bits, eight to a line, 0 at first; accesses are
 * sequentially consistent. All functions but self, n_channels, channel, n_words and words are for threads of the run.
 */
#ifndef ATAC_MACHINE_H
#define ATAC_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "atac/bounds.h"
#include "optical_message.h"

enum { ATAC_WORDS_OF_LINE = 8 };
#define ATAC_NO_THREAD UINT32_MAX
#define ATAC_NO_CHANNEL UINT32_MAX

/* A message that was retrieved. The machine copies at most `room` bytes of the data. */
struct atac_received {
    struct hw_optical_message head;
    int32_t payload; /* the first bytes of the data */
    char *data;
    uint32_t room;
};

struct atac_machine {
    /* The calling thread's number; ATAC_NO_THREAD: it is none of the run. */
    uint32_t (*self)(void);
    uint64_t (*cycles)(void);
    void (*compute)(uint64_t cycles);
    /* Ends the run with this text. Does not return. */
    void (*fail)(const char *text);
    /* How many channels can still be made; the number of a new one, or ATAC_NO_CHANNEL. */
    uint32_t (*n_channels)(void);
    uint32_t (*channel)(void);
    void (*subscribe)(uint32_t channel);
    void (*set_filter)(struct hw_filter filter);
    void (*send)(uint32_t channel, uint32_t signature, uint32_t tag, const void *data, uint32_t size);
    /* False: there was no message until the deadline; 0 does not wait, UINT64_MAX waits for ever. */
    bool (*receive)(uint32_t channel, uint64_t deadline, struct atac_received *received);
    /* How many words can still be made; n of them that begin with a line, the number of the first. */
    uint32_t (*n_words)(void);
    uint32_t (*words)(uint32_t n);
    uint64_t (*load)(uint32_t word);
    void (*store)(uint32_t word, uint64_t value);
    /* These return the value before. */
    uint64_t (*fetch_add)(uint32_t word, uint64_t n);
    uint64_t (*swap)(uint32_t word, uint64_t value);
    uint64_t (*compare_and_swap)(uint32_t word, uint64_t expected, uint64_t value);
    /* Until the word is another one than `old`: that word. */
    uint64_t (*spin_while)(uint32_t word, uint64_t old);
    void (*futex_wait)(uint32_t word, uint64_t expected);
    void (*futex_wake)(uint32_t word, uint32_t n);
};

/* What the thesis does not give; run.h says more. */
struct atac_settings {
    uint32_t software_cycles; /* in the interface, for each message that is sent or retrieved: 300 */
    uint32_t few, many;       /* 0, 2; few < many */
    uint32_t patience_cycles; /* 4000 */
    bool mutexes_spin;
};

/* The machine and the settings of the run that is under way: the interface has no parameter for them. NULL: none. */
extern const struct atac_machine *atac_machine;
extern struct atac_settings atac_running;

/* The calling thread runs `prepare`. */
extern _Thread_local bool atac_prepares;

/* The calling thread's number; ATAC_NO_THREAD: it is none of a run. */
uint32_t atac_self(void);
/* May the calling thread make channels and masters: is it one of the run, or does it run `prepare`? */
bool atac_may_make(void);

struct atac_settings atac_settings_default(void);

void atac_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
