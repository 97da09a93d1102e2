/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "core/options.h"
#include "os/arch.h"
#include "os/fence.h"
#include "os/initial.h"
#include "os/own_file.h"
#include "os/signals.h"

bool sbt_log_is_on(unsigned verbosity) {
    return verbosity <= sbt_options.value[SBT_OPT_VERBOSE].u;
}

/* A descriptor of the file, for a process that cannot open it again. Atomic; what is above it is written before. */
static struct {
    dev_t device;
    ino_t inode;
    int fd; /* 0: none */
} kept;

static const char *file_asked_for(void) {
    const char *file = sbt_options.value[SBT_OPT_LOG].s;
    return file != NULL && *file != '\0' ? file : NULL;
}

static long open_log(const char *file) {
    return sbt_syscall6(SYS_openat, AT_FDCWD, (long)file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666, 0, 0);
}

/* The program may have closed it, and have got its number for a file of its own. 0: it has, or there is none. */
static int kept_log(void) {
    struct stat st;
    int fd = __atomic_load_n(&kept.fd, __ATOMIC_ACQUIRE);
    return fd != 0 && sbt_syscall3(SYS_fstat, fd, &st, 0) == 0 && st.st_dev == kept.device && st.st_ino == kept.inode
               ? fd
               : 0;
}

/* Where the program has a filter of system calls that may be forbidden. No handler's jump leaves it in the middle. */
void sbt_log_keep(void) {
    static uint32_t busy_in; /* the process of another thread that does it: it restricts that one, or itself alone */
    const char *file = file_asked_for();
    struct stat st;
    if (file == NULL || !sbt_log_is_on(1) || sbt_fence_is_forbidden() || kept_log() != 0)
        return;
    uint64_t signals = sbt_signals_block();
    uint32_t self = (uint32_t)sbt_syscall3(SYS_getpid, 0, 0, 0);
    if (__atomic_exchange_n(&busy_in, self, __ATOMIC_ACQUIRE) == self) {
        sbt_signals_restore(signals);
        return;
    }
    long fd = open_log(file);
    if (fd >= 0 && sbt_syscall3(SYS_fstat, fd, &st, 0) == 0) {
        __atomic_store_n(&kept.fd, 0, __ATOMIC_RELAXED);
        kept.device = st.st_dev;
        kept.inode = st.st_ino;
        __atomic_store_n(&kept.fd, sbt_own_file_out_of_the_way(fd), __ATOMIC_RELEASE);
    }
    __atomic_store_n(&busy_in, 0, __ATOMIC_RELEASE);
    sbt_signals_restore(signals);
}

void sbt_log(unsigned verbosity, const char *first, ...) {
    if (!sbt_log_is_on(verbosity))
        return;
    char line[1024] = "subutai: ";
    size_t n = strlen(line);
    va_list strings;
    va_start(strings, first);
    for (const char *s = first; s != NULL; s = va_arg(strings, const char *)) {
        size_t length = strlen(s);
        if (length > sizeof line - 1 - n)
            length = sizeof line - 1 - n;
        memcpy(line + n, s, length);
        n += length;
    }
    va_end(strings);
    line[n++] = '\n';

    long fd = 2;
    const char *file = file_asked_for();
    long opened = file != NULL ? open_log(file) : -1;
    int open = opened < 0 && file != NULL ? kept_log() : 0;
    if (opened >= 0 || open != 0)
        fd = opened >= 0 ? opened : open; /* without the file the message goes to stderr */
    sbt_syscall3(SYS_write, fd, line, n);
    if (opened >= 0)
        sbt_syscall3(SYS_close, opened, 0, 0);
}

/* ---- once for a process tree ---- */
#define NAME_BYTES 40

struct tree {
    char path[sizeof SBT_TREE_FILE + NAME_BYTES];
    long process; /* the id of the tree's first process */
};

/* False: the tree has no name, or one that the command does not give. */
static bool read_tree(struct tree *t) {
    const char *name = sbt_environment_value(SBT_TREE);
    if (name == NULL || name[0] == '\0' || strlen(name) > NAME_BYTES || name[strspn(name, "0123456789-")] != '\0')
        return false;
    strcat(strcpy(t->path, SBT_TREE_FILE), name);
    t->process = 0;
    for (; *name >= '0' && *name <= '9' && t->process < INT32_MAX; name++)
        t->process = t->process * 10 + (*name - '0');
    return true;
}

/*
 * What forked processes share: has one of them said it? A process in a sandbox makes no files, and the processes that a
 * sandbox starts are mostly forked there. Its byte is atomic. NULL: there is none.
 */
static uint8_t *said;

void sbt_log_may_say_in_tree(void) {
    if (sbt_options.value[SBT_OPT_VERBOSE].u != 1)
        return;
    long page = sbt_syscall6(SYS_mmap, 0, sizeof *said, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    said = page < 0 && page > -4096 ? NULL : (uint8_t *)page;
}

/*
 * Where there can be no file, in a sandbox for instance, each process is the first of those that share its byte. So it
 * is where the program has set a filter of system calls, which may end it for a file that is opened.
 */
static bool is_first(void) {
    struct tree t;
    if (said != NULL && __atomic_exchange_n(said, 1, __ATOMIC_RELAXED) != 0)
        return false;
    if (!read_tree(&t) || sbt_fence_is_forbidden())
        return true;
    long fd = sbt_syscall6(SYS_openat, AT_FDCWD, (long)t.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                           0600, 0, 0);
    if (fd >= 0)
        sbt_syscall3(SYS_close, fd, 0, 0);
    return fd != -EEXIST;
}

void sbt_log_in_tree(const char *subject, const char *what, const char *why) {
    if (sbt_options.value[SBT_OPT_VERBOSE].u != 1 || is_first())
        sbt_log(1, subject, what, why, NULL);
}

void sbt_log_process_ends(void) {
    struct tree t;
    if (read_tree(&t) && t.process == sbt_syscall0(SYS_getpid))
        sbt_syscall3(SYS_unlinkat, AT_FDCWD, (long)t.path, 0);
}
