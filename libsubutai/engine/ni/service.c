/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The NI service threads: each serves a block of tiles, looks for a while when there is nothing to do, as long as
 * that takes no core away from the program (wait/adapt.h), and then sleeps until a request is handed in.
 *
 * They run from the process's second thread on. Before that, and in a forked child until its second thread, a thread
 * serves itself: nothing may be created inside malloc or in a child that is about to exec. They are threads of glibc's,
 * so they keep the process alive; when the program's last thread ends they end too.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>

#include "core/log.h"
#include "core/real.h"
#include "core/thread.h"
#include "engine/ni/ni.h"
#include "wait/futex.h"
#include "wait/park.h"
#include "wait/turn.h"

#define TILES_PER_THREAD 32
#define MAX_SERVICES 64
#define STACK_BYTES (256 * 1024)
#define EAGER_LOOKS 8000 /* at mailboxes, in a row, while nobody of this process wants the core */
#define EAGER_TURNS 1000 /* through all of them, at most */
#define EAGER_TURNS_CROWDED 100
#define MAX_YIELDS 64
#define LONG_TURN_NS 200000

struct service {
    uint32_t dozes __attribute__((aligned(64))); /* atomic, futex: asleep, or about to be */
    uint32_t number;
    uint32_t from, to; /* tiles */
    struct ni_eager eager;
    /* Tiles on which threads sit: their mailboxes are looked at. Atomic: appended to under `placing`. */
    uint32_t n_occupied __attribute__((aligned(64)));
    uint16_t occupied[HW_MAX_TILES];
    uint64_t sent[HW_MAX_TILES / 64]
        __attribute__((aligned(64))); /* bit: another service has sent this tile something */
};

static struct service services[MAX_SERVICES];
static uint32_t n_services; /* 0: inline service */
static uint32_t tiles_each;
static enum { STOPPED, STARTING, RUNNING } state; /* atomic */
static uint32_t quit;                             /* atomic */
static uint32_t n_alive;                          /* service threads that have not come to their end; atomic */
static bool unable;                               /* threads could not be created once: not tried again */
static uint32_t placing;
static uint64_t known[HW_MAX_TILES / 64]; /* tiles on which a thread sits or has sat; under placing */
static pthread_key_t main_key;
static int (*numa_run_on_node)(int); /* libnuma's, if there is more than one node */
static uint32_t n_nodes;

bool ni_service_runs(void) {
    return __atomic_load_n((int *)&state, __ATOMIC_ACQUIRE) == RUNNING;
}

static struct service *service_of(const struct ni_tile *tile) {
    return &services[(uint32_t)(tile - ni_machine.tiles) / tiles_each];
}

void ni_service_wake(const struct ni_tile *tile) {
    struct service *s = service_of(tile);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* the request before the look at whether anybody must be woken for it */
    if (SBT_UNLIKELY(__atomic_load_n(&s->dozes, __ATOMIC_RELAXED) != 0) &&
        __atomic_exchange_n(&s->dozes, 0, __ATOMIC_RELAXED) != 0)
        sbt_futex_wake(&s->dozes, 1);
}

void ni_service_occupy(uint32_t number) {
    if (n_services == 0)
        return;
    struct service *s = service_of(&ni_machine.tiles[number]);
    ni_take(&placing);
    if ((known[number / 64] >> number % 64 & 1) == 0) {
        known[number / 64] |= UINT64_C(1) << number % 64;
        s->occupied[s->n_occupied] = (uint16_t)number;
        __atomic_store_n(&s->n_occupied, s->n_occupied + 1, __ATOMIC_RELEASE);
    }
    ni_release(&placing);
}

bool ni_service_hand_over(const struct ni_tile *from, const struct ni_tile *to) {
    if (!ni_service_runs())
        return false;
    struct service *s = service_of(to);
    if (s == service_of(from))
        return false;
    uint32_t number = (uint32_t)(to - ni_machine.tiles);
    __atomic_fetch_or(&s->sent[number / 64], UINT64_C(1) << number % 64, __ATOMIC_RELEASE);
    ni_service_wake(to);
    return true;
}

static bool look_at_mailboxes(const struct service *s) {
    bool any = false;
    uint32_t n = __atomic_load_n(&s->n_occupied, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < n; i++) {
        struct ni_tile *tile = &ni_machine.tiles[s->occupied[i]];
        if (ni_has_arrivals(tile)) {
            ni_serve(tile);
            any = true;
        }
    }
    return any;
}

static bool look_at_sent(struct service *s) {
    bool any = false;
    if (n_services == 1)
        return false;
    for (uint32_t i = s->from / 64; i <= (s->to - 1) / 64; i++) {
        if (__atomic_load_n(&s->sent[i], __ATOMIC_RELAXED) == 0)
            continue;
        any = true;
        for (uint64_t bits = __atomic_exchange_n(&s->sent[i], 0, __ATOMIC_ACQUIRE); bits != 0; bits &= bits - 1)
            ni_serve(&ni_machine.tiles[i * 64 + (uint32_t)__builtin_ctzll(bits)]);
    }
    return any;
}

/* Serves what is due. True if there was anything; else when there will be, UINT64_MAX: when somebody hands it in. */
static bool look(struct service *s, uint64_t *next_cycles) {
    bool any = look_at_mailboxes(s);
    any |= look_at_sent(s);
    *next_cycles = UINT64_MAX;
    if (ni_machine.time_scale == 0)
        return any;
    uint64_t now = ni_now_cycles();
    for (uint32_t i = s->from; i < s->to; i++) {
        struct ni_tile *tile = &ni_machine.tiles[i];
        uint64_t next = __atomic_load_n(&tile->next_cycles, __ATOMIC_RELAXED);
        if (next <= now) {
            ni_serve(tile);
            any = true;
            next = __atomic_load_n(&tile->next_cycles, __ATOMIC_RELAXED);
        }
        if (next < *next_cycles)
            *next_cycles = next;
    }
    return any;
}

static void doze(struct service *s) {
    uint64_t next;
    __atomic_store_n(&s->dozes, 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (!look(s, &next) && next == UINT64_MAX && __atomic_load_n(&quit, __ATOMIC_RELAXED) == 0)
        sbt_park(&s->dozes, 1, NULL);
    __atomic_store_n(&s->dozes, 0, __ATOMIC_RELAXED);
}

/* Look again and again for a moment. */
static bool look_eagerly(struct service *s, uint64_t *next_cycles) {
    bool found = false;
    if (!ni_eager_pays(&s->eager))
        return false;
    uint32_t turns = EAGER_TURNS_CROWDED, n = __atomic_load_n(&s->n_occupied, __ATOMIC_RELAXED);
    if (sbt_cores_to_spare()) { /* other processes may want the core all the same */
        turns = EAGER_LOOKS / (n + 1);
        turns = turns > EAGER_TURNS ? EAGER_TURNS : turns < EAGER_TURNS_CROWDED ? EAGER_TURNS_CROWDED : turns;
    }
    for (uint32_t i = 0; i < turns && !found; i++) {
        found = look(s, next_cycles);
        sbt_cpu_relax();
    }
    ni_eager_done(&s->eager, found);
    return found;
}

/*
 * With more threads than cores a turn in the run queue comes when the others have had theirs and handed in what they
 * had, all of which is then served at once; to sleep instead would be to be woken by each of them. Not beside somebody
 * who computes: a turn then takes milliseconds, and being woken is quicker.
 */
static bool look_in_turn(struct service *s, uint64_t *next_cycles) {
    for (uint32_t i = 0; i < MAX_YIELDS; i++) {
        uint64_t now = sbt_now_ns(), took = sbt_turn_give(&now);
        bool found = look(s, next_cycles);
        if (found || took == 0 || took > LONG_TURN_NS)
            return found;
    }
    return false;
}

static void *serve(void *argument) {
    struct service *s = argument;
    if (numa_run_on_node != NULL)
        numa_run_on_node((int)(s->number * n_nodes / n_services));
    while (__atomic_load_n(&quit, __ATOMIC_ACQUIRE) == 0) {
        uint64_t next = UINT64_MAX;
        if (look_eagerly(s, &next) || look(s, &next))
            continue;
        if (next != UINT64_MAX)
            ni_wait_until(next); /* a packet is on its way */
        else if (!look_in_turn(s, &next))
            doze(s);
    }
    /* What this thread has put off for its time while it was told to end: nobody comes back for it. */
    for (uint32_t i = s->from; i < s->to; i++)
        ni_serve(&ni_machine.tiles[i]);
    sbt_runnable_add(-1);
    __atomic_fetch_sub(&n_alive, 1, __ATOMIC_RELEASE); /* pairs with ni_service_begin's acquire */
    return NULL;
}

/*
 * Placement: blocks of tiles over the memory nodes in turn. libnuma is loaded only where there is more than one node:
 * it reads /sys when it is loaded, which would cost every program start as much as the rest of this library.
 */
static void place(void) {
    if (sbt_syscall3(SYS_faccessat, AT_FDCWD, "/sys/devices/system/node/node1", 0) != 0)
        return;
    void *numa = dlopen("libnuma.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*available)(void) = numa != NULL ? (int (*)(void))dlsym(numa, "numa_available") : NULL;
    int (*max_node)(void) = numa != NULL ? (int (*)(void))dlsym(numa, "numa_max_node") : NULL;
    int (*run_on_node)(int) = numa != NULL ? (int (*)(int))dlsym(numa, "numa_run_on_node") : NULL;
    if (available == NULL || max_node == NULL || run_on_node == NULL || available() < 0) {
        sbt_log(1, "no libnuma: the NI threads are placed by the kernel", NULL);
        return;
    }
    numa_run_on_node = run_on_node;
    n_nodes = (uint32_t)max_node() + 1;
}

static bool create(struct service *s) {
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, old;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* handlers are for the program's threads */
    sbt_runnable_add(1);
    __atomic_fetch_add(&n_alive, 1, __ATOMIC_RELAXED);
    int r = sbt_real.pthread_create(&thread, &attr, serve, s);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    if (r != 0) {
        sbt_runnable_add(-1);
        __atomic_fetch_sub(&n_alive, 1, __ATOMIC_RELAXED);
    }
    return r == 0;
}

static void stop(void) {
    __atomic_store_n((int *)&state, STOPPED, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* whoever still saw it running has handed in what is served below */
    __atomic_store_n(&quit, 1, __ATOMIC_RELEASE);
    for (uint32_t i = 0; i < n_services; i++)
        ni_service_wake(&ni_machine.tiles[services[i].from]);
}

void ni_service_begin(void) {
    int seen = STOPPED;
    if (n_services == 0 || unable || __atomic_load_n((int *)&state, __ATOMIC_RELAXED) != STOPPED ||
        !__atomic_compare_exchange_n((int *)&state, &seen, STARTING, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    /* Those of an earlier beginning have not all ended: two that share a place would miss each other's wake-ups. */
    if (__atomic_load_n(&n_alive, __ATOMIC_ACQUIRE) != 0) {
        __atomic_store_n((int *)&state, STOPPED, __ATOMIC_RELEASE);
        return; /* the next thread may find them gone */
    }
    place();
    __atomic_store_n(&quit, 0, __ATOMIC_RELAXED);
    uint32_t n = 0;
    while (n < n_services && create(&services[n]))
        n++;
    if (n < n_services) { /* thread limit: all or nobody, as tiles are dealt out already */
        sbt_log(1, "no NI threads can be created: threads serve themselves", NULL);
        stop();
        unable = true;
        return;
    }
    __atomic_store_n((int *)&state, RUNNING, __ATOMIC_RELEASE);
}

void ni_service_end(void) {
    if (!ni_service_runs())
        return;
    stop();
    for (uint32_t i = 0; i < ni_machine.n_tiles; i++)
        ni_serve(&ni_machine.tiles[i]); /* what they have left */
}

static void main_ends(void *unused) {
    (void)unused;
    ni_thread_exit();
}

void ni_service_start(const struct sbt_options *options) {
    if (options->value[SBT_OPT_NI_SERVICE].u == SBT_NI_SERVICE_INLINE)
        return;
    uint32_t n = (uint32_t)options->value[SBT_OPT_NI_THREADS].u, tiles = ni_machine.n_tiles;
    if (n == 0) {
        n = (tiles + TILES_PER_THREAD - 1) / TILES_PER_THREAD;
        n = n > sbt_n_cpus / 2 ? sbt_n_cpus / 2 : n;
        n = n > 0 ? n : 1;
    }
    n = n > tiles ? tiles : n;
    n = n > MAX_SERVICES ? MAX_SERVICES : n;
    tiles_each = (tiles + n - 1) / n;
    n_services = (tiles + tiles_each - 1) / tiles_each;
    for (uint32_t i = 0; i < n_services; i++) {
        uint32_t to = (i + 1) * tiles_each;
        services[i].number = i;
        services[i].from = i * tiles_each;
        services[i].to = to < tiles ? to : tiles;
    }
    /* The main thread may end by pthread_exit, which nobody else tells us. */
    if (pthread_key_create(&main_key, main_ends) == 0)
        pthread_setspecific(main_key, &main_key);
}

void ni_service_fork_child(void) {
    state = STOPPED;
    quit = placing = n_alive = 0;
    for (uint32_t i = 0; i < n_services; i++)
        services[i].dozes = 0;
}
