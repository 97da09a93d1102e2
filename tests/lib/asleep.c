/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "asleep.h"

#include "clock.h"
#include "proc.h"

bool is_asleep(pid_t tid) {
    return proc_thread_state(tid) == 'S';
}

void await_asleep(const pid_t *tid) {
    pid_t id;
    do {
        sleep_ms(1);
        id = __atomic_load_n(tid, __ATOMIC_SEQ_CST);
    } while (id == 0 || !is_asleep(id));
}
