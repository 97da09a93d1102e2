/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A call site in words, for the lines that the engine says. */
#include <string.h>

#include "core/handlers.h"
#include "engine/det/stall.h"
#include "os/code_maps.h"
#include "os/fence.h"
#include "os/lock.h"

static struct sbt_lock lock; /* and what follows is used */
static char maps_line[SBT_CODE_MAPS_LINE];
static struct place {
    uintptr_t site; /* looked for: the call's last byte */
    char *text;     /* MODULE+0xOFFSET; "": not found */
} place;

static void name_place(void *argument, uint64_t start, uint64_t end, uint64_t offset, const char *path) {
    struct place *p = argument;
    if (p->site - start >= end - start || path[0] != '/')
        return;
    const char *name = strrchr(path, '/') + 1;
    size_t n = strlen(name);
    if (n > DET_PLACE_BYTES - 20) /* + 0x and 16 digits */
        return;
    memcpy(p->text, name, n);
    memcpy(p->text + n, "+0x", 4);
    n += 3;
    uint64_t at = p->site - start + offset;
    int digits = 1;
    while (digits < 16 && at >> 4 * digits != 0)
        digits++;
    while (digits-- > 0)
        p->text[n++] = "0123456789abcdef"[at >> 4 * digits & 15];
    p->text[n] = '\0';
}

void det_place_text(uintptr_t return_address, char text[static DET_PLACE_BYTES]) {
    text[0] = '\0';
    if (return_address == 0 || sbt_fence_is_forbidden()) /* a filter of the program's: as in stall.c */
        return;
    sbt_handlers_hold();
    sbt_lock_take(&lock);
    place = (struct place){return_address - 1, text};
    sbt_code_maps_read(maps_line, name_place, &place);
    sbt_lock_drop(&lock);
    sbt_handlers_release();
}
