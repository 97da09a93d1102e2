/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files of `subutai report`; see report_files.h. */
#include "report_files.h"

#include "command.h"
#include "output.h"
#include "python.h"
#include "trace_events.h"

static bool need_python(const struct report_files *f) {
    return f->html != NULL || f->parquet != NULL || f->speedscope != NULL;
}

bool report_files_wanted(const struct report_files *files) {
    return need_python(files) || files->perfetto != NULL;
}

/* In one form for Python's reader: options with their values attached, then the traces. */
_Noreturn static void become_python(const struct report_files *f, const char *const *paths, size_t n_paths,
                                    struct report_files_as as) {
    char **words = cmd_allocate(n_paths + 9, sizeof *words);
    size_t n = 0;
    if (f->html != NULL)
        words[n++] = cmd_format("--html=%s", f->html);
    if (f->parquet != NULL)
        words[n++] = cmd_format("--parquet=%s", f->parquet);
    if (f->speedscope != NULL)
        words[n++] = cmd_format("--speedscope=%s", f->speedscope);
    if (as.top != 0)
        words[n++] = cmd_format("--top=%u", as.top);
    if (as.predict)
        words[n++] = cmd_format("--predict");
    if (as.try)
        words[n++] = cmd_format("--try");
    if (as.command != NULL)
        words[n++] = cmd_format("--command=%s", as.command);
    if (as.delegate_from != NULL)
        words[n++] = cmd_format("--delegate-from=%s", as.delegate_from);
    words[n++] = cmd_format("--");
    for (size_t i = 0; i < n_paths; i++)
        words[n++] = cmd_format("%s", paths[i]);
    python_become("report", "subutai.report.command", "report", words, n);
}

static void write_perfetto(const char *path, const char *trace_path) {
    struct trace_request request = {.path = trace_path, .command = "report", .thread = SBT_TRACE_NONE};
    struct sbt_trace_error error;
    struct sbt_trace *trace = sbt_trace_open(trace_path, &error);
    if (trace == NULL)
        cmd_refuse("report: '%s': at byte %ju: %s (legal: " TRACE_LEGAL ")", trace_path, (uintmax_t)error.offset,
                   error.reason);
    struct output *file = output_open("report: --perfetto", path, trace_path);
    request.out = output_file(file);
    trace_to_perfetto(&request, trace);
    output_close(file);
    sbt_trace_close(trace);
}

void report_files_write(const struct report_files *files, const char *const *paths, size_t n_paths,
                        struct report_files_as as) {
    if ((files->perfetto != NULL || files->speedscope != NULL) && n_paths > 1)
        cmd_refuse("report: %s: %zu traces (legal: one)", files->perfetto != NULL ? "--perfetto" : "--speedscope",
                   n_paths);
    if (files->perfetto != NULL)
        write_perfetto(files->perfetto, paths[0]);
    if (need_python(files))
        become_python(files, paths, n_paths, as);
}
