/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* area [--cores N] [--spm BYTES|least] [--chip MM2] [--json] : Tables VIII and IX for that chip. */
#include "area.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void print_json(const struct area *a, uint32_t cores, uint64_t spm, double chip) {
    double added = a->fsm + a->spm, total = a->ni + added;
    printf("{\"cores\": %" PRIu32 ", \"spm_bytes\": %" PRIu64 ", \"chip_mm2\": %g, \"ni_um2\": %.2f, \"fsm_um2\": %.2f,"
           " \"spm_um2\": %.2f, \"spm_linear_um2\": %.2f, \"total_um2\": %.2f,\n \"fsm_percent\": %.4f,"
           " \"spm_percent\": %.4f, \"added_percent\": %.4f, \"chip_added_percent\": %.6f,"
           " \"chip_total_percent\": %.6f,\n \"others\": [",
           cores, spm, chip, a->ni, a->fsm, a->spm, a->spm_linear, total, area_overhead(a->fsm, a->ni),
           area_overhead(a->spm, a->ni), area_overhead(added, a->ni), area_of_chip(added, cores, chip),
           area_of_chip(total, cores, chip));
    for (uint32_t i = 0; i < area_n_others; i++)
        printf("%s{\"name\": \"%s\", \"core_mm2\": %.5f, \"chip_percent\": %.6f}", i ? ", " : "", area_others[i].name,
               area_others[i].core_mm2 + area_others[i].additional_mm2,
               area_of_chip((area_others[i].core_mm2 + area_others[i].additional_mm2) * 1e6, cores, chip));
    printf("]}\n");
}

int main(int argc, char **argv) {
    uint64_t cores = 64, spm = 1024;
    double chip = 400;
    bool json = false, least = false;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--json")) {
            json = true;
            continue;
        }
        bool is_cores = !strcmp(argv[i], "--cores"), is_spm = !strcmp(argv[i], "--spm");
        if (!is_cores && !is_spm && strcmp(argv[i], "--chip"))
            return refuse(argv[i], "unknown option (legal: --cores, --spm, --chip, --json)");
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
    if (json) {
        print_json(&a, (uint32_t)cores, spm, chip);
        return 0;
    }
    double added = a.fsm + a.spm;
    printf("Table VIII, um2 for each core; scratchpad of %" PRIu64 " bytes\n", spm);
    row("Basic NI", a.ni, "", 0);
    row("Subutai FSM", a.fsm, "", 0);
    row("SPM", a.spm, "of the basic NI", area_overhead(a.spm, a.ni));
    row("SPM, were it linear", a.spm_linear, "of the basic NI", area_overhead(a.spm_linear, a.ni));
    row("FSM + SPM", added, "of the basic NI", area_overhead(added, a.ni));
    row("Basic NI + FSM + SPM", a.ni + added, "", 0);
    printf("\nTable IX, %" PRIu64 " cores on %g mm2\n", cores, chip);
    for (uint32_t i = 0; i < area_n_others; i++) {
        double mm2 = area_others[i].core_mm2 + area_others[i].additional_mm2;
        printf("%-24s %12.5f mm2 a core %10.4f %% of the chip", area_others[i].name, mm2,
               area_of_chip(mm2 * 1e6, (uint32_t)cores, chip));
        if (cores == 64 && chip == 400)
            printf("   the paper: %.3f %%", area_others[i].paper_percent);
        printf("\n");
    }
    printf("%-24s %12.5f mm2 a core %10.4f %% of the chip%s\n", "Subutai", added / 1e6,
           area_of_chip(added, (uint32_t)cores, chip),
           cores == 64 && chip == 400 && spm == 1024 ? "   the paper: 0.101 %" : "");
    printf("%-24s %12.5f mm2 a core %10.4f %% of the chip%s\n", "Subutai with the NI", (a.ni + added) / 1e6,
           area_of_chip(a.ni + added, (uint32_t)cores, chip),
           cores == 64 && chip == 400 && spm == 1024 ? "   the paper: 0.317 %" : "");
    return 0;
}
