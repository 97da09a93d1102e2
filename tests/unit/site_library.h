/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Libraries with sites, made by tests: their first page has the unwind table, the others the code. */
#ifndef TESTS_UNIT_SITE_LIBRARY_H
#define TESTS_UNIT_SITE_LIBRARY_H

#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/suite.h"
#include "os/site_find.h"

#define PAGE 4096
#define SITE "\x0f\x05\x48\x83\xf8\xda"
#define SYSCALL "\x0f\x05"
#define NO_FLAG "\x81\x25\x00\x10\x00\x00\x7f\xff\xff\xff" /* andl $~128, 0x1000(%rip) */
#define RET "\xc3"
#define NOP "\x90"

enum { FUNCTIONS_MAX = 80, CODE_PAGES = 3, TABLE_BYTES = 12 + 8 * FUNCTIONS_MAX };

struct library {
    uint8_t *memory, *code;
    size_t n_code;
    ElfW(Phdr) segment[3];
    struct dl_phdr_info info;
    struct table {
        uint8_t version, forms[3];
        int32_t frames;
        uint32_t n;
        int32_t entry[FUNCTIONS_MAX][2];
    } * table;
    struct frame {
        uint32_t n_bytes, parent;
        int32_t function;
        uint32_t n_function_bytes;
    } * frame;
};

static inline struct library new_library(void) {
    struct library l;
    memset(&l, 0, sizeof l);
    l.memory = mmap(NULL, (1 + CODE_PAGES) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(l.memory != MAP_FAILED);
    l.code = l.memory + PAGE;
    memset(l.code, 0xcc, CODE_PAGES * PAGE);
    l.table = (struct table *)l.memory;
    *l.table = (struct table){.version = 1, .forms = {0x1b, 0x03, 0x3b}};
    l.frame = (struct frame *)(l.memory + TABLE_BYTES);
    l.segment[0] = (ElfW(Phdr)){.p_type = PT_LOAD, .p_flags = PF_R, .p_memsz = PAGE, .p_filesz = PAGE};
    l.segment[1] = (ElfW(Phdr)){.p_type = PT_LOAD,
                                .p_flags = PF_R | PF_X,
                                .p_vaddr = PAGE,
                                .p_memsz = CODE_PAGES * PAGE,
                                .p_filesz = CODE_PAGES * PAGE};
    l.segment[2] = (ElfW(Phdr)){.p_type = PT_GNU_EH_FRAME, .p_flags = PF_R, .p_memsz = TABLE_BYTES};
    l.info.dlpi_addr = (ElfW(Addr))l.memory;
    l.info.dlpi_name = "/lib/libgomp-made.so.1";
    l.info.dlpi_phnum = 3;
    return l;
}

/* Append a function; the result is where it is in the code. */
static inline size_t add(struct library *l, const void *bytes, size_t n) {
    const uint32_t i = l->table->n++;
    const size_t at = l->n_code;
    uint8_t *code = l->code + at;
    CHECK(i < FUNCTIONS_MAX && at + n <= CODE_PAGES * PAGE);
    memcpy(code, bytes, n);
    l->n_code += n;
    l->frame[i] = (struct frame){12, 4, (int32_t)(code - (uint8_t *)&l->frame[i].function), (uint32_t)n};
    l->table->entry[i][0] = (int32_t)(code - l->memory);
    l->table->entry[i][1] = (int32_t)((uint8_t *)&l->frame[i] - l->memory);
    return at;
}
#define ADD(l, bytes) add(l, bytes, sizeof(bytes) - 1)

static inline const char *find(struct library *l, struct sbt_sites *sites) {
    l->info.dlpi_phdr = l->segment;
    return sbt_sites_find(sites, &l->info);
}

#endif
