/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Named semaphores: they live in files that unaware processes map too, so they stay the C library's; sem_wait, sem_post
 * and the others get them through the same entry points as the unnamed ones.
 * Source: POSIX.1-2017 sem_open, sem_close, sem_unlink.
 */
#include "topic.h"

#include <fcntl.h>
#include <limits.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char name[64];
static sem_t *sem;

#define CHECK_OPEN_FAILS(call, wanted)                                                                                 \
    do {                                                                                                               \
        errno = 0;                                                                                                     \
        CHECK((call) == SEM_FAILED);                                                                                   \
        CHECK_RC(errno, wanted);                                                                                       \
    } while (0)

static void open_new(unsigned value) {
    snprintf(name, sizeof name, "/subutai-posix-%ld", (long)getpid());
    sem = sem_open(name, O_CREAT | O_EXCL, 0600, value);
    if (sem == SEM_FAILED && errno == ENOSYS)
        test_skip("no shared memory file system");
    if (sem == SEM_FAILED)
        FAIL("sem_open(%s) failed: %s", name, check_errno_name(errno));
}
static void close_and_unlink(void) {
    SYS(sem_close(sem));
    SYS(sem_unlink(name));
}
static void check_value(int wanted) {
    int value = -1;
    SYS(sem_getvalue(sem, &value));
    CHECK_INT(value, wanted);
}
static void *wait_once(void *unused) {
    (void)unused;
    SYS(sem_wait(sem));
    return NULL;
}

TEST(sem_open__creates_with_value, "O_CREAT with value 3: getvalue gives 3, 3 trywaits succeed, the fourth is EAGAIN") {
    open_new(3);
    check_value(3);
    for (int i = 0; i < 3; i++)
        SYS(sem_trywait(sem));
    CHECK_ERRNO(sem_trywait(sem), EAGAIN);
    close_and_unlink();
}
TEST(sem_open__existing_with_O_EXCL_returns_EEXIST, "O_CREAT | O_EXCL on an existing name: EEXIST") {
    open_new(0);
    CHECK_OPEN_FAILS(sem_open(name, O_CREAT | O_EXCL, 0600, 0), EEXIST);
    close_and_unlink();
}
TEST(sem_open__existing_ignores_the_value, "O_CREAT on an existing name opens it and leaves its value") {
    open_new(2);
    sem_t *again = sem_open(name, O_CREAT, 0600, 7);
    CHECK(again != SEM_FAILED);
    check_value(2);
    SYS(sem_close(again));
    close_and_unlink();
}
TEST(sem_open__same_name_gives_same_address, "two opens in one process give one address until closed as often") {
    open_new(0);
    sem_t *again = sem_open(name, 0);
    CHECK(again == sem);
    SYS(sem_close(again));
    SYS(sem_post(sem));
    check_value(1);
    close_and_unlink();
}
TEST(sem_open__missing_returns_ENOENT, "open without O_CREAT of a name that does not exist: ENOENT") {
    CHECK_OPEN_FAILS(sem_open("/subutai-posix-does-not-exist", 0), ENOENT);
}
TEST(sem_open__value_beyond_max_returns_EINVAL, "O_CREAT with a value above SEM_VALUE_MAX: EINVAL") {
    CHECK_OPEN_FAILS(sem_open("/subutai-posix-too-big", O_CREAT, 0600, (unsigned)SEM_VALUE_MAX + 1), EINVAL);
}
TEST(sem_open__bad_names, "a name with a slash inside: EINVAL; one that is too long: an error too") {
    char too_long[NAME_MAX + 20];
    memset(too_long, 'x', sizeof too_long);
    too_long[0] = '/';
    too_long[sizeof too_long - 1] = '\0';
    CHECK_OPEN_FAILS(sem_open("/subutai/posix", O_CREAT, 0600, 0), EINVAL);
    /* POSIX says ENAMETOOLONG, glibc 2.36 EINVAL. */
    CHECK(sem_open(too_long, O_CREAT, 0600, 0) == SEM_FAILED);
    CHECK(errno == EINVAL || errno == ENAMETOOLONG);
}
TEST(sem_unlink__missing_returns_ENOENT, "unlink of a name that does not exist: ENOENT") {
    CHECK_ERRNO(sem_unlink("/subutai-posix-does-not-exist"), ENOENT);
}
TEST(sem_unlink__open_semaphore_goes_on_working, "after unlink the name is gone and the open semaphore still counts") {
    open_new(0);
    SYS(sem_unlink(name));
    CHECK_OPEN_FAILS(sem_open(name, 0), ENOENT);
    SYS(sem_post(sem));
    SYS(sem_wait(sem));
    check_value(0);
    SYS(sem_close(sem));
}
TEST(sem_wait__named_blocks_until_post, "8 threads blocked at a named semaphore pass after 8 posts") {
    pthread_t threads[8];
    open_new(0);
    for (int i = 0; i < 8; i++)
        threads[i] = thread_start(wait_once, NULL);
    let_threads_block();
    for (int i = 0; i < 8; i++)
        SYS(sem_post(sem));
    for (int i = 0; i < 8; i++)
        thread_join(threads[i]);
    check_value(0);
    close_and_unlink();
}
TEST(sem_timedwait__named_times_out, "timedwait and clockwait at a named semaphore: ETIMEDOUT, EINVAL for a bad nsec") {
    open_new(0);
    struct timespec end = time_in_ms(CLOCK_REALTIME, SHORT_MS), mono = time_in_ms(CLOCK_MONOTONIC, SHORT_MS);
    CHECK_ERRNO(sem_timedwait(sem, &end), ETIMEDOUT);
    CHECK(time_since_ms(CLOCK_REALTIME, end) >= 0);
    CHECK_ERRNO(sem_clockwait(sem, CLOCK_MONOTONIC, &mono), ETIMEDOUT);
    CHECK_ERRNO(sem_timedwait(sem, &time_nsec_too_big), EINVAL);
    close_and_unlink();
}
static void answer_by_name(void *unused) {
    (void)unused;
    sem_t *mine = sem_open(name, 0);
    CHECK(mine != SEM_FAILED);
    SYS(sem_post(mine));
    SYS(sem_close(mine));
}
TEST(sem_post__named_wakes_another_process, "a child opens the name and posts 50 times; the parent's waits return") {
    open_new(0);
    for (int i = 0; i < 50; i++) {
        pid_t child = child_start(answer_by_name, NULL);
        SYS(sem_wait(sem));
        child_join(child);
    }
    check_value(0);
    close_and_unlink();
}
