#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A program that a command runs as its child is used as if it were the command: signals, stops, terminals and pipes.
. "$(dirname "$0")/../command/lib.sh"
: "${SUBJECT:?}"
mkfifo ready

for command in record profile; do
    launch=("$SUBUTAI" "$command" -o "out-$command" --)
    run "$SUBJECT" ignores 17 "${launch[@]}" sh -c 'exit 6'
    check "$command: a caller that ignores SIGCHLD: the status is the program's" is "$status" 6
    run "$SUBJECT" ignores 17 "${launch[@]}" grep SigIgn /proc/self/status
    check "$command: and the program ignores it" matches "$out" 'SigIgn:[[:space:]]*[0-9a-f]*[13579bdf][0-9a-f]{4}([^0-9a-f]|$)'

    # Signals that another process sends to the command.
    for name in HUP ABRT CONT IO PROF RTMIN+3; do
        rm -f heard
        "${launch[@]}" bash -c 'trap "echo \$1 >heard; exit 4" "$1"; echo >ready; while :; do sleep 0.01; done' - $name \
            >/dev/null 2>&1 &
        pid=$!
        started+=("$pid")
        read -r <ready
        kill -$name $pid
        comes test -s heard
        check "$command: SIG$name goes to the program" is "$(cat heard 2>/dev/null)" $name
        kill -KILL $pid 2>/dev/null
        wait $pid 2>/dev/null
    done
    run "$SUBJECT" alarm "${launch[@]}" sleep 50
    check "$command: an alarm that was set before ends the program" is "$status" 142

    # On a terminal.
    rm -f file
    run "$SUBJECT" shell "" "${launch[@]}" "$SUBJECT" stops file
    check "$command: a program that stops itself: the shell is told, and goes on with it" \
        is "$status $err $(cat file)" "7 stopped continued"
    rm -f file
    run "$SUBJECT" shell $'\cC' "${launch[@]}" "$SUBJECT" leads file
    check "$command: a program that has left the group for a session: Ctrl-C reaches it" \
        is "$status $(cat file)" "5 interrupted"
    rm -f file
    run "$SUBJECT" hangs-up "${launch[@]}" "$SUBJECT" hears file
    check "$command: the command leads the session of a terminal that ends: the program is told" \
        is "$(cat file)" "hung up"
done

# A pipe ends when the program closes it.
mkfifo from to
"$SUBUTAI" record -o out-pipe -- bash -c 'exec >&- <&-; echo >ready; read -r <to' >from </dev/null 2>err &
pid=$!
started+=("$pid")
comes timeout 4 cat from
check "a pipe that the program closes has its end" is "$?" 0
read -r <ready
echo >to
wait $pid
check "and the program goes on" is $? 0
finish
