/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* CPython's interpreter lock; see python_lock.h. */
#include "python_lock.h"

#include "symbols.h"

struct rep_region python_lock_of(const struct sbt_trace *trace) {
    struct symbols *symbols = symbols_new();
    struct rep_region region = {.size = 0};
    struct sbt_trace_module m;
    for (uint32_t i = 0; sbt_trace_module(trace, i, &m); i++)
        if (symbols_variable(symbols, m.path, m.start, m.offset, PYTHON_LOCK_IN, &region.address, &region.size))
            break;
    symbols_free(symbols);
    return region;
}
