/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Hint files (schedule/hints_read.h), and what an ELF file says of its code (os/elf_image.h). */
#include "hints_read.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/suite.h"
#include "os/elf_image.h"

static char error[300];
static struct hints_reader reader;
static struct hint hint, hints[HINTS_MAX];

static bool begin(const char *text) {
    return hints_begin(&reader, text, strlen(text), hints, error, sizeof error);
}

static bool next(void) {
    const struct hint *read = hints_next(&reader, error, sizeof error);
    if (read != NULL)
        hint = *read;
    return read != NULL;
}

static void is_text(const struct hints_text *t, const char *expected) {
    ck_assert_uint_eq(t->n, strlen(expected));
    ck_assert_mem_eq(t->at, expected, t->n);
}

TEST(hints_next__every_kind_and_every_form_of_a_call_site) {
    ck_assert(begin("subutai-hints 1 # which version\n"
                    "\n"
                    "  # a comment\n"
                    "give-up-turn app+0x1f\n"
                    "give-up-turn\tpush+0x1c (app) 300 # behind\r\n"
                    "soft-barrier push (lib#1.so) 4\n"
                    "soft-barrier \"/opt/my app+0xAB\" 16384 1000000\n"
                    "keep-turn app+0x2f\n"
                    "keep-turn app+0x3f 7\n"
                    "pcs \"push all\" (my app)\n"
                    "weight a+b+0x5 1"));
    ck_assert(next());
    ck_assert_int_eq(hint.kind, HINT_GIVE_UP);
    ck_assert_uint_eq(hint.line, 4);
    is_text(&hint.call.module, "app");
    ck_assert_uint_eq(hint.call.symbol.n, 0);
    ck_assert_uint_eq(hint.call.offset, 0x1f);
    ck_assert_uint_eq(hint.weight, HINTS_WEIGHT);
    ck_assert(next());
    is_text(&hint.call.module, "app");
    is_text(&hint.call.symbol, "push");
    is_text(&hint.call.text, "push+0x1c (app)");
    ck_assert_uint_eq(hint.call.offset, 0x1b); /* of the call's last byte */
    ck_assert(!hint.call.is_whole);
    ck_assert_uint_eq(hint.weight, 300);
    ck_assert(next());
    ck_assert_int_eq(hint.kind, HINT_SOFT_BARRIER);
    is_text(&hint.call.module, "lib#1.so");
    ck_assert(hint.call.is_whole);
    ck_assert_uint_eq(hint.call.offset, 0);
    ck_assert_uint_eq(hint.threads, 4);
    ck_assert_uint_eq(hint.turns, HINTS_TURNS);
    ck_assert(next());
    is_text(&hint.call.module, "/opt/my app");
    ck_assert_uint_eq(hint.call.offset, 0xab);
    ck_assert_uint_eq(hint.threads, HINTS_MAX_THREADS);
    ck_assert_uint_eq(hint.turns, HINTS_MAX_TURNS);
    ck_assert(next());
    ck_assert_int_eq(hint.kind, HINT_KEEP);
    ck_assert_uint_eq(hint.turns, HINTS_TIMES);
    ck_assert(next());
    ck_assert_uint_eq(hint.turns, 7);
    ck_assert(next());
    ck_assert_int_eq(hint.kind, HINT_PCS);
    is_text(&hint.call.module, "my app");
    is_text(&hint.call.symbol, "push all");
    ck_assert(next());
    ck_assert_int_eq(hint.kind, HINT_WEIGHT);
    is_text(&hint.call.module, "a+b");
    ck_assert_uint_eq(hint.weight, 1);
    ck_assert_uint_eq(hint.line, 11);
    ck_assert(!next());
    ck_assert_str_eq(error, "");
}

TEST(hints_next__callers) {
    ck_assert(begin("subutai-hints 1\n"
                    "pcs app+0x1<lib+0x2\n"
                    "give-up-turn push+0x1c (app) < \"my lib+0x3\"<pop (a<b) 7\n"
                    "keep-turn app+0x1<a+0x1<b+0x2<c+0x3 9\n"
                    "weight \"a<b+0x1\" 5"));
    ck_assert(next());
    ck_assert_uint_eq(hint.n_callers, 1);
    is_text(&hint.call.module, "app");
    is_text(&hint.caller[0].module, "lib");
    ck_assert_uint_eq(hint.caller[0].offset, 2);
    const struct hints_text site = hints_site_text(&hint);
    is_text(&site, "app+0x1<lib+0x2");
    ck_assert(next());
    ck_assert_uint_eq(hint.n_callers, 2);
    is_text(&hint.call.text, "push+0x1c (app)");
    is_text(&hint.caller[0].module, "my lib");
    is_text(&hint.caller[1].symbol, "pop");
    is_text(&hint.caller[1].module, "a<b");
    ck_assert(hint.caller[1].is_whole);
    ck_assert_uint_eq(hint.weight, 7);
    ck_assert(next());
    ck_assert_uint_eq(hint.n_callers, HINTS_CALLERS);
    is_text(&hint.caller[2].module, "c");
    ck_assert_uint_eq(hint.turns, 9);
    ck_assert(next());
    ck_assert_uint_eq(hint.n_callers, 0);
    is_text(&hint.call.module, "a<b");
    is_text(&hint.call.text, "\"a<b+0x1\"");
    ck_assert(!next());
    ck_assert_str_eq(error, "");
}

static const struct {
    const char *line, *error;
} refused[] = {
    {"turn app+0x1", "2: unknown kind of hint 'turn' (legal: give-up-turn, keep-turn, soft-barrier, pcs, weight)"},
    {"pcs", "2: not a call site: '' (legal: "},
    {"pcs app", "2: not a call site: 'app' (legal: "},
    {"pcs app+1", "2: not a call site: 'app+1' (legal: "},
    {"pcs app+0x", "2: not a call site: 'app+0x' (legal: "},
    {"pcs +0x1", "2: not a call site: '+0x1' (legal: "},
    {"pcs app+0x1g", "2: not a call site: 'app+0x1g' (legal: "},
    {"pcs app+0x11111111111111111", "2: not a call site: 'app+0x11111111111111111' (legal: "},
    {"pcs push+0x1 (app", "2: not a call site: 'push+0x1 (app' (legal: "},
    {"pcs push+0x1 ()", "2: not a call site: 'push+0x1 ()' (legal: "},
    {"pcs push+0x0 (app)", "2: not a call site: 'push+0x0 (app)' (legal: "},
    {"pcs \"app+0x1", "2: not a call site: '\"app+0x1' (legal: "},
    {"\"pcs app+0x1", "2: unknown kind of hint '\"pcs app+0x1' (legal: "},
    {"weight app+0x1 \"5", "2: not a weight: '\"5' (legal: "},
    {"pcs app+0x1 x", "2: unexpected words 'x' (legal: "},
    {"give-up-turn app+0x1 0", "2: not a weight: '0' (legal: 1 to 1000000)"},
    {"give-up-turn app+0x1 1000001", "2: not a weight: '1000001' (legal: 1 to 1000000)"},
    {"give-up-turn app+0x1 99999999999999999999999", "2: not a weight: '99999999999999999999999' (legal: "},
    {"give-up-turn app+0x1 5 0", "2: not a number of turns: '0' (legal: 1 to 1000000)"},
    {"give-up-turn app+0x1 5 1000001", "2: not a number of turns: '1000001' (legal: 1 to 1000000)"},
    {"give-up-turn app+0x1 5 5 5", "2: unexpected words '5' (legal: give-up-turn SITE [WEIGHT [TURNS]], "},
    {"weight app+0x1", "2: not a weight: '' (legal: 1 to 1000000)"},
    {"weight app+0x1 -1", "2: not a weight: '-1' (legal: 1 to 1000000)"},
    {"keep-turn app+0x1 0", "2: not a number of times: '0' (legal: 1 to 1000000)"},
    {"keep-turn app+0x1 5 5",
     "2: unexpected words '5' (legal: give-up-turn SITE [WEIGHT [TURNS]], keep-turn SITE [TIMES]"},
    {"soft-barrier app+0x1", "2: not a number of threads: '' (legal: 2 to 16384)"},
    {"soft-barrier app+0x1 1", "2: not a number of threads: '1' (legal: 2 to 16384)"},
    {"soft-barrier app+0x1 2 0", "2: not a number of turns: '0' (legal: 1 to 1000000)"},
    {"soft-barrier app+0x1 2 1 1", "2: unexpected words '1' (legal: "},
    {"pcs app+0x1<", "2: not a call site: 'app+0x1<' (legal: MODULE+0xOFFSET, "},
    {"pcs <app+0x1", "2: not a call site: '<app+0x1' (legal: "},
    {"pcs app+0x1<<app+0x1", "2: not a call site: 'app+0x1<<app+0x1' (legal: "},
    {"pcs app+0x1<app", "2: not a call site: 'app+0x1<app' (legal: "},
    {"pcs a+0x1<a+0x1<a+0x1<a+0x1<a+0x1", "2: not a call site: 'a+0x1<a+0x1<a+0x1<a+0x1<a+0x1' (legal: "},
    {"give-up-turn app+0x1 5<app+0x1", "2: not a weight: '5<app+0x1' (legal: "},
    {"\x1b\x01[", "2: unknown kind of hint '??[' (legal: "},
};

TEST_EACH(hints_next__refuses, sizeof refused / sizeof *refused, "and says the line, what is wrong and what is legal") {
    char text[200];
    snprintf(text, sizeof text, HINTS_FIRST_LINE "\n%s\npcs app+0x1\n", refused[number].line);
    ck_assert(begin(text));
    ck_assert(!next());
    ck_assert_msg(strncmp(error, refused[number].error, strlen(refused[number].error)) == 0, "%s", error);
}

static const struct {
    const char *first, *second, *error; /* NULL: legal */
} beside[] = {
    {"give-up-turn app+0x1 5", "give-up-turn app+0x1", "'app+0x1'"},
    {"give-up-turn app+0x1", "soft-barrier app+0x01 2", "'app+0x01'"},
    {"pcs f (app)", "give-up-turn  \"f\"  (app) 5 5", "'\"f\"  (app)'"},
    {"pcs f+0x2 (app)", "pcs f+0x2 (app)", "'f+0x2 (app)'"},
    {"weight f+0x2 (app) 5", "weight f+0x2 (app) 7", "'f+0x2 (app)'"},
    {"weight app+0x1 5", "give-up-turn app+0x1", NULL},
    {"pcs app+0x1", "weight app+0x1 5", NULL},
    {"pcs f (app)", "pcs f+0x1 (app)", NULL},
    {"pcs f (app)", "pcs g (app)", NULL},
    {"pcs f (app)", "pcs f (lib)", NULL},
    {"pcs app+0x1", "pcs app+0x2", NULL},
    {"pcs app+0x1<f (app)", "pcs app+0x1", NULL},
    {"pcs app+0x1<f (app)", "pcs app+0x1<g (app)", NULL},
    {"pcs app+0x1<f (app)", "pcs app+0x1<f (app)<f (app)", NULL},
    {"pcs app+0x1<f (app)", "keep-turn app+0x1 <f (app)", "'app+0x1 <f (app)'"},
    {"# pcs app+0x1", "pcs app+0x1", NULL},
};

TEST_EACH(hints_next__one_hint_for_a_call_site, sizeof beside / sizeof *beside,
          "besides its weight: both lines are named") {
    char text[200], expected[200];
    snprintf(text, sizeof text, HINTS_FIRST_LINE "\npcs x+0x1\n%s\n\n%s\n", beside[number].first,
             beside[number].second);
    snprintf(expected, sizeof expected,
             "5: a second hint for call site %s: line 3 has one (legal: one weight, and one of the other kinds)",
             beside[number].error != NULL ? beside[number].error : "");
    ck_assert(begin(text));
    while (next())
        ;
    ck_assert_str_eq(error, beside[number].error != NULL ? expected : "");
    ck_assert_uint_eq(reader.line, 5);
}

/* Lines would be read as often as there are hints behind them. */
TEST(hints_next__reads_each_line_once) {
    char text[] = HINTS_FIRST_LINE "\npcs app+0x1\npcs app+0x1\n";
    ck_assert(begin(text));
    ck_assert(next());
    memcpy(strstr(text, "pcs"), "# c", 3);
    ck_assert(!next());
    ck_assert(strstr(error, "3: a second hint for call site 'app+0x1': line 2 has one") == error);
}

TEST(hints_begin__refuses_other_files) {
    ck_assert(!begin(""));
    ck_assert_str_eq(error, "1: not a hint file, or of another version: '' (legal: subutai-hints 1 as the first line)");
    ck_assert(!begin("\nsubutai-hints 1\n"));
    ck_assert(!begin("subutai-hints 2\n"));
    ck_assert(!begin("subutai-hints 11\n"));
    ck_assert(begin("subutai-hints 1"));
    ck_assert(!next());
    ck_assert_str_eq(error, "");
}

TEST(hints_next__a_short_buffer_for_the_error_is_not_overrun) {
    char small[8];
    ck_assert(begin(HINTS_FIRST_LINE "\nx\n"));
    ck_assert_ptr_null(hints_next(&reader, small, sizeof small));
    ck_assert_str_eq(small, "2: unkn");
}

TEST(hints_next__refuses_too_many) {
    size_t n = sizeof HINTS_FIRST_LINE + (HINTS_MAX + 1) * strlen("pcs a+0x001\n");
    char *text = malloc(n + 1), *at = stpcpy(text, HINTS_FIRST_LINE "\n");
    for (int i = 0; i <= HINTS_MAX; i++)
        at += sprintf(at, "pcs a+0x%03x\n", (unsigned)i);
    ck_assert(begin(text));
    for (int i = 0; i < HINTS_MAX; i++)
        ck_assert(next());
    ck_assert(!next());
    ck_assert_str_eq(error, "1002: too many hints (legal: 1000 in a file)");
    free(text);
}

/* Whatever bytes follow: it ends, and reads nothing behind the text (as the sanitizers see). */
TEST(hints_next__random_bytes) {
    static const char *const words[] = {"give-up-turn ",
                                        "keep-turn ",
                                        "soft-barrier ",
                                        "pcs ",
                                        "weight ",
                                        "\"",
                                        "(",
                                        ")",
                                        "+0x",
                                        "\n",
                                        "#",
                                        " ",
                                        "7",
                                        "a"};
    srand(1);
    for (int i = 0; i < 20000; i++) {
        char text[400];
        size_t n = (size_t)(stpcpy(text, HINTS_FIRST_LINE "\n") - text);
        for (int k = 0; k < 20; k++) {
            const char *word = words[(size_t)rand() % (sizeof words / sizeof *words)];
            n = (size_t)(stpcpy(text + n, word) - text);
            if (rand() % 8 == 0)
                text[n++] = (char)rand();
        }
        char *copy = malloc(n);
        memcpy(copy, text, n);
        ck_assert(hints_begin(&reader, copy, n, hints, error, sizeof error));
        while (next())
            ck_assert_uint_ge(hint.call.module.n, 1);
        free(copy);
    }
}

TEST(hints_is_module__by_path_or_its_last_part) {
    const struct hints_text app = {"app(", 3}, path = {"/opt/app", 8};
    ck_assert(hints_is_module(&app, "/opt/app"));
    ck_assert(hints_is_module(&app, "app"));
    ck_assert(!hints_is_module(&app, "/opt/app2"));
    ck_assert(!hints_is_module(&app, "/app/x"));
    ck_assert(hints_is_module(&path, "/opt/app"));
    ck_assert(!hints_is_module(&path, "/usr/opt/app"));
}

TEST(hints_hash__is_fnv_1a) {
    ck_assert_uint_eq(hints_hash("", 0), 0xcbf29ce484222325u);
    ck_assert_uint_eq(hints_hash("foobar", 6), 0x85944171f73967e8u); /* as published with it */
}

/* ---- ELF ---- */

static uint8_t *own_image(size_t *n) {
    struct stat st;
    int fd = open("/proc/self/exe", O_RDONLY);
    ck_assert_int_eq(fstat(fd, &st), 0);
    *n = (size_t)st.st_size;
    uint8_t *image = mmap(NULL, *n, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    ck_assert_ptr_ne(image, MAP_FAILED);
    close(fd);
    return image;
}

int a_function_to_find(int i);
__attribute__((noinline, visibility("default"))) int a_function_to_find(int i) {
    return 3 * i + 1;
}

TEST(sbt_elf_image_function__the_bytes_of_the_function) {
    size_t n;
    uint8_t *image = own_image(&n);
    uint64_t offset, size;
    ck_assert(sbt_elf_image_is(image, n));
    ck_assert(sbt_elf_image_function(image, n, "a_function_to_find()", 18, &offset, &size));
    ck_assert_uint_gt(size, 0);
    ck_assert_mem_eq(image + offset, (const void *)(uintptr_t)a_function_to_find, size);
    ck_assert(sbt_elf_image_is_code(image, n, offset));
    ck_assert(!sbt_elf_image_is_code(image, n, 0));
    ck_assert(!sbt_elf_image_is_code(image, n, n));
    ck_assert(!sbt_elf_image_function(image, n, "a_function_to_fin", 17, &offset, &size));
    ck_assert(!sbt_elf_image_function(image, n, "error", 5, &offset, &size));  /* no function */
    ck_assert(!sbt_elf_image_function(image, n, "malloc", 6, &offset, &size)); /* another file's */
}

/* Each header field of each kind overwritten, and files that are cut: it ends, and reads nothing behind the file. */
TEST(sbt_elf_image_function__damaged_files) {
    size_t n;
    uint8_t *image = own_image(&n);
    uint64_t offset, size;
    Elf64_Ehdr header;
    memcpy(&header, image, sizeof header);
    srand(2);
    for (int i = 0; i < 2000; i++) {
        size_t cut = i % 3 == 0 ? (size_t)rand() % n : n;
        uint8_t *copy = malloc(cut + 1);
        memcpy(copy, image, cut);
        for (int k = 0; k < 4; k++) {
            size_t in_tables[] = {(size_t)rand() % sizeof header,
                                  header.e_phoff + (size_t)rand() % (header.e_phnum * sizeof(Elf64_Phdr)),
                                  header.e_shoff + (size_t)rand() % (header.e_shnum * sizeof(Elf64_Shdr))};
            size_t at = in_tables[rand() % 3];
            if (at < cut)
                copy[at] = (uint8_t)rand();
        }
        if (sbt_elf_image_function(copy, cut, "a_function_to_find", 18, &offset, &size))
            sbt_elf_image_is_code(copy, cut, offset);
        free(copy);
    }
}
