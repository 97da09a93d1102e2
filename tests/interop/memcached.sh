#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# memcached: worker threads, item locks (trylock included), LRU and slab maintainers waiting on conditions, a clock.
. "$(dirname "$0")/lib.sh"
need memcached

session() {
    local user=()
    [ "$(id -u)" = 0 ] && user=(-u root)
    serve memcached -s "$scratch/$variant.socket" -t 4 -m 32 "${user[@]}"
    check_start "memcached answers" 20 test -S "$scratch/$variant.socket" || return
    check "12 connections: values read back, no lost incr, no lost cas" \
        bounded 60 "$bin/mcclient" "$scratch/$variant.socket"
    check "and again on the warm server" bounded 60 "$bin/mcclient" "$scratch/$variant.socket"
    check_stop "memcached ends on SIGTERM" 20
}

each_variant session
finish
