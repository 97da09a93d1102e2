/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Small programs with known bugs of order, for `subutai check`: each works in some orders of its threads, and fails or
 * hangs in others. `order_bugs NAME`; without a name it lists them. Data are read and written under locks, so it is the
 * order alone that decides.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t sem;
static long shared, other;

static void require(bool holds) {
    if (!holds)
        _exit(1);
}

static long get(const long *value) {
    pthread_mutex_lock(&a);
    long v = *value;
    pthread_mutex_unlock(&a);
    return v;
}

static void set(long *value, long v) {
    pthread_mutex_lock(&a);
    *value = v;
    pthread_mutex_unlock(&a);
}

static void run(void *(*first)(void *), void *(*second)(void *)) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, first, (void *)0);
    pthread_create(&threads[1], NULL, second, (void *)1);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}

/* ---- the condition is signalled between the look and the wait ---- */

static void *wakes(void *unused) {
    set(&shared, 1);
    pthread_cond_signal(&cond);
    return unused;
}

static void *looks_then_waits(void *unused) {
    if (get(&shared) == 0) {
        pthread_mutex_lock(&a);
        pthread_cond_wait(&cond, &a);
        pthread_mutex_unlock(&a);
    }
    return unused;
}

static void lost_wakeup(void) {
    run(looks_then_waits, wakes);
}

/* ---- two locks in both orders ---- */

static void *locks_both(void *second) {
    pthread_mutex_lock(second != NULL ? &b : &a);
    pthread_mutex_lock(second != NULL ? &a : &b);
    pthread_mutex_unlock(&a);
    pthread_mutex_unlock(&b);
    return NULL;
}

static void inverted_locks(void) {
    run(locks_both, locks_both);
}

/* ---- what a thread uses is taken away when another one has been joined ---- */

static void *uses(void *unused) {
    for (int i = 0; i < 3; i++)
        require(get(&shared) == 1);
    return unused;
}

static void use_after_join(void) {
    pthread_t threads[2];
    shared = 1;
    pthread_create(&threads[0], NULL, uses, NULL);
    pthread_create(&threads[1], NULL, uses, NULL);
    pthread_join(threads[0], NULL);
    set(&shared, 0);
    pthread_join(threads[1], NULL);
}

/* ---- each thread reads what the other one has to write before ---- */

static void *writes_then_reads(void *second) {
    set(second != NULL ? &other : &shared, 1);
    for (int i = 0; i < 3; i++)
        sched_yield();
    require(get(second != NULL ? &shared : &other) == 1);
    return NULL;
}

static void missing_barrier(void) {
    run(writes_then_reads, writes_then_reads);
}

/* ---- read and written in two sections ---- */

static void *adds(void *unused) {
    long v = get(&shared);
    set(&shared, v + 1);
    return unused;
}

static void lost_update(void) {
    run(adds, adds);
    require(shared == 2);
}

/* ---- used before the creator has made it ---- */

static void *expects(void *unused) {
    sched_yield();
    require(get(&shared) == 1);
    return unused;
}

static void use_before_init(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, expects, NULL);
    set(&shared, 1);
    pthread_join(thread, NULL);
}

/* ---- a woken thread does not look again whether there is something for it ---- */

static void *takes_one(void *unused) {
    pthread_mutex_lock(&a);
    if (shared == 0)
        pthread_cond_wait(&cond, &a);
    require(shared > 0);
    shared--;
    pthread_mutex_unlock(&a);
    return unused;
}

static void if_for_while(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, takes_one, NULL);
    pthread_create(&threads[1], NULL, takes_one, NULL);
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&a);
        shared++;
        pthread_cond_signal(&cond);
        pthread_mutex_unlock(&a);
    }
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}

/* ---- a signal for one of several that wait for different things ---- */

static void *waits_for(void *number) {
    pthread_mutex_lock(&a);
    while (shared != 1 + (number != NULL))
        pthread_cond_wait(&cond, &a);
    pthread_mutex_unlock(&a);
    return NULL;
}

static void signal_for_broadcast(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, waits_for, (void *)0);
    pthread_create(&threads[1], NULL, waits_for, (void *)1);
    for (long i = 1; i <= 2; i++) {
        pthread_mutex_lock(&a);
        shared = i;
        pthread_cond_signal(&cond);
        pthread_mutex_unlock(&a);
        pthread_join(threads[i - 1], NULL);
    }
}

/* ---- told before it is there ---- */

static void *posts_then_stores(void *unused) {
    sem_post(&sem);
    set(&shared, 1);
    return unused;
}

static void *takes_then_loads(void *unused) {
    sem_wait(&sem);
    sched_yield();
    require(get(&shared) == 1);
    return unused;
}

static void early_post(void) {
    sem_init(&sem, 0, 0);
    run(takes_then_loads, posts_then_stores);
}

/* ---- made twice ---- */

static void *makes_once(void *unused) {
    if (get(&shared) == 0) {
        set(&shared, 1);
        pthread_mutex_lock(&b);
        require(++other == 1);
        pthread_mutex_unlock(&b);
    }
    return unused;
}

static void double_init(void) {
    run(makes_once, makes_once);
}

/* ---- a barrier of one's own, entered again before all have left it ---- */

static void meets(void) {
    pthread_mutex_lock(&a);
    if (++shared == 2) {
        shared = 0;
        pthread_cond_broadcast(&cond);
    } else {
        while (shared != 0)
            pthread_cond_wait(&cond, &a);
    }
    pthread_mutex_unlock(&a);
}

static void *meets_often(void *unused) {
    for (int i = 0; i < 20; i++)
        meets();
    return unused;
}

static void own_barrier(void) {
    run(meets_often, meets_often);
}

/* ---- a reader becomes the writer, and takes what it has read for still true ---- */

static void *upgrades(void *unused) {
    pthread_rwlock_rdlock(&rwlock);
    bool is_free = shared == 0;
    pthread_rwlock_unlock(&rwlock);
    pthread_rwlock_wrlock(&rwlock);
    if (is_free)
        require(++shared == 1);
    pthread_rwlock_unlock(&rwlock);
    return unused;
}

static void upgrade(void) {
    run(upgrades, upgrades);
}

static const struct {
    const char *name;
    void (*main)(void);
} programs[] = {
    {"lost_wakeup", lost_wakeup},       {"inverted_locks", inverted_locks},
    {"use_after_join", use_after_join}, {"missing_barrier", missing_barrier},
    {"lost_update", lost_update},       {"use_before_init", use_before_init},
    {"if_for_while", if_for_while},     {"signal_for_broadcast", signal_for_broadcast},
    {"early_post", early_post},         {"double_init", double_init},
    {"own_barrier", own_barrier},       {"upgrade", upgrade},
};

int main(int argc, char **argv) {
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        if (argc < 2)
            puts(programs[i].name);
        else if (strcmp(programs[i].name, argv[1]) == 0)
            programs[i].main();
    }
    return 0;
}
