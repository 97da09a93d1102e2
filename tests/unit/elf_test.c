/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Look-ups without the dynamic linker (os/elf.h) find what the dynamic linker finds. */
#include <dlfcn.h>
#include <stddef.h>

#include "lib/suite.h"
#include "os/elf.h"

/* Functions of one version, of several, and weak ones. */
static const char *const names[] = {"pthread_mutex_lock", "pthread_create", "sem_post", "dlsym",    "getpid", "fopen",
                                    "nanosleep",          "syscall",        "fork",     "sigaction"};
enum { N_NAMES = sizeof names / sizeof *names };

static bool are_next(void) {
    bool are = true;
    for (unsigned i = 0; i < N_NAMES; i++)
        are = are && (void *)(uintptr_t)sbt_elf_next(names[i]) == dlsym(RTLD_NEXT, names[i]);
    return are;
}

TEST(elf__a_function_is_found_where_the_dynamic_linker_finds_it) {
    for (unsigned i = 0; i < N_NAMES; i++) {
        void *theirs = dlsym(RTLD_DEFAULT, names[i]);
        CHECK(theirs != NULL);
        CHECK((void *)(uintptr_t)sbt_elf_libc(names[i]) == theirs);
        CHECK((void *)(uintptr_t)sbt_elf_global(names[i]) == theirs);
        CHECK(sbt_elf_is_libcs(names[i], theirs));
    }
}

TEST(elf__a_condition_is_of_the_present_layout, "whatever the dynamic linker finds without a version") {
    void *theirs = dlvsym(RTLD_DEFAULT, "pthread_cond_wait", "GLIBC_2.3.2");
    CHECK(theirs == NULL || (void *)(uintptr_t)sbt_elf_next("pthread_cond_wait") == theirs);
}

TEST(elf__the_next_is_the_same_before_and_after_start_up) {
    CHECK(are_next());
    sbt_elf_start();
    CHECK(are_next());
    /* Behind the C library: what is not among the objects that were read at start-up. */
    CHECK((void *)(uintptr_t)sbt_elf_next("__tls_get_addr") == dlsym(RTLD_NEXT, "__tls_get_addr"));
}

/* A resolver may choose it: then only the dynamic linker knows where it is, and nothing behind it is taken instead. */
TEST(elf__of_what_is_loaded_later_nothing_hides_the_c_librarys) {
    void *module = dlopen(MODULE, RTLD_NOW | RTLD_LOCAL);
    ck_assert_ptr_nonnull(module);
    void *its = dlsym(module, "wcsnlen"), *next = (void *)(uintptr_t)sbt_elf_next("wcsnlen");
    CHECK(its != NULL && next != its && (next == NULL || next == dlsym(RTLD_NEXT, "wcsnlen")));
    CHECK((void *)(uintptr_t)sbt_elf_global("wcsnlen") != its);
    CHECK((void *)(uintptr_t)sbt_elf_next("of_module_alone") == dlsym(module, "of_module_alone"));
    dlclose(module);
}

TEST(elf__what_is_not_there_is_not_found) {
    CHECK(sbt_elf_libc("pthread_mutex_lock_") == NULL);
    CHECK(sbt_elf_next("no_such_function") == NULL);
    CHECK(sbt_elf_global("no_such_function") == NULL);
    CHECK(sbt_elf_libc("environ") == NULL); /* no function */
    CHECK(!sbt_elf_is_libcs("pthread_mutex_lock", (void *)(uintptr_t)are_next));
}
