/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Long random request streams on many machines: the state machine against the reference, the scratchpad checked after
 * every step. Usage: property [streams [requests for each [first seed]]]. Prints TAP.
 */
#include "requests.h"

#include <stdio.h>
#include <stdlib.h>

static struct subject subject;

int main(int argc, char **argv) {
    uint32_t n_streams = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1500;
    uint32_t n_requests = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 5000;
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    uint64_t n_statuses[4] = {0}, n_states[HW_N_STATES] = {0}, n_answers[32] = {0};
    uint32_t deepest = 0;
    puts("1..2");
    for (uint32_t stream = 0; stream < n_streams; stream++) {
        struct request_source source = {.random = (seed + stream) * UINT64_C(0x9e3779b97f4a7c15) | 1};
        uint32_t number;
        struct hw_config config = request_config(&source, &number);
        if (!subject_init(&subject, &config, number)) {
            printf("Bail out! no machine with %u tiles, %u + %u elements\n", config.n_tiles, config.n_control,
                   config.n_queue);
            return 1;
        }
        for (uint32_t i = 0; i < n_requests; i++) {
            struct hw_packet packet;
            request_next(&source, &subject, &packet);
            const char *why = subject_step(&subject, &packet);
            if (why) {
                printf("not ok 1 - stream %u (seed %llu), request %u %08x %08x %08x: %s\n", stream,
                       (unsigned long long)(seed + stream), i, packet.flit[0], packet.flit[1], packet.flit[2], why);
                return 1;
            }
            n_statuses[subject.step.status]++;
            n_states[subject.step.state]++;
            for (uint32_t k = 0; k < subject.step.n_outputs; k++)
                n_answers[hw_packet_decode(&subject.ni.spm.layout, &subject.outputs[k].packet).op]++;
        }
        deepest = subject.ni.stats.max_queue > deepest ? subject.ni.stats.max_queue : deepest;
    }
    printf("ok 1 - %u streams of %u requests: the reference's answers, a valid scratchpad after each\n", n_streams,
           n_requests);
    printf("# done %llu, held %llu, refused %llu, dropped %llu; at most %u elements in use\n",
           (unsigned long long)n_statuses[0], (unsigned long long)n_statuses[1], (unsigned long long)n_statuses[2],
           (unsigned long long)n_statuses[3], deepest);
    /* A stream that never gets somewhere proves nothing about it. */
    bool everywhere = n_statuses[1] && n_statuses[2] && n_statuses[3] && deepest > 50;
    for (uint32_t i = 0; i < HW_N_STATES; i++) {
        printf("# %-20s %llu\n", hw_state_name((enum hw_state)i), (unsigned long long)n_states[i]);
        everywhere &= n_states[i] > n_requests / 10;
    }
    for (uint32_t op = HW_OP_GRANT; op <= HW_OP_NACK; op++)
        everywhere &= n_answers[op] > 20;
    printf("%sok 2 - every state, every answer and every status was seen\n", everywhere ? "" : "not ");
    return everywhere ? 0 : 1;
}
