/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Long random streams of calls on many optical networks: against the reference, the state checked after each call.
 * Usage: optical-property [streams [calls for each [first seed]]]. Prints TAP.
 */
#include "optical_calls.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct optical_subject subject;

/* What has happened, in all streams together: a stream in which nothing does proves nothing. */
struct seen {
    uint64_t n_sent, n_filtered, n_received, n_refused, n_overflowed, n_clusters;
};

static void add(struct seen *seen) {
    for (uint32_t i = 0; i < subject.net.config.n_cores; i++)
        seen->n_sent += subject.ref.n_sent[i];
    seen->n_filtered += subject.ref.n_filtered;
    seen->n_received += subject.ref.n_received;
    seen->n_refused += subject.ref.n_refused;
    seen->n_overflowed += subject.net.overflowed;
    seen->n_clusters += subject.net.config.shape == HW_OPTICAL_CLUSTERS;
}

int main(int argc, char **argv) {
    bool wrong = argc > 1 && strcmp(argv[1], "--wrong") == 0; /* a mistake is in the code: it must be found */
    uint32_t n_streams = argc > 1 && !wrong ? (uint32_t)strtoul(argv[1], NULL, 10) : 400;
    uint32_t n_calls = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 2000;
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    struct seen seen = {0};
    for (uint32_t stream = 0; stream < n_streams; stream++) {
        struct optical_calls calls = {.random = (seed + stream) * UINT64_C(0x9e3779b97f4a7c15) | 1};
        struct hw_optical_config config = optical_calls_config(&calls);
        const char *why = NULL;
        if (!optical_subject_init(&subject, &config)) {
            printf("Bail out! no network of %u cores\n", config.n_cores);
            return 1;
        }
        for (uint32_t i = 0; i < n_calls && why == NULL; i++)
            optical_calls_next(&calls, &subject, &why);
        if (why != NULL) {
            printf("1..1\n%sok 1 - stream %u (seed %" PRIu64 "): %s\n", wrong ? "" : "not ", stream, seed + stream,
                   why);
            return !wrong;
        }
        add(&seen);
    }
    if (wrong) {
        printf("1..1\nnot ok 1 - the mistake was not found\n");
        return 1;
    }
    printf("1..2\nok 1 - %u streams of %u calls: the reference's answers, a valid network after each\n", n_streams,
           n_calls);
    printf("# sent %" PRIu64 ", filtered %" PRIu64 ", received %" PRIu64 ", refused %" PRIu64 ", overflowed %" PRIu64
           ", with clusters %" PRIu64 "\n",
           seen.n_sent, seen.n_filtered, seen.n_received, seen.n_refused, seen.n_overflowed, seen.n_clusters);
    bool everything = seen.n_sent > n_streams && seen.n_filtered > n_streams && seen.n_received > n_streams &&
                      seen.n_refused > n_streams && seen.n_overflowed > 0 && seen.n_clusters > n_streams / 4;
    printf("%sok 2 - everything happened often\n", everything ? "" : "not ");
    return everything ? 0 : 1;
}
