/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A hot lock with names as compilers make them: of C++, and of Rust in its old and its new mangling. They are written
 * out, so that the test needs none of these compilers.
 */
#include "disease.h"

/* app::(anonymous namespace)::queue */
pthread_mutex_t queue __asm__("_ZN3app12_GLOBAL__N_15queueE") = PTHREAD_MUTEX_INITIALIZER;

/* app::pool::push, with the hash of the old mangling */
void push(void) __asm__("_ZN3app4pool4push17h0123456789abcdefE");
__attribute__((noinline)) void push(void) {
    pthread_mutex_lock(&queue);
    compute(200);
    pthread_mutex_unlock(&queue);
}

#define TWICE(text) text text
#define OFTEN(text) TWICE(TWICE(TWICE(TWICE(TWICE(TWICE(TWICE(text)))))))

/* appp::gödel::gödel::..., 128 times: longer than what is shown, and the last byte of that is within a character */
void longest(void) __asm__("_R" OFTEN("Nv") "C4appp" OFTEN("u8gdel_5qa"));
__attribute__((noinline)) void longest(void) {
    pthread_mutex_lock(&queue);
    compute(50);
    pthread_mutex_unlock(&queue);
}

/* app::pool::worker, in the new mangling */
void *worker(void *argument) __asm__("_RNvNtCs4fqI2P2rA04_3app4pool6worker");
void *worker(void *argument) {
    for (int i = 0; i < 100; i++) {
        push();
        longest();
        compute(20);
    }
    return argument;
}

int main(void) {
    run(4, worker);
    return 0;
}
