#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# subutai sweep --slurm, on a cluster of one node: slurmctld and slurmd of Debian's, on this machine, without munge.
. "$(dirname "$0")/lib.sh"
need_python "subutai sweep --slurm"
four four.sbt
cat >many.toml <<'EOF'
traces = ["four.sbt"]
[grid]
sync = ["software"]
cores = [1, 2, 4]
seed = [1, 2, 3, 4]
EOF
run env PATH="$VENV/bin" "$SUBUTAI" sweep --slurm many.toml
check "a machine without Slurm" sweep_ends 2 "--slurm: no command sbatch in PATH \(legal: a machine that submits to Slurm\)"
for program in slurmctld slurmd sbatch; do
    if ! command -v "$program" >/dev/null; then
        skip "sweeps on a cluster" "$program is not installed"
        finish
    fi
done
if [ "$(id -u)" != 0 ]; then
    skip "sweeps on a cluster" "slurmd needs root"
    finish
fi
port() {
    "$VENV/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
node=$(hostname -s)
mkdir state spool
cat >slurm.conf <<EOF
ClusterName=subutai
SlurmctldHost=$node(127.0.0.1)
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
SlurmctldPort=$(port)
SlurmdPort=$(port)
StateSaveLocation=$scratch/state
SlurmdSpoolDir=$scratch/spool
SlurmctldPidFile=$scratch/slurmctld.pid
SlurmdPidFile=$scratch/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MailProg=/bin/true
SchedulerParameters=sched_interval=1,batch_sched_delay=0
NodeName=$node NodeAddr=127.0.0.1 CPUs=2
PartitionName=main Nodes=ALL Default=YES
EOF
export SLURM_CONF=$scratch/slurm.conf
begin slurmctld slurmctld -D -f "$SLURM_CONF"
begin slurmd slurmd -D -f "$SLURM_CONF"
for _ in {1..300}; do
    [ "$(sinfo -h -o %T 2>/dev/null)" != idle ] || break
    sleep 0.1
done
if [ "$(sinfo -h -o %T 2>/dev/null)" != idle ]; then
    note "$(tail -n 5 slurmctld.err slurmd.err 2>&1)"
    skip "sweeps on a cluster" "slurmctld and slurmd do not start here"
    finish
fi

subutai sweep -o whole many.toml
check "the sweep on this machine" is "$status" 0
counting_command
subutai sweep --slurm --sbatch '--partition=none' -o wrong many.toml
check "what sbatch refuses" sweep_ends 3 "--slurm: sbatch: error: .*[Pp]artition"
check "leaves nothing but the journal" is "$(ls wrong)" journal.jsonl
subutai sweep --slurm --chunk 6 -o two many.toml
check "two tasks" is "$status $out $err" "0 12 runs, 0 failed; two/results.parquet two/results.csv "
check "the table is that of this machine" cmp two/results.csv whole/results.csv
check "each run was one process" is "$(n_calls)" 12
check "and nothing else is left" is "$(listed two)" "journal.jsonl results.csv results.parquet "

# The sweep is killed while its job runs; a task is killed, too.
: >calls
echo "case \$* in *--cores=2*) while [ -d '$scratch' ] && [ ! -e '$scratch/go' ]; do sleep 0.02; done ;; esac" >before
begin cut "$SUBUTAI" sweep --slurm --chunk 4 -o cut many.toml
await "a held task" eval '[ -s cut/journal.jsonl ] && [ -n "$(squeue -h -t RUNNING)" ]'
kill -KILL "$begun"
wait "$begun"
job=$(cat cut/slurm/job)
check "the job goes on without the sweep" matches "$(squeue -h -j "$job" -o %i)" "${job}_1"
had=$(lines cut/journal.jsonl)
begin resumed "$SUBUTAI" sweep --resume --slurm --chunk 4 -o cut many.toml
scancel "${job}_1"
await "the end of the task" eval '[ -z "$(squeue -h -j "$job" 2>/dev/null)" ]'
touch go
wait "$begun"
check "--resume waits for the job, and runs the killed task again" is "$? $(cat resumed.out resumed.err)" \
    "0 12 runs, 0 failed; cut/results.parquet cut/results.csv"
check "the journal had a part" matches "$had" "^[48]$"
check "nothing is there twice" is "$(jq -r .key cut/journal.jsonl | sort -u | wc -l) $(lines cut/journal.jsonl)" "12 12"
check "the runs of the other tasks were not run again" is "$(grep -c -e --cores=1 -e --cores=4 calls)" 8
check "and the table is the same" cmp cut/results.csv whole/results.csv

# A task that fails once is run once more.
rm -f failed
# shellcheck disable=SC2016 # expanded by the command
echo "[ -e '$scratch/failed' ] || { touch '$scratch/failed'; kill -KILL \$PPID; }" >before
subutai sweep --slurm -o once many.toml
check "a task that dies once is no failure" is "$status $out" "0 12 runs, 0 failed; once/results.parquet once/results.csv"
check "the table is the same again" cmp once/results.csv whole/results.csv
echo "kill -KILL \$PPID" >before
sed -i 's/, 4\]/]/; s/\[1, 2, 3\]/[1]/' many.toml
subutai sweep --slurm -o never many.toml
check "a task that dies twice: its runs are listed" matches "$status $out" "^3 2 runs, 2 failed; no results.*--cores=1 --seed=1 .*
  task 0 of Slurm job [0-9]+ ended without a result"
finish
