/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of record-subject share. */
#ifndef TESTS_RECORD_SUBJECT_H
#define TESTS_RECORD_SUBJECT_H

/* They end the process with status 7. */
void subject_held(void);
void subject_cut(void);

/* Compute for at least NS of the thread's CPU time. The result is for how long, ns. */
long subject_compute(long ns);
/* The file `spent` says for how long all threads have done so. */
void subject_tell_spent(void);
/* The file NAME has these numbers, with commas between. */
void subject_tell_list(const char *name, int n, const long *list);

#endif
