#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# subutai sweep --slurm without Slurm: commands of the test's in the place of sbatch, squeue and scancel, which run each
# task with SLURM_ARRAY_TASK_ID set by hand. What goes wrong between the sweep and its tasks.
. "$(dirname "$0")/lib.sh"
need_python "tasks of a job array"
four four.sbt
cat >many.toml <<'EOF'
traces = ["four.sbt"]
[grid]
sync = ["software"]
cores = [1, 2, 4]
EOF
mkdir bin
export PATH=$scratch/bin:$PATH
# Runs the tasks one after another, then what the test adds, with $folder; its number is 7.
cat >bin/sbatch <<EOF
#!/bin/bash
for word; do case \$word in --array=0-*) last=\${word#--array=0-} ;; --output=*) log=\${word#--output=} ;; esac; done
script=\${*: -1} folder=\${script%/*}
for ((i = 0; i <= last; i++)); do SLURM_ARRAY_TASK_ID=\$i sh "\$script" >"\${log/\%a/\$i}" 2>&1; done
. '$scratch/after'
echo 7
EOF
printf '#!/bin/sh\nexit 0\n' >bin/squeue
# shellcheck disable=SC2016 # expanded by the command
printf '#!/bin/sh\necho "$*" >>%s/cancelled\n' "'$scratch'" >bin/scancel
chmod +x bin/*
: >after
subutai sweep -o whole many.toml
subutai sweep --slurm --chunk 2 -o array many.toml
check "two tasks" is "$status $out $err" "0 3 runs, 0 failed; array/results.parquet array/results.csv "
check "the table is that of this machine" cmp array/results.csv whole/results.csv

# shellcheck disable=SC2016 # expanded by the command
echo 'echo "[]" >"$folder/outcome-0.json"' >after
subutai sweep --slurm -o lost many.toml
check "a run without an outcome is a failed one" matches "$status $out" "^3 3 runs, 3 failed; no results.*
  no result has come"
check "and so it is counted" matches "$err" "3 of 3 runs failed"

# shellcheck disable=SC2016 # expanded by the command
echo 'mkdir "$folder/job"' >after
subutai sweep --slurm -o unnamed many.toml
check "the number of a job cannot be noted down" sweep_ends 3 "'.*/unnamed/slurm/job': Is a directory; --resume goes on"
check "the job is cancelled, and its folder is gone" is "$(cat cancelled) $(listed unnamed)" "7 journal.jsonl "
: >after
subutai sweep --slurm --resume -o unnamed many.toml
check "--resume goes on" is "$status $(listed unnamed)" "0 journal.jsonl results.csv results.parquet "

# ---- a task by hand ----
task() { # ARG...
    run "$PYSUBUTAI_PYTHON" -m subutai.sweep.task "$@"
}
task "$scratch" ''
check "a task without its number" is "$status $out$err" \
    "2 task: no folder and number given (legal: FOLDER NUMBER; SLURM_ARRAY_TASK_ID is the number)"
task "$scratch" 3
check "a task that is not there" is "$status $out$err" "2 task: '$scratch/chunk-3.json': No such file or directory"
echo '[{"key": 1}]' >chunk-3.json
task "$scratch" 3
check "a chunk that is none" is "$status $out$err" "2 task: '$scratch/chunk-3.json' has no runs: 'workload'"
check "none of them leaves an outcome" is "$(find . -maxdepth 1 -name '*outcome*')" ""
finish
