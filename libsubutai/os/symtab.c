/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Section headers are no part of what is loaded, so the files are mapped and read. Format: the ELF specification. */
#include "os/symtab.h"

#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/arch.h"

#define PROGRAM "/proc/self/exe"

struct file {
    const char *bytes;
    size_t n;
    const ElfW(Ehdr) * header;
};

/* What is looked for: a symbol or a file of that name, and an offset in it. */
struct wanted {
    const char *name;
    size_t n;
    uint64_t offset, more;
    bool has_offset;
    uint32_t nth; /* of the variables of that name in a file, from 0 */
    bool within;  /* a symbol counts only if the offset is within it */
};

static bool has(const struct file *f, uint64_t at, uint64_t n) {
    return at <= f->n && n <= f->n - at;
}

static void close_file(struct file *f) {
    sbt_syscall3(SYS_munmap, f->bytes, f->n, 0);
}

static bool open_file(struct file *f, const char *path) {
    long fd = sbt_syscall6(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (fd < 0)
        return false;
    long n = sbt_syscall3(SYS_lseek, fd, 0, SEEK_END);
    long at = n > 0 ? sbt_syscall6(SYS_mmap, 0, n, PROT_READ, MAP_PRIVATE, fd, 0) : -1;
    sbt_syscall3(SYS_close, fd, 0, 0);
    if (n <= 0 || (at < 0 && at > -4096))
        return false;
    *f = (struct file){(const char *)at, (size_t)n, (const ElfW(Ehdr) *)at};
    const ElfW(Ehdr) *h = f->header;
    if (has(f, 0, sizeof *h) && memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 &&
        has(f, h->e_shoff, (uint64_t)h->e_shnum * sizeof(ElfW(Shdr))) &&
        has(f, h->e_phoff, (uint64_t)h->e_phnum * sizeof(ElfW(Phdr))) && h->e_shentsize == sizeof(ElfW(Shdr)) &&
        h->e_phentsize == sizeof(ElfW(Phdr)))
        return true;
    close_file(f);
    return false;
}

static bool is_named(const struct file *f, const ElfW(Shdr) * names, uint64_t at, const struct wanted *w) {
    return has(f, names->sh_offset, names->sh_size) && at < names->sh_size && w->n < names->sh_size - at &&
           memcmp(f->bytes + names->sh_offset + at, w->name, w->n) == 0 &&
           f->bytes[names->sh_offset + at + w->n] == '\0';
}

/* A variable is preferred: functions have other names, as a rule. True: the table has that name. */
static bool look_through(const struct file *f, const ElfW(Shdr) * table, const struct wanted *w, uintptr_t bias,
                         struct sbt_place *place) {
    const ElfW(Shdr) *sections = (const ElfW(Shdr) *)(f->bytes + f->header->e_shoff);
    if (table->sh_link >= f->header->e_shnum || !has(f, table->sh_offset, table->sh_size))
        return false;
    const ElfW(Sym) *symbols = (const ElfW(Sym) *)(f->bytes + table->sh_offset);
    uint32_t n_variables = 0;
    for (size_t i = 0; i < table->sh_size / sizeof *symbols && place->data == 0; i++) {
        const ElfW(Sym) *s = &symbols[i];
        unsigned type = ELF64_ST_TYPE(s->st_info);
        if (s->st_shndx == SHN_UNDEF || (type != STT_OBJECT && type != STT_FUNC) ||
            !is_named(f, &sections[table->sh_link], s->st_name, w) ||
            (w->within && w->offset >= s->st_size + (type == STT_FUNC))) /* a call may be a function's last bytes */
            continue;
        if (type == STT_OBJECT && n_variables++ == w->nth)
            place->data = bias + s->st_value + w->offset;
        else if (type == STT_FUNC && w->nth == 0)
            place->code = bias + s->st_value + w->offset;
    }
    return n_variables != 0 || place->code != 0;
}

/* Of the first table that has the name: the dynamic linker's has symbols of the other one, too. */
static bool find_symbol(const struct file *f, const struct wanted *w, uintptr_t bias, struct sbt_place *place) {
    const ElfW(Shdr) *sections = (const ElfW(Shdr) *)(f->bytes + f->header->e_shoff);
    for (unsigned type = SHT_SYMTAB, more = 2; more > 0; type = SHT_DYNSYM, more--)
        for (uint32_t i = 0; i < f->header->e_shnum; i++)
            if (sections[i].sh_type == type && look_through(f, &sections[i], w, bias, place))
                return true;
    return false;
}

/* The offset in the file of a byte of code, as what is in memory behind that byte. */
static uintptr_t code_at(const struct file *f, uint64_t offset, uintptr_t bias) {
    const ElfW(Phdr) *p = (const ElfW(Phdr) *)(f->bytes + f->header->e_phoff);
    for (uint32_t i = 0; i < f->header->e_phnum; i++)
        if (p[i].p_type == PT_LOAD && (p[i].p_flags & PF_X) != 0 && offset - p[i].p_offset < p[i].p_filesz)
            return bias + p[i].p_vaddr + (offset - p[i].p_offset) + 1;
    return 0;
}

static bool is_file(const char *path, const struct wanted *w) {
    const char *slash = strrchr(path, '/'), *base = slash != NULL ? slash + 1 : path;
    return strlen(base) == w->n && memcmp(base, w->name, w->n) == 0;
}

/* True: the file has that name. */
static bool find_in(const char *path, const struct wanted *w, uintptr_t bias, struct sbt_place *place) {
    char name[4096];
    struct file f;
    long n = strcmp(path, PROGRAM) != 0
                 ? -1
                 : sbt_syscall6(SYS_readlinkat, AT_FDCWD, (long)path, (long)name, sizeof name - 1, 0, 0);
    name[n > 0 ? n : 0] = '\0';
    if (!open_file(&f, path))
        return false;
    bool is_place = w->has_offset && is_file(n > 0 ? name : path, w);
    struct wanted symbol = *w;
    symbol.within = is_place;
    bool found = find_symbol(&f, &symbol, bias, place);
    if (!found && is_place && w->nth == 0)
        *place = (struct sbt_place){.data = bias + w->offset, .code = code_at(&f, w->offset, bias)};
    close_file(&f);
    return found || is_place;
}

/* "0xHEX" */
static bool read_hex(const char *text, const char *end, uint64_t *value) {
    if (end - text < 3 || text[0] != '0' || text[1] != 'x')
        return false;
    *value = 0;
    for (const char *at = text + 2; at < end; at++) {
        const char *digits = "0123456789abcdef", *digit = strchr(digits, *at | ('A' <= *at && *at <= 'F' ? 32 : 0));
        if (digit == NULL || *at == '\0')
            return false;
        *value = *value << 4 | (uint64_t)(digit - digits);
    }
    return true;
}

/* "NAME+0xHEX", "NAME+0xHEX..0xHEX". False: the offset is none. */
static bool read_offset(struct wanted *w) {
    const char *plus = memrchr(w->name, '+', w->n), *end = w->name + w->n;
    if (plus == NULL)
        return true;
    const char *dot = memchr(plus, '.', (size_t)(end - plus));
    uint64_t last = 0;
    if (!read_hex(plus + 1, dot != NULL ? dot : end, &w->offset))
        return false;
    if (dot != NULL && (end - dot < 3 || dot[1] != '.' || !read_hex(dot + 2, end, &last) || last < w->offset))
        return false;
    w->more = dot != NULL ? last - w->offset : 0;
    w->has_offset = true;
    w->n = (size_t)(plus - w->name);
    return true;
}

/* The first of the dynamic linker's list is the program. This library, of _DYNAMIC, has names that programs have. */
bool sbt_symtab_find(const char *name, size_t n, uint32_t nth, struct sbt_place *place) {
    struct wanted w = {.name = name, .n = n, .nth = nth};
    *place = (struct sbt_place){0};
    if (n == 0 || !read_offset(&w))
        return false;
    for (const struct link_map *l = _r_debug.r_map; l != NULL; l = l->l_next) {
        const char *path = l == _r_debug.r_map ? PROGRAM : l->l_name;
        if (path != NULL && path[0] == '/' && l->l_ld != _DYNAMIC && find_in(path, &w, l->l_addr, place)) {
            place->more = w.more;
            place->data = w.more != 0 ? 0 : place->data;
            return place->data != 0 || place->code != 0;
        }
    }
    return false;
}
