/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The machine of virtual time: sim/program.h. */
#include "run.h"

#include <string.h>

#include "chip.h"

static struct sim_program *chip;

struct sim_program *atac_chip(void) {
    return chip;
}

/* The threads do, on this kernel thread; before, and on others, no thread has a number. */
static _Thread_local bool runs;

static uint32_t self(void) {
    return runs ? sim_self(chip) : ATAC_NO_THREAD;
}

static uint64_t cycles(void) {
    return sim_cycles(chip);
}

static void compute(uint64_t n) {
    sim_compute(chip, n);
}

static void fail(const char *text) {
    sim_program_fail(chip, "%s", text);
}

/* ---- messages ---- */

static uint32_t n_channels(void) {
    return sim_n_channels(chip);
}

static uint32_t channel(void) {
    return sim_channel(chip);
}

static void subscribe(uint32_t number) {
    sim_subscribe(chip, number);
}

static void set_filter(struct hw_filter filter) {
    sim_set_filter(chip, filter);
}

static void send(uint32_t number, uint32_t signature, uint32_t tag, const void *data, uint32_t size) {
    sim_send(chip, number, signature, tag, data, size);
}

static bool receive(uint32_t number, uint64_t deadline, struct atac_received *received) {
    struct sim_message m;
    if (deadline == 0 ? !sim_receive(chip, number, &m) : !sim_wait_receive_until(chip, number, deadline, &m))
        return false;
    uint32_t size = m.head.size;
    received->head = m.head;
    received->payload = 0;
    if (size != 0)
        memcpy(&received->payload, m.data, size < sizeof received->payload ? size : sizeof received->payload);
    if (size != 0 && received->room != 0)
        memcpy(received->data, m.data, size < received->room ? size : received->room);
    return true;
}

/* ---- shared words ---- */

static uint32_t n_words(void) {
    return sim_n_words(chip);
}

static uint32_t words(uint32_t n) {
    return sim_words(chip, n);
}

static uint64_t load(uint32_t word) {
    return sim_load(chip, word);
}

static void store(uint32_t word, uint64_t value) {
    sim_store(chip, word, value);
}

static uint64_t fetch_add(uint32_t word, uint64_t n) {
    return sim_fetch_add(chip, word, n);
}

static uint64_t swap(uint32_t word, uint64_t value) {
    return sim_swap(chip, word, value);
}

static uint64_t compare_and_swap(uint32_t word, uint64_t expected, uint64_t value) {
    return sim_compare_and_swap(chip, word, expected, value);
}

static uint64_t spin_while(uint32_t word, uint64_t old) {
    return sim_spin_while(chip, word, old);
}

static void futex_wait(uint32_t word, uint64_t expected) {
    sim_futex_wait(chip, word, expected);
}

static void futex_wake(uint32_t word, uint32_t n) {
    sim_futex_wake(chip, word, n);
}

static const struct atac_machine machine = {.self = self,
                                            .cycles = cycles,
                                            .compute = compute,
                                            .fail = fail,
                                            .n_channels = n_channels,
                                            .channel = channel,
                                            .subscribe = subscribe,
                                            .set_filter = set_filter,
                                            .send = send,
                                            .receive = receive,
                                            .n_words = n_words,
                                            .words = words,
                                            .load = load,
                                            .store = store,
                                            .fetch_add = fetch_add,
                                            .swap = swap,
                                            .compare_and_swap = compare_and_swap,
                                            .spin_while = spin_while,
                                            .futex_wait = futex_wait,
                                            .futex_wake = futex_wake};

/* ---- the run ---- */

struct atac_config atac_config_default(void) {
    return (struct atac_config){.chip = sim_program_config_default(), .settings = atac_settings_default()};
}

static void free_chip(void) {
    sim_program_free(chip);
    chip = NULL;
    atac_machine = NULL;
}

static void free_unless(const bool *prepared) {
    atac_prepares = false;
    if (!*prepared)
        free_chip();
}

/* An exception, or pthread_exit, ends the run before it has begun. */
static void prepare_run(void (*prepare)(struct sim_program *chip, void *argument), void *argument) {
    bool prepared __attribute__((cleanup(free_unless))) = false;
    atac_prepares = true;
    if (prepare != NULL)
        prepare(chip, argument);
    prepared = true;
}

enum sim_status atac_run(const struct atac_config *config, void (*prepare)(struct sim_program *chip, void *argument),
                         sim_program_body *body, void *argument, uint64_t *n_cycles, struct sim_error *error) {
    enum sim_status status = SIM_OK;
    const struct atac_settings *settings = &config->settings;
    if (settings->few >= settings->many)
        return sim_refuse(error, SIM_USAGE, "%u tasks are few, and %u are many", settings->few, settings->many);
    chip = sim_program_new(&config->chip, error);
    if (chip == NULL)
        return SIM_USAGE;
    atac_machine = &machine;
    atac_running = *settings;
    prepare_run(prepare, argument);
    uint32_t n_threads = config->chip.n_threads != 0 ? config->chip.n_threads : config->chip.n_cores;
    for (uint32_t i = 0; i < n_threads && status == SIM_OK; i++)
        status = sim_program_spawn(chip, body, argument, error);
    runs = true;
    if (status == SIM_OK)
        status = sim_program_run(chip, error);
    runs = false;
    *n_cycles = sim_program_cycles(chip);
    free_chip();
    return status;
}
