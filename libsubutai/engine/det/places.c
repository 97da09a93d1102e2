/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See places.h. */
#include "engine/det/places.h"

#include <stddef.h>
#include <string.h>

#include "os/code_maps.h"
#include "os/memory.h"

/* Code that is made at run time may ask again and again. */
enum { MAX_READINGS = 64, MAX_PATH = 4096 };

static struct places {
    uint32_t n_ranges, n_readings;
    struct det_range range[DET_RANGES];
    char path[DET_RANGES][MAX_PATH + 1]; /* pages that are not used take no memory */
    char line[SBT_CODE_MAPS_LINE];
} * places;

bool det_places_start(void) {
    if (places == NULL)
        places = sbt_memory_map(sizeof *places);
    return places != NULL;
}

void det_places_begin(void) {
    if (places != NULL)
        places->n_ranges = places->n_readings = 0;
}

static uint32_t known(uintptr_t address) {
    for (uint32_t i = 0; i < places->n_ranges; i++)
        if (address - places->range[i].start < places->range[i].end - places->range[i].start)
            return i;
    return DET_NO_RANGE;
}

static void visit(void *unused, uint64_t start, uint64_t end, uint64_t offset, const char *path) {
    (void)unused;
    if (places->n_ranges == DET_RANGES || known(start) != DET_NO_RANGE)
        return;
    char *copy = places->path[places->n_ranges];
    size_t n = path[0] == '/' ? strnlen(path, MAX_PATH) : 0;
    memcpy(copy, path, n);
    copy[n] = '\0';
    places->range[places->n_ranges++] = (struct det_range){start, end, offset, copy};
}

uint32_t det_range_of(uintptr_t address) {
    uint32_t i = known(address);
    if (i == DET_NO_RANGE && places->n_readings < MAX_READINGS) {
        places->n_readings++;
        sbt_code_maps_read(places->line, visit, NULL);
        i = known(address);
    }
    return i;
}

void det_places_read(void) {
    sbt_code_maps_read(places->line, visit, NULL);
}

const struct det_range *det_range(uint32_t index) {
    return &places->range[index];
}
