/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The fuzz target without a fuzzer, for compilers that have none: a fixed number of random inputs, or the files named,
 * such as a crash that libFuzzer has left behind. Prints TAP.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { N_INPUTS = 4000, MAX_SIZE = 4096 };

int main(int argc, char **argv) {
    static uint8_t data[MAX_SIZE];
    puts("1..1");
    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        if (!file) {
            perror(argv[i]);
            return 1;
        }
        size_t size = fread(data, 1, sizeof data, file);
        fclose(file);
        LLVMFuzzerTestOneInput(data, size);
    }
    uint64_t state = 1, n_bytes = 0;
    int n = argc > 1 ? 0 : N_INPUTS;
    for (int i = 0; i < n; i++) {
        size_t size = 0;
        for (size_t end = 1 + (size_t)i % MAX_SIZE; size < end; size++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            data[size] = (uint8_t)(state >> 56);
        }
        LLVMFuzzerTestOneInput(data, size);
        n_bytes += size;
    }
    printf("ok 1 - %d inputs, %llu bytes\n", argc > 1 ? argc - 1 : n, (unsigned long long)n_bytes);
    return 0;
}
