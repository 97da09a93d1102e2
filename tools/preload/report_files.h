/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What `subutai report` writes for a browser and for other programs, instead of printing. */
#ifndef CMD_REPORT_FILES_H
#define CMD_REPORT_FILES_H

#include <stdbool.h>
#include <stddef.h>

struct report_files {
    const char *html, *parquet, *speedscope, *perfetto; /* where to; NULL: not wanted */
};

/* As for the report that is printed. */
struct report_files_as {
    unsigned top; /* objects of the page; 0: not given */
    bool predict, try;
    const char *command;       /* NULL: the trace's */
    const char *delegate_from; /* NULL: not given */
};

bool report_files_wanted(const struct report_files *files);

/*
 * Write them. Perfetto's file is written here; for the others the process becomes Python, and this does not return.
 * Refuses what cannot be read or written, and several traces where one file holds one.
 */
void report_files_write(const struct report_files *files, const char *const *paths, size_t n_paths,
                        struct report_files_as as);

#endif
