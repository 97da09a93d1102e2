/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef PRELOAD_SITES_H
#define PRELOAD_SITES_H

#include <stdbool.h>

/* Will the library be able to serve the futex calls that this file, a libgomp, makes itself? False also on errors. */
bool sites_can_be_served(const char *path);

#endif
