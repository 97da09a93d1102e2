/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Function names from symbol tables, by libelf; see symbols.h. */
#include "symbols.h"

#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"

struct module {
    char *path;
    int fd;
    Elf *elf; /* NULL: cannot be read */
};

struct symbols {
    struct module *modules;
    size_t n_modules;
    char *name; /* of the last answer */
};

struct symbols *symbols_new(void) {
    elf_version(EV_CURRENT);
    return cmd_allocate(1, sizeof(struct symbols));
}

static struct module *module_of(struct symbols *s, const char *path) {
    for (size_t i = 0; i < s->n_modules; i++)
        if (strcmp(s->modules[i].path, path) == 0)
            return &s->modules[i];
    s->modules = realloc(s->modules, (s->n_modules + 1) * sizeof *s->modules);
    if (s->modules == NULL)
        cmd_refuse("out of memory");
    struct module *m = &s->modules[s->n_modules++];
    m->path = cmd_format("%s", path);
    m->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    m->elf = m->fd >= 0 ? elf_begin(m->fd, ELF_C_READ_MMAP, NULL) : NULL;
    if (m->elf != NULL && elf_kind(m->elf) != ELF_K_ELF) {
        elf_end(m->elf);
        m->elf = NULL;
    }
    return m;
}

/* From an offset in the file to the address that its symbols speak of; false if no segment has it. */
static bool address_of(Elf *elf, uint64_t offset, uint64_t *address) {
    size_t n = 0;
    elf_getphdrnum(elf, &n);
    for (size_t i = 0; i < n; i++) {
        GElf_Phdr ph;
        if (gelf_getphdr(elf, (int)i, &ph) != NULL && ph.p_type == PT_LOAD && offset - ph.p_offset < ph.p_filesz) {
            *address = offset - ph.p_offset + ph.p_vaddr;
            return true;
        }
    }
    return false;
}

/* The function with the address in it in one table; NULL if there is none. */
static const char *function_in(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, uint64_t address, uint64_t *start) {
    Elf_Data *data = elf_getdata(section, NULL);
    for (int i = 0; data != NULL && header->sh_entsize > 0 && (size_t)i < header->sh_size / header->sh_entsize; i++) {
        GElf_Sym symbol;
        if (gelf_getsym(data, i, &symbol) == NULL)
            break;
        if (GELF_ST_TYPE(symbol.st_info) == STT_FUNC && address - symbol.st_value < symbol.st_size) {
            *start = symbol.st_value;
            return elf_strptr(elf, header->sh_link, symbol.st_name);
        }
    }
    return NULL;
}

static const char *function_at(Elf *elf, uint64_t address, uint64_t *start) {
    const char *found = NULL;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section)) != NULL;) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) == NULL || (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM))
            continue;
        const char *name = function_in(elf, section, &header, address, start);
        if (name != NULL && (found == NULL || header.sh_type == SHT_SYMTAB))
            found = name;
    }
    return found;
}

const char *symbols_name(struct symbols *s, const char *site) {
    const char *plus = strrchr(site, '+');
    if (plus == NULL)
        return "";
    char *path = cmd_format("%.*s", (int)(plus - site), site);
    const char *base = strrchr(path, '/');
    base = base != NULL ? base + 1 : path;
    uint64_t offset = strtoull(plus + 1, NULL, 16), address, start = 0;
    struct module *m = module_of(s, path);
    const char *function = NULL;
    if (m->elf != NULL && address_of(m->elf, offset, &address))
        function = function_at(m->elf, address, &start);
    free(s->name);
    s->name = function != NULL ? cmd_format("%s+0x%jx (%s)", function, (uintmax_t)(address - start), base)
                               : cmd_format("%s%s", base, plus);
    free(path);
    return s->name;
}

void symbols_free(struct symbols *s) {
    for (size_t i = 0; i < s->n_modules; i++) {
        if (s->modules[i].elf != NULL)
            elf_end(s->modules[i].elf);
        if (s->modules[i].fd >= 0)
            close(s->modules[i].fd);
        free(s->modules[i].path);
    }
    free(s->modules);
    free(s->name);
    free(s);
}
