/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Imported functions that tell against waiting by switching. One table for the library, which decides, and the command,
 * which explains. Nothing here depends on the rest.
 */
#ifndef SBT_SWITCH_REFUSED_H
#define SBT_SWITCH_REFUSED_H

#include <stdbool.h>
#include <stddef.h>

/* NULL, or how the sentence "FILE uses SYMBOL, which ..." ends. */
const char *sbt_switch_refused(const char *symbol);

/* Likewise of a library that is loaded at all: "FILE is loaded, which ...". `file` with any directory. */
const char *sbt_switch_refused_library(const char *file);

/* Whether the main thread must stay on its own kernel thread because the function is imported. */
bool sbt_switch_main_stays(const char *symbol);

/* Whether it makes waits of a thread of the caller's choice fail; whether that thread is brought home for it. */
bool sbt_switch_is_interruption(const char *symbol);
bool sbt_switch_is_summons(const char *symbol);

/* Whether it changes the signal mask; whether it may restore one without being called for that. */
bool sbt_switch_is_mask(const char *symbol);
bool sbt_switch_is_jump(const char *symbol);

/* The C library's own parts, whose imports say nothing about the program. */
bool sbt_switch_is_libc(const char *file);

#endif
