/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From options to the environment of a program: the one place that writes SUBUTAI_* variables and LD_PRELOAD.
 */
#ifndef CMD_ENV_H
#define CMD_ENV_H

#include "command.h"

/*
 * A new environment vector: `base` with the variables of every option given in `common` or `own` (which wins) set, and
 * with `library` in front of LD_PRELOAD's other entries. NULL as `library` means no preload at all: an inherited entry
 * for `library_name` is taken out. With the option `record` the library's sibling that records takes its place. Either
 * way the user's other preloads stay, in their order. SUBUTAI_* variables that the library would refuse are refused
 * here; the values that the library will see are left in *loaded.
 */
char **env_build(const char *who, char *const *base, const struct settings *common, const struct settings *own,
                 const char *library, const char *library_name, struct sbt_options *loaded);

#endif
