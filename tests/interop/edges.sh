#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Corners in which an interposing library differs from the C library if it is careless: calls before main and from
# inside its own start-up, other interposers above it, waits that end in a handler, an exec, a fork or an unwinding,
# objects shared with a process that it is not in, programs that gain privileges. Each subject checks itself and says
# in its head what could break; it must end with 0 and print what it prints under the plain C library.
. "$(dirname "$0")/lib.sh"
edges=$bin/subjects/edges

# subject NAME [ARGUMENT...] : one program, bounded; a hang here is a lost wake-up, never slowness.
subject() {
    local name=$*
    name=${name//$library/the library}
    check_run "$name ends with 0" 12 "$edges/$1" "${@:2}" || return
    keep "${name//[ \/]/-}"
    same "$name prints the same" "${name//[ \/]/-}"
}

# As `run`, without the launcher: these depend on the order in LD_PRELOAD or on variables of their own.
preloaded() { # LIMIT BEFORE CMD...
    local limit=$1 before=$2 variables
    variables_for "$variant"
    shift 2
    if [ "$variant" = plain ]; then
        bounded "$limit" env ${before:+"LD_PRELOAD=$before"} "$@"
    else
        bounded "$limit" env LD_PRELOAD="${before:+$before:}$library" "${variables[@]}" "$@"
    fi
}

# Whatever is served before main must be served by the engine that was asked for, although `environ` may not be set.
# The library says which one it starts at verbosity 2.
early() {
    local program engine=${variant%%-*}
    [ "$engine" != switched ] || engine=direct
    for program; do
        subject "$program"
        [ "$variant" != plain ] || continue
        SUBUTAI_VERBOSE=2 preloaded 12 "" "$edges/$program" >/dev/null 2>"$variant.said"
        check "$program: the engine started is the one asked for" grep -qx "subutai: engine $engine" "$variant.said" ||
            note "it said: $(cat "$variant.said")"
    done
}

# In both orders: whatever stands behind the library in LD_PRELOAD is what its look-ups of the next function find.
beside() { # LIBRARY PROGRAM [ARGUMENT...]
    local variables order status list name=${1##*/} program=${2##*/} library_beside=$1
    shift
    name=${name%%.so*}
    variables_for "$variant"
    for order in before behind; do
        list=$library_beside:$library
        [ "$order" = before ] || list=$library:$library_beside
        [ "$variant" != plain ] || list=$library_beside
        bounded 60 env LD_PRELOAD="$list" "${variables[@]}" "$@" >"$variant.$name-$program" 2>"$variant.err"
        status=$?
        point "$status" "$program with $name $order the library ends with 0"
        [ "$status" = 0 ] || note "status $status: $(tail -n 5 "$variant.err")"
        same "$program with $name $order the library prints the same" "$name-$program"
    done
}

# Debian's libfaketime, if it is there; what it does to clocks is asked from a program that shows them.
faketime() {
    local lib
    for lib in /usr/lib/*/faketime/libfaketimeMT.so.1; do
        [ -e "$lib" ] || continue
        FAKETIME="+10y" beside "$lib" "$edges/fake-time"
        FAKETIME="@2030-01-01 00:00:00" beside "$lib" /bin/ls /
    done
}

above() {
    local status
    preloaded 12 "$edges/libabove-lib.so" "$edges/above" >"$variant.above" 2>"$variant.err"
    status=$?
    point "$status" "an interposer above the library ends with 0"
    [ "$status" = 0 ] || note "status $status: $(tail -n 5 "$variant.err")"
    same "an interposer above the library prints the same" above
}

# Two fewer than the C library fit, at most: the library itself is mapped too. Switched, there are threads of its own: one
# for each CPU and the monitor, with stacks of the usual size, because the program's handlers may run on them.
thread_room() {
    local fewer=2
    [ "$variant" != switched ] || fewer=$((fewer + $(nproc) + 1))
    subject thread-room growth
    check_run "threads under a limit of address space" 12 "$edges/thread-room" limit || return
    keep room
    check "threads under a limit of address space: as many as fit on the plain C library, less $fewer at most" \
        test "$(cat "$variant.room")" -ge "$(($(cat plain.room) - fewer))"
    check_run "threads where there is little address space" 12 "$edges/thread-room" narrow || return
    keep narrow
    # The engine ni has its tiles' memory there as well.
    check "threads where there is little address space: a third of the plain C library's at least" \
        test "$(cat "$variant.narrow")" -ge "$(($(cat plain.narrow) / 3))"
}

# The other process is started by the first with the preload or without, whatever the first one has.
mixed() {
    local variables
    subject mixed-processes none
    variables_for "$variant"
    [ "$variant" = plain ] || export "${variables[@]}"
    subject mixed-processes "$library"
    unset SUBUTAI_ENGINE SUBUTAI_NI_SERVICE
}

# A program that gains privileges loads the library only from /etc/ld.so.preload (simulated in a mount namespace of our
# own). SUBUTAI_LOG then names a file of the caller's choice, which the caller may not write: it must be left alone.
secure_log() {
    local status program=$scratch/lonely-secure secret=$scratch/secret variables
    variables_for "$variant"
    [ "$variant" != plain ] || return
    if [ "$(id -u)" != 0 ] || ! command -v setpriv >/dev/null || ! unshare -m true 2>/dev/null ||
        [ "$(stat -c %a /etc/ld.so.preload 2>/dev/null)" ]; then
        n_points=$((n_points + 1))
        echo "ok $n_points - $variant: log file of a setuid program # SKIP only root with a mount namespace can try it"
        return
    fi
    cp "$bin/lonely" "$program"
    cp "$library" "$scratch/libsubutai.so"
    chmod 4755 "$program"
    chmod 755 "$scratch" "$scratch/libsubutai.so"
    install -m 600 /dev/null "$secret"
    # /etc is hidden, in the namespace only, by a copy that has the one file more.
    bounded 20 unshare -m --propagation private bash -e -c '
        mkdir -p "$1/etc" && cp -a /etc/. "$1/etc/" && echo "$1/libsubutai.so" >"$1/etc/ld.so.preload"
        mount --bind "$1/etc" /etc
        # The variables come after setpriv, which is served too and is still root when it starts.
        exec setpriv --reuid=65534 --regid=65534 --clear-groups \
            env "${@:4}" SUBUTAI_LOG="$3" SUBUTAI_VERBOSE=2 "$2"
        ' secure "$scratch" "$program" "$secret" "${variables[@]}" >"$variant.secure" 2>"$variant.err"
    status=$?
    check "setuid program with the library in ld.so.preload: exit status 42" test "$status" = 42 ||
        tail -n 5 "$variant.err" | sed 's/^/# /'
    check "setuid program: the caller's log file is not written" test ! -s "$secret" || sed 's/^/# /' "$secret"
    rm -f "$secret" "$program"
    rm -rf "${scratch:?}/etc"
}

all_edges() {
    local program
    early early early-first preinit
    subject ifunc
    subject locking-free
    subject init-race
    above
    for program in ready early early-first preinit; do
        beside "$edges/libready-lib.so" "$edges/$program"
    done
    beside "$edges/libfake-time-lib.so" "$edges/fake-time"
    faketime
    thread_room
    subject cond-mixed
    subject cond-reuse
    subject handler-exit mutex
    subject handler-exit rwlock
    subject handler-exit cond
    subject handler-exit sem
    subject fork-in-handler
    subject vfork-identity
    subject no-unwind
    subject unwind
    subject attribute-kinds
    mixed
    secure_log
}

each_variant all_edges
finish
