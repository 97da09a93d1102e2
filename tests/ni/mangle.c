/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mangle WHAT FILE: a request log as a faulty engine would have written it; `subutai replay` has to say so.
 *
 *   swap      two locks of one mutex by two threads, the one right after the other, change places
 *   leaves    the last answer leaves its NI a cycle early
 *   seen      the last answer is seen a cycle early
 *   arrives   the last request reaches its NI a cycle early
 *   at-once   a core hands over its last request a cycle before it has handed over the one before
 *   overtakes the last lock is made before the lock before it
 *   hasty     the first lock is made a cycle before its thread has seen the answer to its first request
 *   unasked, unanswered   a request is missing, and its answer is not; the other way round
 *   state     the last state of a forked child's NI has another control element
 *   record    a record is of no known kind
 *
 * Exit status 1: the log has nothing of the kind.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "packet.h"
#include "request_log.h"
#include "timing.h"

enum { MOST = 1 << 20 };

static unsigned char file[64 << 20];
static struct hw_log_record *record[MOST];
static size_t n_records, n_bytes;
static unsigned char *state; /* the last one's control elements */

static void find_records(void) {
    struct hw_log_header h;
    for (size_t at = 0; at + sizeof h <= n_bytes; at += sizeof h + h.n_bytes) {
        memcpy(&h, file + at, sizeof h);
        unsigned char *body = file + at + sizeof h;
        if (h.block == HW_LOG_STATE)
            state = body + sizeof(struct hw_log_state);
        for (size_t i = 0; h.block == HW_LOG_RECORDS && i < h.n_bytes / sizeof **record && n_records < MOST; i++)
            record[n_records++] = (struct hw_log_record *)(void *)(body + i * sizeof **record);
    }
}

/* Packets that crossed the mesh are left out: they lie between a request and its answer. */
static void leave_out_crossed(void) {
    size_t n = 0;
    for (size_t i = 0; i < n_records; i++)
        if (record[i]->kind != HW_LOG_CROSSED)
            record[n++] = record[i];
    n_records = n;
}

static enum hw_op op_of(const struct hw_log_record *r) {
    return hw_packet_op(&(struct hw_packet){{r->flit[0], r->flit[1], r->flit[2]}});
}

static struct hw_log_record *last(enum hw_log_kind kind) {
    for (size_t i = n_records; i-- > 0;)
        if (record[i]->kind == kind)
            return record[i];
    return NULL;
}

static bool is_lock(const struct hw_log_record *r) {
    return r->kind == HW_LOG_CAME && op_of(r) == HW_OP_LOCK;
}

static bool swap(void) {
    bool any = false;
    for (size_t i = 0; i + 1 < n_records; i++) {
        struct hw_log_record *a = record[i], *b = record[i + 1];
        if (is_lock(a) && is_lock(b) && a->flit[1] == b->flit[1] && a->flit[2] != b->flit[2]) {
            uint32_t thread = a->flit[2];
            a->flit[2] = b->flit[2];
            b->flit[2] = thread;
            any = true;
            i++;
        }
    }
    return any;
}

/* The last two requests of a core. */
static bool at_once(void) {
    struct hw_log_record *later = last(HW_LOG_CAME);
    uint64_t before = 0;
    for (size_t i = 0; i < n_records; i++)
        if (record[i]->kind == HW_LOG_CAME && (uint16_t)record[i]->flit[2] == (uint16_t)later->flit[2] &&
            record[i]->from_cycles < later->from_cycles && record[i]->from_cycles > before)
            before = record[i]->from_cycles;
    later->from_cycles = before + hw_timing_default().handover_cycles - 1;
    return before != 0;
}

/* The last lock, and the lock before it, which was made after a pause. */
static bool overtakes(void) {
    struct hw_log_record *lock[2] = {NULL, NULL};
    for (size_t i = 0; i < n_records; i++)
        if (is_lock(record[i])) {
            lock[0] = lock[1];
            lock[1] = record[i];
        }
    if (lock[0] == NULL || lock[0]->flit[2] != lock[1]->flit[2])
        return false;
    lock[1]->from_cycles = lock[0]->from_cycles - hw_timing_default().handover_cycles;
    return true;
}

static bool hasty(void) {
    for (size_t i = 1; i < n_records; i++)
        if (is_lock(record[i])) {
            record[i]->from_cycles = record[i - 1]->to_cycles - 1;
            return record[i - 1]->kind == HW_LOG_LEFT;
        }
    return false;
}

/* Take a request, or its answer, out of the last block; of the last request there that has one right behind it. */
static bool take_out(enum hw_log_kind kind) {
    struct hw_log_header *block = NULL;
    unsigned char *end = file + n_bytes;
    for (size_t at = 0; at < n_bytes; at += sizeof *block + block->n_bytes)
        block = (struct hw_log_header *)(void *)(file + at);
    for (size_t i = n_records - 1; i-- > 0 && (unsigned char *)record[i] > (unsigned char *)block;)
        if (record[i]->kind == HW_LOG_CAME && record[i + 1]->kind == HW_LOG_LEFT) {
            struct hw_log_record *out = record[kind == HW_LOG_CAME ? i : i + 1];
            memmove(out, out + 1, (size_t)(end - (unsigned char *)(out + 1)));
            block->n_bytes -= (uint32_t)sizeof *out;
            n_bytes -= sizeof *out;
            return true;
        }
    return false;
}

static bool mangle(const char *what) {
    if (strcmp(what, "swap") == 0)
        return swap();
    if (strcmp(what, "at-once") == 0)
        return at_once();
    if (strcmp(what, "overtakes") == 0)
        return overtakes();
    if (strcmp(what, "hasty") == 0)
        return hasty();
    if (strcmp(what, "unasked") == 0 || strcmp(what, "unanswered") == 0)
        return take_out(strcmp(what, "unasked") == 0 ? HW_LOG_CAME : HW_LOG_LEFT);
    if (strcmp(what, "leaves") == 0)
        return last(HW_LOG_LEFT)->from_cycles--, true;
    if (strcmp(what, "seen") == 0)
        return last(HW_LOG_LEFT)->to_cycles--, true;
    if (strcmp(what, "arrives") == 0)
        return last(HW_LOG_CAME)->to_cycles--, true;
    if (strcmp(what, "record") == 0)
        return record[n_records / 2]->kind = 77, true;
    if (strcmp(what, "state") == 0 && state != NULL)
        return state[0] ^= 0x40, true;
    return false;
}

int main(int argc, char **argv) {
    FILE *log = argc == 3 ? fopen(argv[2], "r+b") : NULL;
    if (log == NULL || (n_bytes = fread(file, 1, sizeof file, log)) == 0)
        return 2;
    find_records();
    leave_out_crossed();
    if (n_records == 0 || !mangle(argv[1]))
        return 1;
    rewind(log);
    if (fwrite(file, 1, n_bytes, log) != n_bytes || fflush(log) != 0 || ftruncate(fileno(log), (off_t)n_bytes) != 0)
        return 2;
    return fclose(log) != 0;
}
