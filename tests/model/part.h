/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A walk in parts that run side by side: `--part K/N` takes every Nth scenario from the Kth on. */
#ifndef PART_H
#define PART_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct part {
    unsigned first, of; /* counted from 0 */
};

/* The part that the arguments name, all without any. False if they are something else. */
static inline bool part_parse(int argc, char **argv, struct part *part) {
    char after;
    *part = (struct part){0, 1};
    if (argc == 1)
        return true;
    if (argc != 3 || strcmp(argv[1], "--part") != 0 || sscanf(argv[2], "%u/%u%c", &part->first, &part->of, &after) != 2)
        return false;
    return part->first-- >= 1 && part->first < part->of;
}
static inline bool part_has(const struct part *part, size_t i) {
    return i % part->of == part->first;
}

#endif
