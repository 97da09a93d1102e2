/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Functions of one loaded object, found in that object alone: in the kernel's vDSO, in the C library, or in this
 * library, whatever other preloaded libraries define under the same names. By the symbol tables in memory; nothing
 * allocates or blocks.
 */
#ifndef SBT_OS_ELF_H
#define SBT_OS_ELF_H

#include <stdbool.h>

typedef void sbt_function(void);

/* A function of the vDSO; NULL: it has none of that name. Its calls return what the system call would. */
sbt_function *sbt_elf_vdso(const char *name);

/* A function of the C library, in its default version; NULL: it has none of that name. */
sbt_function *sbt_elf_libc(const char *name);

/*
 * Is that the C library's function of that name, in any version? dladdr would know it too, but it walks through a table
 * of 3000 symbols.
 */
bool sbt_elf_is_libcs(const char *name, const void *function);

/* At start-up, for quicker look-ups by sbt_elf_next: the tables of the objects behind this library. */
void sbt_elf_start(void);
/*
 * The function of that name of the first object behind this library, in its default version, as dlsym(RTLD_NEXT) finds
 * it; NULL: there is none, or only dlsym can say which it is (an indirect function). The dynamic linker is not asked:
 * no lock is taken, and dlerror's message stays.
 */
sbt_function *sbt_elf_next(const char *name);

/*
 * The same, of the first object of all, as dlsym(RTLD_DEFAULT) finds it. At start-up only: the walk takes no lock, and
 * an object that was loaded later may be unloaded meanwhile.
 */
sbt_function *sbt_elf_global(const char *name);

/* A function that this library exports; NULL: it exports none of that name. */
sbt_function *sbt_elf_own(const char *name);

#endif
