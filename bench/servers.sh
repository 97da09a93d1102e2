# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2154 # $subutai, $scratch, $build_dir are the sourcing script's
# Throughput of server programs: start the server under an engine, load it with a client that runs without, stop it.
# Sourced by bench/numbers and bench/emulation, after bench/lib.sh. Servers listen on Unix sockets in the scratch directory, so that nothing else is met.

# wait_for_server PID COMMAND...: until COMMAND succeeds, at most 60 s; false if the server has gone
wait_for_server() {
    local pid=$1 i
    shift
    for ((i = 0; i < 600; i++)); do
        kill -0 "$pid" 2>/dev/null || return 1
        "$@" >/dev/null 2>&1 && return 0
        sleep 0.1
    done
    return 1
}

# stop_server PID: by SIGTERM, and by SIGKILL if it has not ended 20 s later; false unless it ended by itself, in order
stop_server() {
    local pid=$1 i status=0
    rm -f "$scratch/server.pid"
    kill -TERM "$pid"
    for ((i = 0; i < 200; i++)); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    if kill -KILL "$pid" 2>/dev/null; then
        wait "$pid" || true
        say "server $pid did not end on SIGTERM"
        return 1
    fi
    wait "$pid" || status=$?
    ((status == 0 || status == 128 + 15))
}

as_server_user() {
    # Both servers refuse to run as root unless an option names the user that they are to run as.
    ((EUID == 0)) && echo "--user=$1"
    return 0
}

set_launcher() { # ENGINE: sets launcher, nothing for native
    local options
    launcher=()
    [[ $1 != native ]] || return 0
    mapfile -t options < <(run_options "$1")
    launcher=("$subutai" run "${options[@]}" --)
}

# memcached_throughput ENGINE THREADS REQUESTS: requests per second on stdout
memcached_throughput() {
    local socket=$scratch/memcached.socket pid result status=0 launcher
    rm -f "$socket"
    set_launcher "$1"
    # shellcheck disable=SC2046 # no word if not root
    "${launcher[@]}" memcached $(as_server_user root) -s "$socket" -t "$2" -m 64 2>"$scratch/server.log" &
    pid=$!
    echo $pid >"$scratch/server.pid"
    if ! wait_for_server "$pid" test -S "$socket"; then
        cat "$scratch/server.log" >&2
        stop_server "$pid" || true
        return 1
    fi
    result=$(timeout 120 "$build_dir/bench/memcached-load" "$socket" 16 "$3") || status=1
    stop_server "$pid" || status=1
    ((status == 0)) && echo "$result"
}

# mariadb_prepare: an empty data directory with the client's table
mariadb_prepare() {
    local pid status=0
    mkdir "$scratch/mariadb"
    ((EUID != 0)) || chown mysql "$scratch" "$scratch/mariadb"
    # shellcheck disable=SC2046
    mariadb-install-db --no-defaults $(as_server_user mysql) --auth-root-authentication-method=normal \
        --datadir="$scratch/mariadb" >"$scratch/install.log" 2>&1 || return 1
    mariadb_start native
    pid=$server_pid
    mariadb_ready "$pid" && mariadb --no-defaults -u root -S "$scratch/mariadb.socket" -e 'create database sbtest' &&
        sysbench_client 2 prepare >/dev/null || status=1
    stop_server "$pid" && return $status
}

sysbench_client() { # THREADS ARG...
    local threads=$1
    shift
    timeout 120 sysbench oltp_read_write --db-driver=mysql --mysql-socket="$scratch/mariadb.socket" --mysql-user=root \
        --tables=2 --table-size=2000 --threads="$threads" "$@"
}

mariadb_start() { # ENGINE: sets server_pid; one server thread for each connection
    local launcher
    set_launcher "$1"
    # shellcheck disable=SC2046
    "${launcher[@]}" mariadbd --no-defaults $(as_server_user mysql) --datadir="$scratch/mariadb" --skip-networking \
        --socket="$scratch/mariadb.socket" --pid-file="$scratch/mariadb.pid" --innodb-buffer-pool-size=64M \
        --innodb-flush-log-at-trx-commit=0 2>"$scratch/server.log" &
    server_pid=$!
    echo $server_pid >"$scratch/server.pid"
}

mariadb_ready() { # PID
    wait_for_server "$1" mariadb --no-defaults -u root -S "$scratch/mariadb.socket" -e 'select 1' && return 0
    tail -20 "$scratch/server.log" >&2
    return 1
}

# mariadb_throughput ENGINE THREADS SECONDS: transactions per second on stdout
mariadb_throughput() {
    local pid result='' status=0
    mariadb_start "$1"
    pid=$server_pid
    mariadb_ready "$pid" && result=$(sysbench_client "$2" --time="$3" run) || status=1
    stop_server "$pid" || status=1
    result=$(sed -n 's/^ *transactions: .*(\([0-9.]*\) per sec.).*/\1/p' <<<"$result")
    ((status == 0)) && [[ -n $result ]] && echo "$result"
}

# server_rows NAME THREADS BOUNDS FUNCTION AMOUNT: the engines in turn; pairs of neighbours give min and max.
server_rows() {
    local run i engines=("$base" "${judged[@]}") median min max line value
    : >throughputs
    for ((run = 0; run < runs; run++)); do
        line=''
        for i in "${!engines[@]}"; do
            if ! value=$("$4" "${engines[i]}" "$2" "$5"); then
                for_all failed "$1" "$2" "$3" "the server or its client failed"
                return
            fi
            line+=" $value"
        done
        echo "${line# }" >>throughputs
    done
    for i in "${!judged[@]}"; do
        IFS=$'\t' read -r median min max < <(stats throughput $((i + 1)) <throughputs)
        engine_cells "$1" "$2" "${judged[i]}"
        row "${cells[@]}" "$3" "$median" "$min" "$max"
    done
}

memcached_rows() { # THREADS BOUNDS REQUESTS
    if command -v memcached >/dev/null; then
        server_rows "memcached throughput" "$1" "$2" memcached_throughput "$3"
    else
        for_all left_out "memcached throughput" "$1" "$2" "not installed"
    fi
}
