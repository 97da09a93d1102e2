/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds programs and the project's own parts; see find.h.
 *
 * Own parts are looked up relative to /proc/self/exe first, and then under the configured prefix. So a build tree, a
 * DESTDIR staging area and a moved installation each use the library that belongs to them.
 */
#include "find.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "rest.h"
#include "trace.h"

/* NULL: `path` can be executed. Otherwise the reason why not. */
static const char *hindrance(const char *path) {
    struct stat st;
    if (stat(path, &st) != 0)
        return errno == EACCES ? "permission denied" : "not found";
    if (S_ISDIR(st.st_mode))
        return "is a directory";
    if (!S_ISREG(st.st_mode) || faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) != 0)
        return "not executable";
    return NULL;
}

static const char *search_path(void) {
    const char *path = getenv("PATH");
    if (path != NULL)
        return path;
    static char fallback[PATH_MAX];
    return confstr(_CS_PATH, fallback, sizeof fallback) > 0 ? fallback : "/bin:/usr/bin";
}

char *find_in_path(const char *name, const char **why) {
    if (name[0] == '\0') {
        *why = "not found";
        return NULL;
    }
    if (strchr(name, '/') != NULL) {
        *why = hindrance(name);
        return *why == NULL ? cmd_format("%s", name) : NULL;
    }
    *why = "not found";
    char *copy = cmd_format("%s", search_path()), *rest = copy, *directory, *found = NULL;
    while (found == NULL && (directory = strsep(&rest, ":")) != NULL) {
        char *path = cmd_format("%s/%s", directory[0] != '\0' ? directory : ".", name);
        const char *reason = hindrance(path);
        if (reason == NULL) {
            found = path;
            break;
        }
        /* As the shell does: remember a match that cannot be executed, and go on. */
        if (strcmp(reason, "not found") != 0)
            *why = reason;
        free(path);
    }
    free(copy);
    return found;
}

char *find_program(const char *subcommand, const char *name) {
    const char *why;
    char *path = find_in_path(name, &why);
    if (path == NULL && strchr(name, '/') != NULL)
        cmd_refuse("%s: program '%s': %s (legal: an executable file)", subcommand, name, why);
    if (path == NULL)
        cmd_refuse("%s: program '%s': %s (legal: an executable file in PATH, %s)", subcommand, name, why,
                   search_path());
    return path;
}

static char *own_directory(void) {
    char exe[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n <= 0)
        return NULL;
    exe[n] = '\0';
    *strrchr(exe, '/') = '\0';
    return cmd_format("%s", exe);
}

/* The canonical path of the part, in the first of the three places that has it. */
static char *find_part(const char *subcommand, const char *what, const char *option, const char *in_build_tree,
                       const char *from_bindir, const char *installed) {
    char *directory = own_directory();
    char *places[] = {
        directory != NULL ? cmd_format("%s/%s", directory, in_build_tree) : NULL,
        directory != NULL ? cmd_format("%s/%s", directory, from_bindir) : NULL,
        cmd_format("%s", installed),
    };
    char *found = NULL;
    for (size_t i = 0; i < sizeof places / sizeof *places && found == NULL; i++)
        if (places[i] != NULL && access(places[i], R_OK) == 0)
            found = realpath(places[i], NULL);
    if (found == NULL)
        cmd_refuse("%s: %s not found at %s nor %s (legal: %s FILE)", subcommand, what,
                   places[0] != NULL ? places[0] : "-", installed, option);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        free(places[i]);
    free(directory);
    return found;
}

char *find_library(const char *subcommand, const char *given) {
    char *path;
    if (given != NULL) {
        if (access(given, R_OK) != 0 || (path = realpath(given, NULL)) == NULL)
            cmd_refuse("%s: --library: '%s': %s (legal: a shared library)", subcommand, given, strerror(errno));
    } else {
        path = find_part(subcommand, "libsubutai.so", "--library", "../../libsubutai/libsubutai.so",
                         SUBUTAI_BINDIR_TO_LIBDIR "/libsubutai.so", SUBUTAI_LIBDIR "/libsubutai.so");
    }
    /* The dynamic loader splits LD_PRELOAD at blanks and colons, without quoting (ld.so(8)). */
    if (strpbrk(path, " :\t\n") != NULL)
        cmd_refuse("%s: library '%s': LD_PRELOAD cannot name it (legal: a path without blanks and colons)", subcommand,
                   path);
    return path;
}

#define TRACE_FILE_MAGIC "SBTTRACE"

/* Is it an empty file or an old one of that kind? The user does not miss those. */
static bool may_be_replaced(int fd, const char *wanted, size_t n_wanted) {
    char magic[8];
    ssize_t n = pread(fd, magic, sizeof magic, 0);
    return n == 0 || (n == sizeof magic && memcmp(magic, wanted, n_wanted) == 0);
}

/* Refuses what is there, unless it may be replaced. Changes nothing. */
static void check_place(const char *subcommand, const char *kind, const char *magic, const char *path) {
    struct stat st;
    if (lstat(path, &st) != 0)
        return;
    if (!S_ISREG(st.st_mode))
        cmd_refuse("%s: %s '%s': no regular file (legal: a new file or an old %s)", subcommand, kind, path, kind);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        cmd_refuse("%s: %s '%s': %s (legal: a new file or an old %s)", subcommand, kind, path, strerror(errno), kind);
    if (!may_be_replaced(fd, magic, 8))
        cmd_refuse("%s: %s '%s': the file is something else (legal: a new file or an old %s)", subcommand, kind, path,
                   kind);
    close(fd);
}

static char *place(const char *subcommand, const char *kind, const char *magic, const char *path) {
    check_place(subcommand, kind, magic, path);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    char *absolute = fd >= 0 ? realpath(path, NULL) : NULL;
    if (absolute == NULL || unlink(absolute) != 0)
        cmd_refuse("%s: %s '%s': %s (legal: a new file or an old %s, in a directory that can be written to)",
                   subcommand, kind, path, strerror(errno), kind);
    close(fd);
    return absolute;
}

/* A trace that is still written does not go: its process would write on, and its children make traces beside the new
 * one. */
static void refuse_written(const char *subcommand, const char *path) {
    uint32_t writer = sbt_trace_writer(path);
    if (writer != 0)
        cmd_refuse("%s: trace '%s': process %u still writes it (legal: another name, or end that process)", subcommand,
                   path, writer);
}

void find_trace_check(const char *subcommand, const char *path) {
    refuse_written(subcommand, path);
    check_place(subcommand, "trace", TRACE_FILE_MAGIC, path);
}

/* What a killed program has left beside an old trace goes with it. */
char *find_trace_place(const char *subcommand, const char *path) {
    refuse_written(subcommand, path);
    char *absolute = place(subcommand, "trace", TRACE_FILE_MAGIC, path), *live = cmd_format("%s.live", absolute);
    int fd = open(live, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && may_be_replaced(fd, TRACE_LIVE_MAGIC, TRACE_LIVE_ANY))
        unlink(live);
    if (fd >= 0)
        close(fd);
    free(live);
    return absolute;
}

bool find_left_rest(const char *path) {
    char *live = cmd_format("%s.live", path);
    struct trace_live_header header;
    int fd = open(live, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool is_left = fd >= 0 && read(fd, &header, sizeof header) == (ssize_t)sizeof header &&
                   memcmp(header.magic, TRACE_LIVE_MAGIC, TRACE_LIVE_ANY) == 0 && !trace_rest_fits(&header);
    if (fd >= 0)
        close(fd);
    free(live);
    return is_left;
}

/* Is it DIGITS.sbt or DIGITS.DIGITS.sbt? The number is the process's. */
static bool is_of_process(const char *rest, uint64_t *process) {
    char *end;
    if (!isdigit((unsigned char)rest[0]))
        return false;
    *process = strtoull(rest, &end, 10);
    if (end[0] == '.' && isdigit((unsigned char)end[1]))
        strtoull(end + 1, &end, 10);
    return strcmp(end, ".sbt") == 0;
}

/* Is it a file that this user's recorder may have made? A link is the user's, and others remove their own files. */
static bool is_own(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_uid == geteuid() || geteuid() == 0);
}

/* app.16.sbt may be a user's own, of a run with 16 threads: only a process's trace says that number inside. */
static bool says_process(const char *path, uint64_t process) {
    struct sbt_trace_error error;
    struct sbt_trace *trace = sbt_trace_open(path, &error);
    bool says = trace != NULL && sbt_trace_info(trace)->process_id == process;
    if (trace != NULL)
        sbt_trace_close(trace);
    return says;
}

void find_old_children(const char *subcommand, const char *place) {
    const char *slash = strrchr(place, '/'), *base = slash != NULL ? slash + 1 : place, *ending = strrchr(base, '.');
    size_t n = ending != NULL && ending != base && strcmp(ending, ".sbt") == 0 ? (size_t)(ending - base) : strlen(base);
    char *directory = cmd_format("%.*s", (int)(base - place), place), **children = NULL;
    size_t n_children = 0;
    DIR *dir = opendir(slash != NULL ? directory : ".");
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        uint64_t process;
        if (strncmp(entry->d_name, base, n) != 0 || entry->d_name[n] != '.' ||
            !is_of_process(entry->d_name + n + 1, &process))
            continue;
        char *path = cmd_format("%s%s", directory, entry->d_name);
        if (!is_own(path) || !says_process(path, process)) {
            free(path);
            continue;
        }
        children = cmd_reallocate(children, n_children + 1, sizeof *children);
        children[n_children++] = path;
    }
    for (size_t i = 0; i < n_children; i++)
        find_trace_check(subcommand, children[i]);
    for (size_t i = 0; i < n_children; i++) {
        free(find_trace_place(subcommand, children[i]));
        free(children[i]);
    }
    if (dir != NULL)
        closedir(dir);
    free(children);
    free(directory);
}

char *find_schedule_place(const char *subcommand, const char *path) {
    return place(subcommand, "schedule log", "SBTSCHED", path);
}

char *find_bench(const char *subcommand, const char *given) {
    if (given != NULL)
        return find_program(subcommand, given);
    char *path = find_part(subcommand, "subutai-bench", "--program", "../../bench/micro/subutai-bench",
                           SUBUTAI_BINDIR_TO_LIBEXECDIR "/subutai-bench", SUBUTAI_LIBEXECDIR "/subutai-bench");
    return path;
}

char *find_calibrate(const char *subcommand, const char *given) {
    if (given != NULL)
        return find_program(subcommand, given);
    return find_part(subcommand, "subutai-calibrate", "--program", "../../bench/calibrate/subutai-calibrate",
                     SUBUTAI_BINDIR_TO_LIBEXECDIR "/subutai-calibrate", SUBUTAI_LIBEXECDIR "/subutai-calibrate");
}
