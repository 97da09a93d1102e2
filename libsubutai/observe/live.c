/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * See live.h. The file's memory is allocated before it is mapped: on a full disk a record is in private memory, and no
 * store to it ends the program by SIGBUS.
 */
#include "observe/live.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

#include "abi/outside.h"
#include "live_format.h"
#include "observe/file.h"
#include "observe/profile.h"
#include "os/own_file.h"
#include "os/proc.h"
#include "os/signals.h"

static struct {
    struct trace_live_header *header; /* atomic; NULL: there is no file, or no longer */
    int fd;
    struct sbt_own_file own;
} live = {.fd = -1};

#define AT(field) (uint16_t) offsetof(struct rec_thread, field)
static const uint16_t offsets[LIVE_N_FIELDS] = {
    [LIVE_STATE] = AT(state),
    [LIVE_BUSY] = AT(busy),
    [LIVE_FLUSHING] = AT(flushing),
    [LIVE_AT_END] = AT(at_end),
    [LIVE_IN_CALL] = AT(in_call),
    [LIVE_N_PENDING] = AT(n_pending),
    [LIVE_N_LOST] = AT(n_lost),
    [LIVE_N_BATCH] = AT(n_batch),
    [LIVE_N_TAKEN] = AT(n_taken),
    [LIVE_N_APART] = AT(n_apart),
    [LIVE_END_NS] = AT(end_ns),
    [LIVE_CPU] = AT(cpu_ns),
    [LIVE_CARRIED] = AT(carried_ns),
    [LIVE_CALL_WORK] = AT(call_work_ns),
    [LIVE_CALL_AT] = AT(call_at),
    [LIVE_OUTSIDE] = AT(outside),
    [LIVE_OUTSIDE_AT] = AT(outside_at),
    [LIVE_WAITS_OBJECT] = AT(call_waits.object),
    [LIVE_WAITS_OTHER] = AT(call_waits.other),
    [LIVE_WAITS_SITE] = AT(call_waits.site),
    [LIVE_WAITS_TYPE] = AT(call_waits.type),
    [LIVE_NEXT] = AT(next_at),
    [LIVE_BOOK] = AT(book_at),
    [LIVE_BATCH] = AT(batch),
    [LIVE_ENCODER] = AT(encoder),
};
_Static_assert((int)REC_FREE == (int)LIVE_FREE && (int)REC_LIVE == (int)LIVE_LIVE &&
                   (int)REC_ENDED == (int)LIVE_ENDED && (int)REC_CLOSING == (int)LIVE_CLOSING,
               "trace/live_format.h");
_Static_assert(sizeof(((struct rec_thread *)0)->outside) == 8 && sizeof(((struct rec_thread *)0)->call_at) == 8,
               "trace/live_format.h");

/* The last room on a disk is the program's and the trace's. A file system without a limit says that it has 0 blocks. */
#define LEAST_FREE (UINT64_C(16) << 20)

/* Of the file. In memory an area has the pages of the kernel, which may be smaller: what lies behind them is another's.
 */
static size_t rounded(size_t n_bytes) {
    return (n_bytes + SBT_PAGE_MAX - 1) / SBT_PAGE_MAX * SBT_PAGE_MAX;
}

/* Room in the file, for good. The caller has blocked signals. */
static bool allocate(int fd, uint64_t offset, size_t bytes) {
    struct statfs about;
    if (sbt_syscall3(SYS_fstatfs, fd, &about, 0) != 0 ||
        (about.f_blocks != 0 && (uint64_t)about.f_bavail * (uint64_t)about.f_bsize < LEAST_FREE))
        return false;
    long r = sbt_syscall6(SYS_fallocate, fd, 0, (long)offset, (long)bytes, 0, 0);
    if (r == -EFBIG)
        sbt_own_file_take_limit();
    return r == 0;
}

static void *map(void *at, int fd, uint64_t offset, size_t bytes) {
    long r = sbt_syscall6(SYS_mmap, (long)at, (long)bytes, PROT_READ | PROT_WRITE,
                          at != NULL ? MAP_SHARED | MAP_FIXED : MAP_SHARED, fd, (long)offset);
    return r < 0 && r > -4096 ? NULL : (void *)r;
}

/* The lock says to a reader in another container that the process lives. */
static bool lock(int fd) {
    struct flock byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LIVE_LOCK_PROCESS, .l_len = 1};
    return sbt_syscall3(SYS_fcntl, fd, F_OFD_SETLK, &byte) == 0;
}

/*
 * What the process has computed already, but for the calling thread, which has a record: threads that have ended, as
 * those of a program that has become this one by exec.
 */
static uint64_t past_cpu_ns(void) {
    struct timespec all, own;
    sbt_clock_read(CLOCK_PROCESS_CPUTIME_ID, &all);
    sbt_clock_read(CLOCK_THREAD_CPUTIME_ID, &own);
    int64_t ns = (int64_t)(all.tv_sec - own.tv_sec) * 1000000000 + (all.tv_nsec - own.tv_nsec);
    return ns > 0 ? (uint64_t)ns : 0;
}

static void fill(struct trace_live_header *header, uint64_t first_block_sum) {
    *header = (struct trace_live_header){
        .header_bytes = SBT_PAGE_MAX,
        .record_bytes = sizeof(struct rec_thread),
        .event_bytes = sizeof(struct sbt_trace_event),
        .encoder_bytes = sizeof(struct trace_encoder),
        .n_batch = REC_N_BATCH,
        .process_id = rec.process_id,
        .process_start = sbt_proc_start(),
        .trace_sum = first_block_sum,
        .start_ns = rec.start_ns,
        .scale = rec_clock.scale,
        .base_ticks = rec_clock.base_ticks,
        .end = SBT_PAGE_MAX,
        .book_bytes = sizeof(struct trace_live_book),
        .entry_bytes = sizeof(struct trace_live_entry),
        .order_bytes = sizeof(struct trace_live_order),
        .past_cpu = past_cpu_ns(),
    };
    memcpy(header->magic, TRACE_LIVE_MAGIC, sizeof header->magic);
    memcpy(header->offset, offsets, sizeof offsets);
}

/* Has the trace before this one under the same name left it? A program's own file of that name stays. */
static bool is_old(const char *path) {
    char magic[8];
    long fd = sbt_syscall6(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0, 0, 0);
    if (fd < 0)
        return false;
    long n = sbt_syscall3(SYS_read, fd, magic, sizeof magic);
    sbt_syscall3(SYS_close, fd, 0, 0);
    return n == 0 || (n == sizeof magic && memcmp(magic, TRACE_LIVE_MAGIC, TRACE_LIVE_ANY) == 0);
}

static long create(void) {
    long fd = sbt_own_file_create(&live.own, O_RDWR, 1);
    if (fd != -EEXIST || !is_old(live.own.path))
        return fd;
    sbt_syscall6(SYS_unlinkat, AT_FDCWD, (long)live.own.path, 0, 0, 0, 0);
    return sbt_own_file_create(&live.own, O_RDWR, 1);
}

/* The magic comes first: so a file that is only begun is known as one of ours. */
static struct trace_live_header *begin_file(int fd) {
    if (sbt_syscall6(SYS_pwrite64, fd, (long)TRACE_LIVE_MAGIC, 8, 0, 0, 0) != 8 || !allocate(fd, 0, SBT_PAGE_MAX) ||
        !lock(fd))
        return NULL;
    return map(NULL, fd, 0, SBT_PAGE_MAX);
}

void rec_live_begin(const char *trace, uint64_t first_block_sum) {
    size_t n = strlen(trace);
    if (n + sizeof TRACE_LIVE_ENDING > sizeof live.own.wanted || abi_outside_is_restricted())
        return;
    memcpy(live.own.wanted, trace, n);
    memcpy(live.own.wanted + n, TRACE_LIVE_ENDING, sizeof TRACE_LIVE_ENDING);
    live.own.ending = TRACE_LIVE_ENDING;
    long fd = create();
    if (fd < 0) {
        live.own.path[0] = '\0';
        return;
    }
    live.fd = sbt_own_file_out_of_the_way(fd);
    struct trace_live_header *header = begin_file(live.fd);
    if (header == NULL) {
        sbt_own_file_remove(&live.own);
        sbt_syscall3(SYS_close, live.fd, 0, 0);
        live.fd = -1;
        return;
    }
    fill(header, first_block_sum);
    __atomic_store_n(&live.header, header, __ATOMIC_RELEASE); /* pairs with take */
}

/* The file's descriptor; below 0: the file is out of reach. A program may close descriptors that it did not open. */
static int descriptor(void) {
    int fd = __atomic_load_n(&live.fd, __ATOMIC_RELAXED);
    if (sbt_own_file_is(&live.own, fd))
        return fd;
    long opened = sbt_own_file_open(&live.own, O_RDWR);
    if (opened < 0)
        return -1;
    int again = sbt_own_file_out_of_the_way(opened);
    if (__atomic_compare_exchange_n(&live.fd, &fd, again, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return again;
    sbt_syscall3(SYS_close, again, 0, 0); /* another thread has opened it */
    return fd;
}

/* Room for so many bytes in the file; 0: there is none. The caller has blocked signals. */
static uint64_t take(int *fd, size_t n_bytes) {
    struct trace_live_header *header = __atomic_load_n(&live.header, __ATOMIC_ACQUIRE);
    if (header == NULL || abi_outside_is_restricted() || (*fd = descriptor()) < 0)
        return 0;
    uint64_t offset = __atomic_fetch_add(&header->end, rounded(n_bytes), __ATOMIC_RELAXED);
    return offset < TRACE_LIVE_MOST && allocate(*fd, offset, rounded(n_bytes)) ? offset : 0;
}

void *rec_live_area(size_t n_bytes, uint64_t *offset) {
    int fd = -1;
    uint64_t signals = sbt_signals_block(), at = take(&fd, n_bytes);
    void *area = at != 0 ? map(NULL, fd, at, n_bytes) : NULL;
    *offset = area != NULL ? at : 0;
    sbt_signals_restore(signals);
    return area;
}

/* A reader finds the one or the other, which are equal. */
uint64_t rec_live_move(void *area, size_t n_bytes) {
    int fd = -1;
    uint64_t signals = sbt_signals_block(), at = take(&fd, n_bytes);
    long n = at != 0 ? sbt_syscall6(SYS_pwrite64, fd, (long)area, (long)n_bytes, (long)at, 0, 0) : 0;
    if (n == -EFBIG)
        sbt_own_file_take_limit();
    if (n != (long)n_bytes || map(area, fd, at, n_bytes) == NULL)
        at = 0;
    sbt_signals_restore(signals);
    return at;
}

/* The record is at that place of the file, and mapped from there: readers find it. */
static void publish(struct rec_thread *t, uint64_t at) {
    struct trace_live_header *header = __atomic_load_n(&live.header, __ATOMIC_ACQUIRE);
    t->is_live = true;
    if (header == NULL)
        return;
    t->next_at = __atomic_load_n(&header->first, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&header->first, &t->next_at, at, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
}

struct rec_thread *rec_live_new(void) {
    uint64_t at;
    struct rec_thread *t = rec_live_area(sizeof *t, &at);
    if (t != NULL)
        publish(t, at);
    return t;
}

/* No other thread writes to the record of a thread that runs. */
void rec_live_adopt(struct rec_thread *t) {
    if (__atomic_load_n(&live.header, __ATOMIC_RELAXED) == NULL)
        return;
    uint64_t at = rec_live_move(t, sizeof *t);
    t->is_live = true; /* or cannot be, which is as good */
    if (at == 0)
        return;
    publish(t, at);
    if (t->profile != NULL)
        rec_profile_adopt(t->profile);
}

/* Other threads may be about to use the descriptor, so it stays open. */
void rec_live_end(void) {
    struct trace_live_header *header = __atomic_exchange_n(&live.header, NULL, __ATOMIC_ACQUIRE);
    if (header == NULL)
        return;
    __atomic_store_n(&header->ended, 1, __ATOMIC_RELEASE); /* for a user that may not remove it */
    sbt_own_file_remove(&live.own);
}

void rec_live_past(uint64_t cpu_ns) {
    struct trace_live_header *header = __atomic_load_n(&live.header, __ATOMIC_ACQUIRE);
    if (header != NULL)
        __atomic_fetch_add(&header->past_cpu, cpu_ns, __ATOMIC_RELAXED);
}

void rec_live_give(uid_t user) {
    int fd = __atomic_load_n(&live.header, __ATOMIC_ACQUIRE) != NULL ? descriptor() : -1;
    if (fd >= 0)
        sbt_syscall3(SYS_fchown, fd, user, -1);
}

static bool put_in_place(void *copy, void *area, size_t n_bytes) {
    return sbt_syscall6(SYS_mremap, (long)copy, (long)n_bytes, (long)n_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, (long)area,
                        0) == (long)area;
}

bool rec_live_take_home(void *area, size_t n_bytes) {
    void *copy = rec_map(n_bytes);
    if (copy == NULL)
        return false;
    memcpy(copy, area, n_bytes);
    return put_in_place(copy, area, n_bytes);
}

/*
 * A private copy takes the record's place; without memory for one the caller gets another record. The parent goes on
 * and changes the record, so its pointers may be to memory that the child does not have. False: there is no memory.
 */
static bool take_home(struct rec_thread *t) {
    bool is_self = t == rec_self;
    struct rec_thread *copy = rec_map(sizeof *t);
    if (copy == NULL && is_self) {
        rec_self = NULL;
        rec_profile_self = NULL;
    }
    if (copy == NULL)
        return false;
    memcpy(copy, t, sizeof *t);
    copy->profile = is_self ? rec_profile_self : NULL;
    copy->stacks = NULL;
    copy->creating = NULL;
    copy->tid = is_self ? t->tid : 0; /* in the parent the thread may have begun */
    copy->is_live = false;
    copy->book_at = 0;
    return put_in_place(copy, t, sizeof *t);
}

/* Profiles lie in private memory, and know what they have mapped. */
static void forget_profile(struct rec_thread *t) {
    bool is_self = t == rec_self;
    if (!is_self && t->profile != NULL)
        rec_profile_forget(t->profile);
    if (is_self && rec_profile_self != NULL && !rec_profile_take_home(rec_profile_self))
        rec_profile_self = NULL;
    if (!t->is_live) /* else the record is the parent's */
        t->profile = is_self ? rec_profile_self : NULL;
}

/*
 * The child keeps the records of the calling thread, and of the thread that it was about to create: a handler that has
 * forked may go back there. Of the other threads' no record stays mapped: while it is, the file has the parent's lock,
 * and readers take the parent for alive.
 */
static void forget_records(void) {
    struct rec_thread *self = rec_thread_self(), *begun = self != NULL ? self->creating : NULL;
    struct rec_thread **link = &rec.threads, *next;
    for (struct rec_thread *t = rec.threads; t != NULL; t = next) {
        next = t->next;
        forget_profile(t);
        if (t->is_live && t != self && t != begun && t->tid != 0) {
            sbt_syscall3(SYS_munmap, t, sizeof *t, 0);
        } else if (!t->is_live || take_home(t)) {
            *link = t;
            link = &t->next;
        }
    }
    *link = NULL;
}

/* A handler that makes an event meanwhile would begin the child's trace. */
void rec_live_forget(void) {
    uint64_t signals = sbt_signals_block();
    forget_records();
    if (live.header != NULL)
        sbt_syscall3(SYS_munmap, live.header, SBT_PAGE_MAX, 0);
    if (live.fd >= 0 && sbt_own_file_is(&live.own, live.fd))
        sbt_syscall3(SYS_close, live.fd, 0, 0);
    live.header = NULL;
    live.fd = -1;
    live.own.path[0] = '\0';
    sbt_signals_restore(signals);
}
