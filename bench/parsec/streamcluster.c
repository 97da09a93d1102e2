/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * streamcluster: online k-median clustering of a stream of points, a barrier-bound program for demo, benches and CI.
 *
 * A work-alike of the PARSEC program of that name, written from the algorithm's description, not from its source: per
 * chunk, find a price z of a centre at which local search ends with K1 to K2 centres; replace the chunk by its weighted
 * centres; at the end cluster these. Local search tries random candidates: what would opening this one, and closing
 * those that it makes superfluous, save? [O'Callaghan, Mishra, Meyerson, Guha, Motwani: Streaming-Data Algorithms for
 * High-Quality Clustering, ICDE 2002.] As in PARSEC every trial is seven short parallel steps with a barrier after
 * each, and a first set of centres is announced one by one through one mutex and one condition.
 *
 * All threads run the same control flow: each works on its own block of points, thread 0 ("the first") also combines
 * the blocks' results, and what it writes is read only after the next barrier. Sums are taken in the order of the
 * threads, so that the result depends on the arguments and the thread count alone, never on timing.
 */
#include "meeting.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct points {
    size_t n, dim;
    float *coord;  /* n * dim */
    float *weight; /* n */
    size_t *index; /* n, position in the stream */
};

/* One thread's results of a step; written by it before a barrier, read by the first or by all after it. */
struct part {
    _Alignas(128) size_t n_centres, n_closed;
    double cost, saved;
};

/* One clustering of one set of points, shared by its threads. */
struct clustering {
    struct points *points;
    size_t k_min, k_max;
    unsigned n_threads;
    struct meeting meeting;
    struct part *parts;
    uint64_t n_meetings; /* counted by the first */
    uint64_t *random;    /* drawn from by the first only */

    /* Announcements of the first centres; protected by mutex. */
    pthread_mutex_t mutex;
    pthread_cond_t announced;
    uint64_t n_announced;
    size_t announcement; /* a point, or NOTHING_MORE */

    /* The solution, and its price per centre. Each thread writes its own block's points only. */
    size_t k;
    double z;
    size_t *centre; /* of each point */
    float *cost;    /* of each point: weight * squared distance */
    bool *is_centre;

    /* Scratch of a trial. */
    size_t *slot; /* of each centre: its column in loss */
    bool *moves;  /* of each point: nearer to the candidate */
    bool *closes; /* by slot */
    double *loss; /* n_threads rows of n: by slot, what closing the centre costs its points in this block */
    double net;   /* what the trial saves */
    size_t *candidate;
    size_t n_candidates;
};

struct worker {
    struct clustering *c;
    unsigned id;
    size_t begin, end;    /* block of points */
    uint64_t n_announced; /* announcements it has followed */
    pthread_t thread;
};

#define NOTHING_MORE SIZE_MAX

static void *allocate(size_t n, size_t size) {
    void *memory = calloc(n > 0 ? n : 1, size);
    if (memory == NULL) {
        fputs("streamcluster: out of memory\n", stderr);
        exit(1);
    }
    return memory;
}

/* splitmix64 [Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014]. */
static uint64_t draw(uint64_t *state) {
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static double draw_unit(uint64_t *state) {
    return (double)(draw(state) >> 11) * 0x1p-53;
}

static float distance(const struct points *p, size_t a, size_t b) {
    const float *x = p->coord + a * p->dim, *y = p->coord + b * p->dim;
    float sum = 0;
    for (size_t i = 0; i < p->dim; i++)
        sum += (x[i] - y[i]) * (x[i] - y[i]);
    return sum;
}

static float cost_at(const struct clustering *c, size_t point, size_t centre) {
    return c->points->weight[point] * distance(c->points, point, centre);
}

static void meet(struct worker *w) {
    if (w->id == 0)
        w->c->n_meetings++;
    meeting_wait(&w->c->meeting);
}

static struct part *my_part(struct worker *w) {
    return &w->c->parts[w->id];
}

/* The cost of all points, the same in every thread; ends in a barrier, so the parts are free again. */
static double total_cost(struct worker *w) {
    struct clustering *c = w->c;
    double sum = 0;
    for (size_t i = w->begin; i < w->end; i++)
        sum += c->cost[i];
    my_part(w)->cost = sum;
    meet(w);
    sum = 0;
    for (unsigned t = 0; t < c->n_threads; t++)
        sum += c->parts[t].cost;
    meet(w);
    return sum;
}

static void move_to_nearer(struct worker *w, size_t centre) {
    struct clustering *c = w->c;
    for (size_t i = w->begin; i < w->end; i++) {
        float cost = cost_at(c, i, centre);
        if (cost < c->cost[i]) {
            c->cost[i] = cost;
            c->centre[i] = centre;
        }
    }
}

static void announce(struct clustering *c, size_t what) {
    must(pthread_mutex_lock(&c->mutex), "pthread_mutex_lock");
    c->announcement = what;
    c->n_announced++;
    must(pthread_mutex_unlock(&c->mutex), "pthread_mutex_unlock");
    must(pthread_cond_broadcast(&c->announced), "pthread_cond_broadcast");
}

static size_t next_announcement(struct worker *w) {
    struct clustering *c = w->c;
    must(pthread_mutex_lock(&c->mutex), "pthread_mutex_lock");
    while (c->n_announced == w->n_announced)
        must(pthread_cond_wait(&c->announced, &c->mutex), "pthread_cond_wait");
    w->n_announced++;
    size_t what = c->announcement;
    must(pthread_mutex_unlock(&c->mutex), "pthread_mutex_unlock");
    return what;
}

/* A first solution: walk over the points, make each a centre with a probability that grows with its cost. */
static void first_solution(struct worker *w) {
    struct clustering *c = w->c;
    for (size_t i = w->begin; i < w->end; i++) {
        c->centre[i] = 0;
        c->cost[i] = cost_at(c, i, 0);
        c->is_centre[i] = i == 0;
    }
    meet(w);
    if (w->id != 0) {
        for (size_t centre; (centre = next_announcement(w)) != NOTHING_MORE;) {
            move_to_nearer(w, centre);
            meet(w);
        }
    } else {
        c->k = 1;
        for (size_t i = 1; i < c->points->n; i++)
            if (draw_unit(c->random) < c->cost[i] / c->z) {
                c->is_centre[i] = true; /* read by the block's owner only after the walk */
                c->k++;
                announce(c, i);
                move_to_nearer(w, i);
                meet(w);
            }
        announce(c, NOTHING_MORE);
    }
    meet(w);
}

/* Steps 1 to 3: give every centre a slot, in the order of the points. */
static void number_centres(struct worker *w) {
    struct clustering *c = w->c;
    size_t n = 0;
    for (size_t i = w->begin; i < w->end; i++)
        if (c->is_centre[i])
            c->slot[i] = n++;
    my_part(w)->n_centres = n;
    meet(w);
    if (w->id == 0)
        for (size_t t = 0, before = 0; t < c->n_threads; t++) {
            size_t here = c->parts[t].n_centres;
            c->parts[t].n_centres = before;
            before += here;
        }
    meet(w);
    for (size_t i = w->begin; i < w->end; i++)
        if (c->is_centre[i])
            c->slot[i] += my_part(w)->n_centres;
    meet(w);
}

/* Steps 4 and 5: what opening x saves in this block, then which of this thread's share of slots it makes superfluous.
 */
static void evaluate(struct worker *w, size_t x) {
    struct clustering *c = w->c;
    double *loss = c->loss + (size_t)w->id * c->points->n, saved = 0;
    memset(loss, 0, c->k * sizeof *loss);
    for (size_t i = w->begin; i < w->end; i++) {
        float more = cost_at(c, i, x) - c->cost[i];
        c->moves[i] = more < 0;
        if (more < 0)
            saved -= more;
        else
            loss[c->slot[c->centre[i]]] += more;
    }
    meet(w);
    size_t n_closed = 0;
    for (size_t s = c->k * w->id / c->n_threads; s < c->k * (w->id + 1) / c->n_threads; s++) {
        double closing_costs = 0;
        for (unsigned t = 0; t < c->n_threads; t++)
            closing_costs += c->loss[t * c->points->n + s];
        c->closes[s] = closing_costs < c->z;
        if (c->closes[s]) {
            n_closed++;
            saved += c->z - closing_costs;
        }
    }
    my_part(w)->saved = saved;
    my_part(w)->n_closed = n_closed;
    meet(w);
}

/* Try x as a centre; do it if that saves anything. Returns what was saved, the same in every thread. */
static double try_candidate(struct worker *w, size_t x) {
    struct clustering *c = w->c;
    number_centres(w);
    evaluate(w, x);
    if (w->id == 0) {
        size_t n_closed = 0;
        c->net = -c->z;
        for (unsigned t = 0; t < c->n_threads; t++) {
            c->net += c->parts[t].saved;
            n_closed += c->parts[t].n_closed;
        }
        if (c->net > 0)
            c->k = c->k + 1 - n_closed;
    }
    meet(w);
    double net = c->net;
    if (net > 0)
        for (size_t i = w->begin; i < w->end; i++) {
            if (c->moves[i] || c->closes[c->slot[c->centre[i]]]) {
                c->cost[i] = cost_at(c, i, x);
                c->centre[i] = x;
            }
            /* x may have been a centre before; then it was closed (its points lose nothing) and is opened again. */
            c->is_centre[i] = i == x || (c->is_centre[i] && !c->closes[c->slot[i]]);
        }
    meet(w);
    return net > 0 ? net : 0;
}

/* Rounds of trials until a round saves no more than that share of the cost. */
static void local_search(struct worker *w, double enough) {
    struct clustering *c = w->c;
    double cost = total_cost(w) + c->z * (double)c->k, saved;
    do {
        if (w->id == 0)
            for (size_t i = 0; i < c->n_candidates; i++)
                c->candidate[i] = (size_t)(draw(c->random) % c->points->n);
        meet(w);
        saved = 0;
        for (size_t i = 0; i < c->n_candidates; i++)
            saved += try_candidate(w, c->candidate[i]);
        cost -= saved;
        meet(w);
    } while (saved > enough * cost);
}

static void set_price(struct worker *w, double z) {
    if (w->id == 0)
        w->c->z = z;
    meet(w);
}

/* Bisect the price: dear centres are few, cheap ones many. */
static void *worker_main(void *argument) {
    struct worker *w = argument;
    struct clustering *c = w->c;
    for (size_t i = w->begin; i < w->end; i++) {
        c->cost[i] = cost_at(c, i, 0);
        c->centre[i] = i;
    }
    double low = 0, high = total_cost(w);
    if (c->points->n <= c->k_max)
        return NULL;
    set_price(w, (low + high) / 2);
    first_solution(w);
    for (int tries = 1; c->k < c->k_min; tries++) {
        if (tries % 3 == 0) {
            high = (low + high) / 2;
            set_price(w, (low + high) / 2);
        }
        first_solution(w);
    }
    for (;;) {
        local_search(w, 0.1);
        if (c->k + 2 >= c->k_min && c->k <= c->k_max + 2)
            local_search(w, 0.001);
        if ((c->k >= c->k_min && c->k <= c->k_max) || low >= 0.999 * high)
            return NULL;
        *(c->k > c->k_max ? &low : &high) = (low + high) / 2;
        set_price(w, (low + high) / 2);
    }
}

/* Solve for one set of points; *n_meetings grows by the number of barrier episodes. The result is c->centre. */
static void cluster(struct clustering *c, enum meeting_kind kind) {
    size_t n = c->points->n;
    struct worker *workers = allocate(c->n_threads, sizeof *workers);
    if ((c->parts = aligned_alloc(_Alignof(struct part), c->n_threads * sizeof *c->parts)) == NULL)
        must(ENOMEM, "aligned_alloc");
    c->n_announced = 0;
    /* Of order k log k, so that each good centre is probably tried; the factor gives PARSEC's number of barriers. */
    c->n_candidates = (size_t)(1.8 * (double)c->k_max * log((double)c->k_max + 1)) + 1;
    c->candidate = allocate(c->n_candidates, sizeof *c->candidate);
    c->cost = allocate(n, sizeof *c->cost);
    c->centre = allocate(n, sizeof *c->centre);
    c->slot = allocate(n, sizeof *c->slot);
    c->is_centre = allocate(n, sizeof *c->is_centre);
    c->moves = allocate(n, sizeof *c->moves);
    c->closes = allocate(n, sizeof *c->closes);
    c->loss = allocate(n * c->n_threads, sizeof *c->loss);
    must(pthread_mutex_init(&c->mutex, NULL), "pthread_mutex_init");
    must(pthread_cond_init(&c->announced, NULL), "pthread_cond_init");
    meeting_init(&c->meeting, kind, c->n_threads);
    for (unsigned t = 0; t < c->n_threads; t++) {
        workers[t] = (struct worker){.c = c, .id = t, .begin = n * t / c->n_threads, .end = n * (t + 1) / c->n_threads};
        must(pthread_create(&workers[t].thread, NULL, worker_main, &workers[t]), "pthread_create");
    }
    for (unsigned t = 0; t < c->n_threads; t++)
        must(pthread_join(workers[t].thread, NULL), "pthread_join");
    meeting_destroy(&c->meeting);
    must(pthread_cond_destroy(&c->announced), "pthread_cond_destroy");
    must(pthread_mutex_destroy(&c->mutex), "pthread_mutex_destroy");
    free(workers);
    free(c->parts);
    free(c->candidate);
    free(c->cost);
    free(c->slot);
    free(c->is_centre);
    free(c->moves);
    free(c->closes);
    free(c->loss);
}

static void points_free(struct points *p) {
    free(p->coord);
    free(p->weight);
    free(p->index);
}

static void points_allocate(struct points *p, size_t n, size_t dim) {
    p->n = 0;
    p->dim = dim;
    p->coord = allocate(n * dim, sizeof *p->coord);
    p->weight = allocate(n, sizeof *p->weight);
    p->index = allocate(n, sizeof *p->index);
}

/* Append the weighted mean of each cluster's points, in the order of their centres. */
static void append_means(struct points *to, size_t room, const struct points *from, const size_t *centre) {
    double *sum = allocate(from->n * from->dim, sizeof *sum), *weight = allocate(from->n, sizeof *weight);
    for (size_t i = 0; i < from->n; i++) {
        weight[centre[i]] += from->weight[i];
        for (size_t d = 0; d < from->dim; d++)
            sum[centre[i] * from->dim + d] += (double)from->weight[i] * from->coord[i * from->dim + d];
    }
    for (size_t i = 0; i < from->n; i++) {
        if (weight[i] == 0)
            continue;
        if (to->n == room) {
            fprintf(stderr, "streamcluster: more than %zu intermediate centres\n", room);
            exit(1);
        }
        for (size_t d = 0; d < from->dim; d++)
            to->coord[to->n * to->dim + d] = (float)(sum[i * from->dim + d] / weight[i]);
        to->weight[to->n] = (float)weight[i];
        to->index[to->n++] = from->index[i];
    }
    free(sum);
    free(weight);
}

static void read_stream(struct points *chunk, size_t first, size_t n, uint64_t *random) {
    chunk->n = n;
    for (size_t i = 0; i < n; i++) {
        chunk->index[i] = first + i;
        chunk->weight[i] = 1;
        for (size_t d = 0; d < chunk->dim; d++)
            chunk->coord[i * chunk->dim + d] = (float)draw_unit(random);
    }
}

static void print_points(FILE *out, const struct points *p) {
    for (size_t i = 0; i < p->n; i++) {
        fprintf(out, "%zu %.6f", p->index[i], p->weight[i]);
        for (size_t d = 0; d < p->dim; d++)
            fprintf(out, " %.6f", p->coord[i * p->dim + d]);
        fputc('\n', out);
    }
}

_Noreturn static void usage(void) {
    fputs("usage: streamcluster [--barrier pthread|cond|spin] [--output FILE] K1 K2 DIM N CHUNK CENTRES THREADS\n"
          "       streamcluster [--barrier pthread|cond|spin] K1 K2 DIM N CHUNK CENTRES none OUTPUT THREADS\n"
          "  K1 K2    least and most centres\n"
          "  DIM      dimension of the points\n"
          "  N CHUNK  points in the stream, and in one chunk of it\n"
          "  CENTRES  most intermediate centres\n"
          "The second form is that of PARSEC's program; the stream is always a generated one.\n"
          "example: streamcluster 10 20 32 4096 4096 1000 16\n",
          stderr);
    exit(2);
}

static size_t parse_size(const char *text, size_t max) {
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || value < 1 || value > max) {
        fprintf(stderr, "streamcluster: illegal number '%s' (legal: 1 to %zu)\n", text, max);
        exit(2);
    }
    return (size_t)value;
}

struct request {
    enum meeting_kind kind;
    const char *output; /* NULL: stdout */
    size_t dim, n, chunk_size, room;
};

static enum meeting_kind kind_called(const char *name) {
    for (enum meeting_kind kind = 0; kind < N_MEETING_KINDS; kind++)
        if (strcmp(name, meeting_names[kind]) == 0)
            return kind;
    fprintf(stderr, "streamcluster: unknown barrier '%s' (legal: pthread, cond, spin)\n", name);
    exit(2);
}

/* Options; where the other arguments begin. */
static int read_options(int argc, char **argv, struct request *r) {
    int at = 1;
    for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
        if (strcmp(argv[at], "--output") == 0)
            r->output = argv[at + 1];
        else if (strcmp(argv[at], "--barrier") == 0)
            r->kind = kind_called(argv[at + 1]);
        else
            usage();
    }
    return at;
}

static void read_arguments(int argc, char **argv, struct request *r, struct clustering *c) {
    int at = read_options(argc, argv, r);
    bool parsec_form = argc - at == 9 && r->output == NULL && strcmp(argv[at + 6], "none") == 0;
    if (parsec_form)
        r->output = argv[at + 7];
    else if (argc - at != 7)
        usage();
    c->k_min = parse_size(argv[at], 1000000);
    c->k_max = parse_size(argv[at + 1], 1000000);
    r->dim = parse_size(argv[at + 2], 100000);
    r->n = parse_size(argv[at + 3], 1000000000);
    r->chunk_size = parse_size(argv[at + 4], 10000000);
    r->room = parse_size(argv[at + 5], 10000000);
    c->n_threads = (unsigned)parse_size(argv[argc - 1], 10000);
    if (c->k_min > c->k_max)
        usage();
}

/* Clusters the stream chunk by chunk, then the centres of all chunks. */
static void cluster_stream(struct clustering *c, const struct request *r, struct points *result) {
    uint64_t stream = 1, search = 2;
    struct points chunk, centres;
    points_allocate(&chunk, r->chunk_size, r->dim);
    points_allocate(&centres, r->room, r->dim);
    c->random = &search;
    for (size_t first = 0; first < r->n; first += r->chunk_size) {
        read_stream(&chunk, first, r->n - first < r->chunk_size ? r->n - first : r->chunk_size, &stream);
        c->points = &chunk;
        cluster(c, r->kind);
        append_means(&centres, r->room, &chunk, c->centre);
        free(c->centre);
    }
    c->points = &centres;
    cluster(c, r->kind);
    append_means(result, r->room, &centres, c->centre);
    free(c->centre);
    points_free(&chunk);
    points_free(&centres);
}

static void write_points(const struct points *result, const char *output) {
    FILE *out = output != NULL ? fopen(output, "w") : stdout;
    if (out == NULL)
        must(errno, output);
    print_points(out, result);
    if (fflush(out) != 0 || ferror(out))
        must(EIO, "output");
    if (out != stdout && fclose(out) != 0)
        must(errno, output);
}

int main(int argc, char **argv) {
    struct request request = {.kind = MEETING_PTHREAD};
    struct clustering c = {0};
    struct points result;
    read_arguments(argc, argv, &request, &c);
    points_allocate(&result, request.room, request.dim);
    cluster_stream(&c, &request, &result);
    write_points(&result, request.output);
    fprintf(stderr, "%zu centres, %llu barrier episodes (%s)\n", result.n, (unsigned long long)c.n_meetings,
            meeting_names[request.kind]);
    points_free(&result);
    return 0;
}
