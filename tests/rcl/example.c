/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What <subutai/rcl.h> looks like in a program. Built against an installed library:
 *   cc example.c $(pkg-config --cflags --libs subutai-rcl) -pthread
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <subutai/rcl.h>

static struct rcl_lock lock;
static long balance; /* protected by the lock */

/* A section is a function; its local variables come in a context. */
struct payment {
    long amount, balance_after;
};

static void pay(void *context) {
    struct payment *p = context;
    balance += p->amount;
    p->balance_after = balance;
}

static void *pay_often(void *unused) {
    for (int i = 0; i < 1000; i++) {
        struct payment p = {.amount = 1};
        if (rcl_execute(&lock, pay, &p) != 0)
            return NULL;
    }
    return unused;
}

int main(void) {
    struct rcl_server *server;
    pthread_t thread[4];
    int error = rcl_server_create(&server, -1);
    if (error != 0) {
        fprintf(stderr, "rcl_server_create: %s\n", strerror(error));
        return 1;
    }
    rcl_lock_init(&lock, server);
    for (int i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, pay_often, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    printf("%ld\n", balance);
    rcl_server_destroy(server);
    return balance == 4000 ? 0 : 1;
}
