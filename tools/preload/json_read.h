/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Single numbers out of a flat JSON object, as subutai-bench prints it. */
#ifndef CMD_JSON_READ_H
#define CMD_JSON_READ_H

#include <stdbool.h>

/* The number of member `key` in the flat object `text`. False: there is none. */
bool json_find_number(const char *text, const char *key, double *value);

#endif
