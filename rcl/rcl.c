/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The functions of <subutai/rcl.h>, and the registry of servers and client threads. */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rcl/server.h"
#include "rcl/wait.h"

#define EXPORT __attribute__((visibility("default")))

static struct {
    pthread_mutex_t mutex; /* protects the rest. Lock order: before a server's mutex */
    pthread_once_t once;
    pthread_key_t key; /* ends a client thread's slot */
    bool has_key;
    struct rcl_server *servers;
    pid_t owner[RCL_MAX_CLIENTS]; /* of a slot: the thread's kernel id; 0: the slot is free */
} registry = {.mutex = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

/* ---- client threads ---- */

static pid_t own_id(void) {
    return (pid_t)syscall(SYS_gettid);
}

static void give_slot_back(void *slot) {
    pthread_mutex_lock(&registry.mutex);
    registry.owner[(uintptr_t)slot - 1] = 0;
    pthread_mutex_unlock(&registry.mutex);
    rcl_self.slot = 0; /* a later destructor of the thread may use a server once more */
}

static void before_fork(void) {
    pthread_mutex_lock(&registry.mutex);
}

static void after_fork(void) {
    pthread_mutex_unlock(&registry.mutex);
}

/*
 * The child has the calling thread alone. Its servers get threads again when it uses them. What sections of other
 * threads had locked stays locked, as mutexes do.
 */
static void in_child(void) {
    for (struct rcl_server *s = registry.servers; s != NULL; s = s->next) {
        s->has_threads = s->has_backup = false;
        s->workers = s->parked = NULL; /* the workers' memory is lost */
        s->n_active = s->asleep = s->alarm = 0;
        s->mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        memset(s->mailbox, 0, RCL_MAX_CLIENTS * sizeof *s->mailbox);
    }
    memset(registry.owner, 0, sizeof registry.owner);
    if (rcl_self.slot != 0)
        registry.owner[rcl_self.slot - 1] = own_id();
    rcl_self.worker = NULL;
    rcl_self.frame = NULL;
    pthread_mutex_unlock(&registry.mutex);
}

static void prepare(void) {
    registry.has_key = pthread_key_create(&registry.key, give_slot_back) == 0 &&
                       pthread_atfork(before_fork, after_fork, in_child) == 0;
}

static bool is_idle(uint32_t slot) {
    for (const struct rcl_server *s = registry.servers; s != NULL; s = s->next)
        if (__atomic_load_n(&s->mailbox[slot].state, __ATOMIC_ACQUIRE) != RCL_FREE) /* pairs with rcl_serve */
            return false;
    return true;
}

/*
 * A thread that uses a server in its last round of destructors has no destructor left that gives its slot back. Another
 * thread may have got its id since: then the slot stays until that one has ended.
 */
static void give_back_for_ended(void) {
    int saved = errno;
    for (uint32_t i = 0; i < RCL_MAX_CLIENTS; i++)
        if (syscall(SYS_tgkill, getpid(), registry.owner[i], 0) != 0 && errno == ESRCH && is_idle(i))
            registry.owner[i] = 0;
    errno = saved;
}

static uint32_t first_free(void) {
    uint32_t i = 0;
    while (i < RCL_MAX_CLIENTS && registry.owner[i] != 0)
        i++;
    return i;
}

static int take_slot(void) {
    pthread_once(&registry.once, prepare);
    pthread_mutex_lock(&registry.mutex);
    uint32_t i = first_free();
    if (i == RCL_MAX_CLIENTS) {
        give_back_for_ended();
        i = first_free();
    }
    if (i < RCL_MAX_CLIENTS && registry.has_key && pthread_setspecific(registry.key, (void *)(uintptr_t)(i + 1)) == 0) {
        registry.owner[i] = own_id();
        rcl_self.slot = i + 1;
        if (i + 1 > rcl_n_slots)
            __atomic_store_n(&rcl_n_slots, i + 1, __ATOMIC_SEQ_CST);
    }
    pthread_mutex_unlock(&registry.mutex);
    return rcl_self.slot != 0 ? 0 : EAGAIN;
}

/* ---- servers ---- */

static cpu_set_t usable;

/* Of the first thread: another one may load this library, and may be pinned. */
__attribute__((constructor)) static void learn_cpus(void) {
    if (sched_getaffinity(getpid(), sizeof usable, &usable) != 0)
        CPU_ZERO(&usable); /* check_new refuses then */
}

static int check_new(int cpu) {
    int n = 0;
    if (cpu < -1 || cpu >= CPU_SETSIZE || (cpu >= 0 && !CPU_ISSET((size_t)cpu, &usable)))
        return EINVAL;
    for (const struct rcl_server *s = registry.servers; s != NULL; s = s->next, n++)
        if (cpu >= 0 && s->cpu == cpu)
            return EINVAL;
    return n < CPU_COUNT(&usable) ? 0 : EAGAIN;
}

static struct rcl_server *allocate(int cpu) {
    struct rcl_server *s = aligned_alloc(RCL_LINE, sizeof *s);
    struct rcl_mailbox *mailbox = aligned_alloc(RCL_LINE, RCL_MAX_CLIENTS * sizeof *mailbox);
    if (s == NULL || mailbox == NULL) {
        free(s);
        free(mailbox);
        return NULL;
    }
    memset(mailbox, 0, RCL_MAX_CLIENTS * sizeof *mailbox);
    *s = (struct rcl_server){.mailbox = mailbox, .cpu = cpu, .mutex = PTHREAD_MUTEX_INITIALIZER, .has_threads = true};
    return s;
}

static void release(struct rcl_server *s) {
    free(s->mailbox);
    free(s);
}

EXPORT int rcl_server_create(struct rcl_server **server, int cpu) {
    struct rcl_server *s = NULL;
    if (server == NULL)
        return EINVAL;
    pthread_once(&registry.once, prepare);
    pthread_mutex_lock(&registry.mutex);
    int error = check_new(cpu);
    if (error == 0 && (s = allocate(cpu)) == NULL)
        error = EAGAIN;
    if (error == 0 && (error = rcl_start(s)) != 0)
        release(s);
    if (error == 0) {
        s->next = registry.servers;
        registry.servers = s;
        *server = s;
    }
    pthread_mutex_unlock(&registry.mutex);
    return error;
}

EXPORT int rcl_server_destroy(struct rcl_server *server) {
    struct rcl_server **link = &registry.servers;
    if (server == NULL)
        return EINVAL;
    if (rcl_self.worker != NULL && rcl_self.worker->server == server)
        return EDEADLK;
    pthread_mutex_lock(&registry.mutex);
    while (*link != NULL && *link != server)
        link = &(*link)->next;
    bool known = *link != NULL;
    if (known)
        *link = server->next;
    pthread_mutex_unlock(&registry.mutex);
    if (!known)
        return EINVAL;
    if (server->has_threads)
        rcl_stop(server);
    release(server);
    return 0;
}

static int start_again(struct rcl_server *s) {
    int error = 0;
    pthread_mutex_lock(&registry.mutex);
    if (!s->has_threads)
        error = rcl_start(s);
    if (error == 0)
        __atomic_store_n(&s->has_threads, true, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&registry.mutex);
    return error;
}

/* ---- sections ---- */

_Static_assert(offsetof(struct rcl_lock, held) - offsetof(struct rcl_lock, server) == RCL_LINE &&
                   sizeof(struct rcl_lock) - offsetof(struct rcl_lock, held) == RCL_LINE,
               "clients' reads of a lock, or of its neighbour in an array, share no line with the server's writes");

EXPORT int rcl_lock_init(struct rcl_lock *lock, struct rcl_server *server) {
    if (lock == NULL || server == NULL)
        return EINVAL;
    *lock = (struct rcl_lock){.server = server};
    return 0;
}

static void call_directly(struct rcl_lock *lock, rcl_section *function, void *context) {
    rcl_lock_take(rcl_self.worker, lock);
    rcl_call(NULL, lock, function, context);
    rcl_lock_free(lock);
    rcl_nudge(&lock->server->asleep); /* the outer section may last for long */
}

EXPORT int rcl_execute(struct rcl_lock *lock, void (*function)(void *context), void *context) {
    int error;
    if (__builtin_expect(lock == NULL || function == NULL, 0))
        return EINVAL;
    struct rcl_server *s = lock->server;
    struct rcl_worker *w = rcl_self.worker;
    if (w != NULL && w->server == s) {
        call_directly(lock, function, context);
        return 0;
    }
    if (__builtin_expect(rcl_self.slot == 0, 0) && (error = take_slot()) != 0)
        return error;
    if (__builtin_expect(!__atomic_load_n(&s->has_threads, __ATOMIC_ACQUIRE), 0) && (error = start_again(s)) != 0)
        return error;
    struct rcl_mailbox *m = &s->mailbox[rcl_self.slot - 1];
    rcl_post(m, lock, function, context, &s->asleep);
    if (w != NULL)
        rcl_block_begin(w);
    rcl_await(m);
    if (w != NULL)
        rcl_block_end(w);
    return 0;
}

/* ---- conditions: a number that each signal changes, and on which waiters sleep ---- */

EXPORT int rcl_cond_init(struct rcl_cond *cond) {
    if (cond == NULL)
        return EINVAL;
    cond->sequence = 0;
    return 0;
}

EXPORT int rcl_cond_wait(struct rcl_cond *cond, struct rcl_lock *lock) {
    struct rcl_frame *frame = rcl_self.frame;
    if (cond == NULL || lock == NULL)
        return EINVAL;
    if (frame == NULL || frame->lock != lock)
        return EPERM;
    /* Relaxed: read under the lock. A signal after that changes it, so the sleep does not begin. */
    uint32_t seen = __atomic_load_n(&cond->sequence, __ATOMIC_RELAXED);
    struct rcl_worker *w = rcl_self.worker;
    if (frame->mailbox != NULL)
        rcl_keep(frame->mailbox);
    rcl_block_begin(w);
    rcl_lock_free(lock);
    rcl_nudge(&lock->server->asleep);
    rcl_sleep(&cond->sequence, seen, NULL);
    rcl_lock_wait(lock);
    rcl_block_end(w);
    return 0;
}

static int wake(struct rcl_cond *cond, int n) {
    if (cond == NULL)
        return EINVAL;
    /* Relaxed: the lock orders the data. The kernel orders this against the compare of a thread that goes to sleep. */
    __atomic_fetch_add(&cond->sequence, 1, __ATOMIC_RELAXED);
    rcl_wake(&cond->sequence, n);
    return 0;
}

EXPORT int rcl_cond_signal(struct rcl_cond *cond) {
    return wake(cond, 1);
}

EXPORT int rcl_cond_broadcast(struct rcl_cond *cond) {
    return wake(cond, INT_MAX);
}
