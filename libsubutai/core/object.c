/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Learns at start-up where glibc marks its own objects: two objects of each type are initialised, one private and one
 * shared, and compared.
 */
#include "core/object.h"

#include <string.h>

#include "os/elf.h"

uint32_t sbt_all_theirs;

/* The values of glibc 2.34 to 2.40, for objects that are used before the real ones have been learnt. */
struct sbt_layout sbt_layout = {
    .cond = {36, 1},
    .barrier = {12, ~0u},
    .rwlock = {28, ~0u},
    .sem = {8, ~0u},
#if defined(__x86_64__)
    .spin_unlocked = 1,
#endif
};

/* The first word in which a shared object differs from a private one. False if they do not differ. */
static bool learn(struct sbt_mark *mark, const void *private_object, const void *shared_object, size_t bytes) {
    for (size_t at = 0; at + sizeof(uint32_t) <= bytes; at += sizeof(uint32_t)) {
        uint32_t a, b;
        memcpy(&a, (const char *)private_object + at, sizeof a);
        memcpy(&b, (const char *)shared_object + at, sizeof b);
        if (a != b) {
            mark->offset = (uint32_t)at;
            mark->mask = b & ~a;
            return mark->mask != 0;
        }
    }
    return false;
}

/*
 * The C library's own functions, found in that library alone. sbt_real may name those of another preloaded library,
 * which may not be ready for a call yet.
 */
#define FUNCTIONS(F)                                                                                                   \
    F(pthread_condattr_init)                                                                                           \
    F(pthread_condattr_setpshared)                                                                                     \
    F(pthread_cond_init)                                                                                               \
    F(pthread_barrierattr_init)                                                                                        \
    F(pthread_barrierattr_setpshared)                                                                                  \
    F(pthread_barrier_init)                                                                                            \
    F(pthread_rwlockattr_init)                                                                                         \
    F(pthread_rwlockattr_setpshared)                                                                                   \
    F(pthread_rwlock_init)                                                                                             \
    F(sem_init)                                                                                                        \
    F(pthread_spin_init)

struct functions {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration */
#define POINTER(name) __typeof(name) *name;
    FUNCTIONS(POINTER)
};

static bool find(struct functions *f) {
    bool found = true;
#define FIND(name)                                                                                                     \
    f->name = (__typeof(name) *)sbt_elf_libc(#name);                                                                   \
    found &= f->name != NULL;
    FUNCTIONS(FIND)
    return found;
}

/* Two objects of each type, a private one and a shared one. */
struct samples {
    pthread_cond_t cond[2];
    pthread_barrier_t barrier[2];
    pthread_rwlock_t rwlock[2];
    sem_t sem[2];
    pthread_spinlock_t spin;
};

static void make(struct samples *s, const struct functions *f) {
    pthread_condattr_t cond;
    pthread_barrierattr_t barrier;
    pthread_rwlockattr_t rwlock;
    memset(s, 0, sizeof *s);
    f->pthread_condattr_init(&cond);
    f->pthread_barrierattr_init(&barrier);
    f->pthread_rwlockattr_init(&rwlock);
    for (int shared = 0; shared < 2; shared++) {
        const int sharing = shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE;
        f->pthread_condattr_setpshared(&cond, sharing);
        f->pthread_barrierattr_setpshared(&barrier, sharing);
        f->pthread_rwlockattr_setpshared(&rwlock, sharing);
        f->pthread_cond_init(&s->cond[shared], &cond);
        f->pthread_barrier_init(&s->barrier[shared], &barrier, 1);
        f->pthread_rwlock_init(&s->rwlock[shared], &rwlock);
        f->sem_init(&s->sem[shared], shared, 0);
    }
    f->pthread_spin_init(&s->spin, PTHREAD_PROCESS_PRIVATE);
}

const char *sbt_layout_learn(void) {
    struct sbt_layout layout;
    struct functions functions;
    struct samples s;
    if (!find(&functions))
        return "symbol table";
    make(&s, &functions);
    layout.spin_unlocked = s.spin;
    const char *failed = !learn(&layout.cond, &s.cond[0], &s.cond[1], sizeof s.cond[0])               ? "condition"
                         : !learn(&layout.barrier, &s.barrier[0], &s.barrier[1], sizeof s.barrier[0]) ? "barrier"
                         : !learn(&layout.rwlock, &s.rwlock[0], &s.rwlock[1], sizeof s.rwlock[0])     ? "rwlock"
                         : !learn(&layout.sem, &s.sem[0], &s.sem[1], sizeof s.sem[0])                 ? "semaphore"
                                                                                                      : NULL;
    if (failed == NULL && (layout.cond.offset < sizeof(struct sbt_cond) || layout.rwlock.offset < 12 ||
                           layout.rwlock.offset >= 48 || layout.barrier.offset != 12 || layout.sem.offset != 8))
        failed = "object"; /* glibc has moved a mark to where our fields are */
    if (failed == NULL)
        sbt_layout = layout;
    return failed;
}
