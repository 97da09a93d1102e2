/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What advice would bring, from the simulator: the trace replayed on the host with glibc's waiting, and with switching,
 * or changed as the advice says. `subutai predict` runs as a child, because its simulations end the process where they
 * cannot go on.
 */
#include "report_predict.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "change.h"
#include "command.h"
#include "own_child.h"
#include "progress.h"

static json_t *predict(const char *path, const char *syncs) {
    const char *const words[] = {"subutai", "predict", "--machine", "host", "--sync",
                                 syncs,     "--json",  "--",        path,   NULL};
    return own_child_json(words, CMD_OK);
}

static double makespan_ns(const json_t *document, const char *sync) {
    size_t i;
    json_t *run;
    json_array_foreach(json_object_get(document, "runs"), i, run) {
        const char *name = json_string_value(json_object_get(run, "sync"));
        if (name != NULL && strcmp(name, sync) == 0)
            return json_number_value(json_object_get(run, "makespan_ns"));
    }
    return 0;
}

/* The part of the time that is saved, at most 1; below 0 the change costs time. False: it could not be simulated. */
static bool saved(double before, double after, double *gain) {
    if (before <= 0 || after <= 0)
        return false;
    *gain = 1 - after / before;
    return true;
}

static bool by_switching(const char *path, double *gain) {
    json_t *document = predict(path, "glibc,switch");
    double before = makespan_ns(document, "glibc"), after = makespan_ns(document, "switch");
    json_decref(document);
    return saved(before, after, gain);
}

/* The trace's time in the simulator, changed or as it is; 0: it has none, and a line says why. */
static double time_of(const struct sbt_trace *trace, const struct rep_report *r, const struct rep_advice *a,
                      bool changed) {
    const char *folder = getenv("TMPDIR");
    char *path = cmd_format("%s/subutai-XXXXXX", folder != NULL && folder[0] != '\0' ? folder : "/tmp");
    double ns = 0;
    struct progress progress = progress_begin("changing the trace");
    int fd = mkstemp(path),
        error = fd < 0 ? errno : rep_change_write(trace, r, a, changed, path, progress_callback, &progress);
    progress_end(&progress);
    if (error != 0) {
        cmd_warn("report: --predict: '%s': %s", path, strerror(error));
    } else {
        json_t *document = predict(path, "glibc");
        ns = makespan_ns(document, "glibc");
        json_decref(document);
    }
    if (fd >= 0) {
        unlink(path);
        close(fd);
    }
    free(path);
    return ns;
}

/* Times of the trace as it is: without sleeps and with them; 0: not known yet. */
struct unchanged {
    double ns[2];
};

static bool by_change(const struct sbt_trace *trace, const struct rep_report *r, const struct rep_advice *a,
                      struct unchanged *unchanged, double *gain) {
    double *before = &unchanged->ns[rep_change_has_sleeps(a)];
    if (*before <= 0)
        *before = time_of(trace, r, a, false);
    return saved(*before, *before > 0 ? time_of(trace, r, a, true) : 0, gain);
}

static bool is_about_switching(const struct rep_advice *a) {
    return a->cause == REP_CONVOY || a->cause == REP_BARRIER_RELEASE;
}

void report_simulate(const char *path, const struct sbt_trace *trace, struct rep_report *r) {
    struct unchanged unchanged = {{0}};
    bool switched = false, known = false;
    double switch_gain = 0;
    for (unsigned i = 0; i < r->n_advice; i++) {
        struct rep_advice *a = &r->advice[i];
        bool switching = is_about_switching(a);
        double gain = 0;
        a->unsimulated = r->info.profile ? "a profile lacks calls (legal: a trace of subutai record)"
                         : switching     ? NULL
                                         : rep_change_refused(r, a);
        if (a->unsimulated != NULL)
            continue;
        if (switching && !switched) {
            known = by_switching(path, &switch_gain);
            switched = true;
        }
        if (switching ? !known : !by_change(trace, r, a, &unchanged, &gain)) {
            a->unsimulated = "the simulator could not go on";
            continue;
        }
        a->basis = REP_BASIS_SIMULATED;
        a->gain_ns = (switching ? switch_gain : gain) * (double)r->wall_ns;
    }
}
