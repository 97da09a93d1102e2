/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What an ELF file of this machine says about its code: pure, on the bytes of the file, which may hold anything. Part
 * of the command too.
 */
#ifndef SBT_OS_ELF_IMAGE_H
#define SBT_OS_ELF_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Is it one? */
bool sbt_elf_image_is(const void *image, size_t bytes);
/* Does the byte at that offset of the file belong to code? */
bool sbt_elf_image_is_code(const void *image, size_t bytes, uint64_t offset);
/*
 * The function of that name, of `n` bytes: its first byte in the file, and its size. The symbol table of the whole
 * program is looked through, or, if it has been stripped, that of what it exports. False: there is none.
 */
bool sbt_elf_image_function(const void *image, size_t bytes, const char *name, size_t n, uint64_t *offset,
                            uint64_t *size);

#endif
