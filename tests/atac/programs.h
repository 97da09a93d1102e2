/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Programs on the interface that each way of a run has to pass, with a core for each thread and with shared cores. */
#ifndef PROGRAMS_H
#define PROGRAMS_H

#include "ways.h"

enum { MOST = 64, EACH = 20, TASKS = 200, CHILDREN = 2, ALL = TASKS * (1 + CHILDREN) };

extern int n; /* threads of the run, set by the test */
extern VirtualChannel *channel;
extern BarrierMaster *master;
extern DWorkPileMaster *piles;
extern DWorkPile *pile_of[MOST];

/* Before a run: the channel and the barrier. After it: they are gone. */
void make(void *argument);
void drop(void);
/* All ports are there before the first message. */
VirtualChannelPort *port_when_all_are_ready(void);

/* Each thread sends EACH messages, and has those of all others, in the order of each sender. */
void talks(void *argument);
/* Four threads, each with a filter of its own. */
void filters(void *argument);
/* Barriers that no thread leaves before all have come. */
void meets(void *argument);
/* A run of these; the result is its cycles. */
unsigned long long passes_barriers(const ATAC_options *o);

/* `argument`: the kind of the piles, an int. */
void make_piles(void *argument);
/* ALL tasks, of which thread 0 has TASKS at first: each is run once. */
void passes_stealing(const ATAC_options *o, int *kind);

#endif
