/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Two OpenMP threads that meet again and again, until the file is gone. */
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv) {
    long n = 0;
    while (argc > 1 && access(argv[1], F_OK) == 0) {
#pragma omp parallel num_threads(2) reduction(+ : n)
        n++;
    }
    puts(n % 2 == 0 ? "done" : "lost");
    return 0;
}
