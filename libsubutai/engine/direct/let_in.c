/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/direct/rwlock.h"

#include <stddef.h>

struct direct_rw_change direct_policy_let_in(uint32_t seen, uint32_t hold, const struct direct_rw_waiters *n,
                                             bool prefers_writers) {
    struct direct_rw_change c = {0};
    uint32_t given_up = !n->one_comes && (seen & RW_HANDED) != 0 ? RW_WRITER : hold;
    c.want = (seen - given_up) & ~(uint32_t)(RW_QUEUED | RW_WRITERS | RW_WOKEN | (n->one_comes ? 0 : RW_HANDED));
    if ((c.want & RW_WRITER) == 0 && !(prefers_writers && n->writers != 0) &&
        (c.want & RW_READERS) / RW_READER + n->readers_waiting <= RW_READERS / RW_READER)
        c.granted = n->readers_waiting;
    c.writers_turn = c.granted == 0 && (c.want & (RW_WRITER | RW_READERS)) == 0 && n->writer != NULL && !n->one_comes;
    c.want += c.granted * RW_READER;
    if (c.writers_turn)
        c.want |= n->hands_over ? RW_WOKEN | RW_WRITER | RW_HANDED : RW_WOKEN;
    c.want |= n->one_comes ? RW_WOKEN : 0;
    c.want |= n->total > c.granted ? RW_QUEUED : 0;
    c.want |= n->writers > 0 ? RW_WRITERS : 0;
    return c;
}
