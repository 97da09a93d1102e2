/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * handed-trace FILE : a trace of a lock that two threads hand over to each other, made by hand. Each holds it for one
 * microsecond, and each wake-up takes ten. No program does that in each run on a busy machine: threads that lose their
 * processors do not meet.
 */
#include <stdio.h>

#include "trace.h"

enum { ROUNDS = 400, HOLD_NS = 1000, WAKE_NS = 10000, CALL_NS = 100 };

static struct sbt_trace_writer *writer;
static uint64_t ended_ns[2];

static void call(uint32_t thread, uint8_t op, uint64_t at_ns, uint64_t took_ns, uint64_t number) {
    bool is_end = op == SBT_TRACE_THREAD_END;
    const struct sbt_trace_event e = {.op = op,
                                      .type = is_end ? 0 : SBT_TRACE_MUTEX,
                                      .object = is_end ? SBT_TRACE_NONE : 0,
                                      .other = SBT_TRACE_NONE,
                                      .site = SBT_TRACE_NONE,
                                      .order = number,
                                      .at_ns = at_ns,
                                      .took_ns = took_ns,
                                      .work_ns = at_ns - ended_ns[thread]};
    ended_ns[thread] = at_ns + took_ns;
    if (sbt_trace_append(writer, thread, &e) != 0)
        perror("handed-trace");
}

int main(int argc, char **argv) {
    writer = argc == 2 ? sbt_trace_create_timed(argv[1], "a queue", "by hand") : NULL;
    if (writer == NULL)
        return 2;
    uint64_t got_ns = CALL_NS; /* when the lock was got */
    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint32_t thread = i % 2;
        call(thread, SBT_TRACE_MUTEX_LOCK, ended_ns[thread], got_ns - ended_ns[thread], i + 1);
        call(thread, SBT_TRACE_MUTEX_UNLOCK, got_ns + HOLD_NS, CALL_NS, 0);
        got_ns += HOLD_NS + CALL_NS + WAKE_NS;
    }
    call(0, SBT_TRACE_THREAD_END, ended_ns[0], 0, 0);
    call(1, SBT_TRACE_THREAD_END, ended_ns[1], 0, 0);
    return sbt_trace_finish(writer) == 0 ? 0 : 1;
}
