#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# `subutai profile`: however the program ends there are its traces and a report of them, and the status is the program's.
. "$(dirname "$0")/lib.sh"

cat >locks.c <<'END'
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void lock(int n) {
    for (int i = 0; i < n; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
}
static void *begin(void *argument) {
    lock(10);
    return argument;
}
int main(int argc, char **argv) {
    pthread_t thread;
    if (argc > 2 && strcmp(argv[2], "title") == 0) /* as servers do */
        strcpy(memset(argv[0], 0, (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) - argv[0])), "locks: idle");
    pthread_create(&thread, 0, begin, 0);
    pthread_join(thread, 0);
    lock(90);
    for (int i = 0; argc > 2 && strcmp(argv[2], "long") == 0 && i < 2400; i++) { /* two minutes, unless it is ended */
        usleep(50000);
        lock(100);
    }
    if (argc > 2 && strcmp(argv[2], "exec") == 0)
        execl("/bin/true", "true", (char *)0);
    if (argc > 1 && strcmp(argv[1], "segv") == 0)
        raise(SIGSEGV);
    if (argc > 1 && strcmp(argv[1], "fork") == 0 && fork() == 0)
        lock(5);
    return argc > 1 ? atoi(argv[1]) : 0;
}
END
$CC -pthread locks.c -o locks || exit 99

profile() { # OPTION... [--] CMD...
    rm -rf out
    subutai profile -o out --engine glibc "$@"
}
# calls FILE OP: how many there were, counted or events
calls() {
    "$SUBUTAI" trace info --json "$1" | jq ".operations.$2 | .count + .counted | . // 0"
}
reported() {
    "$SUBUTAI" report --help >/dev/null 2>&1 || return 0 # the report is a command of its own
    [[ -s out/report.txt ]] && matches "$err" "report is out/report.txt"
}

profile -- ./locks
check "the program's status" is "$status" 0
check "nothing on stdout" is "$out" ""
check "the trace has its name" is "$(calls out/locks.sbt mutex_lock)" 100
check "it is a profile" is "$("$SUBUTAI" trace info --json out/locks.sbt | jq '.profile and .whole')" true
check "there is a report" reported
profile --try -- ./locks 0 'two words' "it's"
check "the command line is recorded as a shell reads it" is "$("$SUBUTAI" trace info --json out/locks.sbt | jq -r .command)" \
    "./locks 0 'two words' 'it'\\''s'"
profile -- ./locks 0 title and more words
check "a program that overwrites its command line: no empty words" is "$("$SUBUTAI" trace info --json out/locks.sbt | jq -r .command)" \
    "'locks: idle'"
profile --try -- ./locks 0 'two words' "it's"
check "--try: a report without advice measures nothing" is "$status $(grep -c measured out/report.txt)" "0 0"
profile --full -- ./locks
check "--full: each call is an event" is "$("$SUBUTAI" trace info --json out/locks.sbt | jq -c '[.profile, .operations.mutex_lock.count]')" '[false,100]'
profile --stacks --engine direct -- ./locks 7
check "the program's status is passed" is "$status" 7
check "under another engine" is "$("$SUBUTAI" trace info --json out/locks.sbt | jq -r .engine)" direct
subutai profile -o out -- ./locks
check "old traces are replaced" is "$status $(ls out/*.sbt)" "0 out/locks.sbt"
profile -- ./locks fork
check "a child has a trace of its own" is "$(find out -name 'locks.*.sbt' | wc -l)" 1
check "with its calls" is "$(calls out/locks.*.sbt mutex_lock)" 5
check "the program's own page comes first" is "$(grep -m 1 -oE '^out/[^:]+' out/report.txt)" out/locks.sbt
profile -- ./locks segv
check "a program that crashes: its signal" is "$status" 139
check "one line says so" matches "$err" "was ended by SIGSEGV"
subutai profile -o killed -- sh -c 'kill -9 $$'
check "killed before anything was written: one line says so" matches "$status $err" \
    "^137 subutai: profile: 'sh' was ended by SIGKILL before it had written anything to killed: let it run for longer\$"
profile -- ./locks 0 exec
check "a program that becomes another one: the report does not say that it was killed alone" matches "$status $(tr -s ' \n' ' ' <<<"$err")" \
    '^0 .* the program was killed, or has become another one by exec .*wall '
profile -- sh -c './locks 0; exec ./locks 0'
check "programs that it starts" is "$(find out -name '*.sbt' | wc -l)" 2

# end_by SIGNAL: while the program runs
end_by() {
    rm -rf out
    "$SUBUTAI" profile -o out --engine glibc -- ./locks 0 long >.out 2>.err </dev/null &
    local self=$! n=0
    while ((n < 100)); do
        sleep 0.02
        n=$(calls out/locks.sbt mutex_lock 2>/dev/null)
        n=${n:-0}
    done
    if [[ $1 == KILL ]]; then pkill -KILL -P $self; else kill -"$1" $self; fi
    wait $self
    status=$? err=$(<.err) out=''
}
for name in TERM KILL; do
    end_by $name
    check "ended by $name: the status" is "$status" $((128 + $(kill -l $name)))
    check "ended by $name: the trace is there" test "$(calls out/locks.sbt mutex_lock)" -ge 100
    check "and a report" reported
done

mkdir -p crammed && ln -s /dev/full crammed/report.txt
profile -o crammed -- ./locks
check "a full disk: the report is printed" matches "$err" "^wall |"$'\n'"wall "
check "and a line says that it is not in the directory" matches "$err" "profile: 'crammed/report.txt': No space left on device .legal: "

refuses "no program given" profile
refuses "^subutai: profile: --pid: .*preloaded.*USDT.*libpthread:mutex_entry" profile --pid 1
refuses "profile: --delegate-from: '15' is not a legal value .legal: two of 0 to 100 or never" profile --delegate-from 15 -- ./locks
refuses "directory '/proc/x': .* .legal" profile -o /proc/x -- ./locks
mkdir -p full && echo text >full/notes.sbt
refuses "the file is something else" profile -o full -- ./locks
check "and is still there" is "$(<full/notes.sbt)" text
refuses "'/dev/null': .*legal" profile -o /dev/null -- ./locks
refuses "chooses nothing here" profile --record x -- ./locks
refuses "chooses nothing here" profile --record-calls all -- ./locks
refuses "unknown option '--stack'" profile --stack -- ./locks
refuses "nosuch" profile -o out -- ./nosuch
echo 'int main(void) { return 0; }' >plain.c && $CC -static plain.c -o static 2>/dev/null &&
    refuses "'./static' cannot be recorded" profile -o out -- ./static
$CC plain.c -o plain && profile -- ./plain
check "a program without synchronization: its status" is "$status" 0
if [[ $(id -u) != 0 ]]; then
    mkdir sealed && chmod 555 sealed
    refuses "sealed.*Permission denied" profile -o sealed -- ./locks
fi
finish
