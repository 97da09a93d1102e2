/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "log_read.h"
#include "mesh.h"
#include "spm.h"

enum { MAIN, WITHDRAWAL, N_PENDING };

/* A thread's request that has no answer yet. */
struct pending {
    uint8_t op; /* enum hw_op; 0: none */
    uint64_t from, network_waits;
};

struct thread {
    struct pending pending[N_PENDING];
    uint64_t seen; /* when it saw its last answer */
};

struct replay {
    const struct sim_log_process *process;
    struct sim_log_result *result;
    struct sim *sim;
    struct hw_layout layout;
    struct hw_mesh mesh; /* of the distances; nothing is sent over it */
    struct hw_timing timing;
    struct thread *thread;
    size_t *at; /* of each NI: its next record; SIM_LOG_END: none */
};

/* ---- what differs ---- */

static const char *const op_names[] = {[HW_OP_ALLOC_MUTEX] = "allocate a mutex",
                                       [HW_OP_ALLOC_CONDITION] = "allocate a condition",
                                       [HW_OP_ALLOC_BARRIER] = "allocate a barrier",
                                       [HW_OP_DEALLOC] = "deallocate",
                                       [HW_OP_LOCK] = "lock",
                                       [HW_OP_UNLOCK] = "unlock",
                                       [HW_OP_BARRIER_WAIT] = "barrier wait",
                                       [HW_OP_COND_WAIT] = "condition wait",
                                       [HW_OP_BROADCAST] = "broadcast",
                                       [HW_OP_SIGNAL] = "signal",
                                       [HW_OP_TRYLOCK] = "trylock",
                                       [HW_OP_WITHDRAW] = "withdraw",
                                       [HW_OP_EVICT] = "evict",
                                       [HW_OP_GRANT] = "grant",
                                       [HW_OP_RELEASE] = "release",
                                       [HW_OP_ALLOCATED] = "allocated",
                                       [HW_OP_NO_SPACE] = "no space",
                                       [HW_OP_AGAIN] = "again",
                                       [HW_OP_BUSY] = "busy",
                                       [HW_OP_WITHDRAWN] = "withdrawn",
                                       [HW_OP_GONE] = "gone",
                                       [HW_OP_EVICTED] = "evicted",
                                       [HW_OP_WOKEN] = "woken",
                                       [HW_OP_NACK] = "refusal"};

const char *sim_log_op_name(enum hw_op op) {
    const char *name = (size_t)op < sizeof op_names / sizeof *op_names ? op_names[op] : NULL;
    return name != NULL ? name : "nothing known";
}

static struct hw_packet packet_of(const struct hw_log_record *r) {
    return (struct hw_packet){{r->flit[0], r->flit[1], r->flit[2]}};
}

static void __attribute__((format(printf, 3, 4)))
differ(struct replay *r, const struct sim_log_entry *e, const char *format, ...) {
    struct sim_log_result *result = r->result;
    if (result->differs)
        return;
    int n = snprintf(result->difference, sizeof result->difference, "NI %u, record %" PRIu64 ": ", e->tile,
                     e->record.order);
    va_list list;
    va_start(list, format);
    vsnprintf(result->difference + n, sizeof result->difference - (size_t)n, format, list);
    va_end(list);
    result->differs = true;
}

/* "grant 1 of 80400000 for thread 3 on core 2": with its argument, and the primitive's ID */
static const char *text_of(const struct replay *r, const struct hw_packet *packet, char text[static 120]) {
    struct hw_message m = hw_packet_decode(&r->layout, packet);
    snprintf(text, 120, "%s %" PRIu32 " of %08" PRIx32 " for thread %u on core %u", sim_log_op_name(m.op), m.argument,
             m.primitive, m.thread, m.core);
    return text;
}

/* ---- latencies ---- */

static struct thread *thread_of(const struct replay *r, const struct hw_packet *packet) {
    return &r->thread[hw_high(packet->flit[2])];
}

static bool has_answer(enum hw_op op) {
    return op != HW_OP_UNLOCK && op != HW_OP_SIGNAL && op != HW_OP_BROADCAST && op != HW_OP_DEALLOC;
}

static void count(struct replay *r, const struct pending *p, uint64_t to, uint64_t network_waits) {
    struct sim_log_latency *l = &r->result->latency[p->op];
    l->n++;
    l->sum += to - p->from;
    l->network_waits += p->network_waits + network_waits;
}

/*
 * A request. With a time scale its thread has waited for the answer to the one before. A withdrawal is made meanwhile,
 * and a handler's requests without an answer may be made in between.
 */
static void note_request(struct replay *r, const struct sim_log_entry *e, const struct hw_packet *packet,
                         uint64_t network_waits) {
    enum hw_op op = hw_packet_op(packet);
    struct thread *t = thread_of(r, packet);
    struct pending p = {(uint8_t)op, e->record.from_cycles, network_waits};
    if (!hw_op_is_request(op))
        return;
    if (!has_answer(op)) {
        p.network_waits = 0;
        count(r, &p, p.from + r->timing.handover_cycles, 0);
        return;
    }
    if (r->result->time_scale != 0 && op != HW_OP_WITHDRAW && p.from < t->seen)
        differ(r, e, "thread %u makes a request at %" PRIu64 ", and sees the answer to the one before at %" PRIu64,
               hw_high(packet->flit[2]), p.from, t->seen);
    t->pending[op == HW_OP_WITHDRAW ? WITHDRAWAL : MAIN] = p;
}

static void note_answer(struct replay *r, const struct sim_log_entry *e, const struct hw_packet *packet,
                        uint64_t network_waits) {
    struct hw_message m = hw_packet_decode(&r->layout, packet);
    enum hw_op refused = m.op == HW_OP_NACK ? hw_nack_op(m.argument) : HW_OP_NONE;
    struct thread *t = thread_of(r, packet);
    bool withdrawal = m.op == HW_OP_WITHDRAWN || m.op == HW_OP_GONE || refused == HW_OP_WITHDRAW;
    struct pending *p = &t->pending[withdrawal ? WITHDRAWAL : MAIN];
    if (m.op == HW_OP_NACK && !has_answer(refused))
        return;
    if (p->op != 0)
        count(r, p, e->record.to_cycles, network_waits);
    p->op = 0;
    if (e->record.to_cycles > t->seen)
        t->seen = e->record.to_cycles;
}

/* ---- one NI ---- */

/* The packet leaves the simulator's NI. Its log may end here, if the program was killed. */
static void on_packet(void *context, uint32_t ni, const struct hw_packet *packet, uint64_t leaves_at) {
    struct replay *r = context;
    size_t at = r->at[ni];
    char live_text[120], text[120];
    if (at == SIM_LOG_END || r->result->differs)
        return;
    const struct sim_log_entry *e = &r->process->entry[at];
    struct hw_packet live = packet_of(&e->record);
    if (e->record.kind != HW_LOG_LEFT) {
        differ(r, e, "the model answers: %s; the live engine does not", text_of(r, packet, text));
        return;
    }
    if (memcmp(live.flit, packet->flit, sizeof live.flit) != 0) {
        differ(r, e, "live: %s; model: %s", text_of(r, &live, live_text), text_of(r, packet, text));
        return;
    }
    uint64_t way = hw_mesh_distance(&r->mesh, ni, hw_packet_destination(&r->layout, packet)).tail_cycles;
    uint64_t seen = leaves_at + way + (hw_packet_ends_wait(packet) ? r->timing.resume_cycles : 0);
    if (e->record.from_cycles != leaves_at)
        differ(r, e, "%s leaves the live NI at %" PRIu64 ", the model's at %" PRIu64, text_of(r, packet, text),
               e->record.from_cycles, leaves_at);
    else if (e->record.to_cycles < seen)
        differ(r, e, "%s is seen at %" PRIu64 ", and in an empty network at %" PRIu64, text_of(r, packet, text),
               e->record.to_cycles, seen);
    else
        note_answer(r, e, packet, e->record.to_cycles - seen);
    r->at[ni] = e->next;
    r->result->n_answers++;
    r->result->n_grants += hw_packet_op(packet) == HW_OP_GRANT;
}

/* False: there can be no such request. */
static bool feed(struct replay *r, const struct sim_log_entry *e) {
    struct hw_packet packet = packet_of(&e->record);
    uint32_t core = hw_low(packet.flit[2]);
    char text[120];
    if (hw_packet_destination(&r->layout, &packet) != e->tile)
        return false;
    uint64_t arrives =
        e->record.from_cycles + r->timing.handover_cycles + hw_mesh_distance(&r->mesh, core, e->tile).head_cycles;
    if (e->record.to_cycles < arrives)
        differ(r, e, "%s reaches its NI at %" PRIu64 ", and in an empty network at %" PRIu64, text_of(r, &packet, text),
               e->record.to_cycles, arrives);
    else
        note_request(r, e, &packet, e->record.to_cycles - arrives);
    r->at[e->tile] = e->next;
    r->result->n_requests++;
    return sim_feed(r->sim, &packet, e->record.to_cycles);
}

/* ---- one core: one request at a time; one thread: one request after the other ---- */

static int compare(uint64_t a, uint64_t b) {
    return a < b ? -1 : a > b;
}

static int by_core(const void *a, const void *b) {
    const struct sim_log_entry *x = *(const struct sim_log_entry *const *)a,
                               *y = *(const struct sim_log_entry *const *)b;
    int core = compare(hw_low(x->record.flit[2]), hw_low(y->record.flit[2]));
    return core != 0 ? core : compare(x->record.from_cycles, y->record.from_cycles);
}

/* A thread, on its core, and an NI: then in the order in which the NI served them. */
static int by_thread(const void *a, const void *b) {
    const struct sim_log_entry *x = *(const struct sim_log_entry *const *)a,
                               *y = *(const struct sim_log_entry *const *)b;
    int thread = compare(x->record.flit[2], y->record.flit[2]), ni = compare(x->tile, y->tile);
    return thread != 0 ? thread : ni != 0 ? ni : compare(x->record.order, y->record.order);
}

/* a and b are neighbours in the order of by_core. */
static void check_core(struct replay *r, const struct sim_log_entry *a, const struct sim_log_entry *b) {
    uint64_t until = a->record.from_cycles + r->timing.handover_cycles;
    if (hw_low(a->record.flit[2]) == hw_low(b->record.flit[2]) && b->record.from_cycles < until)
        differ(r, b, "core %u hands over a request at %" PRIu64 ", and until %" PRIu64 " another one",
               hw_low(b->record.flit[2]), b->record.from_cycles, until);
}

/* The same for by_thread. */
static void check_thread(struct replay *r, const struct sim_log_entry *a, const struct sim_log_entry *b) {
    if (a->record.flit[2] == b->record.flit[2] && a->tile == b->tile && b->record.from_cycles < a->record.from_cycles)
        differ(r, b, "thread %u made a request at %" PRIu64 ", and one that it made at %" PRIu64 " was served before",
               hw_high(b->record.flit[2]), b->record.from_cycles, a->record.from_cycles);
}

/* False: no memory. */
static bool check_requests(struct replay *r) {
    const struct sim_log_process *p = r->process;
    const struct sim_log_entry **came = malloc((p->n_entries + 1) * sizeof *came);
    size_t n = 0;
    if (came == NULL)
        return false;
    for (size_t i = 0; i < p->n_entries; i++)
        if (p->entry[i].record.kind == HW_LOG_CAME)
            came[n++] = &p->entry[i];
    qsort(came, n, sizeof *came, by_core);
    for (size_t i = 1; i < n; i++)
        check_core(r, came[i - 1], came[i]);
    qsort(came, n, sizeof *came, by_thread);
    for (size_t i = 1; i < n; i++)
        check_thread(r, came[i - 1], came[i]);
    free(came);
    return true;
}

/* ---- one process ---- */

static bool refuse(struct sim_error *error, const char *what) {
    snprintf(error->text, sizeof error->text, "%s", what);
    return false;
}

/* The first record of each NI; the states of a forked child's. */
static bool begin(struct replay *r, struct sim_error *error) {
    const struct sim_log_process *p = r->process;
    for (uint32_t i = 0; i < (uint32_t)p->first.width * p->first.height; i++)
        r->at[i] = SIM_LOG_END;
    for (size_t i = p->n_entries; i-- > 0;) {
        r->result->n_nis += r->at[p->entry[i].tile] == SIM_LOG_END;
        r->at[p->entry[i].tile] = i;
    }
    for (size_t i = 0; i < p->n_begins; i++)
        if (!sim_feed_state(r->sim, p->begin[i].tile, &p->begin[i].state, p->begin[i].bytes))
            return refuse(error, "damaged: no NI can have such a state");
    return true;
}

static bool run(struct replay *r, struct sim_error *error) {
    const struct sim_log_process *p = r->process;
    char text[120];
    if (!begin(r, error))
        return false;
    if (!check_requests(r))
        return refuse(error, "out of memory");
    for (size_t i = 0; i < p->n_entries && !r->result->differs; i++) {
        const struct sim_log_entry *e = &p->entry[i];
        struct hw_packet packet = packet_of(&e->record);
        if (r->at[e->tile] != i && e->record.kind == HW_LOG_LEFT)
            continue; /* compared */
        if (e->record.kind == HW_LOG_LEFT)
            differ(r, e, "the live engine answers: %s; the model does not", text_of(r, &packet, text));
        else if (r->at[e->tile] != i) /* an answer comes before it */
            differ(r, &p->entry[r->at[e->tile]], "the live engine answers, and the model does not");
        else if (!feed(r, e))
            return refuse(error, "damaged: a request for another NI, or no memory");
    }
    r->result->n_held = sim_summary(r->sim).n_held;
    return true;
}

static struct sim_config config_of(const struct hw_log_header *h, struct replay *r) {
    struct sim_config config = sim_config_default();
    bool reserve = (h->flags & HW_LOG_NO_RESERVE) == 0;
    config.width = h->width;
    config.height = h->height;
    config.n_control = h->n_control;
    config.n_queue = h->n_queue;
    config.strict_paper = !reserve;
    config.full_again = (h->flags & HW_LOG_FULL_AGAIN) != 0;
    config.context = r;
    config.on_packet = on_packet;
    return config;
}

bool sim_log_replay(const struct sim_log *log, uint32_t process, struct sim_log_result *result,
                    struct sim_error *error) {
    struct replay r = {.process = &log->process[process], .result = result};
    const struct hw_log_header *h = &r.process->first;
    struct sim_config config = config_of(h, &r);
    struct hw_mesh_config mesh = hw_mesh_config_default();
    *result = (struct sim_log_result){.process = h->process,
                                      .child = (h->flags & HW_LOG_CHILD) != 0,
                                      .width = h->width,
                                      .height = h->height,
                                      .n_control = h->n_control,
                                      .n_queue = h->n_queue,
                                      .time_scale = h->time_scale};
    r.timing = mesh.timing = config.timing;
    mesh.width = h->width;
    mesh.height = h->height;
    r.sim = sim_new(&config, error);
    if (r.sim == NULL)
        return false;
    r.thread = calloc(UINT16_MAX + 1, sizeof *r.thread);
    r.at = malloc((size_t)h->width * h->height * sizeof *r.at);
    void *ports = malloc(hw_mesh_bytes(mesh.width, mesh.height));
    bool ok = r.thread != NULL && r.at != NULL && ports != NULL && hw_mesh_init(&r.mesh, &mesh, ports) &&
              hw_layout_init(&r.layout, h->width * (uint32_t)h->height, h->n_control);
    ok = ok ? run(&r, error) : refuse(error, "out of memory");
    free(ports);
    free(r.at);
    free(r.thread);
    sim_free(r.sim);
    return ok;
}
