/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The runs of `subutai check`, several at a time. Each has its log in a folder that is removed at the end, whatever
 * ends the command. A signal that ends the command ends all runs first.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check_run.h"
#include "env.h"
#include "progress.h"

#define LOOK_NS INT64_C(100000000) /* the longest pause between two looks at the clock */

struct slot {
    pid_t pid; /* 0: free */
    size_t number;
    int64_t start_ns, deadline_ns;
    bool timed_out;
    struct trial trial;
};

char *check_log(const struct check *c, size_t order, size_t run) {
    return cmd_format("%s/%zu-%zu", c->folder, order, run);
}

/* ---- the folder ---- */

static char folder[PATH_MAX]; /* "": none */

static void remove_folder(void) {
    DIR *d = folder[0] != '\0' ? opendir(folder) : NULL;
    for (struct dirent *entry; d != NULL && (entry = readdir(d)) != NULL;)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(d), entry->d_name, 0);
    if (d != NULL)
        closedir(d);
    if (folder[0] != '\0')
        rmdir(folder);
    folder[0] = '\0';
}

static void make_folder(struct check *c) {
    const char *parent = getenv("TMPDIR");
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/subutai-check-XXXXXX", parent != NULL && parent[0] == '/' ? parent : "/tmp");
    if (mkdtemp(path) == NULL)
        cmd_refuse("check: '%s': %s (legal: TMPDIR, a folder that can be written)", path, strerror(errno));
    memcpy(folder, path, sizeof folder);
    atexit(remove_folder);
    c->folder = folder;
}

/* Of that run, and of the processes that it has forked. */
static void remove_logs(const struct check *c, size_t order, size_t run) {
    char prefix[64];
    int n = snprintf(prefix, sizeof prefix, "%zu-%zu", order, run);
    DIR *d = opendir(c->folder);
    for (struct dirent *entry; d != NULL && (entry = readdir(d)) != NULL;)
        if (strncmp(entry->d_name, prefix, (size_t)n) == 0 && (entry->d_name[n] == '.' || entry->d_name[n] == '\0'))
            unlinkat(dirfd(d), entry->d_name, 0);
    if (d != NULL)
        closedir(d);
}

/* ---- a run ---- */

static char **environment(struct check *c, size_t order, size_t run) {
    struct sbt_options options;
    struct settings settings = c->settings;
    settings.text[SBT_OPT_SEED] = cmd_format("%ju", (uintmax_t)c->orders[order].seed);
    settings.text[SBT_OPT_SCHEDULE] = check_log(c, order, run);
    return env_build("check", environ, &settings, NULL, c->library, c->library_name, &options);
}

static void begin(struct check *c, struct slot *slot, size_t number) {
    char **env = environment(c, number / c->n_runs, number % c->n_runs);
    slot->number = number;
    slot->timed_out = false;
    slot->start_ns = trial_now_ns();
    slot->deadline_ns = c->program.timeout_ns > 0 ? slot->start_ns + c->program.timeout_ns : INT64_MAX;
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

static void end(struct check *c, struct slot *slot, int status, check_done *done) {
    size_t order = slot->number / c->n_runs, number = slot->number % c->n_runs;
    struct check_run *run = &c->orders[order].runs[number];
    kill(-slot->pid, SIGKILL); /* descendants that have outlived the program */
    run->trial = slot->trial;
    run->trial.status = status;
    run->trial.timed_out = slot->timed_out;
    run->trial.wall_ns = trial_now_ns() - slot->start_ns;
    uint64_t hash = hash_file(hash_file(UINT64_C(0xcbf29ce484222325), slot->trial.out), slot->trial.err);
    run->output = hash_bytes(hash_bytes(hash, &status, sizeof status), &slot->timed_out, sizeof slot->timed_out);
    slot->pid = 0;
    done(c, order, number);
    trial_release(&run->trial);
    if (number > 0)
        remove_logs(c, order, number); /* the first one is what the others are compared with */
    if (c->orders[order].n_done == c->n_runs)
        remove_logs(c, order, 0);
}

/* ---- all ---- */

static void end_all(struct slot *slots, size_t n, int signal_number) {
    for (size_t i = 0; i < n; i++)
        if (slots[i].pid != 0)
            kill(-slots[i].pid, SIGKILL);
    for (size_t i = 0; i < n; i++)
        if (slots[i].pid != 0)
            waitpid(slots[i].pid, NULL, 0);
    remove_folder();
    trial_end_by(signal_number);
}

static void look_at_clock(struct slot *slots, size_t n) {
    int64_t now = trial_now_ns();
    for (size_t i = 0; i < n; i++)
        if (slots[i].pid != 0 && now >= slots[i].deadline_ns) {
            slots[i].timed_out = true;
            slots[i].deadline_ns = INT64_MAX;
            kill(-slots[i].pid, SIGKILL);
        }
}

static size_t reap(struct check *c, struct slot *slots, size_t n, check_done *done) {
    size_t ended = 0;
    for (size_t i = 0; i < n; i++) {
        int status;
        if (slots[i].pid != 0 && waitpid(slots[i].pid, &status, WNOHANG) == slots[i].pid) {
            end(c, &slots[i], status, done);
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
    make_folder(c);
    while (ended < n_all) {
        for (size_t i = 0; i < c->n_jobs && next < n_all && may_begin(c, next); i++)
            if (slots[i].pid == 0)
                begin(c, &slots[i], next++);
        int got = trial_wait_signal(LOOK_NS);
        if (got > 0 && got != SIGCHLD) {
            progress_end(&progress);
            end_all(slots, c->n_jobs, got);
        }
        look_at_clock(slots, c->n_jobs);
        ended += reap(c, slots, c->n_jobs, done);
        progress_show(&progress, (double)ended / (double)n_all);
    }
    progress_end(&progress);
    free(slots);
    remove_folder();
}
