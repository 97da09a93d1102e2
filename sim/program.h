/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Programs of simulated threads: the program is C, and runs in virtual time on a chip with the mesh of emu_hw, shared
 * words in coherent caches, an operating system's futexes, and the optical network.
 *
 *   struct sim_program *p = sim_program_new(&config, &error);
 *   sim_program_spawn(p, body, argument);              thread i is on core i modulo n_cores
 *   sim_program_run(p, &error);                        to the end of all threads
 *   sim_program_free(p);
 *
 * A thread is a stack of its own. What it computes takes no virtual time, but for the cycles that it states
 * (sim_compute) and the costs of the calls below. So its program is written as for real threads, and no other thread
 * runs between two calls. All calls but those above are made by the program's threads only; each may let others run.
 *
 * Clock and events are those of the recorder's replay (events.h). Times are cycles of the chip's clock, 1 GHz. The same
 * program has the same course everywhere: there is no randomness, and no time of the host's.
 *
 * Shared words, 64 bits, eight to a line. A line has a home, where its directory is: line i on core i modulo the number
 * of cores. A core that has the line (for a write: alone) needs hit_cycles. Otherwise its request crosses the mesh to
 * the home, and waits there until the home has served all earlier requests for the line. Serving takes
 * directory_cycles; the way to the core that has written the line, and back, or dram_cycles if there is none, as in
 * Graphite's MSI protocol; before a write, an invalidation to each other core that has the line, one after the other,
 * and its answer. The home is done then; the line travels back.
 * The word is read or written when the request arrives at the home. Only the ways are the mesh's: packets do not wait
 * for each other there.
 *
 * Futexes as Graphite has them: a system call is a message to the operating system's server, which serves one request
 * after the other, and wakes one thread after the other. Ours: it is on core 0; Graphite's has a tile of its own.
 */
#ifndef SIM_PROGRAM_H
#define SIM_PROGRAM_H

#include "optical.h"
#include "sim.h"

enum { SIM_WORDS_OF_LINE = 8, SIM_PROGRAM_MAX_WORDS = 1 << 24, SIM_PROGRAM_MAX_STACK = 1 << 24 };

struct sim_memory_costs {
    uint32_t hit_cycles;       /* the thesis's L1 cache: 1 */
    uint32_t directory_cycles; /* a look into the directory: 10 */
    uint32_t dram_cycles;      /* the home reads the line from memory: 100, Graphite's [dram] latency */
    uint32_t line_flits;       /* a line on the mesh: 18, as everywhere here */
    uint32_t invalidate_flits; /* the home sends an invalidation each so many cycles: 3, a packet's flits */
    uint32_t system_cycles;    /* into a system call and out of it: 100; ours */
    uint32_t server_cycles;    /* a request, or a woken thread, at the server: 100; ours */
};

struct sim_program_config {
    uint32_t n_cores;                 /* 1 to SIM_MAX_CORES, in the smallest square mesh that holds them */
    uint32_t n_threads;               /* 1 to SIM_MAX_CORES; 0: as many as cores. More share cores (program_share.h) */
    struct hw_optical_config optical; /* its n_cores is the program's */
    struct sim_memory_costs memory;
    struct hw_timing timing; /* of the mesh */
    size_t stack_bytes;      /* of each thread: 64 KiB */
    /* For tests: each access of a shared word takes up to so many cycles more, at random by the seed. 0 */
    uint32_t jitter_cycles;
    uint64_t jitter_seed;
};

/* 64 cores, the defaults of the optical network and the mesh. */
struct sim_program_config sim_program_config_default(void);

struct sim_program;
typedef void sim_program_body(struct sim_program *program, void *argument);

/* NULL: the chip is impossible, or there is no memory; *error says why. */
struct sim_program *sim_program_new(const struct sim_program_config *config, struct sim_error *error);
void sim_program_free(struct sim_program *program);
/* SIM_USAGE: there are as many threads already. */
enum sim_status sim_program_spawn(struct sim_program *program, sim_program_body *body, void *argument,
                                  struct sim_error *error);
/*
 * SIM_OK, SIM_NO_MEMORY; SIM_STUCK: a thread waits for ever; SIM_USAGE: a call that cannot be. *error names the thread,
 * and the channel or word.
 */
enum sim_status sim_program_run(struct sim_program *program, struct sim_error *error);

/* Cycles until the last thread has ended; events so far, the host's measure of work. */
uint64_t sim_program_cycles(const struct sim_program *program);
uint64_t sim_program_n_events(const struct sim_program *program);
/* Threads take messages that they will find before other threads reach that time: its max_buffer may be too small. */
const struct hw_optical *sim_program_optical(const struct sim_program *program);
/* Lines that have travelled to a core. */
uint64_t sim_program_n_transfers(const struct sim_program *program);

/* ---- for threads ---- */

uint32_t sim_self(const struct sim_program *program); /* its number */
uint64_t sim_cycles(const struct sim_program *program);
void sim_compute(struct sim_program *program, uint64_t cycles);
/* Ends the run with this text. Does not return. */
void sim_program_fail(struct sim_program *program, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/* How many words can still be made. */
uint32_t sim_n_words(struct sim_program *program);
/* n words that begin with a line, all 0; the number of the first. For threads, and before the run. */
uint32_t sim_words(struct sim_program *program, uint32_t n);
uint64_t sim_load(struct sim_program *program, uint32_t word);
void sim_store(struct sim_program *program, uint32_t word, uint64_t value);
/* The value before. */
uint64_t sim_fetch_add(struct sim_program *program, uint32_t word, uint64_t n);
uint64_t sim_swap(struct sim_program *program, uint32_t word, uint64_t value);
/* The value before: it was swapped if that is `expected`. */
uint64_t sim_compare_and_swap(struct sim_program *program, uint32_t word, uint64_t expected, uint64_t value);
/* Spins in its own cache until the word is another one than `old`: that word. */
uint64_t sim_spin_while(struct sim_program *program, uint32_t word, uint64_t old);

/* Sleeps if the word is `expected`. */
void sim_futex_wait(struct sim_program *program, uint32_t word, uint64_t expected);
/* How many of at most n threads were woken. */
uint32_t sim_futex_wake(struct sim_program *program, uint32_t word, uint32_t n);
/*
 * A barrier that the server counts, as Graphite's CarbonBarrierWait: one request for each thread, and no shared word is
 * looked at. `word`: 0 at first, the server's own; no other call is made with it. n_threads: at least 1.
 */
void sim_server_barrier(struct sim_program *program, uint32_t word, uint32_t n_threads);

/* A message, as it was retrieved. */
struct sim_message {
    struct hw_optical_message head;
    uint64_t sent_cycles;
    const void *data; /* head.size bytes, valid until the thread's next call */
};

/* How many channels can still be made. */
uint32_t sim_n_channels(struct sim_program *program);
/* The number of a channel that no call has returned before. For threads, and before the run if there is one. */
uint32_t sim_channel(struct sim_program *program);
void sim_subscribe(struct sim_program *program, uint32_t channel);
void sim_set_filter(struct sim_program *program, struct hw_filter filter);
/* Waits while a lambda queue is full, if there is a limit. */
void sim_send(struct sim_program *program, uint32_t channel, uint32_t signature, uint32_t tag, const void *data,
              uint32_t size);
/* A look into the message buffer, of check_cycles. False: there is no message. */
bool sim_receive(struct sim_program *program, uint32_t channel, struct sim_message *message);
/* Waits for a message; the look that finds it takes check_cycles. */
void sim_wait_receive(struct sim_program *program, uint32_t channel, struct sim_message *message);
/* The same, until that time. False: there is no message. */
bool sim_wait_receive_until(struct sim_program *program, uint32_t channel, uint64_t deadline_cycles,
                            struct sim_message *message);

#endif
