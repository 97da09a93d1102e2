/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Libraries that make futex calls themselves and are served: libgomp, as it is in memory (os/site_find.h,
 * os/site_stub.h). A library is served before a thread is created that may run it.
 */
#ifndef SBT_CORE_SITES_H
#define SBT_CORE_SITES_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* How a site's call is served: given by abi/, which is above. */
struct sbt_sites_by {
    /* Called by a stub, with a system call's registers; keeps the vector registers XMM0 to 15, or all; NULL: none */
    const void *narrow, *wide;
    void (*adopt)(uintptr_t from, uintptr_t to);  /* this code's futex calls are served from now on; may block */
    void (*forget)(uintptr_t from, uintptr_t to); /* that code has been unloaded; may block */
};

/*
 * Serve all libraries that are loaded and not served yet, and forget those that have been unloaded: what is loaded in
 * the place of one is judged anew. May block for another thread that does it.
 */
void sbt_sites_serve(const struct sbt_sites_by *by);

/* The same in the way in which it was done last. */
void sbt_sites_serve_new(void);

/* Is this library served? False also if it need not be. */
bool sbt_sites_are_served(const struct dl_phdr_info *library);

/* Why this library could not be served: the end of a sentence "LIBRARY ...". NULL: it could, or was not looked at. */
const char *sbt_sites_why_not(const struct dl_phdr_info *library);

/*
 * Do served libraries spin before they sleep? They do natively, because a sleep is dear: for 10 ms if there are no more
 * OpenMP threads than CPUs. While threads are switched they should not: a look costs more than a switch, and a thread
 * that spins keeps its carrier from the thread that it waits for. Nothing where the user has chosen how they wait.
 */
void sbt_sites_spin(bool yes);

/*
 * So many more threads have been created by served libraries, or fewer; or, with 0, the number of usable CPUs has
 * changed. With more such threads than CPUs served libraries spin for a moment only: a thread that spins keeps its core
 * from the thread that it waits for. libgomp does so for the threads and CPUs that it knows of: those of one copy of
 * it, and the CPUs that there were at its start. Never blocks.
 */
void sbt_sites_crowd(int n_more);

/* Threads of teams: those that served libraries have created, and the thread that creates them; 0: there are none. */
uint32_t sbt_sites_n_threads(void);

/*
 * Do other programs want the CPUs (core/beside.h)? Then served libraries spin for a moment only, however few threads
 * they have: the thread that one waits for may have no CPU, and gets none from one that spins. Never blocks.
 */
void sbt_sites_beside(bool others);

/* Is that an address in the code of a served library? */
bool sbt_sites_have(const void *code);

/* In a forked child, before it creates threads. */
void sbt_sites_fork_child(void);

#endif
