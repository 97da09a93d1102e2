/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What openmp-subject does, by its files; true: what it has computed is right. */
#ifndef RECORD_OPENMP_SUBJECT_H
#define RECORD_OPENMP_SUBJECT_H

#include <stdbool.h>

enum { N_THREADS = 4, N_ROUNDS = 50 };

/* openmp_subject.c: regions, sections and locks */
bool regions(void);
bool once(void);

/* openmp_tasks.c */
bool tasks(void);
bool kinds(void);
bool detached(void);
bool task_waits(void);
bool tasks_at_once(void);
bool task_times(void);
bool short_tasks(void);
bool deep(void);
bool in_tasks(void);
bool reductions_in_tasks(void);

/* openmp_process.c: signals, threads, forks, errors, and the end */
bool handlers(void);
bool threads(void);
bool forks(void);
bool ends(void);
bool errors(void);
bool errors_end(void);

#endif
