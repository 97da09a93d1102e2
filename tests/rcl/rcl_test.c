/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * <subutai/rcl.h>: sections exclude each other and none is lost; nested ones, of one server and of two; conditions;
 * sections that block in the kernel while others of the server go on; threads that end; fork; bad input. Also under
 * sanitizers, and preloaded.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/checks.h"
#include "lib/tap.h"
#include "lib/threads.h"
#include "sanitized.h"
#include "subutai/rcl.h"

enum { N_THREADS = 8, N_SECTIONS = 3000 };

static struct rcl_server *server[2];
static struct rcl_lock lock[3]; /* 0 and 1: of server 0; 2: of server 1, or of server 0 with one CPU */
static uint64_t count[3];       /* protected by the locks */

static void add(void *context) {
    uint64_t *n = context, seen = *n;
    __asm__ volatile("" ::: "memory");
    *n = seen + 1;
}

static void run_threads(void *(*routine)(void *), int n) {
    pthread_t thread[64];
    for (int i = 0; i < n; i++)
        thread[i] = thread_start(routine, (void *)(intptr_t)i);
    for (int i = 0; i < n; i++)
        thread_join(thread[i]);
}

static void *count_in_all(void *argument) {
    (void)argument;
    for (int i = 0; i < N_SECTIONS; i++)
        OK(rcl_execute(&lock[i % 3], add, &count[i % 3]));
    return NULL;
}

/* ---- nested ---- */

static void nest_innermost(void *context) {
    (void)context;
    OK(rcl_execute(&lock[2], add, &count[2]));
    add(&count[1]);
}

static void nest(void *context) {
    (void)context;
    OK(rcl_execute(&lock[1], nest_innermost, NULL));
    add(&count[0]);
}

static void *nest_often(void *argument) {
    for (int i = 0; i < N_SECTIONS / 10; i++)
        if ((intptr_t)argument % 2 == 0)
            OK(rcl_execute(&lock[0], nest, NULL));
        else /* the inner locks alone, at the same time */
            OK(rcl_execute(&lock[1], nest_innermost, NULL));
    return NULL;
}

/* ---- a bounded queue ---- */

static struct {
    struct rcl_cond not_empty, not_full;
    int n; /* of four places */
    uint64_t put, got;
} queue;

static void put(void *context) {
    while (queue.n == 4)
        OK(rcl_cond_wait(&queue.not_full, &lock[0]));
    queue.n++;
    queue.put += *(uint64_t *)context;
    OK(rcl_cond_signal(&queue.not_empty));
}

static void get(void *context) {
    (void)context;
    while (queue.n == 0)
        OK(rcl_cond_wait(&queue.not_empty, &lock[0]));
    queue.n--;
    queue.got++;
    OK(rcl_cond_signal(&queue.not_full));
}

static void *use_queue(void *argument) {
    uint64_t one = 1;
    for (int i = 0; i < N_SECTIONS / 5; i++)
        OK(rcl_execute(&lock[0], (intptr_t)argument % 2 == 0 ? put : get, &one));
    return NULL;
}

/* ---- all wait, one broadcasts ---- */

static struct {
    struct rcl_cond open;
    int n_waiting;
    bool is_open;
} gate;

static void pass_gate(void *context) {
    (void)context;
    gate.n_waiting++;
    while (!gate.is_open)
        OK(rcl_cond_wait(&gate.open, &lock[0]));
}

static void open_if_all(void *context) {
    if (gate.n_waiting == N_THREADS - 1) {
        gate.is_open = true;
        OK(rcl_cond_broadcast(&gate.open));
    }
    *(bool *)context = gate.is_open;
}

static void *meet_at_gate(void *argument) {
    bool is_open = false;
    if ((intptr_t)argument != 0)
        OK(rcl_execute(&lock[0], pass_gate, NULL));
    while ((intptr_t)argument == 0 && !is_open) {
        OK(rcl_execute(&lock[0], open_if_all, &is_open));
        sched_yield();
    }
    return NULL;
}

/* ---- blocked in the kernel ---- */

static int pipe_ends[2];

static void read_byte(void *context) {
    char byte;
    *(bool *)context = read(pipe_ends[0], &byte, 1) == 1;
}

static void write_byte(void *context) {
    *(bool *)context = write(pipe_ends[1], "", 1) == 1;
}

static bool was_read, was_written;

/* The reader's section can end only if the writer's, of another lock of the same server, runs meanwhile. */
static void *read_or_write(void *argument) {
    if ((intptr_t)argument == 0)
        OK(rcl_execute(&lock[0], read_byte, &was_read));
    else {
        usleep(20000);
        OK(rcl_execute(&lock[1], write_byte, &was_written));
    }
    return NULL;
}

/* ---- threads that end; fork; refusals ---- */

static void *count_once(void *argument) {
    (void)argument;
    OK(rcl_execute(&lock[0], add, &count[0]));
    return NULL;
}

static bool child_uses_server(void) {
    uint64_t before = count[0];
    pid_t child = fork();
    if (child == 0) {
        alarm(600);
        run_threads(count_once, 4);
        OK(rcl_execute(&lock[0], add, &count[0]));
        _exit(count[0] == before + 5 ? 0 : 1);
    }
    int status;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static int refused;

static void wait_for_wrong_lock(void *context) {
    refused = rcl_cond_wait(context, &lock[1]);
}

static void destroy_own_server(void *unused) {
    (void)unused;
    refused = rcl_server_destroy(server[0]);
}

static void check_refusals(void) {
    struct rcl_cond cond;
    struct rcl_server *more[CPU_SETSIZE], *one;
    cpu_set_t usable;
    int n = 0, error, n_cpus;
    sched_getaffinity(0, sizeof usable, &usable);
    n_cpus = CPU_COUNT(&usable);
    tap_point(rcl_execute(NULL, add, NULL) == EINVAL && rcl_execute(&lock[0], NULL, NULL) == EINVAL &&
                  rcl_lock_init(NULL, server[0]) == EINVAL && rcl_lock_init(&lock[0], NULL) == EINVAL &&
                  rcl_server_create(NULL, -1) == EINVAL && rcl_server_destroy(NULL) == EINVAL &&
                  rcl_cond_init(NULL) == EINVAL,
              "nothing where something must be is refused");
    tap_point(rcl_server_create(&one, -2) == EINVAL && rcl_server_create(&one, CPU_SETSIZE) == EINVAL,
              "a CPU that there is not is refused");
    OK(rcl_cond_init(&cond));
    tap_point(rcl_cond_wait(&cond, &lock[0]) == EPERM, "a condition wait outside of a section is refused");
    OK(rcl_execute(&lock[0], wait_for_wrong_lock, &cond));
    tap_point(refused == EPERM, "a condition wait with another lock is refused");
    OK(rcl_execute(&lock[0], destroy_own_server, NULL));
    tap_point(refused == EDEADLK, "a section cannot destroy its own server");
    while ((error = rcl_server_create(&more[n], -1)) == 0 && n < CPU_SETSIZE - 1)
        n++;
    tap_point(error == EAGAIN && n + (server[1] != server[0] ? 2 : 1) == n_cpus, "more servers than CPUs are refused");
    while (n > 0)
        OK(rcl_server_destroy(more[--n]));
}

/* ---- servers that are pinned, alone: with their backup threads ---- */

/* The first CPUs that the process may use, `most` at most. */
static int first_cpus(int *cpu, int most) {
    cpu_set_t usable;
    int n = 0;
    OK_ERRNO(sched_getaffinity(0, sizeof usable, &usable));
    for (int i = 0; i < CPU_SETSIZE && n < most; i++)
        if (CPU_ISSET((size_t)i, &usable))
            cpu[n++] = i;
    return n;
}

static void check_pinned(void) {
    struct rcl_server *pinned, *same;
    int cpu;
    CHECK_INT(first_cpus(&cpu, 1), 1);
    OK(rcl_server_create(&pinned, cpu));
    for (int i = 0; i < 2; i++)
        OK(rcl_lock_init(&lock[i], pinned));
    was_read = was_written = false;
    run_threads(read_or_write, 2);
    tap_point(was_read && was_written, "pinned: a section that blocks in the kernel does not hold up another lock's");
    tap_point(rcl_server_create(&same, cpu) != 0, "two servers on one CPU are refused");
    OK(rcl_server_destroy(pinned));
}

static void *create_while_pinned(void *argument) {
    const int *cpu = argument;
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET((size_t)cpu[0], &first);
    OK(pthread_setaffinity_np(pthread_self(), sizeof first, &first));
    for (int i = 0; i < 2; i++)
        OK(rcl_server_create(&server[i], cpu[1 - i]));
    return NULL;
}

static void check_from_pinned(void) {
    int cpu[2];
    if (first_cpus(cpu, 2) < 2) {
        tap_skip("a thread that is pinned creates servers for other CPUs", "there is one CPU");
        return;
    }
    thread_join(thread_start(create_while_pinned, cpu));
    count[0] = 0;
    for (int i = 0; i < 2; i++) {
        OK(rcl_lock_init(&lock[0], server[i]));
        OK(rcl_execute(&lock[0], add, &count[0]));
        OK(rcl_server_destroy(server[i]));
    }
    tap_point(count[0] == 2, "a thread that is pinned creates servers for other CPUs");
}

static void note_cpu(void *cpu) {
    *(int *)cpu = sched_getcpu();
}

/* A thread that has ended meanwhile is none. */
static void move_all_threads(int cpu) {
    cpu_set_t one;
    const struct dirent *task;
    CPU_ZERO(&one);
    CPU_SET((size_t)cpu, &one);
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    while ((task = readdir(tasks)) != NULL)
        if (task->d_name[0] != '.')
            CHECK(sched_setaffinity(atoi(task->d_name), sizeof one, &one) == 0 || errno == ESRCH);
    closedir(tasks);
}

/* As when an administrator limits the process: also its server's threads have another CPU then. */
static void check_cpu_taken(void) {
    const char *text = "pinned: when the CPU is taken from the process, the server goes on with another";
    int cpu[2], at[2];
    if (first_cpus(cpu, 2) < 2) {
        tap_skip(text, "there is one CPU");
        return;
    }
    OK(rcl_server_create(&server[0], cpu[1]));
    OK(rcl_lock_init(&lock[0], server[0]));
    lock[1] = lock[2] = lock[0];
    OK(rcl_execute(&lock[0], note_cpu, &at[0]));
    memset(count, 0, sizeof count);
    pthread_t thread = thread_start(count_in_all, NULL);
    move_all_threads(cpu[0]);
    OK(rcl_execute(&lock[0], note_cpu, &at[1]));
    thread_join(thread);
    tap_point(at[0] == cpu[1] && at[1] == cpu[0] && count[0] + count[1] + count[2] == N_SECTIONS, "%s", text);
    OK(rcl_server_destroy(server[0]));
}

int main(void) {
    alarm(1500);
    OK(rcl_server_create(&server[0], -1));
    if (rcl_server_create(&server[1], -1) != 0)
        server[1] = server[0];
    for (int i = 0; i < 3; i++)
        OK(rcl_lock_init(&lock[i], server[i / 2]));
    run_threads(count_in_all, N_THREADS);
    tap_point(count[0] + count[1] + count[2] == (uint64_t)N_THREADS * N_SECTIONS && count[0] == count[1] &&
                  count[1] == count[2],
              "sections exclude each other and none is lost");
    count[0] = count[1] = count[2] = 0;
    run_threads(nest_often, N_THREADS);
    uint64_t n = (uint64_t)N_THREADS * (N_SECTIONS / 10);
    tap_point(count[0] == n / 2 && count[1] == n && count[2] == n,
              "nested sections, of the same server and of another");
    OK(rcl_cond_init(&queue.not_empty));
    OK(rcl_cond_init(&queue.not_full));
    run_threads(use_queue, N_THREADS);
    tap_point(queue.n == 0 && queue.put == queue.got && queue.got == (uint64_t)N_THREADS / 2 * (N_SECTIONS / 5),
              "a bounded queue with condition waits in sections");
    OK(rcl_cond_init(&gate.open));
    run_threads(meet_at_gate, N_THREADS);
    tap_point(gate.n_waiting == N_THREADS - 1, "a broadcast ends all waits");
    OK_ERRNO(pipe(pipe_ends));
    run_threads(read_or_write, 2);
    tap_point(was_read && was_written, "a section that blocks in the kernel does not hold up another lock's");
    count[0] = 0;
    for (int i = 0; i < RCL_MAX_CLIENTS / 32 + 2; i++)
        run_threads(count_once, 32);
    tap_point(count[0] == (RCL_MAX_CLIENTS / 32 + 2) * 32, "more threads than mailboxes, one after another");
    if (!UNDER_TSAN) /* it does not follow threads that a forked child makes */
        tap_point(child_uses_server(), "a forked child has servers of its own");
    tap_point(count[0] == (RCL_MAX_CLIENTS / 32 + 2) * 32, "and its parent goes on");
    check_refusals();
    if (server[1] != server[0])
        OK(rcl_server_destroy(server[1]));
    OK(rcl_server_destroy(server[0]));
    check_pinned();
    check_from_pinned();
    check_cpu_taken(); /* last: the process stays on that CPU */
    return tap_end();
}
