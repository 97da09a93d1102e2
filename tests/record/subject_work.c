/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Of record-subject: work of known length, and files that say how long it was. */
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/checks.h"
#include "lib/clock.h"
#include "subject.h"

static atomic_long all_spent_ns; /* by all threads together */

/* Longer, if the machine's own work was put down to the thread. */
long subject_compute(long ns) {
    int64_t start = now_ns(CLOCK_THREAD_CPUTIME_ID), spent;
    do
        spent = now_ns(CLOCK_THREAD_CPUTIME_ID) - start;
    while (spent < ns);
    atomic_fetch_add(&all_spent_ns, (long)spent);
    return (long)spent;
}

void subject_tell_list(const char *name, int n, const long *list) {
    FILE *file = fopen(name, "we");
    CHECK(file != NULL);
    for (int i = 0; file != NULL && i < n; i++)
        fprintf(file, "%s%ld", i > 0 ? "," : "", list[i]);
    OK_ERRNO(file != NULL ? fclose(file) : -1);
}

void subject_tell_spent(void) {
    long all = atomic_load(&all_spent_ns);
    subject_tell_list("spent", 1, &all);
}
