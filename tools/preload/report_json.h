/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the parts of the JSON document share. docs/report.md describes it. */
#ifndef CMD_REPORT_JSON_H
#define CMD_REPORT_JSON_H

#include "json_file.h"
#include "report_print.h"

enum { DOC_SHARE_DIGITS = 6 };

struct doc {
    struct json j;
    const struct report_page *page;
    const struct rep_report *r;
};

static inline void doc_id(struct doc *d, const char *key, uint32_t number) {
    if (number == REP_NONE)
        json_text(&d->j, key, NULL);
    else
        json_uint(&d->j, key, number);
}

/* A site is asked for, so that `sites` has it. */
static inline void doc_site(struct doc *d, const char *key, uint32_t number) {
    if (number != REP_NONE)
        names_site(d->page->names, number);
    doc_id(d, key, number);
}

static inline void doc_share(struct doc *d, const char *key, double part, double whole) {
    json_real(&d->j, key, whole > 0 ? part / whole : 0, DOC_SHARE_DIGITS);
}

static inline void doc_null(struct doc *d, const char *key) {
    json_text(&d->j, key, NULL);
}

static inline void doc_member(struct doc *d, const char *key, char bracket) {
    json_line(&d->j);
    json_open(&d->j, key, bracket);
}

static inline unsigned doc_most(const struct doc *d, size_t n) {
    return n < d->page->top ? (unsigned)n : d->page->top;
}

/* A member with all that is known of a histogram. */
void doc_histogram(struct doc *d, const char *key, const struct rep_histogram *h);

/* An element of "objects"; the members "groups", "sites"; "waits_for", "site_waits", "chains"; "convoys", "lock_order",
 * "barriers", "tasks". */
void report_json_object(struct doc *d, uint32_t number);
void report_json_groups(struct doc *d);
void report_json_sites(struct doc *d);
void report_json_waits(struct doc *d);
void report_json_patterns(struct doc *d);
/* The member "critical_path". */
void report_json_path(struct doc *d);

#endif
