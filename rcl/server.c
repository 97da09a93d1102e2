/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The threads of a server; see server.h. */
#include "rcl/server.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include "rcl/tuning.h"
#include "rcl/wait.h"

__thread struct rcl_self rcl_self;
uint32_t rcl_n_slots;
uint64_t rcl_sleeps_until_ns;

static void *serve(void *argument);

static bool stopped(struct rcl_server *s) {
    return __atomic_load_n(&s->stop, __ATOMIC_ACQUIRE) != 0;
}

/* ---- the pool; with the mutex held ---- */

/* True: another thread is active now. */
static bool activate(struct rcl_server *s) {
    struct rcl_worker *w = s->parked;
    if (w != NULL) {
        s->parked = w->next_parked;
        __atomic_store_n(&w->counted, 1, __ATOMIC_RELAXED);
        s->n_active++;
        __atomic_store_n(&w->is_parked, 0, __ATOMIC_RELEASE);
        rcl_wake(&w->is_parked, 1);
        return true;
    }
    w = calloc(1, sizeof *w);
    if (w == NULL)
        return false;
    w->server = s;
    w->counted = 1;
    if (pthread_create(&w->thread, NULL, serve, w) != 0) {
        free(w);
        return false;
    }
    w->next = s->workers;
    s->workers = w;
    s->n_active++;
    return true;
}

static void count(struct rcl_worker *w, bool active) {
    if ((w->counted != 0) == active)
        return;
    __atomic_store_n(&w->counted, active, __ATOMIC_RELAXED);
    w->server->n_active += active ? 1 : (uint32_t)-1;
}

/* If that fails for want of memory or threads, the management thread tries again. */
void rcl_block_begin(struct rcl_worker *w) {
    struct rcl_server *s = w->server;
    pthread_mutex_lock(&s->mutex);
    count(w, false);
    if (s->n_active == 0)
        activate(s);
    pthread_mutex_unlock(&s->mutex);
}

void rcl_block_end(struct rcl_worker *w) {
    pthread_mutex_lock(&w->server->mutex);
    count(w, true);
    pthread_mutex_unlock(&w->server->mutex);
}

bool rcl_park_surplus(struct rcl_worker *w) {
    struct rcl_server *s = w->server;
    pthread_mutex_lock(&s->mutex);
    /*
     * The management thread may just now have taken it for blocked, and activated another one. Both would sleep for
     * requests, and only the other would count. If this one is woken and blocks in a section, the one that sleeps and
     * counts would keep the management thread from activating a third.
     */
    count(w, true);
    bool surplus = s->n_active > 1 && !stopped(s); /* wake_all takes the mutex after it has set that */
    if (surplus) {
        count(w, false);
        __atomic_store_n(&w->is_parked, 1, __ATOMIC_RELAXED);
        w->next_parked = s->parked;
        s->parked = w;
    }
    pthread_mutex_unlock(&s->mutex);
    while (surplus && __atomic_load_n(&w->is_parked, __ATOMIC_ACQUIRE) != 0)
        rcl_sleep(&w->is_parked, 1, NULL);
    return surplus;
}

/* ---- servicing threads ---- */

void rcl_call(struct rcl_mailbox *m, struct rcl_lock *lock, rcl_section *function, void *context) {
    struct rcl_frame frame = {lock, m, rcl_self.frame};
    rcl_self.frame = &frame;
    function(context);
    rcl_self.frame = frame.outer;
}

/* Relaxed: the management thread only compares the numbers. */
static void run(struct rcl_mailbox *m, struct rcl_lock *lock, rcl_section *function, void *context) {
    struct rcl_worker *w = rcl_self.worker;
    __atomic_store_n(&w->n_sections, w->n_sections + 1, __ATOMIC_RELAXED);
    rcl_call(m, lock, function, context);
    __atomic_store_n(&w->n_sections, w->n_sections + 1, __ATOMIC_RELAXED);
}

void rcl_lock_take(struct rcl_worker *w, struct rcl_lock *lock) {
    if (rcl_lock_try(lock))
        return;
    rcl_block_begin(w);
    rcl_lock_wait(lock);
    rcl_block_end(w);
}

static bool pass(void *server) {
    struct rcl_server *s = server;
    bool any = false;
    uint32_t n = __atomic_load_n(&rcl_n_slots, __ATOMIC_SEQ_CST); /* a new client raises it before its first post */
    for (uint32_t i = 0; i < n; i++)
        any = rcl_serve(&s->mailbox[i], run) || any;
    return any;
}

static bool has_something_or_stops(void *server) {
    return pass(server) || stopped(server);
}

static void *serve(void *argument) {
    struct rcl_worker *w = argument;
    struct rcl_server *s = w->server;
    rcl_self.worker = w;
    for (uint32_t idle = 0; !stopped(s);) {
        if (pass(s)) {
            idle = 0;
        } else if (++idle == RCL_IDLE_PASSES) {
            if (!rcl_park_surplus(w))
                rcl_doze(&s->asleep, has_something_or_stops, s);
            idle = 0;
        } else if (rcl_look_again(idle, RCL_YIELD_PASSES)) {
            idle = RCL_IDLE_PASSES - 1; /* after another pass it sleeps */
        }
        if (__atomic_load_n(&w->counted, __ATOMIC_RELAXED) == 0) /* it was taken for blocked */
            rcl_block_end(w);
    }
    return NULL;
}

/* ---- management and backup ---- */

static bool something_waits(const struct rcl_server *s) {
    uint32_t n = __atomic_load_n(&rcl_n_slots, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < n; i++)
        if (rcl_is_posted(&s->mailbox[i]))
            return true;
    return false;
}

/* `at_once`: the server's CPU was idle, so a section that is under way is blocked. */
static void look(struct rcl_server *s, bool at_once) {
    bool waits = something_waits(s);
    pthread_mutex_lock(&s->mutex);
    for (struct rcl_worker *w = s->workers; w != NULL; w = w->next) {
        uint32_t n = __atomic_load_n(&w->n_sections, __ATOMIC_RELAXED);
        if (waits && n % 2 == 1 && (at_once || n == w->seen))
            count(w, false);
        w->seen = n;
    }
    if (waits && s->n_active == 0)
        activate(s);
    pthread_mutex_unlock(&s->mutex);
}

static void *manage(void *argument) {
    struct rcl_server *s = argument;
    while (!stopped(s)) {
        bool asleep = __atomic_load_n(&s->asleep, __ATOMIC_RELAXED) != 0;
        struct timespec tick = {0, asleep ? 10 * RCL_TICK_NS : RCL_TICK_NS};
        rcl_sleep(&s->alarm, 0, &tick);
        look(s, __atomic_exchange_n(&s->alarm, 0, __ATOMIC_RELAXED) != 0);
    }
    return NULL;
}

/* It gets the server's CPU only when no other thread wants it. Without the lowest priority it would take time away. */
static void *back_up(void *argument) {
    struct rcl_server *s = argument;
    if (sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){0}) != 0)
        return NULL;
    while (!stopped(s)) {
        bool asleep = __atomic_load_n(&s->asleep, __ATOMIC_RELAXED) != 0;
        nanosleep(&(struct timespec){0, asleep ? 10 * RCL_TICK_NS : RCL_TICK_NS / 10}, NULL);
        if (!asleep && something_waits(s)) {
            __atomic_store_n(&s->alarm, 1, __ATOMIC_RELAXED);
            rcl_wake(&s->alarm, 1);
        }
    }
    return NULL;
}

/* ---- beginning and end ---- */

static void wake_all(struct rcl_server *s) {
    __atomic_store_n(&s->stop, 1, __ATOMIC_SEQ_CST); /* before `asleep`: rcl_doze looks at it after that */
    __atomic_store_n(&s->asleep, 0, __ATOMIC_SEQ_CST);
    rcl_wake(&s->asleep, INT32_MAX);
    __atomic_store_n(&s->alarm, 1, __ATOMIC_RELEASE);
    rcl_wake(&s->alarm, 1);
    pthread_mutex_lock(&s->mutex);
    for (struct rcl_worker *w = s->parked; w != NULL; w = w->next_parked) {
        __atomic_store_n(&w->is_parked, 0, __ATOMIC_RELEASE);
        rcl_wake(&w->is_parked, 1);
    }
    pthread_mutex_unlock(&s->mutex);
}

/* As before its start, for the next one. */
static void end_workers(struct rcl_server *s) {
    struct rcl_worker *w, *next;
    for (w = s->workers; w != NULL; w = next) {
        next = w->next;
        pthread_join(w->thread, NULL);
        free(w);
    }
    s->workers = s->parked = NULL;
    s->n_active = s->stop = s->alarm = s->asleep = 0;
}

static int start_threads(struct rcl_server *s) {
    pthread_mutex_lock(&s->mutex);
    bool started = activate(s);
    pthread_mutex_unlock(&s->mutex);
    if (!started)
        return EAGAIN;
    if (pthread_create(&s->management, NULL, manage, s) != 0) {
        wake_all(s);
        end_workers(s);
        return EAGAIN;
    }
    /* Without the backup thread the management thread still looks at each tick. */
    s->has_backup = s->cpu >= 0 && pthread_create(&s->backup, NULL, back_up, s) == 0;
    return 0;
}

/* All signals but those that a section's own instructions cause: blocked, they would end the process. */
static void block_others_signals(sigset_t *before) {
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t others;
    sigfillset(&others);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&others, own[i]);
    pthread_sigmask(SIG_SETMASK, &others, before);
}

/* The threads inherit the CPU and the blocked signals. */
int rcl_start(struct rcl_server *s) {
    cpu_set_t before, one;
    sigset_t mask;
    bool pinned = s->cpu >= 0;
    CPU_ZERO(&one);
    if (pinned) {
        CPU_SET((size_t)s->cpu, &one);
        if (pthread_getaffinity_np(pthread_self(), sizeof before, &before) != 0 ||
            pthread_setaffinity_np(pthread_self(), sizeof one, &one) != 0)
            return EINVAL;
    }
    block_others_signals(&mask);
    int error = start_threads(s);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    if (pinned)
        pthread_setaffinity_np(pthread_self(), sizeof before, &before);
    return error;
}

void rcl_stop(struct rcl_server *s) {
    wake_all(s);
    pthread_join(s->management, NULL); /* no worker is made afterwards, as no section is under way */
    if (s->has_backup)
        pthread_join(s->backup, NULL);
    end_workers(s);
}
