/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The runs of `subutai check`, several at a time. Whatever ends the command, a signal or a refusal, ends all runs first
 * and removes their logs.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check_run.h"
#include "env.h"
#include "folder.h"
#include "progress.h"

#define LOOK_NS INT64_C(100000000) /* the longest pause between two looks at the clock */

struct slot {
    pid_t pid; /* 0: free */
    size_t number;
    int64_t deadline_ns, stuck_ns; /* since when it seems to be deadlocked; 0: it does not */
    bool timed_out, is_deadlock;
    struct trial trial;
};

/* ---- a run ---- */

/* The whole group; the program's status. */
static int end_group(struct slot *slot) {
    int status = 0;
    kill(-slot->pid, SIGKILL);
    waitpid(slot->pid, &status, 0);
    slot->pid = 0;
    return status;
}

static char **environment(struct check *c, size_t order, size_t run) {
    struct sbt_options options;
    struct settings settings = c->settings;
    settings.text[SBT_OPT_SEED] = cmd_format("%ju", (uintmax_t)c->orders[order].seed);
    settings.text[SBT_OPT_SCHEDULE] = check_log(c, order, run);
    if (c->keeps_said)
        settings.text[SBT_OPT_LOG] = check_said(c, order, run);
    return env_build("check", environ, &settings, NULL, c->library, c->library_name, &options);
}

static void begin(struct check *c, struct slot *slot, size_t number) {
    char **env = environment(c, number / c->n_runs, number % c->n_runs);
    slot->number = number;
    slot->stuck_ns = 0;
    slot->timed_out = slot->is_deadlock = false;
    slot->deadline_ns = trial_now_ns() + c->program.timeout_ns;
    slot->pid = trial_begin(&c->program, env, &slot->trial);
    free(env);
}

/* FNV-1a. */
static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n) {
    for (const uint8_t *at = bytes; n-- > 0; at++)
        hash = (hash ^ *at) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t hash_file(uint64_t hash, int fd) {
    char buffer[1 << 16];
    off_t at = 0;
    for (ssize_t n; (n = pread(fd, buffer, sizeof buffer, at)) > 0; at += n)
        hash = hash_bytes(hash, buffer, (size_t)n);
    return hash_bytes(hash, &at, sizeof at);
}

/* The program has ended. Descendants that have outlived it are ended, while no other process can have its id. */
static void end(struct check *c, struct slot *slot, check_done *done) {
    size_t order = slot->number / c->n_runs, number = slot->number % c->n_runs;
    struct check_run *run = &c->orders[order].runs[number];
    int status = end_group(slot);
    run->trial = slot->trial;
    run->trial.status = status;
    run->trial.timed_out = slot->timed_out;
    run->is_deadlock = slot->is_deadlock;
    uint64_t hash = hash_file(hash_file(UINT64_C(0xcbf29ce484222325), slot->trial.out), slot->trial.err);
    run->output = hash_bytes(hash_bytes(hash, &status, sizeof status), &slot->timed_out, sizeof slot->timed_out);
    done(c, order, number);
    if (number > 0) { /* the first one is what the others are compared with */
        trial_release(&run->trial);
        check_logs_remove(c, order, number);
    }
    if (c->orders[order].n_done == c->n_runs) {
        trial_release(&c->orders[order].runs[0].trial);
        check_logs_remove(c, order, 0);
    }
}

/* ---- all ---- */

static struct slot *all_slots; /* while there are runs */
static size_t n_slots;

static void end_all(void) {
    for (size_t i = 0; i < n_slots; i++)
        if (all_slots[i].pid != 0)
            kill(-all_slots[i].pid, SIGKILL);
    for (size_t i = 0; i < n_slots; i++)
        if (all_slots[i].pid != 0)
            end_group(&all_slots[i]);
}

/*
 * For the time between two looks: a process that a handler is about to end seems to be deadlocked, too, when the
 * process that sent the signal has ended. Where the library's lines are the program's output too, only --timeout ends a
 * deadlock, or the library itself.
 */
static bool is_deadlocked(const struct check *c, struct slot *slot, int64_t now) {
    if (!c->keeps_said || c->ends_itself)
        return false;
    char *said = check_said(c, slot->number / c->n_runs, slot->number % c->n_runs);
    if (!check_is_deadlocked(said, slot->pid))
        slot->stuck_ns = 0;
    else if (slot->stuck_ns == 0)
        slot->stuck_ns = now;
    free(said);
    return slot->stuck_ns != 0 && now - slot->stuck_ns >= LOOK_NS;
}

static void look_at_slots(const struct check *c, struct slot *slots, size_t n) {
    int64_t now = trial_now_ns();
    for (size_t i = 0; i < n; i++)
        if (slots[i].pid != 0 && !slots[i].timed_out &&
            ((slots[i].is_deadlock = is_deadlocked(c, &slots[i], now)) || now >= slots[i].deadline_ns)) {
            slots[i].timed_out = true; /* its end says nothing more */
            slots[i].deadline_ns = INT64_MAX;
            kill(-slots[i].pid, SIGKILL);
        }
}

static size_t reap(struct check *c, struct slot *slots, size_t n, check_done *done) {
    size_t ended = 0;
    for (size_t i = 0; i < n; i++) {
        siginfo_t info = {.si_pid = 0};
        if (slots[i].pid != 0 && waitid(P_PID, (id_t)slots[i].pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            info.si_pid != 0) {
            end(c, &slots[i], done);
            ended++;
        }
    }
    return ended;
}

/* The first run of an order comes before its others: they are compared with it. */
static bool may_begin(const struct check *c, size_t number) {
    return number % c->n_runs == 0 || c->orders[number / c->n_runs].n_done > 0;
}

void check_run_all(struct check *c, check_done *done) {
    size_t n_all = c->n_orders * c->n_runs, next = 0, ended = 0;
    struct slot *slots = cmd_allocate(c->n_jobs, sizeof *slots);
    struct progress progress = progress_begin("check");
    trial_take_signals();
    c->folder = folder_make("check");
    all_slots = slots;
    n_slots = c->n_jobs;
    atexit(end_all); /* before the folder is removed */
    while (ended < n_all) {
        for (size_t i = 0; i < c->n_jobs && next < n_all && may_begin(c, next); i++)
            if (slots[i].pid == 0)
                begin(c, &slots[i], next++);
        int got = trial_wait_signal(LOOK_NS);
        if (got > 0 && got != SIGCHLD) {
            progress_end(&progress);
            end_all();
            trial_end_by(got);
        }
        look_at_slots(c, slots, c->n_jobs);
        ended += reap(c, slots, c->n_jobs, done);
        progress_show(&progress, (double)ended / (double)n_all);
    }
    progress_end(&progress);
    n_slots = 0;
    free(slots);
    folder_remove();
}
