/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A signal comes to a thread at any instruction of a switch to another thread, by single steps (x86-64). Its handler
 * runs once, wherever that is, and keeps no thread from going on; and no thread goes on with a signal blocked.
 */
#include "scene.h"

#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>

#define TRAP_FLAG 0x100
#define SIGNALS 8        /* bytes of the kernel's masks */
#define UNREACHED_MOST 9 /* points in a row that the thread does not come to */
#define REACHED_LEAST 9  /* points in all: a way through a switch has far more */
#define STUCK_MOST 2000000
#define LATE_MOST 3000

enum { STEPPING, REACHED, GIVEN_UP };
static atomic_int state, n_handled;
static atomic_long turns[2], n_blocked;
static atomic_bool over;
static volatile long steps, point;
static pid_t process;
static bool locks;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int self;

/* Of the kernel's, without the thread's errno: the thread may be anywhere. */
static long call(long number, long a, long b, long c, long d) {
    long r;
    register long fourth __asm__("r10") = d;
    __asm__ volatile("syscall" : "=a"(r) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth) : "rcx", "r11", "memory");
    return r;
}

/* The next instruction blocks SIGTRAP: the kernel ends a process that makes a step with that. */
static bool blocks_steps(const greg_t *registers) {
    const uint8_t *next = (const uint8_t *)registers[REG_RIP];
    const uint64_t *mask = (const uint64_t *)registers[REG_RSI];
    return next[0] == 0x0f && next[1] == 0x05 && registers[REG_RAX] == SYS_rt_sigprocmask &&
           registers[REG_RDI] != SIG_UNBLOCK && mask != NULL && (*mask >> (SIGTRAP - 1) & 1) != 0;
}

/* After each instruction. As of a timer or of another process: any thread may take the signal. */
static void on_step(int number, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    siginfo_t queued = {.si_signo = SIGUSR1, .si_code = SI_QUEUE};
    int stepping = STEPPING;
    (void)number, (void)info;
    const bool ends = blocks_steps(registers);
    if (!ends && state == STEPPING && steps++ < point)
        return;
    registers[REG_EFL] &= ~(greg_t)TRAP_FLAG;
    if (!ends && atomic_compare_exchange_strong(&state, &stepping, REACHED))
        call(SYS_rt_tgsigqueueinfo, process, call(SYS_gettid, 0, 0, 0, 0), SIGUSR1, (long)&queued);
}

/* Until the other thread has had a turn, if it can have one now. */
static void linger(int number) {
    const long before = turns[!self];
    (void)number;
    for (long i = 0; !locks && turns[!self] == before; i++) {
        CHECK(i < STUCK_MOST);
        call(SYS_sched_yield, 0, 0, 0, 0);
    }
    atomic_fetch_add(&n_handled, 1);
}

static void look_at_mask(void) {
    uint64_t mask = 0;
    call(SYS_rt_sigprocmask, 0, 0, (long)&mask, SIGNALS);
    n_blocked += mask != 0;
}

static void take_turn(void) {
    atomic_fetch_add(&turns[self], 1);
    if (locks) {
        OK(pthread_mutex_lock(&mutex));
        look_at_mask();
    }
    sched_yield();
    if (locks)
        OK(pthread_mutex_unlock(&mutex));
    look_at_mask();
}

static void *other(void *unused) {
    self = 1;
    while (!over)
        take_turn();
    return unused;
}

/* False: it does not come so far. */
static bool is_signalled_at(long n, long home) {
    const int before = n_handled;
    int stepping = STEPPING;
    for (int i = 0; i < 20 || (i < LATE_MOST && call(SYS_gettid, 0, 0, 0, 0) == home); i++)
        take_turn();
    if (locks) {
        OK(pthread_mutex_lock(&mutex));
        sched_yield(), sched_yield(); /* the other one waits for it */
    }
    steps = 0;
    point = n;
    n_blocked = 0;
    state = STEPPING;
    __asm__ volatile("pushfq; orq %0, (%%rsp); popfq" : : "i"(TRAP_FLAG) : "memory", "cc");
    if (locks)
        pthread_mutex_unlock(&mutex);
    else
        sched_yield();
    __asm__ volatile("pushfq; andq %0, (%%rsp); popfq" : : "i"(~TRAP_FLAG) : "memory", "cc");
    bool reached = !atomic_compare_exchange_strong(&state, &stepping, GIVEN_UP);
    for (int i = 0; reached && n_handled == before; i++) {
        CHECK(i < LATE_MOST);
        take_turn();
    }
    CHECK_INT(n_handled - before, reached);
    CHECK_INT(n_blocked, 0);
    return reached;
}

static void *stepped(void *unused) {
    const long home = call(SYS_gettid, 0, 0, 0, 0);
    int unreached = 0, n_reached = 0;
    for (long n = 0; unreached < UNREACHED_MOST && n < 800; n += 3) {
        const bool reached = is_signalled_at(n, home);
        unreached = reached ? 0 : unreached + 1;
        n_reached += reached;
    }
    over = true;
    printf("signalled at %d points\n", n_reached);
    CHECK(n_reached >= REACHED_LEAST);
    return unused;
}

void restorer(void);
__asm__(".text\nrestorer:\n\tmovl $15, %eax\n\tsyscall\n"); /* rt_sigreturn */

/* The handler of steps is the kernel's, without the library. */
static void signal_anywhere(int flags, bool with_lock) {
    struct sigaction action = {.sa_handler = linger, .sa_flags = flags};
    struct {
        void (*handler)(int, siginfo_t *, void *);
        unsigned long flags;
        void (*restorer)(void);
        uint64_t mask;
    } step = {on_step, SA_SIGINFO | 0x04000000 /* SA_RESTORER */, restorer, UINT64_MAX};
    pthread_t one, two;
    process = getpid();
    locks = with_lock;
    OK_ERRNO(sigaction(SIGUSR1, &action, NULL));
    OK(-(int)call(SYS_rt_sigaction, SIGTRAP, (long)&step, 0, SIGNALS));
    OK(pthread_create(&two, NULL, other, NULL));
    OK(pthread_create(&one, NULL, stepped, NULL));
    thread_join(one);
    thread_join(two);
}

static void yields(void) {
    signal_anywhere(0, false);
}

/* Then the signal is not blocked in its own handler. */
static void yields_undeferred(void) {
    signal_anywhere(SA_NODEFER, false);
}

/* Where mutexes are delegated an unlock switches to the thread that gets the mutex. */
static void unlocks(void) {
    signal_anywhere(0, true);
}

int main(int argc, char **argv) {
    static const struct scene scenes[] = {
        {"yields", yields}, {"yields-nodefer", yields_undeferred}, {"unlocks", unlocks}, {NULL, NULL}};
    return play(argc, argv, scenes);
}
