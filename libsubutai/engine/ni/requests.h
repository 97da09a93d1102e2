/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* --requests: each NI's requests and answers, with times, in a file; emu_hw/request_log.h has its shape. */
#ifndef SBT_ENGINE_NI_REQUESTS_H
#define SBT_ENGINE_NI_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/options.h"
#include "packet.h"
#include "request_log.h"

struct ni_tile;

int ni_requests_start(const struct sbt_options *options);
/* Under the tile's lock; only if tile->requests is not NULL. May write to the file. The times are a record's. */
void ni_requests_note(struct ni_tile *tile, enum hw_log_kind kind, const struct hw_packet *packet, uint64_t from_cycles,
                      uint64_t to_cycles);
/* The tile's server has sent a packet over the mesh, which was ready then and waited so long for ports. */
void ni_requests_note_crossed(struct ni_tile *tile, uint32_t from, uint32_t to, uint64_t at_cycles,
                              uint32_t contention_cycles);
/* `locked`: no NI is served meanwhile. Otherwise what is in the blocks is lost. */
void ni_requests_end(bool locked);
void ni_requests_fork_child(void);

#endif
