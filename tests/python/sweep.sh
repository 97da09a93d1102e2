#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# subutai sweep on this machine: what it refuses, its table against predict, its pictures.
. "$(dirname "$0")/lib.sh"
refuses 'sweep: no sweep given' sweep
refuses "sweep: unknown option '--engine' \(legal: --jobs, --out, --dask" sweep --engine direct s.toml
refuses 'sweep: --out needs a value' sweep s.toml --out
cat >bare <<'EOF'
#!/bin/sh
exec python3 -I -S "$@"
EOF
chmod +x bare
PYSUBUTAI_PYTHON=$scratch/bare refuses "sweep: .* has no module subutai \(legal: Python 3.11 or later with the package" sweep s.toml
PYSUBUTAI_PYTHON=/no/such/python refuses "sweep: '/no/such/python': not found \(legal: Python 3.11" sweep s.toml
printf '#!/bin/sh\nsed "s/^if sys.version_info < .*/if True:/" <<EOF | exec python3 -\n$2\nEOF\n' >old
chmod +x old
PYSUBUTAI_PYTHON=$scratch/old refuses "sweep: .* is Python 3[0-9.]+ \(legal: Python 3.11" sweep s.toml
need_python "subutai sweep"
export PYSUBUTAI_PYTHON
python() {
    run "$PYSUBUTAI_PYTHON" -c "import polars as pl, sys
$1" "${@:2}"
}

# ---- refusals ----
four four.sbt
refuses_file() { # REGEX TOML
    printf '%s\n' "$2" >bad.toml
    refuses "sweep: $1" sweep bad.toml
    check "and there is no folder" test ! -e bad
}
refuses "sweep: 'no-such.toml': No such file" sweep no-such.toml
refuses "sweep: --jobs: '0' is not a legal value \(legal: 1 to 4096\)" sweep -j 0 bad.toml
refuses "sweep: --chunk: 'x' is not a legal value" sweep --chunk x bad.toml
refuses "sweep: --chunk without --dask and --slurm" sweep --chunk 2 bad.toml
refuses "sweep: --sbatch without --slurm" sweep --sbatch '--time=1' bad.toml
refuses "sweep: --dask and --slurm" sweep --slurm --dask tcp://127.0.0.1:1 bad.toml
refuses "sweep: no sweep given" sweep bad.toml other.toml
refuses_file "'bad.toml': not TOML: Invalid value" 'traces = ['
refuses_file "bad.toml: unknown key 'trace' \(legal: traces, grid\)" 'trace = ["four.sbt"]'
refuses_file 'bad.toml: traces: no trace given' $'[grid]\ncores = 1'
refuses_file 'bad.toml: traces: 7 is no file' $'traces = [7]\n[grid]\ncores = 1'
refuses_file "bad.toml: traces: no such trace 'other.sbt'" $'traces = ["other.sbt"]\n[grid]\ncores = 1'
refuses_file "bad.toml: traces: no file matches 'x\*.sbt'" $'traces = ["x*.sbt"]\n[grid]\ncores = 1'
refuses_file "bad.toml: traces: 'four.sbt' twice" $'traces = ["four.sbt", "f*.sbt"]\n[grid]\ncores = 1'
refuses_file "bad.toml: traces: 'four.sbt\*0': copies \(legal: 1 to 1024\)" $'traces = ["four.sbt*0"]\n[grid]\ncores = 1'
refuses_file 'bad.toml: \[grid\] is empty \(legal: lists of values of machine, cores, mesh, sync' 'traces = ["four.sbt"]'
refuses_file 'bad.toml: grid: cores: no value \(legal: LIST: cores of the machine, each 1 to 1024' $'traces = ["four.sbt"]\n[grid]\ncores = []'
refuses_file "bad.toml: grid: unknown key 'core' \(legal: machine, cores, mesh, sync, .*seed" $'traces = ["four.sbt"]\n[grid]\ncore = [1]'
refuses_file "bad.toml: grid: unknown key 'timeline'" $'traces = ["four.sbt"]\n[grid]\ntimeline = "x.csv"'
refuses_file "bad.toml: grid: --cores: '2000' is not a legal value \(legal: 1 to 1024\)" \
    $'traces = ["four.sbt"]\n[grid]\ncores = [2, 2000]'
refuses_file "bad.toml: grid: --sync: unknown value 'ni' \(legal: software, subutai, optical, atac\)" \
    $'traces = ["four.sbt"]\n[grid]\ncores = 1\nsync = ["ni"]'
refuses_file "bad.toml: grid: --sync: 'software': the host has none \(legal with --machine paper\)" \
    $'traces = ["four.sbt"]\n[grid]\nsync = ["software"]\nmachine = "host"'
refuses_file "bad.toml: grid: machine 'paper': --sync: 'glibc': the paper's chip has none" \
    $'traces = ["four.sbt"]\n[grid]\nmachine = ["host", "paper"]\nsync = ["glibc"]'
refuses_file "bad.toml: grid: cores: 1.5 is no value of it" $'traces = ["four.sbt"]\n[grid]\ncores = [1.5]'
refuses_file "bad.toml: grid: cores: True is no value of it" $'traces = ["four.sbt"]\n[grid]\ncores = [true]'
refuses_file "bad.toml: grid: pinned: 'yes' is no value of it \(legal: true, false\)" $'traces = ["four.sbt"]\n[grid]\npinned = "yes"'
refuses_file "bad.toml: grid: cores: '2' twice" $'traces = ["four.sbt"]\n[grid]\ncores = [2, 4, 2]'
numbers=$(seq -s, 1 1000)
refuses_file "bad.toml: grid: 1001000 runs \(legal: at most 1000000\)" \
    $'traces = ["four.sbt"]\n[grid]\ncores = ['"$numbers"$']\nseed = [0, '"$numbers]"
PYSUBUTAI_COMMAND=/no/such/command refuses_file "cannot run '/no/such/command': No such file" $'traces = ["four.sbt"]\n[grid]\ncores = 1'

# ---- machines that have values of their own ----
printf '%s\n' 'traces = ["four.sbt"]' '[grid]' 'sync = ["glibc", "subutai", "direct"]' 'machine = ["host", "paper"]' >machines.toml
subutai sweep machines.toml
check "each machine has its own kinds: 3 runs" is "$status $out $err" \
    "0 3 runs, 0 failed; machines/results.parquet machines/results.csv "
check "in the order of the file" is "$(cut -d, -f2,3 machines/results.csv | tr '\n' ' ')" \
    "sync,machine glibc,host subutai,paper direct,host "

# ---- the table, against predict itself ----
mkdir traces
four traces/short.sbt 5
four traces/long.sbt 20
cat >grid.toml <<'EOF'
traces = ["traces/*.sbt", ["four.sbt*2", "traces/short.sbt"]]
[grid]
cores = [1, 2, 16]
sync = ["software", "subutai"]
sched = ["rr", "csa"]
queue-elements = [1, 122]
pinned = [false, true]
EOF
subutai sweep grid.toml
check "144 runs" is "$status $out $err" "0 144 runs, 0 failed; grid/results.parquet grid/results.csv "
for cores in 1 2 16; do
    for queue in 1 122; do
        for pinned in '' --pinned; do
            for traces in traces/long.sbt traces/short.sbt "four.sbt four.sbt traces/short.sbt"; do
                # shellcheck disable=SC2086 # several words
                "$SUBUTAI" predict --json --sched rr,csa --cores $cores --queue-elements $queue $pinned $traces |
                    jq -c --arg t "$traces" --arg p "$pinned" --argjson q $queue '.runs[] |
                        [$t, .cores, .sync, .sched, $q, $p != "", .makespan_ns, .n_switches, .hardware.packets, .n_calls]'
            done
        done
    done
done | sort >predicted
python 'import json
t = pl.read_parquet("grid/results.parquet").with_columns(trace=pl.col("trace").replace("four.sbt*2+traces/short.sbt",
    "four.sbt four.sbt traces/short.sbt"))
for row in t.select("trace", "cores", "sync", "sched", "queue_elements", "pinned", "makespan_ns", "n_switches",
    "hardware_packets", "n_calls").rows():
    print(json.dumps(row, separators=(",", ":")))'
check "the table has what predict says for each" is "$(sort <<<"$out")" "$(cat predicted)"
check "and 144 of it differ in their parameters" is "$(cut -d, -f1-6 predicted | sort -u | wc -l)" 144
python 't = pl.read_parquet("grid/results.parquet"); c = pl.read_csv("grid/results.csv")
print(c.columns == t.columns, c["makespan_ns"].equals(t["makespan_ns"]), c["pinned"].equals(t["pinned"]), t.columns[:6],
    t["trace"].unique(maintain_order=True).to_list(), t["cores"].head(16).unique().to_list(), t["warning"].null_count())'
# Half of the runs are software's, to which queue elements are nothing.
check "CSV has the same, parameters come first, rows are in the order of the file" is "$out" "True True True ['trace', \
'cores', 'sync', 'sched', 'queue_elements', 'pinned'] ['traces/long.sbt', 'traces/short.sbt', 'four.sbt*2+traces/short.sbt'] \
[1] 72"
subutai sweep -j 3 -o again grid.toml
check "another sweep of it" is "$status" 0
check "has the same table, byte for byte" cmp grid/results.csv again/results.csv
check "in Parquet, too" cmp grid/results.parquet again/results.parquet
subutai sweep grid.toml
check "not into the same folder" sweep_ends 2 "'grid' has a sweep already \(legal: --resume, or another folder with -o\)"
cat >both.toml <<'EOF'
traces = ["four.sbt"]
[grid]
cores = [4]
EOF
subutai sweep --json both.toml
check "--json" json '.[0] | .runs == 1 and .done == 1 and .rows == 2 and .failed == [] and .files[1] == "both/results.csv"'
python 'print(pl.read_parquet("both/results.parquet")["sync"].to_list())'
check "a run that predicts twice has two rows" is "$out" "['software', 'subutai']"
# On a terminal there is a bar; the results are the same.
run script -qec "$SUBUTAI sweep -o bar both.toml" typescript
check "a progress bar on a terminal" matches "$status $out" '^0 .*100%.* 1/1 '

# ---- pictures ----
subutai sweep plot no-such
check "no such sweep" sweep_ends 2 "plot: no 'no-such' \(legal: the folder of a finished sweep\)"
subutai sweep plot
check "no folder" sweep_ends 2 "plot: no sweep given"
subutai sweep plot --format gif grid
check "--format" sweep_ends 2 "plot: --format: unknown value 'gif' \(legal: svg, png, pdf\)"
subutai sweep plot -x nothing grid
check "-x" sweep_ends 2 "plot: --x: 'nothing' \(legal: cores, queue_elements\)"
subutai sweep plot -y cores grid
check "-y" sweep_ends 2 "plot: --y: 'cores' \(legal: sync, sched, queue_elements, pinned\)"
subutai sweep plot both
check "nothing to draw over" sweep_ends 2 "plot: no parameter with two numbers"
subutai sweep plot -o pictures grid
check "curves in one file for each queue, maps for all else but sync" is "$status $(listed pictures | tr ' ' '\n' | grep -c ^heat-) $(listed pictures | tr ' ' '\n' |
    grep -c ^speedup-)" "0 8 2"
check "which it lists" is "$(sort <<<"${out//pictures\//}" | tr '\n' ' ')" "$(listed pictures)"
python 't = pl.read_parquet("grid/results.parquet").filter(trace="traces/long.sbt", sched="rr", queue_elements=1, pinned=False)
base = t.filter(cores=1, sync="software")["makespan_ns"][0]
print(*(f"{base / m:.3g}" for m in t.sort("sync", "cores")["makespan_ns"]))'
for number in $out; do
    check "a map says $number" grep -q ">$number</text>" pictures/heat-sched-rr-queue_elements-1-pinned-false.svg
done
check "axes, lines and traces are named" is "$(grep -cE '>(cores|speed-up|traces/long.sbt|sync subutai, sched csa, queue_elements 122)</text>' \
    pictures/speedup-pinned-true.svg)" 8
cat >rows.toml <<'EOF'
traces = ["four.sbt"]
[grid]
machine = ["paper", "host"]
cores = [1, 2]
sync = ["software", "subutai", "glibc", "switch"]
EOF
subutai sweep rows.toml
subutai sweep plot rows
check "two machines" is "$status" 0
check "a map has its machine's rows only" is "$(grep -lE '>(software|subutai)</text>' rows/heat-*) $(grep -lE '>(glibc|switch)</text>' rows/heat-*)" \
    "rows/heat-machine-paper.svg rows/heat-machine-host.svg"
subutai sweep plot -o same grid
check "the same pictures again" diff -r pictures same
subutai sweep plot -x queue-elements -y cores --format png -o png grid
check "other axes, as PNG" is "$status $(head -c 4 png/heat-sync-subutai-sched-rr-pinned-true.png | tail -c 3)" "0 PNG"
finish
