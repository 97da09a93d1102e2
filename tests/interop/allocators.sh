#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# jemalloc and tcmalloc preloaded beside the library, in both orders: they lock pthread mutexes inside malloc, from
# before any constructor, and the library's first call may come from inside them.
. "$(dirname "$0")/lib.sh"

find_library() {
    /sbin/ldconfig -p | awk -v name="$1" '$1 == name && /x86-64|AArch64/ { print $NF; exit }'
}

allocators() {
    local name file variables rounds=30000
    variables_for "$variant"
    # There each lock is a turn, and 30000 rounds of eight threads take four seconds of a processor.
    [ "$variant" != det ] || rounds=5000
    for name in libjemalloc.so.2 libtcmalloc_minimal.so.4 libtcmalloc.so.4; do
        file=$(find_library "$name")
        if [ -z "$file" ]; then
            n_points=$((n_points + 1))
            echo "ok $n_points - $variant: $name # SKIP not installed"
            continue
        fi
        if [ "$variant" = plain ]; then
            for rounds in 30000 5000; do
                check_run "churn with $name, $rounds rounds" 60 env LD_PRELOAD="$file" "$bin/churn" "$rounds"
                keep "$name.$rounds"
                check "$name, $rounds rounds: all blocks whole" grep -q 'broken 0$' "plain.$name.$rounds"
            done
            continue
        fi
        # By hand, in both orders; and as a user would: the allocator preloaded already when the launcher adds to it.
        check_bounded "churn, $name before the library" "$name.$rounds" \
            env "${variables[@]}" LD_PRELOAD="$file:$library" "$bin/churn" "$rounds"
        check_bounded "churn, $name after the library" "$name.$rounds" \
            env "${variables[@]}" LD_PRELOAD="$library:$file" "$bin/churn" "$rounds"
        [ -x "$launcher" ] && check_bounded "churn, launcher beside $name" "$name.$rounds" \
            env "${variables[@]}" LD_PRELOAD="$file" "$launcher" run -- "$bin/churn" "$rounds"
        check_bounded "Python's threads with $name" python \
            env "${variables[@]}" LD_PRELOAD="$library:$file" /usr/bin/python3 -B "$here/subjects/threads.py"
        if [ "$variant" = switched ]; then
            bounded 60 env LD_PRELOAD="$file" "$launcher" run --verbose 2 --wait switch -- "$bin/churn" 100 >said 2>&1
            check "with $name threads are switched" grep -q 'waiting by switching' said
        fi
        # Both must be there, or this tests nothing.
        check "both are in the program" sh -c "${variables[*]} LD_PRELOAD=$library:$file cat /proc/self/maps |
            awk '/libsubutai/ { a = 1 } /${name%%.*}/ { b = 1 } END { exit !(a && b) }'"
    done
}

check_bounded() { # TEXT ORACLE CMD...
    local text=$1 oracle=$2
    shift 2
    if bounded 60 "$@" >"$variant.out" 2>"$variant.err" && cmp -s "$variant.out" "plain.$oracle"; then
        point 0 "$text"
    else
        point 1 "$text"
        tail -n 20 "$variant.out" | sed 's/^/# out: /'
        tail -n 250 "$variant.err" | sed 's/^/# err: /'
    fi
}

need /usr/bin/python3
/usr/bin/python3 -B "$here/subjects/threads.py" >plain.python
engines+=' det' # an allocator's lock inside of pthread_create is an operation inside of another one there
each_variant allocators
finish
