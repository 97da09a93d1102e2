/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * --requests. Each tile has a block, which is filled under the tile's lock. The file is open only while a block is
 * appended to it, so that a program may close descriptors that it does not know. A forked child has copies of its
 * parent's NIs, and does not know what led to their state: it writes nothing.
 */
#include "engine/ni/requests.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/log.h"
#include "engine/ni/tile.h"
#include "os/arch.h"

static const char *path;
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
        blocks[i].header = (struct ni_requests_header){
            .magic = NI_REQUESTS_MAGIC,
            .process = (uint32_t)sbt_syscall3(SYS_getpid, 0, 0, 0),
            .start_ns = m->start_ns,
            .tile = (uint16_t)i,
            .width = (uint16_t)m->mesh.config.width,
            .height = (uint16_t)m->mesh.config.height,
            .n_control = (uint16_t)m->config.n_control,
            .n_queue = (uint16_t)m->config.n_queue,
            .flags = (uint16_t)((m->config.full == HW_FULL_AGAIN ? NI_REQUESTS_FULL_AGAIN : 0) |
                                (m->config.reserve ? 0 : NI_REQUESTS_NO_RESERVE)),
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
static bool write_whole(long file, const struct ni_requests_block *b, size_t size) {
    struct timespec at_once = {0, 0};
    struct stat st;
    uint64_t too_large = UINT64_C(1) << (SIGXFSZ - 1), before = 0;
    sbt_syscall6(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, (long)&too_large, (long)&before, sizeof too_large, 0, 0);
    long n = sbt_syscall3(SYS_write, file, (long)b, (long)size);
    if (n == -EFBIG && (before & too_large) == 0) /* the pending signal is ours */
        sbt_syscall6(SYS_rt_sigtimedwait, (long)&too_large, 0, (long)&at_once, sizeof too_large, 0, 0);
    sbt_syscall6(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, (long)&before, 0, sizeof before, 0, 0);
    if (n > 0 && n < (long)size) {
        long end = sbt_syscall3(SYS_lseek, file, 0, SEEK_CUR);
        if (sbt_syscall3(SYS_fstat, file, &st, 0) == 0 && S_ISREG(st.st_mode) && st.st_size == end)
            sbt_syscall3(SYS_ftruncate, file, end - n, 0);
    }
    return n == (long)size;
}

static void append(struct ni_requests_block *b) {
    size_t size = sizeof b->header + b->header.n_records * sizeof *b->record;
    if (b->header.n_records == 0 || __atomic_load_n(&failed, __ATOMIC_RELAXED))
        return;
    long file = sbt_syscall6(SYS_openat, AT_FDCWD, (long)path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666, 0, 0);
    if (file < 0 || !write_whole(file, b, size))
        give_up();
    if (file >= 0)
        sbt_syscall3(SYS_close, file, 0, 0);
}

void ni_requests_note(struct ni_tile *tile, enum ni_requests_kind kind, const struct hw_packet *packet) {
    struct ni_requests_block *b = tile->requests;
    if (b->header.n_records == NI_REQUESTS_BLOCK) {
        append(b);
        b->header.n_records = 0;
    }
    b->record[b->header.n_records++] =
        (struct ni_requests_record){(uint32_t)kind, {packet->flit[0], packet->flit[1], packet->flit[2]}};
}

void ni_requests_end(bool locked) {
    for (uint32_t i = 0; i < ni_machine.n_tiles; i++) {
        struct ni_tile *tile = &ni_machine.tiles[i];
        if (locked && tile->requests != NULL) {
            append(tile->requests);
            tile->requests = NULL;
        }
    }
}

void ni_requests_fork_child(void) {
    for (uint32_t i = 0; i < ni_machine.n_tiles; i++)
        ni_machine.tiles[i].requests = NULL;
}
