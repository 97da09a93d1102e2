/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Look-up of symbols. It goes by the GNU hash table, as in the dynamic linker. A vDSO may have only the older table, of
 * which only the number of symbols is used. Format: the ELF specification, "Symbol Table" and "Hash Table". The GNU
 * table is specified only by its implementations: a header of 4 words, a Bloom filter of which a name has two bits in
 * one word, buckets, chains; the last hash of a chain has its low bit set.
 */
#include "os/elf.h"

#include <gnu/libc-version.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/initial.h"

#define HIDDEN_VERSION 0x8000 /* of a symbol that only a program which asks for its version binds */

struct object {
    uintptr_t bias; /* added to the object's addresses */
    const ElfW(Sym) * symbols;
    const char *names;
    const uint32_t *gnu_hash, *old_hash;
    const ElfW(Half) * versions; /* NULL: no symbol has a version */
};

/* The dynamic linker has added the bias in objects that it may write to. */
static const void *at(const struct object *o, uintptr_t address) {
    return (const void *)(address < o->bias ? address + o->bias : address);
}

static void read_dynamic(struct object *o, const ElfW(Dyn) * d) {
    for (; d->d_tag != DT_NULL; d++) {
        const void *p = at(o, d->d_un.d_ptr);
        if (d->d_tag == DT_SYMTAB)
            o->symbols = p;
        else if (d->d_tag == DT_STRTAB)
            o->names = p;
        else if (d->d_tag == DT_GNU_HASH)
            o->gnu_hash = p;
        else if (d->d_tag == DT_HASH)
            o->old_hash = p;
        else if (d->d_tag == DT_VERSYM)
            o->versions = p;
    }
}

static sbt_function *address_of(const struct object *o, uint32_t i) {
    return (sbt_function *)(o->bias + o->symbols[i].st_value);
}

/* What is looked for: a function by its name, in its default version; or in any version, if it is at that address. */
struct wanted {
    const char *name;
    uint32_t hash;
    sbt_function *address; /* NULL: wherever it is */
};

/*
 * Not strcmp: a sanitizer's is found first where its library is preloaded before this one, and calls NULL until that
 * library has found the C library's, for which it calls our dlsym.
 */
static bool is_same(const char *a, const char *b) {
    while (*a == *b && *a != '\0')
        a++, b++;
    return *a == *b;
}

/* A function that a resolver chooses, which only the dynamic linker may call: the C library's time, for instance. */
static bool is_indirect(const struct object *o, uint32_t i) {
    return ELF64_ST_TYPE(o->symbols[i].st_info) == STT_GNU_IFUNC;
}

static bool is_it(const struct object *o, uint32_t i, const struct wanted *w) {
    const ElfW(Sym) *s = &o->symbols[i];
    bool is_function = ELF64_ST_TYPE(s->st_info) == STT_FUNC || (w->address == NULL && is_indirect(o, i));
    if (s->st_shndx == SHN_UNDEF || !is_function || !is_same(o->names + s->st_name, w->name))
        return false;
    return w->address != NULL ? address_of(o, i) == w->address
                              : o->versions == NULL || (o->versions[i] & HIDDEN_VERSION) == 0;
}

static uint32_t gnu_hash(const char *name) {
    uint32_t h = 5381;
    for (; *name != '\0'; name++)
        h = h * 33 + (unsigned char)*name;
    return h;
}

/* The symbol's index; 0: there is none. */
static uint32_t find_gnu(const struct object *o, const struct wanted *w) {
    enum { WORD_BITS = 8 * sizeof(ElfW(Addr)) };
    const uint32_t *t = o->gnu_hash, n_buckets = t[0], first = t[1], n_filter = t[2], shift = t[3], hash = w->hash;
    const ElfW(Addr) *filter = (const void *)(t + 4);
    const uint32_t *buckets = (const void *)(filter + n_filter), *chains = buckets + n_buckets;
    ElfW(Addr) word = n_filter > 0 ? filter[hash / WORD_BITS % n_filter] : 0;
    if ((word >> hash % WORD_BITS & word >> (hash >> shift) % WORD_BITS & 1) == 0)
        return 0;
    uint32_t i = n_buckets > 0 ? buckets[hash % n_buckets] : 0;
    if (i < first)
        return 0;
    for (;; i++) {
        uint32_t seen = chains[i - first];
        if ((seen | 1) == (hash | 1) && is_it(o, i, w))
            return i;
        if ((seen & 1) != 0)
            return 0;
    }
}

static uint32_t find_old(const struct object *o, const struct wanted *w) {
    const uint32_t n_symbols = o->old_hash[1];
    for (uint32_t i = 1; i < n_symbols; i++)
        if (is_it(o, i, w))
            return i;
    return 0;
}

/* True: the object has it. *found stays NULL if only the dynamic linker knows where. */
static bool is_in(const struct object *o, const struct wanted *w, sbt_function **found) {
    uint32_t i = o->symbols == NULL || o->names == NULL ? 0
                 : o->gnu_hash != NULL                  ? find_gnu(o, w)
                 : o->old_hash != NULL                  ? find_old(o, w)
                                                        : 0;
    if (i != 0 && !is_indirect(o, i))
        *found = address_of(o, i);
    return i != 0;
}

static sbt_function *find_wanted(const struct object *o, const struct wanted *w) {
    sbt_function *found = NULL;
    is_in(o, w, &found);
    return found;
}

static sbt_function *find(const struct object *o, const char *name) {
    return find_wanted(o, &(struct wanted){.name = name, .hash = gnu_hash(name)});
}

sbt_function *sbt_elf_vdso(const char *name) {
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)sbt_auxiliary(AT_SYSINFO_EHDR, 0);
    const ElfW(Dyn) *dynamic = NULL;
    struct object o = {0};
    if (header == NULL)
        return NULL;
    const ElfW(Phdr) *p = (const ElfW(Phdr) *)((uintptr_t)header + header->e_phoff), *load = NULL;
    for (uint32_t i = 0; i < header->e_phnum; i++) {
        if (p[i].p_type == PT_LOAD && load == NULL)
            load = &p[i];
        if (p[i].p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn) *)((uintptr_t)header + p[i].p_offset);
    }
    if (load == NULL || dynamic == NULL)
        return NULL;
    o.bias = (uintptr_t)header + load->p_offset - load->p_vaddr;
    read_dynamic(&o, dynamic);
    return find(&o, name);
}

/* The C library is the object that has this very gnu_get_libc_version. */
static bool is_libc(const struct object *o) {
    return find(o, "gnu_get_libc_version") == (sbt_function *)(uintptr_t)gnu_get_libc_version;
}

static struct object libc(void) {
    for (const struct link_map *l = _r_debug.r_map; l != NULL; l = l->l_next) {
        struct object o = {.bias = l->l_addr};
        if (l->l_ld == NULL)
            continue;
        read_dynamic(&o, l->l_ld);
        if (is_libc(&o))
            return o;
    }
    return (struct object){0};
}

sbt_function *sbt_elf_libc(const char *name) {
    struct object o = libc();
    return find(&o, name);
}

bool sbt_elf_is_libcs(const char *name, const void *function) {
    struct object o = libc();
    return function != NULL &&
           find_wanted(&o, &(struct wanted){.name = name,
                                            .hash = gnu_hash(name),
                                            .address = (sbt_function *)(uintptr_t)function}) != NULL;
}

/*
 * The objects from the one behind this library to the C library: start-up looks up some 140 functions, and reads the
 * tables of each object once. They are never unloaded.
 */
enum { MAX_BEHIND = 256 };
static struct object behind[MAX_BEHIND];
static uint32_t n_behind;                  /* 0: before start-up, or there are too many */
static const struct link_map *last_behind; /* the C library: what is loaded later may come right after it */

static const struct link_map *own_map(void) {
    const struct link_map *l = _r_debug.r_map;
    while (l != NULL && l->l_ld != _DYNAMIC) /* this library's own */
        l = l->l_next;
    return l;
}

void sbt_elf_start(void) {
    const struct link_map *l = own_map();
    uint32_t n = 0;
    for (l = l != NULL ? l->l_next : NULL; l != NULL && n < MAX_BEHIND; l = l->l_next) {
        behind[n] = (struct object){.bias = l->l_addr};
        if (l->l_ld == NULL)
            continue;
        read_dynamic(&behind[n], l->l_ld);
        if (!is_libc(&behind[n++]))
            continue;
        last_behind = l;
        __atomic_store_n(&n_behind, n, __ATOMIC_RELEASE);
        return;
    }
}

/* Of the first object from that one on. */
static sbt_function *find_from(const struct link_map *l, const struct wanted *w) {
    sbt_function *found = NULL;
    for (bool is_there = false; l != NULL && !is_there; l = l->l_next) {
        struct object o = {.bias = l->l_addr};
        if (l->l_ld == NULL)
            continue;
        read_dynamic(&o, l->l_ld);
        is_there = is_in(&o, w, &found);
    }
    return found;
}

sbt_function *sbt_elf_next(const char *name) {
    const struct wanted w = {.name = name, .hash = gnu_hash(name)};
    const uint32_t n = __atomic_load_n(&n_behind, __ATOMIC_ACQUIRE);
    sbt_function *found = NULL;
    for (uint32_t i = 0; i < n; i++)
        if (is_in(&behind[i], &w, &found))
            return found;
    const struct link_map *before = n > 0 ? last_behind : own_map();
    return before != NULL ? find_from(before->l_next, &w) : NULL;
}

sbt_function *sbt_elf_global(const char *name) {
    return find_from(_r_debug.r_map, &(struct wanted){.name = name, .hash = gnu_hash(name)});
}

sbt_function *sbt_elf_own(const char *name) {
    Dl_info info;
    struct link_map *map = NULL;
    struct object o = {0};
    if (dladdr1((void *)(uintptr_t)sbt_elf_own, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL)
        return NULL;
    o.bias = map->l_addr;
    read_dynamic(&o, map->l_ld);
    return find(&o, name);
}
