/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * C11's mtx_*, cnd_*, call_once. glibc's own never call an interposed pthread function, so they are defined anew over
 * ours. As in glibc, mtx_t and cnd_t are pthread_mutex_t and pthread_cond_t under other names.
 */
#include <errno.h>
#include <string.h>
#include <threads.h>

#include "abi/abi.h"

_Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t) && sizeof(cnd_t) == sizeof(pthread_cond_t) &&
                   sizeof(once_flag) == sizeof(pthread_once_t),
               "C11 objects are pthread objects");

#define MUTEX(m) ((pthread_mutex_t *)(m))
#define COND(c) ((pthread_cond_t *)(c))

static int result(int r) {
    switch (r) {
    case 0:
        return thrd_success;
    case ENOMEM:
        return thrd_nomem;
    case ETIMEDOUT:
        return thrd_timedout;
    case EBUSY:
        return thrd_busy;
    default:
        return thrd_error;
    }
}

SBT_EXPORT int mtx_init(mtx_t *m, int type) {
    sbt_init();
    if (sbt_all_theirs != 0)
        return sbt_real.mtx_init(m, type);
    if (type != mtx_plain && type != mtx_timed && type != (mtx_plain | mtx_recursive) &&
        type != (mtx_timed | mtx_recursive))
        return thrd_error;
    memset(m, 0, sizeof *m);
    sbt_mutex_of(MUTEX(m))->kind = (type & mtx_recursive) != 0 ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_TIMED_NP;
    if (sbt_engine.mutex_init != NULL)
        sbt_engine.mutex_init(MUTEX(m), __builtin_return_address(0));
    return thrd_success;
}

SBT_EXPORT void mtx_destroy(mtx_t *m) {
    pthread_mutex_destroy(MUTEX(m));
}

SBT_EXPORT int mtx_lock(mtx_t *m) {
    return result(pthread_mutex_lock(MUTEX(m)));
}

SBT_EXPORT int mtx_trylock(mtx_t *m) {
    return result(pthread_mutex_trylock(MUTEX(m)));
}

SBT_EXPORT int mtx_timedlock(mtx_t *m, const struct timespec *at) {
    return result(pthread_mutex_timedlock(MUTEX(m), at));
}

SBT_EXPORT int mtx_unlock(mtx_t *m) {
    return result(pthread_mutex_unlock(MUTEX(m)));
}

SBT_EXPORT int cnd_init(cnd_t *c) {
    return result(pthread_cond_init(COND(c), NULL));
}

SBT_EXPORT void cnd_destroy(cnd_t *c) {
    pthread_cond_destroy(COND(c));
}

SBT_EXPORT int cnd_wait(cnd_t *c, mtx_t *m) {
    return result(pthread_cond_wait(COND(c), MUTEX(m)));
}

SBT_EXPORT int cnd_timedwait(cnd_t *c, mtx_t *m, const struct timespec *at) {
    return result(pthread_cond_timedwait(COND(c), MUTEX(m), at));
}

SBT_EXPORT int cnd_signal(cnd_t *c) {
    return result(pthread_cond_signal(COND(c)));
}

SBT_EXPORT int cnd_broadcast(cnd_t *c) {
    return result(pthread_cond_broadcast(COND(c)));
}

SBT_EXPORT void call_once(once_flag *flag, void (*initialise)(void)) {
    pthread_once((pthread_once_t *)flag, initialise);
}
