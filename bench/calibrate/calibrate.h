/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * subutai-calibrate: what operations cost on this machine, part by part, for `subutai calibrate`. It prints samples:
 * the command makes medians of them.
 *
 * Like subutai-bench it is an ordinary pthread program, which is not linked with the library; the part `sync` measures
 * whatever pthread implementation it is started under. It is not one of subutai-bench's kinds because a cost must be
 * the operation's alone: a kind checks an invariant and a flag for each operation, which is as much as the operation.
 *
 * A measurement takes its share of the part's time, or less if it has enough samples. Each sample is a batch of
 * operations that takes long against reading the clock, or a difference of two time stamps, less what the clock costs.
 */
#ifndef CALIBRATE_H
#define CALIBRATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum { CALIBRATE_LINE = 128, N_SAMPLES_MIN = 5, N_SAMPLES_MAX = 1000 };

extern char *const *arguments; /* main.c: the program's */
/* main.c: one line on stderr, exit status 1 (it failed) or 2 (this machine cannot be measured). */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
void must(int error, const char *call); /* fails unless 0 */

static inline uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Between looks at another thread's variable: another thread of the core may be what is waited for. */
static inline void look_again(void) {
#if defined __x86_64__
    __asm__ volatile("pause");
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

/* samples.c */
struct samples;
/* Samples that are printed as `key` at the end, in the order of these calls. */
struct samples *samples_new(const char *key);
void samples_add(struct samples *s, double value);
size_t samples_n(const struct samples *s);
double samples_median(const struct samples *s);
/* Is another sample wanted? There are some in any case, and no more than there is room for. */
bool samples_wanted(const struct samples *s, uint64_t end_ns);
/*
 * When the calling thread's CPU time tells that samples which take so long do not come. The clock would not tell: where
 * others use the CPUs, a few rounds take seconds.
 */
uint64_t hopeless_cpu_ns(double seconds);
bool is_hopeless(uint64_t cpu_ns);
void samples_print(void); /* {"key": [...], ...} and a line break */
/* Batches of operations, for so long; `operate` does n of them. A sample is the time of one. */
void samples_of_batches(const char *key, double seconds, void operate(uint64_t n));
/* What reading the clock adds to the difference of two time stamps. */
double clock_cost_ns(void);

/* soon.c: a CPU on its way to being idle. */
enum { N_LADDER_STEPS = 100, LADDER_NS = 20000 }; /* longer than that way */
/* A round of sleep and wake for each pause. */
struct ladder {
    double wake_ns[N_LADDER_STEPS];    /* the waker's part */
    double latency_ns[N_LADDER_STEPS]; /* until the sleeper was back */
    bool slept[N_LADDER_STEPS];        /* there was a sleeper to wake */
};
static inline uint64_t ladder_pause_ns(size_t step) {
    return step * LADDER_NS / N_LADDER_STEPS;
}
/* What the ladders say, as samples; idle_ns is what waking an idle CPU costs the waker. */
void soon_of(const struct ladder *ladders, size_t n, double idle_ns);

/* cpus.c: the CPUs that this process may use. */
struct cpus {
    int n, cpu[4096];        /* in ascending order */
    int n_cores, core[4096]; /* the first CPU of each core */
};
const struct cpus *cpus_usable(void);
int cpus_sharing(int cpu, const char *list); /* usable CPUs in that list of cpu's in /sys; 1 if there is no such list */
void pin_to(int cpu);                        /* the calling thread */
/* Two CPUs of two cores; of one core if there is one only. Refuses a single CPU. */
void cpus_pair(int pair[static 2]);

/* The parts. Each takes `seconds` in all. */
void measure_kernel(double seconds); /* kernel.c */
/* interrupt.c: the sender's CPU and another one, on which a thread computes; part of `kernel`. */
void measure_interrupts(double seconds, int sender, int watched);
void measure_turns(double seconds);  /* turns.c: threads that share a CPU */
void measure_core(double seconds);   /* core.c */
void measure_memory(double seconds); /* memory.c */
void measure_sync(double seconds);   /* sync.c */
void measure_fibers(double seconds); /* fibers.c */
void print_machine(void);            /* machine.c: names, numbers of CPUs, caches */

/* machine.c */
struct caches {
    uint64_t line_bytes, l1d_bytes, l2_bytes, l3_bytes;
    int last_level_cpus;
};
struct caches caches_of_cpu(int cpu);

#endif
