/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Loads plug-ins with tasks, each in a scope of its own, of which the first calls the second. usage: openmp-plugins
 * FILE OTHER */
#include <dlfcn.h>
#include <stdio.h>

typedef long work(int rounds, long (*other)(int rounds, void *other));

static work *load(const char *file) {
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    work *found = NULL;
    if (library != NULL)
        *(void **)&found = dlsym(library, "plugin_work");
    return found;
}

static work *second;

static long call_second(int rounds, void *other) {
    (void)other;
    return second(rounds, NULL);
}

int main(int argc, char **argv) {
    work *first = argc == 3 ? load(argv[1]) : NULL;
    second = first != NULL ? load(argv[2]) : NULL;
    if (second == NULL)
        return 2;
    printf("%ld wrong\n", first(10, call_second));
    return 0;
}
