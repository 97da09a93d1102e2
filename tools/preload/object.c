/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads scripts and ELF files; see object.h. ELF: System V gABI chapters 4 and 5. */
#include "object.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "core/eligibility_table.h"

/* Runtimes that take the pthread functions themselves, or must be the first library of the process. */
static const struct {
    const char *name;
    const char *library; /* a part of its DT_NEEDED name */
    /* a symbol that every instrumented object imports, or exports if the runtime is linked statically */
    const char *initializer;
} sanitizers[] = {
    {"AddressSanitizer", "asan", "__asan_init"},       {"ThreadSanitizer", "tsan", "__tsan_init"},
    {"MemorySanitizer", "msan", "__msan_init"},        {"LeakSanitizer", "lsan", "__lsan_init"},
    {"HWAddressSanitizer", "hwasan", "__hwasan_init"},
};
enum { N_SANITIZERS = sizeof sanitizers / sizeof *sanitizers };

void names_add(struct names *names, const char *name) {
    if (names->n == names->capacity) {
        names->capacity = names->capacity == 0 ? 8 : 2 * names->capacity;
        names->list = cmd_reallocate(names->list, names->capacity, sizeof *names->list);
    }
    names->list[names->n++] = cmd_format("%s", name);
}

static void names_free(struct names *names) {
    for (size_t i = 0; i < names->n; i++)
        free(names->list[i]);
    free(names->list);
}

static const char *sanitizer_library(const char *needed) {
    for (size_t i = 0; i < N_SANITIZERS; i++) {
        char *gcc = cmd_format("lib%s.so", sanitizers[i].library);
        char *clang = cmd_format("libclang_rt.%s", sanitizers[i].library);
        bool match = strncmp(needed, gcc, strlen(gcc)) == 0 || strncmp(needed, clang, strlen(clang)) == 0;
        free(gcc);
        free(clang);
        if (match)
            return sanitizers[i].name;
    }
    return NULL;
}

static void read_program_headers(struct object *o, Elf *elf) {
    size_t n = 0;
    elf_getphdrnum(elf, &n);
    for (size_t i = 0; i < n; i++) {
        GElf_Phdr ph;
        if (gelf_getphdr(elf, (int)i, &ph) == NULL || ph.p_type != PT_INTERP || o->interpreter != NULL)
            continue;
        Elf_Data *data = elf_getdata_rawchunk(elf, (int64_t)ph.p_offset, ph.p_filesz, ELF_T_BYTE);
        if (data != NULL)
            o->interpreter = cmd_format("%.*s", (int)data->d_size, (const char *)data->d_buf);
    }
}

static void read_dynamic(struct object *o, Elf *elf, Elf_Scn *section, const GElf_Shdr *header) {
    Elf_Data *data = elf_getdata(section, NULL);
    for (int i = 0; data != NULL && header->sh_entsize > 0 && (size_t)i < header->sh_size / header->sh_entsize; i++) {
        GElf_Dyn entry;
        if (gelf_getdyn(data, i, &entry) == NULL || entry.d_tag == DT_NULL)
            break;
        if (entry.d_tag != DT_NEEDED && entry.d_tag != DT_RPATH && entry.d_tag != DT_RUNPATH &&
            entry.d_tag != DT_SONAME)
            continue;
        const char *text = elf_strptr(elf, header->sh_link, entry.d_un.d_val);
        if (text == NULL)
            continue;
        if (entry.d_tag == DT_SONAME && o->soname == NULL) {
            o->soname = cmd_format("%s", text);
        } else if (entry.d_tag == DT_RPATH && o->rpath == NULL) {
            o->rpath = cmd_format("%s", text);
        } else if (entry.d_tag == DT_RUNPATH && o->runpath == NULL) {
            o->runpath = cmd_format("%s", text);
        } else if (entry.d_tag == DT_NEEDED) {
            names_add(&o->needed, text);
            if (o->sanitizer == NULL)
                o->sanitizer = sanitizer_library(text);
        }
    }
}

static void read_symbol(struct object *o, const char *name, bool is_undefined) {
    for (size_t i = 0; i < N_SANITIZERS; i++)
        if (o->sanitizer == NULL && strcmp(name, sanitizers[i].initializer) == 0)
            o->sanitizer = sanitizers[i].name;
    if (!is_undefined)
        return;
    o->imports_dlopen = o->imports_dlopen || strcmp(name, "dlopen") == 0;
    o->imports_syscall = o->imports_syscall || strcmp(name, "syscall") == 0;
    if (!sbt_eligibility_is_libc(o->path)) {
        const char *why = sbt_eligibility_refused(name);
        if (why != NULL && o->switch_reason == NULL) {
            o->switch_symbol = cmd_format("%s", name);
            o->switch_reason = why;
        }
        o->pins_main = o->pins_main || sbt_eligibility_pins_main(o->path, name);
        o->may_handle = o->may_handle || sbt_eligibility_is_handling(name);
    }
    enum primitive_group group = primitive_group_of(name);
    if (group == PRIMITIVE_NONE)
        return;
    struct names *list = &o->primitives[group];
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->list[i], name) == 0) /* once per symbol version */
            return;
    names_add(list, name);
}

static void read_symbols(struct object *o, Elf *elf, Elf_Scn *section, const GElf_Shdr *header) {
    Elf_Data *data = elf_getdata(section, NULL);
    for (int i = 1; data != NULL && header->sh_entsize > 0 && (size_t)i < header->sh_size / header->sh_entsize; i++) {
        GElf_Sym symbol;
        const char *name =
            gelf_getsym(data, i, &symbol) != NULL ? elf_strptr(elf, header->sh_link, symbol.st_name) : NULL;
        if (name != NULL)
            read_symbol(o, name, symbol.st_shndx == SHN_UNDEF);
    }
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void read_sections(struct object *o, Elf *elf) {
    size_t names_index = 0;
    elf_getshdrstrndx(elf, &names_index);
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section)) != NULL;) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) == NULL)
            continue;
        o->has_sections = true;
        const char *name = elf_strptr(elf, names_index, header.sh_name);
        if (name != NULL && (strcmp(name, ".go.buildinfo") == 0 || strcmp(name, ".note.go.buildid") == 0))
            o->is_go = true;
        if (header.sh_type == SHT_DYNAMIC)
            read_dynamic(o, elf, section, &header);
        else if (header.sh_type == SHT_DYNSYM)
            read_symbols(o, elf, section, &header);
    }
    for (size_t g = 0; g < PRIMITIVE_N_GROUPS; g++)
        if (o->primitives[g].n > 1)
            qsort(o->primitives[g].list, o->primitives[g].n, sizeof(char *), by_name);
}

static void read_elf(struct object *o, int fd) {
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    GElf_Ehdr header;
    if (elf == NULL || elf_kind(elf) != ELF_K_ELF || gelf_getehdr(elf, &header) == NULL) {
        o->kind = OBJECT_OTHER;
    } else {
        o->kind = OBJECT_ELF;
        o->elf_class = header.e_ident[EI_CLASS];
        o->byte_order = header.e_ident[EI_DATA];
        o->machine = header.e_machine;
        read_program_headers(o, elf);
        read_sections(o, elf);
    }
    elf_end(elf);
}

/*
 * As binfmt_script does: blanks around the interpreter and the argument are dropped, the argument is the rest of the
 * line.
 */
static void read_script(struct object *o, char *line) {
    line[strcspn(line, "\n")] = '\0';
    char *at = line + strspn(line, " \t");
    char *end = at + strlen(at);
    while (end > at && (end[-1] == ' ' || end[-1] == '\t'))
        *--end = '\0';
    size_t n = strcspn(at, " \t");
    o->script_interpreter = cmd_format("%.*s", (int)n, at);
    at += n;
    at += strspn(at, " \t");
    if (*at != '\0')
        o->script_argument = cmd_format("%s", at);
    o->kind = OBJECT_SCRIPT;
}

struct object *object_read(const char *path) {
    struct object *o = cmd_allocate(1, sizeof *o);
    char head[257] = "";
    o->path = cmd_format("%s", path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? pread(fd, head, sizeof head - 1, 0) : -1;
    if (n < 0 || fstat(fd, &o->stat) != 0) {
        o->problem = strerror(errno);
        (void)stat(path, &o->stat); /* the mode can be read even if the contents cannot; zero if that fails too */
    } else if (n >= 2 && head[0] == '#' && head[1] == '!') {
        read_script(o, head + 2);
    } else if (n >= 4 && memcmp(head, ELFMAG, SELFMAG) == 0) {
        read_elf(o, fd);
    } else if (n > 0 && memchr(head, '\0', (size_t)n) == NULL) {
        /* Text without #!: execvp and the shells give it to sh. */
        o->kind = OBJECT_SCRIPT;
        o->script_interpreter = cmd_format("/bin/sh");
    } else {
        o->kind = OBJECT_OTHER;
    }
    if (fd >= 0)
        close(fd);
    return o;
}

void object_free(struct object *o) {
    free(o->path);
    free(o->switch_symbol);
    free(o->script_interpreter);
    free(o->script_argument);
    free(o->interpreter);
    free(o->soname);
    free(o->rpath);
    free(o->runpath);
    names_free(&o->needed);
    for (size_t g = 0; g < PRIMITIVE_N_GROUPS; g++)
        names_free(&o->primitives[g]);
    free(o);
}

bool object_compatible(const struct object *a, const struct object *b) {
    return a->kind == OBJECT_ELF && b->kind == OBJECT_ELF && a->elf_class == b->elf_class &&
           a->byte_order == b->byte_order && a->machine == b->machine;
}
