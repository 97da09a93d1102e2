/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * area [--cores N] [--spm BYTES|least] [--control N] [--chip MM2] [--json] : Tables VIII and IX for that chip.
 * --control: control elements, for what the model has beside the paper's hardware; 4, or 1 with the least scratchpad.
 */
#include "area.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_file.h"

static int refuse(const char *what, const char *why) {
    fprintf(stderr, "area: %s: %s\n", what, why);
    return 2;
}

static void row(const char *name, double um2, const char *overhead, double percent) {
    if (*overhead)
        printf("%-24s %12.2f %12.1f %%   %s\n", name, um2, percent, overhead);
    else
        printf("%-24s %12.2f\n", name, um2);
}

static void json_ours(struct json *j, const struct area *a, const struct area_ours *o) {
    double sum = o->tags + o->counts + o->states;
    json_open(j, "ours", '{');
    json_uint(j, "tag_bits", o->n_tag_bits);
    json_uint(j, "count_bits", o->n_count_bits);
    json_uint(j, "states", o->n_states);
    json_real(j, "tags_um2", o->tags, 2);
    json_real(j, "counts_um2", o->counts, 2);
    json_real(j, "states_um2", o->states, 2);
    json_real(j, "um2", sum, 2);
    json_real(j, "percent", area_overhead(sum, a->ni), 4);
    json_close(j, '}');
}

static void print_json(const struct area *a, const struct area_ours *ours, uint32_t cores, uint64_t spm, double chip) {
    double added = a->fsm + a->spm, total = a->ni + added;
    struct json j = json_on(stdout);
    json_open(&j, NULL, '{');
    json_uint(&j, "cores", cores);
    json_uint(&j, "spm_bytes", spm);
    json_significant(&j, "chip_mm2", chip, 6);
    json_real(&j, "ni_um2", a->ni, 2);
    json_real(&j, "fsm_um2", a->fsm, 2);
    json_real(&j, "spm_um2", a->spm, 2);
    json_real(&j, "spm_linear_um2", a->spm_linear, 2);
    json_real(&j, "total_um2", total, 2);
    json_real(&j, "fsm_percent", area_overhead(a->fsm, a->ni), 4);
    json_real(&j, "spm_percent", area_overhead(a->spm, a->ni), 4);
    json_real(&j, "added_percent", area_overhead(added, a->ni), 4);
    json_real(&j, "chip_added_percent", area_of_chip(added, cores, chip), 6);
    json_real(&j, "chip_total_percent", area_of_chip(total, cores, chip), 6);
    json_ours(&j, a, ours);
    json_open(&j, "others", '[');
    for (uint32_t i = 0; i < area_n_others; i++) {
        double mm2 = area_others[i].core_mm2 + area_others[i].additional_mm2;
        json_open(&j, NULL, '{');
        json_text(&j, "name", area_others[i].name);
        json_real(&j, "core_mm2", mm2, 5);
        json_real(&j, "chip_percent", area_of_chip(mm2 * 1e6, cores, chip), 6);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
}

static void print_table_8(const struct area *a, uint64_t spm) {
    double added = a->fsm + a->spm;
    printf("Table VIII, um2 for each core; scratchpad of %" PRIu64 " bytes\n", spm);
    row("Basic NI", a->ni, "", 0);
    row("Subutai FSM", a->fsm, "", 0);
    row("SPM", a->spm, "of the basic NI", area_overhead(a->spm, a->ni));
    row("SPM, were it linear", a->spm_linear, "of the basic NI", area_overhead(a->spm_linear, a->ni));
    row("FSM + SPM", added, "of the basic NI", area_overhead(added, a->ni));
    row("Basic NI + FSM + SPM", a->ni + added, "", 0);
}

static void print_ours(const struct area *a, const struct area_ours *o) {
    double sum = o->tags + o->counts + o->states;
    char name[40];
    printf("\nNot in these tables: what the model has and the paper has not, estimated, um2 for each core\n");
    snprintf(name, sizeof name, "Tags, %" PRIu32 " bits", o->n_tag_bits);
    row(name, o->tags, "", 0);
    snprintf(name, sizeof name, "Counts, %" PRIu32 " bits", o->n_count_bits);
    row(name, o->counts, "", 0);
    snprintf(name, sizeof name, "States, %" PRIu32, o->n_states);
    row(name, o->states, "", 0);
    row("All of it", sum, "of the basic NI", area_overhead(sum, a->ni));
}

static void print_table_9(const struct area *a, uint32_t cores, uint64_t spm, double chip) {
    double added = a->fsm + a->spm;
    printf("\nTable IX, %" PRIu32 " cores on %g mm2\n", cores, chip);
    for (uint32_t i = 0; i < area_n_others; i++) {
        double mm2 = area_others[i].core_mm2 + area_others[i].additional_mm2;
        printf("%-24s %12.5f mm2 a core %10.4f %% of the chip", area_others[i].name, mm2,
               area_of_chip(mm2 * 1e6, cores, chip));
        if (cores == 64 && chip == 400)
            printf("   the paper: %.3f %%", area_others[i].paper_percent);
        printf("\n");
    }
    printf("%-24s %12.5f mm2 a core %10.4f %% of the chip%s\n", "Subutai", added / 1e6,
           area_of_chip(added, cores, chip), cores == 64 && chip == 400 && spm == 1024 ? "   the paper: 0.101 %" : "");
    printf("%-24s %12.5f mm2 a core %10.4f %% of the chip%s\n", "Subutai with the NI", (a->ni + added) / 1e6,
           area_of_chip(a->ni + added, cores, chip),
           cores == 64 && chip == 400 && spm == 1024 ? "   the paper: 0.317 %" : "");
}

int main(int argc, char **argv) {
    uint64_t cores = 64, spm = 1024;
    double chip = 400;
    uint64_t control = 0;
    bool json = false, least = false;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--json")) {
            json = true;
            continue;
        }
        bool is_cores = !strcmp(argv[i], "--cores"), is_spm = !strcmp(argv[i], "--spm");
        bool is_control = !strcmp(argv[i], "--control");
        if (!is_cores && !is_spm && !is_control && strcmp(argv[i], "--chip"))
            return refuse(argv[i], "unknown option (legal: --cores, --spm, --control, --chip, --json)");
        if (i + 1 == argc)
            return refuse(argv[i], "needs a value");
        const char *text = argv[++i];
        if (is_spm && !strcmp(text, "least")) {
            least = true;
            continue;
        }
        char *end;
        double value = strtod(text, &end);
        if (*end || end == text || !(value >= 1) || value > 1e6)
            return refuse(text, "not a number between 1 and 1000000");
        if (is_cores)
            cores = (uint64_t)value;
        else if (is_spm)
            spm = (uint64_t)value;
        else if (is_control)
            control = (uint64_t)value;
        else
            chip = value;
    }
    if (least)
        spm = area_least_spm_bytes((uint32_t)cores);
    if (spm < area_least_spm_bytes((uint32_t)cores))
        fprintf(stderr,
                "area: %" PRIu64 " bytes are too few for a barrier of %" PRIu64 " cores, which takes %" PRIu64 "\n",
                spm, cores, area_least_spm_bytes((uint32_t)cores));

    struct area a = area_of(spm);
    struct area_ours ours = area_ours(control ? (uint32_t)control : least ? 1 : 4);
    if (json) {
        print_json(&a, &ours, (uint32_t)cores, spm, chip);
        return 0;
    }
    print_table_8(&a, spm);
    if (least)
        printf("One control element: no condition variable, which needs a second beside its mutex's; with it %" PRIu64
               " bytes\n",
               area_least_spm_bytes_with_condition((uint32_t)cores));
    print_table_9(&a, (uint32_t)cores, spm, chip);
    print_ours(&a, &ours);
    return 0;
}
