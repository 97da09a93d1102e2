/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Call sites by elfutils' libdw; see symbols.h. */
#include "symbols.h"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "demangle.h"

struct module {
    char *path;
    Dwfl *dwfl;
    Dwfl_Module *dwfl_module; /* NULL: the file cannot be read */
};

struct symbols {
    struct module *modules;
    size_t n_modules;
    char *name, *function; /* in the last answer */
};

struct symbols *symbols_new(void) {
    unsetenv("DEBUGINFOD_URLS"); /* libdw would ask servers */
    return cmd_allocate(1, sizeof(struct symbols));
}

/* -1: there is no such file, or no regular one. A trace may name anything, and opening a FIFO would wait for ever. */
static int open_regular(const char *path) {
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Open a session of libdw for the file, in which it lies at its own addresses. */
static void open_module(struct module *m) {
    static char *debug_path; /* NULL: the distribution's place */
    static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
                                             .find_debuginfo = dwfl_standard_find_debuginfo,
                                             .section_address = dwfl_offline_section_address,
                                             .debuginfo_path = &debug_path};
    int fd = open_regular(m->path);
    m->dwfl = fd >= 0 ? dwfl_begin(&callbacks) : NULL;
    if (m->dwfl != NULL) {
        m->dwfl_module = dwfl_report_offline(m->dwfl, m->path, m->path, fd);
        dwfl_report_end(m->dwfl, NULL, NULL);
    }
    if (m->dwfl_module == NULL && fd >= 0) /* otherwise libdw closes it */
        close(fd);
}

static struct module *module_of(struct symbols *s, const char *path) {
    for (size_t i = 0; i < s->n_modules; i++)
        if (strcmp(s->modules[i].path, path) == 0)
            return &s->modules[i];
    s->modules = cmd_reallocate(s->modules, s->n_modules + 1, sizeof *s->modules);
    struct module *m = &s->modules[s->n_modules++];
    *m = (struct module){.path = cmd_format("%s", path)};
    open_module(m);
    return m;
}

/* The segment that has that offset in the file, or, with `is_address`, libdw's address. False: none has. */
static bool segment_of(Dwfl_Module *module, bool is_address, uint64_t place, GElf_Phdr *ph, GElf_Addr *bias) {
    Elf *elf = dwfl_module_getelf(module, bias);
    size_t n = 0;
    if (elf == NULL || elf_getphdrnum(elf, &n) != 0)
        return false;
    for (size_t i = 0; i < n; i++)
        if (gelf_getphdr(elf, (int)i, ph) != NULL && ph->p_type == PT_LOAD &&
            place - (is_address ? *bias + ph->p_vaddr : ph->p_offset) < ph->p_filesz)
            return true;
    return false;
}

/*
 * libdw's address of the code that is mapped from that offset of the file on. A mapping begins at a page, so the offset
 * may be in front of its segment's, and in the segment before: lld lays segments out so.
 */
static bool code_address_of(Dwfl_Module *module, uint64_t offset, Dwarf_Addr *address) {
    GElf_Addr bias;
    Elf *elf = dwfl_module_getelf(module, &bias);
    size_t n = 0;
    if (elf == NULL || elf_getphdrnum(elf, &n) != 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        GElf_Phdr ph;
        if (gelf_getphdr(elf, (int)i, &ph) == NULL || ph.p_type != PT_LOAD || (ph.p_flags & PF_X) == 0 ||
            offset >= ph.p_offset + ph.p_filesz || offset + ph.p_align <= ph.p_offset)
            continue;
        *address = offset - ph.p_offset + ph.p_vaddr + bias;
        return true;
    }
    return false;
}

/* From an offset in the file to libdw's address of that byte. False: no segment has it. */
static bool address_of(Dwfl_Module *module, uint64_t offset, Dwarf_Addr *address) {
    GElf_Phdr ph;
    GElf_Addr bias;
    if (!segment_of(module, false, offset, &ph, &bias))
        return false;
    *address = offset - ph.p_offset + ph.p_vaddr + bias;
    return true;
}

/* And back. */
static bool offset_of(Dwfl_Module *module, Dwarf_Addr address, uint64_t *offset) {
    GElf_Phdr ph;
    GElf_Addr bias;
    if (!segment_of(module, true, address, &ph, &bias))
        return false;
    *offset = address - bias - ph.p_vaddr + ph.p_offset;
    return true;
}

static const char *base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/*
 * The line of the source. libdw finds an address' unit by .debug_aranges, which clang does not write: then it is the
 * one of all units that has the address. NULL: it is not known.
 */
static const char *source_of(Dwfl_Module *module, Dwarf_Addr address, int *line) {
    Dwfl_Line *found = dwfl_module_getsrc(module, address);
    Dwarf_Addr bias = 0;
    if (found != NULL)
        return dwfl_lineinfo(found, NULL, line, NULL, NULL, NULL);
    for (Dwarf_Die *unit = NULL; (unit = dwfl_module_nextcu(module, unit, &bias)) != NULL;)
        if (dwarf_haspc(unit, address - bias) == 1) {
            Dwarf_Line *at = dwarf_getsrc_die(unit, address - bias);
            return at != NULL && dwarf_lineno(at, line) == 0 ? dwarf_linesrc(at, NULL, NULL) : NULL;
        }
    return NULL;
}

/* The name of a site is the place of its call's last byte (sbt_trace_site_name); the return address is behind it. */
static void look_up(Dwfl_Module *module, uint64_t offset, struct place *place) {
    Dwarf_Addr address;
    GElf_Off into = 0;
    GElf_Sym symbol;
    if (!address_of(module, offset, &address))
        return;
    place->symbol = dwfl_module_addrinfo(module, address, &into, &symbol, NULL, NULL, NULL);
    place->into = place->symbol != NULL ? into + 1 : 0;
    const char *file = source_of(module, address, &place->line);
    if (file != NULL && place->line > 0)
        place->file = base_of(file);
}

static char *describe(const struct place *p, const char *plus) {
    if (p->file != NULL)
        return cmd_format("%s:%d %s%s(%s)", p->file, p->line, p->function != NULL ? p->function : "",
                          p->function != NULL ? " " : "", p->module);
    if (p->function != NULL)
        return cmd_format("%s+0x%jx (%s)", p->function, (uintmax_t)p->into, p->module);
    return cmd_format("%s%s", p->module, plus);
}

bool symbols_place(struct symbols *s, const char *site, struct place *place) {
    const char *plus = strrchr(site, '+');
    *place = (struct place){.text = ""};
    if (plus == NULL)
        return false;
    char *path = cmd_format("%.*s", (int)(plus - site), site);
    struct module *m = module_of(s, path);
    free(path);
    place->module = base_of(m->path);
    if (m->dwfl_module != NULL)
        look_up(m->dwfl_module, strtoull(plus + 1, NULL, 16), place);
    free(s->function);
    s->function = place->symbol != NULL ? demangle(place->symbol) : NULL;
    place->function = s->function != NULL ? s->function : place->symbol;
    free(s->name);
    s->name = describe(place, plus);
    place->text = s->name;
    return true;
}

const char *symbols_name(struct symbols *s, const char *site) {
    struct place place;
    symbols_place(s, site, &place);
    return place.text;
}

const char *symbols_data(struct symbols *s, const char *path, uint64_t start, uint64_t offset, uint64_t address,
                         uint64_t *into) {
    struct module *m = module_of(s, path);
    Dwarf_Addr begin;
    GElf_Off off = 0;
    GElf_Sym symbol;
    if (m->dwfl_module == NULL || !code_address_of(m->dwfl_module, offset, &begin))
        return NULL;
    const char *name = dwfl_module_addrinfo(m->dwfl_module, address - start + begin, &off, &symbol, NULL, NULL, NULL);
    if (name == NULL || off >= symbol.st_size || GELF_ST_TYPE(symbol.st_info) != STT_OBJECT)
        return NULL;
    *into = off;
    return name;
}

bool symbols_variable(struct symbols *s, const char *path, uint64_t start, uint64_t offset, const char *name,
                      uint64_t *address, uint64_t *size) {
    struct module *m = module_of(s, path);
    Dwarf_Addr begin;
    if (m->dwfl_module == NULL || !code_address_of(m->dwfl_module, offset, &begin))
        return false;
    int n = dwfl_module_getsymtab(m->dwfl_module);
    for (int i = 0; i < n; i++) {
        GElf_Sym symbol;
        GElf_Addr at;
        const char *found = dwfl_module_getsym_info(m->dwfl_module, i, &symbol, &at, NULL, NULL, NULL);
        if (found == NULL || GELF_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_shndx == SHN_UNDEF ||
            strcmp(found, name) != 0)
            continue;
        *address = at - begin + start;
        *size = symbol.st_size;
        return true;
    }
    return false;
}

/* A row of a table of lines: its code ends where the next row's begins. */
static bool is_of_line(Dwarf_Lines *rows, size_t i, const char *file, int line, Dwarf_Addr *begin, Dwarf_Addr *end) {
    Dwarf_Line *row = dwarf_onesrcline(rows, i), *next = dwarf_onesrcline(rows, i + 1);
    bool is_end = true;
    int number;
    if (dwarf_lineno(row, &number) != 0 || number != line || dwarf_lineendsequence(row, &is_end) != 0 || is_end)
        return false;
    const char *source = dwarf_linesrc(row, NULL, NULL);
    return source != NULL && strcmp(base_of(source), file) == 0 && dwarf_lineaddr(row, begin) == 0 &&
           dwarf_lineaddr(next, end) == 0 && *end > *begin;
}

/* Rows that follow each other are one range. */
static void lines_of_unit(Dwfl_Module *module, Dwarf_Lines *rows, size_t n, Dwarf_Addr bias, const char *file, int line,
                          symbols_range *range, void *context) {
    Dwarf_Addr begin, end, from = 0, to = 0;
    uint64_t offset;
    for (size_t i = 0; i < n; i++) {
        bool is_it = i + 1 < n && is_of_line(rows, i, file, line, &begin, &end);
        if (is_it && to != 0 && begin == to) {
            to = end;
            continue;
        }
        if (to != 0 && (is_it || i + 1 == n) && offset_of(module, from + bias, &offset))
            range(context, offset, offset + (to - from) - 1);
        from = is_it ? begin : from;
        to = is_it ? end : i + 1 == n ? 0 : to;
    }
}

void symbols_lines(struct symbols *s, const char *path, const char *file, int line, symbols_range *range,
                   void *context) {
    struct module *m = module_of(s, path);
    Dwarf_Addr bias;
    for (Dwarf_Die *unit = NULL;
         m->dwfl_module != NULL && (unit = dwfl_module_nextcu(m->dwfl_module, unit, &bias)) != NULL;) {
        Dwarf_Lines *rows;
        size_t n;
        if (dwarf_getsrclines(unit, &rows, &n) == 0)
            lines_of_unit(m->dwfl_module, rows, n, bias, file, line, range, context);
    }
}

void symbols_of_source(struct symbols *s, const char *path, const char *name, symbols_named *named, void *context) {
    struct module *m = module_of(s, path);
    int n = m->dwfl_module != NULL ? dwfl_module_getsymtab(m->dwfl_module) : 0;
    for (int i = 0; i < n; i++) {
        GElf_Sym symbol;
        const char *own = dwfl_module_getsym(m->dwfl_module, i, &symbol, NULL);
        if (own == NULL || GELF_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF)
            continue;
        char *source = demangle(own);
        if (source != NULL && strcmp(source, name) == 0)
            named(context, own);
        free(source);
    }
}

void symbols_free(struct symbols *s) {
    for (size_t i = 0; i < s->n_modules; i++) {
        dwfl_end(s->modules[i].dwfl);
        free(s->modules[i].path);
    }
    free(s->modules);
    free(s->name);
    free(s->function);
    free(s);
}
