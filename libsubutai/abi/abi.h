/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the exported functions. Each of them decides whose the object is and passes on; nothing more. */
#ifndef SBT_ABI_ABI_H
#define SBT_ABI_ABI_H

#include "abi/prefixed.h"
#include "core/arch.h"
#include "core/init.h"
#include "core/object.h"
#include "core/real.h"
#include "core/thread.h"
#include "engine/engine.h"

#define SBT_EXPORT __attribute__((visibility("default")))
/* Define `alias` as another name of the function `name`, with its attributes. */
#if defined(__has_attribute) && __has_attribute(copy)
#define SBT_LIKE(name) __attribute__((copy(name)))
#else
#define SBT_LIKE(name)
#endif
#define SBT_ALIAS(alias_name, name)                                                                                    \
    extern __typeof(name) alias_name SBT_LIKE(name) __attribute__((visibility("default"), alias(SBT_STRING(name))))
#define SBT_STRING(name) SBT_STRING_(name)
#define SBT_STRING_(name) #name

/* For objects that are glibc's: its functions are known once the library is initialised, which this call may do. */
#define THEIRS(call) (sbt_init(), sbt_real.call)

/* The kernel thread of that id has been sent a signal (home.c). */
void sbt_sent_to_tid(uint32_t tid, int signal);

#endif
