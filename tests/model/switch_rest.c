/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What libsubutai/switch wants of the rest of the library, for switch_sched.c: mostly nothing. */
#define SWITCH_SCHED_ITSELF
#include "switch_sched.h"

#include "core/cpus.h"
#include "core/eligibility_table.h"
#include "core/handlers.h"
#include "core/priority.h"
#include "core/sites.h"
#include "switch/eligibility.h"
#include "wait/wake_gap.h"

void sbt_eligibility_judge(struct sbt_eligibility *e) {
    memset(e, 0, sizeof *e);
}

void sbt_eligibility_judge_new(struct sbt_eligibility *e) {
    memset(e, 0, sizeof *e);
}

bool sbt_eligibility_is_handling(const char *symbol) {
    (void)symbol;
    return false;
}

void sbt_eligibility_judge_symbol(struct sbt_eligibility *e, const char *file, const char *symbol) {
    (void)e, (void)file, (void)symbol;
}

bool sbt_cpus_are_as_at_start(void) {
    return true;
}

bool sbt_priority_known;

uint8_t sbt_priority_read(void) {
    return 0;
}

bool sbt_fork_wipes(void) {
    return true;
}

intptr_t sbt_thread_copy_at;

union sbt_fork_page sbt_fork_page = {.known = 1};

void sbt_fork_notice(void) {}

bool (*sbt_handlers_put_back)(int signal, siginfo_t *info, ucontext_t *context);
void (*sbt_handlers_entered)(void);
void (*sbt_handlers_returned)(void *context);
void (*sbt_handlers_interrupt)(struct sbt_waiter *waiter, int signal);
uint64_t sbt_handlers_spared;

void sbt_handlers_deliver(void) {
    sched_wrong("handlers are deferred where there are none");
}

void sbt_sites_spin(bool yes) {
    (void)yes;
}

bool sbt_log_is_on(unsigned verbosity) {
    (void)verbosity;
    return false;
}

uint32_t sbt_sites_n_threads(void) {
    return 0;
}

bool sbt_fence_asymmetric = true;

void sbt_cpus_look(void) {}

bool sbt_fence_is_forbidden(void) {
    return false;
}

uint32_t sbt_cpus_most(void) {
    return sched_n_cpus_most;
}

/* No wake-up is spaced. */
bool sbt_wake_gap_on;

long sbt_wake_gap_wake(uint32_t *word, int n, uint32_t bits) {
    (void)word, (void)n, (void)bits;
    sched_wrong("wake-ups are spaced");
    return 0;
}

uint32_t sbt_wake_gap_between(uint32_t n) {
    (void)n;
    sched_wrong("wake-ups are spaced");
    return 0;
}

void sbt_wake_gap_pause(uint32_t gap_ns) {
    (void)gap_ns;
}

void sbt_wake_gap_woken(const uint32_t *word) {
    (void)word;
}

void sbt_log(unsigned verbosity, const char *first, ...) {
    (void)verbosity, (void)first;
}

void sbt_log_in_tree(const char *subject, const char *what, const char *why) {
    (void)subject, (void)what, (void)why;
}
