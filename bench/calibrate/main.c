/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* subutai-calibrate PART [SECONDS]: measures one part and prints one JSON object; see calibrate.h. */
#include "calibrate.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *part_name = "";
char *const *arguments;

static void say(const char *format, va_list list) {
    fprintf(stderr, "subutai-calibrate%s%s: ", part_name[0] != '\0' ? " " : "", part_name);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
}

_Noreturn void fail(const char *format, ...) {
    va_list list;
    va_start(list, format);
    say(format, list);
    va_end(list);
    _exit(1); /* other threads may run: no clean-up */
}

_Noreturn void refuse(const char *format, ...) {
    va_list list;
    va_start(list, format);
    say(format, list);
    va_end(list);
    _exit(2);
}

void must(int error, const char *call) {
    if (error != 0)
        fail("%s: %s", call, strerror(error));
}

static const struct {
    const char *name;
    void (*measure)(double seconds); /* NULL: prints what the machine is */
} parts[] = {{"machine", NULL},          {"kernel", measure_kernel}, {"turns", measure_turns},   {"core", measure_core},
             {"memory", measure_memory}, {"sync", measure_sync},     {"fibers", measure_fibers}, {NULL, NULL}};

int main(int argc, char **argv) {
    size_t part = 0;
    arguments = argv;
    char *end = NULL;
    double seconds = argc > 2 ? strtod(argv[2], &end) : 1;
    while (argc > 1 && parts[part].name != NULL && strcmp(argv[1], parts[part].name) != 0)
        part++;
    if (argc < 2 || argc > 3 || parts[part].name == NULL)
        refuse("usage: subutai-calibrate PART [SECONDS] (legal: machine, kernel, turns, core, memory, sync, fibers)");
    part_name = parts[part].name;
    if (end != NULL && (*end != '\0' || end == argv[2] || !(seconds >= 0.01 && seconds <= 60)))
        refuse("illegal number of seconds '%s' (legal: 0.01 to 60)", argv[2]);
    if (parts[part].measure == NULL) {
        print_machine();
    } else {
        parts[part].measure(seconds);
        samples_print();
    }
    if (fflush(stdout) != 0)
        fail("standard output: %s", strerror(errno));
    return 0;
}
