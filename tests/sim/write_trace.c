/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A trace from lines on standard input, for tests of the command:
 *
 *   write-trace FILE [profile]  each line: THREAD OPERATION [object=N] [other=N] [work=NS] [order=N] [relock=N]
 * [size=N] [type=N]
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "trace.h"

static int operation(const char *name) {
    for (unsigned i = 0; i < SBT_TRACE_N_OPS; i++)
        if (strcmp(sbt_trace_op_name(i), name) == 0)
            return (int)i;
    return -1;
}

static uint8_t type_of(int op) {
    return op <= SBT_TRACE_THREAD_END       ? SBT_TRACE_NO_OBJECT
           : op <= SBT_TRACE_MUTEX_UNLOCK   ? SBT_TRACE_MUTEX
           : op <= SBT_TRACE_COND_BROADCAST ? SBT_TRACE_COND
           : op == SBT_TRACE_BARRIER_WAIT   ? SBT_TRACE_BARRIER
           : op <= SBT_TRACE_RWLOCK_UNLOCK  ? SBT_TRACE_RWLOCK
           : op <= SBT_TRACE_SEM_POST       ? SBT_TRACE_SEM
                                            : SBT_TRACE_SPIN;
}

static int set(struct sbt_trace_event *e, const char *name, uint64_t value) {
    if (strcmp(name, "object") == 0)
        e->object = (uint32_t)value;
    else if (strcmp(name, "other") == 0)
        e->other = (uint32_t)value;
    else if (strcmp(name, "work") == 0)
        e->work_ns = value;
    else if (strcmp(name, "order") == 0)
        e->order = value;
    else if (strcmp(name, "relock") == 0)
        e->relock = value;
    else if (strcmp(name, "result") == 0)
        e->result = (uint16_t)value;
    else if (strcmp(name, "took") == 0)
        e->took_ns = value;
    else if (strcmp(name, "size") == 0)
        e->size = (uint32_t)value;
    else if (strcmp(name, "type") == 0)
        e->type = (uint8_t)value;
    else
        return -1;
    return 0;
}

/* In which calls that did not wait are no events, and a lock's number is that of the unlock that ended its wait. */
static bool mark_as_profile(const char *path) {
    const struct trace_preamble preamble = TRACE_PREAMBLE(TRACE_GENERATED | TRACE_PROFILE);
    FILE *file = fopen(path, "r+");
    return file != NULL && fwrite(&preamble, sizeof preamble, 1, file) == 1 && fclose(file) == 0;
}

int main(int argc, char **argv) {
    bool profile = argc == 3 && strcmp(argv[2], "profile") == 0;
    struct sbt_trace_writer *writer = argc == 2 || profile ? sbt_trace_create(argv[1], "write-trace") : NULL;
    char line[256];
    if (writer == NULL)
        return 2;
    while (fgets(line, sizeof line, stdin) != NULL) {
        char *word = strtok(line, " \n"), *name = strtok(NULL, " \n");
        if (word == NULL)
            continue;
        int op = name != NULL ? operation(name) : -1;
        struct sbt_trace_event e = {.op = (uint8_t)op,
                                    .type = type_of(op),
                                    .object = SBT_TRACE_NONE,
                                    .other = SBT_TRACE_NONE,
                                    .site = SBT_TRACE_NONE};
        uint32_t thread = (uint32_t)strtoul(word, NULL, 10);
        for (char *field; op >= 0 && (field = strtok(NULL, " \n")) != NULL;) {
            char *value = strchr(field, '=');
            if (value == NULL || (*value = '\0', set(&e, field, strtoull(value + 1, NULL, 10)) != 0))
                op = -1;
        }
        if (op < 0 || sbt_trace_append(writer, thread, &e) != 0) {
            fprintf(stderr, "write-trace: bad line of thread %u\n", thread);
            return 2;
        }
    }
    return sbt_trace_finish(writer) != 0 || (profile && !mark_as_profile(argv[1]));
}
