/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hints_read.h"

#include <string.h>

#include "decimal.h"

static const char *const kinds[HINT_N_KINDS] = {"give-up-turn", "keep-turn", "soft-barrier", "pcs", "weight"};

const char *hints_kind_name(enum hint_kind kind) {
    return kinds[kind];
}

/* ---- errors ---- */

/* A text of bounded length: never overrun, always terminated. */
struct error {
    char *at, *end;
};

static void add_n(struct error *e, const char *text, size_t n) {
    while (n-- > 0 && e->at + 1 < e->end) {
        char c = *text++;
        *e->at++ = c >= ' ' && c != 127 ? c : '?'; /* one line, whatever the file holds */
    }
    *e->at = '\0';
}

static void add(struct error *e, const char *text) {
    add_n(e, text, strlen(text));
}

/* False; "N: COMPLAINT 'TEXT' (legal: LEGAL)", without what is NULL. */
static bool fail(const struct hints_reader *r, struct error *e, const char *complaint, const struct hints_text *text,
                 const char *legal) {
    char digits[DECIMAL_SIZE];
    add(e, decimal_of(digits, r->line));
    add(e, ": ");
    add(e, complaint);
    if (text != NULL) {
        add(e, " '");
        add_n(e, text->at, text->n < 200 ? text->n : 200);
        add(e, "'");
    }
    if (legal != NULL) {
        add(e, " (legal: ");
        add(e, legal);
        add(e, ")");
    }
    return false;
}

/* ---- words ---- */

struct line {
    const char *at, *end; /* without comment and newline */
};

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

static void skip_blanks(struct line *l) {
    while (l->at < l->end && is_blank(*l->at))
        l->at++;
}

/* A comment begins with a # at the beginning of a word. */
static void cut_comment(struct line *l) {
    bool is_quoted = false;
    for (const char *at = l->at; at < l->end; at++) {
        is_quoted ^= *at == '"';
        if (*at == '#' && !is_quoted && (at == l->at || is_blank(at[-1]))) {
            l->end = at;
            return;
        }
    }
}

static bool next_line(struct hints_reader *r, struct line *l) {
    if (r->at == r->end)
        return false;
    const char *newline = memchr(r->at, '\n', (size_t)(r->end - r->at));
    *l = (struct line){r->at, newline != NULL ? newline : r->end};
    r->at = newline != NULL ? newline + 1 : r->end;
    r->line++;
    cut_comment(l);
    skip_blanks(l);
    while (l->end > l->at && is_blank(l->end[-1]))
        l->end--;
    return true;
}

/* The text up to the mark, which is passed over. False: there is none. */
static bool take_up_to(struct line *l, char mark, struct hints_text *text) {
    const char *end = memchr(l->at, mark, (size_t)(l->end - l->at));
    if (end == NULL)
        return false;
    *text = (struct hints_text){l->at, (size_t)(end - l->at)};
    l->at = end + 1;
    skip_blanks(l);
    return true;
}

/* The next word, or what stands in quotes; n 0: there is none. In a site a < ends it. False: the quotes do not end. */
static bool take_word(struct line *l, struct hints_text *word, bool in_site) {
    if (l->at < l->end && *l->at == '"') {
        *word = (struct hints_text){l->at, (size_t)(l->end - l->at)}; /* what a refusal shows */
        l->at++;
        return take_up_to(l, '"', word);
    }
    word->at = l->at;
    while (l->at < l->end && !is_blank(*l->at) && (!in_site || *l->at != '<'))
        l->at++;
    word->n = (size_t)(l->at - word->at);
    skip_blanks(l);
    return true;
}

static bool is_text(const struct hints_text *word, const char *text) {
    return word->n == strlen(text) && memcmp(word->at, text, word->n) == 0;
}

static bool is_number(const struct hints_text *word, uint64_t min, uint64_t max, uint32_t *number) {
    uint64_t u = 0;
    for (size_t i = 0; i < word->n; i++) {
        if (word->at[i] < '0' || word->at[i] > '9' || u > max)
            return false;
        u = u * 10 + (uint64_t)(word->at[i] - '0');
    }
    *number = (uint32_t)u;
    return word->n > 0 && u >= min && u <= max;
}

/* ---- call sites ---- */

static bool is_hexadecimal(const char *at, const char *end, uint64_t *number) {
    *number = 0;
    for (const char *begin = at; at < end; at++) {
        unsigned digit = *at >= '0' && *at <= '9'   ? (unsigned)(*at - '0')
                         : *at >= 'a' && *at <= 'f' ? (unsigned)(*at - 'a') + 10
                         : *at >= 'A' && *at <= 'F' ? (unsigned)(*at - 'A') + 10
                                                    : 16;
        if (digit == 16 || at - begin >= 16)
            return false;
        *number = *number << 4 | digit;
    }
    return true;
}

/* "NAME+0xOFFSET" in two parts; without an offset the name is all of it. */
static bool cut_offset(const struct hints_text *word, struct hints_text *name, uint64_t *offset, bool *has_offset) {
    size_t n = word->n;
    while (n > 0 && word->at[n - 1] != '+')
        n--;
    *has_offset = n > 1 && word->n - n > 2 && word->at[n] == '0' && word->at[n + 1] == 'x';
    *name = *has_offset ? (struct hints_text){word->at, n - 1} : *word;
    return !*has_offset || is_hexadecimal(word->at + n + 2, word->at + word->n, offset);
}

static bool take_call(struct line *l, struct hints_call *c) {
    struct hints_text word;
    bool has_offset;
    const char *begin = l->at;
    if (!take_word(l, &word, true) || word.n == 0 || !cut_offset(&word, &c->module, &c->offset, &has_offset))
        return false;
    bool is_quoted = *begin == '"';
    c->text = (struct hints_text){begin, (size_t)(word.at + word.n + is_quoted - begin)};
    if (l->at < l->end && *l->at == '(') {
        l->at++;
        c->symbol = c->module;
        c->is_whole = !has_offset;
        if (!take_up_to(l, ')', &c->module) || c->module.n == 0 || (has_offset && c->offset == 0))
            return false;
        c->text = (struct hints_text){begin, (size_t)(c->module.at + c->module.n + 1 - begin)};
        c->offset -= has_offset; /* the return address is behind the call */
        return true;
    }
    return has_offset;
}

static bool take_site(struct line *l, struct hint *h) {
    if (!take_call(l, &h->call))
        return false;
    while (l->at < l->end && *l->at == '<') {
        l->at++;
        skip_blanks(l);
        if (h->n_callers == HINTS_CALLERS || !take_call(l, &h->caller[h->n_callers]))
            return false;
        h->n_callers++;
    }
    return true;
}

/* ---- hints ---- */

static bool take_number(const struct hints_reader *r, struct error *e, struct line *l, const char *complaint,
                        const char *legal, uint32_t min, uint32_t max, uint32_t *number) {
    struct hints_text word;
    if (!take_word(l, &word, false) || !is_number(&word, min, max, number))
        return fail(r, e, complaint, &word, legal);
    return true;
}

#define LEGAL_WEIGHTS "1 to 1000000"
_Static_assert(HINTS_MAX_WEIGHT == 1000000 && HINTS_MAX_TURNS == 1000000 && HINTS_MAX_THREADS == 16384,
               "as the refusals say");

/* What stands behind the site. */
static bool take_arguments(const struct hints_reader *r, struct error *e, struct line *l, struct hint *h) {
    h->turns = h->kind == HINT_SOFT_BARRIER ? HINTS_TURNS : h->kind == HINT_KEEP ? HINTS_TIMES : 0;
    h->weight = HINTS_WEIGHT;
    if (h->kind == HINT_SOFT_BARRIER &&
        !take_number(r, e, l, "not a number of threads:", "2 to 16384", 2, HINTS_MAX_THREADS, &h->threads))
        return false;
    bool has_more = l->at < l->end;
    if ((h->kind == HINT_WEIGHT || (h->kind == HINT_GIVE_UP && has_more)) &&
        !take_number(r, e, l, "not a weight:", LEGAL_WEIGHTS, 1, HINTS_MAX_WEIGHT, &h->weight))
        return false;
    if ((h->kind == HINT_SOFT_BARRIER || h->kind == HINT_GIVE_UP) && l->at < l->end)
        return take_number(r, e, l, "not a number of turns:", "1 to 1000000", 1, HINTS_MAX_TURNS, &h->turns);
    if (h->kind == HINT_KEEP && has_more)
        return take_number(r, e, l, "not a number of times:", "1 to 1000000", 1, HINTS_MAX_TURNS, &h->turns);
    return true;
}

static bool take_kind(const struct hints_text *word, enum hint_kind *kind) {
    for (unsigned k = 0; k < HINT_N_KINDS; k++)
        if (is_text(word, kinds[k])) {
            *kind = (enum hint_kind)k;
            return true;
        }
    return false;
}

/* ---- two hints for one call site ---- */

static bool is_same_text(const struct hints_text *a, const struct hints_text *b) {
    return a->n == b->n && (a->n == 0 || memcmp(a->at, b->at, a->n) == 0);
}

static bool is_same_call(const struct hints_call *a, const struct hints_call *b) {
    return a->offset == b->offset && a->is_whole == b->is_whole && is_same_text(&a->module, &b->module) &&
           is_same_text(&a->symbol, &b->symbol);
}

static bool is_same_site(const struct hint *a, const struct hint *b) {
    bool is = a->n_callers == b->n_callers && is_same_call(&a->call, &b->call);
    for (unsigned i = 0; i < a->n_callers && is; i++)
        is = is_same_call(&a->caller[i], &b->caller[i]);
    return is;
}

static bool is_first(const struct hints_reader *r, struct error *e, const struct hint *h,
                     const struct hints_text *site) {
    char digits[DECIMAL_SIZE];
    for (const struct hint *other = r->hints; other < r->hints + r->n_hints; other++) {
        if (!is_same_site(other, h) || (other->kind == HINT_WEIGHT) != (h->kind == HINT_WEIGHT))
            continue;
        fail(r, e, "a second hint for call site", site, NULL);
        add(e, ": line ");
        add(e, decimal_of(digits, other->line));
        add(e, " has one (legal: one weight, and one of the other kinds)");
        return false;
    }
    return true;
}

struct hints_text hints_site_text(const struct hint *h) {
    const struct hints_text *last = h->n_callers != 0 ? &h->caller[h->n_callers - 1].text : &h->call.text;
    return (struct hints_text){h->call.text.at, (size_t)(last->at + last->n - h->call.text.at)};
}

static bool take_hint(const struct hints_reader *r, struct error *e, struct line *l, struct hint *h) {
    struct hints_text word;
    *h = (struct hint){.line = r->line};
    take_word(l, &word, false);
    if (!take_kind(&word, &h->kind))
        return fail(r, e, "unknown kind of hint", &word, HINTS_LEGAL_KINDS);
    struct hints_text rest = {l->at, (size_t)(l->end - l->at)};
    if (!take_site(l, h))
        return fail(r, e, "not a call site:", &rest, HINTS_LEGAL_CALLS);
    const struct hints_text site = hints_site_text(h);
    if (!take_arguments(r, e, l, h))
        return false;
    rest = (struct hints_text){l->at, (size_t)(l->end - l->at)};
    if (rest.n != 0)
        return fail(
            r, e, "unexpected words", &rest,
            "give-up-turn SITE [WEIGHT [TURNS]], keep-turn SITE [TIMES], soft-barrier SITE THREADS [TURNS], pcs SITE, "
            "weight SITE WEIGHT");
    return is_first(r, e, h, &site);
}

const struct hint *hints_next(struct hints_reader *r, char *error, size_t size) {
    struct error e = {error, error + size};
    struct line l;
    error[0] = '\0';
    while (next_line(r, &l)) {
        if (l.at == l.end)
            continue;
        if (r->n_hints == HINTS_MAX)
            fail(r, &e, "too many hints", NULL, "1000 in a file");
        else if (take_hint(r, &e, &l, &r->hints[r->n_hints]))
            return &r->hints[r->n_hints++];
        return NULL;
    }
    return NULL;
}
_Static_assert(HINTS_MAX == 1000, "as the refusal says");

bool hints_begin(struct hints_reader *r, const char *text, size_t n, struct hint *hints, char *error, size_t size) {
    struct error e = {error, error + size};
    struct line l = {text, text};
    *r = (struct hints_reader){.at = text, .end = text + n, .hints = hints};
    error[0] = '\0';
    next_line(r, &l);
    r->line = 1; /* also of an empty file */
    struct hints_text first = {l.at, (size_t)(l.end - l.at)};
    return is_text(&first, HINTS_FIRST_LINE) ||
           fail(r, &e, "not a hint file, or of another version:", &first, HINTS_FIRST_LINE " as the first line");
}

bool hints_is_module(const struct hints_text *module, const char *path) {
    if (memchr(module->at, '/', module->n) == NULL) {
        const char *slash = strrchr(path, '/');
        path = slash != NULL ? slash + 1 : path;
    }
    return is_text(module, path);
}

uint64_t hints_hash(const char *text, size_t n) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    while (n-- > 0)
        hash = (hash ^ (uint8_t)*text++) * UINT64_C(0x100000001b3);
    return hash;
}
