# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# TAP points of a shell test; sourced. `point`, `check` and `skip` print one each, `finish` prints the plan and ends the
# test, with status 1 if a point failed. $about, if set, stands before the text of each point.
n_points=0
n_failed=0
about=

# point STATUS TEXT
point() {
    n_points=$((n_points + 1))
    if [ "$1" = 0 ]; then
        echo "ok $n_points - ${about:+$about: }$2"
    else
        n_failed=$((n_failed + 1))
        echo "not ok $n_points - ${about:+$about: }$2"
    fi
}

skip() { # TEXT REASON
    n_points=$((n_points + 1))
    echo "ok $n_points - ${about:+$about: }$1 # SKIP $2"
}

# note [TEXT]: TEXT, or what is piped in, as comments, which a failed test's log shows.
note() {
    if [ $# -gt 0 ]; then printf '%s\n' "$*"; else cat; fi | sed 's/^/# /'
}

finish() {
    echo "1..$n_points"
    [ "$n_failed" = 0 ]
    exit
}

is() { # GOT WANTED
    [[ $1 == "$2" ]] || { note "got '$1', wanted '$2'" && false; }
}

matches() { # TEXT REGEX
    [[ $1 =~ $2 ]] || { note "'$1' does not match '$2'" && false; }
}
