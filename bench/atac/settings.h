/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Settings of a run by name, to see what depends on them: "dram=0". */
#ifndef BENCH_ATAC_SETTINGS_H
#define BENCH_ATAC_SETTINGS_H

#include "run.h"

/* False: there is no such setting, or its value is no number. */
bool atac_set(struct atac_config *config, const char *setting);
/* The names, with a blank before each. */
extern const char atac_settings[];

/* A whole number in that range. False: it is none. */
bool atac_number(const char *text, uint32_t least, uint32_t most, uint32_t *number);

#endif
