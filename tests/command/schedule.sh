#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The schedule log of the engine det, and what `subutai schedule` says of it.
. "$(dirname "$0")/lib.sh"
# shellcheck disable=SC2034 # read by check
status=0 out='' err=''

log_of() { # log_of FILE [OPTION...] -- WHAT
    local file=$1 options=()
    shift
    while [[ $1 != -- ]]; do
        options+=("$1")
        shift
    done
    run "$SUBUTAI" run --engine det --schedule "$file" "${options[@]}" -- "$ORDERED" "$2"
}

log_of all.sched -- all
check "a run with a schedule log" is "$status" 0
expected=$("$SUBUTAI" run --engine det --verbose 2 --log said -- "$ORDERED" all >/dev/null && sed -n 's/.*[^-]schedule \([0-9a-f]\{16\}\)/\1/p' said)
subutai schedule info --json all.sched
check "info: whole, with the hash and the counts that the engine says" json \
    '.[0] | .whole and .outside == 0 and "\(.hash), \(.operations) operations, \(.outside) returns from outside" == "'"$expected"'"'
check "every operation is counted under its name" json '.[0] | .operations == ([.by_operation[]] | add)'
subutai schedule info all.sched
check "info as text says the same" matches "$out" "schedule $expected"
log_of exits.sched -- exits
check "threads that end by pthread_exit, with a log" is "$status" 0
expected=$("$SUBUTAI" run --engine det --verbose 2 --log told -- "$ORDERED" exits >/dev/null && sed -n 's/.*[^-]schedule \([0-9a-f]\{16\}\)/\1/p' told)
subutai schedule info exits.sched
check "the log changes no schedule, also where stacks are unwound" matches "$out" "schedule $expected"
subutai schedule info all.sched
check "returns from outside are always said" matches "$out" ' 0 returns from outside'
bytes=$(stat -c %s all.sched) operations=$(sed -n 's/.*, \([0-9]*\) operations.*/\1/p' <<<"$out")
check "at most 10 bytes an operation" test "$bytes" -le $((10 * operations))

subutai schedule dump --json all.sched
events=$(wc -l <<<"$out")
check "dump --json: as many operations as info says" is "$(grep -c '"kind":"operation"' <<<"$out")" "$operations"
check "all operations but a thread's begin and end have a call site" json \
    'map(select(.kind == "operation" and .site == null) | .what) - ["thread_begin", "thread_end"] | length == 0'
check "call sites are the program's" json 'map(select(.what == "mutex_lock") | .place) | all(test("ordered"))'
check "objects are numbered in the order of first use" json 'map(.object | select(. != null)) |
    reduce .[] as $o ({top: 0, well: true}; if $o > .top then {top: $o, well: (.well and $o == .top + 1)} else . end) | .well'
check "a creation names the thread" json 'map(select(.what == "thread_create") | .other) | length > 0 and all(. > 0)'
check "logical time does not go back" json 'map(.time_ns) | . == sort'
all=$out
subutai schedule dump --json --from 5 --to 9 all.sched
check "dump --from --to" is "$out" "$(sed -n 5,9p <<<"$all")"
subutai schedule dump all.sched
check "dump as text has as many lines" is "$(wc -l <<<"$out")" "$events"

log_of again.sched -- all
subutai schedule diff all.sched again.sched
check "two runs: the same schedule" is "$status" 0
check "said so" matches "$out" '^the same schedule: [0-9]+ operations'
log_of seed.sched --seed 7 -- all
subutai schedule diff all.sched seed.sched
check "another seed: another schedule" is "$status" 1
check "the first difference, with both sides" is "$(wc -l <<<"$out")" 3
subutai schedule diff --json all.sched seed.sched
check "diff --json" json '.[0] | .same == false and .a.thread != null and .b.thread != null and .a.number == .common + 1'
n=$(jq .common <<<"$out")
for file in all seed; do
    "$SUBUTAI" schedule dump --to "$n" "$file.sched" >"$file.head"
done
check "what is before it is the same in both" cmp -s all.head seed.head

# The variable, the name of an old log, other files.
SUBUTAI_ENGINE=det SUBUTAI_SCHEDULE=variable.sched run "$SUBUTAI" run -- "$ORDERED" counters
subutai schedule info variable.sched
check "by the variable" is "$status" 0
subutai schedule dump --json variable.sched
check "logical time is a microsecond a turn, or a tenth if it is kept" json \
    '[.[].time_ns] | [range(1; length) as $i | .[$i] - .[$i - 1]] | all(. == 0 or . == 100 or . == 1000) and any(. == 100) and any(. == 1000)'
log_of all.sched -- counters
subutai schedule diff all.sched variable.sched
check "an old log is replaced" is "$status" 0
echo precious >notes
refuses "run: schedule log 'notes': the file is something else" run --engine det --schedule notes -- true
check "and nothing else" is "$(cat notes)" precious
run "$SUBUTAI" run --engine direct --schedule none.sched -- "$ORDERED" counters
check "another engine does not read the option" matches "$err" '--schedule does nothing: it is an option of the engine det'
check "and writes no log" test ! -e none.sched
run "$SUBUTAI" run --engine det -- "$ORDERED" counters
check "no log unless asked for" is "$(echo *.sched)" 'again.sched all.sched exits.sched seed.sched variable.sched'

# What is outside, and a program that is killed, or forks.
log_of pipe.sched -- pipe
subutai schedule info --json pipe.sched
check "returns from outside are events" json '.[0] | .outside > 0 and .by_return.from_call == .outside'
"$SUBUTAI" run --engine det --log waits --schedule killed.sched -- "$ORDERED" stall &
pid=$!
comes grep -qs 'keeps the turn' waits
sleep 1 # it is looked for again and again, and is still the same one
kill -KILL "$pid"
wait "$pid" 2>/dev/null
subutai schedule info --json killed.sched
check "the log of a killed program is read up to the cut" json '.[0] | .whole == false and .operations > 0 and .stalls == 1'
subutai schedule info killed.sched
check "and what may have cut it is said" matches "$out" '; cut: the process was killed, has crashed, has become another program by exec'
subutai schedule dump killed.sched
check "its last event is the stall" matches "$(tail -1 <<<"$out")" 'thread 0 stall$'

# A stall that is let go on: written when the turn has been taken away, and not if that was not possible.
log_of released.sched --stall release --log told -- stall
subutai schedule dump released.sched
check "a stall that goes on outside is an event, and its return" is "$status $(grep -oE '(stall|released|from_absence)$' <<<"$out" | uniq | head -2 | tr '\n' ' ')" \
    "0 released from_absence "
cat >slow.c <<'END'
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
/* An allocator that takes its time while a thread is made: that is inside of an operation. */
static _Alignas(16) char room[1 << 22];
static size_t used;
static _Bool is_slow;
static void compute(int ms) {
    struct timespec t, u;
    clock_gettime(CLOCK_MONOTONIC, &t);
    do
        clock_gettime(CLOCK_MONOTONIC, &u);
    while ((u.tv_sec - t.tv_sec) * 1000 + (u.tv_nsec - t.tv_nsec) / 1000000 < ms);
}
void *malloc(size_t n) {
    if (is_slow)
        compute(200);
    size_t at = __atomic_fetch_add(&used, (n + 31) & ~(size_t)15, __ATOMIC_RELAXED);
    if (at + n + 32 > sizeof room)
        return NULL;
    memcpy(room + at, &n, sizeof n);
    return room + at + 16;
}
void free(void *p) { (void)p; }
void *calloc(size_t n, size_t size) { return malloc(n * size); }
void *realloc(void *p, size_t n) {
    void *q = malloc(n);
    if (p != NULL && q != NULL) {
        size_t old;
        memcpy(&old, (char *)p - 16, sizeof old);
        memcpy(q, p, old < n ? old : n);
    }
    return q;
}
static void *yields(void *unused) {
    for (int i = 0; i < 5; i++)
        sched_yield();
    return unused;
}
int main(void) {
    pthread_t t[2];
    pthread_create(&t[0], NULL, yields, NULL);
    sched_yield();
    is_slow = 1;
    pthread_create(&t[1], NULL, yields, NULL);
    is_slow = 0;
    pthread_join(t[0], NULL);
    pthread_join(t[1], NULL);
    return 0;
}
END
$CC -g -fno-builtin -pthread slow.c -o slow
run "$SUBUTAI" run --engine det --stall release --log told --schedule slow.sched -- ./slow
subutai schedule info --json slow.sched
check "a thread that makes an operation is not let go on, and no event says so" json '.[0] | .whole and .stalls > 0 and .released == 0 and .outside == 0'

# Call sites on a stack that ends right behind the operation.
cat >top.c <<'END'
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, r = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static sem_t s;
static ucontext_t main_context, other;
static void operations(void) {
    pthread_mutex_lock(&m);
    pthread_cond_signal(&c);
    pthread_cond_timedwait(&c, &m, &(struct timespec){1, 0});
    pthread_mutex_unlock(&m);
    pthread_mutex_lock(&r);
    pthread_mutex_trylock(&r);
    pthread_mutex_unlock(&r);
    pthread_mutex_unlock(&r);
    sem_post(&s);
    sem_trywait(&s);
}
int main(void) {
    const size_t size = 1 << 17;
    char *stack = mmap(NULL, size + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(stack, size, PROT_READ | PROT_WRITE);
    sem_init(&s, 0, 0);
    operations();
    for (int i = 0; i < 2; i++) {
        getcontext(&other);
        other.uc_link = &main_context;
        other.uc_stack.ss_sp = stack;
        other.uc_stack.ss_size = size;
        makecontext(&other, operations, 0);
        swapcontext(&main_context, &other);
    }
    return 0;
}
END
$CC -D_GNU_SOURCE -O2 -g -pthread top.c -o top
run "$SUBUTAI" run --engine det --schedule top.sched -- ./top
check "operations at the end of a stack" is "$status" 0
subutai schedule dump --json top.sched
check "have the same call sites as elsewhere" json 'map(select(.kind == "operation") | .place) | length == 24 and .[0:8] == .[8:16] and
    .[0:8] == .[16:24] and all(test("^top.c:[0-9]+ operations"))'
line=$(grep -nm1 'mutex_lock(&m)' top.c | cut -d: -f1)
check "and the lines are those of the calls" json "map(.place | select(. != null) | sub(\"^top.c:\"; \"\") | sub(\" .*\"; \"\") | tonumber - $line) |
    .[0:8] == [0, 1, 2, 3, 4, 7, 8, 9]"

cat >forks.c <<'END'
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, r = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
int main(int argc, char **argv) {
    (void)argv;
    if (argc == 1) {
        pthread_mutex_lock(&m);
        pthread_mutex_unlock(&m);
        pthread_mutex_lock(&r);
        pthread_mutex_unlock(&r);
    }
    if (fork() == 0) {
        pthread_mutex_lock(&m);
        return 0;
    }
    wait(NULL);
    return 0;
}
END
$CC -D_GNU_SOURCE -g -pthread forks.c -o forks
run "$SUBUTAI" run --engine det --schedule forks.sched -- ./forks
check "a forked child has a log of its own" is "$(find . -name 'forks.sched.*' | wc -l)" 1
subutai schedule info --json forks.sched.*
check "with what the child does" json '.[0] | .forked and .operations == 1'
subutai schedule dump --json forks.sched
check "a recursive mutex has the call site of the program too" json \
    'map(select(.what | test("^mutex_"))) | length == 4 and all(.place | test("^forks.c:[0-9]+ main"))'
run "$SUBUTAI" run --engine det --schedule starter.sched -- sh -c "$ORDERED counters; :"
subutai schedule diff starter.sched variable.sched
check "a program that only starts another leaves the name to that" is "$status" 0

# Files that are no logs, or damaged.
cp variable.sched good
size=$(stat -c %s good)
: >empty
refuses "schedule: 'empty': the file is empty" schedule info empty
refuses "schedule: 'notes': byte 0: not a schedule log \(legal: what subutai run" schedule info notes
refuses "schedule: '/': no regular file" schedule info /
refuses "schedule: 'nosuch': No such file" schedule info nosuch
head -c 20 good >short
refuses "schedule: 'short': byte 20: the header is cut" schedule info short
{ head -c 8 good && printf '\2' && tail -c +10 good; } >version
refuses "schedule: 'version': byte 8: version 2 is unknown \(legal: 1\)" schedule diff version good
head -c $((size - 3)) good >short
refuses "schedule: 'short': byte [0-9]+: the log is cut in its totals" schedule info short
{ cat good && echo more; } >longer
refuses "schedule: 'longer': byte $size: the log goes on behind its totals" schedule info longer
{ head -c $((size - 40)) good && printf 'x' && tail -c 39 good; } >damaged
refuses "schedule: 'damaged': byte [0-9]+: the hash is [0-9a-f]+, and that of the operations [0-9a-f]+: the log is damaged" \
    schedule info damaged
{ head -c 40 good && printf '\170' && tail -c +42 good; } >damaged
subutai schedule dump damaged
check "a damaged token ends with one line" matches "$status $err" "^2 subutai: schedule: .damaged.: byte 40: a token of kind 120 is unknown: the log is damaged\$"
bad=0
for ((i = 40; i < size; i += size / 60 + 1)); do
    { head -c "$i" good && printf '\377' && tail -c +$((i + 2)) good; } >damaged
    timeout "$(stretched 20)" "$SUBUTAI" schedule info damaged >/dev/null 2>told
    case $? in 0) ;; 2) [[ $(wc -l <told) == 1 ]] || bad=$i ;; *) bad=$i ;; esac
    head -c "$i" good >damaged
    timeout "$(stretched 20)" "$SUBUTAI" schedule info damaged >/dev/null 2>told
    case $? in 0) ;; 2) [[ $(wc -l <told) == 1 ]] || bad=$i ;; *) bad=$i ;; esac
done
check "damaged or cut anywhere: an answer or one line" is "$bad" 0
bad=0 size=$(stat -c %s top.sched)
for ((i = 40; i < size; i++)); do
    head -c "$i" top.sched >damaged
    "$SUBUTAI" schedule diff damaged top.sched >said 2>told
    case $? in 0) matches "$(<said)" '^the same.*then a log is cut$' || bad=$i ;; 1) matches "$(<said)" 'damaged: the log is cut there' || bad=$i ;; 2) [[ $(wc -l <told) == 1 ]] || bad=$i ;; *) bad=$i ;; esac
done
check "a log of any length: it is cut there, or one line" is "$bad" 0
refuses "schedule: nothing to do given \(legal: info FILE, dump FILE, diff A B\)" schedule
refuses "schedule: unknown action 'show' \(legal: info, dump, diff\)" schedule show good
refuses "schedule: diff: no file given \(legal: A B\)" schedule diff
refuses "schedule: diff: only one file given \(legal: A B\)" schedule diff good
refuses "schedule: info: no file given \(legal: FILE\)" schedule info
refuses "schedule: --to: '3' is before --from \(legal: 5 or more\)" schedule dump --from 5 --to 3 good
refuses "schedule: --from: '9999' is not a legal value \(legal: 1 to [0-9]+, the events of the log\)" schedule dump --from 9999 good
subutai schedule dump --from 5 --to 5 good
check "one event" is "$(wc -l <<<"$out")" 1
refuses "run: seed: value out of range '-1' \(legal: 0 to 1000000000\)" run --engine det --seed -1 -- true
refuses "run: seed: value out of range '12345678901234567890123'" run --engine det --seed 12345678901234567890123 -- true
refuses "schedule: unexpected argument 'good'" schedule info good good
refuses "schedule: --from and --to choose nothing for info" schedule info --from 3 good
refuses "schedule: --from: '0' is not a legal value" schedule dump --from 0 good

# A file that is moved while it is written stays as long as it was, with zeros at its end.
cat >moves.c <<'END'
#include <pthread.h>
#include <stdio.h>
int main(int argc, char **argv) {
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&m);
    for (int i = 0; i < 80000 && argc > 3; i++)
        pthread_mutex_trylock(&m);
    return argc > 2 ? rename(argv[1], argv[2]) : 0;
}
END
$CC -pthread moves.c -o moves
run "$SUBUTAI" run --engine det --schedule begin.sched -- ./moves begin.sched moved.sched
subutai schedule info moved.sched
check "a log that was moved is whole" matches "$out" ', seed 0; whole'
check "one of a thing is no plural" matches "${out//$'\n'/ }" ', 1 operation, 0 returns.*1 thread at a time, 1 object, '

# A file system that cannot allocate: zeros are written instead, and nothing that is there already.
cat >no_fallocate.c <<'END'
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv) {
    struct sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 0, 1),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    if (argc < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        return 3;
    execv(argv[1], argv + 1);
    return 4;
}
END
$CC no_fallocate.c -o no_fallocate
run "$SUBUTAI" run --engine det --schedule allocated.sched -- ./moves 1 2 3
run ./no_fallocate "$SUBUTAI" run --engine det --schedule written.sched -- ./moves 1 2 3
check "a log where files cannot be allocated" is "$err" ''
subutai schedule diff allocated.sched written.sched
check "is the same" is "$status $out" "0 the same schedule: 80001 operations and ends of waits"
check "in as many bytes, over more than one window" is "$(stat -c %s allocated.sched)" "$(stat -c %s written.sched)"
subutai schedule info --json written.sched
check "and whole" json '.[0] | .whole and .bytes > 262144'
run bash -c "ulimit -f 301; exec ./no_fallocate '$SUBUTAI' run --engine det --schedule unwritten.sched -- ./moves 1 2 3"
check "with the reason if there is no room" matches "$err" 'the schedule log ends, the program goes on: .*unwritten.sched.: File too large'

# No room: the program goes on.
run bash -c "ulimit -f 64; exec '$SUBUTAI' run --engine det --schedule small.sched -- '$ORDERED' counters"
check "a file that may not grow ends the log, not the program" is "$status" 0
check "and one line says so" matches "$err" 'the schedule log ends, the program goes on: .*small.sched.: File too large'
check "which is empty" matches "$("$SUBUTAI" schedule info small.sched 2>&1)" 'the file is empty: its process could not write it'
run bash -c "ulimit -f 300; exec '$SUBUTAI' run --engine det --schedule full.sched -- ./moves 1 2 3"
check "the same for a log that has begun" matches "$err" 'the schedule log ends, the program goes on: .*full.sched.: File too large'
subutai schedule info full.sched
check "and the log says so" matches "$out" 'seed 0; cut: the file could not grow'
subutai schedule info --json full.sched
check "it is as long as it could be" json '.[0] | .full and (.whole | not) and .bytes > 262100 and .bytes <= 262144 and .operations > 10000'
mkdir closed
chmod 555 closed
if [[ $(id -u) != 0 ]]; then
    refuses "run: schedule log 'closed/x': Permission denied" run --engine det --schedule closed/x -- true
fi
for what in info dump "diff full.sched"; do
    # shellcheck disable=SC2086 # words
    "$SUBUTAI" schedule $what full.sched >/dev/full 2>told
    status=$? out='' err=$(cat told)
    check "schedule ${what% *}: an output that goes nowhere is an error" is "$status $err" "2 subutai: cannot write to standard output"
done
finish
