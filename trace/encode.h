/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events to blocks, for the recorder and for generators: no thread, clock, file or allocation. Each thread has an
 * encoder of its own. An encoder that is all-zero but for `thread` is at the beginning of its first block.
 */
#ifndef SBT_TRACE_ENCODE_H
#define SBT_TRACE_ENCODE_H

#include "format.h"
#include "trace.h"

enum { TRACE_N_HINTS = 256, TRACE_N_SLOT_HINTS = 64 };

struct trace_encoder {
    uint32_t thread, sequence;
    union { /* of the block; one word, so that there is no moment at which one count is right and the other is not */
        struct {
            uint32_t n_event_bytes, n_events;
        };
        uint64_t counts;
    };
    uint32_t n_templates, n_definition_bytes;
    uint32_t n_objects, n_sites, n_threads;
    uint32_t overhead_ns;    /* what an event costs the writer outside of what it measures */
    uint64_t slip_min_ns;    /* smaller differences of at_ns are carried along, and not written */
    uint64_t first_clock_ns; /* at the block's beginning */
    uint64_t clock_ns;       /* the same as the reader's at this event */
    uint64_t slot_order[TRACE_N_SLOTS];
    uint32_t slot_object[TRACE_N_SLOTS];    /* the object's number plus 1; 0: empty */
    uint8_t slot_hints[TRACE_N_SLOT_HINTS]; /* by object, modulo: the slot in which such an object was found last */
    uint32_t next_slot, last_missed;
    uint64_t last_object_address, last_site_address; /* of definitions */
    struct {
        uint32_t site, sequence; /* the block's plus 1: a hint of another block is stale */
        uint16_t number;
        uint8_t op, type;
    } hints[TRACE_N_HINTS];
    struct trace_template templates[TRACE_MAX_TEMPLATES];
    uint8_t definitions[TRACE_MAX_DEFINITION_BYTES];
    uint8_t events[TRACE_MAX_EVENT_BYTES];
};

/* Is there room for another event and three definitions of numbers? If not, the block must be written first. */
bool trace_encoder_has_room(const struct trace_encoder *e);

/* Puts an event in. Its numbers are in range, and there is room. */
void trace_encode(struct trace_encoder *e, const struct sbt_trace_event *event);

/* Puts in the address of a number, in the block that uses it first. TRACE_DEFINE_OBJECT or TRACE_DEFINE_SITE. */
void trace_define(struct trace_encoder *e, enum trace_definition what, uint32_t number, uint64_t address);

/*
 * The same of what has more than an address, see enum trace_definition; `trace_encoder_has_room` includes one MADE or
 * ROUTINE. `site` may not be SBT_TRACE_NONE. A stack has at most TRACE_MAX_STACK sites; false: it needs another block.
 */
void trace_define_made(struct trace_encoder *e, uint32_t object, uint32_t site, uint32_t size);
void trace_define_queued(struct trace_encoder *e, uint32_t thread, uint64_t ns);
void trace_define_routine(struct trace_encoder *e, uint32_t thread, uint32_t site);
bool trace_define_stack(struct trace_encoder *e, uint32_t stack, const uint32_t *sites, uint32_t n);

/* The header of the block as it stands; its payload is events, templates, definitions. */
void trace_encoder_header(const struct trace_encoder *e, struct trace_block *header);
/* The block has been written: begin the next one. */
void trace_encoder_next(struct trace_encoder *e);

/* A block without events and definitions begins once more: the thread was interrupted while it put the first one in. */
void trace_encoder_again(struct trace_encoder *e);

/* ---- tallies ---- */

/* A block of a thread's tallies. All-zero but for `thread`: the beginning of its first block. */
struct trace_tally_encoder {
    uint32_t thread, sequence;
    union { /* one word, as in an encoder of events */
        struct {
            uint32_t n_bytes, n_tallies;
        };
        uint64_t counts;
    };
    uint32_t n_objects, n_sites;
    uint32_t last_object;
    uint8_t bytes[TRACE_MAX_EVENT_BYTES];
};

bool trace_tally_has_room(const struct trace_tally_encoder *e);
/* Puts a tally of the encoder's thread in. There is room, and n or n_timed is above 0. */
void trace_encode_tally(struct trace_tally_encoder *e, const struct sbt_trace_tally *tally);
/* The same of an order of locks. It has at most SBT_TRACE_MOST_GATES gates. */
void trace_encode_order(struct trace_tally_encoder *e, const struct sbt_trace_order *order);
/* The header of the block. Its payload is `bytes`, and its clock_ns until_ns. */
void trace_tally_header(const struct trace_tally_encoder *e, uint64_t clock_ns, struct trace_block *header);
/* The block has been written: begin the next one. */
void trace_tally_next(struct trace_tally_encoder *e);
/* A block without tallies begins once more: the thread was interrupted while it put the first one in. */
void trace_tally_again(struct trace_tally_encoder *e);

/* A header for a block that is all definitions. */
void trace_definitions_header(struct trace_block *header, enum trace_block_kind kind, const void *definitions,
                              uint32_t n_bytes);

#endif
