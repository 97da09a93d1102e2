/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The bytes of a trace; docs/trace-format.md describes them. They are little-endian, as both architectures are. Headers
 * are read and written as the structs below, which have no padding.
 *
 * A file is a preamble and blocks, one behind the other. Each block has one thread's next events, and the definitions
 * of the numbers that they use first. A block can be decoded without any other block.
 */
#ifndef SBT_TRACE_FORMAT_H
#define SBT_TRACE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TRACE_MAGIC                                                                                                    \
    { 'S', 'B', 'T', 'T', 'R', 'A', 'C', 'E' }
#define TRACE_VERSION 4
#define TRACE_NO_VERSION 3 /* one flipped bit makes no version of another */
/* A trace of version 1 has no tallies, stacks and definitions above TOTALS. One below 4 has no waits for the outside.
 */
#define TRACE_OLDEST_VERSION 1
#define TRACE_SUM_START 1 /* the state at which every sum begins; the same in all versions */

/* flags */
enum {
    TRACE_GENERATED = 1, /* the trace has no times of day */
    TRACE_PROFILE = 2    /* calls that did not wait are tallies, not events */
};

struct trace_preamble {
    char magic[8];
    uint32_t version;
    uint16_t flags, not_flags; /* the second is the first one's complement */
};

#define TRACE_PREAMBLE(flags)                                                                                          \
    { TRACE_MAGIC, TRACE_VERSION, (flags), (uint16_t) ~(flags) }

#define TRACE_BLOCK_MAGIC 0x6B6C6273u /* "sblk" */

enum trace_block_kind {
    TRACE_BLOCK_BEGIN = 1, /* the first: definitions of the process */
    TRACE_BLOCK_EVENTS,
    TRACE_BLOCK_MODULES, /* definitions of modules */
    TRACE_BLOCK_END,     /* the last: totals. A trace without it is not whole */
    TRACE_BLOCK_TALLIES  /* a thread's tallies, in the place of events; there are no templates and no definitions */
};

struct trace_block {
    uint32_t magic;
    uint8_t kind;
    uint8_t zero[3];
    uint32_t thread;                                     /* 0 in blocks that are no thread's */
    uint32_t sequence;                                   /* among the thread's blocks of this kind, from 0; else 0 */
    uint32_t event_bytes, n_templates, definition_bytes; /* the payload's three parts, in this order */
    uint32_t n_events;
    uint64_t clock_ns; /* when the event before this block's first ended; in the last block: the duration */
    uint32_t n_objects, n_sites, n_threads; /* all numbers in this block are below these */
    uint32_t overhead_ns;                   /* wall clock between two events that is neither work nor preemption */
    uint64_t payload_sum;
    uint64_t header_sum; /* of all bytes of the header before it */
};

struct trace_template { /* the parts of an event that one place in the program always repeats */
    uint8_t op, type;   /* an event without an object has SBT_TRACE_NO_OBJECT, whatever it is about */
    uint16_t zero;
    uint32_t site;
};

_Static_assert(sizeof(struct trace_preamble) == 16 && sizeof(struct trace_block) == 72 &&
                   sizeof(struct trace_template) == 8 && offsetof(struct trace_block, header_sum) == 64,
               "docs/trace-format.md");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the bytes of the headers");

enum {
    TRACE_MAX_EVENT_BYTES = 16384,
    TRACE_MAX_TEMPLATES = 512,
    TRACE_MAX_DEFINITION_BYTES = 8192,
    TRACE_MIN_EVENT = 4,      /* bytes of the shortest event */
    TRACE_MIN_TALLY = 7,      /* the same of a tally */
    TRACE_MAX_TALLY = 400,    /* bytes; more than the longest tally has */
    TRACE_TALLY_ORDER = 0x80, /* in the place of a tally's operation: an order of locks, with the flags below */
    TRACE_MAX_EVENT = 96,     /* bytes; more than the longest event has */
    TRACE_N_SLOTS = 16,
    TRACE_MAX_STACK = 64, /* sites of a call stack */
    TRACE_MAX_TEXT = 4096
};

/* Flags of an order of locks. */
enum {
    TRACE_ORDER_HELD_SHARED = 1,  /* the lock that was held was so for reading each time */
    TRACE_ORDER_TAKEN_SHARED = 2, /* the same of the lock that was taken */
    TRACE_ORDER_STACK = 4,        /* a call stack follows */
    TRACE_ORDER_GATES_SHARED = 8, /* which gates were held for reading follows */
    TRACE_ORDER_FLAGS = 15
};

/* The byte after an event's template: its object, and a condition wait's second one: its mutex. */
enum {
    TRACE_SLOT = 0x0F,  /* the object is the one in this slot */
    TRACE_MISS = 0x10,  /* first put the object that follows into this slot, with a last order of 0 */
    TRACE_EXTRA = 0x20, /* first byte: a byte of the flags below follows. Second byte: there is no mutex */
    TRACE_NEXT = 0x40,  /* the order is the slot's last order plus 1 */
    TRACE_ORDER = 0x80  /* the order's difference to the slot's last order follows. Neither bit: the order is 0 */
};

enum {
    TRACE_EXTRA_RESULT = 1,
    TRACE_EXTRA_OTHER = 2, /* a thread: `other` of every event but a condition wait */
    TRACE_EXTRA_SIZE = 4,
    TRACE_EXTRA_SLIP = 8,  /* at_ns differs from what work and overhead give, by this */
    TRACE_EXTRA_ALL = 15,  /* of version 1 */
    TRACE_EXTRA_STACK = 16 /* a stack's number */
};

/* overhead_ns of the last block: a reader has added it to a killed program's trace. Its clock_ns is when the program
 * ended, or if that was not known (2), when its threads did their last. 3: the program's processor time was known. */
enum { TRACE_KILLED = 1, TRACE_KILLED_LATER = 2, TRACE_KILLED_WITH_CPU = 3 };

enum trace_definition {
    TRACE_DEFINE_OBJECT = 1, /* number, zigzag difference of its address to the last object's in the block */
    TRACE_DEFINE_SITE,       /* the same with a return address */
    TRACE_DEFINE_MODULE,     /* start address, length, offset in the file, n, n bytes of path */
    TRACE_DEFINE_COMMAND,    /* n, n bytes */
    TRACE_DEFINE_ENGINE,     /* n, n bytes */
    TRACE_DEFINE_PROCESS,    /* process id, its parent's, nanoseconds since 1970 */
    TRACE_DEFINE_TOTALS,     /* events, blocks of events, events lost */
    TRACE_DEFINE_STACK,      /* number, n, n bytes: varints, the sites' numbers from the innermost outwards */
    TRACE_DEFINE_MADE,       /* an object's number, the site of its init and the init's size */
    TRACE_DEFINE_ROUTINE,    /* a thread's number, the site of its start routine: that is, the address plus 1; 0 */
    TRACE_DEFINE_PROFILE,    /* of acquisitions of busy locks one in so many is timed; stacks from so many ns on; 0 */
    TRACE_DEFINE_TALLIED,    /* tallies, blocks of tallies, calls in tallies */
    TRACE_DEFINE_MISSES,     /* holds in which cache misses were counted, the misses; 0 */
    TRACE_DEFINE_QUEUED,     /* a thread's number, for how long it waited for a core, ns; 0 */
    TRACE_N_DEFINITIONS
};

static inline uint64_t trace_zigzag(uint64_t difference) {
    return difference << 1 ^ (uint64_t) - (int64_t)(difference >> 63);
}

static inline uint64_t trace_unzigzag(uint64_t z) {
    return z >> 1 ^ (uint64_t) - (int64_t)(z & 1);
}

/* Puts a varint (LEB128). The caller has room for 10 bytes. */
static inline uint8_t *trace_put(uint8_t *at, uint64_t value) {
    while (value >= 0x80) {
        *at++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}

/* Reads a varint. NULL: it does not end before `end`, or has more than 64 bits. */
static inline const uint8_t *trace_get(const uint8_t *at, const uint8_t *end, uint64_t *value) {
    if (at < end && at[0] < 0x80) { /* nearly always; most other numbers have two bytes */
        *value = at[0];
        return at + 1;
    }
    if (end - at >= 2 && at[1] < 0x80) {
        *value = (at[0] & 0x7Fu) | (uint64_t)at[1] << 7;
        return at + 2;
    }
    uint64_t v = 0;
    for (unsigned shift = 0; at < end && shift < 64; shift += 7) {
        uint8_t byte = *at++;
        if (shift == 63 && byte > 1)
            return NULL;
        v |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            *value = v;
            return at;
        }
    }
    return NULL;
}

/*
 * Each step is a bijection of the state for a given word and of the word for a given state, so that damage within any
 * one word is found with certainty and other damage with all but 2^-64.
 */
static inline uint64_t trace_sum(uint64_t state, const void *bytes, size_t n) {
    const uint8_t *at = bytes;
    for (; n > 0;) {
        uint64_t word = 0;
        size_t part = n < sizeof word ? n : sizeof word;
        memcpy(&word, at, part);
        state = (state ^ word ^ (uint64_t)part << 60) * UINT64_C(0x9E3779B97F4A7C15);
        state ^= state >> 29;
        at += part;
        n -= part;
    }
    return state;
}

static inline uint64_t trace_header_sum(const struct trace_block *header) {
    return trace_sum(TRACE_SUM_START, header, offsetof(struct trace_block, header_sum));
}

static inline uint64_t trace_payload_bytes(const struct trace_block *header) {
    return (uint64_t)header->event_bytes + (uint64_t)header->n_templates * sizeof(struct trace_template) +
           header->definition_bytes;
}

#endif
