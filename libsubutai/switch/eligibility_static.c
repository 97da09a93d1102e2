/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Eligibility, judged by the symbols that the program and its libraries import. They are read from the relocations in
 * memory, because the hash table does not always give the number of undefined symbols.
 */
#include <link.h>
#include <stddef.h>
#include <string.h>

#include "core/eligibility_table.h"
#include "core/sites.h"
#include "os/dynamic.h"
#include "os/initial.h"
#include "os/objects.h"
#include "switch/eligibility.h"
#include "switch/state.h"

struct dynamic {
    const ElfW(Sym) * symbols;
    const char *strings;
    struct {
        const ElfW(Rela) * first;
        size_t bytes;
    } relocations[2];
};

static struct dynamic dynamic_of(const struct dl_phdr_info *info) {
    struct dynamic d = {0};
    for (const ElfW(Dyn) *entry = sbt_dynamic_of(info); entry != NULL && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_SYMTAB)
            d.symbols = sbt_dynamic_address(info, entry->d_un.d_ptr);
        else if (entry->d_tag == DT_STRTAB)
            d.strings = sbt_dynamic_address(info, entry->d_un.d_ptr);
        else if (entry->d_tag == DT_RELA)
            d.relocations[0].first = sbt_dynamic_address(info, entry->d_un.d_ptr);
        else if (entry->d_tag == DT_RELASZ)
            d.relocations[0].bytes = entry->d_un.d_val;
        else if (entry->d_tag == DT_JMPREL)
            d.relocations[1].first = sbt_dynamic_address(info, entry->d_un.d_ptr);
        else if (entry->d_tag == DT_PLTRELSZ)
            d.relocations[1].bytes = entry->d_un.d_val;
    }
    return d;
}

static void refuse(struct sbt_eligibility *e, const char *file, const char *symbol, const char *reason) {
    if (e->reason != NULL)
        return;
    e->reason = reason;
    e->symbol = symbol;
    strncpy(e->object, file, sizeof e->object - 1);
}

void sbt_eligibility_judge_symbol(struct sbt_eligibility *e, const char *file, const char *symbol) {
    const char *why = sbt_eligibility_refused(symbol);
    if (why != NULL)
        refuse(e, file, symbol, why);
    if (sbt_eligibility_pins_main(file, symbol))
        e->pins_main = true;
    if (sbt_eligibility_is_interruption(symbol))
        e->interrupts = true;
    if (sbt_eligibility_is_recall(symbol))
        e->recalls = true;
    if (sbt_eligibility_is_mask(symbol))
        e->masks = true;
    if (sbt_eligibility_is_jump(symbol))
        e->jumps = true;
    if (strcmp(symbol, "sigaltstack") == 0)
        e->signal_stacks = true;
}

static int judge_object(struct dl_phdr_info *info, size_t size, void *argument) {
    struct sbt_eligibility *e = argument;
    const char *file = info->dlpi_name != NULL && info->dlpi_name[0] != '\0' ? info->dlpi_name : "the program";
    if (e->n++ < e->skip)
        return 0;
    const struct dynamic d = dynamic_of(info);
    const ElfW(Addr) here = (ElfW(Addr)) & sbt_switch_memory;
    (void)size;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && here - info->dlpi_addr - p->p_vaddr < p->p_memsz)
            return 0; /* this library */
    }
    if (sbt_eligibility_is_libc(file) || d.symbols == NULL || d.strings == NULL || strstr(file, "vdso") != NULL)
        return 0;
    const char *why = sbt_eligibility_refused_library(sbt_dynamic_name(info));
    if (why != NULL && !sbt_sites_are_served(info)) {
        const char *why_not = sbt_sites_why_not(info);
        refuse(e, "the process", file, why_not != NULL ? why_not : why);
    }
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < d.relocations[k].bytes / sizeof(ElfW(Rela)); i++) {
            const ElfW(Sym) *symbol = &d.symbols[ELF64_R_SYM(d.relocations[k].first[i].r_info)];
            if (symbol->st_shndx == SHN_UNDEF && symbol->st_name != 0)
                sbt_eligibility_judge_symbol(e, file, d.strings + symbol->st_name);
        }
    return 0;
}

/* How many objects were ever unloaded. If none has gone, new objects stand behind the old ones. */
static int count_unloads(struct dl_phdr_info *info, size_t size, void *argument) {
    uint64_t *n = argument;
    *n = size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs ? info->dlpi_subs : *n + 1;
    return 1; /* the first object knows the number */
}

static void judge_loaded(struct sbt_eligibility *e) {
    struct sbt_switch_state *s = SBT_SWITCH;
    uint64_t unloads = __atomic_load_n(&s->n_unloads, __ATOMIC_RELAXED), now = unloads;
    sbt_objects_iterate(count_unloads, &now);
    e->skip = now == unloads ? __atomic_load_n(&s->n_judged, __ATOMIC_RELAXED) : 0;
    sbt_objects_iterate(judge_object, e);
    __atomic_store_n(&s->n_judged, e->n, __ATOMIC_RELAXED);
    __atomic_store_n(&s->n_unloads, now, __ATOMIC_RELAXED);
}

void sbt_eligibility_judge_new(struct sbt_eligibility *e) {
    sbt_sites_serve_new(); /* what is served need not be refused */
    memset(e, 0, sizeof *e);
    judge_loaded(e);
}

void sbt_eligibility_judge(struct sbt_eligibility *e) {
    memset(e, 0, sizeof *e);
    const char *preloaded = sbt_environment_value("LD_PRELOAD");
    if (preloaded != NULL && strstr(preloaded, "vgpreload") != NULL)
        refuse(e, "valgrind", "its own record of each thread's stack", "switches between stacks would make wrong");
    judge_loaded(e);
}
