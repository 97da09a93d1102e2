/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libFuzzer target: no stream of packets, well-formed or not, can damage a scratchpad or make the state machine do
 * anything but what the reference does. The first two bytes choose the machine.
 */
#include "requests.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct subject subject;
    struct request_source source = {.data = data, .size = size};
    uint32_t number;
    struct hw_config config = request_config(&source, &number);
    if (!subject_init(&subject, &config, number))
        abort();
    for (struct hw_packet packet; request_next(&source, &subject, &packet);) {
        const char *why = subject_step(&subject, &packet);
        if (why) {
            fprintf(stderr, "%08x %08x %08x: %s\n", packet.flit[0], packet.flit[1], packet.flit[2], why);
            abort();
        }
    }
    return 0;
}
