/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is known only grows. One thread at a time looks; meanwhile, and from the beginning of a load to the look after
 * it, all code counts as unseen. That is always right, and costs system calls.
 */
#include "abi/unseen.h"

#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

#include "abi/futex.h"
#include "core/eligibility_table.h"
#include "core/handlers.h"
#include "core/log.h"
#include "core/sites.h"
#include "decimal.h"
#include "engine/engine.h"
#include "os/arch.h"
#include "os/clock.h"
#include "os/fork.h"
#include "os/futex.h"
#include "os/known.h"
#include "os/objects.h"
#include "os/real.h"

#define OBJECTS_MOST 64
#define ADOPTED_MOST 16
#define CODE_MOST ((size_t)32 << 20) /* bytes; a larger object counts as unseen: to read it would take too long */
#define NEAR 512                     /* bytes from the number to the instruction */
#define LOOK_EVERY_NS 1000000
#define LOOK_AFTER 256
#define PATIENCE_NS 100000000

struct range {
    uintptr_t from, to;
};

static struct range ranges_unseen[OBJECTS_MOST], adopted[ADOPTED_MOST];
static uint32_t n_adopted; /* written by release, after the entries */
static uint32_t looking;   /* a thread looks: the process's generation and one; what is below is its own */
static struct sbt_known known;
static uint32_t n_read; /* objects of which this look has read the code */
struct abi_unseen abi_unseen;
static uint64_t look_again_ns; /* while one is: no look before that time; atomic, relaxed: a hint */
static uint32_t n_calls;       /* futex calls before the first look; atomic, relaxed */
static _Thread_local uintptr_t load_frame __attribute__((tls_model("initial-exec"))); /* of the caller's load, or 0 */

/* ---- code ---- */
#if defined(__x86_64__)
static bool loads_number(const unsigned char *at, const unsigned char *from) {
    unsigned char before = at > from ? at[-1] : 0, first = at > from + 1 ? at[-2] : 0;
    return (before >= 0xb8 && before <= 0xbf) || before == 0x68 || (first == 0xc7 && before >= 0xc0 && before <= 0xc7);
}

/* The next 32-bit SYS_futex in the code. By its one byte that is not 0: a tenth of the time that memmem takes. */
static const unsigned char *next_number(const unsigned char *at, const unsigned char *end) {
    _Static_assert(SYS_futex > 0 && SYS_futex < 256, "one byte");
    while ((at = memchr(at, SYS_futex, (size_t)(end - at))) != NULL) {
        if (end - at < 4)
            return NULL;
        if ((at[1] | at[2] | at[3]) == 0)
            return at;
        at++;
    }
    return NULL;
}

static bool calls_futex(const unsigned char *code, size_t bytes) {
    static const unsigned char instruction[] = {0x0f, 0x05};
    const unsigned char *end = code + bytes, *at = code;
    while ((at = next_number(at, end)) != NULL) {
        size_t left = (size_t)(end - at);
        if (loads_number(at, code) && memmem(at, left < NEAR ? left : NEAR, instruction, sizeof instruction) != NULL)
            return true;
        at++;
    }
    return false;
}
#else
/* movz of the number into any register, 32 or 64 bits; svc 0. */
static bool calls_futex(const unsigned char *code, size_t bytes) {
    uint32_t since = NEAR;
    for (size_t i = 0; i + 4 <= bytes; i += 4) {
        uint32_t word;
        memcpy(&word, code + i, 4);
        since = (word & 0x7fffffe0) == (0x52800000 | SYS_futex << 5) ? 0 : since + 4;
        if (word == 0xd4000001 && since < NEAR)
            return true;
    }
    return false;
}
#endif

static bool is_in(const struct range *ranges, const uint32_t *n, uintptr_t at) {
    uint32_t most = __atomic_load_n(n, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < most; i++)
        if (at - ranges[i].from < ranges[i].to - ranges[i].from)
            return true;
    return false;
}

static void add(struct range *ranges, uint32_t *n, uint32_t most, struct range range) {
    if (*n == most) /* no room: the last entry grows until it has all */
        ranges[most - 1] = (struct range){0, UINTPTR_MAX};
    else
        ranges[*n] = range;
    __atomic_store_n(n, *n < most ? *n + 1 : most, __ATOMIC_RELEASE);
}

/* ---- objects ---- */
static void note_clone(const struct dl_phdr_info *info) {
    const ElfW(Dyn) *d = NULL;
    const ElfW(Sym) *symbols = NULL;
    const char *names = NULL;
    const ElfW(Rela) * relocations[2] = {NULL, NULL};
    size_t bytes[2] = {0, 0};
    for (size_t i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            d = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (; d != NULL && d->d_tag != DT_NULL; d++) {
        ElfW(Addr) value = d->d_un.d_ptr;
        const void *p = (const void *)(value < info->dlpi_addr ? info->dlpi_addr + value : value);
        if (d->d_tag == DT_SYMTAB)
            symbols = p;
        else if (d->d_tag == DT_STRTAB)
            names = p;
        else if (d->d_tag == DT_RELA)
            relocations[0] = p;
        else if (d->d_tag == DT_RELASZ)
            bytes[0] = d->d_un.d_val;
        else if (d->d_tag == DT_JMPREL)
            relocations[1] = p;
        else if (d->d_tag == DT_PLTRELSZ)
            bytes[1] = d->d_un.d_val;
    }
    for (size_t k = 0; k < 2 && symbols != NULL && names != NULL; k++)
        for (size_t i = 0; i < bytes[k] / sizeof(ElfW(Rela)); i++) {
            const ElfW(Sym) *s = &symbols[ELF64_R_SYM(relocations[k][i].r_info)];
            const char *name = names + s->st_name;
            if (name[0] == 'c' && s->st_shndx == SHN_UNDEF && s->st_name != 0 && strcmp(name, "clone") == 0)
                __atomic_store_n(&abi_unseen.clones, 1, __ATOMIC_RELAXED);
        }
}

static bool is_own(const struct dl_phdr_info *info) {
    uintptr_t here = (uintptr_t)&abi_unseen.looked;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && here - info->dlpi_addr - p->p_vaddr < p->p_memsz)
            return true;
    }
    return false;
}

/*
 * Other code may lie where an adopted object was unloaded, before that one is forgotten. So the sites are looked at.
 */
static bool is_adopted(const struct dl_phdr_info *info, uintptr_t code) {
    return is_in(adopted, &n_adopted, code) && sbt_sites_are_served(info);
}

/* Such an object is looked at each time: it may have lost its sites since. */
static bool is_any_adopted(const struct dl_phdr_info *info) {
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && (p->p_flags & PF_X) != 0 &&
            is_in(adopted, &n_adopted, info->dlpi_addr + p->p_vaddr))
            return true;
    }
    return false;
}

static int judge(struct dl_phdr_info *info, size_t size, void *argument) {
    const char *name = info->dlpi_name != NULL ? info->dlpi_name : "";
    (void)size, (void)argument;
    if (sbt_eligibility_is_libc(name) || strstr(name, "vdso") != NULL || (!sbt_real_is_linked && is_own(info)))
        return 0;
    bool is_served = is_any_adopted(info);
    if (!is_served && sbt_known_note(&known, info))
        return 0;
    n_read++;
    note_clone(info);
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        struct range range = {info->dlpi_addr + p->p_vaddr, info->dlpi_addr + p->p_vaddr + p->p_memsz};
        if (p->p_type != PT_LOAD || (p->p_flags & PF_X) == 0 || p->p_memsz == 0 ||
            is_in(ranges_unseen, &abi_unseen.n, range.from) || is_adopted(info, range.from))
            continue;
        bool readable = (p->p_flags & PF_R) != 0;
        if (!readable || p->p_memsz > CODE_MOST || calls_futex((const unsigned char *)range.from, p->p_memsz))
            add(ranges_unseen, &abi_unseen.n, OBJECTS_MOST, range);
    }
    return 0;
}

struct counts {
    uint32_t n_loads;   /* 0: not known */
    uint64_t n_unloads; /* as long as n_loads is known */
};

static int count(struct dl_phdr_info *info, size_t size, void *argument) {
    struct counts *counts = argument;
    if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs)
        *counts = (struct counts){(uint32_t)info->dlpi_adds, info->dlpi_subs};
    return 1; /* the first object knows the numbers */
}

static void tell(uint32_t n) {
    char digits[DECIMAL_SIZE];
    if (n != 0)
        sbt_log(3, "objects that were searched for futex calls: ", decimal_of(digits, n), NULL);
}

/*
 * False: another thread looks. A look that was under way when the process was forked goes on in the parent alone. It
 * may have noted an object that it had not read.
 */
static bool begin_look(void) {
    uint32_t here = sbt_fork_generation() + 1, seen = __atomic_load_n(&looking, __ATOMIC_RELAXED);
    if (seen == here || !__atomic_compare_exchange_n(&looking, &seen, here, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return false;
    if (seen != 0)
        known.n = 0;
    return true;
}

/* False: another thread looks. */
static bool look_once(void) {
    struct counts now = {0, 0};
    if (!begin_look())
        return false;
    sbt_objects_iterate(count, &now);
    if (now.n_loads == 0 || now.n_loads != __atomic_load_n(&abi_unseen.looked, __ATOMIC_RELAXED)) {
        sbt_known_begin(&known, now.n_loads != 0 ? now.n_unloads : known.n_unloads + 1);
        n_read = 0;
        sbt_objects_iterate(judge, NULL);
        tell(n_read);
        __atomic_store_n(&abi_unseen.looked, now.n_loads != 0 ? now.n_loads : 1, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&looking, 0, __ATOMIC_RELEASE);
    return true;
}

/*
 * A handler in the midst of it might wait for the look. In an order, libraries that can be served are before they are
 * looked at: what is found is found for good.
 */
static bool look(void) {
    if (SBT_UNLIKELY(sbt_engine.order != NULL))
        sbt_sites_serve_new();
    sbt_handlers_hold();
    bool has_looked = look_once();
    sbt_handlers_release();
    return has_looked;
}

bool abi_unseen_any(void) {
    return __atomic_load_n(&abi_unseen.looked, __ATOMIC_ACQUIRE) == 0 ||
           __atomic_load_n(&abi_unseen.loading, __ATOMIC_RELAXED) != 0 ||
           __atomic_load_n(&abi_unseen.n, __ATOMIC_RELAXED) != 0 || abi_unseen_clones();
}

/*
 * If another thread looks, wait for it. In two cases that would be for ever:
 *  - A handler that cannot be deferred has interrupted the look of its own thread, which holds handlers.
 *  - The other thread waits for the dynamic linker's lock, and the caller has it, in a function of the program's that
 *    dl_iterate_phdr calls.
 */
static bool look_in_order(void) {
    uint64_t end = 0;
    while (!look()) {
        uint64_t now = sbt_now_ns();
        if (sbt_self.handlers_held != 0 || (end != 0 && now >= end))
            return false;
        if (end == 0)
            end = now + PATIENCE_NS;
        sbt_yield();
    }
    return true;
}

/*
 * The first look reads the code of all objects: 50 ms where that is 100 MiB. Most programs make few futex calls, or
 * none although they are linked with libgomp. Their first LOOK_AFTER calls are the kernel's.
 *
 * While a load lasts each wait would look, and take the dynamic linker's lock. The thread that has loaded may not come
 * back for long. So between looks all code counts as unseen.
 *
 * In an order of all operations neither the number of calls nor the clock decides: the creator of the first thread
 * looks, and from then on each call during a load.
 */
static bool look_now_and_then(void) {
    if (SBT_UNLIKELY(sbt_engine.order != NULL))
        return __atomic_load_n(&abi_unseen.looked, __ATOMIC_ACQUIRE) != 0 && look_in_order();
    if (__atomic_load_n(&abi_unseen.looked, __ATOMIC_ACQUIRE) == 0 &&
        __atomic_add_fetch(&n_calls, 1, __ATOMIC_RELAXED) < LOOK_AFTER)
        return false;
    if (__atomic_load_n(&abi_unseen.looked, __ATOMIC_ACQUIRE) != 0) {
        uint64_t now = sbt_now_ns();
        if (now < __atomic_load_n(&look_again_ns, __ATOMIC_RELAXED))
            return false;
        __atomic_store_n(&look_again_ns, now + LOOK_EVERY_NS, __ATOMIC_RELAXED);
    }
    return look();
}

bool abi_unseen_at(const void *code) {
    abi_unseen_load_over();
    if (SBT_UNLIKELY(__atomic_load_n(&abi_unseen.looked, __ATOMIC_ACQUIRE) == 0 ||
                     __atomic_load_n(&abi_unseen.loading, __ATOMIC_RELAXED) != 0) &&
        !look_now_and_then())
        return true;
    return SBT_UNLIKELY(__atomic_load_n(&abi_unseen.n, __ATOMIC_RELAXED) != 0) &&
           is_in(ranges_unseen, &abi_unseen.n, (uintptr_t)code);
}

void abi_unseen_before_threads(void) {
    while (__atomic_load_n(&abi_unseen.looked, __ATOMIC_ACQUIRE) == 0 && !look())
        sbt_yield();
}

bool abi_unseen_in_order(void) {
    abi_unseen_at(NULL);
    return __atomic_load_n(&abi_unseen.looked, __ATOMIC_ACQUIRE) == 0 ||
           __atomic_load_n(&abi_unseen.n, __ATOMIC_RELAXED) != 0 || abi_unseen_clones();
}

bool abi_unseen_clones(void) {
    return __atomic_load_n(&abi_unseen.clones, __ATOMIC_RELAXED) != 0;
}

/*
 * The load is over when the thread is back in the frame that asked for it, or in one above. The constructors of the
 * loaded code, and an allocator that the dynamic linker calls, are in frames below: dlopen alone takes several times
 * SAME_FRAME bytes. The functions that ask here, called from one frame, differ by less.
 */
#define SAME_FRAME 256

static uintptr_t frame(void) {
    return (uintptr_t)__builtin_frame_address(0);
}

void abi_unseen_load_over(void) {
    if (SBT_LIKELY(load_frame == 0) || frame() + SAME_FRAME < load_frame)
        return;
    if (__atomic_load_n(&abi_unseen.looked, __ATOMIC_RELAXED) != 0 && !look())
        return;
    load_frame = 0;
    __atomic_fetch_sub(&abi_unseen.loading, 1, __ATOMIC_RELEASE);
}

void abi_unseen_thread_ends(void) {
    if (SBT_LIKELY(load_frame == 0))
        return;
    while (__atomic_load_n(&abi_unseen.looked, __ATOMIC_RELAXED) != 0 && !look())
        sbt_yield(); /* another thread looks, and may have begun before the load was over */
    load_frame = 0;
    __atomic_fetch_sub(&abi_unseen.loading, 1, __ATOMIC_RELEASE);
}

void abi_unseen_load_begins(void) {
    abi_unseen_load_over();
    if (load_frame != 0)
        return; /* a load within a load */
    load_frame = frame();
    __atomic_fetch_add(&abi_unseen.loading, 1, __ATOMIC_SEQ_CST);
}

static void begin_looking(void) {
    while (!begin_look())
        sbt_cpu_relax();
}

/* The last entry takes the place. Only the thread that looks reads adopted ranges. */
void abi_futex_forget(uintptr_t from, uintptr_t to) {
    begin_looking();
    for (uint32_t i = 0; i < n_adopted; i++)
        if (adopted[i].from == from && adopted[i].to == to)
            adopted[i--] = adopted[--n_adopted];
    __atomic_store_n(&looking, 0, __ATOMIC_RELEASE);
}

void abi_futex_adopt(uintptr_t from, uintptr_t to) {
    begin_looking();
    if (n_adopted < ADOPTED_MOST)
        add(adopted, &n_adopted, ADOPTED_MOST, (struct range){from, to});
    __atomic_store_n(&looking, 0, __ATOMIC_RELEASE);
}

void abi_unseen_asked_kernel(void) {
    if (SBT_UNLIKELY(__atomic_load_n(&abi_unseen.looked, __ATOMIC_RELAXED) == 0))
        look_now_and_then();
}
