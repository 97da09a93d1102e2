#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The engine det where threads wait for the outside, stall or are late, and where the turn keeps them from computing at once.
. "$(dirname "$0")/lib.sh"

run "$SUBUTAI" run --engine det --verbose 2 --log log -- "$ORDERED" pipe
check "a thread that reads from a pipe does not keep the others" is "$status $out" "0 done"
run "$SUBUTAI" run --engine det --log stdio -- "$ORDERED" stdio
check "nor does a thread that sleeps in a call which the library does not see" is "$status $out" "0 done"
check "and nothing is said" test ! -s stdio
rm -f last.schedule
run "$SUBUTAI" run --engine det --schedule last.schedule -- "$ORDERED" stdio-last
ended=$status
run "$SUBUTAI" schedule dump last.schedule
check "if it ends the process it returns first" is "$ended $status $(grep -c ' returns from_absence$' <<<"$out")" "0 0 1"
rm -f calls.schedule
within 20 "$SUBUTAI" run --engine det --schedule calls.schedule -- "$ORDERED" calls
check "nor one in any other call that waits" is "$status $out" "0 $(printf '%s\n' read_chk recv_chk recvfrom_chk poll_chk \
    ppoll_chk recvmmsg system eventfd_read flock)"
run "$SUBUTAI" schedule dump calls.schedule
check "and none of these calls is a stall" is "$status $(grep -c ' returns from_call$' <<<"$out") $(grep -c ' released$' <<<"$out")" "0 10 0" # main takes its lock first
for how in "" --serial; do
    within 20 "$SUBUTAI" run --engine det $how -- "$ORDERED" looks
    check "nor does one that looks again and again without waiting ($how)" is "$status $out" "0 $(printf '%s\n' poll ppoll select \
        pselect epoll_wait epoll_pwait recv recvmsg recvmmsg sigtimedwait flock waitpid)"
done
rm -f queues.schedule
within 40 "$SUBUTAI" run --engine det --schedule queues.schedule -- "$ORDERED" queues
check "nor one at a queue or a semaphore that processes share" is "$status $out$err" "0 $(printf '%s\n' semop semtimedop msgrcv msgsnd \
    mq_receive mq_timedreceive mq_send mq_timedsend)"
run "$SUBUTAI" schedule dump queues.schedule
check "and only to wait there is a call outside" is "$status $(grep -c ' returns from_call$' <<<"$out") $(grep -c ' released$' <<<"$out")" "0 8 0"
rm -f rings.schedule
within 20 "$SUBUTAI" run --engine det --schedule rings.schedule -- "$ORDERED" rings
ended="$status ${out//$'\n'/,}" waits=$(grep -c '^waited$' <<<"$out")
[[ $out != waited* ]] || ((waits++)) # io_uring is asked for room in its queue, too
run "$SUBUTAI" schedule dump rings.schedule
check "a thread that waits for io_uring, or the kernel's asynchronous I/O, keeps no other" matches "$ended" \
    '^0 (waited|no such ring here),(waited|no such ring here)$'
check "and that is a call outside, and no stall" is \
    "$status $(grep -c ' returns from_call$' <<<"$out") $(grep -c ' released$' <<<"$out")" "0 $waits 0"
within 100 "$SUBUTAI" run --engine det -- "$ORDERED" stacks
check "a creation waits for a thread that frees stacks in the C library, where the allocator waits for the turn" is \
    "$status $out" "0 done"
within 100 "$SUBUTAI" run --engine det --wait switch -- "$ORDERED" stacks
check "also where threads wait by switching" is "$status $out" "0 done"
begin_load 10
for way in adaptive switch; do
    within 20 "$SUBUTAI" run --engine det --wait $way -- "$ORDERED" notified
    check "threads of a timer that come faster than the turn is passed keep it from no other ($way)" is "$status $out" "0 done"
done
end_load
for _ in 1 2 3 4 5; do
    within 20 "$SUBUTAI" run --engine det -- "$ORDERED" aio
    echo "$status $out"
done >ends
check "threads of asynchronous I/O make a process's first operations, and end" is "$(sort -u ends)" "0 done"
for _ in {1..10}; do
    within 20 "$SUBUTAI" run --engine det --wait switch -- "$ORDERED" profiled
    echo "$status $out"
    ((status == 0)) || break
done >ends
check "handlers that interrupt a switch from one thread to the next keep neither from going on" is "$(sort -u ends)" "0 done"
run "$SUBUTAI" run --engine det -- "$ORDERED" nap
check "a sleep of no time is over after a few turns" is "$status $out" "0 done"
rm -f ahead.schedule
run "$SUBUTAI" run --engine det --schedule ahead.schedule --log told -- "$ORDERED" ahead
check "a wait does not end before its time, however many operations others make" is "$status $out" "0 done"
check "and that is said to be no stall, but late on a slow machine" is \
    "$(sed '1s/^subutai: thread 1 waits, though its time has passed: .*; it waits on (--stall release lets it go on)$//' told 2>/dev/null)" ""
run "$SUBUTAI" schedule info ahead.schedule
check "nor written as one" matches "$out" ', 0 stalls'
run "$SUBUTAI" run --engine det -- "$ORDERED" watched
check "a thread that sleeps again and again does not hold up one that goes on alone: no second is over" is "$status $out" "0 0"
run "$SUBUTAI" run --engine det --stall release --log told -- "$ORDERED" stall
check "a loop on a plain variable goes on outside" is "$status $out" "0 done"
check "and that is said" matches "$(cat told)" 'thread 0 keeps the turn and makes no operation'
for way in wait release; do
    rm -f starved.schedule
    within 60 "$SUBUTAI" run --engine det --stall $way --log told --schedule starved.schedule -- "$ORDERED" starved
    ended="$status $out $(cat told)"
    run "$SUBUTAI" schedule info starved.schedule
    check "a thread that lacks a processor does not stall ($way)" matches "$ended $out" '^0 done .*, 0 stalls'
done
for how in "" --serial; do
    rm -f computes.schedule
    within 60 "$SUBUTAI" run --engine det $how --log told --schedule computes.schedule -- "$ORDERED" computes
    ended="$status $out"
    run "$SUBUTAI" schedule dump computes.schedule
    check "a thread that computes for long, and sleeps when others look, keeps the turn ($how)" is \
        "$ended $status $(grep -c -e ' returns from_' -e ' released$' <<<"$out")" "0 done 0 0"
    within 20 "$SUBUTAI" run --engine det $how --log naps -- "$ORDERED" naps
    check "one that does nothing but sleep goes on outside ($how)" is "$status $out" "0 done"
    within 60 "$SUBUTAI" run --engine det $how --log naps -- "$ORDERED" naps-late
    check "also if it waits for a processor in between for longer ($how)" is "$status $out" "0 done"
done
for way in adaptive switch; do
    within 30 "$SUBUTAI" run --engine det --wait $way -- "$ORDERED" filtered-sleep
    check "also under a filter of the program's that ends it if a file is opened ($way)" matches "$status $out" \
        '^0 (done|no filters here)$'
done
for _ in 1 2 3; do
    within 30 "$SUBUTAI" run --engine det --stall release -- "$ORDERED" woken
    echo "$status $out"
done >ends
check "also if no thread waits for the turn but one that slept when it was woken" is "$(sort -u ends)" "0 done"
within 20 "$SUBUTAI" run --engine det --stall release -- "$ORDERED" signals
check "nor do signals put it off" is "$status $out" "0 done"
for way in wait release; do
    within 20 "$SUBUTAI" run --engine det --stall $way --spin-ns 0 -- "$ORDERED" lost
    check "a thread that a wake-up has not reached is woken again ($way)" matches "$status $out" '^0 (done|no filters here)$'
done
within 20 "$SUBUTAI" run --engine det -- "$ORDERED" forks
check "a handler forks while a creator waits for the turn: the child has threads of its own" is "$status $out" "0 1 3"
within 20 "$SUBUTAI" run --engine det -- "$ORDERED" restarts
check "a wait of a handler does not end the interrupted one, which is restarted" is "$status $out" "0 done"$'\n'"done"
within 20 "$SUBUTAI" run --engine det -- "$ORDERED" restarts-in-place
check "a wait that is restarted keeps its place in the queue" is "$status $out" "0 20 of 20"$'\n'"done"
within 20 "$SUBUTAI" run --engine det -- "$ORDERED" unmaps
check "a futex that is unmapped before the turn comes is an error" is "$status $out" "0 EFAULT"$'\n'"EFAULT"
cat >yields.c <<'END'
#include <sched.h>
__attribute__((constructor)) static void yield(void) {
    for (int i = 0; i < 300; i++)
        sched_yield();
}
END
$CC -shared -fPIC yields.c -o yields.so
for _ in {1..10}; do
    rm -f log
    within 20 "$SUBUTAI" run --engine det --verbose 2 --log log -- "$ORDERED" loads ./yields.so
    echo "$status $out $(sed -n 's/.*[^-]schedule \([0-9a-f]\{16\}\)/\1/p' log)"
done | sort -u >schedules
check "futexes while a library is loaded: one schedule" is "$(wc -l <schedules) $(cut -d' ' -f1-2 schedules)" "1 0 done"
until_said '--stall release lets them go on' waits "$SUBUTAI" run --engine det --log waits -- "$ORDERED" stall
check "without that it is said, and how to go on" is "$status" 0
rm -f stalled.schedule
until_said "hints for its last call: 'pcs [^']*'" waits "$SUBUTAI" run --engine det --schedule stalled.schedule --log waits -- "$ORDERED" stall
printf 'subutai-hints 1\n%s\n' "$(grep -oE 'pcs [^'\'']*' waits)" >stalled.hints
rm -f waits
within 20 "$SUBUTAI" run --engine det --hints stalled.hints --log waits -- "$ORDERED" stall
check "with a log also the hint that mends it, and it does" is "$status $out $(cat waits)" "0 done "
run timeout 1 "$SUBUTAI" run --engine det --serial --log computes -- "$ORDERED" stall
check "serially a second of computing is not told" is "$(cat computes)" ""
until_said '--stall release lets them go on' loops "$SUBUTAI" run --engine det --serial --log loops -- "$ORDERED" stall
check "a loop is, after two" is "$status" 0
within 20 "$SUBUTAI" run --engine det --serial --stall release -- "$ORDERED" stall
check "and can go on outside" is "$status $out" "0 done"
until_said 'thread 0 waits, though its time has passed: a turn of the others counts 1 us, one that is kept 0\.1 us, and takes longer; it waits on' late "$SUBUTAI" run --engine det --log late -- "$ORDERED" late
check "a sleep that lasts longer than its time, since turns take long, is told" is "$status" 0
rm -f late
within 20 "$SUBUTAI" run --engine det --stall release --log late -- "$ORDERED" late
check "and ends with --stall release" matches "$status $out $(cat late)" '^0 done .*thread 0 waits, though .*goes on outside the order$'

# Threads add to a plain variable after each kind of operation, and after calls outside; others end in a handler that
# has interrupted a wait, and add in a destructor.
cat >alone.c <<'END'
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
enum { THREADS = 4, ROUNDS = 200, LEAVERS = 16 };
static volatile long sum;
static int pipes[THREADS][2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;
static sem_t never, waits;
static void add(void) {
    long before = sum;
    for (volatile int i = 0; i < 3000; i++)
        ;
    sum = before + 1;
}
static void *adder(void *pipe) {
    const struct timespec moment = {0, 1000}, past = {1, 0};
    char c;
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 5 == 0)
            pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex);
        else if (i % 5 == 1)
            sched_yield();
        else if (i % 5 == 2 && read(((int *)pipe)[0], &c, 1) != 1)
            return NULL;
        else if (i % 5 == 3)
            nanosleep(&moment, NULL);
        else if (i % 5 == 4)
            sem_timedwait(&never, &past);
        add();
    }
    return NULL;
}
static void leave(int number) {
    (void)number;
    pthread_exit(NULL);
}
static void last(void *value) {
    (void)value;
    for (int i = 0; i < ROUNDS; i++)
        add();
}
static void *leaver(void *unused) {
    pthread_setspecific(key, &key);
    sem_post(&waits);
    sem_wait(&never);
    return unused;
}
int main(void) {
    struct sigaction action = {.sa_handler = leave};
    pthread_t threads[THREADS], leavers[LEAVERS];
    pthread_key_create(&key, last);
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < THREADS; i++)
        if (pipe(pipes[i]) != 0)
            return 1;
    if (fork() == 0) {
        for (int n = 0; n < ROUNDS; n++)
            for (int i = 0; i < THREADS; i++)
                if (write(pipes[i][1], "x", 1) != 1)
                    return 1;
        return 0;
    }
    for (int i = 0; i < LEAVERS; i++)
        pthread_create(&leavers[i], NULL, leaver, NULL), sem_wait(&waits);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, adder, pipes[i]);
    for (int i = 0; i < LEAVERS; i++)
        pthread_kill(leavers[i], SIGUSR1), sched_yield(), add(), pthread_join(leavers[i], NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    puts(sum == (THREADS + LEAVERS) * ROUNDS + LEAVERS ? "alone" : "together");
    return 0;
}
END
$CC -O1 -pthread alone.c -o alone
for ((i = 0; i < 20; i++)); do
    within 20 ./alone
    echo "$status $out" >>natively
    within 20 "$SUBUTAI" run --engine det --serial --seed "$i" -- ./alone
    echo "$status $out" >>serially
done
check "natively threads lose what others add" grep -q together natively
check "serially no two threads run at once, behind no operation" is "$(sort -u serially)" "0 alone"

within 20 "$SUBUTAI" run --engine det --serial --schedule clock.schedule --log reads -- "$ORDERED" clock
check "one that reads a clock goes on by itself" is "$status $out $(cat reads)" "0 done "
run "$SUBUTAI" schedule info clock.schedule
check "since that passes the turn" matches "$out" 'yield +[1-9]'
run "$SUBUTAI" run --engine det --serial --log stdio -- "$ORDERED" stdio
check "serially a thread that sleeps in a call which the library does not see keeps no other" is "$status $out" "0 done"
within 20 "$SUBUTAI" run --engine det --serial -- "$ORDERED" forks
check "serially a handler forks while a creator waits for the turn" is "$status $out" "0 1 3"
finish
