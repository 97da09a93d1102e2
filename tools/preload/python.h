/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What commands share that leave their work to the Python package `subutai`. */
#ifndef CMD_PYTHON_H
#define CMD_PYTHON_H

#include <stddef.h>

/*
 * Become Python, which runs `main` of the module with the words. Does not return. Refuses, with exit status 2 and how
 * to install what is missing, if there is no Python 3.11 or later with the package; `extra` is the group of the
 * package's optional dependencies that the module needs.
 */
_Noreturn void python_become(const char *subcommand, const char *module, const char *extra, char *const *words,
                             size_t n_words);

#endif
