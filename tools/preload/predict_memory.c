/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How much memory a simulation may have: the least of what the machine has, what the process may map, and what its
 * control group and those above it may use. What cannot be read does not count.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "predict.h"

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t number_in(const char *path) {
    char text[32] = "";
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return UINT64_MAX;
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    return n > 0 && text[0] >= '0' && text[0] <= '9' ? strtoull(text, NULL, 10) : UINT64_MAX; /* "max": no limit */
}

/* The limit of a group and of all groups above it, up to the mount point. */
static uint64_t limit_of(const char *mount, const char *group, const char *file) {
    uint64_t limit = UINT64_MAX;
    char own[PATH_MAX];
    snprintf(own, sizeof own, "%s", group);
    for (;;) {
        char *path = cmd_format("%s%s/%s", mount, own, file), *slash;
        limit = least(limit, number_in(path));
        free(path);
        if ((slash = strrchr(own, '/')) == NULL)
            return limit;
        *slash = '\0';
    }
}

static uint64_t cgroup_limit(void) {
    char line[PATH_MAX];
    uint64_t limit = UINT64_MAX;
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) { /* hierarchy:controllers:group */
        char *controllers = strchr(line, ':'), *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (group == NULL)
            continue;
        *group++ = '\0';
        group[strcspn(group, "\n")] = '\0';
        if (strcmp(line, "0:") == 0)
            limit = least(limit, limit_of("/sys/fs/cgroup", group, "memory.max"));
        else if (strcmp(controllers, ":memory") == 0)
            limit = least(limit, limit_of("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes"));
    }
    if (file != NULL)
        fclose(file);
    return limit;
}

uint64_t predict_memory_bytes(void) {
    uint64_t there = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    static const int limits[] = {RLIMIT_AS, RLIMIT_DATA};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct rlimit limit;
        if (getrlimit(limits[i], &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
            there = least(there, limit.rlim_cur);
    }
    return least(there, cgroup_limit());
}
