/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Equations 1 and 2, the names of the policies, and which application runs when they run one at a time. */
#include "csa.h"

const char *csa_policy_name(enum csa_policy policy) {
    static const char names[CSA_N_POLICIES][4] = {"rr", "csa", "oat"};
    return (uint32_t)policy < CSA_N_POLICIES ? names[policy] : "?";
}

uint64_t csa_limit_ns(uint64_t n_ready, uint64_t n_running, uint64_t slot_ns) {
    uint64_t n = n_ready + n_running;
    return n == 0 ? 0 : (n - 1) * (2 * slot_ns);
}

double csa_unfairness(const double *scheduled, const double *alone, size_t n) {
    double most = 0, least = 0;
    for (size_t i = 0; i < n; i++) {
        double slowdown = scheduled[i] / alone[i];
        if (i == 0 || slowdown > most)
            most = slowdown;
        if (i == 0 || slowdown < least)
            least = slowdown;
    }
    return n > 0 ? most / least : 0;
}

bool csa_oat_next(struct csa_oat *oat) {
    oat->current++;
    return oat->current < oat->n_applications;
}
