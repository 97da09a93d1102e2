/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See unwind.h. */
#include "os/unwind.h"

#include <dlfcn.h>
#include <link.h>

#include "os/real.h"
#include "os/unwinder.h"

uintptr_t sbt_own_code_bytes;

uintptr_t sbt_find_own_code_bytes(void) {
    const ElfW(Ehdr) *header = (const void *)__ehdr_start;
    const ElfW(Phdr) *part = (const void *)(__ehdr_start + header->e_phoff);
    uintptr_t bytes = 0;
    for (unsigned i = 0; i < header->e_phnum; i++)
        if (part[i].p_type == PT_LOAD && (part[i].p_flags & PF_X) != 0)
            bytes = part[i].p_vaddr + part[i].p_memsz;
    return bytes;
}

/* The pointers of sbt_unwinder are stored before it is true. */
bool sbt_unwind_is_ready;
static bool is_wanted;

static void begin(bool has_unwinder) {
    sbt_own_code_bytes = sbt_find_own_code_bytes();
    __atomic_store_n(&sbt_unwind_is_ready, has_unwinder, __ATOMIC_RELEASE);
}

void sbt_unwind_want(void) {
    is_wanted = sbt_real_is_2_35() && sbt_real_dlsym()(RTLD_DEFAULT, "_dl_find_object") != NULL;
    if (is_wanted)
        begin(sbt_unwinder_is_whole());
}

bool sbt_unwind_construct(void) {
    if (!is_wanted || sbt_unwind_can())
        return false;
    begin(sbt_unwinder_load());
    return sbt_unwind_can();
}
