/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of `ordered` share: the output is a sum in which the order of the additions counts. */
#ifndef TESTS_COMMAND_ORDERED_H
#define TESTS_COMMAND_ORDERED_H

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 5, ROUNDS = 100, YIELDS = 16 };

/* Each sum is under an object of its own. */
enum { MUTEX, RWLOCK, SEM, SPIN, N_SUMS };
extern uint64_t sums[N_SUMS];
extern pthread_mutex_t mutex;
extern sem_t sem; /* 1 */
extern atomic_int flag;

void add_to(int which, uint64_t number);
/* To the mutex's sum, with the mutex. */
void locked_add(uint64_t number);
/* For a time that differs from number to number. */
void compute(uint64_t number);
/* Routines: adds its argument again and again; posts `sem`. */
void *counter(void *argument);
void *post(void *unused);

/* Each is an exit status. ordered_memory.c */
int with_allocator(void);
int with_large_stacks(void);
int forked_in_creation(void);
/* ordered_outside.c */
int through_pipe(void);
int through_stdio(void);
int leaves_after_stdio(void);
int through_calls(void);
int through_rings(void);
int through_queues(void);
int loops_of_looks(void);
int looks_within(void);
int dozes(void);
/* ordered_clocks.c */
int clock_set_back(void);
int clock_in_steps(void);
int clock_of_two(void);
int clock_filtered(void);
int waits_of_parts(void);
int waits_of_what_is_left(void);
/* ordered_timers.c */
int notified_often(void);
int begun_from_nowhere(void);
int profiled(void);
/* ordered_stalls.c */
int starved(void);
int stalled(void);
int stalled_at_clock(void);
int stalled_after_wait(void);
int stalled_by_signals(void);
int stalled_by_lost_wake(void);
int stalled_and_naps(void);
int stalled_by_naps(void);
int late_naps(void);
int watched(void);
int late(void);
int filtered_sleep(void);
/* ordered_offers.c */
int served_in_handler(void);
int offer_taken_back(void);
int guest_of_served(void);
int offer_of_ended(void);
int offer_and_fork(void);
int served_and_fork(void);
int way_made(void);
int left_twice(void);
/* ordered_rwlock.c */
int many_writers(void);
int reader_before_writer(void);
int held_up_reader(void);
/* ordered_futex.c */
int restarted(void);
int restarted_in_place(void);
int unmapped(void);
int loaded(const char *library);

#endif
