#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# subutai sweep on this machine: whatever ends it, no run is lost, and none is run twice. Runs that fail, full disks.
. "$(dirname "$0")/lib.sh"
need_python "how sweeps end"
four four.sbt
cat >both.toml <<'EOF'
traces = ["four.sbt"]
[grid]
cores = [4]
EOF

# ---- ends in the midst ----
counting_command
cat >many.toml <<'EOF'
traces = ["four.sbt"]
[grid]
sync = ["software"]
cores = [1, 2, 4, 8]
seed = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
EOF
subutai sweep -o whole many.toml
check "each run is one process" is "$status $(n_calls)" "0 40"
ends_and_goes_on() { # SIGNAL STATUS TEXT
    : >calls
    # The first eight runs go on, the others wait until they may.
    echo "((\$(wc -l <'$scratch/calls') < 8)) || while [ -d '$scratch' ] && [ ! -e '$scratch/go' ]; do sleep 0.02; done" >before
    rm -rf go cut
    begin cut "$SUBUTAI" sweep -j 2 -o cut many.toml
    await "eight runs" eval '(($(lines cut/journal.jsonl) >= 8))'
    subutai sweep -o cut --resume many.toml
    check "no second sweep beside it" sweep_ends 2 "'cut': a sweep is at work there"
    kill -"$1" "$begun"
    wait "$begun"
    check "$3: status $2" is $? "$2"
    : >before
    touch go
    check "$3: no table of a part" is "$(ls cut)" journal.jsonl
    await "the processes of the sweep" eval '! pgrep -f "$scratch/counting" >/dev/null'
    : >calls
}
ends_and_goes_on KILL 137 "kill -9"
had=$(lines cut/journal.jsonl)
half=$(tail -n 1 cut/journal.jsonl | head -c 50)
printf %s "$half" >>cut/journal.jsonl # as if it had been cut off while it wrote
subutai sweep -o cut --resume many.toml
check "--resume, after half a line" is "$status $out $err" "0 40 runs, 0 failed; cut/results.parquet cut/results.csv "
check "runs what was missing and nothing else" is "$((had + $(n_calls)))" 40
check "and has the same table" cmp cut/results.csv whole/results.csv
check "with each run once" is "$(jq -r .key cut/journal.jsonl | sort -u | wc -l) $(lines cut/journal.jsonl)" "40 40"
: >calls
printf %s "$half" >>cut/journal.jsonl
subutai sweep -o cut --resume many.toml
check "once more: nothing is left to run" is "$status $(n_calls)" "0 0"
check "and half a line does not stay" is "$(jq -s length cut/journal.jsonl 2>&1)" 40
sed -i 's/^seed.*/seed = [9, 10, 11]/' many.toml
subutai sweep -o cut --resume many.toml
check "another grid: runs that it shares are kept" is "$status $(n_calls) $(lines cut/results.csv)" "0 4 13"
sed -i 's/^seed.*/seed = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]/' many.toml
ends_and_goes_on TERM 130 "SIGTERM"
check "it says so in a line" is "$(cat cut.err)" "subutai: sweep: stopped; --resume goes on"
subutai sweep -o cut --resume many.toml
check "--resume after SIGTERM" is "$status" 0
check "has the same table, too" cmp cut/results.csv whole/results.csv
cp "$SOURCE_ROOT/sim/reference.costs" my.costs
printf '%s\n' 'traces = ["four.sbt"]' '[grid]' 'machine = "host:my.costs"' 'sync = ["glibc", "direct"]' >measured.toml
: >calls
subutai sweep measured.toml
subutai sweep --resume measured.toml
check "the same file of costs: nothing is left to run" is "$status $(n_calls)" "0 2"
sed -i '0,/"call_ns": *{[^}]*}/s//"call_ns": 77777/' my.costs
check "a machine that was measured again" eval '! cmp -s my.costs "$SOURCE_ROOT/sim/reference.costs"'
subutai sweep --resume measured.toml
check "has other runs" is "$status $(n_calls) $(lines measured/results.csv)" "0 4 3"
four four.sbt 11
: >calls
subutai sweep -o cut --resume many.toml
check "another trace of the same name is run anew" is "$status $(n_calls)" "0 40"
check "and has another table" eval '! cmp -s cut/results.csv whole/results.csv'
four four.sbt

# ---- runs that fail ----
printf '%s\n' '0 thread_create other=1' '0 mutex_lock object=7' '0 thread_join other=1' \
    '1 mutex_lock object=7 work=5000' '1 thread_end' '0 thread_end' | "$WRITE_TRACE" stuck.sbt
cat >failing.toml <<'EOF'
traces = ["four.sbt", "stuck.sbt"]
[grid]
sync = ["software"]
cores = [1, 2]
strict-trace = [true]
EOF
: >calls
subutai sweep failing.toml
check "failed runs: exit 3" matches "$status $err" '^3 subutai: sweep: 2 of 4 runs failed, twice each$'
check "they are listed with their arguments and the reason" matches "$out" "^4 runs, 2 failed; .*
subutai predict --sync=software --cores=1 --strict-trace $scratch/stuck.sbt
  exit status 3: software, rr: 2 threads wait for what does not happen"
check "each was tried twice, the others once" is "$(grep -c stuck calls) $(grep -c four calls)" "4 2"
check "the others are in the table" is "$(cut -d, -f1,2,3 failing/results.csv | tr '\n' ' ')" \
    "trace,sync,cores four.sbt,software,1 four.sbt,software,2 "
subutai sweep --json --resume failing.toml
check "--json lists them" json '.[0] | .done == 2 and (.failed | length == 2 and all(.error | startswith("exit status 3")))'
# shellcheck disable=SC2016 # expanded by the command
echo 'case $* in *--cores=2*) [ -e failed ] || { touch failed; echo "$*" >>calls; kill -SEGV $$; } ;; esac' >before
: >calls
subutai sweep -o once both.toml
check "a run that fails once is no failure" is "$status $(n_calls)" "0 1"
sed -i 's/\[4\]/[2, 4]/' both.toml
subutai sweep -o once --resume both.toml
check "a crash, too" is "$status $(n_calls) $(lines once/results.csv)" "0 3 5"
echo 'kill -SEGV $$' >before
subutai sweep -o never both.toml
check "nothing but failures: no table" matches "$status $out $(ls never)" "^3 2 runs, 2 failed; no results.*
  signal 11.* journal.jsonl$"
echo 'echo "{}"; exit 0' >before
subutai sweep -o wrong both.toml
check "something else than predict's JSON" matches "$status $out" "^3 .*printed something else than its JSON: 'runs'"
: >before

# ---- folders that cannot be written, and full disks ----
touch file
subutai sweep -o file/inside both.toml
check "no such folder" sweep_ends 2 "'file/inside': Not a directory \(legal: a folder that can be written\)"
mkdir other
echo '{"mine": 1}' >other/journal.jsonl
subutai sweep -o other --resume both.toml
check "a file of another kind is no journal" sweep_ends 2 "'other/journal.jsonl' is no journal of a sweep \(legal: another folder with -o\)"
check "and stays as it was" is "$(cat other/journal.jsonl)" '{"mine": 1}'
printf '{"mine": 1}' >other/journal.jsonl # is no beginning of a sweep's first line either
subutai sweep -o other --resume both.toml
check "nor is one without a newline" sweep_ends 2 "'other/journal.jsonl' is no journal of a sweep \(legal: another folder with -o\)"
check "and that stays, too" is "$(cat other/journal.jsonl)" '{"mine": 1}'
for beginning in '{"k' '{"key": "0123", "ro'; do
    printf %s "$beginning" >other/journal.jsonl
    subutai sweep -o other --resume both.toml
    check "a first line that was cut off after '$beginning' is" is "$status" 0
    rm -r other/*
done
mkdir -p taken/results.parquet
subutai sweep -o taken both.toml
check "a table that cannot be written" sweep_ends 3 "'taken/results.parquet': Is a directory; --resume"
check "nothing is half written" is "$(cd taken && find . -type f | sort | tr '\n' ' ')" "./journal.jsonl "
rmdir taken/results.parquet
subutai sweep -o taken --resume both.toml
check "--resume goes on" is "$status $(listed taken)" "0 journal.jsonl results.csv results.parquet "
mkdir full
if mount -t tmpfs -o size=16k tmpfs full 2>/dev/null; then
    trap 'umount "$scratch/full"; clean_up' EXIT
    subutai sweep -o full/out many.toml
    check "a full disk" sweep_ends 3 "'full/out/journal.jsonl': No space left on device; --resume goes on where it is mended"
    check "no table, whole lines alone" is "$(ls full/out) $(tail -c 1 full/out/journal.jsonl | od -An -c | tr -d ' ')" \
        'journal.jsonl \n'
    # Room for the journal and not for the tables.
    had=$(lines full/out/journal.jsonl)
    check "what was run is there" test "$had" -gt 2
    mount -o remount,size="$((40 * $(wc -c <full/out/journal.jsonl) / had / 1024 + 12))k" full
    subutai sweep -o full/out --resume many.toml
    check "the tables find no room" sweep_ends 3 "'full/out/results.*': .*No space left"
    check "none is half written" is "$(find full/out -size +0 -name '*results*' ! -name results.parquet)" ""
    mount -o remount,size=4m full
    : >calls
    subutai sweep -o full/out --resume many.toml
    check "with room again nothing is run again" is "$status $(n_calls)" "0 0"
    check "and the table is as ever" cmp full/out/results.csv whole/results.csv
else
    skip "a full disk" "no tmpfs can be mounted here"
fi
finish
