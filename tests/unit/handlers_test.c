/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Handlers that come while the thread holds a lock of the library's own (core/handlers.c): when they run, and how. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/handlers.h"
#include "core/object.h"
#include "core/thread.h"
#include "lib/suite.h"
#include "os/arch.h"
#include "os/real.h"

struct sbt_real sbt_real;
uint32_t sbt_all_theirs;
_Thread_local struct sbt_thread sbt_self __attribute__((tls_model("initial-exec")));

static bool no_memory; /* the kernel cannot queue another signal */

long handlers_syscall(long number, long a, long b, long c, long d);
long handlers_syscall0(long number);

long handlers_syscall(long number, long a, long b, long c, long d) {
    return number == SYS_rt_tgsigqueueinfo && no_memory ? -EAGAIN : sbt_syscall6(number, a, b, c, d, 0, 0);
}

long handlers_syscall0(long number) {
    return sbt_syscall0(number);
}

typedef void handler_function(int signal, siginfo_t *info, void *context);

#define BIT(signal) (UINT64_C(1) << ((signal)-1))

enum { MOST = 16 };
static volatile int n_run;
static int order[MOST], values[MOST];
static bool held_then[MOST];
static sigset_t mask_then[MOST];

static bool lock_is_held(void) {
    return sbt_self.handlers_held != 0;
}

static void note(int signo, siginfo_t *info, void *context) {
    ck_assert_int_lt(n_run, MOST);
    ck_assert_int_eq(info->si_signo, signo);
    ck_assert_ptr_nonnull(context);
    order[n_run] = signo;
    values[n_run] = info->si_value.sival_int;
    held_then[n_run] = lock_is_held();
    sigprocmask(SIG_BLOCK, NULL, &mask_then[n_run]);
    n_run++;
}

static void install(int signo, handler_function *function, int flags, int also_blocked) {
    struct sigaction action = {.sa_sigaction = function, .sa_flags = SA_SIGINFO | flags};
    if (also_blocked != 0)
        sigaddset(&action.sa_mask, also_blocked);
    ck_assert_int_eq(sbt_handlers_set(signo, &action, NULL), 0);
}

static void begin(void) {
    sbt_real.sigaction = sigaction;
    sbt_handlers_start();
    n_run = 0;
    no_memory = false;
}

static void send(int signo, int value) {
    ck_assert_int_eq(sigqueue(getpid(), signo, (union sigval){.sival_int = value}), 0);
}

static bool is_blocked(int signo) {
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    return sigismember(&mask, signo) == 1;
}

static void check_run(int i, int signo, int value) {
    ck_assert_int_gt(n_run, i);
    ck_assert_int_eq(order[i], signo);
    ck_assert_int_eq(values[i], value);
    ck_assert(!held_then[i]);
    ck_assert(!is_blocked(signo));
}

TEST(with_nothing_held_it_runs_at_once) {
    begin();
    install(SIGUSR1, note, 0, 0);
    send(SIGUSR1, 7);
    check_run(0, SIGUSR1, 7);
}

/* As it would have: what was sent, the mask of its action, and afterwards that of the thread. */
static void held(int signo) {
    begin();
    install(signo, note, 0, SIGUSR2);
    sbt_handlers_hold();
    sbt_handlers_hold();
    send(signo, 7);
    ck_assert_int_eq(n_run, 0);
    ck_assert(is_blocked(SIGWINCH)); /* nothing else comes either, lest it come out of turn */
    sbt_handlers_release();
    ck_assert_int_eq(n_run, 0);
    sbt_handlers_release();
    check_run(0, signo, 7);
    ck_assert_int_eq(sigismember(&mask_then[0], signo), 1);
    ck_assert_int_eq(sigismember(&mask_then[0], SIGUSR2), 1);
    ck_assert_int_eq(sigismember(&mask_then[0], SIGWINCH), 0);
    ck_assert(!is_blocked(SIGUSR2));
    ck_assert(!is_blocked(SIGWINCH));
    ck_assert_int_eq(n_run, 1);
    ck_assert_uint_eq(sbt_self.handlers_deferred, 0);
}
TEST(held_it_runs_when_all_is_released) {
    held(SIGUSR1);
}
TEST(held_a_real_time_one_likewise) {
    held(SIGRTMIN + 2);
}
TEST(held_it_runs_even_if_it_cannot_be_sent_again) {
    begin();
    no_memory = true;
    install(SIGUSR1, note, 0, 0);
    sbt_handlers_hold();
    send(SIGUSR1, 7);
    sbt_handlers_release();
    check_run(0, SIGUSR1, 7);
    ck_assert_int_eq(n_run, 1);
}

/* ---- a handler that interrupts a waiter ---- */

static struct sbt_waiter *interrupted, *waiter_then;

static void note_interrupted(struct sbt_waiter *waiter, int signal) {
    CHECK_INT(signal, SIGUSR1);
    ck_assert_int_eq(n_run, 0); /* not after the handler */
    interrupted = waiter;
}

static void note_waiter(int signo, siginfo_t *info, void *context) {
    (void)signo, (void)info, (void)context;
    waiter_then = sbt_self.waiter;
    n_run++;
}

static struct sbt_waiter *begin_waiter(void) {
    static uint64_t place;
    begin();
    install(SIGUSR1, note_waiter, 0, 0);
    sbt_handlers_interrupt = note_interrupted;
    interrupted = NULL;
    waiter_then = sbt_self.waiter = (struct sbt_waiter *)(void *)&place;
    return sbt_self.waiter;
}

static void check_interrupted(const struct sbt_waiter *waiter) {
    ck_assert_int_eq(n_run, 1);
    ck_assert_ptr_eq(interrupted, waiter);
    ck_assert_ptr_null(waiter_then); /* a handler that jumps away leaves nothing behind */
    ck_assert_ptr_eq(sbt_self.waiter, waiter);
}

TEST(before_it_runs_others_no_longer_rely_on_the_waiter) {
    const struct sbt_waiter *waiter = begin_waiter();
    send(SIGUSR1, 7);
    check_interrupted(waiter);
}

TEST(the_same_when_it_was_deferred) {
    const struct sbt_waiter *waiter = begin_waiter();
    sbt_handlers_hold();
    send(SIGUSR1, 7);
    ck_assert_ptr_null(interrupted);
    sbt_handlers_release();
    check_interrupted(waiter);
}

TEST(a_thread_that_does_not_wait_is_not_asked) {
    begin_waiter();
    sbt_self.waiter = NULL;
    send(SIGUSR1, 7);
    ck_assert_int_eq(n_run, 1);
    ck_assert_ptr_null(interrupted);
}

TEST(sections_nest) {
    begin();
    install(SIGUSR1, note, 0, 0);
    sbt_handlers_hold();
    send(SIGUSR1, 7);
    sbt_handlers_hold();
    sbt_handlers_release(); /* the outer one goes on */
    ck_assert_int_eq(n_run, 0);
    sbt_handlers_release();
    check_run(0, SIGUSR1, 7);
}

TEST(real_time_ones_keep_their_order) {
    begin();
    install(SIGRTMIN + 2, note, 0, 0);
    sbt_handlers_hold();
    for (int i = 0; i < 5; i++)
        send(SIGRTMIN + 2, i);
    ck_assert_int_eq(n_run, 0);
    sbt_handlers_release();
    for (int i = 0; i < 5; i++)
        check_run(i, SIGRTMIN + 2, i);
    ck_assert_int_eq(n_run, 5);
}

/* Several that are let in at once: the kernel stacks their handlers one on the other. */
static void stacked(int n) {
    static const int signals[] = {SIGUSR1, SIGUSR2, SIGWINCH, SIGURG, SIGALRM, SIGCHLD};
    sigset_t set, before;
    begin();
    sigemptyset(&set);
    for (int i = 0; i < n; i++) {
        install(signals[i], note, 0, 0);
        sigaddset(&set, signals[i]);
    }
    sigprocmask(SIG_BLOCK, &set, &before);
    for (int i = 0; i < n; i++)
        send(signals[i], i);
    sbt_handlers_hold();
    sigprocmask(SIG_SETMASK, &before, NULL);
    ck_assert_int_eq(n_run, n > SBT_HANDLERS_DEFERRED_MOST ? n - SBT_HANDLERS_DEFERRED_MOST : 0);
    sbt_handlers_release();
    ck_assert_int_eq(n_run, n);
    for (int i = 0; i < n; i++) {
        int times = 0;
        for (int k = 0; k < n; k++)
            times += order[k] == signals[i] && values[k] == i;
        ck_assert_int_eq(times, 1);
        ck_assert(!is_blocked(signals[i]));
    }
}
TEST(stacked_ones_all_run) {
    stacked(SBT_HANDLERS_DEFERRED_MOST);
}
TEST(more_stacked_ones_than_are_deferred_all_run) {
    stacked(SBT_HANDLERS_DEFERRED_MOST + 2);
}

static void check_default(int signo, int flags) {
    struct sigaction now;
    ck_assert_int_eq(sbt_handlers_set(signo, NULL, &now), 0);
    ck_assert(now.sa_handler == SIG_DFL);
    ck_assert_int_eq(now.sa_flags & (SA_SIGINFO | (int)SA_RESETHAND | SA_NODEFER), flags);
}
/* The kernel has forgotten it when it is deferred; it has its one call all the same, and as its action was. */
static void deferred_once(int flags) {
    begin();
    install(SIGUSR1, note, (int)SA_RESETHAND | flags, SIGUSR2);
    sbt_handlers_hold();
    send(SIGUSR1, 7);
    ck_assert_int_eq(n_run, 0);
    sbt_handlers_release();
    check_run(0, SIGUSR1, 7);
    ck_assert_int_eq(n_run, 1);
    ck_assert_int_eq(sigismember(&mask_then[0], SIGUSR1), flags == 0);
    ck_assert_int_eq(sigismember(&mask_then[0], SIGUSR2), 1);
    ck_assert_int_eq(sigismember(&mask_then[0], SIGWINCH), 0);
    ck_assert(!is_blocked(SIGUSR2));
    check_default(SIGUSR1, SA_SIGINFO | (int)SA_RESETHAND | flags);
}
TEST(once_is_deferred) {
    deferred_once(0);
    deferred_once(SA_NODEFER);
}
static void other_note(int signo, siginfo_t *info, void *context) {
    note(signo, info, context);
    values[n_run - 1] += 100;
}
TEST(once_has_its_call_behind_another_action) {
    begin();
    install(SIGUSR1, note, (int)SA_RESETHAND, 0);
    sbt_handlers_hold();
    send(SIGUSR1, 7);
    install(SIGUSR1, other_note, 0, 0);
    sbt_handlers_release();
    check_run(0, SIGUSR1, 7);
    send(SIGUSR1, 8);
    check_run(1, SIGUSR1, 108);
    ck_assert_int_eq(n_run, 2);
    begin();
    install(SIGUSR1, note, 0, 0);
    sbt_handlers_hold();
    send(SIGUSR1, 7);
    install(SIGUSR1, other_note, (int)SA_RESETHAND, 0);
    sbt_handlers_release();
    check_run(0, SIGUSR1, 7);
    send(SIGUSR1, 8);
    check_run(1, SIGUSR1, 108);
    check_default(SIGUSR1, SA_SIGINFO | (int)SA_RESETHAND);
}
/* As the kernel does: flags stay, with the default. Those that the program sets itself are shown too. */
TEST(once_is_read_back_as_it_was_set) {
    struct sigaction action = {.sa_handler = (void (*)(int))(void *)note, .sa_flags = (int)SA_RESETHAND}, old;
    begin();
    ck_assert_int_eq(sbt_handlers_set(SIGURG, &action, NULL), 0);
    ck_assert_int_eq(sbt_handlers_set(SIGURG, NULL, &old), 0);
    ck_assert(old.sa_handler == action.sa_handler);
    ck_assert_int_eq(old.sa_flags & (SA_SIGINFO | (int)SA_RESETHAND), (int)SA_RESETHAND);
    send(SIGURG, 7);
    check_run(0, SIGURG, 7);
    send(SIGURG, 8);
    ck_assert_int_eq(n_run, 1);
    check_default(SIGURG, (int)SA_RESETHAND);
    action = (struct sigaction){.sa_handler = SIG_DFL, .sa_flags = (int)SA_RESETHAND | SA_SIGINFO};
    ck_assert_int_eq(sbt_handlers_set(SIGURG, &action, NULL), 0);
    check_default(SIGURG, SA_SIGINFO | (int)SA_RESETHAND);
}

static char its_stack[65536];
static int n_on_stack;
static void note_stack(int signo) {
    (void)signo;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    n_on_stack += here - (uintptr_t)its_stack < sizeof its_stack;
}
/* Deferred, it would have no second signal to bring that stack. So it is not deferred. */
TEST(once_on_a_stack_of_its_own) {
    stack_t stack = {.ss_sp = its_stack, .ss_size = sizeof its_stack};
    struct sigaction action = {.sa_handler = note_stack, .sa_flags = (int)SA_RESETHAND | SA_ONSTACK};
    begin();
    ck_assert_int_eq(sigaltstack(&stack, NULL), 0);
    ck_assert_int_eq(sbt_handlers_set(SIGUSR1, &action, NULL), 0);
    sbt_handlers_hold();
    send(SIGUSR1, 7);
    sbt_handlers_release();
    ck_assert_int_eq(n_on_stack, 1);
}

/* What it changes in the mask that it is to return to, it has changed. */
static void block_winch(int signo, siginfo_t *info, void *context) {
    note(signo, info, context);
    sigaddset(&((ucontext_t *)context)->uc_sigmask, SIGWINCH);
}
static void changes_mask(int signo) {
    sigset_t set;
    begin();
    install(signo, block_winch, 0, 0);
    sbt_handlers_hold();
    send(signo, 7);
    sbt_handlers_release();
    check_run(0, signo, 7);
    ck_assert(is_blocked(SIGWINCH));
    sigemptyset(&set);
    sigaddset(&set, SIGWINCH);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}
TEST(it_may_change_the_mask) {
    changes_mask(SIGUSR1);
    changes_mask(SIGRTMIN + 2);
}

static sigjmp_buf out;
static void jump(int signo, siginfo_t *info, void *context) {
    note(signo, info, context);
    siglongjmp(out, 1);
}
static void jumps(int signo) {
    begin();
    install(signo, jump, 0, 0);
    if (sigsetjmp(out, 1) == 0) {
        sbt_handlers_hold();
        send(signo, 7);
        sbt_handlers_release();
        ck_abort_msg("not reached");
    }
    check_run(0, signo, 7);
    ck_assert(!is_blocked(SIGWINCH));
    ck_assert_uint_eq(sbt_self.handlers_held, 0);
    sbt_handlers_hold();
    sbt_handlers_release();
    ck_assert_int_eq(n_run, 1);
}
TEST(it_may_leave_by_a_jump) {
    jumps(SIGUSR1);
    jumps(SIGRTMIN + 2);
}

/* A handler that is in a section itself is interrupted in turn, and so on. */
static void hold_and_send(int signo, siginfo_t *info, void *context) {
    note(signo, info, context);
    sbt_handlers_hold();
    if (signo == SIGUSR1)
        send(SIGUSR2, 8);
    ck_assert_int_eq(n_run, signo == SIGUSR1 ? 1 : 2);
    sbt_handlers_release();
    ck_assert_int_eq(n_run, 2);
}
TEST(one_that_holds_is_interrupted_in_turn) {
    begin();
    install(SIGUSR1, hold_and_send, 0, 0);
    install(SIGUSR2, hold_and_send, 0, 0);
    sbt_handlers_hold();
    send(SIGUSR1, 7);
    sbt_handlers_release();
    check_run(0, SIGUSR1, 7);
    check_run(1, SIGUSR2, 8);
}

/* A handler that cannot be deferred, and another handler that comes while it runs, are over: nothing stays blocked. */
static volatile int n_other;
static void not_deferred(int signo) {
    (void)signo;
    n_other++;
    send(SIGUSR1, 7);
    ck_assert_int_eq(n_run, 0);
}
static void hold_and_note(int signo, siginfo_t *info, void *context) {
    sbt_handlers_hold();
    sbt_handlers_release();
    note(signo, info, context);
}
static void comes_in_another(int signo, int flags) {
    struct sigaction other = {.sa_handler = not_deferred};
    begin();
    n_other = 0;
    install(signo, hold_and_note, flags, 0);
    sigaddset(&other.sa_mask, SIGWINCH);
    ck_assert_int_eq(sigaction(SIGALRM, &other, NULL), 0); /* as a handler that was installed past the C library */
    sbt_handlers_hold();
    raise(SIGALRM);
    ck_assert_int_eq(n_other, 1);
    sbt_handlers_release();
    check_run(0, signo, 7);
    ck_assert_int_eq(n_run, 1);
    ck_assert(!is_blocked(SIGALRM));
    ck_assert(!is_blocked(SIGWINCH));
}
TEST(one_that_comes_in_another_runs_once) {
    comes_in_another(SIGUSR1, 0);
    comes_in_another(SIGUSR1, SA_NODEFER);
}

/* A fault that the program serves, after something was deferred. */
static char *page;
static void make_writable(int signo, siginfo_t *info, void *context) {
    (void)info;
    (void)context;
    ck_assert_int_eq(signo, SIGSEGV);
    n_other++;
    ck_assert_int_eq(mprotect(page, 4096, PROT_READ | PROT_WRITE), 0);
}
TEST(faults_are_served_all_the_same) {
    begin();
    n_other = 0;
    page = mmap(NULL, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(page, MAP_FAILED);
    install(SIGSEGV, make_writable, 0, 0);
    install(SIGUSR1, note, 0, 0);
    sbt_handlers_hold();
    send(SIGUSR1, 7);
    *(volatile char *)page = 1;
    ck_assert_int_eq(n_other, 1);
    ck_assert_int_eq(n_run, 0);
    sbt_handlers_release();
    check_run(0, SIGUSR1, 7);
}

TEST(a_second_one_is_not_taken_for_the_first) {
    begin();
    install(SIGUSR1, note, 0, 0);
    sbt_handlers_hold();
    for (int i = 7; i <= 8; i++) /* both to the thread: the kernel keeps one of a number for that */
        ck_assert_int_eq(pthread_sigqueue(pthread_self(), SIGUSR1, (union sigval){.sival_int = i}), 0);
    sbt_handlers_release();
    check_run(0, SIGUSR1, 7);
    check_run(1, SIGUSR1, 8);
    ck_assert_int_eq(n_run, 2);
}

TEST(stop_and_continue_do_not_take_each_other_back) {
    for (int i = 0; i < 2; i++) {
        begin();
        install(SIGTSTP, note, 0, 0);
        install(SIGCONT, note, 0, 0);
        sbt_handlers_hold();
        send(i == 0 ? SIGTSTP : SIGCONT, 1);
        send(i == 0 ? SIGCONT : SIGTSTP, 2);
        sbt_handlers_release();
        ck_assert_int_eq(n_run, 2); /* in either order */
        ck_assert_int_eq(order[0] + order[1], SIGTSTP + SIGCONT);
    }
}

/* The first leaves by a jump: the other comes all the same, if only when something is held again. */
TEST(a_jump_loses_no_other) {
    sigset_t set, before;
    begin();
    install(SIGRTMIN + 2, jump, 0, 0);
    install(SIGRTMIN + 3, jump, 0, 0);
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 2);
    sigaddset(&set, SIGRTMIN + 3);
    sigprocmask(SIG_BLOCK, &set, &before);
    send(SIGRTMIN + 2, 2);
    send(SIGRTMIN + 3, 3);
    if (sigsetjmp(out, 0) == 0) {
        sbt_handlers_hold();
        sigprocmask(SIG_SETMASK, &before, NULL);
        sbt_handlers_release();
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    ck_assert_int_eq(n_run, 1);
    if (sigsetjmp(out, 1) == 0) {
        sbt_handlers_hold();
        sbt_handlers_release();
    }
    ck_assert_int_eq(n_run, 2);
    ck_assert_int_eq(order[0] + order[1], 2 * SIGRTMIN + 5);
    ck_assert(!is_blocked(SIGWINCH));
}

/* A child of vfork shares the memory, and has dispositions of its own. */
static void of_child(int signo, siginfo_t *info, void *context) {
    (void)signo;
    (void)info;
    (void)context;
    n_other++;
}
TEST(a_child_of_vfork_leaves_its_parents_alone) {
    struct sigaction old;
    begin();
    n_other = 0;
    install(SIGUSR1, note, 0, 0);
    pid_t child = vfork();
    if (child == 0) {
        struct sigaction action = {.sa_sigaction = of_child, .sa_flags = SA_SIGINFO};
        int r = sbt_handlers_set(SIGUSR1, &action, &old);
        raise(SIGUSR1);
        _exit(r == 0 && old.sa_sigaction == note && n_other == 1 ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    send(SIGUSR1, 7);
    check_run(0, SIGUSR1, 7);
    ck_assert_int_eq(n_other, 1);
}

/* It receives the signal of a handler that is its parent's too: that one still has its call. */
TEST(once_in_a_child_of_vfork_is_its_own) {
    begin();
    install(SIGURG, note, (int)SA_RESETHAND, 0);
    pid_t child = vfork();
    if (child == 0) {
        kill(getpid(), SIGURG);
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(n_run, 1);
    send(SIGURG, 7);
    check_run(1, SIGURG, 7);
    check_default(SIGURG, SA_SIGINFO | (int)SA_RESETHAND);
}

/* Read back it is as it was set, but the kernel has not been told all of it, nor of those that are not deferred. */
static void keeps_out(int signo, int flags, bool shown) {
    struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO | flags}, set;
    sigset_t *mask = &mask_then[0];
    sbt_handlers_spared = BIT(SIGRTMAX) | BIT(SIGRTMAX - 1);
    sigaddset(&action.sa_mask, SIGRTMAX);
    sigaddset(&action.sa_mask, SIGRTMIN);
    ck_assert_int_eq(sbt_handlers_set(signo, &action, NULL), 0);
    ck_assert_int_eq(sbt_handlers_set(signo, NULL, &set), 0);
    sbt_handlers_spared = 0;
    ck_assert_int_eq(sigismember(&set.sa_mask, SIGRTMIN), 1);
    ck_assert_int_eq(sigismember(&set.sa_mask, SIGRTMAX), shown);
    ck_assert_int_eq(sigismember(&set.sa_mask, SIGRTMAX - 1), 0);
    ck_assert_int_eq(raise(signo), 0);
    ck_assert_int_eq(n_run, 1);
    ck_assert_int_eq(sigismember(mask, SIGRTMIN), 1);
    ck_assert_int_eq(sigismember(mask, SIGRTMAX), 0);
}
TEST(some_signals_are_never_kept_out) {
    begin();
    keeps_out(SIGUSR1, 0, true);
    n_run = 0;
    keeps_out(SIGUSR1, SA_RESETHAND, true);
}
TEST(nor_where_it_is_not_deferred) {
    begin();
    keeps_out(SIGTRAP, 0, false);
}
