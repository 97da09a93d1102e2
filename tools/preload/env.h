/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From options to the environment of a program: the only place that writes SUBUTAI_* variables and LD_PRELOAD. */
#ifndef CMD_ENV_H
#define CMD_ENV_H

#include "command.h"

/*
 * A new environment vector, made from `base`:
 *  - The variable of every option in `common` or `own` is set; `own` wins.
 *  - `library` comes before LD_PRELOAD's other entries. With the option `record` the recording library next to it takes
 *    its place. If `library` is NULL, an inherited entry called `library_name` is removed.
 *  - The user's other preloads stay, in their order.
 *
 * An option of `common` or `own` that does nothing with this engine is left out. Without `own`, or if it is an option
 * of `own`, a line says so. With `own` the same variables of `base` are left out too: `base` and `common` are for
 * several engines, and each engine reads what it knows.
 *
 * Refuses SUBUTAI_* variables that the library would refuse. *loaded gets the values that the library will see.
 */
char **env_build(const char *subcommand, char *const *base, const struct settings *common, const struct settings *own,
                 const char *library, const char *library_name, struct sbt_options *loaded);

/* Has `env` the variable of the option? */
bool env_has(char *const *env, const struct sbt_option *option);

#endif
