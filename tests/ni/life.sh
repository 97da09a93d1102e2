#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Processes and threads: forks in any state, ends of any order, limits, more threads over a life than ids.
. "$(dirname "$0")/lib.sh"
for service in dedicated inline; do
    for how in fork raw; do
        for options in "" "--mesh 1x1 --queue-elements 2" "--mesh 2x1 --control-elements 1"; do
            # shellcheck disable=SC2086 # words
            under "$service" $options -- child 10 "$how"
            check "$service: children of ${how/raw/_Fork}, ${options:-as it is}" quiet_success
        done
    done
    for i in 1 2 3 4 5; do
        run "$SUBUTAI" run --engine ni --ni-service "$service" -- "$SUBJECTS/ni-lives" exit
        check "$service: main ends first, the process with its last thread ($i)" is "$status$out" "0the last one"
    done
    under "$service" -- lives exit
    check "$service: and its statistics are written" counted "$n"'.[] | n("lock") == n("unlock") and n("lock") > 200'
    under "$service" -- lives 70000 1000
    passes "$service: 70 000 threads, 1000 at once, that lock in destructors"
done

# The limit of threads counts a user's (root's not): there is room for the program's two, none for the NI's.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && setpriv --reuid=4242 --regid=4242 --clear-groups \
    test -x "$SUBUTAI" -a -x "$SUBJECTS/ni-known" -a -r "$BUILD_ROOT/libsubutai/libsubutai.so"; then
    limited() { # COMMAND...
        run setpriv --reuid=4242 --regid=4242 --clear-groups bash -c 'ulimit -u 2; exec "$@"' limited "$@"
    }
    limited "$SUBUTAI" run --engine ni -- "$SUBJECTS/ni-known" pair -100
    check "no room for an NI thread: the program runs" is "$status" 0
    check "no room for an NI thread: one line" is "$err" "subutai: no NI threads can be created: threads serve themselves"
    limited "$SUBUTAI" run --engine ni --verbose 0 -- "$SUBJECTS/ni-known" pair -100
    check "no room for an NI thread: no line at verbosity 0" is "$status$err" 0
    limited "$SUBUTAI" run --engine ni --ni-service inline -- "$SUBJECTS/ni-known" pair -100
    check "no room for an NI thread: inline service wants none" is "$status$err" 0
else
    skip "no room for an NI thread" "only root can become a user without threads"
fi
finish
