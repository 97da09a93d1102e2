/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Repeats the dynamic loader's search; see needed.h.
 *
 * Source: ld.so(8), and glibc's cache format. Of the cache the table after the magic "glibc-ld.so.cache1.1" is used: a
 * header of 48 bytes that starts with magic, number of entries and size of the strings; then entries of 24 bytes
 * {flags, key, value, osversion, hwcap}, where key and value are offsets of strings from the start of the magic. A
 * cache that does not look like that is passed over: the default directories remain.
 */
#include "needed.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "command.h"

#define CACHE_MAGIC "glibc-ld.so.cache1.1"
enum { CACHE_HEADER = 48, CACHE_ENTRY = 24, CACHE_KEY = 4, CACHE_VALUE = 8 };

struct cache {
    const char *base; /* at the magic; NULL: there is no cache */
    size_t size;
    uint32_t n_entries;
};

static uint32_t word_at(const char *p) {
    uint32_t u;
    memcpy(&u, p, sizeof u);
    return u;
}

/* Map the file once. It stays mapped, because the process is short. */
static const struct cache *loader_cache(void) {
    static struct cache cache;
    static bool looked;
    if (looked)
        return &cache;
    looked = true;
    int fd = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC);
    struct stat st;
    char *map = MAP_FAILED;
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > CACHE_HEADER)
        map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0)
        close(fd);
    if (map == MAP_FAILED)
        return &cache;
    /* Older ldconfigs put a table in the old format first. */
    const char *base = memmem(map, (size_t)st.st_size, CACHE_MAGIC, strlen(CACHE_MAGIC));
    if (base == NULL || (size_t)(map + st.st_size - base) < CACHE_HEADER)
        return &cache;
    cache.size = (size_t)(map + st.st_size - base);
    cache.n_entries = word_at(base + strlen(CACHE_MAGIC));
    if (cache.n_entries <= (cache.size - CACHE_HEADER) / CACHE_ENTRY)
        cache.base = base;
    return &cache;
}

static const char *cache_string(const struct cache *c, uint32_t offset) {
    return offset < c->size && memchr(c->base + offset, '\0', c->size - offset) != NULL ? c->base + offset : NULL;
}

/* Read the file if the program can load it. The loader, too, passes over files of other architectures. */
static struct object *try_path(const struct closure *c, const char *path) {
    if (access(path, R_OK) != 0)
        return NULL;
    struct object *o = object_read(path);
    if (object_compatible(o, c->objects[0]))
        return o;
    object_free(o);
    return NULL;
}

static struct object *try_cache(const struct closure *c, const char *name) {
    const struct cache *cache = loader_cache();
    for (uint32_t i = 0; cache->base != NULL && i < cache->n_entries; i++) {
        const char *entry = cache->base + CACHE_HEADER + (size_t)i * CACHE_ENTRY;
        const char *key = cache_string(cache, word_at(entry + CACHE_KEY));
        const char *value = cache_string(cache, word_at(entry + CACHE_VALUE));
        struct object *o = key != NULL && value != NULL && strcmp(key, name) == 0 ? try_path(c, value) : NULL;
        if (o != NULL)
            return o;
    }
    return NULL;
}

/* Replace $ORIGIN and ${ORIGIN} by the directory of `origin`. $LIB and $PLATFORM are rare and left as they are. */
static char *expand(const char *text, const char *origin) {
    char *directory = realpath(origin, NULL), *result = cmd_format("%s", "");
    if (directory != NULL && strrchr(directory, '/') != NULL)
        *strrchr(directory, '/') = '\0';
    while (*text != '\0') {
        size_t skip = strncmp(text, "$ORIGIN", 7) == 0 ? 7 : strncmp(text, "${ORIGIN}", 9) == 0 ? 9 : 0;
        char *longer = skip > 0 ? cmd_format("%s%s", result, directory != NULL ? directory : ".")
                                : cmd_format("%s%c", result, *text);
        free(result);
        result = longer;
        text += skip > 0 ? skip : 1;
    }
    free(directory);
    return result;
}

/* Try the directories of `list`, separated by colons (LD_LIBRARY_PATH: also by semicolons). */
static struct object *try_list(const struct closure *c, const char *list, const char *origin, const char *name) {
    if (list == NULL)
        return NULL;
    struct object *found = NULL;
    char *copy = expand(list, origin), *rest = copy, *directory;
    while (found == NULL && (directory = strsep(&rest, ":;")) != NULL) {
        char *path = cmd_format("%s/%s", directory[0] != '\0' ? directory : ".", name);
        found = try_path(c, path);
        free(path);
    }
    free(copy);
    return found;
}

static struct object *find_library_file(const struct closure *c, size_t asker, const char *name) {
    const struct object *by = c->objects[asker];
    if (strchr(name, '/') != NULL) {
        char *path = expand(name, by->path);
        struct object *o = try_path(c, path);
        free(path);
        return o;
    }
    struct object *o = NULL;
    for (size_t i = asker; by->runpath == NULL && o == NULL; i = c->needed_by[i]) {
        if (c->objects[i]->runpath == NULL)
            o = try_list(c, c->objects[i]->rpath, c->objects[i]->path, name);
        if (c->needed_by[i] == i)
            break;
    }
    if (o == NULL)
        o = try_list(c, getenv("LD_LIBRARY_PATH"), c->objects[0]->path, name);
    if (o == NULL)
        o = try_list(c, by->runpath, by->path, name);
    if (o == NULL)
        o = try_cache(c, name);
    if (o == NULL)
        o = try_list(c, SUBUTAI_SYSTEM_LIBRARY_PATH, c->objects[0]->path, name);
    return o;
}

static void add(struct closure *c, struct object *o, size_t needed_by) {
    if (c->n == c->capacity) {
        c->capacity = c->capacity == 0 ? 32 : 2 * c->capacity;
        c->objects = cmd_reallocate(c->objects, c->capacity, sizeof *c->objects);
        c->needed_by = cmd_reallocate(c->needed_by, c->capacity, sizeof *c->needed_by);
    }
    c->objects[c->n] = o;
    c->needed_by[c->n++] = needed_by;
}

static bool has_file(const struct closure *c, const struct stat *st) {
    for (size_t i = 0; i < c->n; i++)
        if (c->objects[i]->stat.st_dev == st->st_dev && c->objects[i]->stat.st_ino == st->st_ino)
            return true;
    return false;
}

/* The loader does not search again for a name that it knows; neither does this code. */
static bool has_name(const struct closure *c, size_t n_objects, const char *name) {
    for (size_t i = 0; i < n_objects; i++)
        for (size_t k = 0; k < c->objects[i]->needed.n; k++)
            if (strcmp(c->objects[i]->needed.list[k], name) == 0)
                return true;
    return false;
}

/* What the objects from number `first` on need. What is not found is added to `missing`, unless that is NULL. */
static void add_needed(struct closure *c, size_t first, struct names *missing) {
    for (size_t i = first; i < c->n; i++)
        for (size_t k = 0; k < c->objects[i]->needed.n; k++) {
            const char *name = c->objects[i]->needed.list[k];
            if (has_name(c, i, name))
                continue;
            struct object *o = find_library_file(c, i, name);
            if (o == NULL && missing != NULL)
                names_add(missing, name);
            else if (o != NULL && has_file(c, &o->stat))
                object_free(o);
            else if (o != NULL)
                add(c, o, i);
        }
}

struct closure *closure_of(struct object *program) {
    struct closure *c = cmd_allocate(1, sizeof *c);
    add(c, program, 0);
    add_needed(c, 0, &c->missing);
    c->n_linked = c->n;
    return c;
}

/* ---- what may be loaded later ---- */
enum { MOST_LOADABLE = 256 };

static bool is_of_system(const char *directory) {
    bool same = false;
    char *list = cmd_format("%s:/bin:/usr/bin:/usr/local/bin:/usr/local/lib:/", SUBUTAI_SYSTEM_LIBRARY_PATH);
    for (char *rest = list, *entry; !same && (entry = strsep(&rest, ":")) != NULL;) {
        char *canonical = realpath(entry, NULL);
        same = canonical != NULL && strcmp(canonical, directory) == 0;
        free(canonical);
    }
    free(list);
    return same;
}

static bool is_library_name(const char *name) {
    const char *so = strstr(name, ".so");
    return so != NULL && so != name && (so[3] == '\0' || so[3] == '.');
}

static int is_library(const struct dirent *entry) {
    return is_library_name(entry->d_name);
}

static void add_directory(struct closure *c, const char *directory) {
    char *canonical = realpath(directory, NULL);
    struct dirent **entries = NULL;
    int n = canonical != NULL && !is_of_system(canonical) ? scandir(canonical, &entries, is_library, alphasort) : -1;
    for (int i = 0; i < n; i++) {
        char *path = cmd_format("%s/%s", canonical, entries[i]->d_name);
        struct object *o = c->n - c->n_linked < MOST_LOADABLE ? try_path(c, path) : NULL;
        if (o != NULL && !has_file(c, &o->stat))
            add(c, o, c->n);
        else if (o != NULL)
            object_free(o);
        free(path);
        free(entries[i]);
    }
    free(entries);
    free(canonical);
}

void closure_add_loadable(struct closure *c) {
    const struct object *program = c->objects[0];
    char *lists = cmd_format("$ORIGIN:%s:%s", program->runpath != NULL ? program->runpath : "",
                             program->rpath != NULL ? program->rpath : "");
    char *expanded = expand(lists, program->path), *rest = expanded, *directory;
    size_t first = c->n;
    while ((directory = strsep(&rest, ":")) != NULL)
        if (directory[0] == '/')
            add_directory(c, directory);
    add_needed(c, first, NULL);
    free(lists);
    free(expanded);
}

void closure_free(struct closure *c) {
    for (size_t i = 0; i < c->n; i++)
        object_free(c->objects[i]);
    free(c->objects);
    free(c->needed_by);
    for (size_t i = 0; i < c->missing.n; i++)
        free(c->missing.list[i]);
    free(c->missing.list);
    free(c);
}
