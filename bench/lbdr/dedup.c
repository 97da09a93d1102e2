/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * dedup's shape: an input is cut into pieces, and a piece that has come before is not compressed again. Five stages;
 * those of THREADS threads each are in the middle. Pieces travel in batches, as in PARSEC's.
 *
 *     cut coarsely -> cut finely -> look up -> compress -> write in the order of the input
 *                                          \--------------/
 *
 * usage: dedup THREADS BATCHES    prints a digest that depends on the number of batches alone
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "work.h"

enum { PIECES = 16, BUCKETS = 256, COARSE_US = 60, FINE_US = 12, LOOK_UP_US = 20, COMPRESS_US = 200, WRITE_US = 2 };

struct piece {
    uint64_t content, compressed;
    bool is_first; /* of its content; the others are not compressed */
    bool has_come; /* to the last stage */
};

/* What travels. A batch has two parts behind the third stage; each goes its way and both come to the last one. */
struct part {
    unsigned first; /* of its pieces */
    bool is_compressed;
};

static struct amounts amounts;
static struct piece *pieces;
static struct part *parts; /* two for each batch */
static bool *seen;         /* contents, under the locks of their buckets */
static pthread_mutex_t buckets[BUCKETS];
static struct queue to_cut, to_look_up, to_compress, to_write;
static uint64_t digest;

/* Where long computations begin. */
static SITE void leave_take(pthread_mutex_t *mutex) {
    pthread_mutex_unlock(mutex);
}

static SITE void before_compress(pthread_mutex_t *mutex) {
    pthread_mutex_unlock(mutex);
}

static unsigned n_pieces(void) {
    return amounts.n_items * PIECES;
}

static void *cut_coarsely(void *unused) {
    for (unsigned i = 0; i < amounts.n_items; i++) {
        parts[2 * i].first = i * PIECES;
        pieces[i * PIECES].content = compute_about(i, COARSE_US);
        queue_put(&to_cut, &parts[2 * i]);
    }
    queue_close(&to_cut);
    return unused;
}

/* Two of five pieces, or so, have come before. */
static void *cut_finely(void *unused) {
    for (struct part *part; (part = queue_take(&to_cut, leave_take)) != NULL;) {
        struct piece *piece = &pieces[part->first];
        uint64_t start = piece->content;
        for (unsigned i = 0; i < PIECES; i++)
            piece[i].content = compute_about(mix(start, i), FINE_US) % n_pieces();
        queue_put(&to_look_up, part);
    }
    queue_close(&to_look_up);
    return unused;
}

static void *look_up(void *unused) {
    for (struct part *part; (part = queue_take(&to_look_up, leave_take)) != NULL;) {
        struct piece *piece = &pieces[part->first];
        bool is_new = false;
        for (unsigned i = 0; i < PIECES; i++) {
            pthread_mutex_t *bucket = &buckets[piece[i].content % BUCKETS];
            compute_about(piece[i].content, LOOK_UP_US);
            pthread_mutex_lock(bucket);
            piece[i].is_first = !seen[piece[i].content];
            seen[piece[i].content] = true;
            pthread_mutex_unlock(bucket);
            is_new |= piece[i].is_first;
        }
        part[1] = (struct part){.first = part->first, .is_compressed = true};
        if (is_new)
            queue_put(&to_compress, &part[1]);
        queue_put(&to_write, part);
    }
    queue_close(&to_compress);
    queue_close(&to_write);
    return unused;
}

static void *compress(void *unused) {
    for (struct part *part; (part = queue_take(&to_compress, queue_leave)) != NULL;) {
        struct piece *piece = &pieces[part->first];
        for (unsigned i = 0; i < PIECES; i++) {
            if (!piece[i].is_first)
                continue;
            pthread_mutex_t *bucket = &buckets[piece[i].content % BUCKETS];
            pthread_mutex_lock(bucket); /* as PARSEC's, which notes the piece's state */
            before_compress(bucket);
            piece[i].compressed = compute_about(piece[i].content, COMPRESS_US);
        }
        queue_put(&to_write, part);
    }
    queue_close(&to_write);
    return unused;
}

/*
 * Which of two equal pieces is compressed is a matter of order; what comes out is not: what is compressed is added up,
 * and the pieces themselves are written in the order of the input.
 */
static void *write_pieces(void *unused) {
    uint64_t sum = 0;
    unsigned next = 0;
    for (struct part *part; (part = queue_take(&to_write, queue_leave)) != NULL;) {
        for (unsigned i = 0; i < PIECES; i++) {
            struct piece *piece = &pieces[part->first + i];
            piece->has_come |= !part->is_compressed;
            sum += part->is_compressed ? piece->compressed : 0;
        }
        for (; next < n_pieces() && pieces[next].has_come; next++)
            digest = mix(digest, compute_about(pieces[next].content, WRITE_US));
    }
    digest = mix(digest, sum);
    return unused;
}

int main(int argc, char **argv) {
    void *(*const parallel[])(void *) = {cut_finely, look_up, compress};
    enum { N_PARALLEL = sizeof parallel / sizeof *parallel };
    pthread_t cutter, writer;
    amounts = amounts_of(argc, argv);
    pieces = calloc(n_pieces(), sizeof *pieces);
    seen = calloc(n_pieces(), sizeof *seen);
    parts = calloc((size_t)amounts.n_items * 2, sizeof *parts);
    pthread_t *workers = calloc((size_t)amounts.n_threads * N_PARALLEL, sizeof *workers);
    if (pieces == NULL || seen == NULL || parts == NULL || workers == NULL)
        return 1;
    for (unsigned i = 0; i < BUCKETS; i++)
        pthread_mutex_init(&buckets[i], NULL);
    queue_begin(&to_cut, 1);
    queue_begin(&to_look_up, amounts.n_threads);
    queue_begin(&to_compress, amounts.n_threads);
    queue_begin(&to_write, 2 * amounts.n_threads);
    begin(&cutter, 1, cut_coarsely);
    for (unsigned i = 0; i < N_PARALLEL; i++)
        begin(workers + (size_t)i * amounts.n_threads, amounts.n_threads, parallel[i]);
    begin(&writer, 1, write_pieces);
    finish(&cutter, 1);
    finish(workers, amounts.n_threads * N_PARALLEL);
    finish(&writer, 1);
    printf("%016" PRIx64 "\n", digest);
    free(workers);
    free(parts);
    free(seen);
    free(pieces);
    return 0;
}
