/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The inside of switch/: contexts, carriers and their queues.
 *
 * A context's token says how it stands with being woken:
 *
 * | token   | meaning                                          | set by                                              |
 * |---------|--------------------------------------------------|-----------------------------------------------------|
 * | NONE    | not woken, or already made ready for it          | its own thread when it consumes TOKEN; who has it   |
 * | TOKEN   | woken: the next park returns at once             | whoever wakes                                       |
 * | PARKED  | waits, registers saved: whoever replaces this by | the stack it was switched to (commit), from NONE    |
 * |         | TOKEN has it, and must make it ready             |                                                     |
 * | BLOCKED | sleeps in the kernel on this very word           | its own thread, from NONE                           |
 *
 * A context is in one place: running on its home or on a carrier, PARKED, in one ready queue, or on its way home
 * (home_call is COME). Only who has it may move it. Contexts are never freed, only used again: a late wake-up of one
 * that has ended is a wake-up for no reason of another.
 *
 * Locks: a queue's or a table bucket's guard, one of each at most, bucket before queue. Signal handlers: a thread that
 * holds one, or is in the middle of a switch, has sbt_self.in_switch set; a handler then leaves its wake-ups to whoever
 * leaves this folder next, which is the interrupted code itself at the latest: on the same kernel thread, though
 * perhaps in another context.
 */
#ifndef SBT_SWITCH_INNER_H
#define SBT_SWITCH_INNER_H

#include "core/handlers.h"
#include "switch/context.h"
#include "switch/switch.h"
#include "wait/futex.h"
#include "wait/guard.h"

#define SBT_CARRIERS_MAX 64
#define SBT_POOL_MAX 65536 /* contexts */

enum sbt_token { SBT_TOKEN_NONE, SBT_TOKEN_TOKEN, SBT_TOKEN_PARKED, SBT_TOKEN_BLOCKED };

/* What its home is told while it is away: futex word of the husk. */
enum sbt_home_call {
    SBT_HOME_NOTHING,
    SBT_HOME_LOOK, /* at `due`; by the context itself, running elsewhere */
    SBT_HOME_COME  /* the context's registers are its home's to run; by who has the context */
};

/* Why a context has been switched away from: what is left to do for it on the stack that was switched to. */
enum sbt_leaving {
    SBT_LEAVES_NOTHING,
    SBT_LEAVES_TO_PARK,
    SBT_LEAVES_TO_YIELD, /* behind all others, */
    SBT_LEAVES_TO_GO_ON, /* or with those that have been woken */
    SBT_LEAVES_FOR_HOME
};

/*
 * Of a crowd. Set to JOINED and NOT by its own thread, in between by who takes it out: until that has been looked at it
 * joins no other, in a handler perhaps.
 */
enum sbt_membership {
    SBT_CROWD_NOT,
    SBT_CROWD_JOINED,
    SBT_CROWD_OUT,    /* it looks at the object again */
    SBT_CROWD_COUNTED /* it does not */
};

/* no_more, bits */
#define SBT_SWITCH_NO_MORE 1 /* threads that begin get no context, */
#define SBT_SWITCH_ENDED 2   /* and none goes away from home */

struct sbt_carrier;

struct sbt_context {
    /* What every switch looks at: one cache line. */
    uint32_t token;      /* enum sbt_token, atomic; first, and aligned: its address is the context's */
    uint32_t crowd_next; /* the one that joined before it, as in the crowd's word (crowd.c) */
    struct sbt_regs regs;
    struct sbt_context *next;     /* in a queue or the pool; its holder's */
    struct sbt_carrier *carrier;  /* who runs it; NULL: its home. Its thread's, or its holder's; atomic for summoners */
    uint64_t mask;                /* its signal mask when it last left a place */
    uint32_t homebody;            /* so many more waits are spent at home; atomic, set by the watcher */
    uint32_t ticket;              /* what it waits for in its crowd */
    uint8_t bidden;               /* enum sbt_stays; atomic: may be set by others */
    uint8_t away;                 /* its home is a husk; atomic, its own thread's */
    uint8_t in_crowd;             /* enum sbt_membership; atomic */
    bool dozes;                   /* its last wait with a deadline lasted until that; its own thread's */
    bool receives;                /* accepts signals that idle carriers block: waits at home */
    bool interrupted;             /* its wait is over because of that; its holder's */
    volatile uint8_t mask_unsure; /* its mask may have changed since; also set by handlers on its own thread */

    uint32_t home_call __attribute__((aligned(64))); /* enum sbt_home_call, atomic */
    uint32_t homebody_next;                          /* how many the next time; the watcher's */
    uint64_t due;                                    /* deadline of its wait; atomic, its own thread's (deadline.c) */
    uint64_t armed;                                  /* what its husk sleeps towards; atomic, the husk's */
    struct sbt_regs husk;
    struct sbt_regs scratch; /* where the husk leaves its registers, for nobody */
    struct sbt_husk *husk_stack;
    enum sbt_leaving why; /* it leaves its home */
    pthread_t thread;     /* set by its own thread, read by others: atomic, as the tid of its home */
    uint32_t tid;
} __attribute__((aligned(64)));

struct sbt_queue {
    struct sbt_context *head, *tail;
};
enum sbt_queue_of { SBT_WOKEN, SBT_GAVE_WAY, SBT_QUEUES };

struct sbt_carrier {
    struct sbt_regs regs; /* of its own loop */
    struct sbt_context *leaving;
    enum sbt_leaving why;
    bool woke;                    /* has woken an idle carrier since it last left a context */
    uint32_t skip;                /* occasions to wake that are passed over after a useless one, */
    uint32_t skip_left;           /* and that are yet to be passed over; both atomic */
    uint64_t woke_at_ns;          /* of its CPU time */
    uint32_t idle_sleeps;         /* its own, while it had nothing to run */
    uint32_t sleeps_counted;      /* all of its kernel thread's, when they were last counted */
    uint32_t pops_at_count;       /* when that was; its own */
    uint32_t pops_at_turn;        /* when the kernel was last asked for a turn; atomic, see sbt_switch_yield */
    uint32_t n_parked;            /* contexts parked here that sbt_n_runnable still counts: its own */
    struct sbt_carrier *found_at; /* from which it has taken what it runs, NULL: its own queue; */
    uint64_t found_ns;            /* when */
    uint32_t in_vain;             /* finds in a row that soon waited again; its own */
    uint32_t robbed_in_vain;      /* the same of finds that others made here; atomic */
    uint32_t tid;                 /* atomic, for the watcher; 0: it has not begun */
    uint32_t cpu;                 /* on which it went to sleep last; atomic */
    uint64_t mask;                /* its signal mask in the kernel */
    struct sbt_context *current;  /* NULL: idle; atomic, for the watcher */

    struct sbt_guard guard __attribute__((aligned(64))); /* of the ready queue */
    struct sbt_queue queue[SBT_QUEUES];                  /* woken ones before those that only gave way */
    uint32_t n;                                          /* length of both; atomic, read without the guard as a hint */
    uint32_t preferred;                                  /* woken ones in a row that were taken while others waited */
    uint32_t pops;   /* contexts taken by the carrier itself; atomic: that it gets on */
    uint32_t stolen; /* times somebody else has taken some; atomic */
    uint32_t asleep; /* 1: sleeps on this word, or is about to; atomic */
} __attribute__((aligned(128)));

#ifndef SBT_VAIN_MANY
#define SBT_VAIN_MANY 4 /* finds in a row, after which there is no search, and seldom a wake-up */
#endif
#define SBT_TABLE_BUCKETS 256

struct sbt_table_bucket {
    struct sbt_guard guard;
    uint32_t unused;
    struct sbt_table_node *head, *tail;
} __attribute__((aligned(64)));

/* Everything that a forked child must find empty. */
struct sbt_switch_state {
    /* Read at every wait and wake-up, written rarely. */
    uint32_t running; /* atomic */
    uint32_t n_carriers;
    uint32_t overdue;  /* a signal handler could not wake: atomic */
    uint32_t all_held; /* every carrier was found asleep in the kernel, and none has got on since; atomic, a hint */
    uint32_t all_home; /* switching does not pay for now: everybody waits at home; atomic, a hint */
    uint32_t quit;     /* the program's last thread has ended: atomic */
    uint32_t decided;  /* 1: somebody is deciding or has decided whether to switch; atomic */
    int32_t n_threads; /* of the program's, beyond the first; atomic */
    struct sbt_guard pool_guard;
    uint32_t pool_used; /* of the pool's contexts, ever */
    struct sbt_context *pool_free;
    long process;          /* id of that whose contexts these are: not that of a child of vfork */
    pthread_t main_thread; /* if it is known */
    uint32_t main_tid;
    uint32_t no_more;   /* SBT_SWITCH_NO_MORE, _ENDED; atomic */
    uint32_t n_judged;  /* objects that have been judged, the first ones of all; atomic, as the next */
    uint64_t n_unloads; /* of objects, ever, as it was then */
    uint64_t base_mask; /* signals that idle carriers block */

    uint64_t idle __attribute__((aligned(64))); /* bit set: that carrier sleeps; atomic */
    uint64_t searching;                         /* bit set: it looks for something to do, awake; atomic */
    uint32_t watcher_sleeps;                    /* futex word; atomic */
    uint32_t pushes;                            /* relaxed, lossy: that there has been one */
    uint32_t sleeps;                            /* of contexts in the kernel, on carriers; atomic */
    uint32_t next_carrier;                      /* for pushes from outside, atomic */
    struct sbt_carrier carrier[SBT_CARRIERS_MAX];
    struct sbt_table_bucket bucket[SBT_TABLE_BUCKETS];
};
extern union sbt_switch_memory {
    struct sbt_switch_state s;
    char pages[(sizeof(struct sbt_switch_state) + SBT_PAGE_MAX - 1) / SBT_PAGE_MAX * SBT_PAGE_MAX];
} sbt_switch_memory;
#define SBT_SWITCH (&sbt_switch_memory.s)

/* Around guards and switches. The order matters to a handler on the same thread only. */
static inline void sbt_switch_enter(void) {
    sbt_self.in_switch++;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* What handlers could not do because they had interrupted somebody in here. No guard may be held. */
void sbt_switch_catch_up(void);

static inline bool sbt_switch_is_overdue(void) {
    return __atomic_load_n(&SBT_SWITCH->overdue, __ATOMIC_RELAXED) != 0;
}

/* 0 already: a handler has forked, and this is the child. */
static inline void sbt_switch_leave(void) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (SBT_LIKELY(sbt_self.in_switch != 0))
        sbt_self.in_switch--;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (SBT_UNLIKELY(sbt_switch_is_overdue() && sbt_self.in_switch == 0))
        sbt_switch_catch_up();
}

/* A guard of this folder, between the two: others need it, whatever becomes of this thread. */
static inline void sbt_switch_take(struct sbt_guard *g) {
    sbt_handlers_hold();
    sbt_guard_take(g);
}

static inline void sbt_switch_drop(struct sbt_guard *g) {
    sbt_guard_drop(g);
    sbt_handlers_release();
}

/*
 * Give the token. True: the caller has the context now and must make it ready. *asleep is false if it was awake: about
 * to wait, or in a signal handler at home.
 *
 * Who has it takes the token back himself, which spares the context an atomic operation. Should somebody else have
 * given it once more in between, that is no loss: what he did before comes before this store, and the context, which
 * goes on only after it, looks at everything again.
 */
static inline bool sbt_token_give(struct sbt_context *c, bool *asleep) {
    uint32_t old = __atomic_exchange_n(&c->token, SBT_TOKEN_TOKEN, __ATOMIC_ACQ_REL);
    *asleep = old == SBT_TOKEN_PARKED;
    if (SBT_UNLIKELY(old == SBT_TOKEN_BLOCKED))
        *asleep = sbt_futex_wake(&c->token, 1) > 0;
    if (old != SBT_TOKEN_PARKED)
        return false;
    __atomic_store_n(&c->token, SBT_TOKEN_NONE, __ATOMIC_RELEASE);
    return true;
}

/* Last in the chain. The context is the caller's. */
static inline void sbt_chain_append(struct sbt_chain *chain, struct sbt_context *c) {
    c->next = NULL;
    if (chain->last != NULL)
        chain->last->next = c;
    else
        chain->first = c;
    chain->last = c;
    chain->n++;
}

/* ready.c. All of them between enter and leave, but for the guard, which they take. */

/* Make ready a chain of n contexts linked by `next`. `self`: the carrier that the caller runs on, NULL: none. */
void sbt_ready_push(struct sbt_carrier *self, struct sbt_context *first, struct sbt_context *last, uint32_t n,
                    enum sbt_queue_of which);
/* The same of one context, from its husk, whose thread-local variables are others' by then. */
void sbt_ready_push_from_husk(struct sbt_context *c, enum sbt_queue_of which);
/* The carrier's own next; NULL: none. */
struct sbt_context *sbt_ready_pop(struct sbt_carrier *x);
/* The carrier is about to sleep, here. */
void sbt_ready_note_cpu(struct sbt_carrier *x);
/* Move half of another's queue to x's own. False: there is nothing. */
bool sbt_ready_steal(struct sbt_carrier *x, struct sbt_carrier *from);
/* The carrier leaves a context: was waking another for it of any use? */
void sbt_ready_judge(struct sbt_carrier *x);
/* The same, of who has taken a context from x, and knows whether that went on for long. */
void sbt_ready_learn(struct sbt_carrier *x, bool in_vain);
/* One, for the watcher. */
struct sbt_context *sbt_ready_take(struct sbt_carrier *x);

/* carrier.c */
void *sbt_carrier_main(void *carrier);
/* That the caller runs on; NULL: none. */
struct sbt_carrier *sbt_carrier_of_caller(void);
/* A chain of n contexts that were parked, and are the caller's, is made ready. Between enter and leave. */
void sbt_carrier_unpark(struct sbt_context *first, struct sbt_context *last, uint32_t n);
/* Switch away from the context c, which is the caller's. Returns when it has been resumed. */
void sbt_context_leave(struct sbt_context *c, enum sbt_leaving why);

/* home.c */
/* The context is the caller's to move and not running: its home goes on with it. */
void sbt_home_call(struct sbt_context *c);
/* Away from home: returns on a carrier, that is the result, or at home again, NULL. */
struct sbt_carrier *sbt_home_leave(struct sbt_context *c, enum sbt_leaving why);
/* It is at home again. */
void sbt_home_arrived(struct sbt_context *c);

/*
 * deadline.c. The context is about to wait with a deadline, and not to be woken by it any more. False: it has passed.
 */
bool sbt_due_set(struct sbt_context *c, const struct sbt_deadline *deadline);
void sbt_due_clear(struct sbt_context *c);
/* In the husk: until the context is called home or times out. Its registers are the home's to run then. */
void sbt_due_sleep(struct sbt_context *c);

/* Signals of the C library's own, which no program blocks: cancellation, and credentials set in all threads. */
#define SBT_MASK_RESERVED ((uint64_t)3 << 31)

/* mask.c. Set the kernel thread's signal mask, unless NULL; the old one. */
uint64_t sbt_mask_set(const uint64_t *mask);
/* The caller's context: what it is now. */
void sbt_mask_read(struct sbt_context *c);
/* The caller's carrier gets that mask. */
void sbt_mask_carry(struct sbt_carrier *x, uint64_t mask);
/* The program has means to change masks that are not seen: read them whenever a context leaves. Set at the start. */
extern bool sbt_switch_mask_jumps;

/* summon.c. Before there are carriers, in programs that interrupt their threads. */
bool sbt_summon_start(void); /* false: there are no signals for it */
void sbt_summon_reserve(void);
/* Looks so often whether the context has come, with pauses in between. */
void sbt_summon(struct sbt_context *c, enum sbt_summons how, int looks);
/* Its signals: nobody ever blocks them. */
extern uint64_t sbt_kick_bits;

/* start.c. NULL when all are in use. */
struct sbt_context *sbt_pool_get(void);
void sbt_pool_put(struct sbt_context *c);
/* i below pool_used. */
struct sbt_context *sbt_pool_nth(uint32_t i);
/* The other way round. */
uint32_t sbt_pool_index(const struct sbt_context *c);
/* The context of that thread, or of that kernel thread, NULL: none. It may be another's soon. */
struct sbt_context *sbt_pool_find(pthread_t thread, uint32_t tid);

/* watcher.c */
void *sbt_watcher_main(void *unused);

/* eligible.c: whether this process must not be switched, and why; whether its main thread must stay at home. */
struct sbt_eligibility {
    const char *symbol, *reason; /* NULL: may be switched */
    char object[256];            /* that imports it */
    bool main_stays, interrupts, summons, masks, jumps;
    uint32_t n, skip; /* objects seen, and of those not to be judged */
};
void sbt_switch_judge(struct sbt_eligibility *e);
/* The same of what has been loaded since; and of one symbol, added to what `e` says. */
void sbt_switch_judge_new(struct sbt_eligibility *e);
void sbt_switch_judge_symbol(struct sbt_eligibility *e, const char *file, const char *symbol);

/* later.c: what has been judged asks for more care from now on. */
void sbt_switch_allow_for(const struct sbt_eligibility *e);
/* Add what is known already: looked up before there were contexts, or in the process that this one was forked from. */
void sbt_switch_recall(struct sbt_eligibility *e);
extern bool sbt_switch_insisted;

#endif
