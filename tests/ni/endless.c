/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* main returns after so many ms, while 16 threads come to barriers without end, four to each. */
#include "subject.h"

static pthread_barrier_t barriers[4];

static void *come(void *barrier) {
    for (;;)
        pthread_barrier_wait(barrier);
    return NULL;
}

int main(int argc, char **argv) {
    for (int i = 0; i < 4; i++)
        CHECK(pthread_barrier_init(&barriers[i], NULL, 4) == 0);
    for (int i = 0; i < 16; i++)
        start(come, &barriers[i / 4]);
    usleep(1000 * argument(argc, argv, 1, 100));
    return 0;
}
