/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fork while other threads hammer locks. The child is promised what glibc gives it: locks that the forking thread
 * held are held by the child's only thread, locks that were free are free (although threads that do not exist in the
 * child were queued for them), locks that others held stay locked for ever. It may create threads, which contend on
 * fresh locks and on inherited ones.
 *
 * Left out because glibc does not give it: conditions and rwlocks with waiters at the fork (the ghosts stay counted),
 * recursive and error-checking mutexes across the fork (their owner is a thread number, and the child has another).
 */
#include "objects.h"

#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_HAMMERED 4
#define CHILD_SECONDS 150

static const enum mutex_kind kinds[N_HAMMERED] = {MUTEX_NORMAL, MUTEX_ADAPTIVE, MUTEX_STATIC, MUTEX_STATIC_ADAPTIVE};

struct forge {
    pthread_mutex_t hammered[N_HAMMERED];
    struct guard guards[N_HAMMERED];
    sem_t sem;
    atomic_bool over;
    pthread_mutex_t atfork_mutex;
    struct guard atfork_guard;
};

static struct forge *forge;
static struct worker atfork_me; /* names the owner in the guard */

/* ---- in the child ---- */
struct nursery {
    struct forge *forge;
    bool usable[N_HAMMERED];
    pthread_mutex_t fresh;
    struct guard fresh_guard;
    pthread_cond_t cond;
    pthread_barrier_t barrier;
    unsigned turn, n;
};

static void nursery_body(struct worker *w) {
    struct nursery *n = w->shared;
    AT("child: barrier");
    pthread_barrier_wait(&n->barrier);
    for (unsigned i = 0; i < 40; i++) {
        AT("child: inherited mutex");
        for (unsigned k = 0; k < N_HAMMERED; k++) {
            if (!n->usable[k])
                continue;
            OK(pthread_mutex_lock(&n->forge->hammered[k]));
            guard_section(&n->forge->guards[k], w);
            OK(pthread_mutex_unlock(&n->forge->hammered[k]));
        }
        AT("child: fresh mutex and condition");
        OK(pthread_mutex_lock(&n->fresh));
        while (n->turn % n->n != w->index)
            OK(pthread_cond_wait(&n->cond, &n->fresh));
        guard_section(&n->fresh_guard, w);
        n->turn++;
        OK(pthread_cond_broadcast(&n->cond));
        OK(pthread_mutex_unlock(&n->fresh));
        AT("child: semaphore");
        OK_ERRNO(sem_post(&n->forge->sem));
        sem_take(w, &n->forge->sem);
    }
    pthread_barrier_wait(&n->barrier);
}

/* Never returns. `mine` is the hammered mutex that the forking thread holds; exit status 0 if all was as it should. */
static void child(struct run *run, struct worker *w, unsigned mine, bool threads) {
    struct nursery n = {.forge = forge, .n = 3};
    torture_forked();
    alarm(CHILD_SECONDS + 20); /* should the parent be gone */
    AT("child: unlock what was held");
    CHECK(forge->guards[mine].owner == (uintptr_t)w);
    CHECK_INT(pthread_mutex_trylock(&forge->hammered[mine]), EBUSY);
    guard_leave(&forge->guards[mine], w);
    OK(pthread_mutex_unlock(&forge->hammered[mine]));
    for (unsigned i = 0; i < N_HAMMERED; i++) {
        AT("child: trylock");
        int error = pthread_mutex_trylock(&forge->hammered[i]);
        CHECK(error == 0 || error == EBUSY);
        CHECK(error == 0 || i != mine);
        n.usable[i] = error == 0;
        if (error == 0) {
            guard_section(&forge->guards[i], w); /* no thread was inside: the data are whole */
            OK(pthread_mutex_unlock(&forge->hammered[i]));
        }
    }
    AT("child: fresh objects");
    OK(pthread_mutex_init(&n.fresh, NULL));
    OK(pthread_cond_init(&n.cond, NULL));
    OK(pthread_barrier_init(&n.barrier, NULL, n.n));
    OK(pthread_mutex_lock(&n.fresh));
    OK(pthread_mutex_unlock(&n.fresh));
    int value = -1;
    OK_ERRNO(sem_getvalue(&forge->sem, &value));
    CHECK(value >= 0);
    if (threads) {
        struct team team;
        run->ops = 1;
        team_start(&team, run, n.n, nursery_body, &n);
        team_join(&team);
        CHECK_INT(n.turn, 40 * n.n);
        CHECK_INT(n.fresh_guard.after, 40 * n.n);
    }
    if (threads && rng_chance(&w->rng, 30)) { /* a grandchild, after the threads have ended */
        OK(pthread_mutex_lock(&n.fresh));
        pid_t pid = fork();
        if (pid == 0) {
            OK(pthread_mutex_unlock(&n.fresh));
            OK(pthread_mutex_lock(&forge->hammered[mine]));
            OK(pthread_mutex_unlock(&forge->hammered[mine]));
            _exit(torture_failures() != 0);
        }
        OK(pthread_mutex_unlock(&n.fresh));
        int status = -1;
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK_INT(status, 0);
    }
    _exit(torture_failures() != 0);
}

/* ---- in the parent ---- */
static void hammer(struct worker *w) {
    while (!atomic_load_explicit(&forge->over, memory_order_relaxed)) {
        unsigned k = rng_below(&w->rng, N_HAMMERED);
        mutex_take(w, &forge->hammered[k], kinds[k]);
        guard_enter(&forge->guards[k], w);
        busy(rng_below(&w->rng, 300));
        guard_leave(&forge->guards[k], w);
        AT("unlock");
        OK(pthread_mutex_unlock(&forge->hammered[k]));
        if (rng_chance(&w->rng, 10)) {
            AT("atfork mutex");
            OK(pthread_mutex_lock(&forge->atfork_mutex));
            guard_section(&forge->atfork_guard, w);
            OK(pthread_mutex_unlock(&forge->atfork_mutex));
        }
        if (rng_chance(&w->rng, 10)) {
            OK_ERRNO(sem_post(&forge->sem));
            sem_take(w, &forge->sem);
        }
        w->n[0]++;
        if (w->n[0] % 64 == 0)
            think(w);
    }
}

/* Collects `pid` within CHILD_SECONDS; a child that hangs is reported while it still can be looked at. */
static void collect(pid_t pid) {
    int64_t end = now_ns(CLOCK_MONOTONIC) + CHILD_SECONDS * NS_PER_S;
    int status = -1;
    for (;;) {
        pid_t got = waitpid(pid, &status, WNOHANG);
        CHECK(got == 0 || got == pid);
        if (got != 0)
            break;
        if (now_ns(CLOCK_MONOTONIC) > end) {
            torture_hung(pid, "a child of fork hangs");
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            break;
        }
        sleep_ns(200000);
    }
    if (WIFSIGNALED(status))
        check_fail(__FILE__, __LINE__, "child ended by signal %d", WTERMSIG(status));
    else
        CHECK_INT(WEXITSTATUS(status), 0);
}

static void forking_body(struct worker *w) {
    while (worker_more(w)) {
        unsigned mine = rng_below(&w->rng, N_HAMMERED);
        mutex_take(w, &forge->hammered[mine], kinds[mine]);
        guard_enter(&forge->guards[mine], w);
        if (rng_chance(&w->rng, 70))
            sleep_ns(rng_below(&w->rng, 200000)); /* let others queue */
        AT("fork");
        pid_t pid = fork();
        if (pid == 0)
            child(w->run, w, mine, rng_chance(&w->rng, HAVE_ASAN ? 0 : 70)); /* its allocator does not survive fork */
        CHECK(pid > 0);
        guard_leave(&forge->guards[mine], w);
        OK(pthread_mutex_unlock(&forge->hammered[mine]));
        AT("waitpid");
        if (pid > 0)
            collect(pid);
        w->n[1]++;
        DID();
    }
}

static void before_fork(void) {
    if (forge == NULL)
        return;
    OK(pthread_mutex_lock(&forge->atfork_mutex));
    guard_enter(&forge->atfork_guard, &atfork_me);
}

static void after_fork(void) {
    if (forge == NULL)
        return;
    guard_leave(&forge->atfork_guard, &atfork_me);
    OK(pthread_mutex_unlock(&forge->atfork_mutex));
}

static struct forge *forge_make(void) {
    static bool registered;
    struct forge *f = calloc(1, sizeof *f);
    if (!registered)
        OK(pthread_atfork(before_fork, after_fork, after_fork));
    registered = true;
    for (unsigned i = 0; i < N_HAMMERED; i++)
        mutex_make(&f->hammered[i], kinds[i]);
    OK(pthread_mutex_init(&f->atfork_mutex, NULL));
    OK_ERRNO(sem_init(&f->sem, 0, 0));
    return f;
}

static void with_hammers(struct run *run, void (*body)(struct worker *), unsigned n_bodies) {
    struct team hammers, forkers;
    uint64_t ops = run->ops;
    forge = forge_make();
    team_start(&hammers, run, run->threads, hammer, NULL);
    run->ops = ops;
    team_start(&forkers, run, n_bodies, body, NULL);
    team_join(&forkers);
    atomic_store(&forge->over, true);
    team_join(&hammers);
    uint64_t sections = 0;
    for (unsigned i = 0; i < N_HAMMERED; i++) {
        sections += forge->guards[i].after;
        OK(pthread_mutex_destroy(&forge->hammered[i]));
    }
    CHECK(sections >= team_sum(&hammers, 0));
    torture_note("%llu children, %llu sections around them", (unsigned long long)team_sum(&forkers, 1),
                 (unsigned long long)sections);
    team_free(&hammers);
    team_free(&forkers);
    struct forge *done = forge;
    forge = NULL;
    free(done);
}

static void fork_storm(struct run *run) {
    with_hammers(run, forking_body, 2);
}

/* ---- vfork and posix_spawn: the program and its locks must not notice ---- */
static pid_t spawn(struct worker *w) {
    pid_t pid = -1;
    if (rng_chance(&w->rng, 80)) {
        AT("vfork");
        pid = vfork();
        if (pid == 0)
            _exit(7);
    } else {
        extern char **environ;
        char *const arguments[] = {"sh", "-c", "exit 7", NULL};
        AT("posix_spawn");
        OK(posix_spawnp(&pid, "sh", NULL, NULL, arguments, environ));
    }
    return pid;
}

static void spawning_body(struct worker *w) {
    while (worker_more(w)) {
        bool held = rng_chance(&w->rng, 50);
        if (held)
            OK(pthread_mutex_lock(&forge->hammered[0]));
        pid_t pid = spawn(w);
        int status = -1;
        if (held)
            OK(pthread_mutex_unlock(&forge->hammered[0]));
        AT("waitpid");
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        w->n[1]++;
        DID();
    }
}

static void fork_spawn(struct run *run) {
    with_hammers(run, spawning_body, 2);
}

const struct torture fork_tortures[] = {
    {"fork-storm", "children use held, free and fresh locks and threads of their own", fork_storm, 4, 200, NEEDS_FORK},
    {"fork-spawn", "vfork and posix_spawn beside busy locks", fork_spawn, 4, 200, NEEDS_FORK},
    {0},
};
