/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "observe/errors.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

#include "abi/export.h"
#include "os/elf.h"

enum { LENGTH = 1024 };

static _Thread_local struct {
    bool is_kept; /* text is an error that the program has not asked for */
    char text[LENGTH];
} own __attribute__((tls_model("initial-exec")));

/* The C library's error, which it then forgets. */
static const char *ask(void) {
    static sbt_function *function; /* atomic; each thread finds the same */
    sbt_function *real = __atomic_load_n(&function, __ATOMIC_RELAXED);
    if (real == NULL) {
        real = sbt_elf_libc("dlerror"); /* not in it before 2.34: then in what is behind this library */
        if (real == NULL)
            real = sbt_elf_next("dlerror");
        __atomic_store_n(&function, real, __ATOMIC_RELAXED);
    }
    return real != NULL ? ((char *(*)(void))real)() : NULL;
}

/* Into own.text; false: there was none. */
static bool take(void) {
    const char *said = ask();
    if (said == NULL)
        return false;
    unsigned i = 0;
    for (; i < LENGTH - 1 && said[i] != '\0'; i++)
        own.text[i] = said[i];
    own.text[i] = '\0';
    return true;
}

void rec_errors_keep(void) {
    if (take())
        own.is_kept = true;
}

/* What the recorder's questions have left is no error of the program's, and must not hide the one that is kept. */
void rec_errors_drop(void) {
    ask();
}

SBT_EXPORT char *dlerror(void) {
    const bool is_new = take(), is_kept = own.is_kept;
    own.is_kept = false;
    return is_new || is_kept ? own.text : NULL;
}
