/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The file of this process's trace (os/own_file.h). It is made when there is something to write: a program that only
 * starts another program leaves its name to that. A program may close descriptors that it did not open, and get the
 * same number for a file of its own. So the descriptor is compared with the file before each block.
 */
#include "observe/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "abi/outside.h"
#include "core/log.h"
#include "observe/live.h"
#include "observe/profile.h"
#include "os/futex.h"
#include "os/own_file.h"
#include "os/signals.h"
#include "words.h"

enum { NO_FD = -1, OPENING = -2 };

static struct {
    int fd; /* NO_FD, OPENING, or open; atomic */
    struct sbt_own_file own;
    bool failed;
    /*
     * Atomic, sequentially consistent. A writer counts itself and then looks for `ended`. The thread that ends the
     * trace sets `ended` and then looks for writers. At least one of the two sees the other.
     */
    bool ended; /* only the last block is still to be written */
    uint32_t n_writing;
} file = {.fd = NO_FD};

/*
 * Say once what keeps the trace from being written; the program goes on without. Relaxed: an event sooner or later
 * makes no difference.
 */
static void fail(long error) {
    const char *why = strerrordesc_np((int)-error);
    __atomic_store_n(&rec.closing, 1, __ATOMIC_RELAXED);
    rec_live_end();
    if (!__atomic_exchange_n(&file.failed, true, __ATOMIC_RELAXED))
        sbt_log(1, "recording ends, the program goes on: '", file.own.path[0] != '\0' ? file.own.path : file.own.wanted,
                "': ", why != NULL ? why : "unknown error",
                error == -EACCES ? " (legal: a directory where the user that the program has become may write)" : "",
                NULL);
}

/* A server that shows what it does in the place of its command line fills the rest of that with zeros. One empty word
 * at the end may be an argument. */
static long without_rest(const char *words, long n) {
    long end = n;
    while (end > 0 && words[end - 1] == '\0')
        end--;
    return n - end > 2 ? end + 1 : n;
}

/* The command line as a shell would read it, for `subutai report --try`; no more of its words than fit. */
static uint8_t *define_process(uint8_t *at) {
    char words[2048], command[2048];
    const char *engine = sbt_engine.name;
    long fd = sbt_syscall6(SYS_openat, AT_FDCWD, (long)"/proc/self/cmdline", O_RDONLY | O_CLOEXEC, 0, 0, 0), n = 0;
    if (fd >= 0) {
        n = without_rest(words, sbt_syscall3(SYS_read, fd, words, sizeof words));
        sbt_syscall3(SYS_close, fd, 0, 0);
    }
    n = (long)words_quote(command, sizeof command, words, n > 0 ? (size_t)n : 0);
    *at++ = TRACE_DEFINE_COMMAND;
    at = trace_put(at, (uint64_t)n);
    memcpy(at, command, (size_t)n);
    at += n;
    *at++ = TRACE_DEFINE_ENGINE;
    at = trace_put(at, strlen(engine));
    memcpy(at, engine, strlen(engine));
    at += strlen(engine);
    struct timespec now;
    sbt_clock_read(CLOCK_REALTIME, &now);
    *at++ = TRACE_DEFINE_PROCESS;
    at = trace_put(at, rec.process_id);
    at = trace_put(at, (uint64_t)sbt_syscall0(SYS_getppid));
    at = trace_put(at, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
    *at++ = TRACE_DEFINE_PROFILE;
    return trace_put(trace_put(trace_put(at, rec.profile ? PROFILE_MAX_INTERVAL : 1), rec.stack_min_ns), 0);
}

static long write_parts(int fd, const struct iovec *parts, int n_parts) {
    size_t wanted = 0;
    for (int i = 0; i < n_parts; i++)
        wanted += parts[i].iov_len;
    long n = sbt_syscall3(SYS_writev, fd, parts, n_parts);
    if (n > 0 && (size_t)n < wanted) { /* no more room, or a limit on one write: the next byte gives the reason */
        static const char nothing[1];
        n = sbt_syscall3(SYS_write, fd, nothing, 1);
        n = n < 0 ? n : -ENOSPC;
    }
    if (n == -EFBIG)
        sbt_own_file_take_limit();
    return n < 0 ? n : 0;
}

static long begin_file(long fd) {
    struct trace_preamble preamble = TRACE_PREAMBLE(rec.profile ? TRACE_PROFILE : 0);
    struct trace_block header;
    uint8_t definitions[4096], *end = define_process(definitions);
    trace_definitions_header(&header, TRACE_BLOCK_BEGIN, definitions, (uint32_t)(end - definitions));
    struct iovec parts[] = {
        {&preamble, sizeof preamble}, {&header, sizeof header}, {definitions, (size_t)(end - definitions)}};
    long r = write_parts((int)fd, parts, 3);
    if (r >= 0)
        rec_live_begin(file.own.path, header.header_sum);
    return r;
}

/* `only_free`: open FILE if it is still free, and no other file. */
static long open_file(bool only_free) {
    long fd = sbt_own_file_create(&file.own, O_WRONLY | O_APPEND, only_free ? 1 : SBT_OWN_FILE_NAMES);
    if (fd < 0)
        return fd;
    fd = sbt_own_file_out_of_the_way(fd);
    long r = begin_file(fd);
    if (r < 0)
        sbt_syscall3(SYS_close, fd, 0, 0);
    return r < 0 ? r : fd;
}

/* The descriptor to write to; or a negated errno value. */
static long descriptor(bool only_free) {
    int fd = __atomic_load_n(&file.fd, __ATOMIC_ACQUIRE);
    if (fd >= 0 && sbt_own_file_is(&file.own, fd))
        return fd;
    if (fd >= 0) { /* the program has closed it */
        long again = sbt_own_file_open(&file.own, O_WRONLY | O_APPEND);
        if (again < 0)
            return again;
        again = sbt_own_file_out_of_the_way(again);
        __atomic_store_n(&file.fd, (int)again, __ATOMIC_RELEASE);
        return again;
    }
    for (unsigned i = 0; fd < 0; i++) { /* another thread that has failed may have asked for FILE alone */
        int none = NO_FD;
        if (__atomic_compare_exchange_n(&file.fd, &none, OPENING, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
            long opened = open_file(only_free);
            __atomic_store_n(&file.fd, opened < 0 ? NO_FD : (int)opened, __ATOMIC_RELEASE);
            return opened;
        }
        rec_wait_a_moment(i);
        fd = __atomic_load_n(&file.fd, __ATOMIC_ACQUIRE);
    }
    return fd;
}

/* Count a block for what the last block says of the others. Relaxed: the last block waits for this writer. */
static bool write_counted(const struct trace_block *header, const struct iovec *parts) {
    if (__atomic_load_n(&file.failed, __ATOMIC_RELAXED))
        return false;
    long r = descriptor(false);
    r = r < 0 ? r : write_parts((int)r, parts, 4);
    if (r < 0)
        fail(r);
    if (r >= 0 && header->kind == TRACE_BLOCK_TALLIES) {
        __atomic_fetch_add(&rec.n_tallies, header->n_events, __ATOMIC_RELAXED);
        __atomic_fetch_add(&rec.n_tally_blocks, 1, __ATOMIC_RELAXED);
    }
    if (r >= 0 && header->kind == TRACE_BLOCK_EVENTS) {
        __atomic_fetch_add(&rec.n_events, header->n_events, __ATOMIC_RELAXED);
        __atomic_fetch_add(&rec.n_blocks, 1, __ATOMIC_RELAXED);
    }
    return r >= 0;
}

bool rec_write(const struct trace_block *header, const void *a, size_t n_a, const void *b, size_t n_b, const void *c,
               size_t n_c) {
    struct iovec parts[] = {{(void *)(uintptr_t)header, sizeof *header},
                            {(void *)(uintptr_t)a, n_a},
                            {(void *)(uintptr_t)b, n_b},
                            {(void *)(uintptr_t)c, n_c}};
    __atomic_fetch_add(&file.n_writing, 1, __ATOMIC_SEQ_CST);
    bool written = (header->kind == TRACE_BLOCK_END || !__atomic_load_n(&file.ended, __ATOMIC_SEQ_CST)) &&
                   write_counted(header, parts);
    __atomic_fetch_sub(&file.n_writing, 1, __ATOMIC_SEQ_CST);
    return written;
}

void rec_file_name(const char *path) {
    sbt_own_file_name(&file.own, path, ".sbt");
}

bool rec_file_is_begun(void) {
    return file.fd != NO_FD;
}

bool rec_file_has_failed(void) {
    return file.failed;
}

bool rec_file_begin(void) {
    long fd = file.own.is_child ? -EEXIST : descriptor(true);
    if (fd < 0 && fd != -EEXIST)
        fail(fd);
    return fd >= 0;
}

void rec_file_forget(void) {
    if (file.fd >= 0 && sbt_own_file_is(&file.own, file.fd))
        sbt_syscall3(SYS_close, file.fd, 0, 0);
    file.fd = NO_FD;
    file.own.is_child = true;
    file.own.path[0] = '\0';
    file.ended = false;
    file.n_writing = 0; /* the copy may have caught other threads of the parent there */
}

bool rec_file_end(uint64_t until_ns) {
    __atomic_store_n(&file.ended, true, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&file.n_writing, __ATOMIC_SEQ_CST) != 0) {
        if (rec_now_ns() >= until_ns)
            return false;
        sbt_pause_ns(LOOK_PAUSE_NS);
    }
    return true;
}

/* What the permissions of others say, where the kernel does not answer. */
static bool others_may_make(const char *directory) {
    struct stat about;
    return sbt_syscall6(SYS_newfstatat, AT_FDCWD, (long)directory, (long)&about, 0, 0, 0) != 0 ||
           (about.st_mode & S_IWOTH) != 0;
}

/*
 * May that user make files in the directory of FILE? The kernel is asked, which knows groups, lists of access, and the
 * directories above: for the length of the question the calling thread has that user's rights to files, and no other
 * thread has. Kernels before 5.8, and some sandboxes, do not answer.
 */
static bool may_make(uid_t user) {
    char directory[SBT_OWN_FILE_PATH];
    size_t n = strlen(file.own.wanted);
    memcpy(directory, file.own.wanted, n + 1);
    while (n > 1 && directory[n - 1] != '/')
        n--;
    directory[n] = '\0';
    long before = sbt_syscall3(SYS_setfsuid, user, 0, 0);
    bool asked = sbt_syscall3(SYS_setfsuid, -1, 0, 0) == (long)user;
    long r = asked ? sbt_syscall6(SYS_faccessat2, AT_FDCWD, (long)directory, W_OK | X_OK, AT_EACCESS, 0, 0) : -ENOSYS;
    sbt_syscall3(SYS_setfsuid, before, 0, 0);
    return r == -ENOSYS || r == -EPERM ? others_may_make(directory) : r != -EACCES;
}

/*
 * A server that root has started becomes another user, which may not make FILE, before it has done anything else. So
 * the file is made now. It is not made if that user can make it: then a program that only changes the user, and starts
 * another program, leaves the name to that. A file that is there becomes that user's if the change is for good: so the
 * program can open it again.
 *
 * A program that restricts its system calls need not allow these, and is left alone. A child of vfork has its parent's
 * memory.
 */
static bool may_begin_file(void) {
    return rec.state == REC_ON && abi_outside_is_seen() &&
           !(rec.generation == sbt_fork_generation() && rec.process_id != (uint32_t)sbt_syscall0(SYS_getpid)) &&
           !rec_thread_is_vforked() && rec_start();
}

static void user_changes(uid_t user, bool for_good) {
    if (user == (uid_t)sbt_syscall0(SYS_geteuid) || !may_begin_file())
        return;
    uint64_t signals = sbt_signals_block();
    long fd = !rec_file_is_begun() && may_make(user) ? -EEXIST : descriptor(false);
    if (fd >= 0 && for_good)
        sbt_syscall3(SYS_fchown, fd, user, -1);
    if (for_good)
        rec_live_give(user);
    sbt_signals_restore(signals);
}

/* A file that is open can be written all the same: xz opens its output, and then forbids itself all other files. */
static void files_end(void) {
    if (!may_begin_file())
        return;
    uint64_t signals = sbt_signals_block();
    (void)descriptor(false); /* if that fails, so will the first block */
    sbt_signals_restore(signals);
}

__attribute__((constructor)) static void observe_user(void) {
    abi_files_end = files_end;
    abi_user_changes = user_changes;
}
