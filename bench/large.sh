# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2154 # $clip, $scratch, $quick, $build_dir are the sourcing script's
# Programs of many makers, on work that is made here: encoders, packers, compilers, virtual machines, a data base.
# Sourced by bench/numbers, after bench/lib.sh and bench/servers.sh. A program that is not installed is a line that says so.

large_bound=0.98

# large_row NAME PROGRAM THREADS OUTPUT SCRIPT: SCRIPT is run by sh in the scratch directory, leaves the file OUTPUT, and fails if a
# program of it does.
large_row() {
    if command -v "$2" >/dev/null; then
        compare_rows "$1" "$3" $large_bound --output "$4" -- sh -c "$5"
    else
        for_all left_out "$1" "$3" $large_bound "not installed"
    fi
}

make_java() { # ROUNDS
    cat >Work.java <<END
import java.util.stream.IntStream;
public class Work {
    static long spin(int seed) {
        long x = seed;
        for (int i = 0; i < $1; i++)
            x = x * 6364136223846793005L + 1442695040888963407L;
        return x;
    }
    public static void main(String[] a) {
        var lock = new Object();
        var n = new long[1];
        long sum = IntStream.range(0, 20000).parallel().mapToLong(i -> {
            synchronized (lock) { n[0]++; }
            return spin(i);
        }).sum();
        System.out.println(sum + " " + n[0]);
    }
}
END
    javac Work.java
}

make_node() { # MEGABYTES
    cat >work.js <<END
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const crypto = require('crypto');
if (isMainThread) {
    const n = Number(process.argv[2]);
    let left = n;
    const sums = new Array(n);
    for (let i = 0; i < n; i++)
        new Worker(__filename, { workerData: [i, n] }).on('message', sum => {
            sums[i] = sum;
            if (--left === 0) require('fs').writeFileSync('node.out', sums.join('\n'));
        });
} else {
    const [index, n] = workerData;
    const block = Buffer.alloc(1 << 16, index);
    const hash = crypto.createHash('sha256');
    for (let i = 0; i < $1 * 16 / n; i++) hash.update(block);
    parentPort.postMessage(hash.digest('hex'));
}
END
}

make_sources() { # FILES FUNCTIONS: for gcc -flto
    local i j
    for ((i = 0; i < $1; i++)); do
        for ((j = 0; j < $2; j++)); do
            echo "double f${i}_$j(double x, int n) { double s = x; for (int k = 0; k < n; k++) s = s * ${j}.5 + k / (s + $i); return s > 0 ? s : -s; }"
        done >lto_$i.c
    done
    {
        for ((i = 0; i < $1; i++)); do
            echo "double f${i}_0(double, int);"
        done
        echo 'int main(int argc, char **argv) { (void)argv; double s = 0;'
        for ((i = 0; i < $1; i++)); do
            echo "s += f${i}_0(s, argc);"
        done
        echo 'return s > 1e9; }'
    } >lto_main.c
}

make_crates() { # CRATES FUNCTIONS: a workspace of a binary and libraries
    local i j
    mkdir -p crates/app/src
    {
        echo '[workspace]'
        echo 'members = ["*"]'
        echo 'exclude = ["target"]'
        echo 'resolver = "2"'
    } >crates/Cargo.toml
    printf '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\n' >crates/app/Cargo.toml
    echo 'fn main() { let mut s = 0.0;' >crates/app/src/main.rs
    for ((i = 0; i < $1; i++)); do
        mkdir -p "crates/lib$i/src"
        printf '[package]\nname = "lib%d"\nversion = "0.1.0"\nedition = "2021"\n' $i >"crates/lib$i/Cargo.toml"
        echo "lib$i = { path = \"../lib$i\" }" >>crates/app/Cargo.toml
        for ((j = 0; j < $2; j++)); do
            echo "pub fn f$j(x: f64) -> f64 { (0..$j).map(|k| (x + k as f64).sqrt()).fold(x, |a, b| a * 0.5 + b) }"
        done >"crates/lib$i/src/lib.rs"
        echo "s += lib$i::f0(s);" >>crates/app/src/main.rs
    done
    echo 'println!("{s}"); }' >>crates/app/src/main.rs
}

make_sql() { # ROWS
    cat >work.py <<END
import sys
import duckdb
db = duckdb.connect(config={"threads": int(sys.argv[1])})
db.execute("create table t as select range as i, hash(range) % 1000 as k, (range * 7919) % 10007 as v from range($1)")
rows = db.execute("select k, count(*), sum(v), max(i) from t group by k order by k").fetchall()
rows += db.execute("select count(*) from t a join (select v, min(i) m from t group by v) b on a.v = b.v and a.i > b.m").fetchall()
open("duckdb.out", "w").write(repr(rows))
END
}

# large_duckdb THREADS: by the Python of the tests, or the system's
large_duckdb() {
    local python=$build_dir/python-venv/bin/python
    [[ -x $python ]] && "$python" -c 'import duckdb' 2>/dev/null || python=python3
    if "$python" -c 'import duckdb' 2>/dev/null; then
        compare_rows duckdb "$1" $large_bound --output duckdb.out -- "$python" work.py "$1"
    else
        for_all left_out duckdb "$1" $large_bound "no Python module duckdb"
    fi
}

# redis_throughput ENGINE THREADS REQUESTS: requests per second on stdout
redis_throughput() {
    local socket=$scratch/redis.socket pid result='' status=0 launcher
    rm -f "$socket"
    set_launcher "$1"
    "${launcher[@]}" redis-server --port 0 --unixsocket "$socket" --save '' --io-threads "$2" --io-threads-do-reads yes \
        --dir "$scratch" >"$scratch/server.log" 2>&1 &
    pid=$!
    echo $pid >"$scratch/server.pid"
    if ! wait_for_server "$pid" redis-cli -s "$socket" ping; then
        cat "$scratch/server.log" >&2
        stop_server "$pid" || true
        return 1
    fi
    result=$(timeout 120 redis-benchmark -s "$socket" -n "$3" -c 16 -P 8 -t set --csv) || status=1
    stop_server "$pid" || status=1
    result=$(sed -n 's/^"SET","\([0-9.]*\)".*/\1/p' <<<"$result")
    ((status == 0)) && [[ -n $result ]] && echo "$result"
}

large_redis() { # THREADS REQUESTS
    if command -v redis-server >/dev/null && command -v redis-benchmark >/dev/null; then
        server_rows "redis throughput" "$1" $large_bound redis_throughput "$2"
    else
        for_all left_out "redis throughput" "$1" $large_bound "not installed"
    fi
}

# group_redis: a part of its own, which is done soon
group_redis() {
    local n threads="2 16" requests=400000
    [[ $quick == no ]] || threads=2 requests=20000
    for n in $threads; do
        large_redis "$n" "$requests"
    done
}

# group_large: each takes about a second, with --quick next to nothing
group_large() {
    local n threads="2 16" frames=150 rounds=60000 megabytes=1200 files=16 functions=150 crates=8 rows=6000000
    [[ $quick == no ]] || threads=2 frames=6 rounds=10 megabytes=4 files=2 functions=2 crates=2 rows=1000
    "$clip" 640 360 "$frames" >clip.y4m
    make_node "$megabytes"
    make_sources "$files" "$functions"
    make_crates "$crates" "$functions"
    make_sql "$rows"
    ! command -v javac >/dev/null || make_java "$rounds"
    for n in $threads; do
        large_row ffmpeg ffmpeg "$n" clip.avi "ffmpeg -v error -y -stream_loop 4 -i clip.y4m -c:v mpeg4 -b:v 2M -threads $n -fflags +bitexact clip.avi"
        large_row xz xz "$n" clip.xz "head -c 24000000 clip.y4m | xz -1 --block-size=1MiB -T$n >clip.xz"
        large_row zstd zstd "$n" clip.zst "zstd -q -f -9 -T$n clip.y4m -o clip.zst"
        large_row java javac "$n" java.out \
            "java -Djava.util.concurrent.ForkJoinPool.common.parallelism=$n -cp . Work >java.out"
        large_row node node "$n" node.out "node work.js $n"
        large_row cargo cargo "$n" cargo.out \
            "cargo build -q --offline -j $n --manifest-path crates/Cargo.toml --target-dir target && target/debug/app >cargo.out; r=\$?; rm -rf target; exit \$r"
        large_row "gcc -flto" gcc "$n" lto.out "gcc -O2 -flto=$n lto_*.c -o lto && { ./lto; echo \$? >lto.out; }"
        large_duckdb "$n"
    done
}
