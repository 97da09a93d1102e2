/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <pthread.h>

#include "engine/direct/direct.h"

/*
 * The clean-up is for a cancellation that acts inside of pthread_setcanceltype. One that comes behind that keeps what
 * the thread has got, as under glibc.
 */
void direct_be_asynchronous_again(void (*give_back)(void *), void *got) {
    if (got == NULL) {
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
        return;
    }
    pthread_cleanup_push(give_back, got);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    pthread_cleanup_pop(0);
}
