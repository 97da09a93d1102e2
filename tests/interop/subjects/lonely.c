/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* No threads, no pthread call: linked dynamically it must not notice the library, linked statically it must not even
 * see it. Prints the part of its environment that a user would miss, and its own idea of time, memory and files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    char *text = strdup("text");
    FILE *self = fopen(argv[0], "rb");
    printf("%d arguments, HOME %s, %s, self %s\n", argc, getenv("HOME") ? "set" : "unset", text ? text : "no memory",
           self ? "readable" : "unreadable");
    free(text);
    if (self != NULL)
        fclose(self);
    fprintf(stderr, "one line on stderr\n");
    return 42;
}
