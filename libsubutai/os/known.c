/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "os/known.h"

#include <stddef.h>
#include <string.h>

void sbt_known_begin(struct sbt_known *known, uint64_t n_unloads) {
    if (n_unloads == known->n_unloads)
        return;
    known->n_unloads = n_unloads;
    for (uint32_t i = 0; i < known->n;)
        if (known->object[i].id == 0)
            known->object[i] = known->object[--known->n];
        else
            i++;
}

/* Notes that no segment has are not in memory. */
static bool is_readable(const struct dl_phdr_info *info, const ElfW(Phdr) * note) {
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && (p->p_flags & PF_R) != 0 && note->p_vaddr >= p->p_vaddr &&
            note->p_memsz <= p->p_filesz && note->p_vaddr - p->p_vaddr <= p->p_filesz - note->p_memsz)
            return true;
    }
    return false;
}

static size_t up(size_t bytes, size_t align) {
    return (bytes + align - 1) & ~(align - 1);
}

/* FNV-1a of the first build id in these notes. 0: there is none. */
static uint64_t id_in(const unsigned char *at, size_t left, size_t align) {
    ElfW(Nhdr) note;
    while (left >= sizeof note) {
        memcpy(&note, at, sizeof note);
        at += sizeof note;
        left -= sizeof note;
        size_t name = up(sizeof note + note.n_namesz, align) - sizeof note;
        size_t all = up(sizeof note + name + note.n_descsz, align) - sizeof note;
        if (note.n_namesz > left || note.n_descsz > left || name + note.n_descsz > left)
            return 0;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof "GNU" && memcmp(at, "GNU", sizeof "GNU") == 0) {
            uint64_t hash = UINT64_C(0xcbf29ce484222325);
            for (size_t i = 0; i < note.n_descsz; i++)
                hash = (hash ^ at[name + i]) * UINT64_C(0x100000001b3);
            return hash + (hash == 0);
        }
        if (all > left)
            return 0;
        at += all;
        left -= all;
    }
    return 0;
}

static uint64_t id_of(const struct dl_phdr_info *info) {
    uint64_t id = 0;
    for (size_t i = 0; i < info->dlpi_phnum && id == 0; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_NOTE && is_readable(info, p))
            id = id_in((const unsigned char *)(info->dlpi_addr + p->p_vaddr), p->p_memsz, p->p_align == 8 ? 8 : 4);
    }
    return id;
}

bool sbt_known_note(struct sbt_known *known, const struct dl_phdr_info *info) {
    const struct sbt_known_object object = {info->dlpi_addr, info->dlpi_phdr, id_of(info)};
    uint32_t i = 0;
    while (i < known->n && (known->object[i].address != object.address || known->object[i].headers != object.headers))
        i++;
    if (i < known->n && known->object[i].id == object.id)
        return true;
    if (i < SBT_KNOWN_MOST)
        known->object[i] = object;
    if (i == known->n && i < SBT_KNOWN_MOST)
        known->n++;
    return false;
}
