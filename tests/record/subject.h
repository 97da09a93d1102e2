/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of record-subject share. Both functions end the process with status 7. */
#ifndef TESTS_RECORD_SUBJECT_H
#define TESTS_RECORD_SUBJECT_H

void subject_held(void);
void subject_cut(void);

#endif
