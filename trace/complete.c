/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The end of a killed program's trace: what its threads had in FILE.live is added to FILE (rest.c), and FILE.live is
 * removed.
 *
 * The process must be dead. Two things say that it lives: its lock on FILE.live, which lasts as long as FILE.live is
 * mapped; and its number with its start in /proc, which another container numbers otherwise. A program that another one
 * has become by exec has only the second.
 *
 * One reader is at work at a time, and others wait for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "rest.h"
#include "trace.h"

struct completion {
    struct trace_rest rest;
    int live_fd, fd; /* FILE.live, FILE */
    uint64_t end;    /* of the last whole block in FILE */
    bool has_end;    /* FILE needs nothing */
};

static bool read_at(int fd, uint64_t offset, void *to, size_t n) {
    return pread(fd, to, n, (off_t)offset) == (ssize_t)n;
}

/*
 * From header to header to the end of the last whole block. False: the trace is not this process's, or is damaged, or
 * has its end.
 */
static bool walk(struct completion *c) {
    struct trace_preamble preamble;
    struct trace_block header;
    struct stat st;
    if (fstat(c->fd, &st) != 0 || !read_at(c->fd, 0, &preamble, sizeof preamble) ||
        memcmp(preamble.magic, (const char[])TRACE_MAGIC, sizeof preamble.magic) != 0 ||
        preamble.version != TRACE_VERSION)
        return false;
    c->rest.has_tallies = (preamble.flags & TRACE_PROFILE) != 0;
    uint64_t size = (uint64_t)st.st_size, offset = sizeof preamble;
    if (c->rest.header.added_at != 0 && c->rest.header.added_at < size)
        size = c->rest.header.added_at;
    for (; size >= offset + sizeof header && read_at(c->fd, offset, &header, sizeof header); c->end = offset) {
        uint64_t next = offset + sizeof header + trace_payload_bytes(&header);
        if (header.magic != TRACE_BLOCK_MAGIC || header.header_sum != trace_header_sum(&header) ||
            (offset == sizeof preamble && header.header_sum != c->rest.header.trace_sum))
            return false;
        c->has_end = header.kind == TRACE_BLOCK_END;
        if (c->has_end)
            return false;
        if (next > size)
            break;
        if (!trace_rest_count(&c->rest, &header))
            return false;
        offset = next;
    }
    return c->end != 0;
}

/* Is it the process that had the number then? A first thread that has ended is a zombie while others run. */
static bool is_alive(const struct trace_live_header *h) {
    char path[64], text[1024];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%u/stat", h->process_id);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return access("/proc/self/stat", R_OK) != 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *end = strrchr(text, ')'), *at = end;
    for (unsigned field = 2; at != NULL && field < 22; field++)
        at = (at = strchr(at, ' ')) != NULL ? at + 1 : NULL;
    if (at == NULL || (h->process_start != 0 && strtoull(at, NULL, 10) != h->process_start))
        return false;
    snprintf(path, sizeof path, "/proc/%u/task", h->process_id);
    return !(strncmp(end, ") Z", 3) == 0 && stat(path, &st) == 0 && st.st_nlink <= 3);
}

/* PATIENCE_US: of a reader that waits for another one; and for the kernel, which gives back what a process had mapped.
 */
enum { PATIENCE_US = 2000000, LOOK_US = 2000 };

static bool take_lock(int fd, enum trace_live_lock which, unsigned patience_us) {
    struct flock byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = which, .l_len = 1};
    for (unsigned us = 0; fcntl(fd, F_OFD_SETLK, &byte) != 0; us += LOOK_US) {
        if (us >= patience_us || (errno != EAGAIN && errno != EACCES))
            return false;
        usleep(LOOK_US);
    }
    return true;
}

/* FILE.live is open. False: it is none, or its process lives, or another reader is at work. */
static bool open_live(struct completion *c, uint32_t just_ended) {
    struct stat st;
    if (fstat(c->live_fd, &st) != 0 || !S_ISREG(st.st_mode) || !take_lock(c->live_fd, LIVE_LOCK_READER, PATIENCE_US) ||
        !read_at(c->live_fd, 0, &c->rest.header, sizeof c->rest.header) || !trace_rest_fits(&c->rest.header))
        return false;
    unsigned patience_us = just_ended == c->rest.header.process_id ? PATIENCE_US : 0;
    if (!take_lock(c->live_fd, LIVE_LOCK_PROCESS, patience_us) || is_alive(&c->rest.header))
        return false;
    c->rest.live_fd = c->live_fd;
    c->rest.live_size = (uint64_t)st.st_size;
    return c->rest.live_size <= 2 * TRACE_LIVE_MOST;
}

static bool write_header(const struct completion *c) {
    return pwrite(c->live_fd, &c->rest.header, sizeof c->rest.header, 0) == (ssize_t)sizeof c->rest.header;
}

static bool write_rest(const struct completion *c) {
    for (size_t done = 0; done < c->rest.n_bytes;) {
        ssize_t n = pwrite(c->fd, c->rest.bytes + done, c->rest.n_bytes - done, (off_t)(c->end + done));
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

/* Beyond this a write ends the reader by SIGXFSZ. */
static bool is_within_limit(uint64_t size) {
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || size <= limit.rlim_cur;
}

/*
 * If this is cut short it is done again: FILE.live says from where on. FILE does not get shorter before it has its end:
 * another reader, which may not write to it, may have it mapped.
 */
static bool add(struct completion *c) {
    uint64_t end = c->end + c->rest.n_bytes;
    c->rest.header.added_at = c->end;
    if (!is_within_limit(end) || !write_header(c))
        return false;
    bool added = write_rest(c);
    if (ftruncate(c->fd, (off_t)(added ? end : c->end)) != 0 || !added)
        return false;
    c->rest.header.ended = 1; /* for a reader that may not remove FILE.live */
    return write_header(c);
}

static uint64_t ticks(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t n;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(n));
    return n;
#else
    return 0;
#endif
}

/* The recorder's clock at this moment. */
static uint64_t now_ns(const struct trace_live_header *h) {
    struct timespec t;
    if (h->scale != 0)
        return (uint64_t)((unsigned __int128)(ticks() - h->base_ticks) * h->scale >> 32);
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Is there nothing more to be added? */
static bool complete(struct completion *c, const char *path, uint32_t just_ended, uint64_t cpu_ns) {
    if (c->rest.header.ended != 0)
        return true;
    if (just_ended == c->rest.header.process_id) {
        c->rest.until_ns = now_ns(&c->rest.header);
        c->rest.cpu_ns = cpu_ns;
    }
    c->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (c->fd < 0 || !walk(c))
        return c->has_end;
    c->rest.size = c->end;
    return trace_rest_gather(&c->rest) && add(c);
}

/* FILE may be a symbolic link; FILE.live lies beside the link, or beside what it leads to. */
static int open_live_of(const char *path, const char *target, char *live_path) {
    const char *const beside[2] = {path, target};
    int fd = -1;
    for (unsigned i = 0; fd < 0 && i < 2; i++)
        if (strlen(beside[i]) + sizeof TRACE_LIVE_ENDING <= PATH_MAX) {
            stpcpy(stpcpy(live_path, beside[i]), TRACE_LIVE_ENDING);
            fd = open(live_path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        }
    return fd;
}

static bool is_locked(int fd, enum trace_live_lock which) {
    struct flock byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = which, .l_len = 1};
    return fcntl(fd, F_OFD_GETLK, &byte) == 0 && byte.l_type != F_UNLCK;
}

uint32_t sbt_trace_writer(const char *path) {
    char live_path[PATH_MAX], *target = realpath(path, NULL);
    int fd = target != NULL ? open_live_of(path, target, live_path) : -1;
    struct trace_live_header h;
    struct stat st;
    bool written = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && read_at(fd, 0, &h, sizeof h) &&
                   trace_rest_fits(&h) && h.ended == 0 && (is_locked(fd, LIVE_LOCK_PROCESS) || is_alive(&h));
    if (fd >= 0)
        close(fd);
    free(target);
    return written ? h.process_id : 0;
}

void sbt_trace_complete(const char *path, uint32_t just_ended, uint64_t cpu_ns) {
    char live_path[PATH_MAX], *target = realpath(path, NULL);
    struct completion c = {.fd = -1, .live_fd = -1};
    if (target != NULL)
        c.live_fd = open_live_of(path, target, live_path);
    if (c.live_fd >= 0) {
        if (open_live(&c, just_ended) && complete(&c, target, just_ended, cpu_ns))
            unlink(live_path);
        close(c.live_fd);
    }
    if (c.fd >= 0)
        close(c.fd);
    free(c.rest.n_written[0]);
    free(c.rest.n_written[1]);
    free(c.rest.bytes);
    free(target);
}
