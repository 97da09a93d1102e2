/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See locking-free-lib.c: the process gets as far as here, and its allocator's lock works. */
#include <stdio.h>
#include <stdlib.h>

extern int n_locked_frees;

int main(void) {
    int before = n_locked_frees;
    void *volatile block = malloc(100); /* volatile: the pair would be optimized away */
    free(block);
    printf("alive, frees under the lock: %d\n", n_locked_frees - before);
    return n_locked_frees - before != 1;
}
