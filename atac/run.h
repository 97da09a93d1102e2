/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs programs of <subutai/atac.h> in virtual time, on the chip of sim/program.h.
 *
 * software_cycles is what a core computes in the interface for each message that it sends or retrieves, beside the
 * hardware's costs. The thesis does not give it; it follows from Fig. 6-5: a transport of 20000 cycles doubles the time
 * of a loop of barriers on 64 cores, so a barrier takes about 20000 cycles without it, which is 300 for each of 63
 * messages. A controller of 200 cycles changes little, so that time is the core's and not the controller's.
 *
 * The thesis gives none of the settings: a queue of `few` tasks or less is not shared (the critical region), one of
 * `many` or more always; a request without an answer is repeated after patience_cycles, then after twice as many, up to
 * 16 times; a lock's waiters spin, or sleep. bench/atac/settings.h sets each of them; docs/atac.md says which were
 * chosen while their results were seen.
 */
#ifndef ATAC_RUN_H
#define ATAC_RUN_H

#include "machine.h"
#include "program.h"

struct atac_config {
    struct sim_program_config chip;
    struct atac_settings settings;
};

struct atac_config atac_config_default(void);

/* For threads: the chip they run on. */
struct sim_program *atac_chip(void);

/*
 * One thread on each core, or as many as the chip says; each calls body with the argument. prepare, if not NULL, is
 * called before, with the chip. As sim_program_run; SIM_USAGE too if few >= many. *cycles: until the last thread ended.
 */
enum sim_status atac_run(const struct atac_config *config, void (*prepare)(struct sim_program *chip, void *argument),
                         sim_program_body *body, void *argument, uint64_t *cycles, struct sim_error *error);

#endif
