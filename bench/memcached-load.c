/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * memcached-load SOCKET CONNECTIONS REQUESTS [mixed|gets|sets]: a
 * concurrent client of a memcached server on a Unix socket.
 *
 * Each connection has a thread that sends its share of the requests one at a time: a set of a key of its own, then nine
 * gets of it, and so on. `gets`: each key is set once; `sets`: no key is got but at the end, when each is. Every reply
 * is checked: a get must return what this connection set last. Prints requests per second; exit status 1 if a reply was
 * wrong or a connection failed.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define N_KEYS 100 /* of each connection */
#define GETS_PER_SET 9

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static long n_requests; /* of each connection */

_Noreturn static void fail(const char *what, const char *detail) {
    fprintf(stderr, "memcached-load: %s: %s\n", what, detail);
    _exit(1);
}

static void send_all(int fd, const char *text, size_t n) {
    while (n > 0) {
        ssize_t sent = send(fd, text, n, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            fail("send", strerror(errno));
        text += sent > 0 ? sent : 0;
        n -= sent > 0 ? (size_t)sent : 0;
    }
}

/* Reads exactly as much as is expected: a request is sent only when the reply to the one before has come. */
static void expect(int fd, const char *reply) {
    char buffer[256];
    size_t n = strlen(reply), have = 0;
    while (have < n) {
        ssize_t got = recv(fd, buffer + have, n - have, 0);
        if (got == 0)
            fail("recv", "the server has closed the connection");
        if (got < 0 && errno != EINTR)
            fail("recv", strerror(errno));
        have += got > 0 ? (size_t)got : 0;
        if (memcmp(buffer, reply, have) != 0) {
            buffer[have] = '\0';
            fail("wrong reply", buffer);
        }
    }
}

static const char *const kinds[] = {"mixed", "gets", "sets"};
enum { MIXED, GETS, SETS };
static int kind;

static void set(int fd, long id, long key, long number) {
    char request[128], value[32];
    int n = snprintf(value, sizeof value, "%ld/%ld", id, number);
    n = snprintf(request, sizeof request, "set k%ld-%ld 0 0 %d\r\n%s\r\n", id, key, n, value);
    send_all(fd, request, (size_t)n);
    expect(fd, "STORED\r\n");
}

static void get(int fd, long id, long key, long number) {
    char request[128], value[32], reply[192];
    int n = snprintf(request, sizeof request, "get k%ld-%ld\r\n", id, key);
    send_all(fd, request, (size_t)n);
    n = snprintf(value, sizeof value, "%ld/%ld", id, number);
    snprintf(reply, sizeof reply, "VALUE k%ld-%ld 0 %d\r\n%s\r\nEND\r\n", id, key, n, value);
    expect(fd, reply);
}

static bool is_set(long i) {
    return kind == MIXED ? i % (GETS_PER_SET + 1) == 0 : kind == SETS || i < N_KEYS;
}

static void *connection_main(void *argument) {
    long id = (long)argument, stored[N_KEYS];
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    int r = fd < 0 ? -1 : connect(fd, (struct sockaddr *)&address, sizeof address);
    while (r != 0 && errno == ECONNREFUSED && usleep(1000) == 0) /* the socket is there before the server listens */
        r = connect(fd, (struct sockaddr *)&address, sizeof address);
    if (r != 0)
        fail("connect", strerror(errno));
    for (long i = 0; i < n_requests; i++) {
        long key = (kind == MIXED ? i / (GETS_PER_SET + 1) : i) % N_KEYS;
        if (is_set(i))
            set(fd, id, key, stored[key] = i);
        else
            get(fd, id, key, stored[key]);
    }
    for (long key = 0; kind == SETS && key < N_KEYS && key < n_requests; key++)
        get(fd, id, key, stored[key]);
    close(fd);
    return NULL;
}

static long parse(const char *text, long max) {
    char *end;
    long value = strtol(text, &end, 10);
    if (*end != '\0' || value < 1 || value > max)
        fail("illegal number", text);
    return value;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
    while (argc == 5 && kind <= SETS && strcmp(argv[4], kinds[kind]) != 0)
        kind++;
    if ((argc != 4 && argc != 5) || kind > SETS || strlen(argv[1]) >= sizeof address.sun_path)
        fail("usage", "memcached-load SOCKET CONNECTIONS REQUESTS [mixed|gets|sets]");
    strcpy(address.sun_path, argv[1]);
    long n_connections = parse(argv[2], 1000);
    n_requests = (parse(argv[3], 1000000000) + n_connections - 1) / n_connections;
    pthread_t *threads = calloc((size_t)n_connections, sizeof *threads);
    if (threads == NULL)
        fail("calloc", strerror(errno));
    double begin = now();
    for (long i = 0; i < n_connections; i++) {
        int error = pthread_create(&threads[i], NULL, connection_main, (void *)i);
        if (error != 0)
            fail("pthread_create", strerror(error));
    }
    for (long i = 0; i < n_connections; i++) {
        int error = pthread_join(threads[i], NULL);
        if (error != 0)
            fail("pthread_join", strerror(error));
    }
    printf("%.1f\n", (double)(n_requests * n_connections) / (now() - begin));
    free(threads);
    return 0;
}
