#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# subutai sweep --dask on a scheduler and workers of this machine, which die in the midst: nothing is lost, nothing is
# there twice.
. "$(dirname "$0")/lib.sh"
need_python "subutai sweep --dask"
counting_command
four four.sbt
cat >many.toml <<'EOF'
traces = ["four.sbt"]
[grid]
sync = ["software"]
cores = [1, 2, 4, 8]
seed = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
EOF
subutai sweep -o whole many.toml
check "the sweep on this machine" is "$status" 0

# One point of the network that nothing listens at.
subutai sweep --dask tcp://127.0.0.1:1 many.toml
check "no scheduler: within bounds" sweep_ends 2 "--dask: no scheduler answers at 'tcp://127.0.0.1:1'"
# Other servers: one that answers as a web server does (the scheduler's dashboard), and one that says nothing.
cat >server <<'EOF'
import socket, sys
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
kept = []
while True:
    kept.append(server.accept()[0])
    kept[-1].sendall(sys.argv[1].encode())
EOF
for said in 'HTTP/1.1 400 Bad Request' ''; do
    rm -f server.out
    begin server "$VENV/bin/python" server "$said"
    await "a server" test -s server.out
    subutai sweep --dask "127.0.0.1:$(cat server.out)" many.toml
    check "a server that says '$said' is no scheduler" sweep_ends 2 "--dask: no scheduler answers at '127.0.0.1:[0-9]+'"
done
subutai sweep --dask nonsense://x many.toml
check "no address" sweep_ends 2 "--dask: 'nonsense://x' \(legal: HOST:PORT, tcp, "
subutai sweep --dask localhost many.toml
check "no port: at once, in one line" sweep_ends 2 "--dask: 'localhost' \(legal: HOST:PORT, tcp, "

dask() {
    local name=$1 program=$2
    shift 2
    begin "$name" "$VENV/bin/python" -m "distributed.cli.$program" "$@"
}
dask scheduler dask_scheduler --host 127.0.0.1 --port 0 --no-dashboard --scheduler-file address.json
scheduler=$begun
await "a scheduler" test -s address.json
address=$(jq -r .address address.json)
worker() { # NAME
    dask "$1" dask_worker "$address" --nthreads 1 --no-dashboard --no-nanny --local-directory "$scratch/$1"
}
subutai sweep --dask "$address" many.toml
check "no worker: within bounds" sweep_ends 2 "--dask: the scheduler at '$address' has no worker"
check "and no folder" test ! -e many

# A worker with another command.
printf '#!/bin/sh\necho "subutai 0.0.9"\n' >other
chmod +x other
PYSUBUTAI_COMMAND=$scratch/other worker w0
await "a worker" grep -q 'Registered to' w0.err
subutai sweep --dask "$address" many.toml
check "another version there" sweep_ends 2 "--dask: worker .* has subutai 0.0.9, here is subutai [0-9.]+"
kill -KILL "$begun"

# The workers are found by their command alone: the trace goes to them.
hold="((\$(wc -l <'$scratch/calls') < 8)) || while [ -d '$scratch' ] && [ ! -e '$scratch/go' ]; do sleep 0.02; done"
echo "$hold" >before
: >calls
worker w1
first=$begun
worker w2
second=$begun
await "two workers" eval 'grep -q "Registered to" w1.err && grep -q "Registered to" w2.err'
begin cut env PYSUBUTAI_COMMAND="$SUBUTAI" "$SUBUTAI" sweep --dask "$address" --chunk 2 -o cut many.toml
sweep=$begun
await "some runs" test -s cut/journal.jsonl
await "eight calls" eval '(($(n_calls) >= 8))'
kill -KILL "$second"
: >before
touch go
wait "$sweep"
check "a worker is killed in the midst: exit 0" is "$? $(cat cut.err)" "0 "
check "nothing is lost" is "$(cat cut.out)" "40 runs, 0 failed; cut/results.parquet cut/results.csv"
check "nothing is there twice" is "$(jq -r .key cut/journal.jsonl | sort -u | wc -l) $(lines cut/journal.jsonl)" "40 40"
check "the table is that of this machine" cmp cut/results.csv whole/results.csv
check "the other worker has made its copy of the trace" is "$(basename "$(find w1 -name '*.sbt')")" \
    "$(sha256sum four.sbt | cut -d' ' -f1).sbt"

# Runs that fail there.
echo 'case $* in *--cores=2\ *) exit 3 ;; esac' >before
subutai sweep --dask "$address" -o failing many.toml
check "failed runs are listed" matches "$status $out" "^3 40 runs, 10 failed; .*--cores=2 --seed=1 .*"
: >before

# The scheduler ends, and every worker.
rm -f go
: >calls
echo "$hold" >before
begin gone env PYSUBUTAI_COMMAND="$SUBUTAI" "$SUBUTAI" sweep --dask "$address" --chunk 2 -o gone many.toml
sweep=$begun
await "some runs" test -s gone/journal.jsonl
kill -KILL "$scheduler"
kill -KILL -- "-$first" # with the runs that it has begun, which would be counted with those that go on
wait "$sweep"
check "the scheduler is gone: exit 3, a line" matches "$? $(lines gone.err) $(cat gone.err)" \
    "^3 1 subutai: sweep: --dask: the scheduler at '$address' is gone; --resume goes on$"
check "no table of a part" is "$(ls gone)" journal.jsonl
: >before
touch go
had=$(lines gone/journal.jsonl)
: >calls
subutai sweep --resume -o gone many.toml
check "--resume on this machine runs what is missing" is "$status $((had + $(n_calls)))" "0 40"
check "and has the same table" cmp gone/results.csv whole/results.csv
finish
