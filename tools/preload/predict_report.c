/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The output of `subutai predict`; see predict.h. */
#include "predict_rows.h"

/* ---- for people ---- */

static unsigned hidden_machine(const struct predict *p) {
    return p->n_machines > 1 ? 0 : FIELDS_HIDE(COLUMN_MACHINE);
}

static void print_calls(const struct predict *p, FILE *out) {
    struct table t = fields_table(predict_call_fields, hidden_machine(p));
    struct call_row row;
    for (size_t r = 0; r < p->n_runs; r++)
        for (int kind = 0; kind < SIM_N_CALLS; kind++)
            if (predict_call_row(&p->runs[r], kind, &row))
                fields_row(&t, predict_call_fields, hidden_machine(p), &row);
    fputc('\n', out);
    table_print(&t, out);
}

/* With data traffic. */
static void print_packets(const struct predict *p, FILE *out) {
    struct table t = fields_table(predict_packet_fields, hidden_machine(p));
    struct packet_row row;
    size_t n = 0;
    for (size_t r = 0; r < p->n_runs; r++)
        for (int kind = 0; kind < SIM_N_PACKETS; kind++)
            if (predict_packet_row(&p->runs[r], kind, &row)) {
                fields_row(&t, predict_packet_fields, hidden_machine(p), &row);
                n++;
            }
    if (n == 0)
        return;
    fprintf(out, "\ndata load %u permille, %s\n", p->config.load_permille,
            p->config.qos == HW_QOS_NONE ? "no quality of service" : "control packets first");
    table_print(&t, out);
}

/*
 * "4 applications on 64 cores, 8x8", "1 application on 2, 16 and 64 cores", "1 application on 2 cores of AMD EPYC,
 * ...", "1 application on 2 machines"
 */
static void print_heading(const struct predict *p, FILE *out) {
    size_t n_each = p->n_runs / p->n_chips;
    const struct predict_machine *machine = p->runs[0].machine;
    fprintf(out, "%zu application%s on ", p->n_applications, p->n_applications == 1 ? "" : "s");
    if (p->n_machines > 1) {
        fprintf(out, "%zu machines\n", p->n_machines);
        return;
    }
    for (size_t i = 0; i < p->n_chips; i++)
        fprintf(out, "%s%u", i == 0 ? "" : i + 1 < p->n_chips ? ", " : " and ", p->runs[i * n_each].chip.n_cores);
    if (machine->on_host)
        fprintf(out, " cores of %s, %s, %s\n", machine->costs.cpu_name, machine->costs.kernel_name,
                machine->costs.libc_name);
    else if (p->n_chips == 1)
        fprintf(out, " cores, %ux%u\n", p->runs[0].chip.width, p->runs[0].chip.height);
    else
        fprintf(out, " cores\n");
}

void predict_print(const struct predict *p, FILE *out) {
    unsigned hidden = hidden_machine(p) | (p->unfairness ? 0 : FIELDS_HIDE(COLUMN_UNFAIRNESS));
    struct table t = fields_table(predict_run_fields, hidden);
    print_heading(p, out);
    for (size_t i = 0; i < p->n_runs; i++) {
        struct run_row row = predict_run_row(p, i);
        fields_row(&t, predict_run_fields, hidden, &row);
    }
    table_print(&t, out);
    if (p->calls)
        print_calls(p, out);
    if (p->config.load_permille != 0)
        print_packets(p, out);
}

/* ---- JSON ---- */

static void put_row(struct json *j, const struct field *fields, const void *row) {
    json_open(j, NULL, '{');
    fields_json(j, fields, 0, row);
    json_close(j, '}');
}

static void put_sections(struct json *j, const struct sim_sections *s) {
    json_open(j, "sections", '{');
    fields_json(j, predict_section_fields, 0, s);
    json_open(j, "octaves", '[');
    for (int k = 0; k < 63; k++)
        if (s->n_in[k] != 0)
            put_row(j, predict_octave_fields, &(struct octave_row){UINT64_C(1) << k, s->n_in[k], s->ns_in[k]});
    json_close(j, ']');
    json_close(j, '}');
}

static void put_threads(struct json *j, const struct predict *p, size_t run, uint32_t application) {
    uint32_t n = sbt_trace_info(p->files[p->application[application]].trace)->n_threads;
    struct thread_row row;
    json_open(j, "threads", '[');
    for (row.number = 0; row.number < n; row.number++)
        if (sim_thread(p->runs[run].sim, application, row.number, &row.thread))
            put_row(j, predict_thread_fields, &row);
    json_close(j, ']');
}

static void put_application(struct json *j, const struct predict *p, size_t run, uint32_t number) {
    struct application_row row = predict_application_row(p, run, number);
    json_line(j);
    json_open(j, NULL, '{');
    fields_json(j, predict_application_fields, p->unfairness ? 0 : FIELDS_HIDE(COLUMN_ALONE), &row);
    put_sections(j, &row.sum.sections);
    put_threads(j, p, run, number);
    json_close(j, '}');
}

static void put_calls(struct json *j, const struct predict_run *run) {
    struct call_row row;
    json_open(j, "calls", '[');
    for (int kind = 0; kind < SIM_N_CALLS; kind++)
        if (predict_call_row(run, kind, &row))
            put_row(j, predict_call_fields, &row);
    json_close(j, ']');
}

static void put_packets(struct json *j, const struct predict_run *run) {
    struct packet_row row;
    json_open(j, "packets", '[');
    for (int kind = 0; kind < SIM_N_PACKETS; kind++)
        if (predict_packet_row(run, kind, &row))
            put_row(j, predict_packet_fields, &row);
    json_close(j, ']');
}

static void put_run(struct json *j, const struct predict *p, size_t i) {
    const struct predict_run *run = &p->runs[i];
    struct run_row row = predict_run_row(p, i);
    json_line(j);
    json_open(j, NULL, '{');
    fields_json(j, predict_run_fields, 0, &row);
    if (sim_sync_has_nis(run->sync))
        fields_json(j, predict_hardware_fields, 0, &row);
    if (sim_sync_has_optics(run->sync))
        fields_json(j, predict_optical_fields, 0, &row);
    put_calls(j, run);
    put_packets(j, run);
    json_open(j, "applications", '[');
    for (uint32_t k = 0; k < p->n_applications; k++)
        put_application(j, p, i, k);
    json_close(j, ']');
    json_close(j, '}');
}

void predict_print_json(const struct predict *p, FILE *out) {
    struct common_row common = predict_common_row(p);
    struct json j = json_on(out);
    json_open(&j, NULL, '{');
    fields_json(&j, predict_common_fields, 0, &common);
    json_open(&j, "runs", '[');
    for (size_t i = 0; i < p->n_runs; i++)
        put_run(&j, p, i);
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
}
