/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The engine `glibc` passes through: abi/ hands every object to sbt_real, so this engine is asked for no operation. */
#include "engine/engine.h"

static int start(const struct sbt_options *options) {
    (void)options;
    return 0;
}

static void nothing(void) {}

const struct sbt_engine sbt_engine_glibc = {
    .name = "glibc",
    .passes_through = true,
    .start = start,
    .thread_enter = nothing,
    .thread_exit = nothing,
    .fork_child = nothing,
};
