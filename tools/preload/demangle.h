/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names as their programmers wrote them: of C++, and of Rust in both of its manglings. By libiberty, the demangler of
 * binutils, gdb and perf: libstdc++'s knows no Rust, and LLVM's comes with all of LLVM. Without it names stay as they
 * are.
 */
#ifndef CMD_DEMANGLE_H
#define CMD_DEMANGLE_H

/* "app::push" of "_ZN3app4pushEi": no parameters, no hash of Rust's. NULL: the symbol is no such name. Allocated. */
char *demangle(const char *symbol);

#endif
