/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sites, in libraries made here: which system-call instructions are found, and which libraries are refused. */
#include <stdarg.h>
#include <sys/syscall.h>

#include "core/sites.h"
#include "site_library.h"

/* A library of these functions: how many sites; -1: it is refused, for a reason that begins so. */
static int sites_in(const char *why, int n, ...) {
    struct library l = new_library();
    struct sbt_sites sites;
    va_list functions;
    va_start(functions, n);
    for (int i = 0; i < n; i++) {
        const char *bytes = va_arg(functions, const char *);
        add(&l, bytes, va_arg(functions, size_t));
    }
    va_end(functions);
    const char *got = find(&l, &sites);
    if (why == NULL && got != NULL)
        FAIL("refused: it %s", got);
    if (why != NULL && (got == NULL || strstr(got, why) == NULL))
        FAIL("%s, not: it %s", got != NULL ? got : "not refused", why);
    return got != NULL ? -1 : (int)sites.n;
}
#define F(bytes) bytes, sizeof(bytes) - 1

/* ---- what is found ---- */
TEST(site__known_bytes_are_found) {
    struct library l = new_library();
    struct sbt_sites sites;
    ADD(&l, NOP NOP RET);
    const size_t second = ADD(&l, "\xb8\xca\x00\x00\x00" SITE "\x75\xf3" RET), third = ADD(&l, SITE SITE RET);
    ck_assert_ptr_null(find(&l, &sites));
    CHECK_INT(sites.n, 3);
    CHECK_INT(sites.at[0] - (uintptr_t)l.code, second + 5);
    CHECK_INT(sites.at[1] - (uintptr_t)l.code, third);
    CHECK_INT(sites.at[2] - (uintptr_t)l.code, third + 6);
    CHECK(!sites.is_wide);
}

TEST(site__other_system_calls_refuse_the_library) {
    CHECK_INT(sites_in("not as known", 1, F(SYSCALL RET)), -1);
    CHECK_INT(sites_in("not as known", 2, F(SITE RET), F(SYSCALL RET)), -1);
    CHECK_INT(sites_in("not as known", 1, F(SYSCALL "\x48\x83\xf8\xdb" RET)), -1); /* -37 */
    CHECK_INT(sites_in("not as known", 1, F(SYSCALL "\x83\xf8\xda" RET)), -1);     /* %eax */
    CHECK_INT(sites_in("not as known", 1, F("\xcd\x80" RET)), -1);                 /* int $0x80 */
    CHECK_INT(sites_in("not as known", 1, F("\x0f\x34")), -1);                     /* sysenter */
}

TEST(site__in_the_middle_of_an_instruction_is_none) {
    CHECK_INT(sites_in(NULL, 1, F("\x48\xb8" SITE "\x00\x00" RET)), 0); /* movabs */
    CHECK_INT(sites_in(NULL, 1, F("\xb8\x0f\x05\x00\x00" RET)), 0);
    CHECK_INT(sites_in(NULL, 1, F("\x8b\x05\x0f\x05\x00\x00" RET)), 0); /* mov 0x50f(%rip), %eax */
}

TEST(site__cut_by_the_functions_end_refuses_the_library) {
    CHECK_INT(sites_in("not as known", 2, F("\x0f\x05\x48\x83"), F("\xf8\xda" RET)), -1);
    CHECK_INT(sites_in("not as known", 1, F(SITE "\x75")), -1);
}

TEST(site__may_be_the_last_bytes_of_the_code) {
    struct library l = new_library();
    struct sbt_sites sites;
    ADD(&l, NOP NOP NOP SITE);
    l.segment[1].p_filesz = l.segment[1].p_memsz = l.n_code;
    ck_assert_ptr_null(find(&l, &sites));
    CHECK_INT(sites.n, 1);
    l.segment[1].p_filesz = l.segment[1].p_memsz = l.n_code - 1;
    ck_assert_ptr_nonnull(find(&l, &sites));
}

TEST(site__in_padding_refuses_the_library) {
    struct library l = new_library();
    struct sbt_sites sites;
    ADD(&l, RET);
    memcpy(l.code + 8, SYSCALL, 2);
    l.n_code = 16;
    ADD(&l, SITE RET);
    ck_assert_ptr_nonnull(find(&l, &sites));
    memcpy(l.code + 8, NOP NOP, 2);
    ck_assert_ptr_null(find(&l, &sites));
    memcpy(l.code + CODE_PAGES * PAGE - 2, SYSCALL, 2); /* behind the last function */
    ck_assert_ptr_nonnull(find(&l, &sites));
}

/* A segment that begins with code that the table does not have: is it refused, and why? */
static const char *with_init(const char *init, size_t n, const char *function) {
    struct library l = new_library();
    struct sbt_sites sites;
    memcpy(l.code, init, n);
    l.n_code = 16;
    add(&l, function, strlen(function));
    const char *why = find(&l, &sites);
    if (why == NULL)
        CHECK_INT(sites.n, 1);
    return why;
}
#define INIT "\x48\x8b\x05\xc1\x0f\x05\x00" RET /* mov 0x50fc1(%rip), %rax */

TEST(site__in_an_address_of_the_code_before_the_first_function_is_none) {
    ck_assert_ptr_null(with_init(F(INIT), SITE RET));
    ck_assert_ptr_null(with_init(F(NOP INIT NOP), SITE RET));
    ck_assert_ptr_nonnull(with_init(F(NOP NOP SYSCALL RET), SITE RET));
    ck_assert_ptr_nonnull(with_init(F(INIT SYSCALL), SITE RET));
    ck_assert_ptr_nonnull(with_init(F(INIT "\x0f\x34"), SITE RET)); /* sysenter */
    ck_assert_ptr_nonnull(with_init(F("\x06" INIT), SITE RET));     /* no instruction */
    ck_assert_ptr_nonnull(with_init(F(INIT), SITE "\xeb\xec"));     /* a jump to the bytes */
    ck_assert_ptr_null(with_init(F(INIT), SITE "\xeb\xe8"));        /* to the instruction */
}

TEST(site__in_an_address_between_functions_refuses_the_library) {
    struct library l = new_library();
    struct sbt_sites sites;
    ADD(&l, RET);
    memcpy(l.code + 1, INIT, sizeof INIT - 1);
    l.n_code = 16;
    ADD(&l, SITE RET);
    ck_assert_ptr_nonnull(find(&l, &sites));
}

TEST(site__jump_into_the_middle_refuses_the_library) {
    for (int byte = 0; byte <= 7; byte++) {
        char near_jump[] = "\x74\x00" NOP SITE NOP RET, far_jump[] = "\x0f\x84\x00\x00\x00\x00" RET,
             call[] = "\xe8\x00\x00\x00\x00" RET, address[] = "\x48\x8d\x05\x00\x00\x00\x00" RET,
             before_immediate[] = "\x83\x05\x00\x00\x00\x00\x00" RET; /* addl $0 */
        const char *why = byte > 0 && byte < 6 ? "into the middle" : NULL;
        const int n = why != NULL ? -1 : 1;
        near_jump[1] = (char)(1 + byte);
        CHECK_INT(sites_in(why, 1, near_jump, sizeof near_jump - 1), n);
        far_jump[2] = (char)(1 + byte); /* over its own return */
        CHECK_INT(sites_in(why, 2, far_jump, sizeof far_jump - 1, F(SITE NOP RET)), n);
        call[1] = (char)(1 + byte);
        CHECK_INT(sites_in(why, 2, call, sizeof call - 1, F(SITE NOP RET)), n);
        address[3] = (char)(1 + byte);
        CHECK_INT(sites_in(why, 2, address, sizeof address - 1, F(SITE NOP RET)), n);
        before_immediate[2] = (char)(1 + byte);
        CHECK_INT(sites_in(why, 2, before_immediate, sizeof before_immediate - 1, F(SITE NOP RET)), n);
    }
    /* backwards, and between other sites */
    CHECK_INT(sites_in("into the middle", 1, F(SITE SITE SITE "\xeb\xf4")), -1); /* into the second's middle... */
    CHECK_INT(sites_in(NULL, 1, F(SITE SITE SITE "\xeb\xf2")), 3);               /* ... to its first byte */
}

TEST(site__jump_by_a_table_beside_a_site_refuses_the_library) {
    CHECK_INT(sites_in("by a table", 1, F(SITE "\xff\xe0")), -1);
    CHECK_INT(sites_in("by a table", 1, F("\x3e\xff\xe0" SITE RET)), -1);
    CHECK_INT(sites_in(NULL, 2, F("\xff\xe0"), F(SITE RET)), 1);
    CHECK_INT(sites_in(NULL, 1, F("\xff\xd0" SITE RET)), 1); /* a call */
}

TEST(site__fallback_without_private_futexes_is_left_alone) {
    CHECK_INT(sites_in(NULL, 1, F(SITE "\x75\x0c" NO_FLAG SYSCALL RET)), 1);
    CHECK_INT(sites_in(NULL, 1, F(SITE "\x75\x0d" NO_FLAG NOP SYSCALL RET)), 1);
    /* one flag for two system calls */
    CHECK_INT(sites_in("not as known", 1, F(NO_FLAG SYSCALL SYSCALL RET)), -1);
    CHECK_INT(sites_in("not as known", 1, F(NO_FLAG SITE SYSCALL RET)), -1);
    /* other ways lead there */
    CHECK_INT(sites_in("not as known", 1, F(NO_FLAG "\x75\x00" SYSCALL RET)), -1);
    CHECK_INT(sites_in("into the middle", 1, F("\x75\x0a" NO_FLAG SYSCALL RET)), -1);
    CHECK_INT(sites_in(NULL, 1, F("\x75\x00" NO_FLAG SYSCALL RET)), 0);
    /* another mask, another variable's form */
    CHECK_INT(sites_in("not as known", 1, F("\x81\x25\x00\x10\x00\x00\x7f\xff\xff\x7f" SYSCALL RET)), -1);
    CHECK_INT(sites_in("not as known", 1, F("\x81\x0d\x00\x10\x00\x00\x7f\xff\xff\xff" SYSCALL RET)), -1); /* or */
}

TEST(site__too_many_refuse_the_library) {
    struct library l = new_library();
    struct sbt_sites sites;
    for (int i = 0; i < SBT_SITES_MAX; i++)
        ADD(&l, SITE RET);
    ck_assert_ptr_null(find(&l, &sites));
    CHECK_INT(sites.n, SBT_SITES_MAX);
    ADD(&l, SITE RET);
    ck_assert_ptr_nonnull(find(&l, &sites));
}

TEST(site__code_with_other_vector_registers_is_wide) {
    static const char *const wide[] = {"\xc5\xfc\x77" RET, "\xc5\xf8\x28\xc1" RET, "\xd9\xc0" RET, "\x0f\x6f\xc1" RET};
    static const char *const narrow[] = {"\x66\x0f\x6f\xc1" RET, "\x0f\x28\xc1" RET, "\xf3\x0f\x10\xc1" RET};
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        struct library l = new_library();
        struct sbt_sites sites;
        ADD(&l, SITE RET);
        add(&l, wide[i], strlen(wide[i]));
        ck_assert_ptr_null(find(&l, &sites));
        CHECK(sites.is_wide);
    }
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++) {
        struct library l = new_library();
        struct sbt_sites sites;
        add(&l, narrow[i], strlen(narrow[i]));
        ck_assert_ptr_null(find(&l, &sites));
        CHECK(!sites.is_wide);
    }
}

/* ---- libgomp's spins ---- */
static size_t variable(struct library *l, size_t at, int64_t value, int n_loads) {
    char code[] = SITE "\x48\x8b\x05\x00\x00\x00\x00" RET;
    const size_t in_page = PAGE / 2 + at; /* behind the frames */
    memcpy(l->memory + in_page, &value, sizeof value);
    for (int i = 0; i < n_loads; i++) {
        const int32_t distance = (int32_t)((intptr_t)in_page - (PAGE + (intptr_t)l->n_code + SBT_SITE_BYTES + 7));
        memcpy(code + SBT_SITE_BYTES + 3, &distance, sizeof distance);
        ADD(l, code);
    }
    return in_page;
}

TEST(spins__are_found_by_libgomps_own_values) {
    for (int what = 0; what < 8; what++) {
        struct library l = new_library();
        struct sbt_sites sites;
        l.segment[0].p_flags = what == 1 ? PF_R : PF_R | PF_W;
        const size_t spins = variable(&l, 0, what == 2 ? 30000000000 : 300000, what == 3 ? 1 : 3);
        const size_t crowded = variable(&l, what == 4 ? 64 : 8, what == 5 ? 1000 : 100, what == 6 ? 1 : 3);
        if (what == 7)
            variable(&l, 16, 100, 3); /* a second one */
        ck_assert_ptr_null(find(&l, &sites));
        ck_assert_ptr_eq(sites.spins, what == 0 ? l.memory + spins : NULL);
        ck_assert_ptr_eq(sites.crowded_spins, what == 0 ? l.memory + crowded : NULL);
    }
}

/* ---- libraries that are not as they should be ---- */
TEST(site__unwind_table_that_is_not_as_known_refuses_the_library) {
    struct sbt_sites sites;
    for (int what = 0; what < 9; what++) {
        struct library l = new_library();
        ADD(&l, SITE RET);
        ADD(&l, SITE RET);
        if (what == 0)
            l.table->version = 2;
        else if (what <= 3)
            l.table->forms[what - 1] ^= 0x80;
        else if (what == 4)
            l.table->n = FUNCTIONS_MAX + 1;
        else if (what == 5)
            l.table->entry[0][1] = 5 * PAGE * (1 + CODE_PAGES); /* outside of the library */
        else if (what == 6)
            l.frame[1].function += 1;
        else if (what == 7)
            l.frame[0].n_function_bytes += 1; /* into the next function */
        else
            l.segment[2].p_type = PT_NOTE;
        ck_assert_ptr_nonnull(find(&l, &sites));
    }
}

TEST(site__code_that_can_be_written_or_not_read_refuses_the_library) {
    struct library l = new_library();
    struct sbt_sites sites;
    ADD(&l, SITE RET);
    l.segment[1].p_flags = PF_R | PF_W | PF_X;
    ck_assert_ptr_nonnull(find(&l, &sites));
    l.segment[1].p_flags = PF_R | PF_X;
    ck_assert_ptr_null(find(&l, &sites));
    mprotect(l.code + PAGE, PAGE, PROT_NONE);
    ck_assert_ptr_nonnull(find(&l, &sites));
    mprotect(l.code + PAGE, PAGE, PROT_READ);
    mprotect(l.memory, PAGE, PROT_NONE);
    ck_assert_ptr_nonnull(find(&l, &sites));
}
