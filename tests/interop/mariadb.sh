#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# MariaDB under sysbench oltp: adaptive mutexes, pthread_cond_clockwait, the thread pool and InnoDB's own locks on
# futexes. The data are checked by the engine (CHECK TABLE) and against sums that every transaction keeps.
. "$(dirname "$0")/lib.sh"
need mariadbd mariadb-install-db mariadb mariadb-admin sysbench

socket_of() {
    echo "$scratch/$variant.socket"
}

sql() {
    bounded 60 mariadb --no-defaults --skip-column-names -S "$(socket_of)" -u root -e "$1"
}

admin() {
    mariadb-admin --no-defaults -S "$(socket_of)" -u root "$@"
}

oltp() {
    bounded 90 sysbench --mysql-socket="$(socket_of)" --mysql-user=root --mysql-db=bench --tables=2 --table-size=1000 \
        "$@"
}

run_oltp() {
    oltp --threads=8 --events=600 --time=0 oltp_read_write run >"$variant.oltp" 2>&1 &&
        grep -q "transactions: *600 " "$variant.oltp" && grep -q "reconnects: *0 " "$variant.oltp" && return
    cat "$variant.oltp"
    return 1
}

# Transfers between accounts from 8 connections at once; the sum of all balances never changes.
transfers() {
    local pids=() one
    for one in 1 2 3 4 5 6 7 8; do
        awk -v seed="$one" 'BEGIN { srand(seed); print "set autocommit=0;"
            for (i = 0; i < 60; i++) {
                a = int(rand() * 20); b = int(rand() * 20); lo = a < b ? a : b; hi = a < b ? b : a
                printf "select id from account where id in (%d, %d) order by id for update;\n", lo, hi
                printf "update account set balance = balance - 3 where id = %d;\n", a
                printf "update account set balance = balance + 3 where id = %d;\ncommit;\n", b
            } }' |
            timeout -k 2 "$(stretched 60)" mariadb --no-defaults -S "$(socket_of)" -u root bench >/dev/null &
        pids+=($!)
    done
    for one in "${pids[@]}"; do
        wait "$one" || return 1
    done
}

# One empty data directory for all variants, made by the plain program.
mariadb-install-db --no-defaults --datadir="$scratch/empty" --auth-root-authentication-method=normal \
    --skip-test-db --user="$(id -un)" >install.log 2>&1 || {
    tail -n 20 install.log | sed "s/^/# /"
    echo "Bail out! no data"
    exit 1
}

session() {
    cp -r empty "$variant.data"
    serve mariadbd --no-defaults --datadir="$scratch/$variant.data" --socket="$(socket_of)" \
        --skip-networking --user="$(id -un)" --innodb-buffer-pool-size=32M --innodb-flush-log-at-trx-commit=2 \
        --innodb-log-file-size=8M --pid-file="$scratch/$variant.pid" "$@"
    check_start "mariadbd answers" 60 admin ping || return
    check "creates a database" sql "create database bench; use bench;
        create table account (id int primary key, balance int)
        engine=innodb; insert into account select seq, 1000 from seq_0_to_19"
    check "sysbench prepares two tables with two threads" oltp --threads=2 oltp_read_write prepare
    check "sysbench oltp_read_write, 8 connections, 600 transactions" run_oltp
    check "transfers from 8 connections" transfers
    check "no money was lost" test "$(sql 'select sum(balance) from bench.account')" = 20000
    sql "check table bench.account, bench.sbtest1, bench.sbtest2" >"$variant.tables" 2>&1
    same "CHECK TABLE says the same" tables
    check_stop "mariadbd ends on SIGTERM" 60
    rm -rf "$variant.data"
}

each_variant session
finish
