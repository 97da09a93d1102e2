/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Settings of a run by name, to see what depends on them: "dram=0". */
#ifndef BENCH_ATAC_SETTINGS_H
#define BENCH_ATAC_SETTINGS_H

#include "run.h"

/* False: there is no such setting, or its value is no number. */
bool atac_set(struct atac_config *config, const char *setting);
/* The names, with a blank before each. */
extern const char atac_settings[];

#endif
