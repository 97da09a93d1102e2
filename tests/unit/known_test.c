/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which loaded objects are known (os/known.c): notes and headers are made here. */
#include <string.h>

#include "lib/suite.h"
#include "os/known.h"

enum { NOTE_BYTES = 64 };

/* An object: a segment with a note of another kind, and perhaps a build id behind it. */
struct object {
    unsigned char notes[2 * NOTE_BYTES];
    ElfW(Phdr) header[2];
    struct dl_phdr_info info;
};

static struct sbt_known known;

static size_t put_note(unsigned char *at, unsigned type, const char *id) {
    const ElfW(Nhdr) note = {.n_namesz = 4, .n_descsz = (unsigned)strlen(id), .n_type = type};
    memcpy(at, &note, sizeof note);
    memcpy(at + sizeof note, "GNU", 4);
    memcpy(at + sizeof note + 4, id, strlen(id));
    return sizeof note + 4 + (strlen(id) + 3) / 4 * 4;
}

/* Of an id NULL there is none. */
static void make(struct object *o, const char *id) {
    memset(o, 0, sizeof *o);
    size_t n = put_note(o->notes, NT_GNU_ABI_TAG, "abcdefg");
    if (id != NULL)
        n += put_note(o->notes + n, NT_GNU_BUILD_ID, id);
    o->header[0] = (ElfW(Phdr)){.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = n, .p_memsz = n};
    o->header[1] = (ElfW(Phdr)){.p_type = PT_NOTE, .p_flags = PF_R, .p_filesz = n, .p_memsz = n, .p_align = 4};
    o->info = (struct dl_phdr_info){.dlpi_addr = (ElfW(Addr))o->notes, .dlpi_phdr = o->header, .dlpi_phnum = 2};
}

static bool is_known(struct object *o) {
    return sbt_known_note(&known, &o->info);
}

static void begin(void) {
    memset(&known, 0, sizeof known);
}

TEST(an_object_is_new_once) {
    struct object a, b;
    begin();
    make(&a, "0123456789");
    make(&b, "0123456789");
    ck_assert(!is_known(&a));
    ck_assert(!is_known(&b)); /* the same file may be loaded twice, in two namespaces */
    sbt_known_begin(&known, 1);
    ck_assert(is_known(&a));
    ck_assert(is_known(&b));
}

TEST(another_object_at_its_place_is_new) {
    struct object a;
    begin();
    make(&a, "0123456789");
    ck_assert(!is_known(&a));
    make(&a, "0123456788");
    ck_assert(!is_known(&a));
    ck_assert(is_known(&a));
    make(&a, NULL);
    ck_assert(!is_known(&a));
}

TEST(without_a_build_id_it_is_known_until_an_object_is_unloaded) {
    struct object a, b;
    begin();
    make(&a, NULL);
    make(&b, "0123456789");
    ck_assert(!is_known(&a));
    ck_assert(!is_known(&b));
    sbt_known_begin(&known, 0);
    ck_assert(is_known(&a));
    sbt_known_begin(&known, 1);
    ck_assert(!is_known(&a));
    ck_assert(is_known(&b));
    ck_assert(is_known(&a));
}

/* A property note and a build id, as some linkers put them into one segment. */
TEST(notes_may_be_aligned_by_eight) {
    struct object a;
    const ElfW(Nhdr) property = {.n_namesz = 4, .n_descsz = 12, .n_type = NT_GNU_PROPERTY_TYPE_0},
                     id = {.n_namesz = 4, .n_descsz = 10, .n_type = NT_GNU_BUILD_ID};
    for (int k = 0; k < 2; k++) {
        make(&a, NULL);
        memset(a.notes, 0, sizeof a.notes);
        memcpy(a.notes, &property, sizeof property);
        memcpy(a.notes + 12, "GNU", 4);
        memcpy(a.notes + 32, &id, sizeof id);
        memcpy(a.notes + 44,
               "GNU\0"
               "0123456789",
               14);
        a.notes[48] = (unsigned char)('0' + k);
        a.header[0].p_filesz = a.header[1].p_memsz = 58;
        a.header[1].p_align = 8;
        if (k == 0)
            begin();
        ck_assert(!is_known(&a));
        sbt_known_begin(&known, (uint64_t)k + 1);
        ck_assert(is_known(&a));
    }
}

TEST(notes_that_are_not_in_memory_are_not_read) {
    struct object a;
    begin();
    make(&a, "0123456789");
    a.header[1].p_vaddr = (ElfW(Addr))1 << 46;
    ck_assert(!is_known(&a));
    sbt_known_begin(&known, 1);
    ck_assert(!is_known(&a));
    make(&a, "0123456789");
    a.header[0].p_filesz = a.header[1].p_memsz - 1;
    sbt_known_begin(&known, 2);
    ck_assert(!is_known(&a));
    sbt_known_begin(&known, 3);
    ck_assert(!is_known(&a));
}

TEST(notes_that_are_cut_end_at_their_end) {
    struct object a;
    for (size_t bytes = 0; bytes < NOTE_BYTES; bytes++) {
        begin();
        make(&a, "0123456789");
        size_t all = a.header[1].p_memsz;
        if (bytes >= all)
            break;
        memset(a.notes + bytes, 0xff, sizeof a.notes - bytes); /* what is read beyond would be another id */
        a.header[1].p_memsz = bytes;
        is_known(&a);
        sbt_known_begin(&known, 1);
        ck_assert_int_eq(is_known(&a), bytes >= all - 2); /* the last two bytes fill up */
    }
}

TEST(beyond_the_most_none_is_known) {
    static struct object all[SBT_KNOWN_MOST + 2];
    begin();
    for (size_t i = 0; i < SBT_KNOWN_MOST + 2; i++) {
        make(&all[i], "0123456789");
        ck_assert(!is_known(&all[i]));
    }
    ck_assert(is_known(&all[SBT_KNOWN_MOST - 1]));
    ck_assert(!is_known(&all[SBT_KNOWN_MOST]));
    ck_assert(!is_known(&all[SBT_KNOWN_MOST + 1]));
}
