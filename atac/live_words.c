/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared words of real threads, and their futexes. Their costs are the host's, whatever the time scale. */
#include <sched.h>
#include <sys/mman.h>

#include "live.h"

enum { MOST_WORDS = 1 << 24 };

/* Pages are there when they are used. */
bool live_words_init(void) {
    void *memory = mmap(NULL, MOST_WORDS * sizeof *live.words, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    live.words = memory != MAP_FAILED ? memory : NULL;
    return live.words != NULL;
}

void live_words_free(void) {
    if (live.words != NULL)
        munmap(live.words, MOST_WORDS * sizeof *live.words);
}

uint32_t live_n_words(void) {
    live_lock();
    uint32_t n = MOST_WORDS - live.n_words;
    live_unlock();
    return n;
}

/* Before the run there is no thread that could end: the run does not begin then. */
uint32_t live_words(uint32_t n) {
    uint32_t lines = n / ATAC_WORDS_OF_LINE + (n % ATAC_WORDS_OF_LINE != 0);
    live_check();
    live_lock();
    uint32_t first = live.n_words;
    if (lines <= (MOST_WORDS - first) / ATAC_WORDS_OF_LINE)
        live.n_words += lines * ATAC_WORDS_OF_LINE;
    else if (live_self != NULL)
        live_fail_locked("no room for shared words");
    else
        live_note_failure("no room for shared words");
    live_unlock();
    return first;
}

/* All accesses are sequentially consistent, as those of the simulated caches are. */
uint64_t live_load(uint32_t word) {
    live_check();
    return __atomic_load_n(&live.words[word], __ATOMIC_SEQ_CST);
}

void live_store(uint32_t word, uint64_t value) {
    live_check();
    __atomic_store_n(&live.words[word], value, __ATOMIC_SEQ_CST);
}

uint64_t live_fetch_add(uint32_t word, uint64_t n) {
    live_check();
    return __atomic_fetch_add(&live.words[word], n, __ATOMIC_SEQ_CST);
}

uint64_t live_swap(uint32_t word, uint64_t value) {
    live_check();
    return __atomic_exchange_n(&live.words[word], value, __ATOMIC_SEQ_CST);
}

uint64_t live_compare_and_swap(uint32_t word, uint64_t expected, uint64_t value) {
    live_check();
    __atomic_compare_exchange_n(&live.words[word], &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return expected;
}

uint64_t live_spin_while(uint32_t word, uint64_t old) {
    uint64_t value;
    while ((value = live_load(word)) == old)
        sched_yield();
    return value;
}

/* ---- futexes ---- */

void live_futex_wait(uint32_t word, uint64_t expected) {
    live_check();
    live_lock();
    if (__atomic_load_n(&live.words[word], __ATOMIC_SEQ_CST) == expected) {
        live_self->word = word;
        live_block(LIVE_FOR_WORD, UINT64_MAX);
    }
    live_unlock();
}

void live_futex_wake(uint32_t word, uint32_t n) {
    live_check();
    live_lock();
    for (uint32_t i = 0, woken = 0; i < live.n_threads && woken < n; i++) {
        struct live_thread *t = &live.threads[(live_self->number + i) % live.n_threads];
        if (t->wait == LIVE_FOR_WORD && t->word == word) {
            live_wake(t);
            woken++;
        }
    }
    live_unlock();
}
