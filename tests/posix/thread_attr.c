/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Thread attributes as pthread_create gets them. Source: POSIX.1-2017 pthread_attr_*.
 */
#include "topic.h"

#include <limits.h>
#include <sched.h>
#include <unistd.h>

static pthread_attr_t attr;

static void init(void) {
    OK(pthread_attr_init(&attr));
}
TEST(thread_attr__defaults, "joinable, inherits scheduling, system scope, SCHED_OTHER, a guard and a stack") {
    int value = -1;
    size_t size = 0;
    init();
    OK(pthread_attr_getdetachstate(&attr, &value));
    CHECK_INT(value, PTHREAD_CREATE_JOINABLE);
    OK(pthread_attr_getinheritsched(&attr, &value));
    CHECK_INT(value, PTHREAD_INHERIT_SCHED);
    OK(pthread_attr_getscope(&attr, &value));
    CHECK_INT(value, PTHREAD_SCOPE_SYSTEM);
    OK(pthread_attr_getschedpolicy(&attr, &value));
    CHECK_INT(value, SCHED_OTHER);
    OK(pthread_attr_getguardsize(&attr, &size));
    CHECK_INT(size, sysconf(_SC_PAGESIZE));
    OK(pthread_attr_getstacksize(&attr, &size));
    CHECK((long)size >= (long)PTHREAD_STACK_MIN);
}
TEST(thread_attr_setdetachstate__values, "both states set and read back, others EINVAL") {
    int value = -1;
    init();
    OK(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED));
    OK(pthread_attr_getdetachstate(&attr, &value));
    CHECK_INT(value, PTHREAD_CREATE_DETACHED);
    CHECK_RC(pthread_attr_setdetachstate(&attr, 99), EINVAL);
    OK(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_JOINABLE));
}
TEST(thread_attr_setstacksize__values, "sizes from PTHREAD_STACK_MIN on set and read back, smaller EINVAL") {
    size_t size = 0;
    init();
    OK(pthread_attr_setstacksize(&attr, (size_t)PTHREAD_STACK_MIN));
    OK(pthread_attr_getstacksize(&attr, &size));
    CHECK_INT(size, PTHREAD_STACK_MIN);
    CHECK_RC(pthread_attr_setstacksize(&attr, 1024), EINVAL);
    CHECK_RC(pthread_attr_setstacksize(&attr, 0), EINVAL);
}
TEST(thread_attr_setstack__values, "address and size set and read back, too small EINVAL") {
    static char stack[1 << 18] __attribute__((aligned(4096)));
    void *address = NULL;
    size_t size = 0;
    init();
    OK(pthread_attr_setstack(&attr, stack, sizeof stack));
    OK(pthread_attr_getstack(&attr, &address, &size));
    CHECK(address == stack);
    CHECK_INT(size, sizeof stack);
    CHECK_RC(pthread_attr_setstack(&attr, stack, 16), EINVAL);
}
TEST(thread_attr_setguardsize__values, "0 and 8 pages set and read back") {
    size_t size = 1, pages = 8 * (size_t)sysconf(_SC_PAGESIZE);
    init();
    OK(pthread_attr_setguardsize(&attr, 0));
    OK(pthread_attr_getguardsize(&attr, &size));
    CHECK_INT(size, 0);
    OK(pthread_attr_setguardsize(&attr, pages));
    OK(pthread_attr_getguardsize(&attr, &size));
    CHECK_INT(size, pages);
}
TEST(thread_attr_setscope__values, "system scope: 0; process scope: ENOTSUP; others EINVAL") {
    init();
    OK(pthread_attr_setscope(&attr, PTHREAD_SCOPE_SYSTEM));
    CHECK_RC(pthread_attr_setscope(&attr, PTHREAD_SCOPE_PROCESS), ENOTSUP);
    CHECK_RC(pthread_attr_setscope(&attr, 99), EINVAL);
}
TEST(thread_attr_setschedpolicy__values, "FIFO, RR and OTHER set and read back, others EINVAL") {
    static const int policies[] = {SCHED_FIFO, SCHED_RR, SCHED_OTHER};
    int value = -1;
    init();
    for (int i = 0; i < 3; i++) {
        OK(pthread_attr_setschedpolicy(&attr, policies[i]));
        OK(pthread_attr_getschedpolicy(&attr, &value));
        CHECK_INT(value, policies[i]);
    }
    CHECK_RC(pthread_attr_setschedpolicy(&attr, 99), EINVAL);
}
TEST(thread_attr_setinheritsched__values, "both set and read back, others EINVAL") {
    int value = -1;
    init();
    OK(pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED));
    OK(pthread_attr_getinheritsched(&attr, &value));
    CHECK_INT(value, PTHREAD_EXPLICIT_SCHED);
    CHECK_RC(pthread_attr_setinheritsched(&attr, 99), EINVAL);
}
TEST(thread_attr_setschedparam__values, "a FIFO priority set and read back, out of range EINVAL") {
    struct sched_param parameter = {.sched_priority = sched_get_priority_max(SCHED_FIFO)}, got = {0};
    init();
    OK(pthread_attr_setschedpolicy(&attr, SCHED_FIFO));
    OK(pthread_attr_setschedparam(&attr, &parameter));
    OK(pthread_attr_getschedparam(&attr, &got));
    CHECK_INT(got.sched_priority, parameter.sched_priority);
    parameter.sched_priority++;
    CHECK_RC(pthread_attr_setschedparam(&attr, &parameter), EINVAL);
}
static void *give_back(void *argument) {
    return argument;
}
TEST(thread_attr__one_object_creates_many_threads,
     "50 threads of one attribute object, destroyed before they are joined") {
    pthread_t threads[50];
    init();
    OK(pthread_attr_setstacksize(&attr, 1 << 18));
    for (long i = 0; i < 50; i++)
        OK(pthread_create(&threads[i], &attr, give_back, (void *)i));
    OK(pthread_attr_destroy(&attr));
    for (long i = 0; i < 50; i++)
        CHECK(thread_join(threads[i]) == (void *)i);
}

/* It has the rest for itself, whatever a library in between needs of it. */
#define USED_OF_IT 6000
static pthread_barrier_t barrier;
static void *use_the_stack(void *argument) {
    volatile char room[USED_OF_IT];
    for (int i = 0; i < USED_OF_IT; i++)
        room[i] = (char)i;
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < USED_OF_IT; i++)
        CHECK_INT(room[i], (char)i);
    return argument;
}
TEST(thread_attr__small_default_stacks_can_be_used,
     "40 threads use 6000 bytes of the smallest, by default and by attribute") {
    pthread_t threads[40];
    init();
    OK(pthread_attr_setstacksize(&attr, (size_t)PTHREAD_STACK_MIN));
    OK(pthread_setattr_default_np(&attr));
    OK(pthread_barrier_init(&barrier, NULL, 40));
    for (long i = 0; i < 40; i++)
        OK(pthread_create(&threads[i], i % 2 == 0 ? NULL : &attr, use_the_stack, (void *)i));
    for (long i = 0; i < 40; i++)
        CHECK(thread_join(threads[i]) == (void *)i);
}
