/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Of the JSON document: which thread waited for which; convoys, orders of locks, barriers, tasks. */
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "report_json.h"

static void sum(struct doc *d, const struct rep_sum *s) {
    json_uint(&d->j, "n", s->n);
    json_uint(&d->j, "ns", s->ns);
}

static void waits_for(struct doc *d) {
    doc_member(d, "waits_for", '[');
    for (size_t i = 0; i < d->r->n_pairs && i < 16 * (size_t)d->page->top; i++) {
        const struct rep_pair *p = &d->r->pairs[i];
        json_line(&d->j);
        json_open(&d->j, NULL, '{');
        doc_id(d, "waiter", p->waiter);
        doc_id(d, "holder", p->holder);
        doc_id(d, "object", p->object);
        json_text(&d->j, "kind", rep_kind_name(p->kind));
        json_bool(&d->j, "timed_out", p->timed_out != 0 && !names_is_openmps(d->page->names, p->object));
        sum(d, &p->sum);
        json_close(&d->j, '}');
    }
    json_close(&d->j, ']');
    doc_member(d, "site_waits", '[');
    for (unsigned i = 0; i < doc_most(d, d->r->n_site_pairs); i++) {
        const struct rep_site_pair *p = &d->r->site_pairs[i];
        json_line(&d->j);
        json_open(&d->j, NULL, '{');
        doc_id(d, "object", p->object);
        json_text(&d->j, "kind", rep_kind_name(p->kind));
        doc_site(d, "waiter_site", p->waiter_site);
        doc_site(d, "holder_site", p->holder_site);
        json_bool(&d->j, "timed_out", p->timed_out != 0 && !names_is_openmps(d->page->names, p->object));
        sum(d, &p->sum);
        json_close(&d->j, '}');
    }
    json_close(&d->j, ']');
}

static void unended(struct doc *d) {
    doc_member(d, "unended", '[');
    for (uint32_t i = 0; i < d->r->info.n_threads; i++) {
        const struct rep_unended *u = &d->r->threads[i].unended;
        if (d->r->threads[i].n_events == 0 || u->kind == REP_N_KINDS)
            continue;
        json_line(&d->j);
        json_open(&d->j, NULL, '{');
        doc_id(d, "thread", i);
        json_text(&d->j, "kind", rep_kind_name(u->kind));
        doc_id(d, "object", u->object);
        doc_id(d, "joins", u->other);
        doc_id(d, "holder", u->holder);
        doc_site(d, "site", u->site);
        json_uint(&d->j, "since_ns", u->since_ns);
        json_uint(&d->j, "ns", u->ns);
        json_close(&d->j, '}');
    }
    json_close(&d->j, ']');
}

static void chains(struct doc *d) {
    doc_member(d, "chains", '[');
    for (unsigned i = 0; i < doc_most(d, d->r->n_chains); i++) {
        const struct rep_chain *c = &d->r->chains[i];
        json_line(&d->j);
        json_open(&d->j, NULL, '{');
        json_open(&d->j, "links", '[');
        for (unsigned k = 0; k < c->n_links; k++) {
            json_open(&d->j, NULL, '{');
            doc_id(d, "object", c->link[k].object);
            json_text(&d->j, "kind", rep_kind_name(c->link[k].kind));
            doc_site(d, "site", c->link[k].site);
            json_close(&d->j, '}');
        }
        json_close(&d->j, ']');
        sum(d, &c->sum);
        json_close(&d->j, '}');
    }
    json_close(&d->j, ']');
}

/* ---- convoys, orders, barriers ---- */

static void convoys(struct doc *d) {
    doc_member(d, "convoys", '[');
    for (uint32_t i = 0; i < d->r->n_details; i++) {
        const struct rep_convoys *c = &d->r->details[i].convoys;
        if (c->n == 0)
            continue;
        json_line(&d->j);
        json_open(&d->j, NULL, '{');
        doc_id(d, "object", d->r->details[i].object);
        json_uint(&d->j, "n", c->n);
        json_uint(&d->j, "acquisitions", c->n_acquisitions);
        json_uint(&d->j, "ns", c->ns);
        json_uint(&d->j, "longest", c->longest);
        json_uint(&d->j, "threads", c->n_threads);
        json_uint(&d->j, "held_ns", c->held_ns);
        json_uint(&d->j, "handover_ns", c->handover_ns);
        json_close(&d->j, '}');
    }
    json_close(&d->j, ']');
}

static void stack(struct doc *d, uint32_t number) {
    uint32_t sites[NAMES_MOST_FRAMES];
    uint32_t n = number != 0 ? sbt_trace_stack(d->page->trace, number, sites, NAMES_MOST_FRAMES) : 0;
    json_open(&d->j, "stack", '[');
    for (uint32_t i = 0; i < n && i < NAMES_MOST_FRAMES; i++)
        doc_site(d, NULL, sites[i]);
    json_close(&d->j, ']');
}

static void lock_order(struct doc *d) {
    doc_member(d, "lock_order", '[');
    for (size_t i = 0; i < d->r->n_circles; i++) {
        const struct rep_circle *c = &d->r->circles[i];
        json_line(&d->j);
        json_open(&d->j, NULL, '{');
        json_open(&d->j, "orders", '[');
        for (unsigned k = 0; k < c->n; k++) {
            json_open(&d->j, NULL, '{');
            doc_id(d, "held", c->order[k]->held);
            doc_id(d, "taken", c->order[k]->taken);
            doc_site(d, "held_site", c->order[k]->held_site);
            doc_site(d, "taken_site", c->order[k]->taken_site);
            doc_id(d, "thread", c->order[k]->thread);
            json_uint(&d->j, "n", c->order[k]->n);
            stack(d, c->order[k]->stack);
            json_close(&d->j, '}');
        }
        json_close(&d->j, ']');
        json_close(&d->j, '}');
    }
    json_close(&d->j, ']');
}

static void barrier_thread(struct doc *d, const struct rep_barrier_thread *t) {
    json_open(&d->j, NULL, '{');
    json_uint(&d->j, "thread", t->thread);
    json_uint(&d->j, "n", t->n);
    json_uint(&d->j, "last", t->n_last);
    json_uint(&d->j, "first", t->n_first);
    json_uint(&d->j, "late_mean_ns", t->n > 0 ? t->late_ns / t->n : 0);
    json_uint(&d->j, "delay_mean_ns", (uint64_t)rep_histogram_mean(&t->delay));
    json_uint(&d->j, "delay_median_ns", (uint64_t)rep_histogram_quantile(&t->delay, 0.5));
    json_uint(&d->j, "delay_max_ns", t->delay.max_ns);
    json_close(&d->j, '}');
}

static void barrier(struct doc *d, const struct rep_barrier *b) {
    json_line(&d->j);
    json_open(&d->j, NULL, '{');
    doc_id(d, "object", b->object);
    json_uint(&d->j, "count", b->count);
    json_uint(&d->j, "generations", b->n_generations);
    doc_histogram(d, "imbalance", &b->imbalance);
    doc_histogram(d, "release", &b->release);
    doc_histogram(d, "delay", &b->delay);
    json_open(&d->j, "threads", '[');
    for (uint32_t i = 0; i < b->n_threads; i++)
        barrier_thread(d, &b->threads[i]);
    json_close(&d->j, ']');
    json_open(&d->j, "worst", '[');
    for (unsigned i = 0; i < b->n_worst; i++) {
        json_open(&d->j, NULL, '{');
        json_uint(&d->j, "generation", b->worst[i].number);
        json_uint(&d->j, "first_ns", b->worst[i].first_ns);
        json_uint(&d->j, "last_ns", b->worst[i].last_ns);
        json_uint(&d->j, "end_ns", b->worst[i].end_ns);
        doc_id(d, "last_thread", b->worst[i].last_thread);
        json_close(&d->j, '}');
    }
    json_close(&d->j, ']');
    json_close(&d->j, '}');
}

static void tasks(struct doc *d) {
    doc_member(d, "tasks", '[');
    for (size_t i = 0; i < d->r->n_tasks; i++) {
        json_open(&d->j, NULL, '{');
        doc_site(d, "site", d->r->tasks[i].site);
        json_uint(&d->j, "n", d->r->tasks[i].sum.n);
        json_uint(&d->j, "ns", d->r->tasks[i].sum.ns);
        json_uint(&d->j, "max_ns", d->r->tasks[i].max_ns);
        json_close(&d->j, '}');
    }
    json_close(&d->j, ']');
}

void report_json_waits(struct doc *d) {
    waits_for(d);
    unended(d);
    chains(d);
}

void report_json_patterns(struct doc *d) {
    convoys(d);
    lock_order(d);
    doc_member(d, "barriers", '[');
    for (uint32_t i = 0; i < d->r->n_details; i++)
        if (d->r->details[i].barrier != NULL)
            barrier(d, d->r->details[i].barrier);
    json_close(&d->j, ']');
    tasks(d);
}
