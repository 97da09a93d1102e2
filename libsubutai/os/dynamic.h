/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The dynamic section of a loaded object. Nothing allocates or blocks. */
#ifndef SBT_OS_DYNAMIC_H
#define SBT_OS_DYNAMIC_H

#include <elf.h>
#include <link.h>
#include <stddef.h>

/* The first entry; the last is DT_NULL. NULL: the object has none. */
static inline const ElfW(Dyn) * sbt_dynamic_of(const struct dl_phdr_info *info) {
    for (size_t i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            return (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    return NULL;
}

/* An address that an entry has. In all but a few objects the dynamic linker has made it absolute. */
static inline const void *sbt_dynamic_address(const struct dl_phdr_info *info, ElfW(Addr) value) {
    return (const void *)(value < info->dlpi_addr ? info->dlpi_addr + value : value);
}

/*
 * The name that the library was linked by (DT_SONAME), or else that of its file. A file may have another library's
 * name: LLVM's OpenMP library is installed as libgomp.so.1 too.
 */
static inline const char *sbt_dynamic_name(const struct dl_phdr_info *info) {
    const char *strings = NULL;
    size_t name = 0;
    for (const ElfW(Dyn) *entry = sbt_dynamic_of(info); entry != NULL && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_STRTAB)
            strings = sbt_dynamic_address(info, entry->d_un.d_ptr);
        else if (entry->d_tag == DT_SONAME)
            name = entry->d_un.d_val;
    }
    return strings != NULL && name != 0 ? strings + name : info->dlpi_name;
}

#endif
