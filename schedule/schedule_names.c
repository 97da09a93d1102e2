/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "schedule_read.h"

static const struct {
    const char *name, *object;
} ops[SCHEDULE_N_OPS] = {
    [SCHEDULE_MUTEX_LOCK] = {"mutex_lock", "mutex"},
    [SCHEDULE_MUTEX_TRYLOCK] = {"mutex_trylock", "mutex"},
    [SCHEDULE_MUTEX_UNLOCK] = {"mutex_unlock", "mutex"},
    [SCHEDULE_COND_WAIT] = {"cond_wait", "cond"},
    [SCHEDULE_COND_SIGNAL] = {"cond_signal", "cond"},
    [SCHEDULE_COND_BROADCAST] = {"cond_broadcast", "cond"},
    [SCHEDULE_BARRIER] = {"barrier_wait", "barrier"},
    [SCHEDULE_READ_LOCK] = {"rdlock", "rwlock"},
    [SCHEDULE_READ_TRYLOCK] = {"tryrdlock", "rwlock"},
    [SCHEDULE_WRITE_LOCK] = {"wrlock", "rwlock"},
    [SCHEDULE_WRITE_TRYLOCK] = {"trywrlock", "rwlock"},
    [SCHEDULE_RWLOCK_UNLOCK] = {"rwlock_unlock", "rwlock"},
    [SCHEDULE_SEM_WAIT] = {"sem_wait", "sem"},
    [SCHEDULE_SEM_TRYWAIT] = {"sem_trywait", "sem"},
    [SCHEDULE_SEM_POST] = {"sem_post", "sem"},
    [SCHEDULE_SPIN_LOCK] = {"spin_lock", "spin"},
    [SCHEDULE_SPIN_UNLOCK] = {"spin_unlock", "spin"},
    [SCHEDULE_ONCE] = {"once", NULL},
    [SCHEDULE_CREATE] = {"thread_create", NULL},
    [SCHEDULE_BEGIN] = {"thread_begin", NULL},
    [SCHEDULE_END] = {"thread_end", NULL},
    [SCHEDULE_JOIN] = {"thread_join", NULL},
    [SCHEDULE_DETACH] = {"thread_detach", NULL},
    [SCHEDULE_CANCEL] = {"thread_cancel", NULL},
    [SCHEDULE_YIELD] = {"yield", NULL},
    [SCHEDULE_SLEEP] = {"sleep", NULL},
    [SCHEDULE_LEAVE] = {"leave", NULL},
    [SCHEDULE_FORK] = {"fork", NULL},
    [SCHEDULE_GIVE_UP] = {"give_up_turn", NULL},
    [SCHEDULE_SOFT_BARRIER] = {"soft_barrier", "soft_barrier"},
    [SCHEDULE_PCS] = {"pcs", NULL},
    [SCHEDULE_FUTEX_WAIT] = {"futex_wait", "futex"},
    [SCHEDULE_FUTEX_WAKE] = {"futex_wake", "futex"},
    [SCHEDULE_FUTEX_REQUEUE] = {"futex_requeue", "futex"},
};

const char *schedule_op_name(enum schedule_op op) {
    return ops[op].name;
}

const char *schedule_object_name(enum schedule_op op) {
    return ops[op].object;
}

const char *schedule_reason_name(enum schedule_reason reason) {
    static const char *const names[SCHEDULE_N_REASONS] = {"woken", "timed_out", "cancelled", "interrupted"};
    return names[reason];
}

const char *schedule_return_name(enum schedule_return how) {
    static const char *const names[SCHEDULE_N_RETURNS] = {"from_call", "from_handler", "from_absence", "from_nowhere",
                                                          "from_pcs"};
    return names[how];
}
