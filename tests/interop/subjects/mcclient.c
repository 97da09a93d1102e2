/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A concurrent memcached client over the text protocol: N threads with a connection each on the server's local socket
 * (argument 1). Every thread sets and reads back keys of its own and checks the bytes; all of them raise one counter
 * with incr and another with gets/cas (compare and swap, repeated until stored). No update may be lost: both counters
 * must end at the number of successful updates. The client itself runs without the library.
 */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { N_THREADS = 12, N_ROUNDS = 250, N_KEYS = 40, N_CAS = 40 };

static const char *path;

struct result {
    long n_checked, n_wrong, n_cas_tries;
};

struct client {
    int me;
    struct result result;
};

static FILE *connect_to_server(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        fprintf(stderr, "%s: path too long for a socket\n", path);
        exit(2);
    }
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    int r = fd < 0 ? -1 : connect(fd, (struct sockaddr *)&address, sizeof address);
    while (r != 0 && errno == ECONNREFUSED && usleep(1000) == 0) /* the socket is there before the server listens */
        r = connect(fd, (struct sockaddr *)&address, sizeof address);
    if (r != 0) {
        fprintf(stderr, "connect: %s\n", strerror(errno));
        exit(2);
    }
    FILE *stream = fdopen(fd, "r+");
    if (stream == NULL)
        exit(2);
    return stream;
}

static void __attribute__((format(printf, 2, 3))) ask(FILE *server, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fseek(server, 0, SEEK_CUR);
    vfprintf(server, format, arguments);
    va_end(arguments);
    fflush(server);
    fseek(server, 0, SEEK_CUR);
}

static char *answer(FILE *server, char *line, int size) {
    if (fgets(line, size, server) == NULL) {
        fprintf(stderr, "the server closed a connection\n");
        exit(1);
    }
    line[strcspn(line, "\r\n")] = '\0';
    return line;
}

/* Value of KEY into `value`, its cas number into *cas; false: not there. */
static int get(FILE *server, const char *key, char *value, int size, unsigned long long *cas) {
    char line[300], name[100];
    unsigned flags, length;
    ask(server, "gets %s\r\n", key);
    if (strcmp(answer(server, line, sizeof line), "END") == 0)
        return 0;
    if (sscanf(line, "VALUE %99s %u %u %llu", name, &flags, &length, cas) != 4 || strcmp(name, key) != 0) {
        fprintf(stderr, "gets %s answered: %s\n", key, line);
        exit(1);
    }
    answer(server, value, size);
    answer(server, line, sizeof line);
    return strlen(value) == length && strcmp(line, "END") == 0;
}

static void make_value(char *value, int thread, int key, int round) {
    int n = sprintf(value, "%d.%d.%d.", thread, key, round);
    int length = n + (thread * 31 + key * 17 + round) % 600;
    memset(value + n, 'a' + (key + round) % 26, (size_t)(length - n));
    value[length] = '\0';
}

static void *client(void *arg) {
    struct client *one = arg;
    struct result *result = &one->result;
    FILE *server = connect_to_server();
    int me = one->me;
    char line[2000], key[60], value[1000], expected[1000];
    unsigned long long cas;
    int written[N_KEYS];
    memset(written, -1, sizeof written);
    for (int round = 0; round < N_ROUNDS; round++) {
        int k = (round * 7 + me) % N_KEYS;
        sprintf(key, "own.%d.%d", me, k);
        if (written[k] >= 0) {
            make_value(expected, me, k, written[k]);
            result->n_wrong += !get(server, key, value, sizeof value, &cas) || strcmp(value, expected) != 0;
            result->n_checked++;
        }
        make_value(expected, me, k, round);
        ask(server, "set %s 0 0 %zu\r\n%s\r\n", key, strlen(expected), expected);
        result->n_wrong += strcmp(answer(server, line, sizeof line), "STORED") != 0;
        written[k] = round;
        ask(server, "incr counter 1\r\n");
        result->n_wrong += atol(answer(server, line, sizeof line)) <= 0;
    }
    for (int done = 0; done < N_CAS;) {
        if (!get(server, "swapped", value, sizeof value, &cas)) {
            result->n_wrong++;
            break;
        }
        sprintf(expected, "%ld", atol(value) + 1);
        ask(server, "cas swapped 0 0 %zu %llu\r\n%s\r\n", strlen(expected), cas, expected);
        done += strcmp(answer(server, line, sizeof line), "STORED") == 0;
        result->n_cas_tries++;
    }
    fclose(server);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    path = argv[1];
    FILE *server = connect_to_server();
    char line[300], value[300];
    unsigned long long cas;
    ask(server, "set counter 0 0 1\r\n0\r\n");
    int stored = strcmp(answer(server, line, sizeof line), "STORED") == 0;
    ask(server, "set swapped 0 0 1\r\n0\r\n");
    stored += strcmp(answer(server, line, sizeof line), "STORED") == 0;
    if (stored != 2)
        return 1;

    struct client one[N_THREADS];
    memset(one, 0, sizeof one);
    pthread_t thread[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) {
        one[i].me = i;
        if (pthread_create(&thread[i], NULL, client, &one[i]) != 0)
            return 2;
    }
    long n_checked = 0, n_wrong = 0, n_tries = 0;
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(thread[i], NULL);
        n_checked += one[i].result.n_checked;
        n_wrong += one[i].result.n_wrong;
        n_tries += one[i].result.n_cas_tries;
    }
    long counter = get(server, "counter", value, sizeof value, &cas) ? atol(value) : -1;
    long swapped = get(server, "swapped", value, sizeof value, &cas) ? atol(value) : -1;
    printf("values read back %ld, wrong %ld, counter %ld, swapped %ld\n", n_checked, n_wrong, counter, swapped);
    fprintf(stderr, "cas tries %ld\n", n_tries);
    return !(n_wrong == 0 && counter == (long)N_THREADS * N_ROUNDS && swapped == (long)N_THREADS * N_CAS);
}
