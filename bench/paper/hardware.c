/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tables II, III and IV of the paper next to the model's numbers. Every number of ours is measured: requests bring a
 * network interface into the best or the worst case of a state, the next request runs into it, and its accesses, cycles
 * and packet times are read. The interface is that of the table's head: 122 queue elements, and n control elements. The
 * paper's formulas and numbers are typed in and used for comparison only.
 *
 * Exit status 1: something differs and is not among the named exceptions.
 */
#include "fsm.h"
#include "mesh.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct machine {
    struct hw_ni ni;
    uint8_t *bytes;
    struct hw_output *outputs;
    struct hw_step step;
};

static int n_unnamed;
static struct hw_timing timing;

static void open_machine(struct machine *m, uint32_t n_control) {
    struct hw_config config = hw_config_paper();
    config.n_control = n_control;
    config.n_queue = HW_DEFAULT_QUEUE;
    config.timing = timing;
    m->bytes = malloc(hw_config_spm_bytes(&config));
    if (!m->bytes || !hw_ni_init(&m->ni, &config, 0, m->bytes)) {
        fprintf(stderr, "hardware: no such machine\n");
        exit(2);
    }
    m->outputs = calloc(hw_ni_max_outputs(&m->ni), sizeof *m->outputs);
    if (!m->outputs) {
        perror("hardware");
        exit(2);
    }
}

static void close_machine(struct machine *m) {
    free(m->outputs);
    free(m->bytes);
}

static uint32_t request(struct machine *m, enum hw_op op, uint32_t flit1, uint32_t core) {
    struct hw_packet packet = hw_packet_alloc(&m->ni.spm.layout, op, 0, flit1, core, 1);
    hw_fsm_step(&m->ni, &packet, &m->step, m->outputs);
    const char *why = "";
    if (m->step.status != HW_STATUS_DONE || !hw_spm_is_valid(&m->ni.spm, &why)) {
        fprintf(stderr, "hardware: %s went wrong: %s\n", hw_state_name(m->step.state), why);
        exit(2);
    }
    return m->step.n_outputs ? m->outputs[0].packet.flit[1] : 0;
}

/* ---- best and worst case of each state: n control elements, p waiters of a barrier ---- */

typedef void scenario(struct machine *m, uint32_t n, uint32_t p);

static void allocation_best(struct machine *m, uint32_t n, uint32_t p) {
    (void)p;
    open_machine(m, n);
    request(m, HW_OP_ALLOC_MUTEX, 0, 0);
}

static void allocation_worst(struct machine *m, uint32_t n, uint32_t p) {
    allocation_best(m, n, p);
    for (uint32_t i = 1; i < n; i++)
        request(m, HW_OP_ALLOC_MUTEX, 0, 0);
}

static void deallocation(struct machine *m, uint32_t n, uint32_t p) {
    (void)p;
    open_machine(m, n);
    request(m, HW_OP_DEALLOC, request(m, HW_OP_ALLOC_MUTEX, 0, 0), 0);
}

static uint32_t mutex_held_by_first_of(struct machine *m, uint32_t n, uint32_t n_threads) {
    open_machine(m, n);
    uint32_t id = request(m, HW_OP_ALLOC_MUTEX, 0, 0);
    for (uint32_t i = 0; i < n_threads; i++)
        request(m, HW_OP_LOCK, id, i);
    return id;
}

static void lock_best(struct machine *m, uint32_t n, uint32_t p) {
    (void)p;
    mutex_held_by_first_of(m, n, 1);
}

static void lock_worst(struct machine *m, uint32_t n, uint32_t p) {
    (void)p;
    mutex_held_by_first_of(m, n, 3);
}

static void unlock_best(struct machine *m, uint32_t n, uint32_t p) {
    (void)p;
    request(m, HW_OP_UNLOCK, mutex_held_by_first_of(m, n, 1), 0);
}

static void unlock_worst(struct machine *m, uint32_t n, uint32_t p) {
    (void)p;
    request(m, HW_OP_UNLOCK, mutex_held_by_first_of(m, n, 3), 0);
}

/* Threads of other programs wait for a mutex of theirs, until a single queue element is free. */
static void use_all_elements_but_one(struct machine *m) {
    uint32_t other = request(m, HW_OP_ALLOC_MUTEX, 0, 0);
    for (uint32_t i = 0; i < HW_DEFAULT_QUEUE; i++)
        request(m, HW_OP_LOCK, other, i % 64);
}

/* The first arrival takes the last free element. */
static void barrier_best(struct machine *m, uint32_t n, uint32_t p) {
    open_machine(m, n);
    use_all_elements_but_one(m);
    request(m, HW_OP_BARRIER_WAIT, request(m, HW_OP_ALLOC_BARRIER, p + 1, 0), 0);
}

/* The first arrival, while there are more free elements. */
static void barrier_first(struct machine *m, uint32_t n, uint32_t p) {
    open_machine(m, n);
    request(m, HW_OP_BARRIER_WAIT, request(m, HW_OP_ALLOC_BARRIER, p + 1, 0), 0);
}

static void barrier_worst(struct machine *m, uint32_t n, uint32_t p) {
    open_machine(m, n);
    uint32_t id = request(m, HW_OP_ALLOC_BARRIER, p + 1, 0);
    for (uint32_t i = 0; i <= p; i++)
        request(m, HW_OP_BARRIER_WAIT, id, i);
}

static uint32_t condition_with_waiters(struct machine *m, uint32_t n, uint32_t n_waiters, uint32_t n_lockers) {
    uint32_t mutex = mutex_held_by_first_of(m, n, n_waiters + n_lockers);
    uint32_t id = request(m, HW_OP_ALLOC_CONDITION, mutex, 0);
    for (uint32_t i = 0; i < n_waiters; i++)
        request(m, HW_OP_COND_WAIT, id, i);
    return id;
}

static void wait_best(struct machine *m, uint32_t n, uint32_t p) {
    (void)p;
    uint32_t mutex = mutex_held_by_first_of(m, n, 1);
    uint32_t id = request(m, HW_OP_ALLOC_CONDITION, mutex, 0);
    use_all_elements_but_one(m);
    request(m, HW_OP_COND_WAIT, id, 0);
}

static void wait_first(struct machine *m, uint32_t n, uint32_t p) {
    (void)p;
    condition_with_waiters(m, n, 1, 0);
}

static void wait_worst(struct machine *m, uint32_t n, uint32_t p) {
    (void)p;
    condition_with_waiters(m, n, 2, 2);
}

static void broadcast_best(struct machine *m, uint32_t n, uint32_t p) {
    (void)p;
    request(m, HW_OP_BROADCAST, condition_with_waiters(m, n, 0, 1), 0);
}

static void broadcast_worst(struct machine *m, uint32_t n, uint32_t p) {
    (void)p;
    request(m, HW_OP_BROADCAST, condition_with_waiters(m, n, 3, 0), 9);
}

static void signal_best(struct machine *m, uint32_t n, uint32_t p) {
    (void)p;
    request(m, HW_OP_SIGNAL, condition_with_waiters(m, n, 0, 1), 0);
}

static void signal_free(struct machine *m, uint32_t n, uint32_t p) {
    (void)p;
    request(m, HW_OP_SIGNAL, condition_with_waiters(m, n, 3, 0), 9);
}

static void signal_worst(struct machine *m, uint32_t n, uint32_t p) {
    (void)p;
    request(m, HW_OP_SIGNAL, condition_with_waiters(m, n, 3, 3), 3);
}

/* ---- comparison ---- */

enum exception {
    NONE,
    LOCK_INJECTION,
    ALLOCATION_INJECTION,
    UNLOCK_INJECTION,
    SIGNAL_BOUND,
    BARRIER_FREE,
    WAIT_FREE,
    N_EXCEPTIONS
};

/* Table III: accesses and cycles that ours has more than the paper. Table IV: nanoseconds. */
static const struct {
    int8_t m, c, ns;
    const char *why;
} exceptions[N_EXCEPTIONS] = {
    [NONE] = {0, 0, 0, NULL},
    [LOCK_INJECTION] = {0, 0, -1,
                        "10 ns is 2m+c plus entry and exit; the packets of all other rows but (b) and (c) "
                        "leave after their formula plus entry"},
    [ALLOCATION_INJECTION] = {0, 0, -1,
                              "10 ns is (1*m)+(m+c) plus entry and exit; its worst case, 15 ns, is the "
                              "formula plus entry"},
    [UNLOCK_INJECTION] = {0, 0, -3,
                          "12 ns is 3m+c plus entry and exit, one access more than Table III: as if the new "
                          "owner were written before the packet leaves"},
    [SIGNAL_BOUND] = {-9, -1, -19,
                      "an upper bound: 29m+2c is 9m to take the waiter out, 10m+c to queue it again, and "
                      "all of Mutex Unlock, 10m+c; no signal unlocks a mutex that is held"},
    [BARRIER_FREE] = {2, 0, 4,
                      "an empty queue, but not the last free element: two accesses tell the next free element "
                      "that it is the first. The paper's pop takes \"up to 4\" accesses, its best case 2"},
    [WAIT_FREE] = {2, 0, 4, "as (e)"},
};

/* Mark a difference with its exception, or count it against us: it must be exactly as large as the exception says. */
static const char *mark(bool differs, enum exception named, bool as_large) {
    static const char *const letters[N_EXCEPTIONS] = {"", " (a)", " (b)", " (c)", " (d)", " (e)", " (f)"};
    if (!as_large) {
        n_unnamed++;
        return " UNNAMED";
    }
    return differs ? letters[named] : "";
}

static const char *formula(char *text, size_t size, int64_t m, int64_t c) {
    char of_m[24] = "", of_c[24] = "";
    if (m != 0)
        snprintf(of_m, sizeof of_m, m == 1 ? "m" : "%ldm", (long)m);
    if (c != 0)
        snprintf(of_c, sizeof of_c, c == 1 ? "+c" : "%+ldc", (long)c);
    snprintf(text, size, "%s%s", of_m, of_c);
    return m == 0 && c == 0 ? "0" : text;
}

static void compare_size(const char *name, size_t libc_paper, size_t libc_here, double reduction_paper) {
    size_t id = sizeof(((struct hw_packet *)0)->flit[1]);
    double reduction = 100.0 - 100.0 * (double)id / (double)libc_here;
    char rounded[16], paper[16];
    snprintf(rounded, sizeof rounded, "%.1f%%", reduction);
    snprintf(paper, sizeof paper, "%.1f%%", reduction_paper);
    bool same = libc_here == libc_paper && id == 4 && strcmp(rounded, paper) == 0;
#if defined __x86_64__
    n_unnamed += !same;
#endif
    printf("%-11s  %5zu | %4zu | %+3d   %7d | %4zu | %+3d   %8s | %7s%s\n", name, libc_paper, libc_here,
           (int)libc_here - (int)libc_paper, 4, id, (int)id - 4, paper, rounded,
           same ? "" : "  another machine's glibc");
}

static void table_ii(void) {
    printf(
        "Table II. Bytes of a primitive of the C library, and of the ID by which the hardware knows it: paper | ours | "
        "difference.\nThe ID stands inside the object, which keeps the C library's size: programs are compiled for it."
        "\n\n");
    printf("%-11s  %-19s   %-21s   %s\n", "primitive", "GNU libc", "ID", "reduction by the ID alone");
    compare_size("mutex", 40, sizeof(pthread_mutex_t), 90.0);
    compare_size("barrier", 32, sizeof(pthread_barrier_t), 87.5);
    compare_size("condition", 48, sizeof(pthread_cond_t), 91.7);
}

struct row {
    const char *name, *paper; /* paper: the paper's formula as printed */
    scenario *run;
    int32_t m, c;     /* its coefficients if they are constants */
    int32_t m_n;      /* times n */
    int32_t m_p, c_p; /* times p */
    bool injection;   /* the row is about the packet's time, not the response */
    enum exception named;
};

static const struct row rows_iii[] = {
    {"Allocation, best", "4m+c", allocation_best, 4, 1, 0, 0, 0, false, NONE},
    {"Allocation, worst", "(n*m)+(3m+c)", allocation_worst, 3, 1, 1, 0, 0, false, NONE},
    {"Allocation, packet", "(n*m)+(m+c)", allocation_worst, 1, 1, 1, 0, 0, true, NONE},
    {"Deallocation", "3m", deallocation, 3, 0, 0, 0, 0, false, NONE},
    {"Mutex Lock, best", "2m+c", lock_best, 2, 1, 0, 0, 0, false, NONE},
    {"Mutex Lock, worst", "11m", lock_worst, 11, 0, 0, 0, 0, false, NONE},
    {"Mutex Lock, packet", "2m+c", lock_best, 2, 1, 0, 0, 0, true, NONE},
    {"Mutex Unlock, best", "2m", unlock_best, 2, 0, 0, 0, 0, false, NONE},
    {"Mutex Unlock, worst", "10m+c", unlock_worst, 10, 1, 0, 0, 0, false, NONE},
    {"Mutex Unlock, packet", "2m+c", unlock_worst, 2, 1, 0, 0, 0, true, NONE},
    {"Barrier Wait, best", "7m", barrier_best, 7, 0, 0, 0, 0, false, NONE},
    {"Barrier Wait, empty queue", "7m", barrier_first, 7, 0, 0, 0, 0, false, BARRIER_FREE},
    {"Barrier Wait, worst", "(m+c)+p*(11m+3c)", barrier_worst, 1, 1, 0, 11, 3, false, NONE},
    {"Barrier Wait, packet", "m+c", barrier_worst, 1, 1, 0, 0, 0, true, NONE},
    {"Condition Wait, best", "5m+c+Unlock", wait_best, 7, 1, 0, 0, 0, false, NONE},
    {"Condition Wait, empty queue", "5m+c+Unlock", wait_first, 7, 1, 0, 0, 0, false, WAIT_FREE},
    {"Condition Wait, worst", "10m+c+Unlock", wait_worst, 20, 2, 0, 0, 0, false, NONE},
    {"Condition Broadcast, best", "m", broadcast_best, 1, 0, 0, 0, 0, false, NONE},
    {"Condition Broadcast, worst", "18m+c", broadcast_worst, 18, 1, 0, 0, 0, false, NONE},
    {"Condition Broadcast, packet", "11m+c", broadcast_worst, 11, 1, 0, 0, 0, true, NONE},
    {"Condition Signal, best", "m", signal_best, 1, 0, 0, 0, 0, false, NONE},
    {"Condition Signal, worst", "29m+2c", signal_worst, 29, 2, 0, 0, 0, false, SIGNAL_BOUND},
    {"Condition Signal, packet", "11m+c", signal_free, 11, 1, 0, 0, 0, true, NONE},
};

/* Accesses and cycles before the first packet. Making the accesses dear tells the two apart. */
static void before_packet(const struct row *row, uint32_t n, uint32_t p, int64_t *m, int64_t *c) {
    struct machine machine;
    timing.memory_cycles = 1000;
    timing.entry_cycles = 0;
    row->run(&machine, n, p);
    *c = machine.outputs[0].at_cycles % 1000;
    *m = machine.outputs[0].at_cycles / 1000;
    timing = hw_timing_default();
    close_machine(&machine);
}

static void table_iii(uint32_t n, uint32_t p) {
    printf("\nTable III with n = %u, p = %u, %u queue elements. Accesses m and cycles c: paper | ours | difference\n\n",
           n, p, HW_DEFAULT_QUEUE);
    for (size_t i = 0; i < sizeof rows_iii / sizeof *rows_iii; i++) {
        const struct row *row = &rows_iii[i];
        int64_t m = row->m + (int64_t)row->m_n * n + (int64_t)row->m_p * p, c = row->c + (int64_t)row->c_p * p;
        int64_t ours_m, ours_c;
        if (row->injection) {
            before_packet(row, n, p, &ours_m, &ours_c);
        } else {
            struct machine machine;
            row->run(&machine, n, p);
            ours_m = machine.step.n_accesses;
            ours_c = machine.step.n_cycles;
            close_machine(&machine);
        }
        char a[48], b[48], d[48];
        int64_t dm = ours_m - m, dc = ours_c - c;
        bool named = dm == exceptions[row->named].m && dc == exceptions[row->named].c;
        printf("%-28s %-17s %10s | %10s | %s%s\n", row->name, row->paper, formula(a, sizeof a, m, c),
               formula(b, sizeof b, ours_m, ours_c), formula(d, sizeof d, dm, dc),
               mark(dm != 0 || dc != 0, row->named, named));
    }
}

struct time_row {
    const char *name;
    scenario *run;
    int paper_ns;
    int packet; /* -1: the row is about the response time; otherwise the packet's number */
    enum exception named;
};

static const struct time_row rows_iv[] = {
    {"Allocation, best", allocation_best, 14, -1, NONE},
    {"Allocation, worst", allocation_worst, 20, -1, NONE},
    {"Allocation, packet, best", allocation_best, 10, 0, ALLOCATION_INJECTION},
    {"Allocation, packet, worst", allocation_worst, 15, 0, NONE},
    {"Deallocation", deallocation, 11, -1, NONE},
    {"Mutex Lock, best", lock_best, 10, -1, NONE},
    {"Mutex Lock, worst", lock_worst, 27, -1, NONE},
    {"Mutex Lock, packet", lock_best, 10, 0, LOCK_INJECTION},
    {"Mutex Unlock, best", unlock_best, 9, -1, NONE},
    {"Mutex Unlock, worst", unlock_worst, 26, -1, NONE},
    {"Mutex Unlock, packet", unlock_worst, 12, 0, UNLOCK_INJECTION},
    {"Barrier Wait, best", barrier_best, 19, -1, NONE},
    {"Barrier Wait, empty queue", barrier_first, 19, -1, BARRIER_FREE},
    {"Barrier Wait, worst", barrier_worst, 1583, -1, NONE},
    {"Barrier Wait, first packet", barrier_worst, 7, 0, NONE},
    {"Barrier Wait, second packet", barrier_worst, 32, 1, NONE},
    {"Barrier Wait, third packet", barrier_worst, 57, 2, NONE},
    {"Condition Wait, best", wait_best, 20, -1, NONE},
    {"Condition Wait, empty queue", wait_first, 20, -1, WAIT_FREE},
    {"Condition Wait, worst", wait_worst, 47, -1, NONE},
    {"Condition Broadcast, best", broadcast_best, 7, -1, NONE},
    {"Condition Broadcast, worst", broadcast_worst, 42, -1, NONE},
    {"Condition Broadcast, packet", broadcast_worst, 27, 0, NONE},
    {"Condition Signal, best", signal_best, 7, -1, NONE},
    {"Condition Signal, worst", signal_worst, 65, -1, SIGNAL_BOUND},
    {"Condition Signal, packet", signal_free, 27, 0, NONE},
};

static void table_iv(void) {
    printf(
        "\nTable IV: c = 1 ns, m = 2 ns, n = %u, p = 63, %u queue elements, entry 4 ns, exit 1 ns. ns: paper | ours | "
        "difference\n\n",
        HW_DEFAULT_CONTROL, HW_DEFAULT_QUEUE);
    for (size_t i = 0; i < sizeof rows_iv / sizeof *rows_iv; i++) {
        const struct time_row *row = &rows_iv[i];
        struct machine machine;
        row->run(&machine, HW_DEFAULT_CONTROL, 63);
        uint32_t cycles = machine.step.response_cycles;
        if (row->packet >= 0)
            cycles = machine.outputs[row->packet].at_cycles;
        int64_t ns = (int64_t)hw_timing_ns(&machine.ni.timing, cycles), difference = ns - row->paper_ns;
        printf("%-28s %5d | %5ld | %+ld%s\n", row->name, row->paper_ns, (long)ns, (long)difference,
               mark(difference != 0, row->named, difference == exceptions[row->named].ns));
        close_machine(&machine);
    }
}

/*
 * Not a table of the paper, but what its network must cost for Table XI: hand-over, request there, packet ready, packet
 * back, in an empty 8 x 8 mesh, mean over all pairs of core and home.
 */
static void caller_view(void) {
    struct hw_mesh mesh;
    struct hw_mesh_config config = hw_mesh_config_default();
    struct hw_port *ports = malloc(hw_mesh_bytes(config.width, config.height));
    if (!ports || !hw_mesh_init(&mesh, &config, ports)) {
        fprintf(stderr, "hardware: no mesh\n");
        exit(2);
    }
    struct machine machine;
    lock_best(&machine, HW_DEFAULT_CONTROL, 0);
    uint32_t n_tiles = config.width * config.height;
    uint64_t there = 0, back = 0, n_hops = 0, n_pairs = (uint64_t)n_tiles * n_tiles;
    for (uint32_t from = 0; from < n_tiles; from++)
        for (uint32_t to = 0; to < n_tiles; to++) {
            struct hw_delivery d = hw_mesh_distance(&mesh, from, to);
            there += d.head_cycles;
            back += d.tail_cycles;
            n_hops += d.n_hops;
        }
    uint32_t ready = machine.outputs[0].at_cycles, handover = config.timing.handover_cycles;
    printf("\nLock of a free mutex as its caller sees it, ns, mean of all pairs in an empty 8 x 8 mesh (%.2f hops):\n",
           (double)n_hops / (double)n_pairs);
    printf("hand-over %u + there %.2f + ready %u + back %.2f = %.2f; the paper, Table XI: 127\n", handover,
           (double)there / (double)n_pairs, ready, (double)back / (double)n_pairs,
           handover + ready + (double)(there + back) / (double)n_pairs);
    close_machine(&machine);
    free(ports);
}

int main(void) {
    timing = hw_timing_default();
    table_ii();
    table_iii(HW_DEFAULT_CONTROL, 63);
    table_iii(16, 15);
    table_iv();
    caller_view();
    printf("\nDifferences and their reasons; the model has no special case for them:\n");
    for (size_t i = NONE + 1; i < N_EXCEPTIONS; i++)
        printf("(%c) %s\n", (char)('a' + i - 1), exceptions[i].why);
    printf("\nDifferences without a name: %d\n", n_unnamed);
    return n_unnamed ? 1 : 0;
}
