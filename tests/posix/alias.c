/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The same functions under their other names: the aliases with two underscores, and the old symbol versions that
 * binaries built against earlier C libraries bind. All names of a function must reach one implementation, or a lock
 * taken through one would not be held for the other.
 * Source: `nm -D` of glibc 2.36's libc.so.6. The old names are compatibility symbols: dlvsym finds them, the linker
 * binds them through .symver only.
 */
#include "topic.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#if defined __x86_64__
#define OLDEST "GLIBC_2.2.5"
#elif defined __aarch64__
#define OLDEST "GLIBC_2.17"
#endif

#ifdef OLDEST
#define OLD_SYMBOL(local, name) __asm__(".symver " #local "," #name "@" OLDEST)
#define SKIP_WITHOUT_OLDEST()
#else
#define OLDEST ""
#define OLD_SYMBOL(local, name) __asm__(".set " #local "," #name)
#define SKIP_WITHOUT_OLDEST() test_skip("the oldest symbol version of this architecture is not known to the test")
#endif

typedef int mutex_call(pthread_mutex_t *);
typedef int rwlock_call(pthread_rwlock_t *);

/* The alias as a program would find it, or a skip if this C library has none. */
static void *find(const char *name) {
    void *address = dlsym(RTLD_DEFAULT, name);
    if (address == NULL)
        address = dlvsym(RTLD_DEFAULT, name, OLDEST);
    char reason[100];
    snprintf(reason, sizeof reason, "the C library of this architecture does not export %s", name);
    SKIP_IF(address == NULL, reason);
    return address;
}
static void *do_trylock(void *m) {
    int rc = pthread_mutex_trylock(m);
    if (rc == 0)
        OK(pthread_mutex_unlock(m));
    return (void *)(long)rc;
}
static int probe(pthread_mutex_t *m) {
    return (int)(long)thread_join(thread_start(do_trylock, m));
}

TEST(alias_mutex_lock__is_pthread_mutex_lock, "__pthread_mutex_lock and pthread_mutex_lock hold each other off") {
    mutex_call *lock = find("__pthread_mutex_lock"), *unlock = find("__pthread_mutex_unlock");
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    OK(lock(&m));
    CHECK_RC(probe(&m), EBUSY);
    OK(pthread_mutex_unlock(&m));
    OK(pthread_mutex_lock(&m));
    OK(unlock(&m));
    CHECK_RC(probe(&m), 0);
}
TEST(alias_mutex_trylock__is_pthread_mutex_trylock,
     "__pthread_mutex_trylock of a held mutex: EBUSY, of a free one: 0") {
    mutex_call *trylock = find("__pthread_mutex_trylock");
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    OK(pthread_mutex_lock(&m));
    CHECK_RC(trylock(&m), EBUSY);
    OK(pthread_mutex_unlock(&m));
    OK(trylock(&m));
    CHECK_RC(probe(&m), EBUSY);
}
TEST(alias_mutex_init__types, "__pthread_mutex_init with attributes from __pthread_mutexattr_*: recursive") {
    int (*init)(pthread_mutex_t *, const pthread_mutexattr_t *) = find("__pthread_mutex_init");
    int (*attr_init)(pthread_mutexattr_t *) = find("__pthread_mutexattr_init");
    int (*attr_settype)(pthread_mutexattr_t *, int) = find("__pthread_mutexattr_settype");
    int (*attr_destroy)(pthread_mutexattr_t *) = find("__pthread_mutexattr_destroy");
    mutex_call *destroy = find("__pthread_mutex_destroy");
    pthread_mutexattr_t attr;
    pthread_mutex_t m;
    memset(&m, 0xff, sizeof m);
    OK(attr_init(&attr));
    OK(attr_settype(&attr, PTHREAD_MUTEX_RECURSIVE));
    OK(init(&m, &attr));
    OK(attr_destroy(&attr));
    OK(pthread_mutex_lock(&m));
    OK(pthread_mutex_lock(&m));
    OK(pthread_mutex_unlock(&m));
    CHECK_RC(probe(&m), EBUSY);
    OK(pthread_mutex_unlock(&m));
    OK(destroy(&m));
}
TEST(alias_rwlock__is_pthread_rwlock, "__pthread_rwlock_* and pthread_rwlock_* see each other's locks") {
    rwlock_call *rd = find("__pthread_rwlock_rdlock"), *wr = find("__pthread_rwlock_wrlock"),
                *tryrd = find("__pthread_rwlock_tryrdlock"), *trywr = find("__pthread_rwlock_trywrlock"),
                *unlock = find("__pthread_rwlock_unlock"), *destroy = find("__pthread_rwlock_destroy");
    int (*init)(pthread_rwlock_t *, const pthread_rwlockattr_t *) = find("__pthread_rwlock_init");
    pthread_rwlock_t rw;
    memset(&rw, 0xff, sizeof rw);
    OK(init(&rw, NULL));
    OK(rd(&rw));
    CHECK_RC(pthread_rwlock_trywrlock(&rw), EBUSY);
    OK(pthread_rwlock_tryrdlock(&rw));
    CHECK_RC(trywr(&rw), EBUSY);
    OK(unlock(&rw));
    OK(unlock(&rw));
    OK(wr(&rw));
    CHECK_RC(tryrd(&rw), EBUSY);
    CHECK_RC(pthread_rwlock_rdlock(&rw), EDEADLK);
    OK(pthread_rwlock_unlock(&rw));
    OK(trywr(&rw));
    OK(unlock(&rw));
    OK(destroy(&rw));
}
static atomic_int calls;
static void count_call(void) {
    atomic_fetch_add(&calls, 1);
}
TEST(alias_once__is_pthread_once, "__pthread_once and pthread_once on one object: one run") {
    int (*once)(pthread_once_t *, void (*)(void)) = find("__pthread_once");
    pthread_once_t control = PTHREAD_ONCE_INIT;
    OK(once(&control, count_call));
    OK(pthread_once(&control, count_call));
    OK(once(&control, count_call));
    CHECK_INT(atomic_load(&calls), 1);
}
/* libstdc++ and libgcc look for this symbol to learn whether the program has threads; it must be glibc's own. */
TEST(alias_key_create__works, "__pthread_key_create makes a key that pthread_getspecific serves") {
    int (*create)(pthread_key_t *, void (*)(void *)) = find("__pthread_key_create");
    pthread_key_t key;
    OK(create(&key, NULL));
    OK(pthread_setspecific(key, &key));
    CHECK(pthread_getspecific(key) == &key);
    Dl_info info;
    CHECK(dladdr(__extension__(void *) create, &info) != 0);
    CHECK(strstr(info.dli_fname, "libc.so") != NULL || strstr(info.dli_fname, "libpthread") != NULL);
}

/* --- old symbol versions ------------------------------------------------------------------------------------------ */
int old_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int old_join(pthread_t, void **);
int old_mutex_lock(pthread_mutex_t *);
int old_mutex_trylock(pthread_mutex_t *);
int old_mutex_unlock(pthread_mutex_t *);
int old_rwlock_wrlock(pthread_rwlock_t *);
int old_rwlock_tryrdlock(pthread_rwlock_t *);
int old_rwlock_unlock(pthread_rwlock_t *);
int old_barrier_init(pthread_barrier_t *, const pthread_barrierattr_t *, unsigned);
int old_barrier_wait(pthread_barrier_t *);
int old_once(pthread_once_t *, void (*)(void));
int old_cond_wait(pthread_cond_t *, pthread_mutex_t *);
int old_cond_timedwait(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
int old_cond_signal(pthread_cond_t *);
int old_cond_broadcast(pthread_cond_t *);
OLD_SYMBOL(old_create, pthread_create);
OLD_SYMBOL(old_join, pthread_join);
OLD_SYMBOL(old_mutex_lock, pthread_mutex_lock);
OLD_SYMBOL(old_mutex_trylock, pthread_mutex_trylock);
OLD_SYMBOL(old_mutex_unlock, pthread_mutex_unlock);
OLD_SYMBOL(old_rwlock_wrlock, pthread_rwlock_wrlock);
OLD_SYMBOL(old_rwlock_tryrdlock, pthread_rwlock_tryrdlock);
OLD_SYMBOL(old_rwlock_unlock, pthread_rwlock_unlock);
OLD_SYMBOL(old_barrier_init, pthread_barrier_init);
OLD_SYMBOL(old_barrier_wait, pthread_barrier_wait);
OLD_SYMBOL(old_once, pthread_once);
OLD_SYMBOL(old_cond_wait, pthread_cond_wait);
OLD_SYMBOL(old_cond_timedwait, pthread_cond_timedwait);
OLD_SYMBOL(old_cond_signal, pthread_cond_signal);
OLD_SYMBOL(old_cond_broadcast, pthread_cond_broadcast);

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int waiting, go;
} c = {.mutex = PTHREAD_MUTEX_INITIALIZER};

TEST(old_version_mutex__same_lock, "pthread_mutex_*@oldest and the default version hold each other off") {
    SKIP_WITHOUT_OLDEST();
    OK(old_mutex_lock(&c.mutex));
    CHECK_RC(pthread_mutex_trylock(&c.mutex), EBUSY);
    OK(pthread_mutex_unlock(&c.mutex));
    OK(pthread_mutex_lock(&c.mutex));
    CHECK_RC(old_mutex_trylock(&c.mutex), EBUSY);
    OK(old_mutex_unlock(&c.mutex));
    CHECK_RC(probe(&c.mutex), 0);
}
static void *give_back(void *argument) {
    OK(old_mutex_lock(&c.mutex));
    OK(pthread_mutex_unlock(&c.mutex));
    return argument;
}
TEST(old_version_create__runs_a_thread,
     "pthread_create@oldest and pthread_join@oldest: the thread locks, value arrives") {
    SKIP_WITHOUT_OLDEST();
    for (int i = 0; i < 100; i++) {
        pthread_t t;
        void *value = NULL;
        OK(old_create(&t, NULL, give_back, &calls));
        OK(i % 2 == 0 ? old_join(t, &value) : pthread_join(t, &value));
        CHECK(value == &calls);
    }
}
TEST(old_version_rwlock__same_lock, "pthread_rwlock_*@oldest and the default version see each other's locks") {
    SKIP_WITHOUT_OLDEST();
    pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
    OK(old_rwlock_wrlock(&rw));
    CHECK_RC(pthread_rwlock_tryrdlock(&rw), EBUSY);
    OK(pthread_rwlock_unlock(&rw));
    OK(pthread_rwlock_wrlock(&rw));
    CHECK_RC(old_rwlock_tryrdlock(&rw), EBUSY);
    OK(old_rwlock_unlock(&rw));
}
TEST(old_version_barrier_and_once, "pthread_barrier_*@oldest and pthread_once@oldest") {
    SKIP_WITHOUT_OLDEST();
    pthread_barrier_t barrier;
    pthread_once_t once = PTHREAD_ONCE_INIT;
    OK(old_barrier_init(&barrier, NULL, 1));
    CHECK_INT(pthread_barrier_wait(&barrier), PTHREAD_BARRIER_SERIAL_THREAD);
    CHECK_INT(old_barrier_wait(&barrier), PTHREAD_BARRIER_SERIAL_THREAD);
    OK(old_once(&once, count_call));
    OK(pthread_once(&once, count_call));
    CHECK_INT(atomic_load(&calls), 1);
}
/*
 * On x86-64 the oldest pthread_cond_* work on another layout: glibc's keep a pointer to the real condition in the
 * object. A program uses one version throughout, so does the test; the object starts as the zeros that its initialiser
 * was.
 */
static void *old_waiter(void *unused) {
    (void)unused;
    struct timespec end = time_in_ms(CLOCK_REALTIME, LONG_MS);
    OK(old_mutex_lock(&c.mutex));
    c.waiting++;
    while (!c.go)
        OK(c.waiting % 2 == 0 ? old_cond_wait(&c.cond, &c.mutex) : old_cond_timedwait(&c.cond, &c.mutex, &end));
    OK(old_mutex_unlock(&c.mutex));
    return NULL;
}
TEST(old_version_cond__wait_signal_broadcast, "pthread_cond_*@oldest: 8 waiters, signals and a broadcast, a time-out") {
    SKIP_WITHOUT_OLDEST();
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        threads[i] = thread_start(old_waiter, NULL);
    for (bool all = false; !all; sleep_ms(1)) {
        OK(old_mutex_lock(&c.mutex));
        all = c.waiting == 8;
        OK(old_cond_signal(&c.cond)); /* wakes a waiter that must go back to wait */
        OK(old_mutex_unlock(&c.mutex));
    }
    OK(old_mutex_lock(&c.mutex));
    c.go = 1;
    OK(old_cond_broadcast(&c.cond));
    OK(old_mutex_unlock(&c.mutex));
    for (int i = 0; i < 8; i++)
        thread_join(threads[i]);
    struct timespec end = time_in_ms(CLOCK_REALTIME, SHORT_MS);
    OK(old_mutex_lock(&c.mutex));
    CHECK_RC(old_cond_timedwait(&c.cond, &c.mutex, &end), ETIMEDOUT);
    OK(old_mutex_unlock(&c.mutex));
}
