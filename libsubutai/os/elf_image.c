/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "os/elf_image.h"

#include <elf.h>
#include <string.h>

struct image {
    const uint8_t *at;
    size_t n;
    Elf64_Ehdr header;
};

/* A copy: what a file says need not be aligned. */
static bool copy(const struct image *i, uint64_t offset, void *to, size_t n) {
    if (offset > i->n || n > i->n - offset)
        return false;
    memcpy(to, i->at + offset, n);
    return true;
}

static bool open_image(struct image *i, const void *bytes, size_t n) {
    *i = (struct image){.at = bytes, .n = n};
    return copy(i, 0, &i->header, sizeof i->header) && memcmp(i->header.e_ident, ELFMAG, SELFMAG) == 0 &&
           i->header.e_ident[EI_CLASS] == ELFCLASS64 && i->header.e_ident[EI_DATA] == ELFDATA2LSB &&
           i->header.e_phentsize == sizeof(Elf64_Phdr);
}

bool sbt_elf_image_is(const void *image, size_t bytes) {
    struct image i;
    return open_image(&i, image, bytes);
}

static bool segment(const struct image *i, unsigned k, Elf64_Phdr *segment) {
    return k < i->header.e_phnum && copy(i, i->header.e_phoff + k * sizeof *segment, segment, sizeof *segment);
}

bool sbt_elf_image_is_code(const void *image, size_t bytes, uint64_t offset) {
    struct image i;
    Elf64_Phdr s;
    if (!open_image(&i, image, bytes) || offset >= bytes)
        return false;
    for (unsigned k = 0; segment(&i, k, &s); k++)
        if (s.p_type == PT_LOAD && (s.p_flags & PF_X) != 0 && offset - s.p_offset < s.p_filesz)
            return true;
    return false;
}

/* From an address in the object to a place in its file. */
static bool place_of(const struct image *i, uint64_t address, uint64_t *offset) {
    Elf64_Phdr s;
    for (unsigned k = 0; segment(i, k, &s); k++)
        if (s.p_type == PT_LOAD && (s.p_flags & PF_X) != 0 && address - s.p_vaddr < s.p_filesz) {
            *offset = address - s.p_vaddr + s.p_offset;
            return true;
        }
    return false;
}

static bool section(const struct image *i, unsigned k, Elf64_Shdr *section) {
    return i->header.e_shentsize == sizeof *section && k < i->header.e_shnum &&
           copy(i, i->header.e_shoff + k * sizeof *section, section, sizeof *section);
}

/* The first table of that type. */
static bool table(const struct image *i, uint32_t type, Elf64_Shdr *symbols, Elf64_Shdr *names) {
    for (unsigned k = 0; section(i, k, symbols); k++)
        if (symbols->sh_type == type)
            return section(i, symbols->sh_link, names);
    return false;
}

static bool is_called(const struct image *i, const Elf64_Shdr *names, uint32_t at, const char *name, size_t n) {
    uint64_t offset = names->sh_offset + at;
    return offset >= at && offset <= i->n && n < i->n - offset && memcmp(i->at + offset, name, n) == 0 &&
           i->at[offset + n] == '\0';
}

static bool find(const struct image *i, uint32_t type, const char *name, size_t n, Elf64_Sym *found) {
    Elf64_Shdr symbols, names;
    if (!table(i, type, &symbols, &names))
        return false;
    for (uint64_t k = 0; (k + 1) * sizeof *found <= symbols.sh_size; k++) {
        if (!copy(i, symbols.sh_offset + k * sizeof *found, found, sizeof *found))
            return false;
        if (ELF64_ST_TYPE(found->st_info) == STT_FUNC && found->st_shndx != SHN_UNDEF &&
            is_called(i, &names, found->st_name, name, n))
            return true;
    }
    return false;
}

bool sbt_elf_image_function(const void *image, size_t bytes, const char *name, size_t n, uint64_t *offset,
                            uint64_t *size) {
    struct image i;
    Elf64_Sym symbol;
    if (!open_image(&i, image, bytes) ||
        (!find(&i, SHT_SYMTAB, name, n, &symbol) && !find(&i, SHT_DYNSYM, name, n, &symbol)))
        return false;
    *size = symbol.st_size;
    return place_of(&i, symbol.st_value, offset);
}
