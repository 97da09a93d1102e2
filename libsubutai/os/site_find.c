/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The library's code is read function by function, from its beginning to its end, as its unwind table gives them
 * (LSB, "Exception Frames"; the form that binutils and LLVM write). So an instruction is never looked for in the middle
 * of another one. Bytes between functions are padding, and must not look like a system call; those before the first are
 * code too.
 */
#include "os/site_find.h"

#include <string.h>

#include "os/insn.h"
#include "os/mapped.h"

/* Ends of a sentence "LIBRARY ...", which a user may read. */
#define UNKNOWN "is of an unknown build: its code is not as known"
#define UNKNOWN_CALLS "is of an unknown build: it makes system calls itself that are not as known"

/* The one segment with code. */
static const ElfW(Phdr) * code_of(const struct dl_phdr_info *library) {
    const ElfW(Phdr) *code = NULL;
    for (size_t i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &library->dlpi_phdr[i];
        if (p->p_type != PT_LOAD || (p->p_flags & PF_X) == 0)
            continue;
        if (code != NULL || p->p_flags != (PF_R | PF_X))
            return NULL;
        code = p;
    }
    return code;
}

#if defined(__x86_64__)
static const ElfW(Phdr) * segment_of(const struct dl_phdr_info *library, uintptr_t at) {
    for (size_t i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &library->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && at - library->dlpi_addr - p->p_vaddr < p->p_memsz)
            return p;
    }
    return NULL;
}

enum { BEYOND_MAX = 2 * SBT_SITES_MAX, LOADS_MAX = 48 };

/* The unwind table: a sorted list of functions. Distances are from the table's header. */
struct table {
    uint8_t version, frames_form, count_form, entries_form;
    int32_t frames;
    uint32_t n;
    struct {
        int32_t function, frame;
    } entry[];
};
#define FORM_4_BYTES_FROM_HERE 0x1b
#define FORM_4_BYTES 0x03
#define FORM_4_BYTES_FROM_TABLE 0x3b

struct frame {
    uint32_t n_bytes, parent;
    int32_t function; /* from here */
    uint32_t n_function_bytes;
};

struct search {
    const struct dl_phdr_info *library;
    const struct table *table;
    uintptr_t code, code_end; /* the segment */
    struct sbt_sites *sites;
    /* Addresses to which nothing must jump, each from the first to before the last; ascending. */
    uint32_t n_kept;
    struct {
        uintptr_t first, last;
    } kept[BEYOND_MAX];
    /* Variables of 8 bytes that functions with sites load, and how often. */
    uint32_t n_loads;
    struct {
        uintptr_t at;
        uint32_t n;
    } load[LOADS_MAX];
};

static const char *open_table(struct search *s) {
    for (size_t i = 0; i < s->library->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &s->library->dlpi_phdr[i];
        if (p->p_type != PT_GNU_EH_FRAME)
            continue;
        const uintptr_t at = s->library->dlpi_addr + p->p_vaddr;
        const struct table *t = (const struct table *)at;
        if (at % 4 != 0 || p->p_memsz < sizeof *t || segment_of(s->library, at) == NULL ||
            !sbt_mapped_now((const void *)at, p->p_memsz))
            break;
        if (t->version != 1 || t->frames_form != FORM_4_BYTES_FROM_HERE || t->count_form != FORM_4_BYTES ||
            t->entries_form != FORM_4_BYTES_FROM_TABLE || t->n > (p->p_memsz - sizeof *t) / sizeof t->entry[0])
            break;
        s->table = t;
        return NULL;
    }
    return "is of an unknown build: it has no unwind table that can be read";
}

/* The i-th function. False: the table is not as known. */
static bool function_of(const struct search *s, uint32_t i, uintptr_t *begin, uintptr_t *end) {
    const uintptr_t table = (uintptr_t)s->table;
    const uintptr_t at = table + (uintptr_t)(intptr_t)s->table->entry[i].frame;
    const struct frame *frame = (const struct frame *)at;
    if (at % 4 != 0 || segment_of(s->library, at) == NULL ||
        segment_of(s->library, at) != segment_of(s->library, at + sizeof *frame - 1) ||
        (i == 0 && !sbt_mapped_now((const void *)at, sizeof *frame)))
        return false;
    *begin = table + (uintptr_t)(intptr_t)s->table->entry[i].function;
    *end = *begin + frame->n_function_bytes;
    return frame->n_bytes >= sizeof *frame - sizeof frame->n_bytes && frame->parent != 0 &&
           (uintptr_t)&frame->function + (uintptr_t)(intptr_t)frame->function == *begin && *begin >= s->code &&
           *begin <= *end && *end <= s->code_end;
}

/* The first two bytes that look like a system call; `to`: there are none. */
static uintptr_t syscall_like(uintptr_t from, uintptr_t to) {
    for (const uint8_t *p = (const uint8_t *)from; p + 1 < (const uint8_t *)to; p++)
        if (p[0] == 0x0f && (p[1] == 0x05 || p[1] == 0x34)) /* syscall, sysenter */
            return (uintptr_t)p;
    return to;
}

static bool keep(struct search *s, uintptr_t first, uintptr_t last) {
    if (s->n_kept == BEYOND_MAX)
        return false;
    s->kept[s->n_kept].first = first;
    s->kept[s->n_kept++].last = last;
    return true;
}

static bool is_padding(uintptr_t from, uintptr_t to) {
    return syscall_like(from, to) == to;
}

/*
 * The segment begins with .init, which has no entry in the table. An address in its code may have those bytes. There,
 * and there only, it is known where an instruction begins. Nothing must jump into the middle of the one that has them.
 */
static bool is_init(struct search *s, uintptr_t from, uintptr_t to) {
    uintptr_t seen = syscall_like(from, to);
    struct sbt_insn insn;
    for (uintptr_t at = from; seen != to; at += insn.n_bytes) {
        if (!sbt_insn_read(&insn, (const uint8_t *)at, to - at) || insn.kind == SBT_INSN_SYSCALL)
            return false;
        const uintptr_t next = at + insn.n_bytes;
        if (seen >= next)
            continue;
        if (!keep(s, at + 1, next))
            return false;
        seen = syscall_like(next, to);
    }
    return true;
}

/* andl $~FUTEX_PRIVATE_FLAG, of a variable: the beginning of a fallback. */
static bool takes_private_flag(const uint8_t *code, const struct sbt_insn *insn) {
    static const uint8_t mask[4] = {0x7f, 0xff, 0xff, 0xff};
    return insn->n_bytes == 10 && code[0] == 0x81 && code[1] == 0x25 && memcmp(code + 6, mask, sizeof mask) == 0;
}

static bool is_site(const uint8_t *code, size_t n) {
    static const uint8_t bytes[SBT_SITE_BYTES] = {0x0f, 0x05, 0x48, 0x83, 0xf8, 0xda};
    return n >= sizeof bytes && memcmp(code, bytes, sizeof bytes) == 0;
}

/*
 * libgomp's spins. It has two variables, beside each other: how often to look before a sleep, in general, and if there
 * are more OpenMP threads than CPUs. Both have been set by its constructor. If they have the values that libgomp uses
 * when the user has chosen none, they are recognised by these, and by the functions that load them.
 */
#define BESIDE 16 /* bytes from the one to the other */

static void note_loads(struct search *s, uintptr_t begin, uintptr_t end) {
    struct sbt_insn insn;
    for (uintptr_t at = begin; at < end && sbt_insn_read(&insn, (const uint8_t *)at, end - at); at += insn.n_bytes) {
        const uint8_t *code = (const uint8_t *)at;
        if (!insn.has_target || insn.n_bytes != 7 || (code[0] & 0xfb) != 0x48 || code[1] != 0x8b)
            continue; /* not mov variable(%rip), register */
        const uintptr_t variable = at + (uintptr_t)insn.target;
        uint32_t i = 0;
        while (i < s->n_loads && s->load[i].at != variable)
            i++;
        if (i == LOADS_MAX)
            continue;
        if (i == s->n_loads)
            s->load[s->n_loads++].at = variable;
        s->load[i].n++;
    }
}

/* The only variable with that value that is loaded more than once; 0: there is none, or more than one. */
static uintptr_t variable_with(const struct search *s, uint64_t value) {
    uintptr_t found = 0;
    for (uint32_t i = 0; i < s->n_loads; i++) {
        const uintptr_t at = s->load[i].at;
        const ElfW(Phdr) *p = segment_of(s->library, at);
        if (s->load[i].n < 2 || at % sizeof value != 0 || p == NULL || (p->p_flags & PF_W) == 0 ||
            !sbt_mapped_now((const void *)at, sizeof value) || *(const uint64_t *)at != value)
            continue;
        if (found != 0)
            return 0;
        found = at;
    }
    return found;
}

static void find_spins(const struct search *s) {
    const uintptr_t any = variable_with(s, SBT_SITE_SPINS), crowded = variable_with(s, SBT_SITE_CROWDED_SPINS);
    if (any == 0 || crowded == 0 || any - crowded + BESIDE > 2 * BESIDE)
        return;
    s->sites->spins = (uint64_t *)any;
    s->sites->crowded_spins = (uint64_t *)crowded;
}

static const char *search_function(struct search *s, uintptr_t begin, uintptr_t end) {
    const uint32_t n_before = s->sites->n;
    uintptr_t fallback = 0; /* where straight code begins that only a fallback has */
    bool jumps_anywhere = false;
    struct sbt_insn insn;
    for (uintptr_t at = begin; at < end; at += insn.n_bytes) {
        const uint8_t *code = (const uint8_t *)at;
        if (!sbt_insn_read(&insn, code, end - at))
            return UNKNOWN;
        if (insn.is_wide)
            s->sites->is_wide = true;
        if (insn.kind == SBT_INSN_JUMP_ANYWHERE)
            jumps_anywhere = true;
        if (insn.kind == SBT_INSN_SYSCALL && is_site(code, end - at)) {
            if (s->sites->n == SBT_SITES_MAX || !keep(s, at + 1, at + SBT_SITE_BYTES))
                return "is of an unknown build: it makes system calls itself in more places than expected";
            s->sites->at[s->sites->n++] = at;
            fallback = 0;
        } else if (insn.kind == SBT_INSN_SYSCALL) {
            if (fallback == 0 || !keep(s, fallback + 1, at + insn.n_bytes))
                return UNKNOWN_CALLS;
            fallback = 0;
        } else if (insn.kind != SBT_INSN_OTHER) {
            fallback = 0;
        } else if (takes_private_flag(code, &insn)) {
            fallback = at;
        }
    }
    if (s->sites->n > n_before)
        note_loads(s, begin, end);
    return jumps_anywhere && s->sites->n > n_before
               ? "is of an unknown build: it jumps by a table around its system calls"
               : NULL;
}

static bool is_kept(const struct search *s, uintptr_t target) {
    uint32_t low = 0, high = s->n_kept;
    if (target < s->kept[0].first || target >= s->kept[high - 1].last)
        return false;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (target >= s->kept[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return target >= s->kept[low].first;
}

/* Nothing leads into what must be kept. The code has been read once: every instruction is known. */
static bool leads_nowhere(const struct search *s) {
    uintptr_t begin, end;
    struct sbt_insn insn;
    for (uint32_t i = 0; i < s->table->n; i++) {
        if (!function_of(s, i, &begin, &end) || is_kept(s, begin))
            return false;
        for (uintptr_t at = begin; at < end; at += insn.n_bytes)
            if (!sbt_insn_read(&insn, (const uint8_t *)at, end - at) ||
                (insn.has_target && is_kept(s, at + (uintptr_t)insn.target)))
                return false;
    }
    return true;
}

static const char *search(struct search *s) {
    uintptr_t behind = s->code, begin, end;
    const char *why = open_table(s);
    for (uint32_t i = 0; why == NULL && i < s->table->n; i++) {
        if (!function_of(s, i, &begin, &end) || begin < behind ||
            !(i == 0 ? is_init(s, behind, begin) : is_padding(behind, begin)))
            return UNKNOWN;
        why = search_function(s, begin, end);
        behind = end;
    }
    if (why != NULL)
        return why;
    if (!is_padding(behind, s->code_end))
        return UNKNOWN;
    if (s->n_kept != 0 && !leads_nowhere(s))
        return "is of an unknown build: it jumps into the middle of its system calls";
    find_spins(s);
    return NULL;
}

#else
static const char *search_words(uintptr_t code, uintptr_t end) {
    for (const uint32_t *p = (const uint32_t *)code; p < (const uint32_t *)end; p++)
        if ((*p & 0xffe0001f) == 0xd4000001) /* svc */
            return UNKNOWN_CALLS;
    return NULL;
}
#endif

const char *sbt_sites_find(struct sbt_sites *sites, const struct dl_phdr_info *library) {
    const ElfW(Phdr) *p = code_of(library);
    sites->n = 0;
    sites->is_wide = false;
    sites->spins = sites->crowded_spins = NULL;
    if (p == NULL)
        return UNKNOWN;
    const uintptr_t code = library->dlpi_addr + p->p_vaddr, end = code + p->p_filesz;
    sites->code = code;
    sites->code_end = end;
    if (!sbt_mapped_now((const void *)code, end - code))
        return "waits by system calls of its own, and they cannot be replaced: its code cannot be read";
#if defined(__x86_64__)
    struct search s = {.library = library, .code = code, .code_end = end, .sites = sites};
    return search(&s);
#else
    return search_words(code, end);
#endif
}
