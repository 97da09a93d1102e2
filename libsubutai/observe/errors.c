/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "observe/errors.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

#include "abi/export.h"
#include "observe/record.h"
#include "os/elf.h"
#include "os/real.h"

enum { LENGTH = 4096 };

/* No symbol: the C library's error of it stands for the one that is kept. */
#define MARK "subutai: an error that is kept"

/* A thread's local variables are in its stack, which may be small: the text is not there. */
static _Thread_local struct {
    bool is_kept; /* text is an error that the program has not asked for, and the C library has the mark */
    char *text;   /* [LENGTH]; NULL: there has been no error, or no memory for it */
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

/* Into own.text; false: there is none. What was kept is gone if the program has made another call since. */
static bool take(void) {
    const char *said = ask();
    if (said == NULL)
        return false;
    if (own.is_kept && strstr(said, MARK) != NULL)
        return true;
    if (own.text == NULL && (own.text = rec_map(LENGTH)) == NULL)
        return false;
    unsigned i = 0;
    for (; i < LENGTH - 1 && said[i] != '\0'; i++)
        own.text[i] = said[i];
    own.text[i] = '\0';
    return true;
}

void rec_errors_keep(void) {
    own.is_kept = take();
}

/* What the recorder's questions have left is no error of the program's. */
void rec_errors_drop(void) {
    ask();
    if (own.is_kept)
        sbt_real_dlsym()(RTLD_DEFAULT, MARK);
}

void rec_errors_end(void) {
    if (own.text != NULL)
        sbt_syscall3(SYS_munmap, own.text, LENGTH, 0);
    own.text = NULL;
    own.is_kept = false;
}

SBT_EXPORT char *dlerror(void) {
    const bool is_error = take();
    own.is_kept = false;
    return is_error ? own.text : NULL;
}
