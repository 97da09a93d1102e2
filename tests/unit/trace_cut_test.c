/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The encoder, left for good after each of its instructions while it encodes the first event of a block, as by a signal
 * handler that ends the process: what is encoded after that is read as it was written. By single steps.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "encode.h"
#include "lib/suite.h"
#include "trace.h"

#define TRAP_FLAG 0x100L
#define STEPS_MOST 100000

static struct trace_encoder encoder; /* 64 KiB and more: not for a stack */
static sigjmp_buf out;
static volatile long steps_left;
static volatile bool stepping;

static void step(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    if (!stepping)
        ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    else if (steps_left-- <= 0) {
        stepping = false;
        siglongjmp(out, 1);
    }
}

/* Past the red zone of the function that it is inlined into. */
static void begin_to_step(void) {
    stepping = true;
    __asm__ volatile("sub $128, %%rsp; pushfq; orq $0x100, (%%rsp); popfq; add $128, %%rsp" ::: "memory", "cc");
}

static struct sbt_trace_event event(uint8_t op, uint32_t object, uint32_t site, uint64_t order, uint64_t at_ns) {
    return (struct sbt_trace_event){.op = op,
                                    .type = SBT_TRACE_MUTEX,
                                    .object = object,
                                    .other = SBT_TRACE_NONE,
                                    .site = site,
                                    .work_ns = 100,
                                    .took_ns = 50,
                                    .order = order,
                                    .at_ns = at_ns};
}

static void put(FILE *file, const void *bytes, size_t n) {
    ck_assert(n == 0 || fwrite(bytes, n, 1, file) == 1);
}

static void put_block(FILE *file) {
    struct trace_block header;
    trace_encoder_header(&encoder, &header);
    put(file, &header, sizeof header);
    put(file, encoder.events, encoder.n_event_bytes);
    put(file, encoder.templates, encoder.n_templates * sizeof encoder.templates[0]);
    put(file, encoder.definitions, encoder.n_definition_bytes);
    trace_encoder_next(&encoder);
}

static void put_beginning(FILE *file) {
    struct trace_preamble preamble = TRACE_PREAMBLE(0);
    struct trace_block header;
    uint8_t text[64], *end = text;
    *end++ = TRACE_DEFINE_COMMAND;
    end = trace_put(end, 1);
    *end++ = 'x';
    *end++ = TRACE_DEFINE_ENGINE;
    end = trace_put(end, 1);
    *end++ = 'y';
    *end++ = TRACE_DEFINE_PROCESS;
    end = trace_put(trace_put(trace_put(end, 1), 1), 1);
    trace_definitions_header(&header, TRACE_BLOCK_BEGIN, text, (uint32_t)(end - text));
    put(file, &preamble, sizeof preamble);
    put(file, &header, sizeof header);
    put(file, text, (size_t)(end - text));
}

static void put_end(FILE *file, uint64_t n_events, uint64_t n_blocks, uint64_t n_lost) {
    struct trace_block header;
    uint8_t text[64], *end = text;
    *end++ = TRACE_DEFINE_TOTALS;
    end = trace_put(trace_put(trace_put(end, n_events), n_blocks), n_lost);
    trace_definitions_header(&header, TRACE_BLOCK_END, text, (uint32_t)(end - text));
    header.clock_ns = 1000000;
    header.n_objects = header.n_sites = 10;
    header.n_threads = 1;
    header.header_sum = trace_header_sum(&header);
    put(file, &header, sizeof header);
    put(file, text, (size_t)(end - text));
}

/* As the recorder goes on (rec_flush_interrupted); true: the event that was interrupted counts. */
static bool go_on(FILE *file) {
    bool counted = encoder.n_events != 0;
    if (counted)
        put_block(file);
    else
        trace_encoder_again(&encoder);
    return counted;
}

/* True: it was left before its end. */
static __attribute__((noinline)) bool encode_and_leave(const struct sbt_trace_event *event, long steps) {
    steps_left = steps;
    if (sigsetjmp(out, 1) != 0)
        return true;
    begin_to_step();
    trace_encode(&encoder, event);
    stepping = false;
    return false;
}

/* False: the event was encoded before as many instructions had been made. */
static bool cut_after(long steps, const char *path) {
    uint64_t t = 1000;
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    memset(&encoder, 0, sizeof encoder);
    encoder.slip_min_ns = 1000;
    encoder.overhead_ns = 60;
    put_beginning(file);
    for (uint32_t i = 0; i < 20; i++, t += 210) {
        struct sbt_trace_event e = event(i % 2 == 0 ? SBT_TRACE_MUTEX_LOCK : SBT_TRACE_MUTEX_UNLOCK, i / 2,
                                         i / 2 % 3 + i % 2 * 5, i % 2 == 0, t);
        trace_encode(&encoder, &e);
    }
    put_block(file);
    struct sbt_trace_event lost = event(SBT_TRACE_MUTEX_LOCK, 7, 1, 2, t);
    t += 210;
    bool left = encode_and_leave(&lost, steps);
    bool counted = go_on(file);
    const struct sbt_trace_event wanted[] = {
        event(SBT_TRACE_MUTEX_UNLOCK, 7, 6, 0, t), event(SBT_TRACE_MUTEX_LOCK, 5, 1, 2, t + 210),
        event(SBT_TRACE_MUTEX_LOCK, 7, 1, 3, t + 420), event(SBT_TRACE_MUTEX_UNLOCK, 3, 2, 0, t + 630)};
    for (size_t i = 0; i < 4; i++)
        trace_encode(&encoder, &wanted[i]);
    put_block(file);
    put_end(file, 24 + counted, 2 + counted, !counted);
    ck_assert_int_eq(fclose(file), 0);

    struct sbt_trace_error trouble;
    struct sbt_trace *trace = sbt_trace_open(path, &trouble);
    ck_assert_msg(trace != NULL, "after %ld instructions: %s", steps, trouble.reason);
    struct sbt_trace_cursor cursor;
    struct sbt_trace_event got;
    int n = 0, more;
    sbt_trace_cursor_begin(trace, 0, &cursor);
    for (; (more = sbt_trace_next(&cursor, &got, &trouble)) > 0; n++) {
        int k = n - 20 - counted;
        if (k >= 0 && k < 4)
            ck_assert_msg(got.op == wanted[k].op && got.object == wanted[k].object && got.site == wanted[k].site &&
                              got.order == wanted[k].order,
                          "after %ld instructions: event %d is another", steps, n);
    }
    ck_assert_msg(more == 0, "after %ld instructions: %s", steps, trouble.reason);
    ck_assert_int_eq(n, 24 + counted);
    sbt_trace_close(trace);
    return left;
}

TEST(after_each_instruction) {
    struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO | SA_NODEFER};
    char path[64];
    long n = 0;
    snprintf(path, sizeof path, "trace-cut-test.%d.sbt", (int)getpid());
    ck_assert_int_eq(sigaction(SIGTRAP, &action, NULL), 0);
    while (n < STEPS_MOST && cut_after(n, path))
        n++;
    unlink(path);
    ck_assert_int_gt(n, 50);
    ck_assert_int_lt(n, STEPS_MOST);
    printf("# %ld instructions, left after each of them\n", n);
}
