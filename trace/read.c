/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Opening a trace reads the headers of its blocks, one after the other, and none of its events. A stranger may have
 * sent the trace, so no number in it is used before it has been compared with the size of the file.
 *
 * A trace is whole if it has its last block, and all blocks before that. If the last block is missing, the program was
 * killed, and the block that it was writing may be cut short. It is damage if there is another block behind the cut.
 */
#include "read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool trace_fail(struct sbt_trace_error *error, uint64_t offset, const char *format, ...) {
    va_list list;
    if (error == NULL)
        return false;
    error->offset = offset;
    va_start(list, format);
    vsnprintf(error->reason, sizeof error->reason, format, list);
    va_end(list);
    return false;
}

bool trace_payload_whole(const struct sbt_trace *trace, uint64_t offset, const struct trace_block *header) {
    const uint8_t *at = trace->bytes + offset + sizeof *header;
    uint64_t sum = trace_sum(TRACE_SUM_START, at, header->event_bytes);
    at += header->event_bytes;
    sum = trace_sum(sum, at, header->n_templates * sizeof(struct trace_template));
    at += header->n_templates * sizeof(struct trace_template);
    return trace_sum(sum, at, header->definition_bytes) == header->payload_sum;
}

/* Do the header's parts fit its kind? */
static bool fits_kind(const struct sbt_trace *trace, const struct trace_block *header) {
    switch (header->kind) {
    case TRACE_BLOCK_EVENTS:
        return header->thread < header->n_threads && header->n_events <= header->event_bytes / TRACE_MIN_EVENT;
    case TRACE_BLOCK_TALLIES:
        return trace->info.profile && header->thread < header->n_threads && header->n_templates == 0 &&
               header->definition_bytes == 0 && header->n_events <= header->event_bytes / TRACE_MIN_TALLY;
    case TRACE_BLOCK_BEGIN:
    case TRACE_BLOCK_MODULES:
    case TRACE_BLOCK_END:
        return header->n_events == 0 && header->n_templates == 0 && header->thread == 0 && header->sequence == 0;
    default:
        return false;
    }
}

static bool header_is_sound(const struct sbt_trace *trace, const struct trace_block *header) {
    return header->magic == TRACE_BLOCK_MAGIC && header->header_sum == trace_header_sum(header) &&
           fits_kind(trace, header) && header->zero[0] == 0 && header->zero[1] == 0 && header->zero[2] == 0 &&
           header->event_bytes <= TRACE_MAX_EVENT_BYTES && header->n_templates <= TRACE_MAX_TEMPLATES &&
           header->definition_bytes <= TRACE_MAX_DEFINITION_BYTES &&
           (header->n_events == 0) == (header->event_bytes == 0);
}

/* Is there a block at or behind `offset`? */
static bool more_blocks(const struct sbt_trace *trace, uint64_t offset) {
    const uint32_t magic = TRACE_BLOCK_MAGIC;
    while (offset + sizeof(struct trace_block) <= trace->size) {
        const uint8_t *found = memmem(trace->bytes + offset, trace->size - offset, &magic, sizeof magic);
        if (found == NULL)
            return false;
        offset = (uint64_t)(found - trace->bytes);
        if (offset + sizeof(struct trace_block) > trace->size)
            return false;
        struct trace_block header = trace_block_at(trace, offset);
        if (header_is_sound(trace, &header))
            return true;
        offset++;
    }
    return false;
}

/* When a page is touched the kernel maps the pages around it, too, up to this many bytes. */
enum { AROUND = 65536 };

void trace_leave(const struct sbt_trace *trace, uint64_t offset, uint64_t length, uint64_t next) {
    uintptr_t map = (uintptr_t)trace->bytes, from = (map + offset) & ~(uintptr_t)(AROUND - 1);
    uintptr_t to = (map + offset + length + AROUND - 1) & ~(uintptr_t)(AROUND - 1), end = map + trace->size;
    uintptr_t still = (map + next) & ~(uintptr_t)(AROUND - 1); /* the pages around `next` are left together with it */
    from = from > map ? from : map;
    to = to < end ? to : end;
    if (next >= offset && still < to)
        to = still;
    if (to > from)
        madvise((void *)from, to - from, MADV_DONTNEED); /* a hint; the file is not written to */
}

/* For a walk from header to header through the whole file, which does not stay in memory. */
static struct trace_block next_header(const struct sbt_trace *trace, uint64_t offset) {
    struct trace_block header = trace_block_at(trace, offset);
    trace_leave(trace, offset, sizeof header, trace->size);
    return header;
}

static bool append(uint64_t **list, size_t *n, uint64_t offset) {
    if ((*n & (*n - 1)) == 0) { /* full at every power of two */
        uint64_t *longer = realloc(*list, (*n == 0 ? 1 : *n * 2) * sizeof *longer);
        if (longer == NULL)
            return false;
        *list = longer;
    }
    (*list)[(*n)++] = offset;
    return true;
}

static void raise_to(uint32_t *bound, uint32_t value) {
    if (value > *bound)
        *bound = value;
}

static void raise_numbers(struct sbt_trace_info *info, const struct trace_block *header) {
    raise_to(&info->n_objects, header->n_objects);
    raise_to(&info->n_sites, header->n_sites);
    raise_to(&info->n_threads, header->n_threads);
}

/* The file ends in the middle of a block: the program was killed, if the block is not the first. */
static bool cut_short(const struct sbt_trace *trace, uint64_t offset, struct sbt_trace_error *error) {
    return trace->n_others > 0 || trace_fail(error, offset, "the first block is cut short");
}

static bool note_block(struct sbt_trace *trace, uint64_t offset, const struct trace_block *header,
                       struct sbt_trace_error *error) {
    struct sbt_trace_info *info = &trace->info;
    bool events = header->kind == TRACE_BLOCK_EVENTS, first = offset == sizeof(struct trace_preamble);
    bool tallies = header->kind == TRACE_BLOCK_TALLIES;
    if ((header->kind == TRACE_BLOCK_BEGIN) != first)
        return trace_fail(error, offset, "the first block is %s", first ? "missing" : "there twice");
    if (!append(events    ? &trace->blocks
                : tallies ? &trace->tallies
                          : &trace->others,
                events    ? &trace->n_blocks
                : tallies ? &trace->n_tallies
                          : &trace->n_others,
                offset))
        return trace_fail(error, offset, "out of memory");
    if (events || tallies) {
        raise_numbers(info, header);
        *(events ? &info->n_events : &info->n_tallies) += header->n_events;
    } else if (header->kind == TRACE_BLOCK_END) {
        raise_numbers(info, header);
        trace->has_end = true;
        info->completed = header->overhead_ns >= TRACE_KILLED && header->overhead_ns <= TRACE_KILLED_WITH_CPU;
        info->end_is_known = header->overhead_ns != TRACE_KILLED_LATER;
        info->whole = !info->completed;
        info->cpu_is_known = info->whole || header->overhead_ns == TRACE_KILLED_WITH_CPU;
        info->duration_ns = header->clock_ns;
    }
    return true;
}

/* From the preamble to the last block of the file. */
static bool walk(struct sbt_trace *trace, struct sbt_trace_error *error) {
    uint64_t offset = sizeof(struct trace_preamble), bytes;
    for (; offset < trace->size; offset += bytes) {
        struct trace_block header;
        if (trace->has_end)
            return trace_fail(error, offset, "there is something behind the last block");
        if (trace->size - offset < sizeof header)
            return cut_short(trace, offset, error);
        header = next_header(trace, offset);
        if (!header_is_sound(trace, &header))
            return trace_fail(error, offset, "the header of a block is damaged");
        bytes = sizeof header + trace_payload_bytes(&header);
        if (trace->size - offset < bytes && more_blocks(trace, offset + 1))
            return trace_fail(error, offset, "a block runs into another one");
        if (trace->size - offset < bytes)
            return cut_short(trace, offset, error);
        if (!note_block(trace, offset, &header, error))
            return false;
    }
    return trace->n_others > 0 || trace_fail(error, offset, "the first block is missing");
}

static bool numbers_are_possible(const struct sbt_trace *trace, struct sbt_trace_error *error) {
    const struct sbt_trace_info *info = &trace->info;
    if (!trace_numbers_are_possible(trace->size, info->n_objects, info->n_sites, info->n_threads))
        return trace_fail(error, 0, "%u threads, %u objects and %u call sites do not fit into a file of its size",
                          info->n_threads, info->n_objects, info->n_sites);
    return true;
}

/* Sorts the blocks by thread. Each thread's blocks are in the file in their order. */
static bool sort(struct sbt_trace *trace, struct sbt_trace_error *error) {
    uint32_t n_threads = trace->info.n_threads;
    uint64_t *sorted = malloc((trace->n_blocks + 1) * sizeof *sorted);
    trace->first = calloc((size_t)n_threads + 2, sizeof *trace->first);
    if (sorted == NULL || trace->first == NULL || trace->n_blocks > UINT32_MAX) {
        free(sorted);
        return trace_fail(error, 0, "out of memory");
    }
    uint32_t *end = trace->first + 1; /* first[t + 1]: where t's blocks begin; when all are placed, where they end */
    for (size_t i = 0; i < trace->n_blocks; i++)
        end[next_header(trace, trace->blocks[i]).thread + 1]++;
    for (uint32_t t = 0; t < n_threads; t++)
        end[t + 1] += end[t];
    for (size_t i = 0; i < trace->n_blocks; i++)
        sorted[end[next_header(trace, trace->blocks[i]).thread]++] = trace->blocks[i];
    free(trace->blocks);
    trace->blocks = sorted;
    for (uint32_t t = 0; t < n_threads; t++)
        for (uint32_t i = trace->first[t]; i < trace->first[t + 1]; i++) {
            uint32_t sequence = next_header(trace, sorted[i]).sequence;
            if (sequence != i - trace->first[t])
                return trace_fail(error, sorted[i], "block %u of thread %u is here, where block %u should be", sequence,
                                  t, i - trace->first[t]);
        }
    return true;
}

/* Each thread's blocks of tallies are in the file in their order, too. */
static bool tallies_in_order(const struct sbt_trace *trace, struct sbt_trace_error *error) {
    uint32_t *n = trace->n_tallies > 0 ? calloc(trace->info.n_threads, sizeof *n) : NULL;
    if (trace->n_tallies > 0 && n == NULL)
        return trace_fail(error, 0, "out of memory");
    bool good = true;
    for (size_t i = 0; good && i < trace->n_tallies; i++) {
        struct trace_block header = next_header(trace, trace->tallies[i]);
        good = header.sequence == n[header.thread]++ ||
               trace_fail(error, trace->tallies[i], "block %u of tallies of thread %u is not in its place",
                          header.sequence, header.thread);
    }
    free(n);
    return good;
}

static char *text_of(const struct trace_defined *d) {
    char *text = malloc(d->n_text + 1);
    if (text != NULL) {
        memcpy(text, d->text, d->n_text);
        text[d->n_text] = '\0';
    }
    return text;
}

static bool note_definition(struct sbt_trace *trace, uint64_t offset, const struct trace_defined *d,
                            struct sbt_trace_error *error) {
    struct sbt_trace_info *info = &trace->info;
    if (d->what == TRACE_DEFINE_COMMAND && trace->command == NULL)
        trace->command = text_of(d);
    if (d->what == TRACE_DEFINE_ENGINE && trace->engine == NULL)
        trace->engine = text_of(d);
    if (d->what == TRACE_DEFINE_PROCESS)
        info->process_id = d->number[0];
    if (d->what == TRACE_DEFINE_PROFILE) {
        info->hold_one_in = (uint32_t)d->number[0];
        info->stack_min_ns = d->number[1];
    }
    if (d->what == TRACE_DEFINE_MISSES) {
        if (info->counts_misses || !info->whole)
            return trace_fail(error, offset, "cache misses are not said once, at the end");
        info->counts_misses = true;
        info->n_counted_holds = d->number[0];
        info->n_misses = d->number[1];
    }
    if (d->what == TRACE_DEFINE_TALLIED && (d->number[0] != info->n_tallies || d->number[1] != trace->n_tallies))
        return trace_fail(error, offset, "%llu tallies in %zu blocks are there, %llu in %llu were written",
                          (unsigned long long)info->n_tallies, trace->n_tallies, (unsigned long long)d->number[0],
                          (unsigned long long)d->number[1]);
    if (d->what != TRACE_DEFINE_TOTALS)
        return true;
    info->n_lost = d->number[2];
    if (d->number[0] == info->n_events && d->number[1] == trace->n_blocks)
        return true;
    return trace_fail(error, offset, "%llu events in %zu blocks are there, %llu in %llu were written",
                      (unsigned long long)info->n_events, trace->n_blocks, (unsigned long long)d->number[0],
                      (unsigned long long)d->number[1]);
}

/* What the blocks without events say about the trace as a whole. */
static bool totals(struct sbt_trace *trace, struct sbt_trace_error *error) {
    for (size_t i = 0; i < trace->n_others; i++) {
        uint64_t offset = trace->others[i];
        struct trace_block header = trace_block_at(trace, offset);
        struct trace_definitions definitions;
        struct trace_defined d;
        int r;
        if (!trace_payload_whole(trace, offset, &header))
            return trace_fail(error, offset, "the block does not have its checksum");
        trace_definitions_begin(trace, offset, &header, &definitions);
        while ((r = trace_definitions_next(&definitions, &d)) == 1)
            if (!note_definition(trace, offset, &d, error))
                return false;
        if (r < 0)
            return trace_fail(error, offset, "a definition in this block makes no sense");
    }
    trace->info.command = trace->command != NULL ? trace->command : "";
    trace->info.engine = trace->engine != NULL ? trace->engine : "";
    return true;
}

/* The duration of a trace that is not whole: until its last block begins. */
static void estimate_duration(struct sbt_trace *trace) {
    for (size_t i = 0; i < trace->n_tallies && !trace->has_end; i++) {
        uint64_t clock_ns = next_header(trace, trace->tallies[i]).clock_ns;
        if (clock_ns > trace->info.duration_ns)
            trace->info.duration_ns = clock_ns;
    }
    for (size_t i = 0; i < trace->n_blocks && !trace->has_end; i++) {
        uint64_t clock_ns = next_header(trace, trace->blocks[i]).clock_ns;
        if (clock_ns > trace->info.duration_ns)
            trace->info.duration_ns = clock_ns;
    }
}

static bool load(struct sbt_trace *trace, struct sbt_trace_error *error) {
    struct trace_preamble preamble;
    if (trace->size < sizeof preamble)
        return trace_fail(error, trace->size, trace->size == 0 ? "the file is empty" : "too short for a trace");
    memcpy(&preamble, trace->bytes, sizeof preamble);
    if (memcmp(preamble.magic, (const char[])TRACE_MAGIC, sizeof preamble.magic) != 0)
        return trace_fail(error, 0, "not a trace");
    if (preamble.version < TRACE_OLDEST_VERSION || preamble.version > TRACE_VERSION ||
        preamble.version == TRACE_NO_VERSION)
        return trace_fail(error, offsetof(struct trace_preamble, version), "format version %u, known are 1, 2 and 4",
                          preamble.version);
    unsigned known = preamble.version > 1 ? TRACE_GENERATED | TRACE_PROFILE : TRACE_GENERATED;
    if ((preamble.flags & ~known) != 0 || (preamble.flags ^ preamble.not_flags) != UINT16_MAX)
        return trace_fail(error, offsetof(struct trace_preamble, flags), "flags 0x%x and 0x%x make no sense",
                          preamble.flags, preamble.not_flags);
    trace->info.version = preamble.version;
    trace->info.generated = (preamble.flags & TRACE_GENERATED) != 0;
    trace->info.profile = (preamble.flags & TRACE_PROFILE) != 0;
    if (!walk(trace, error) || !numbers_are_possible(trace, error) || !sort(trace, error) ||
        !tallies_in_order(trace, error) || !totals(trace, error))
        return false;
    estimate_duration(trace);
    return true;
}

struct sbt_trace *sbt_trace_open(const char *path, struct sbt_trace_error *error) {
    sbt_trace_complete(path, 0, 0);
    struct sbt_trace *trace = calloc(1, sizeof *trace);
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* does not wait for a pipe's writer */
    bool good = false;
    if (trace == NULL) {
        trace_fail(error, 0, "out of memory");
    } else if (fd < 0 || fstat(fd, &st) != 0) {
        trace_fail(error, 0, "cannot be opened: %s", strerror(errno));
    } else if (!S_ISREG(st.st_mode)) {
        trace_fail(error, 0, "not a file");
    } else {
        trace->size = (uint64_t)st.st_size;
        void *map = trace->size > 0 ? mmap(NULL, trace->size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
        if (map == MAP_FAILED) {
            trace_fail(error, 0, "cannot be mapped: %s", strerror(errno));
        } else {
            trace->bytes = map;
            good = load(trace, error);
            if (good)
                trace_leave(trace, 0, trace->size, trace->size);
        }
    }
    if (fd >= 0)
        close(fd);
    if (good)
        return trace;
    sbt_trace_close(trace);
    return NULL;
}

void sbt_trace_close(struct sbt_trace *trace) {
    if (trace == NULL)
        return;
    trace_names_free(trace);
    if (trace->bytes != NULL)
        munmap((void *)(uintptr_t)trace->bytes, trace->size);
    free(trace->blocks);
    free(trace->others);
    free(trace->tallies);
    free(trace->first);
    free(trace->command);
    free(trace->engine);
    free(trace);
}

const struct sbt_trace_info *sbt_trace_info(const struct sbt_trace *trace) {
    return &trace->info;
}
