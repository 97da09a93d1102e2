/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* This command run once more, for what it prints as JSON. Without text/json.h: jansson has the same names. */
#ifndef CMD_OWN_CHILD_H
#define CMD_OWN_CHILD_H

#include <jansson.h>

/*
 * Runs `subutai` with `words`, the last of which NULL follows; words[0] is "subutai". Blocks until it has ended. Its
 * stderr is the caller's. NULL: it could not be run, printed no JSON, or ended with a status above `most_status`; it
 * has said why itself, unless it could not be run, which a line says.
 */
json_t *own_child_json(const char *const *words, int most_status);

#endif
