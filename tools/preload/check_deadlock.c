/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Is a run deadlocked? The library says of a process that no thread of it can go on, and takes that back if a signal
 * comes. A signal may come from another process of the run. So a run is ended when all its processes have said so.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_run.h"

static const char stuck_words[] = "subutai: deadlock in process ", over_words[] = "subutai: no deadlock in process ";

struct processes {
    unsigned long *id;
    size_t n;
};

static size_t find(const struct processes *p, unsigned long id) {
    size_t i = 0;
    while (i < p->n && p->id[i] != id)
        i++;
    return i;
}

static void add(struct processes *p, unsigned long id) {
    p->id = cmd_reallocate(p->id, p->n + 1, sizeof *p->id);
    p->id[p->n++] = id;
}

static void take_line(struct processes *stuck, const char *line) {
    unsigned long id;
    if (strncmp(line, stuck_words, sizeof stuck_words - 1) == 0) {
        add(stuck, strtoul(line + sizeof stuck_words - 1, NULL, 10));
    } else if (strncmp(line, over_words, sizeof over_words - 1) == 0) {
        id = strtoul(line + sizeof over_words - 1, NULL, 10);
        for (size_t i; (i = find(stuck, id)) < stuck->n;)
            stuck->id[i] = stuck->id[--stuck->n];
    }
}

static struct processes read_stuck(const char *said) {
    struct processes stuck = {NULL, 0};
    char *line = NULL;
    size_t size = 0;
    FILE *file = fopen(said, "re");
    while (file != NULL && getline(&line, &size, file) > 0)
        take_line(&stuck, line);
    free(line);
    if (file != NULL)
        fclose(file);
    return stuck;
}

struct process {
    unsigned long id, parent;
    pid_t group;
};

/* False: it is none that lives. */
static bool read_process(const char *name, struct process *p) {
    if (name[0] < '1' || name[0] > '9')
        return false;
    char *path = cmd_format("/proc/%s/stat", name), text[512];
    FILE *file = fopen(path, "re");
    free(path);
    if (file == NULL)
        return false;
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = '\0';
    const char *end = strrchr(text, ')'); /* of its name, which may hold anything */
    char state;
    p->id = strtoul(name, NULL, 10);
    return end != NULL && sscanf(end + 1, " %c %lu %d", &state, &p->parent, &p->group) == 3 && state != 'Z' &&
           state != 'X';
}

static bool is_stuck(const struct processes *stuck, unsigned long id) {
    return find(stuck, id) < stuck->n;
}

/*
 * The first process too: it may end at any moment otherwise. One that has ended is no deadlock: a handler may have
 * ended it. A child in another group may send a signal as well. Also false if /proc cannot be read.
 */
static bool are_all(const struct processes *stuck, pid_t group) {
    DIR *directory = opendir("/proc");
    bool all = directory != NULL, has_first = false;
    struct process p;
    for (const struct dirent *entry; all && (entry = readdir(directory)) != NULL;)
        if (read_process(entry->d_name, &p) && (p.group == group || is_stuck(stuck, p.parent))) {
            all = is_stuck(stuck, p.id);
            has_first = has_first || p.id == (unsigned long)group;
        }
    if (directory != NULL)
        closedir(directory);
    return all && has_first;
}

bool check_is_deadlocked(const char *said, pid_t group) {
    struct processes stuck = read_stuck(said);
    bool is = is_stuck(&stuck, (unsigned long)group) && are_all(&stuck, group);
    free(stuck.id);
    return is;
}

/* ---- in the logs ---- */

void check_deadlock_forget(struct check_run *run, size_t n) {
    while (run->n_stuck > n) {
        free(run->stuck[--run->n_stuck].text);
        free(run->stuck[run->n_stuck].place);
    }
}

void check_deadlock_add(struct check_run *run, const struct schedule_log *log, const struct schedule_event *e) {
    struct symbols *symbols = symbols_new();
    char *site = schedule_site(log, e->site);
    run->stuck = cmd_reallocate(run->stuck, run->n_stuck + 1, sizeof *run->stuck);
    run->stuck[run->n_stuck++] = (struct check_stuck){
        .process = schedule_header_of(log)->process,
        .thread = e->thread,
        .op = (enum schedule_op)e->what,
        .object = e->object,
        .other = e->other,
        .place = site != NULL && site[0] != '\0' ? cmd_format("%s", symbols_name(symbols, site)) : NULL,
        .text = schedule_what_text(log, symbols, e),
    };
    free(site);
    symbols_free(symbols);
}
