/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files that are complete, or as they were before; see output.h. */
#include "output.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"

struct output {
    struct output *next; /* in `begun` */
    const char *what;    /* the caller's */
    FILE *file;
    char *path, *part; /* part: the name until the file is complete; NULL: the file is written directly */
};

static struct output *begun;

void output_abandon(void) {
    for (; begun != NULL; begun = begun->next)
        if (begun->part != NULL)
            unlink(begun->part);
}

static bool same_file(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

_Noreturn static void refuse(const struct output *o) {
    cmd_refuse("%s: '%s': %s (legal: a file that can be written)", o->what, o->path, strerror(errno));
}

enum { MAX_LINKS = 40 };

/* The path to which symbolic links lead; NULL: they go in a circle. Unlike for realpath(), the file need not exist. */
static char *followed(const char *path) {
    char *place = cmd_format("%s", path), target[PATH_MAX];
    for (int i = 0; i < MAX_LINKS; i++) {
        ssize_t n = readlink(place, target, sizeof target - 1);
        if (n < 0)
            return place;
        target[n] = '\0';
        const char *slash = strrchr(place, '/');
        int folder = target[0] == '/' || slash == NULL ? 0 : (int)(slash + 1 - place);
        char *next = cmd_format("%.*s%s", folder, place, target);
        free(place);
        place = next;
    }
    free(place);
    errno = ELOOP;
    return NULL;
}

/* Open the file that will be renamed. `old` is the state of the existing file, or NULL. Links stay links. */
static void open_part(struct output *o, const struct stat *old) {
    char *place = followed(o->path);
    if (place == NULL || (old != NULL && access(place, W_OK) != 0))
        refuse(o);
    o->part = cmd_format("%s.%ld.part", place, (long)getpid());
    free(o->path);
    o->path = place;
    if ((o->file = fopen(o->part, "wxe")) == NULL) {
        free(o->part);
        o->part = NULL;
        refuse(o);
    }
    if (old != NULL) /* the rights of another user's file cannot always be kept; then it gets those of a new file */
        (void)!fchmod(fileno(o->file), old->st_mode & 07777);
}

struct output *output_open(const char *what, const char *path, const char *input) {
    static bool registered;
    struct output *o = cmd_allocate(1, sizeof *o);
    struct stat old, other;
    bool there = stat(path, &old) == 0;
    *o = (struct output){.what = what, .path = cmd_format("%s", path)};
    if (there && input != NULL && stat(input, &other) == 0 && same_file(&old, &other))
        cmd_refuse("%s: '%s' is what is read (legal: another file)", what, path);
    if (!registered && atexit(output_abandon) != 0)
        cmd_refuse("%s: out of memory", what);
    registered = true;
    o->next = begun;
    begun = o;
    if (there && fstat(STDOUT_FILENO, &other) == 0 && same_file(&old, &other))
        o->file = fdopen(dup(STDOUT_FILENO), "w");
    else if (there && !S_ISREG(old.st_mode))
        o->file = fopen(path, "we");
    else
        open_part(o, there ? &old : NULL);
    if (o->file == NULL)
        refuse(o);
    return o;
}

FILE *output_file(const struct output *o) {
    return o->file;
}

void output_close(struct output *o) {
    bool written = fflush(o->file) == 0 && ferror(o->file) == 0;
    int error = errno; /* fclose need not set it for a stream that has failed */
    if (fclose(o->file) != 0 && written) {
        written = false;
        error = errno;
    }
    errno = error;
    if (!written || (o->part != NULL && rename(o->part, o->path) != 0))
        cmd_refuse("%s: '%s': %s", o->what, o->path, strerror(errno));
    for (struct output **at = &begun; *at != NULL; at = &(*at)->next)
        if (*at == o) {
            *at = o->next;
            break;
        }
    free(o->part);
    free(o->path);
    free(o);
}
