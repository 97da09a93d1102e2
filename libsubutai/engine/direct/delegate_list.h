/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which mutexes are delegated (delegate.h): for the engine's start and end. */
#ifndef SBT_ENGINE_DIRECT_DELEGATE_LIST_H
#define SBT_ENGINE_DIRECT_DELEGATE_LIST_H

#include <pthread.h>
#include <stdint.h>

/*
 * At the start, with the options' values, of which the text stays where it is. Reads the files of the program and its
 * libraries.
 */
void direct_delegate_start(const char *text, uint32_t n_servers);

/* In each thread, when it begins. */
void direct_delegate_thread_enter(void);

/* The program initialises a mutex there. */
void direct_mutex_init(pthread_mutex_t *m, const void *site);

/* At the end: say what has been delegated, at verbosity 2. */
void direct_delegate_stop(void);

#endif
