/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `subutai calibrate`: what this machine costs, for predictions on it.
 *
 * A busy machine is refused before the measurement, if half a second shows it, and after it: what others did meanwhile
 * is known only then. With --force there is a file in any case, and it says so.
 */
#include <stdlib.h>
#include <time.h>

#include "calibrate.h"
#include "command.h"
#include "find.h"
#include "output.h"
#include "trial.h"

enum { CAL_OUT, CAL_JSON, CAL_SECONDS, CAL_FORCE, CAL_PROGRAM, CAL_LIBRARY };
static const struct own_option calibrate_options[] = {
    [CAL_OUT] = {'o', "out", "FILE", "write the costs to FILE, for predict --machine host:FILE"},
    [CAL_JSON] = {0, "json", NULL, "print what the file would have, in place of the table"},
    [CAL_SECONDS] = {0, "seconds", "S", "how long to measure, 1 to 25 (default 20)"},
    [CAL_FORCE] = {0, "force", NULL, "measure a busy machine too; the file says that it was"},
    [CAL_PROGRAM] = {0, "program", "FILE", "run FILE instead of the subutai-calibrate that belongs to this command"},
    [CAL_LIBRARY] = {0, "library", "FILE", "preload FILE instead of the library that belongs to this command"},
    {0, NULL, NULL, NULL},
};

/* Long enough for some ticks of each CPU. */
#define LOOK_NS 500000000

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void refuse_busy(const struct busy_shares *shares, bool force, const char *when) {
    if (is_busy(shares) && !force)
        cmd_refuse("calibrate: the machine %s busy: other processes %s %.1f %% of the CPUs' time, the hypervisor %s "
                   "%.1f %% (legal: at most %.0f and %.0f %%; --force measures all the same)",
                   when[0] == 'b' ? "is" : "was", when[0] == 'b' ? "use" : "used", shares->others * 100,
                   when[0] == 'b' ? "takes" : "took", shares->stolen * 100, BUSY_SHARE_MAX * 100,
                   STOLEN_SHARE_MAX * 100);
}

/* True: the machine is busy, and --force was given. */
static bool look_before(bool force) {
    struct cpu_time before = cpu_time_now(), after;
    nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    after = cpu_time_now();
    struct busy_shares shares = busy_shares(&before, &after, 0);
    refuse_busy(&shares, force, "before");
    return is_busy(&shares);
}

static void measure(struct calibration *c, bool force) {
    struct cpu_time before = cpu_time_now(), after;
    double begin = now_s();
    c->own_s = 0;
    c->at = (int64_t)time(NULL);
    calibrate_measure(c);
    after = cpu_time_now();
    c->took_s = now_s() - begin;
    c->busy = busy_shares(&before, &after, c->own_s);
    refuse_busy(&c->busy, force, "meanwhile");
    c->forced = c->forced || is_busy(&c->busy);
}

static void put(const struct calibration *c, struct output *out, bool json) {
    size_t n;
    char *text = calibrate_text(c, &n);
    if (out != NULL) {
        fwrite(text, 1, n, output_file(out)); /* output_close looks for errors */
        output_close(out);
    }
    if (json)
        fwrite(text, 1, n, stdout);
    else
        calibrate_table(c, stdout);
    free(text);
}

static int calibrate_main(const struct command *self, int argc, char **argv) {
    static struct calibration c = {.seconds = 20};
    const char *path = NULL, *program = NULL, *library = NULL;
    bool json = false, force = false;
    struct output *out = NULL;
    struct args args = {.command = self, .argc = argc, .argv = argv};
    for (int option; (option = args_next(&args)) != ARGS_END;) {
        switch (option) {
        case ARGS_OPERAND:
            cmd_refuse("calibrate: unexpected argument '%s' (legal: options)", args.value);
        case CAL_OUT:
            path = args.value;
            break;
        case CAL_JSON:
            json = true;
            break;
        case CAL_SECONDS:
            c.seconds = (double)args_seconds_ns(&args, "--seconds", args.value, 25) / 1e9;
            if (c.seconds < 1)
                cmd_refuse("calibrate: --seconds: illegal value '%s' (legal: 1 to 25)", args.value);
            break;
        case CAL_FORCE:
            force = true;
            break;
        case CAL_PROGRAM:
            program = args.value;
            break;
        case CAL_LIBRARY:
            library = args.value;
            break;
        default: /* an option of the table without a case here */
            abort();
        }
    }
    c.program = find_calibrate("calibrate", program);
    c.library = find_library("calibrate", library);
    trial_take_signals(); /* before there is a file that a signal could leave behind */
    if (path != NULL)
        out = output_open("calibrate: --out", path, NULL);
    calibrate_machine(&c);
    c.forced = look_before(force);
    measure(&c, force);
    put(&c, out, json);
    return CMD_OK;
}

const struct command command_calibrate = {
    .name = "calibrate",
    .synopsis = "[-o FILE] [options]",
    .summary = "measures what synchronization, switches and memory cost on this machine",
    .details = "Prints a table of medians with their spread, and writes them to FILE. Other programs should not run\n"
               "meanwhile: a busy machine is refused.\n"
               "Exit status 0, 1 if a measurement failed, 2 if the machine is busy or nothing was measured.\n",
    .options = calibrate_options,
    .main = calibrate_main,
};
