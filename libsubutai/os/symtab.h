/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names of the objects that the process has started with, as a user knows them: symbols, those too that are not for the
 * dynamic linker, and places "FILE+0xOFFSET". They are read from the objects' files, by system calls alone. Nothing
 * allocates, takes a lock or needs a constructor; it takes milliseconds where files are large. Files that are no
 * objects, or cannot be read, have no names.
 */
#ifndef SBT_OS_SYMTAB_H
#define SBT_OS_SYMTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sbt_place {
    uintptr_t data; /* as an address of memory; 0: it is none */
    uintptr_t code; /* as a return address: where a call returns to; 0: it is none */
    uintptr_t more; /* so many bytes of code from there on are meant, too */
};

/*
 * Find `name`, of n bytes, in the program and then in its libraries, but not in this one. Forms: "SYMBOL",
 * "SYMBOL+0xN", of a variable or of a function; "FILE+0xN", FILE being the last part of an object's path. There N is
 * the variable's address in the object, or the offset in the file of the last byte of a call. "..0xN" behind one of the
 * latter two makes it all code from there to N. Of a symbol and a file of one name the symbol is meant for offsets
 * within it. `nth`: of the static variables that have that name in the first object that has one, from 0. False: there
 * is none.
 */
bool sbt_symtab_find(const char *name, size_t n, uint32_t nth, struct sbt_place *place);

#endif
