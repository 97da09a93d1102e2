#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The static probes: docs/probes.md has them all, with as many arguments; and each fires as often as it must, with the
# object as argument. gdb is the tracer: other tracers need a kernel that lets them.
. "$(dirname "$0")/lib.sh"

library=$BUILD_ROOT/libsubutai/libsubutai.so
if ! readelf -n "$library" | grep -q 'Provider: libpthread'; then
    skip "probes" "built without sys/sdt.h"
    finish
    exit
fi

# provider:name arguments, of each that the library has.
readelf -n "$library" | awk '/Provider:/ { p = $2 } /Name:/ { n = $2 } /Arguments:/ { print p ":" n, NF - 1 }' | sort -u >has
awk -F'|' '/^## .*provider/ { split($0, a, "`"); p = a[2] }
    /^\| `/ { gsub(/[` ]/, "", $2); gsub(/\([^)]*\)/, "", $3); print p ":" $2, split($3, parts, ",") }' \
    "$SOURCE_ROOT/docs/probes.md" | sort -u >documented
status=0 out=$(diff has documented) err=
check "docs/probes.md has each probe with its arguments" is "$out" ""

need_gdb() {
    command -v gdb >/dev/null && timeout "$(stretched 60)" gdb -nx -batch -ex run --args true 2>&1 | grep -q 'exited normally'
}
if ! need_gdb; then
    skip "probes fire" "gdb is not installed, or may not run programs"
    finish
    exit
fi

# expected ENGINE: the lines that the probes of tests/command/probed.c must give.
expected() {
    cat <<END
1 cond_broadcast cond
1 cond_destroy cond
1 cond_init cond
1 cond_signal cond
1 cond_timedwait cond
4 mutex_acquired mutex
1 mutex_destroy mutex
3 mutex_entry mutex
1 mutex_init mutex
5 mutex_release mutex
1 mutex_timedlock_acquired mutex
1 mutex_timedlock_entry mutex
1 pthread_create thread
1 pthread_join id
1 pthread_join_ret id
1 pthread_start id
2 rdlock_acquire_read rwlock
2 rdlock_entry rwlock
1 rwlock_destroy rwlock
3 rwlock_unlock rwlock
1 wrlock_acquire_write rwlock
1 wrlock_entry rwlock
2 barrier_entry barrier
2 barrier_exit barrier
1 sem_entry sem
1 sem_exit sem
1 sem_post sem
END
    [[ $1 == ni ]] || echo "1 barrier_release barrier"
}

probes=$(cut -d' ' -f1 has | grep -E ':(cond|mutex|pthread|rdlock|wrlock|rwlock|barrier|sem)_')
script() {
    printf '%s\n' 'set confirm off' 'set pagination off' 'break main' run delete
    for probe in $probes; do
        printf '%s\n' "break -probe-stap $probe" commands silent "printf \"probe ${probe#*:} %p\\n\", \$_probe_arg0" \
            continue end
    done
    echo continue
}
script >script.gdb

for variant in 'direct auto' 'direct switch' 'ni adaptive'; do
    read -r engine wait <<<"$variant"
    run timeout -k 5 "$(stretched 100)" gdb -nx -batch -ex "set env LD_PRELOAD $library" -ex "set env SUBUTAI_ENGINE $engine" \
        -ex "set env SUBUTAI_WAIT $wait" -x script.gdb "$PROBED"
    # The program prints "NAME ADDRESS" of its objects; then addresses become names.
    awk '$1 != "probe" && NF == 2 && $2 ~ /^0x/ { name[$2] = $1 }
        $1 == "probe" { count[$2 " " ($3 in name ? name[$3] : "id")]++ }
        END { for (line in count) print count[line], line }' <<<"$out" | sort >fired
    expected "$engine" | sort >must
    out=$(diff must fired)
    check "$variant: each probe fires as often as it must, with its object" is "$out" ""
done
finish
