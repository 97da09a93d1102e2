/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The files from which the program's code was loaded (os/code_maps.h). The list is read again when a call comes from an
 * unknown place, for instance after a dlopen.
 */
#include <string.h>

#include "os/code_maps.h"
#include "os/signals.h"

#include "observe/record.h"

/* MAX_READINGS: a limit for programs that map code all the time. */
enum { MAX_RANGES = 512, MAX_READINGS = 64 };

static struct {
    uint32_t reading; /* 1: a thread is reading; other threads go on without. Acquire when taken, release when done */
    uint32_t n_readings, n_ranges;
    struct {
        uintptr_t start, end;
    } ranges[MAX_RANGES]; /* the ranges that are named in the trace */
    uint32_t n_bytes;
    uint8_t definitions[TRACE_MAX_DEFINITION_BYTES];
} modules;

static bool known(uintptr_t address) {
    uint32_t n = __atomic_load_n(&modules.n_ranges, __ATOMIC_ACQUIRE); /* pairs with the store in name */
    for (uint32_t i = 0; i < n; i++)
        if (address - modules.ranges[i].start < modules.ranges[i].end - modules.ranges[i].start)
            return true;
    return false;
}

static void write_out(void) {
    struct trace_block header;
    if (modules.n_bytes == 0)
        return;
    trace_definitions_header(&header, TRACE_BLOCK_MODULES, modules.definitions, modules.n_bytes);
    rec_write(&header, modules.definitions, modules.n_bytes, NULL, 0, NULL, 0);
    modules.n_bytes = 0;
}

static void name(uint64_t start, uint64_t end, uint64_t offset, const char *path, size_t n_path) {
    if (modules.n_ranges == MAX_RANGES || known(start))
        return;
    if (path[0] == '/') { /* otherwise made at run time, or the kernel's */
        if (modules.n_bytes + 48 + n_path > sizeof modules.definitions)
            write_out();
        uint8_t *at = modules.definitions + modules.n_bytes;
        *at++ = TRACE_DEFINE_MODULE;
        at = trace_put(trace_put(trace_put(trace_put(at, start), end - start), offset), n_path);
        memcpy(at, path, n_path);
        modules.n_bytes = (uint32_t)(at + n_path - modules.definitions);
    }
    modules.ranges[modules.n_ranges].start = start;
    modules.ranges[modules.n_ranges].end = end;
    __atomic_store_n(&modules.n_ranges, modules.n_ranges + 1, __ATOMIC_RELEASE);
}

static void visit(void *unused, uint64_t start, uint64_t end, uint64_t offset, const char *path) {
    size_t n = strlen(path);
    (void)unused;
    name(start, end, offset, path, n < TRACE_MAX_TEXT ? n : TRACE_MAX_TEXT);
}

static void read_maps(void) {
    static char line[SBT_CODE_MAPS_LINE]; /* the reading thread's */
    uint64_t signals = sbt_signals_block();
    sbt_code_maps_read(line, visit, NULL);
    write_out();
    sbt_signals_restore(signals);
}

void rec_module_of(uintptr_t address) {
    if (known(address - 1) || modules.n_readings >= MAX_READINGS ||
        __atomic_exchange_n(&modules.reading, 1, __ATOMIC_ACQUIRE) != 0)
        return;
    modules.n_readings++;
    read_maps();
    __atomic_store_n(&modules.reading, 0, __ATOMIC_RELEASE);
}

void rec_modules_forget(void) {
    modules.reading = modules.n_readings = modules.n_ranges = modules.n_bytes = 0;
}
