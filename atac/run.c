/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A run of <subutai/atac.h>: in virtual time, or live. */
#include "run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "live.h"
#include "subutai/atac.h"

enum { MOST_TIME_SCALE = 1000000, LEAST_STACK = 16384 };

ATAC_options ATAC_options_default(void) {
    struct hw_optical_config optical = hw_optical_config_default();
    return (ATAC_options){.number_of_cores = 64,
                          .time_scale = -1,
                          .channels = (int)optical.n_channels,
                          .transport_cycles = (int)optical.transport_cycles,
                          .controller_cycles = (int)optical.controller_cycles,
                          .check_cycles = (int)optical.check_cycles,
                          .software_cycles = (int)atac_settings_default().software_cycles,
                          .stack_bytes = 262144};
}

/* ---- what the options say ---- */

static struct hw_optical_config optical_of(const ATAC_options *o) {
    struct hw_optical_config c = hw_optical_config_default();
    c.n_cores = (uint32_t)o->number_of_cores;
    c.n_channels = (uint32_t)o->channels;
    c.transport_cycles = (uint32_t)o->transport_cycles;
    c.controller_cycles = (uint32_t)o->controller_cycles;
    c.check_cycles = (uint32_t)o->check_cycles;
    c.lambda_limit = (uint32_t)o->lambda_limit;
    c.buffer_limit = (uint32_t)o->buffer_limit;
    return c;
}

static struct atac_settings settings_of(const ATAC_options *o) {
    struct atac_settings s = atac_settings_default();
    s.software_cycles = (uint32_t)o->software_cycles;
    return s;
}

static const char *refusal(const ATAC_options *o) {
    struct hw_optical_config optical = optical_of(o);
    if (o->number_of_cores < 1 || o->number_of_cores > ATAC_MAX_THREADS)
        return "impossible run: cores";
    if (o->number_of_threads < 0 || o->number_of_threads > ATAC_MAX_THREADS)
        return "impossible run: threads";
    if (o->lambda_limit < 0 || o->buffer_limit < 0)
        return "impossible run: limit of a queue";
    if (o->software_cycles < 0 || o->software_cycles > HW_OPTICAL_MAX_CYCLES)
        return "impossible run: software cycles";
    if (o->time_scale < -1 || o->time_scale > MOST_TIME_SCALE)
        return "impossible run: time scale";
    if (o->stack_bytes < LEAST_STACK || o->stack_bytes > SIM_PROGRAM_MAX_STACK)
        return "impossible run: bytes of a stack";
    const char *why = hw_optical_refusal(&optical);
    static char text[80];
    if (why != NULL)
        snprintf(text, sizeof text, "impossible run: %s", why);
    return why != NULL ? text : NULL;
}

static uint32_t threads_of(const ATAC_options *o) {
    return (uint32_t)(o->number_of_threads != 0 ? o->number_of_threads : o->number_of_cores);
}

/* What `subutai run --time-scale` tells its program. */
static uint32_t time_scale_of(const ATAC_options *o) {
    const char *text = o->time_scale == -1 ? getenv("SUBUTAI_TIME_SCALE") : NULL;
    unsigned long value = text != NULL ? strtoul(text, NULL, 10) : 0;
    return o->time_scale != -1 ? (uint32_t)o->time_scale : value <= MOST_TIME_SCALE ? (uint32_t)value : 0;
}

/* ---- what each run has ---- */

/* For ATAC_ready: how many threads are ready, and how often all were. */
enum { READY_COUNT, READY_ROUND = ATAC_WORDS_OF_LINE, READY_WORDS = 2 * ATAC_WORDS_OF_LINE };
static uint32_t ready_words, n_threads;

struct program {
    void (*prepare)(void *argument);
    void (*body)(void *argument);
    void *argument;
};

static void prepare_run(void *argument) {
    const struct program *program = argument;
    ready_words = atac_machine->words(READY_WORDS);
    if (program->prepare != NULL)
        program->prepare(program->argument);
}

static void run_thread(void *argument) {
    const struct program *program = argument;
    program->body(program->argument);
}

/* False, with EPERM: the calling thread is none of a run. */
static bool is_of_run(void) {
    if (atac_self() == ATAC_NO_THREAD)
        errno = EPERM;
    return atac_self() != ATAC_NO_THREAD;
}

void ATAC_ready(void) {
    if (!is_of_run())
        return;
    uint64_t before = atac_machine->fetch_add(ready_words + READY_COUNT, 1), round;
    if (before % n_threads == n_threads - 1) {
        atac_machine->fetch_add(ready_words + READY_ROUND, 1);
        atac_machine->futex_wake(ready_words + READY_ROUND, UINT32_MAX);
        return;
    }
    while ((round = atac_machine->load(ready_words + READY_ROUND)) <= before / n_threads)
        atac_machine->futex_wait(ready_words + READY_ROUND, round);
}

/* Users know ATAC_ready, and no word of it. */
static const char *name_ready(const char *error) {
    static char text[80];
    unsigned int thread, word;
    if (error == NULL || sscanf(error, "thread %u waits for shared word %u for ever", &thread, &word) != 2 ||
        word != ready_words + READY_ROUND)
        return error;
    snprintf(text, sizeof text, "thread %u waits in ATAC_ready for ever", thread);
    return text;
}

/* ---- virtual time ---- */

static void prepare_program(struct sim_program *chip, void *argument) {
    (void)chip;
    prepare_run(argument);
}

static void program_body(struct sim_program *chip, void *argument) {
    (void)chip;
    run_thread(argument);
}

static const char *run_virtual(const ATAC_options *o, struct program *program, uint64_t *cycles) {
    static struct sim_error error;
    struct atac_config config = {.chip = sim_program_config_default(), .settings = settings_of(o)};
    config.chip.n_cores = (uint32_t)o->number_of_cores;
    config.chip.n_threads = n_threads;
    config.chip.optical = optical_of(o);
    config.chip.stack_bytes = (size_t)o->stack_bytes;
    return atac_run(&config, prepare_program, program_body, program, cycles, &error) == SIM_OK ? NULL : error.text;
}

/* ---- both ---- */

const char *ATAC_run(const ATAC_options *options, void (*prepare)(void *argument), void (*body)(void *argument),
                     void *argument, unsigned long long *cycles) {
    struct program program = {prepare, body, argument};
    uint64_t n_cycles = 0;
    const char *error = refusal(options);
    if (error == NULL && atac_machine != NULL)
        error = "another run is under way";
    if (error != NULL)
        return error;
    n_threads = threads_of(options);
    if (options->live) {
        struct live_config config = {.optical = optical_of(options),
                                     .n_threads = n_threads,
                                     .settings = settings_of(options),
                                     .time_scale = time_scale_of(options),
                                     .stack_bytes = (uint32_t)options->stack_bytes};
        error = live_run(&config, prepare_run, run_thread, &program, &n_cycles);
    } else {
        error = run_virtual(options, &program, &n_cycles);
    }
    if (cycles != NULL)
        *cycles = n_cycles;
    return name_ready(error);
}

int ATAC_self(void) {
    return (int)atac_self();
}

unsigned long long ATAC_cycles(void) {
    return is_of_run() ? atac_machine->cycles() : 0;
}

void ATAC_compute(unsigned long long cycles) {
    if (is_of_run())
        atac_machine->compute(cycles);
}
