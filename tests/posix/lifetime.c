/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lifetimes of objects as real programs have them: destroyed by the last user right after unlock, destroyed and made
 * again, freed without destroy and their memory reused, copied from an initialiser, or simply zeroed memory.
 * Source: POSIX.1-2017 pthread_mutex_destroy (the reference-count example); the rest is what glibc's objects allow: no
 * object has state anywhere but in its own bytes.
 */
#include "topic.h"

#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static atomic_int counter, entered;

/* --- destroy by the last user ------------------------------------------------------------------------------------- */
struct counted {
    pthread_mutex_t mutex;
    int users;
};
static void *put(void *argument) {
    struct counted *o = argument;
    OK(pthread_mutex_lock(&o->mutex));
    int left = --o->users;
    OK(pthread_mutex_unlock(&o->mutex));
    if (left == 0) {
        OK(pthread_mutex_destroy(&o->mutex));
        memset(o, 0xa5, sizeof *o);
        free(o);
    }
    return NULL;
}
static void last_user_destroys(int type) {
    pthread_mutexattr_t attr;
    OK(pthread_mutexattr_init(&attr));
    OK(pthread_mutexattr_settype(&attr, type));
    for (int round = 0; round < 300; round++) {
        struct counted *o = malloc(sizeof *o);
        pthread_t threads[4];
        CHECK(o != NULL);
        OK(pthread_mutex_init(&o->mutex, &attr));
        o->users = 4;
        for (int i = 0; i < 4; i++)
            threads[i] = thread_start(put, o);
        for (int i = 0; i < 4; i++)
            thread_join(threads[i]);
    }
}
TEST(mutex_destroy__by_last_user_right_after_unlock,
     "300 rounds of POSIX's example: the last of 4 users unlocks, destroys, "
     "overwrites and frees the mutex") {
    last_user_destroys(PTHREAD_MUTEX_NORMAL);
}
TEST(mutex_destroy__recursive_by_last_user, "the same with a recursive mutex") {
    last_user_destroys(PTHREAD_MUTEX_RECURSIVE);
}
TEST(mutex_destroy__errorcheck_by_last_user, "the same with an errorcheck mutex") {
    last_user_destroys(PTHREAD_MUTEX_ERRORCHECK);
}
/*
 * An unlock may not touch the object once another thread can have it, because that thread may unmap it. The mapping's
 * end makes a late access a fault.
 */
static void *lock_unmap(void *argument) {
    struct counted *o = argument;
    OK(pthread_mutex_lock(&o->mutex));
    OK(pthread_mutex_unlock(&o->mutex));
    OK(pthread_mutex_destroy(&o->mutex));
    SYS(munmap(o, (size_t)sysconf(_SC_PAGESIZE)));
    return NULL;
}
TEST(mutex_unlock__object_may_be_unmapped_by_the_next_owner,
     "300 times the next owner unlocks and unmaps the mutex's page") {
    for (int i = 0; i < 300; i++) {
        struct counted *o =
            mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(o != MAP_FAILED);
        OK(pthread_mutex_lock(&o->mutex));
        pthread_t t = thread_start(lock_unmap, o);
        if (i % 3 == 0)
            sleep_ms(1);
        OK(pthread_mutex_unlock(&o->mutex));
        thread_join(t);
    }
}
static void *wait_unmap(void *semaphore) {
    SYS(sem_wait(semaphore));
    SYS(sem_destroy(semaphore));
    SYS(munmap(semaphore, (size_t)sysconf(_SC_PAGESIZE)));
    return NULL;
}
TEST(sem_post__object_may_be_unmapped_by_the_waiter,
     "300 times the waiter unmaps the semaphore's page as soon as it passed") {
    for (int i = 0; i < 300; i++) {
        sem_t *s =
            mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(s != MAP_FAILED);
        SYS(sem_init(s, 0, 0));
        pthread_t t = thread_start(wait_unmap, s);
        if (i % 3 == 0)
            sleep_ms(1);
        SYS(sem_post(s));
        thread_join(t);
    }
}
struct on_stack {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool done;
};
static void *finish(void *argument) {
    struct on_stack *o = argument;
    OK(pthread_mutex_lock(&o->mutex));
    o->done = true;
    OK(pthread_cond_signal(&o->cond));
    OK(pthread_mutex_unlock(&o->mutex));
    return NULL;
}
static pthread_t wait_on_stack(void) {
    struct on_stack o = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
    pthread_t t = thread_start(finish, &o);
    OK(pthread_mutex_lock(&o.mutex));
    while (!o.done)
        OK(pthread_cond_wait(&o.cond, &o.mutex));
    OK(pthread_mutex_unlock(&o.mutex));
    OK(pthread_cond_destroy(&o.cond));
    OK(pthread_mutex_destroy(&o.mutex));
    memset((void *)&o, 0xa5, sizeof o);
    __asm__ volatile("" ::"r"(&o) : "memory");
    return t;
}
TEST(cond_signal__object_on_the_waiters_stack,
     "500 completions: mutex and condition live in the frame of the waiter, which "
     "returns while the signaller is on its way out") {
    for (int i = 0; i < 500; i++)
        thread_join(wait_on_stack());
}

/* --- again and again ---------------------------------------------------------------------------------------------- */
static void use_mutex(pthread_mutex_t *m) {
    OK(pthread_mutex_lock(m));
    CHECK_RC(pthread_mutex_trylock(m), EBUSY);
    OK(pthread_mutex_unlock(m));
}
static void use_cond(pthread_cond_t *c) {
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    OK(pthread_cond_signal(c));
    OK(pthread_cond_broadcast(c));
    OK(pthread_mutex_lock(&m));
    CHECK_RC(pthread_cond_timedwait(c, &m, &time_epoch), ETIMEDOUT);
    OK(pthread_mutex_unlock(&m));
}
static void use_rwlock(pthread_rwlock_t *rw) {
    OK(pthread_rwlock_rdlock(rw));
    CHECK_RC(pthread_rwlock_trywrlock(rw), EBUSY);
    OK(pthread_rwlock_unlock(rw));
    OK(pthread_rwlock_wrlock(rw));
    CHECK_RC(pthread_rwlock_tryrdlock(rw), EBUSY);
    OK(pthread_rwlock_unlock(rw));
}
static void use_barrier(pthread_barrier_t *b) {
    CHECK_INT(pthread_barrier_wait(b), PTHREAD_BARRIER_SERIAL_THREAD);
}
static void use_sem(sem_t *s, int value) {
    for (int i = 0; i < value; i++)
        SYS(sem_trywait(s));
    CHECK_ERRNO(sem_trywait(s), EAGAIN);
    SYS(sem_post(s));
    SYS(sem_wait(s));
}
union any {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    pthread_rwlock_t rwlock;
    pthread_barrier_t barrier;
    pthread_spinlock_t spin;
    sem_t sem;
};
static void init_and_use(union any *o, int which, bool destroy) {
    switch (which % 6) {
    case 0:
        OK(pthread_mutex_init(&o->mutex, NULL));
        use_mutex(&o->mutex);
        if (destroy)
            OK(pthread_mutex_destroy(&o->mutex));
        break;
    case 1:
        OK(pthread_cond_init(&o->cond, NULL));
        use_cond(&o->cond);
        if (destroy)
            OK(pthread_cond_destroy(&o->cond));
        break;
    case 2:
        OK(pthread_rwlock_init(&o->rwlock, NULL));
        use_rwlock(&o->rwlock);
        if (destroy)
            OK(pthread_rwlock_destroy(&o->rwlock));
        break;
    case 3:
        OK(pthread_barrier_init(&o->barrier, NULL, 1));
        use_barrier(&o->barrier);
        if (destroy)
            OK(pthread_barrier_destroy(&o->barrier));
        break;
    case 4:
        OK(pthread_spin_init(&o->spin, PTHREAD_PROCESS_PRIVATE));
        OK(pthread_spin_lock(&o->spin));
        CHECK_RC(pthread_spin_trylock(&o->spin), EBUSY);
        OK(pthread_spin_unlock(&o->spin));
        if (destroy)
            OK(pthread_spin_destroy(&o->spin));
        break;
    default:
        SYS(sem_init(&o->sem, 0, 2));
        use_sem(&o->sem, 2);
        if (destroy)
            SYS(sem_destroy(&o->sem));
    }
}
TEST(lifetime__destroy_and_init_again, "one piece of memory is 60 000 objects of 6 kinds in turn, each destroyed") {
    union any o;
    memset(&o, 0, sizeof o);
    for (int i = 0; i < 60000; i++)
        init_and_use(&o, i, true);
}
TEST(lifetime__memory_reused_without_destroy, "one piece of memory is 60 000 objects of 6 kinds, none destroyed") {
    union any o;
    memset(&o, 0, sizeof o);
    for (int i = 0; i < 60000; i++)
        init_and_use(&o, i * 7 + i / 11, false);
}
TEST(lifetime__memory_reused_while_locked,
     "memory of a held mutex, rwlock and empty semaphore becomes a fresh object") {
    union any o;
    for (int i = 0; i < 1000; i++) {
        OK(pthread_mutex_init(&o.mutex, NULL));
        OK(pthread_mutex_lock(&o.mutex));
        init_and_use(&o, i, false);
        OK(pthread_rwlock_init(&o.rwlock, NULL));
        OK(pthread_rwlock_wrlock(&o.rwlock));
        init_and_use(&o, i, false);
        memset(&o, 0, sizeof o);
        use_mutex(&o.mutex);
    }
}
static void *contend_at(void *argument) {
    pthread_mutex_t *m = argument;
    for (int i = 0; i < 20; i++) {
        OK(pthread_mutex_lock(m));
        CHECK_INT(atomic_fetch_add(&entered, 1), 0);
        atomic_fetch_sub(&entered, 1);
        OK(pthread_mutex_unlock(m));
    }
    return NULL;
}
TEST(lifetime__heap_mutexes_never_destroyed,
     "200 mutexes at reused addresses are contended by 4 threads and freed without "
     "destroy") {
    for (int round = 0; round < 200; round++) {
        pthread_mutex_t *m = calloc(1, sizeof *m + (size_t)(round % 4) * 16);
        pthread_t threads[4];
        CHECK(m != NULL);
        for (int i = 0; i < 4; i++)
            threads[i] = thread_start(contend_at, m);
        for (int i = 0; i < 4; i++)
            thread_join(threads[i]);
        free(m);
    }
}

/* --- initialisers and zeros --------------------------------------------------------------------------------------- */
TEST(lifetime__copied_static_initialisers,
     "objects assigned or memcpy'd from never-used initialised ones are fresh ones") {
    static const pthread_mutex_t normal = PTHREAD_MUTEX_INITIALIZER, recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
                                 errorcheck = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    static const pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    static const pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
    for (int i = 0; i < 100; i++) {
        pthread_mutex_t m = normal;
        use_mutex(&m);
        OK(pthread_mutex_lock(&m)); /* a used one is overwritten */
        memcpy(&m, &recursive, sizeof m);
        OK(pthread_mutex_lock(&m));
        OK(pthread_mutex_lock(&m));
        m = errorcheck;
        OK(pthread_mutex_lock(&m));
        CHECK_RC(pthread_mutex_lock(&m), EDEADLK);
        pthread_cond_t c = cond;
        use_cond(&c);
        pthread_rwlock_t rw = rwlock;
        use_rwlock(&rw);
    }
}
TEST(lifetime__zeroed_mutex, "zeroed memory is a normal mutex that excludes 4 threads") {
    pthread_mutex_t *m = calloc(1, sizeof *m);
    pthread_t threads[4];
    CHECK(m != NULL);
    use_mutex(m);
    for (int i = 0; i < 4; i++)
        threads[i] = thread_start(contend_at, m);
    for (int i = 0; i < 4; i++)
        thread_join(threads[i]);
    free(m);
}
TEST(lifetime__zeroed_cond, "zeroed memory is a condition that wakes a waiter") {
    struct on_stack *o = calloc(1, sizeof *o);
    CHECK(o != NULL);
    use_cond(&o->cond);
    pthread_t t = thread_start(finish, o);
    OK(pthread_mutex_lock(&o->mutex));
    while (!o->done)
        OK(pthread_cond_wait(&o->cond, &o->mutex));
    OK(pthread_mutex_unlock(&o->mutex));
    thread_join(t);
    free(o);
}
TEST(lifetime__zeroed_rwlock, "zeroed memory is a free rwlock") {
    pthread_rwlock_t *rw = calloc(1, sizeof *rw);
    CHECK(rw != NULL);
    use_rwlock(rw);
    free(rw);
}
static void *post_it(void *semaphore) {
    let_threads_block();
    SYS(sem_post(semaphore));
    return NULL;
}
TEST(lifetime__zeroed_sem, "zeroed memory is a semaphore of 0: EAGAIN, and a wait ends by a post") {
    sem_t *s = calloc(1, sizeof *s);
    CHECK(s != NULL);
    use_sem(s, 0);
    pthread_t t = thread_start(post_it, s);
    SYS(sem_wait(s));
    thread_join(t);
    free(s);
}
static void count(void) {
    atomic_fetch_add(&counter, 1);
}
TEST(lifetime__zeroed_once, "zeroed memory is a once object: its routine runs once") {
    pthread_once_t *o = calloc(1, sizeof *o);
    CHECK(o != NULL);
    OK(pthread_once(o, count));
    OK(pthread_once(o, count));
    CHECK_INT(atomic_load(&counter), 1);
    free(o);
}
/* glibc's attributes of a shared object are bits in the object; zeroing must take them away. */
TEST(lifetime__shared_object_zeroed_is_private,
     "memory of shared and robust objects, zeroed, is normal private objects") {
    pthread_mutexattr_t attr;
    union any o;
    OK(pthread_mutexattr_init(&attr));
    OK(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
    OK(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
    OK(pthread_mutex_init(&o.mutex, &attr));
    OK(pthread_mutex_lock(&o.mutex));
    OK(pthread_mutex_unlock(&o.mutex));
    OK(pthread_mutex_destroy(&o.mutex));
    memset(&o, 0, sizeof o);
    use_mutex(&o.mutex);
    SYS(sem_init(&o.sem, 1, 1));
    use_sem(&o.sem, 1);
    memset(&o, 0, sizeof o);
    use_cond(&o.cond);
    memset(&o, 0, sizeof o);
    use_rwlock(&o.rwlock);
}
