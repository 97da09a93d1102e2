#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Traces that an earlier run has left, or is about to write: a new `record` or `profile` of the same name has none of
# them in its report, and takes none away from a program that runs.
. "$(dirname "$0")/lib.sh"

cat >family.c <<'END'
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *begin(void *argument) {
    for (int i = 0; i < 1000; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    return argument;
}
/* With a second thread there are events, so that the trace's file is made at once. */
static void work(void) {
    pthread_t thread;
    pthread_create(&thread, 0, begin, 0);
    pthread_join(thread, 0);
}
/* Children of a killed program are killed, too. stays: the child says its number, and stays when the program ends. */
int main(int argc, char **argv) {
    int n = argc > 2 ? atoi(argv[2]) : 0;
    work();
    for (int i = 0; i < n; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            work();
            if (strcmp(argv[1], "killed") == 0)
                raise(SIGKILL);
            if (strcmp(argv[1], "stays") == 0) {
                FILE *said = fopen("said", "w");
                fprintf(said, "%d\n", (int)getpid());
                fclose(said);
                for (int k = 0; k < 1200; k++) /* a minute, unless it is ended */
                    usleep(50000);
            }
            _exit(0);
        }
        if (strcmp(argv[1], "stays") != 0)
            waitpid(pid, NULL, 0);
    }
    if (argc > 1 && strcmp(argv[1], "killed") == 0)
        raise(SIGKILL);
    return 0;
}
END
$CC -pthread family.c -o family || exit 99

n_of() { # DIR: traces
    find "$1" -name '*.sbt' | wc -l
}
left() { # DIR: of killed programs
    find "$1" -name '*.live' | wc -l
}

# ---- children of a killed run ----
subutai profile -o out -- ./family killed 3
check "profile: a killed program and its killed children have traces" is "$status $(n_of out)" "137 4"
subutai profile -o out -- ./family ends 1
check "the next run has its own alone" is "$status $(n_of out) $(left out)" "0 2 0"
check "and so has its report" is "$(grep -c 'process [0-9]*, engine' out/report.txt)" 2

subutai record -o app.sbt -- ./family killed 3
check "record: a killed program and its killed children have traces" is "$status $(n_of .)" "137 $((2 + 4))"
mkdir kept && cp app.sbt kept/app.16.sbt && cp app.sbt kept/other.sbt
cp kept/app.16.sbt app.16.sbt         # by a user: the number is not a process's
cp app.sbt appendix.1234.sbt          # another name
linked=$(find . -maxdepth 1 -regex './app\.[0-9]+\.sbt' ! -name app.16.sbt | head -1)
rm -f "$linked.live" && mv "$linked" kept/linked.sbt && ln -s kept/linked.sbt "$linked" # by a user
echo mine >app.77.sbt                 # no trace
cp app.[0-9][0-9][0-9]*.sbt kept/ 2>/dev/null
subutai record -o app.sbt -- ./family ends 1
check "the next run has its own alone" is "$status $(find . -maxdepth 1 -type f -regex './app\.[0-9]+\.sbt' ! -name app.16.sbt ! -name app.77.sbt | wc -l) $(left .)" "0 1 0"
check "a link of the user's to such a trace stays, and so does that" test -L "$linked" -a -s kept/linked.sbt
check "a trace of the user's with a number in its name stays" cmp -s app.16.sbt kept/app.16.sbt
check "so does one of another name" test -s appendix.1234.sbt
check "and a file that is no trace" is "$(<app.77.sbt)" mine

# ---- processes that an earlier run has left running ----
subutai profile -o out -- ./family stays 1
comes test -s said
child=$(<said)
started+=("$child")
cp out/family.sbt out/earlier.sbt
refuses "^subutai: profile: trace 'out/family\.[0-9]+\.sbt': process $child still writes it .legal: " profile -o out -- ./family
check "its trace is still there" test -s out/family."$child".sbt
check "and so are those beside it" test -s out/earlier.sbt -a -s out/family.sbt
kill -KILL "$child"
comes no_process "$child"
subutai profile -o out -- ./family
check "and is removed when it has ended" is "$status $(n_of out)" "0 1"
rm -f said
"$SUBUTAI" record -o app.sbt -- ./family stays 1
comes test -s said
child=$(<said)
started+=("$child")
refuses "^subutai: record: trace 'app\.[0-9]+\.sbt': process $child still writes it .legal: " record -o app.sbt -- ./family
check "and the old trace is still there" test -s app.sbt
kill -KILL "$child"
comes no_process "$child"
rm -f said

# ---- two at once ----
mkfifo go
cat >waits.sh <<'END'
./family
read -r <go
END
"$SUBUTAI" profile -o out -- bash waits.sh >/dev/null 2>first &
first=$!
started+=("$first")
comes test -s out/bash.sbt
refuses "^subutai: profile: directory 'out': another subutai profile is at work there .legal: " profile -o out -- ./family
echo >go
wait $first
check "two profiles in one directory: the first one's report is its own" is "$? $(grep -c 'report is out/report.txt' first) $(n_of out)" "0 1 1"
finish
