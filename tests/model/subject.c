/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "subject.h"

#include <string.h>

bool subject_init(struct subject *s, const struct hw_config *config, uint32_t number) {
    if (config->n_control > REF_MAX_PRIMITIVES || config->n_queue > REF_MAX_WAITERS)
        return false;
    memset(s, 0, sizeof *s);
    ref_init(&s->ref, config);
    return hw_ni_init(&s->ni, config, number, s->bytes);
}

const char *subject_step(struct subject *s, const struct hw_packet *packet) {
    struct hw_spm *spm = &s->ni.spm;
    uint8_t before[SUBJECT_MAX_BYTES];
    uint32_t room = (uint32_t)(spm->n_free - spm->n_reserved);
    spm->bytes = s->bytes; /* the subject may be a copy */
    memcpy(before, s->bytes, sizeof before);
    hw_fsm_step(&s->ni, packet, &s->step, s->outputs);
    const char *why = NULL;
    if (!hw_spm_is_valid(spm, &why))
        return why;
    uint32_t new_id = 0;
    if (s->step.n_outputs > 0) {
        struct hw_message m = hw_packet_decode(&spm->layout, &s->outputs[0].packet);
        new_id = m.op == HW_OP_ALLOCATED ? m.primitive : 0;
    }
    enum hw_status status = ref_step(&s->ref, &spm->layout, spm->ni, packet, new_id);
    why = ref_compare(&s->ref, status, &spm->layout, &s->step, s->outputs);
    if (why)
        return why;
    if (s->step.status != HW_STATUS_DONE && memcmp(before, s->bytes, sizeof before) != 0)
        return "a request that did not happen has changed the memory";
    if ((uint32_t)(spm->n_free - spm->n_reserved) > room && !s->step.made_room)
        return "room was made and not told";
    return NULL;
}
