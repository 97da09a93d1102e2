/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What advice would bring, from the simulator: the trace replayed on the host with glibc's waiting, and with switching,
 * or changed as the advice says. `subutai predict` runs as a child, because its simulations end the process where they
 * cannot go on.
 */
#include "report_predict.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "change.h"
#include "command.h"

/* What the child prints on stdout, as JSON; NULL: it failed, and has said why, or it cannot be run. */
static json_t *predict(const char *path, const char *syncs) {
    int ends[2], status = 0;
    if (pipe(ends) != 0)
        return NULL;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl("/proc/self/exe", "subutai", "predict", "--machine", "host", "--sync", syncs, "--json", "--", path,
              (char *)NULL);
        _exit(CMD_REFUSED);
    }
    close(ends[1]);
    FILE *from = fdopen(ends[0], "r");
    json_t *document = pid > 0 && from != NULL ? json_loadf(from, 0, NULL) : NULL;
    if (from != NULL)
        fclose(from);
    if (pid > 0 && (waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)) {
        json_decref(document);
        return NULL;
    }
    return document;
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

/* The part (0 to 1) of the time that is saved, at least 0. False: it could not be simulated. */
static bool saved(double before, double after, double *gain) {
    *gain = after < before ? 1 - after / before : 0;
    return before > 0 && after > 0;
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
    int fd = mkstemp(path), error = fd < 0 ? errno : rep_change_write(trace, r, a, changed, path);
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

static bool by_change(const struct sbt_trace *trace, const struct rep_report *r, const struct rep_advice *a,
                      double *gain) {
    double before = time_of(trace, r, a, false), after = before > 0 ? time_of(trace, r, a, true) : 0;
    return saved(before, after, gain);
}

static bool is_about_switching(const struct rep_advice *a) {
    return a->cause == REP_CONVOY || a->cause == REP_BARRIER_RELEASE;
}

void report_simulate(const char *path, const struct sbt_trace *trace, struct rep_report *r) {
    bool switched = false, known = false;
    double switch_gain = 0;
    for (unsigned i = 0; i < r->n_advice; i++) {
        struct rep_advice *a = &r->advice[i];
        double gain = 0;
        a->unsimulated = is_about_switching(a) ? NULL : rep_change_refused(r, a);
        if (r->info.profile)
            a->unsimulated = "a profile lacks calls (legal: a trace of subutai record)";
        if (a->unsimulated != NULL)
            continue;
        if (is_about_switching(a) && !switched) {
            known = by_switching(path, &switch_gain);
            switched = true;
        }
        if (is_about_switching(a))
            gain = switch_gain;
        if (is_about_switching(a) ? !known : !by_change(trace, r, a, &gain)) {
            a->unsimulated = "the simulator could not go on";
            continue;
        }
        a->basis = REP_BASIS_SIMULATED;
        a->gain_ns = gain * (double)r->wall_ns;
    }
}
