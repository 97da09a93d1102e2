# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# What the lint checks share; sourced. Each can be run by itself, from anywhere, and prints TAP.
set -uo pipefail
lint=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$lint/../lib/tap.sh"
cd "$lint/../.." || exit 99

sources() {
    "$lint/sources" "$@"
}

# need PROGRAM TEXT: ends the test with TEXT skipped if PROGRAM is not installed.
need() {
    command -v "$1" >/dev/null && return
    skip "$2" "$1 is not installed"
    finish
}

# silent TEXT COMMAND...: one point, ok if the command succeeds and says nothing; what it says is shown.
silent() {
    local text=$1 said status
    shift
    said=$("$@" 2>&1)
    status=$?
    [ -z "$said" ] || status=1
    point "$status" "$text"
    [ -z "$said" ] || note "$said"
}
