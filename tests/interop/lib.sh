# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Common part of the interop tests: real programs through the launcher, under every engine, against the same program
# under the plain C library.
#
# A test sources this file, names what it needs, and calls `each_variant FUNCTION`: the function runs once as "plain"
# (nothing preloaded: the oracle) and once for every engine, with $variant set; "ni-inline" and "ni-dedicated" are the
# engine ni with that service, "switched" is direct with waiting by switching. Inside it `run LIMIT CMD...` runs a
# program under that variant, `check TEXT CMD...` is one TAP point, `same TEXT FILE` compares FILE with what the plain
# run left under the same name. `finish` ends the test. The current directory is private and is removed at the end,
# and so is every process that was started, whatever ends the script.
#
# Every program has a limit in seconds (tests/lib/session.sh); `run` returns 124 when it strikes.
#
# From the environment: INTEROP_BUILD (build directory, default: build beside the sources), INTEROP_ENGINES (default:
# the list below, the only one). Names do not start with SUBUTAI_, which the library reserves.

set -u
ulimit -c 0

engines=${INTEROP_ENGINES-"glibc direct ni-inline"}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../lib/tap.sh"
. "$here/../lib/session.sh"
build=$(cd "${INTEROP_BUILD:-$here/../../build}" && pwd) || exit 99
# shellcheck disable=SC2034 # for the tests
bin=$build/tests/interop
launcher=$build/tools/preload/subutai
library=$build/libsubutai/libsubutai.so

variant=plain
enter_scratch interop

# Programs that write locale-dependent text or keep state in the user's home must not differ from machine to machine.
export LC_ALL=C HOME=$scratch
unset LD_PRELOAD MAKEFLAGS MALLOC_PERTURB_ ASAN_OPTIONS UBSAN_OPTIONS

# need PROGRAM... : skips the whole test when one is not installed. A program that the project builds is never missing.
need() {
    local program
    for program; do
        if ! command -v "$program" >/dev/null; then
            echo "1..0 # SKIP $program is not installed"
            exit 0
        fi
    done
}

# variables_for VARIANT: sets the array `variables`, what the launcher would set, for a test that preloads by itself.
variables_for() {
    case $1 in
    plain) variables=() ;;
    ni-*) variables=(SUBUTAI_ENGINE=ni SUBUTAI_NI_SERVICE="${1#ni-}") ;;
    switched) variables=(SUBUTAI_WAIT=switch) ;;
    *) variables=(SUBUTAI_ENGINE="$1") ;;
    esac
}

# prefix_for VARIANT: sets the array `prefix`, words to put before a command.
prefix_for() {
    local variables
    variables_for "$1"
    case $1 in
    plain) prefix=() ;;
    *)
        if [ ! -x "$launcher" ]; then
            prefix=(env LD_PRELOAD="$library" "${variables[@]}")
        elif [[ $1 == ni-* ]]; then
            prefix=("$launcher" run --engine ni --ni-service "${1#ni-}" --)
        elif [[ $1 == switched ]]; then
            prefix=("$launcher" run --wait switch --)
        else
            prefix=("$launcher" run --engine "$1" --)
        fi
        ;;
    esac
}

# run LIMIT CMD... : CMD under the present variant.
run() {
    local limit=$1 prefix
    shift
    prefix_for "$variant"
    bounded "$limit" "${prefix[@]}" "$@"
}

# check TEXT CMD... : one TAP point, ok if CMD succeeds. Its output is shown only when it fails.
check() {
    local text=$1 status
    shift
    "$@" >"$scratch/.check" 2>&1
    status=$?
    point "$status" "$text"
    if [ "$status" != 0 ]; then
        note "status $status of: $*"
        tail -n 40 "$scratch/.check" | sed 's/^/# /'
    fi
    return "$status"
}

# check_run TEXT LIMIT CMD... : the same, CMD run under the variant; its output is kept in $variant.out and .err.
check_run() {
    local text=$1 status
    shift
    run "$@" >"$variant.out" 2>"$variant.err"
    status=$?
    point "$status" "$text"
    if [ "$status" != 0 ]; then
        note "status $status of: ${*:2}"
        tail -n 40 "$variant.out" | sed 's/^/# out: /'
        tail -n 250 "$variant.err" | sed 's/^/# err: /'
    fi
    return "$status"
}

# keep SUFFIX : keeps the output of the last check_run as $variant.SUFFIX, for `same`.
keep() {
    mv "$variant.out" "$variant.$1"
}

# same TEXT SUFFIX : $variant.SUFFIX is what the plain run wrote, byte for byte, and not empty. Nothing for "plain".
same() {
    local text=$1 suffix=$2
    if [ "$variant" = plain ]; then
        check "$text (oracle, not empty)" test -s "plain.$suffix"
    elif ! cmp -s "plain.$suffix" "$variant.$suffix"; then
        point 1 "$text"
        diff -a "plain.$suffix" "$variant.$suffix" | head -n 30 | cut -c 1-160 | sed 's/^/# /'
    else
        point 0 "$text"
    fi
}

# is_served PID : the library is mapped into the process if and only if the variant is an engine.
is_served() {
    if grep -q '/libsubutai\.so' "/proc/$1/maps"; then
        [ "$variant" != plain ]
    else
        [ "$variant" = plain ]
    fi
}

# serve CMD... : starts a server under the variant, output in $variant.log; sets server_pid.
serve() {
    local prefix
    prefix_for "$variant"
    setsid "${prefix[@]}" "$@" </dev/null >"$variant.log" 2>&1 &
    server_pid=$!
    started+=("$server_pid")
}

# await SECONDS CMD... : until CMD succeeds; fails after SECONDS, stretched, or at once when the server is gone.
await() {
    local end
    end=$((SECONDS + $(stretched "$1")))
    shift
    until "$@" >/dev/null 2>&1; do
        if [ "$SECONDS" -ge "$end" ] || ! kill -0 "$server_pid" 2>/dev/null; then
            return 1
        fi
        sleep 0.05
    done
}

# check_start TEXT SECONDS CMD... : the server answers CMD within SECONDS and is served.
check_start() {
    local text=$1
    shift
    if await "$@"; then
        point 0 "$text"
        check "the library is in the server only under an engine" is_served "$server_pid"
        return 0
    fi
    point 1 "$text"
    stacks "$server_pid" 2>&1 | sed 's/^/# /'
    tail -n 40 "$variant.log" | sed 's/^/# /'
    kill -KILL -- -"$server_pid" 2>/dev/null
    wait "$server_pid" 2>/dev/null
    return 1
}

# check_stop TEXT LIMIT : SIGTERM ends the server within LIMIT seconds, stretched, with status 0.
check_stop() {
    local text=$1 limit status
    limit=$(stretched "$2")
    kill -TERM "$server_pid" 2>/dev/null
    if ! timeout "$limit" tail -s 0.02 --pid="$server_pid" -f /dev/null; then
        point 1 "$text"
        note "still running $limit s after SIGTERM"
        stacks "$server_pid" 2>&1 | sed 's/^/# /'
        kill -KILL -- -"$server_pid" 2>/dev/null
        wait "$server_pid" 2>/dev/null
        return 1
    fi
    wait "$server_pid"
    status=$?
    kill -KILL -- -"$server_pid" 2>/dev/null
    point "$status" "$text"
    if [ "$status" != 0 ]; then
        note "status $status"
        tail -n 40 "$variant.log" | sed 's/^/# /'
    fi
}

# each_variant FUNCTION : plain first, so that `same` has its oracle. Whatever a test finds means nothing if the library
# is not in the programs (the dynamic linker only warns about a preload that it cannot find), so that is point one.
each_variant() {
    for variant in plain $engines; do
        about=$variant
        if [ "$variant" != plain ]; then
            run 20 cat /proc/self/maps >"$variant.maps" 2>"$variant.err"
            check "the library is in the programs" grep -q "/libsubutai\.so" "$variant.maps" ||
                sed "s/^/# /" "$variant.err"
        fi
        "$@"
    done
}
