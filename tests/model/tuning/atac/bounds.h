/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* In the place of atac's: what is on a stack fits into that of a walked thread. */
#ifndef ATAC_BOUNDS_H
#define ATAC_BOUNDS_H

enum { ATAC_MAX_THREADS = 3, PILE_MAX_OFFER = 2 };

#endif
