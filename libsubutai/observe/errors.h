/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * dlerror, of programs that are recorded. The recorder asks the dynamic linker for functions (openmp_real.c), in the
 * middle of a call of the program's. Each such question takes the error away that the program has not asked for yet, a
 * question in vain leaves one of its own, and the text that dlerror has returned before is freed. So the recorder keeps
 * the program's error around its questions, and dlerror is the recorder's: it returns a copy. The C library forgets an
 * error at the next call that succeeds. So behind its questions the recorder makes a call in vain, and what it has kept
 * is an error as long as the C library has that call's.
 */
#ifndef SBT_OBSERVE_ERRORS_H
#define SBT_OBSERVE_ERRORS_H

/* Before the recorder's questions, and behind them. */
void rec_errors_keep(void);
void rec_errors_drop(void);
/* The calling thread ends: what it has kept is gone. */
void rec_errors_end(void);

#endif
