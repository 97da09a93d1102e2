/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Queues and semaphores that processes share: the others get on while a thread waits there. */
#include <fcntl.h>
#include <inttypes.h>
#include <mqueue.h>
#include <stdio.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <time.h>
#include <unistd.h>

#include "ordered.h"

enum { BY_SEMOP, BY_SEMTIMEDOP, BY_MSGRCV, BY_MSGSND, BY_RECEIVE, BY_TIMEDRECEIVE, BY_SEND, BY_TIMEDSEND, N_WAYS };
static const char *const names[N_WAYS] = {"semop",      "semtimedop",      "msgrcv",  "msgsnd",
                                          "mq_receive", "mq_timedreceive", "mq_send", "mq_timedsend"};
enum { BYTES = 8 };
struct message {
    long type;
    char text[BYTES];
};
static int semaphore, queue;
static mqd_t waits_at, looks_at; /* the same queue */

static int semop_by(short n, short flags) {
    struct sembuf operation = {.sem_op = n, .sem_flg = flags};
    return semop(semaphore, &operation, 1);
}

/* It waits until the other thread has done its part. */
static bool wait_by(int way) {
    const struct timespec soon = {10, 0}, end = {time(NULL) + 10, 0};
    struct sembuf down = {.sem_op = -1};
    struct message message = {.type = 1};
    return way == BY_SEMOP          ? semop(semaphore, &down, 1) == 0
           : way == BY_SEMTIMEDOP   ? semtimedop(semaphore, &down, 1, &soon) == 0
           : way == BY_MSGRCV       ? msgrcv(queue, &message, BYTES, 0, 0) == BYTES
           : way == BY_MSGSND       ? msgsnd(queue, &message, BYTES, 0) == 0
           : way == BY_RECEIVE      ? mq_receive(waits_at, message.text, BYTES, NULL) == BYTES
           : way == BY_TIMEDRECEIVE ? mq_timedreceive(waits_at, message.text, BYTES, NULL, &end) == BYTES
           : way == BY_SEND         ? mq_send(waits_at, message.text, BYTES, 0) == 0
                                    : mq_timedsend(waits_at, message.text, BYTES, 0, &end) == 0;
}

/* None of these waits. */
static void fill(void) {
    const struct message message = {.type = 1};
    while (msgsnd(queue, &message, BYTES, IPC_NOWAIT) == 0)
        ;
    while (mq_send(looks_at, message.text, BYTES, 0) == 0)
        ;
}

static bool let_go(int way) {
    struct message message = {.type = 1};
    return way <= BY_SEMTIMEDOP     ? semop_by(1, 0) == 0
           : way == BY_MSGRCV       ? msgsnd(queue, &message, BYTES, IPC_NOWAIT) == 0
           : way == BY_MSGSND       ? msgrcv(queue, &message, BYTES, 0, IPC_NOWAIT) == BYTES
           : way <= BY_TIMEDRECEIVE ? mq_send(looks_at, message.text, BYTES, 0) == 0
                                    : mq_receive(looks_at, message.text, BYTES, NULL) == BYTES;
}

/* So few fit that looks for a full queue are no loop. */
static bool make_small(void) {
    struct msqid_ds state;
    if (msgctl(queue, IPC_STAT, &state) != 0)
        return false;
    state.msg_qbytes = 4 * sizeof(struct message);
    return msgctl(queue, IPC_SET, &state) == 0;
}

static bool open_all(void) {
    char name[64];
    struct mq_attr attributes = {.mq_maxmsg = 2, .mq_msgsize = BYTES};
    snprintf(name, sizeof name, "/ordered-%" PRIdMAX, (intmax_t)getpid());
    semaphore = semget(IPC_PRIVATE, 1, 0600);
    queue = msgget(IPC_PRIVATE, 0600);
    waits_at = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
    looks_at = mq_open(name, O_RDWR | O_NONBLOCK);
    mq_unlink(name);
    return semaphore >= 0 && queue >= 0 && make_small() && waits_at != (mqd_t)-1 && looks_at != (mqd_t)-1;
}

static void *waiter(void *way) {
    return wait_by((int)(uintptr_t)way) ? way : (void *)-1;
}

int through_queues(void) {
    bool right = open_all();
    for (int way = 0; right && way < N_WAYS; way++) {
        pthread_t thread;
        void *waited;
        if (way == BY_MSGSND || way == BY_SEND || way == BY_TIMEDSEND)
            fill();
        pthread_create(&thread, NULL, waiter, (void *)(uintptr_t)way);
        for (int k = 0; k < ROUNDS; k++)
            locked_add(0);
        right = let_go(way) && pthread_join(thread, &waited) == 0 && waited == (void *)(uintptr_t)way;
        if (right)
            puts(names[way]);
        while (msgrcv(queue, &(struct message){0}, BYTES, 0, IPC_NOWAIT) == BYTES)
            ;
        char text[BYTES];
        while (mq_receive(looks_at, text, BYTES, NULL) == BYTES)
            ;
    }
    if (semaphore >= 0)
        semctl(semaphore, 0, IPC_RMID);
    if (queue >= 0)
        msgctl(queue, IPC_RMID, NULL);
    if (!right)
        perror("queues");
    return 0;
}
