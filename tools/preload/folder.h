/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The folder of a command that runs a program under the engine det: logs and hint files, while the runs last. */
#ifndef CMD_FOLDER_H
#define CMD_FOLDER_H

/* A new folder in TMPDIR, or /tmp; it is removed at exit. Refuses if there can be none. Once. */
const char *folder_make(const char *subcommand);
/* The folder and the files in it; nothing if there is none. */
void folder_remove(void);
/* Call `visit` for each file in it with a name that begins so; "": for all. */
void folder_visit(const char *prefix, void (*visit)(void *context, int directory, const char *name), void *context);
/* Remove these. */
void folder_remove_files(const char *prefix);

#endif
