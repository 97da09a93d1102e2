/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * known: does an exact number of everything, which the statistics must tell. Semaphores are not the hardware's.
 *
 *   1000 locks and unlocks without contention
 *   7 barrier rounds of 5 threads
 *   10 signals, each of which finds a waiter: 10 waits, 11 locks and unlocks of each side
 *   3 broadcasts, each of which finds 4 waiters: 12 waits, 4 * 4 + 3 locks and unlocks
 *
 * known pair N: nothing but N locks and unlocks, by the second thread if N is negative, while main does nothing.
 * known turns N: one pair by each of N threads, one after the other.
 * known fork: 20 by the parent, 5 by a forked child that ends by exit, 10 more by the parent.
 * known tasks: nothing; prints how many kernel threads the process has while it has two threads.
 * known places LIST: nothing; prints the CPUs of all other kernel threads while it has two threads, in order, as soon
 * as they are LIST, and otherwise after 100 seconds. "memory" for LIST: "bound" as soon as numa_maps says so, and
 * otherwise "not bound"; "unbound": after a second.
 */
#include "subject.h"

#include <dirent.h>
#include <semaphore.h>

enum { N_PAIRS = 1000, N_MEETING = 5, N_MEETINGS = 7, N_SIGNALS = 10, N_BROADCASTS = 3, N_WAITERS = 4 };

static pthread_mutex_t alone = PTHREAD_MUTEX_INITIALIZER, mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t about_to_wait;
static unsigned turn;

/* With a pause, so that none finds the state machine still at the unlock before it. */
static void pairs(int n) {
    for (int i = 0; i < n; i++) {
        int64_t begin = now_ns(CLOCK_MONOTONIC);
        while (now_ns(CLOCK_MONOTONIC) - begin < 1000)
            ;
        OK(pthread_mutex_lock(&alone));
        OK(pthread_mutex_unlock(&alone));
    }
}

static void *pairs_of(void *n) {
    pairs((int)(intptr_t)n);
    return NULL;
}

static void *meet(void *unused) {
    (void)unused;
    for (int i = 0; i < N_MEETINGS; i++) {
        int r = pthread_barrier_wait(&barrier);
        CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
    }
    return NULL;
}

static void wait_for(unsigned wanted) {
    OK(pthread_mutex_lock(&mutex));
    CHECK(turn == wanted - 1);
    sem_post(&about_to_wait);
    OK(pthread_cond_wait(&cond, &mutex)); /* once: the hardware knows no spurious wake-up while there are elements */
    CHECK(turn == wanted);
    OK(pthread_mutex_unlock(&mutex));
}

static void *wait_all(void *n) {
    for (unsigned i = 1; i <= (unsigned)(uintptr_t)n; i++)
        wait_for(i);
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

static void give_turn(unsigned n_waiters, int (*wake)(pthread_cond_t *)) {
    for (unsigned i = 0; i < n_waiters; i++)
        while (sem_wait(&about_to_wait) != 0)
            ;
    OK(pthread_mutex_lock(&mutex)); /* when the last of them has let it go: by waiting */
    turn++;
    OK(wake(&cond));
    OK(pthread_mutex_unlock(&mutex));
}

static pid_t second_tid;

static void *post_and_wait(void *end) {
    second_tid = gettid();
    sem_post(&about_to_wait);
    while (sem_wait(end) != 0)
        ;
    return NULL;
}

static void beside_second(void (*print)(const char *), const char *wanted) {
    sem_t end;
    sem_init(&end, 0, 0);
    sem_init(&about_to_wait, 0, 0);
    pthread_t second = start(post_and_wait, &end);
    while (sem_wait(&about_to_wait) != 0)
        ;
    print(wanted);
    sem_post(&end);
    OK(pthread_join(second, NULL));
}

static void print_tasks(const char *unused) {
    int n = 0;
    (void)unused;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    for (const struct dirent *d; (d = readdir(tasks)) != NULL;)
        n += d->d_name[0] != '.';
    closedir(tasks);
    printf("%d\n", n);
}

/* The rest of the first line of a file of ours that begins with `key`, without the spaces around it; "": none. */
static void find_line(const char *path, const char *key, char *rest, size_t bytes) {
    char line[4096];
    FILE *file = fopen(path, "re");
    rest[0] = '\0';
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, key, strlen(key)) == 0) {
            snprintf(rest, bytes, "%s", line + strlen(key) + strspn(line + strlen(key), " \t"));
            rest[strcspn(rest, "\n")] = '\0';
            break;
        }
    if (file != NULL)
        fclose(file);
}

static int by_number(const void *a, const void *b) {
    return atoi(*(char *const *)a) - atoi(*(char *const *)b);
}

/* The CPUs of all kernel threads but the program's two. */
static void list_places(char *list, size_t bytes) {
    struct dirent **task;
    char path[300], cpus[512];
    size_t used = 0;
    int n = scandir("/proc/self/task", &task, NULL, NULL), n_named = 0;
    CHECK(n > 0);
    list[0] = '\0';
    char *name[64];
    for (int i = 0; i < n && n_named < 64; i++)
        if (task[i]->d_name[0] != '.')
            name[n_named++] = task[i]->d_name;
    qsort(name, (size_t)n_named, sizeof *name, by_number);
    for (int i = 0; i < n_named; i++) {
        if (atoi(name[i]) == getpid() || atoi(name[i]) == second_tid)
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", name[i]);
        find_line(path, "Cpus_allowed_list:", cpus, sizeof cpus);
        used += (size_t)snprintf(list + used, bytes - used, "%s%s", used > 0 ? " " : "", cpus);
    }
    for (int i = 0; i < n; i++)
        free(task[i]);
    free(task);
}

static bool memory_is_bound(void) {
    char line[4096];
    bool bound = false;
    FILE *maps = fopen("/proc/self/numa_maps", "re");
    CHECK(maps != NULL);
    while (fgets(line, sizeof line, maps) != NULL)
        bound |= strstr(line, " prefer") != NULL;
    fclose(maps);
    return bound;
}

static void print_places(const char *wanted) {
    char seen[4096] = "";
    for (int i = 0; i < 10000 && strcmp(seen, wanted) != 0; i++) {
        if (i > 0)
            usleep(10000);
        list_places(seen, sizeof seen);
    }
    puts(seen);
}

/* "memory": it is to be bound, however long that takes. "unbound": a second would have been enough. */
static void print_memory(const char *wanted) {
    const int n = strcmp(wanted, "memory") == 0 ? 10000 : 100;
    bool bound = memory_is_bound();
    for (int i = 0; i < n && !bound; i++) {
        usleep(10000);
        bound = memory_is_bound();
    }
    puts(bound ? "bound" : "not bound");
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "tasks") == 0) {
        beside_second(print_tasks, NULL);
        return 0;
    }
    if (argc > 2 && strcmp(argv[1], "places") == 0) {
        beside_second(strcmp(argv[2], "memory") == 0 || strcmp(argv[2], "unbound") == 0 ? print_memory : print_places,
                      argv[2]);
        return 0;
    }
    if (argc > 2 && strcmp(argv[1], "pair") == 0) {
        int n = atoi(argv[2]);
        if (n >= 0)
            pairs(n);
        else
            thread_join(start(pairs_of, (void *)(intptr_t)-n));
        return 0;
    }
    if (argc > 2 && strcmp(argv[1], "turns") == 0) {
        for (int i = 0; i < atoi(argv[2]); i++)
            thread_join(start(pairs_of, (void *)(intptr_t)1));
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "fork") == 0) {
        pairs(20);
        pid_t pid = fork();
        SYS(pid);
        pairs(pid == 0 ? 5 : 10);
        if (pid != 0)
            child_join(pid);
        return 0;
    }
    pthread_t threads[N_WAITERS];
    sem_init(&about_to_wait, 0, 0);
    pairs(N_PAIRS);

    OK(pthread_barrier_init(&barrier, NULL, N_MEETING));
    run_threads(N_MEETING, meet);

    threads[0] = start(wait_all, (void *)(uintptr_t)N_SIGNALS);
    for (int i = 0; i < N_SIGNALS; i++)
        give_turn(1, pthread_cond_signal);
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_unlock(&mutex));
    thread_join(threads[0]);

    turn = 0;
    for (unsigned i = 0; i < N_WAITERS; i++)
        threads[i] = start(wait_all, (void *)(uintptr_t)N_BROADCASTS);
    for (int i = 0; i < N_BROADCASTS; i++)
        give_turn(N_WAITERS, pthread_cond_broadcast);
    for (unsigned i = 0; i < N_WAITERS; i++)
        thread_join(threads[i]);
    return 0;
}
