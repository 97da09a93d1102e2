/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "os/quota.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "os/arch.h"

/* ---- files, line by line ---- */
/* Small, because threads look that have small stacks. */
enum { CHUNK_BYTES = 256, LINE_BYTES = 640, NUMBERS_BYTES = 48 };

struct reader {
    long fd; /* negative: the file cannot be read */
    long n, at;
    char chunk[CHUNK_BYTES];
};

/* False: the path is too long. */
static bool add(char *path, size_t room, const char *more) {
    if (strlen(path) + strlen(more) >= room)
        return false;
    strcat(path, more);
    return true;
}

static void open_file(struct reader *r, const char *root, const char *directory, const char *name) {
    char path[2 * SBT_QUOTA_PATH_BYTES] = "";
    r->n = r->at = 0;
    r->fd = -1;
    if (add(path, sizeof path, root) && add(path, sizeof path, directory) && add(path, sizeof path, name))
        r->fd = sbt_syscall6(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
}

static void close_file(const struct reader *r) {
    if (r->fd >= 0)
        sbt_syscall3(SYS_close, r->fd, 0, 0);
}

/* The next character; -1: the file is at its end. */
static int next(struct reader *r) {
    if (r->at == r->n) {
        r->n = r->fd >= 0 ? sbt_syscall3(SYS_read, r->fd, r->chunk, sizeof r->chunk) : 0;
        r->at = 0;
    }
    return r->n > 0 ? (unsigned char)r->chunk[r->at++] : -1;
}

/* The next line, without its end, cut to what there is room for. False: there is none. */
static bool read_line(struct reader *r, char *line, size_t room) {
    size_t n = 0;
    int c = next(r);
    if (c < 0)
        return false;
    for (; c >= 0 && c != '\n'; c = next(r))
        if (n + 1 < room)
            line[n++] = (char)c;
    line[n] = '\0';
    return true;
}

/* ---- text ---- */

/* Cut the text at the first `end`; what is behind it, NULL: there is no `end`. */
static char *cut(char *text, char end) {
    char *at = text != NULL ? strchr(text, end) : NULL;
    if (at == NULL)
        return NULL;
    *at = '\0';
    return at + 1;
}

/* Is the word in a list with commas? */
static bool lists(const char *list, const char *word) {
    const size_t n = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at += n)
        if ((at == list || at[-1] == ',') && (at[n] == ',' || at[n] == '\0'))
            return true;
    return false;
}

/* The kernel writes a space, a tab, a newline and a backslash in a path as three octal digits. */
static void unescape(char *path) {
    char *to = path;
    for (const char *from = path; *from != '\0';) {
        if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' && from[2] <= '7' && from[3] >= '0' &&
            from[3] <= '7') {
            *to++ = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
            from += 4;
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
}

/* A number at the beginning of the text. False: there is none, or it is beyond all quotas. */
static bool number(const char *text, uint64_t *value) {
    *value = 0;
    if (*text < '0' || *text > '9')
        return false;
    for (; *text >= '0' && *text <= '9'; text++) {
        if (*value > UINT64_MAX / 100)
            return false;
        *value = *value * 10 + (uint64_t)(*text - '0');
    }
    return true;
}

/* ---- mounts ---- */

/* A line of mountinfo, proc(5): ID PARENT DEVICE TOP PLACE OPTIONS [MORE...] - TYPE SOURCE OPTIONS */
static void note_mount(struct sbt_quota *q, char *line) {
    char *top = cut(cut(cut(line, ' '), ' '), ' ');
    char *place = cut(top, ' '), *options = cut(place, ' ');
    char *type = options != NULL ? strstr(options, " - ") : NULL;
    if (type == NULL)
        return;
    type += 3;
    const char *controllers = cut(cut(type, ' '), ' ');
    const bool v2 = strcmp(type, "cgroup2") == 0;
    if (!v2 && (strcmp(type, "cgroup") != 0 || controllers == NULL || !lists(controllers, "cpu")))
        return;
    struct sbt_quota_mount *m = &q->mount[v2];
    unescape(top);
    unescape(place);
    if (m->found || strlen(top) >= sizeof m->top || strlen(place) >= sizeof m->place)
        return;
    m->found = true;
    m->v2 = v2;
    strcpy(m->top, strcmp(top, "/") != 0 ? top : "");
    strcpy(m->place, place);
}

void sbt_quota_find(struct sbt_quota *q, const char *root) {
    struct reader r;
    char line[LINE_BYTES];
    memset(q, 0, sizeof *q);
    open_file(&r, root, "/proc/self", "/mountinfo");
    while (read_line(&r, line, sizeof line))
        note_mount(q, line);
    close_file(&r);
}

/* ---- quotas ---- */

/* A number in a file of a group. False: the file does not exist, or has no number. */
static bool read_number(const char *root, const char *group, const char *name, uint64_t *value, char *line,
                        int *files) {
    struct reader r;
    open_file(&r, root, group, name);
    const bool is_there = read_line(&r, line, NUMBERS_BYTES);
    close_file(&r);
    *files += is_there;
    return is_there && number(line, value);
}

/* The quota of one group. */
static uint32_t quota_of(const struct sbt_quota_mount *m, const char *root, const char *group, int *files) {
    char line[NUMBERS_BYTES], ignored[NUMBERS_BYTES];
    uint64_t quota, period;
    int more = 0;
    if (!read_number(root, group, m->v2 ? "/cpu.max" : "/cpu.cfs_quota_us", &quota, line, files))
        return SBT_QUOTA_NONE;
    const char *behind = m->v2 ? cut(line, ' ') : NULL;
    if (m->v2 ? behind == NULL || !number(behind, &period)
              : !read_number(root, group, "/cpu.cfs_period_us", &period, ignored, &more))
        return SBT_QUOTA_NONE;
    if (period == 0)
        return SBT_QUOTA_NONE;
    const uint64_t cpus = quota / period + (quota % period != 0);
    return cpus == 0 ? 1 : cpus < SBT_QUOTA_NONE ? (uint32_t)cpus : SBT_QUOTA_NONE;
}

/*
 * The group's directory below its mount. A group that lies outside of what is mounted (another namespace's) has the
 * mounted one, which is above it or is all that can be seen.
 */
static void directory_of(const struct sbt_quota_mount *m, const char *group, char *directory, size_t room) {
    const size_t n = strlen(m->top);
    strcpy(directory, m->place);
    if (strncmp(group, m->top, n) != 0 || (group[n] != '/' && group[n] != '\0') || strstr(group, "/..") != NULL ||
        strcmp(group + n, "/") == 0)
        return;
    if (!add(directory, room, group + n))
        strcpy(directory, m->place);
}

static uint32_t smallest(const struct sbt_quota_mount *m, const char *root, const char *group, int *files) {
    char directory[2 * SBT_QUOTA_PATH_BYTES];
    uint32_t least = SBT_QUOTA_NONE;
    directory_of(m, group, directory, sizeof directory);
    for (;;) {
        const uint32_t cpus = quota_of(m, root, directory, files);
        least = cpus < least ? cpus : least;
        if (strlen(directory) <= strlen(m->place))
            return least;
        *strrchr(directory, '/') = '\0';
    }
}

/* A line of /proc/self/cgroup is NUMBER:CONTROLLERS:GROUP; that of version 2 is number 0, without controllers. */
uint32_t sbt_quota_cpus(const struct sbt_quota *q, const char *root, int *files) {
    struct reader r;
    char line[LINE_BYTES];
    uint32_t least = SBT_QUOTA_NONE;
    open_file(&r, root, "/proc/self", "/cgroup");
    *files = r.fd >= 0 ? 0 : -1;
    while (read_line(&r, line, sizeof line)) {
        char *controllers = cut(line, ':'), *group = cut(controllers, ':');
        if (group == NULL)
            continue;
        const bool v2 = strcmp(line, "0") == 0 && *controllers == '\0';
        if (!q->mount[v2].found || (!v2 && !lists(controllers, "cpu")))
            continue;
        const uint32_t cpus = smallest(&q->mount[v2], root, group, files);
        least = cpus < least ? cpus : least;
    }
    close_file(&r);
    return least;
}
