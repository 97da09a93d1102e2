/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A static mutex with a name that another source file of the program gives to its own. */
#include <pthread.h>

pthread_mutex_t *delegate_same(void);

static pthread_mutex_t same = PTHREAD_MUTEX_INITIALIZER;

pthread_mutex_t *delegate_same(void) {
    return &same;
}
