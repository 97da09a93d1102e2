/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * stock-level THREADS REQUESTS [shared]: TPC-C's Stock Level transaction on Berkeley DB, for bench/delegation.
 *
 * A request is about one district: read the number of its next order, then the lines of its last 20 orders, then the
 * stock of each item in those; how many distinct items have less than a threshold? It is a transaction with committed
 * reads, and it writes nothing. The answer of each request is known from plain arrays, and checked.
 *
 * The environment is private to the process, so the database's mutexes are too: only such ones can be served by an
 * engine. `shared`: an environment that other processes could join, in a directory of its own, with mutexes to match.
 *
 * The first line of the output is the result, the same for each number of threads; the second is the time in seconds.
 */
#include <db.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_THREADS = 1024,
    DISTRICTS = 10,
    ORDERS = 100,
    LINES = 10,
    RECENT = 20,
    ITEMS = 1000,
    REQUESTS_MOST = 10000000
};

static DB_ENV *env;
static DB *districts, *lines, *stock;
static uint32_t item_of[DISTRICTS][ORDERS][LINES], quantity_of[ITEMS];
static unsigned n_threads;
static unsigned long n_requests;
static uint64_t n_low[MAX_THREADS];

static void check(int error, const char *what) {
    if (error == 0)
        return;
    fprintf(stderr, "stock-level: %s: %s\n", what, db_strerror(error));
    exit(1);
}

static void failed(const char *what) {
    fprintf(stderr, "stock-level: %s\n", what);
    exit(1);
}

static uint32_t mixed(uint32_t seed) {
    seed = (seed ^ (seed >> 16)) * 0x45d9f3bu;
    seed = (seed ^ (seed >> 16)) * 0x45d9f3bu;
    return seed ^ (seed >> 16);
}

/* Big-endian, so that the order of keys is that of numbers. */
static void to_bytes(unsigned char bytes[static 4], uint32_t number) {
    for (int i = 0; i < 4; i++)
        bytes[i] = (unsigned char)(number >> (24 - 8 * i));
}

static uint32_t line_number(uint32_t district, uint32_t order, uint32_t line) {
    return (district * ORDERS + order) * LINES + line;
}

/* ---- the database, and the same in arrays ---- */

static DB *open_table(const char *name) {
    DB *db;
    check(db_create(&db, env, 0), "db_create");
    check(db->open(db, NULL, NULL, name, DB_BTREE, DB_CREATE | DB_THREAD | DB_AUTO_COMMIT, 0), name);
    return db;
}

static void put(DB *db, DB_TXN *txn, uint32_t number, uint32_t value) {
    unsigned char bytes[4];
    DBT key = {.data = bytes, .size = sizeof bytes}, data = {.data = &value, .size = sizeof value};
    to_bytes(bytes, number);
    check(db->put(db, txn, &key, &data, 0), "put");
}

static void load(void) {
    for (uint32_t d = 0; d < DISTRICTS; d++) {
        DB_TXN *txn;
        check(env->txn_begin(env, NULL, &txn, 0), "txn_begin");
        put(districts, txn, d, ORDERS);
        for (uint32_t o = 0; o < ORDERS; o++)
            for (uint32_t l = 0; l < LINES; l++) {
                item_of[d][o][l] = mixed(line_number(d, o, l) + 1) % ITEMS;
                put(lines, txn, line_number(d, o, l), item_of[d][o][l]);
            }
        check(txn->commit(txn, 0), "commit");
    }
    DB_TXN *txn;
    check(env->txn_begin(env, NULL, &txn, 0), "txn_begin");
    for (uint32_t i = 0; i < ITEMS; i++) {
        quantity_of[i] = 10 + mixed(i + 1000000) % 91;
        put(stock, txn, i, quantity_of[i]);
    }
    check(txn->commit(txn, 0), "commit");
}

static void open_all(const char *folder) {
    check(db_env_create(&env, 0), "db_env_create");
    env->set_errfile(env, stderr);
    check(env->set_flags(env, DB_TXN_NOSYNC, 1), "set_flags");
    check(env->set_lk_max_locks(env, 20000), "set_lk_max_locks");
    check(env->set_lk_max_objects(env, 20000), "set_lk_max_objects");
    check(env->set_lk_max_lockers(env, 20000), "set_lk_max_lockers");
    check(env->set_tx_max(env, MAX_THREADS + 16), "set_tx_max");
    check(env->set_cachesize(env, 0, 32 << 20, 1), "set_cachesize");
    check(env->log_set_config(env, DB_LOG_IN_MEMORY, 1), "log_set_config");
    check(env->set_lg_bsize(env, 16 << 20), "set_lg_bsize");
    check(env->open(env, folder,
                    DB_CREATE | DB_THREAD | DB_INIT_MPOOL | DB_INIT_LOCK | DB_INIT_LOG | DB_INIT_TXN |
                        (folder == NULL ? DB_PRIVATE : 0),
                    0600),
          "the environment");
    districts = open_table("districts");
    lines = open_table("lines");
    stock = open_table("stock");
}

static void close_all(void) {
    check(districts->close(districts, 0), "close");
    check(lines->close(lines, 0), "close");
    check(stock->close(stock, 0), "close");
    check(env->close(env, 0), "close the environment");
}

/* ---- a request ---- */

static uint32_t get(DB *db, DB_TXN *txn, uint32_t number) {
    unsigned char bytes[4];
    uint32_t value = 0;
    DBT key = {.data = bytes, .size = sizeof bytes},
        data = {.data = &value, .ulen = sizeof value, .flags = DB_DBT_USERMEM};
    to_bytes(bytes, number);
    check(db->get(db, txn, &key, &data, DB_READ_COMMITTED), "get");
    return value;
}

/* The items of the last orders, each once. */
static void read_lines(DB_TXN *txn, uint32_t district, uint32_t next_order, uint64_t is_there[static ITEMS / 64 + 1]) {
    DBC *cursor;
    unsigned char bytes[4];
    uint32_t item, n = RECENT * LINES;
    DBT key = {.data = bytes, .size = sizeof bytes, .ulen = sizeof bytes, .flags = DB_DBT_USERMEM},
        data = {.data = &item, .ulen = sizeof item, .flags = DB_DBT_USERMEM};
    to_bytes(bytes, line_number(district, next_order - RECENT, 0));
    check(lines->cursor(lines, txn, &cursor, DB_READ_COMMITTED), "cursor");
    for (uint32_t i = 0; i < n; i++) {
        check(cursor->get(cursor, &key, &data, i == 0 ? DB_SET_RANGE : DB_NEXT), "the next line");
        is_there[item / 64] |= UINT64_C(1) << item % 64;
    }
    check(cursor->close(cursor), "close the cursor");
}

static unsigned stock_level(uint32_t district, uint32_t threshold) {
    uint64_t is_there[ITEMS / 64 + 1] = {0};
    DB_TXN *txn;
    unsigned n = 0;
    check(env->txn_begin(env, NULL, &txn, DB_READ_COMMITTED), "txn_begin");
    read_lines(txn, district, get(districts, txn, district), is_there);
    for (uint32_t i = 0; i < ITEMS; i++)
        if ((is_there[i / 64] >> i % 64 & 1) != 0 && get(stock, txn, i) < threshold)
            n++;
    check(txn->commit(txn, 0), "commit");
    return n;
}

static unsigned expected(uint32_t district, uint32_t threshold) {
    unsigned char is_there[ITEMS] = {0};
    unsigned n = 0;
    for (uint32_t o = ORDERS - RECENT; o < ORDERS; o++)
        for (uint32_t l = 0; l < LINES; l++)
            is_there[item_of[district][o][l]] = 1;
    for (uint32_t i = 0; i < ITEMS; i++)
        n += is_there[i] && quantity_of[i] < threshold;
    return n;
}

static void *serve(void *argument) {
    uintptr_t me = (uintptr_t)argument;
    for (unsigned long i = me; i < n_requests; i += n_threads) {
        uint32_t district = mixed((uint32_t)i) % DISTRICTS, threshold = 10 + mixed((uint32_t)i + 7) % 11;
        unsigned n = stock_level(district, threshold);
        if (n != expected(district, threshold))
            failed("a wrong answer");
        n_low[me] += n;
    }
    return NULL;
}

/* ---- main ---- */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t run(void) {
    static pthread_t threads[MAX_THREADS];
    uint64_t n = 0;
    for (uintptr_t i = 0; i < n_threads; i++)
        if (pthread_create(&threads[i], NULL, serve, (void *)i) != 0)
            failed("pthread_create failed");
    for (unsigned i = 0; i < n_threads; i++) {
        pthread_join(threads[i], NULL);
        n += n_low[i];
    }
    return n;
}

static unsigned long number(const char *text, unsigned long most) {
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    return *end == '\0' && n <= most ? n : 0;
}

/* What an environment that is not private leaves. */
static void remove_folder(char *folder) {
    DB_ENV *old;
    check(db_env_create(&old, 0), "db_env_create");
    check(old->remove(old, folder, DB_FORCE), "remove the environment");
    rmdir(folder);
}

int main(int argc, char **argv) {
    char folder[] = "/var/tmp/subutai-stock-level.XXXXXX";
    int shared = argc == 4 && strcmp(argv[3], "shared") == 0;
    n_threads = argc >= 3 ? (unsigned)number(argv[1], MAX_THREADS) : 0;
    n_requests = argc >= 3 ? number(argv[2], REQUESTS_MOST) : 0;
    if (n_threads == 0 || n_requests == 0 || (argc > 3 && !shared)) {
        fprintf(stderr, "Usage: stock-level THREADS (1 to %d) REQUESTS (1 to %d) [shared]\n", MAX_THREADS,
                REQUESTS_MOST);
        return 2;
    }
    if (shared && mkdtemp(folder) == NULL)
        failed("no temporary directory");
    open_all(shared ? folder : NULL);
    load();
    double begin = now();
    uint64_t n = run();
    double seconds = now() - begin;
    printf("stock-level: %lu requests, %llu items are low\n%.6f\n", n_requests, (unsigned long long)n, seconds);
    close_all();
    if (shared)
        remove_folder(folder);
    return 0;
}
