/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "machine.h"

#include <stdarg.h>
#include <stdio.h>

const struct atac_machine *atac_machine;
struct atac_settings atac_running;
_Thread_local bool atac_prepares;

struct atac_settings atac_settings_default(void) {
    return (struct atac_settings){.software_cycles = 300, .few = 0, .many = 2, .patience_cycles = 4000};
}

uint32_t atac_self(void) {
    return atac_machine != NULL ? atac_machine->self() : ATAC_NO_THREAD;
}

bool atac_may_make(void) {
    return atac_prepares || atac_self() != ATAC_NO_THREAD;
}

void atac_fail(const char *format, ...) {
    char text[160];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    atac_machine->fail(text);
    __builtin_unreachable();
}
