/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What waiting by switching would bring, from the simulator: the trace replayed on the host with glibc's waiting and
 * with switching. `subutai predict` runs as a child, because its simulations end the process where they cannot go on.
 */
#include "report_predict.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"

/* What the child prints on stdout, as JSON; NULL: it failed, and has said why, or it cannot be run. */
static json_t *predict(const char *path) {
    int ends[2], status = 0;
    if (pipe(ends) != 0)
        return NULL;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl("/proc/self/exe", "subutai", "predict", "--machine", "host", "--sync", "glibc,switch", "--json", "--",
              path, (char *)NULL);
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

bool report_simulate(const char *path, double *gain) {
    json_t *document = predict(path);
    double before = makespan_ns(document, "glibc"), after = makespan_ns(document, "switch");
    json_decref(document);
    if (before <= 0 || after <= 0)
        return false;
    *gain = after < before ? 1 - after / before : 0;
    return true;
}
