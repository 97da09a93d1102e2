/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* NI threads go to their CPUs, and the memory of their tiles to the memory nodes of those (place.h decides). */
#ifndef SBT_ENGINE_NI_SETTLE_H
#define SBT_ENGINE_NI_SETTLE_H

#include <stdint.h>

/* Before the first NI thread begins: learn what CPUs and memory nodes there are. Again: does nothing. */
void ni_settle_start(void);

/* By NI thread `number`, which serves the tiles [from, to). What the kernel refuses costs speed only. */
void ni_settle(uint32_t number, uint32_t from, uint32_t to);

#endif
