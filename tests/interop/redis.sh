#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# redis-server with io-threads (its main thread holds a mutex per thread to stop it), jemalloc inside, background
# threads for deletion and fsync, and a fork for snapshots.
. "$(dirname "$0")/lib.sh"
need redis-server redis-cli redis-benchmark

cli() {
    bounded 30 redis-cli -s "$scratch/$variant.socket" "$@"
}

answers() {
    cli ping | grep -q PONG
}

commands() {
    for n in $(seq 300); do
        echo "set key:$n value-$n-$((n * n))"
        echo "rpush list $n"
        echo "zadd sorted $((n * 7919 % 1009)) member$n"
        echo "hincrby hash field$((n % 10)) $n"
        echo "incr counter"
    done
    echo "lrange list 0 -1"
    echo "zrange sorted 0 -1 withscores"
    for n in $(seq 10); do
        echo "hget hash field$((n % 10))"
    done
    for n in $(seq 300); do
        echo "get key:$n"
    done
}

session() {
    mkdir "$variant.data"
    serve redis-server --port 0 --unixsocket "$scratch/$variant.socket" --dir "$scratch/$variant.data" --save '' \
        --appendonly yes --appendfsync everysec --io-threads 3 --io-threads-do-reads yes --lazyfree-lazy-user-del yes
    check_start "redis-server answers" 20 answers || return
    check "benchmark with 40 connections and pipelining, no error" \
        bounded 60 redis-benchmark -s "$scratch/$variant.socket" -q -n 3000 -c 40 -P 4 --threads 2 \
        -t set,get,incr,lpush,rpop
    check "no update was lost: the benchmark's counter" test "$(cli get 'counter:__rand_int__')" = 3000
    check "flushes in the background thread" cli flushall async
    commands | cli >"$variant.replies" 2>&1
    same "replies to 1812 commands" replies
    check "snapshot by a forked child" cli save
    cli bgsave >/dev/null
    check "background snapshot ends" await 30 sh -c "redis-cli -s $scratch/$variant.socket info persistence |
        grep -q 'rdb_bgsave_in_progress:0' && redis-cli -s $scratch/$variant.socket info persistence |
        grep -q 'rdb_last_bgsave_status:ok'"
    check_stop "redis-server ends on SIGTERM" 20
}

each_variant session
finish
