/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Scenes of profile-subject that are in a file of their own. Each prints what profile-check is to find. */
#ifndef PROFILE_SUBJECT_H
#define PROFILE_SUBJECT_H

void beside(void);
void signals(void);
void relocks(void);
void ways(void);
void coroutines(void);

#endif
