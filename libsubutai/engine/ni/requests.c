/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * --requests. Each tile has a block, which is filled under the tile's lock. The file is open only while a block is
 * appended to it, so that a program may close descriptors that it does not know. A forked child has copies of its
 * parent's NIs: before an NI's first record it writes the NI's state.
 */
#include "engine/ni/requests.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/log.h"
#include "engine/ni/tile.h"
#include "os/arch.h"

struct ni_requests_block {
    struct hw_log_header header;
    struct hw_log_record record[HW_LOG_MAX_RECORDS];
    uint32_t n_records;
    bool needs_state; /* in a forked child: the NI's state comes first */
};

static const char *path;
static uint64_t order;  /* records so far; atomic. Relaxed: what comes after another record has seen its effect */
static uint32_t failed; /* 1: writing failed, and a message said so. Atomic; relaxed: it concerns only the file */

int ni_requests_start(const struct sbt_options *options) {
    struct ni_machine *m = &ni_machine;
    path = options->value[SBT_OPT_REQUESTS].s;
    if (path == NULL)
        return 0;
    struct ni_requests_block *blocks = ni_get_memory(m->n_tiles * sizeof *blocks);
    if (blocks == NULL)
        return ENOMEM;
    for (uint32_t i = 0; i < m->n_tiles; i++) {
        blocks[i].header = (struct hw_log_header){
            .magic = HW_LOG_MAGIC,
            .process = (uint32_t)sbt_syscall3(SYS_getpid, 0, 0, 0),
            .start_ns = m->start_ns,
            .tile = (uint16_t)i,
            .width = (uint16_t)m->mesh.config.width,
            .height = (uint16_t)m->mesh.config.height,
            .n_control = (uint16_t)m->config.n_control,
            .n_queue = (uint16_t)m->config.n_queue,
            .flags = (uint16_t)((m->config.full == HW_FULL_AGAIN ? HW_LOG_FULL_AGAIN : 0) |
                                (m->config.reserve ? 0 : HW_LOG_NO_RESERVE)),
            .time_scale = m->time_scale,
        };
        m->tiles[i].requests = &blocks[i];
    }
    return 0;
}

/* Blocks that come later would not fit the missing ones: this process writes no more. */
static void give_up(void) {
    if (__atomic_exchange_n(&failed, 1, __ATOMIC_RELAXED) == 0)
        sbt_log(0, "requests: cannot write ", path, ": no more of them are written", NULL);
}

/*
 * Write all of a block or nothing: half a block would make the blocks of other processes unreadable. So it is taken
 * back, unless something follows it already. If the file may not grow, that must not end the program either.
 */
static bool write_whole(long file, const struct iovec *parts, size_t n_parts) {
    struct timespec at_once = {0, 0};
    struct stat st;
    uint64_t too_large = UINT64_C(1) << (SIGXFSZ - 1), before = 0;
    long size = 0;
    for (size_t i = 0; i < n_parts; i++)
        size += (long)parts[i].iov_len;
    sbt_syscall6(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, (long)&too_large, (long)&before, sizeof too_large, 0, 0);
    long n = sbt_syscall3(SYS_writev, file, (long)parts, (long)n_parts);
    if (n == -EFBIG && (before & too_large) == 0) /* the pending signal is ours */
        sbt_syscall6(SYS_rt_sigtimedwait, (long)&too_large, 0, (long)&at_once, sizeof too_large, 0, 0);
    sbt_syscall6(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, (long)&before, 0, sizeof before, 0, 0);
    if (n > 0 && n < size) {
        long end = sbt_syscall3(SYS_lseek, file, 0, SEEK_CUR);
        if (sbt_syscall3(SYS_fstat, file, &st, 0) == 0 && S_ISREG(st.st_mode) && st.st_size == end)
            sbt_syscall3(SYS_ftruncate, file, end - n, 0);
    }
    return n == size;
}

/* Append a block: the header's, with what follows it. parts[0] is the header's. */
static void append(struct hw_log_header *header, enum hw_log_block block, struct iovec *parts, size_t n_parts) {
    if (__atomic_load_n(&failed, __ATOMIC_RELAXED))
        return;
    header->block = (uint16_t)block;
    header->n_bytes = 0;
    for (size_t i = 1; i < n_parts; i++)
        header->n_bytes += (uint32_t)parts[i].iov_len;
    parts[0] = (struct iovec){header, sizeof *header};
    long file = sbt_syscall6(SYS_openat, AT_FDCWD, (long)path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666, 0, 0);
    if (file < 0 || !write_whole(file, parts, n_parts))
        give_up();
    if (file >= 0)
        sbt_syscall3(SYS_close, file, 0, 0);
}

static void append_records(struct ni_requests_block *b) {
    struct iovec parts[2] = {{0}, {b->record, b->n_records * sizeof *b->record}};
    if (b->n_records != 0)
        append(&b->header, HW_LOG_RECORDS, parts, 2);
    b->n_records = 0;
}

static void append_state(struct ni_tile *tile) {
    const struct hw_spm *spm = &tile->ni.spm;
    struct hw_log_state state = {.free_cycles = tile->free_cycles,
                                 .busy_cycles = tile->busy_cycles,
                                 .generation_skip = spm->generation_skip,
                                 .free_head = spm->free_head,
                                 .free_tail = spm->free_tail,
                                 .n_free = spm->n_free,
                                 .n_reserved = spm->n_reserved,
                                 .n_control_used = tile->ni.n_control_used};
    struct iovec parts[3] = {{0}, {&state, sizeof state}, {spm->bytes, hw_spm_n_bytes(spm->n_control, spm->n_queue)}};
    append(&tile->requests->header, HW_LOG_STATE, parts, 3);
}

void ni_requests_note(struct ni_tile *tile, enum hw_log_kind kind, const struct hw_packet *packet, uint64_t from_cycles,
                      uint64_t to_cycles) {
    struct ni_requests_block *b = tile->requests;
    if (SBT_UNLIKELY(b->needs_state)) {
        b->needs_state = false;
        append_state(tile);
    }
    if (b->n_records == HW_LOG_MAX_RECORDS)
        append_records(b);
    b->record[b->n_records++] = (struct hw_log_record){.kind = (uint32_t)kind,
                                                       .flit = {packet->flit[0], packet->flit[1], packet->flit[2]},
                                                       .order = __atomic_fetch_add(&order, 1, __ATOMIC_RELAXED),
                                                       .from_cycles = from_cycles,
                                                       .to_cycles = to_cycles};
}

void ni_requests_note_crossed(struct ni_tile *tile, uint32_t from, uint32_t to, uint64_t at_cycles,
                              uint32_t contention_cycles) {
    ni_requests_note(tile, HW_LOG_CROSSED, &(struct hw_packet){{from, to, 0}}, at_cycles, contention_cycles);
}

void ni_requests_end(bool locked) {
    for (uint32_t i = 0; i < ni_machine.n_tiles; i++) {
        struct ni_tile *tile = &ni_machine.tiles[i];
        if (locked && tile->requests != NULL) {
            append_records(tile->requests);
            tile->requests = NULL;
        }
    }
}

/* The parent writes what is in its blocks. */
void ni_requests_fork_child(void) {
    order = 0;
    for (uint32_t i = 0; i < ni_machine.n_tiles; i++) {
        struct ni_requests_block *b = ni_machine.tiles[i].requests;
        if (b == NULL)
            continue;
        b->header.process = (uint32_t)sbt_syscall3(SYS_getpid, 0, 0, 0);
        b->header.flags |= HW_LOG_CHILD;
        b->n_records = 0;
        b->needs_state = true;
    }
}
