# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Programs of scenes with delegated mutexes; sourced.
. "$SOURCE_ROOT/tests/ni/lib.sh"

# delegated NAME: at least one section of the entry of that name was handed over.
delegated() {
    matches "$err" "delegated: '$1': [1-9][0-9]* sections in [1-9][0-9]* batches"
}

# play_delegated WAIT PROGRAM...: every scene, on the C library alone and with all mutexes delegated: by --wait WAIT, and
# where switching is tried out or begins and ends all the time; with servers and without.
play_delegated() {
    local program scene wait how waits=("$1" 'switch!' 'turns!')
    [[ $1 != 'switch!' ]] || waits=('switch!' 'turns!')
    shift
    for program in "$@"; do
        for scene in $("$program"); do
            run "$program" "$scene"
            check "$scene: the C library alone" is "$status" 0
            for wait in "${waits[@]}"; do
                run "$SUBUTAI" run --verbose 2 --wait "$wait" --delegate all -- "$program" "$scene"
                check "$scene: delegated, --wait $wait" is "$status" 0
                [[ $wait != "${waits[0]}" || $scene =~ ^(timed|dies-within)$ ]] ||
                    check "$scene: sections are handed over" delegated all
            done
            for how in 'switch! 1' 'turns! 2'; do
                run "$SUBUTAI" run --verbose 2 --wait "${how% *}" --delegate all --servers "${how#* }" -- "$program" "$scene"
                if matches "$err" 'servers are more than the CPUs'; then
                    continue
                fi
                check "$scene: served, --wait $how" is "$status" 0
                # Whether two threads meet at a mutex is chance in some.
                [[ $how != 'switch! 1' || $scene =~ ^(timed|dies-within)$ ]] ||
                    check "$scene: served, --wait $how: sections are handed over" delegated all
            done
        done
    done
}
