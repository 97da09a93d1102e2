/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "run.h"

#include "chip.h"

/* The run that is under way: the interface has no parameter for it. */
static struct sim_program *chip;
static struct atac_config running;

struct atac_config atac_config_default(void) {
    return (struct atac_config){
        .chip = sim_program_config_default(), .software_cycles = 300, .few = 0, .many = 2, .patience_cycles = 4000};
}

struct sim_program *atac_chip(void) {
    return chip;
}

const struct atac_config *atac_running(void) {
    return &running;
}

enum sim_status atac_run(const struct atac_config *config, void (*prepare)(struct sim_program *chip, void *argument),
                         sim_program_body *body, void *argument, uint64_t *cycles, struct sim_error *error) {
    enum sim_status status = SIM_OK;
    if (config->few >= config->many)
        return sim_refuse(error, SIM_USAGE, "%u tasks are few, and %u are many", config->few, config->many);
    struct sim_program *p = sim_program_new(&config->chip, error);
    if (p == NULL)
        return SIM_USAGE;
    chip = p;
    running = *config;
    if (prepare != NULL)
        prepare(p, argument);
    for (uint32_t i = 0; i < config->chip.n_cores && status == SIM_OK; i++)
        status = sim_program_spawn(p, body, argument, error);
    if (status == SIM_OK)
        status = sim_program_run(p, error);
    *cycles = sim_program_cycles(p);
    chip = NULL;
    sim_program_free(p);
    return status;
}
