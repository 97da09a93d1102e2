/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A hot lock with names as compilers make them: of C++, and of Rust in its old and its new mangling. They are written
 * out, so that the test needs none of these compilers.
 */
#include "disease.h"

/* app::(anonymous namespace)::queue */
pthread_mutex_t queue __asm__("_ZN3app12_GLOBAL__N_15queueE") = PTHREAD_MUTEX_INITIALIZER;

#define TWICE(text) text text
#define OFTEN(text) TWICE(TWICE(TWICE(TWICE(TWICE(TWICE(TWICE(text)))))))

/* app::namespaces::namespaces::...::wide, longer than a line */
pthread_mutex_t wide __asm__("_ZN3app" TWICE(TWICE(TWICE(TWICE("10namespaces")))) "4wideE") = PTHREAD_MUTEX_INITIALIZER;

/* f<A<int, int>, A<A<int, int>, A<int, int>>, ...>: each argument is twice the one before. */
#define PAIRS(a, b, c, d, e, f, g)                                                                                     \
    "S0_IS" a "_S" a "_ES0_IS" b "_S" b "_ES0_IS" c "_S" c "_ES0_IS" d "_S" d "_ES0_IS" e "_S" e "_ES0_IS" f "_S" f    \
    "_ES0_IS" g "_S" g "_E"
void swollen(void) __asm__("_Z1fI1AIiiE" PAIRS("1", "2", "3", "4", "5", "6", "7")
                               PAIRS("8", "9", "A", "B", "C", "D", "E") PAIRS("F", "G", "H", "I", "J", "K", "L")
                                   PAIRS("M", "N", "O", "P", "Q", "R", "S")
                                       PAIRS("T", "U", "V", "W", "X", "Y", "Z") "EvT_");
__attribute__((noinline)) void swollen(void) {
    pthread_mutex_lock(&wide);
    compute(10);
    pthread_mutex_unlock(&wide);
}

/* app::pool::push, with the hash of the old mangling */
void push(void) __asm__("_ZN3app4pool4push17h0123456789abcdefE");
__attribute__((noinline)) void push(void) {
    pthread_mutex_lock(&queue);
    compute(200);
    pthread_mutex_unlock(&queue);
}

/* appp::gödel::gödel::..., 128 times: longer than what is shown, and the last byte of that is within a character */
void longest(void) __asm__("_R" OFTEN("Nv") "C4appp" OFTEN("u8gdel_5qa"));
__attribute__((noinline)) void longest(void) {
    pthread_mutex_lock(&queue);
    compute(50);
    pthread_mutex_unlock(&queue);
}

/* On the heap, by a function with a name that no column has room for. */
static pthread_mutex_t *made;
void make_the_mutex_that_all_of_the_workers_wait_for(void);
__attribute__((noinline)) void make_the_mutex_that_all_of_the_workers_wait_for(void) {
    made = malloc(sizeof *made);
    if (made == NULL || pthread_mutex_init(made, NULL) != 0)
        exit(1);
}

static void use_made(void) {
    pthread_mutex_lock(made);
    compute(50);
    pthread_mutex_unlock(made);
}

/* app::pool::worker, in the new mangling */
void *worker(void *argument) __asm__("_RNvNtCs4fqI2P2rA04_3app4pool6worker");
void *worker(void *argument) {
    for (int i = 0; i < 100; i++) {
        push();
        longest();
        swollen();
        use_made();
        compute(20);
    }
    return argument;
}

int main(void) {
    make_the_mutex_that_all_of_the_workers_wait_for();
    run(4, worker);
    return 0;
}
