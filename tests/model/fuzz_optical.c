/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libFuzzer target: no stream of calls, with filters, channels and sizes in range or not, makes an optical network do
 * anything but what the reference does. The first three bytes choose the network.
 */
#include "optical_calls.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct optical_subject subject;
    struct optical_calls calls = {.data = data, .size = size};
    struct hw_optical_config config = optical_calls_config(&calls);
    if (!optical_subject_init(&subject, &config))
        abort();
    for (const char *why; optical_calls_next(&calls, &subject, &why);)
        if (why != NULL) {
            fprintf(stderr, "%s\n", why);
            abort();
        }
    return 0;
}
