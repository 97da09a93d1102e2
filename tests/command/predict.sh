#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# subutai predict: what it refuses, what it prints, and that the same input gives the same output.
. "$(dirname "$0")/lib.sh"
: "${WRITE_TRACE:?}"

# trace FILE: written from lines on stdin.
trace() {
    "$WRITE_TRACE" "$1" || { echo "Bail out! cannot write $1" && exit 99; }
}
{
    echo "0 init object=0 type=3 size=4"
    for t in 1 2 3; do echo "0 thread_create other=$t"; done
    for t in 0 1 2 3; do
        for _ in {1..20}; do
            echo "$t mutex_lock object=1 work=$((1000 + t * 100))"
            echo "$t mutex_unlock object=1 work=500"
            echo "$t barrier_wait object=0 work=2000"
        done
    done
    for t in 1 2 3; do echo "$t thread_end"; echo "0 thread_join other=$t"; done
    echo "0 thread_end"
} | trace four.sbt
printf '%s\n' '0 thread_create other=1' '0 mutex_lock object=7' '0 thread_join other=1' \
    '1 mutex_lock object=7 work=5000' '1 thread_end' '0 thread_end' | trace stuck.sbt
printf '%s\n' '0 thread_create other=1' '1 mutex_lock object=0' '1 cond_wait object=1 other=0 order=3' '1 thread_end' \
    '0 cond_signal object=1 order=1 work=100000' '0 thread_join other=1' | trace no-signal.sbt
printf '%s\n' '0 barrier_wait object=0 work=1000' | trace no-size.sbt
trace empty.sbt </dev/null

# ---- refusals ----
refuses 'predict: no trace given' predict
refuses "predict: unknown option '--engine' \(legal: --app, --machine, --cores" predict --engine direct four.sbt
refuses "predict: no-such.sbt: at byte 0: .*No such file" predict no-such.sbt
refuses "predict: empty.sbt: an empty trace" predict empty.sbt
head -c 100 four.sbt >cut.sbt
refuses 'predict: cut.sbt: ' predict cut.sbt
printf 'GIF89a and so on, not a trace at all, whatever its name says' >other.sbt
refuses 'predict: other.sbt: at byte 0: ' predict other.sbt
refuses "predict: --sched: unknown value 'fifo' \(legal: rr, csa, oat\)" predict --sched rr,fifo four.sbt
refuses "predict: --sched: unknown value '' \(legal: rr, csa, oat\)" predict --sched rr, four.sbt
refuses "predict: --sched: 'rr' twice" predict --sched rr,csa,rr four.sbt
refuses "predict: --sync: unknown value 'ni' \(legal: software, subutai, optical, atac\)" predict --sync ni four.sbt
refuses "predict: --sync: 'glibc': the paper's chip has none \(legal with --machine host\)" predict --sync glibc four.sbt
refuses "predict: --sync: 'subutai': the host has none \(legal with --machine paper\)" predict --machine host --sync subutai four.sbt
refuses "predict: --sync: 'delegate': the paper's chip has none \(legal with --machine host\)" predict --sync software,delegate four.sbt
refuses "predict: --machine: unknown value 'chip' \(legal: paper, host, host:FILE\)" predict --machine chip four.sbt
refuses "predict: --machine: unknown value 'host:' \(legal: paper, host, host:FILE\)" predict --machine host: four.sbt
refuses "predict: --machine: no-such.costs: " predict --machine host:no-such.costs four.sbt
refuses "predict: --mesh: the host has none" predict --machine host --mesh 2x2 four.sbt
refuses "predict: --sched: the host has Linux's scheduler" predict --machine host --sched rr four.sbt
refuses "predict: --sync: 'subutai' has nothing for --machine host \(legal there: glibc, direct, switch, delegate\)" predict --machine paper,host --sync subutai four.sbt
refuses "predict: --sync: unknown value 'ni' \(legal: software, subutai, optical, atac, glibc, direct, switch, delegate\)" predict --machine paper,host --sync subutai,ni four.sbt
refuses "predict: --machine: 'host' twice" predict --machine host,paper,host four.sbt
refuses "predict: --without: unknown value 'smt' \(legal: lines, latency, slices, balance, memory, preempt, ahead, interrupts, protect, delay, outside\)" predict --machine host --without smt four.sbt
# The message names them all; so do the help and the manual.
subutai predict --machine host --without smt four.sbt
effects=$(sed -n 's/.*(legal: \(.*\)).*/\1/p' <<<"$err")
check "there are eleven values of --without" is "$(wc -w <<<"$effects")" 11
help=$("$SUBUTAI" predict --help | tr -s ' \n' ' ' | sed -n 's/.*--without LIST \(.*\) --memory-share.*/\1/p')
manual=$(sed -n '/^\.Ss.*predict/,/^\.Ss/p' "$SOURCE_ROOT/docs/subutai.1" | sed -n '/^\.It Fl -without /,/^\.It/p')
for effect in ${effects//,/}; do
    check "--help names $effect" matches "$help" "(^| )${effect}[,:]"
    check "the manual names $effect" matches "$manual" "Cm $effect( |"$'\n'"|$)"
done
refuses "predict: --without: 'lines' twice" predict --machine host --without lines,memory,lines four.sbt
refuses "predict: --memory-share: '101' is not a legal value \(legal: 0 to 100\)" predict --machine host --memory-share 101 four.sbt
refuses "predict: --machine: unknown value '' \(legal: paper" predict --machine host, four.sbt
refuses "predict: --order: unknown value 'any' \(legal: free, recorded\)" predict --order any four.sbt
refuses 'predict: --cores 16: a mesh of 8x8 has 64 cores' predict --cores 16 --mesh 8x8 four.sbt
refuses "predict: --cores: '0' is not a legal value \(legal: 1 to 1024\)" predict --cores 0 four.sbt
refuses "predict: --cores: '1025' is not" predict --cores 1025 four.sbt
for mesh in 0x8 8x33 8 8x 4x4x4 8X8 ' 8x8'; do
    refuses "predict: --mesh: (not a mesh:|value out of range) '$mesh' \(legal: WxH, each 1 to 32\)" predict --mesh "$mesh" four.sbt
done
refuses "predict: --slot-ns: '0' is not a legal value \(legal: 1001 to " predict --slot-ns 0 four.sbt
refuses "predict: --control-elements: value out of range '257'" predict --control-elements 257 four.sbt
refuses "predict: --queue-elements: value out of range '16001'" predict --queue-elements 16001 four.sbt
refuses "predict: --data-load: value out of range '901'" predict --data-load 901 four.sbt
refuses "predict: --qos: unknown value 'data' \(legal: control, none\)" predict --qos data four.sbt
refuses "predict: --qos: unknown value '' \(legal: control, none\)" predict --qos= four.sbt
refuses "predict: --app: copies: '0' is not a legal value \(legal: 1 to 1024\)" predict --app 'four.sbt*0'
refuses "predict: --app: copies: 'x' is not" predict --app 'four.sbt*x'
refuses "predict: --app: 'four.sbt,' names no file" predict --app four.sbt,
refuses 'predict: more than 1024 applications' predict --app 'four.sbt*1024' four.sbt
refuses "predict: --timeline: '/no/such/file.*': No such file" predict --timeline /no/such/file four.sbt
refuses "predict: --timeline: '/dev/full': No space left on device" predict --timeline /dev/full four.sbt
refuses "predict: --timeline: 'four.sbt' is one of the traces" predict --timeline four.sbt four.sbt
printf '%s\n' '0 mutex_lock object=1000' '0 mutex_unlock object=1000' | trace big.sbt
limited() {
    # shellcheck disable=SC2016  # expanded by the inner shell
    run bash -c 'ulimit -v "$0" && exec "$@"' "$@"
}
limited 100000 "$SUBUTAI" predict --app 'big.sbt*1024'
check "more than the process may use" matches "$status $err" '^2 subutai: predict: 1024 applications.* MiB, and there are 97'
limited 230000 "$SUBUTAI" predict --sched rr,csa,oat --app 'big.sbt*1024'
check "six simulations need the memory of one" is "$status $err" "0 "

# A hundred times as many events, and no more memory: the largest resident set of `subutai predict`, in KiB.
long_trace() { # ROUNDS
    awk -v n="$1" 'BEGIN {
        print "0 init object=0 type=3 size=2"; print "0 thread_create other=1"
        for (t = 0; t < 2; t++) for (i = 0; i < n; i++) {
            print t, "mutex_lock object=1 work=" 500 + i % 97; print t, "mutex_unlock object=1 work=" 100 + i % 31
            if (i % 10 == 0) print t, "barrier_wait object=0 work=" i % 1009
        }
        print "1 thread_end"; print "0 thread_join other=1"; print "0 thread_end" }' | trace "$2"
    subutai compare --engines native --runs 1 --warmup 0 --json -- "$SUBUTAI" predict --cores 2 "$2"
    check "a trace of $(stat -c %s "$2") bytes is predicted" json '.[0].points[0].engines[0].status == "exit 0"'
    peak=$(jq '.points[0].engines[0].peak_kib' <<<"$out")
}
long_trace 4000 short.sbt && short=$peak
long_trace 400000 long.sbt
check "the memory does not depend on the trace's length: $short and $peak KiB" test "$peak" -lt $((short + 2048))

# ---- the host ----
subutai predict --machine host --json four.sbt
check "the host: what it can be served by" json '[.[0].runs[].sync] == ["glibc", "direct", "switch"] and (.[0].runs | all(.cores == 2 and .machine == "host" and .sched == "linux"))'
first=$out
subutai predict --machine host --json four.sbt
check "the same again" is "$out" "$first"
subutai predict --machine host --cores 1024 --sync glibc --json four.sbt
check "with 1024 cores" json '.[0].runs[0].cores == 1024 and (.[0].runs | length) == 1'
subutai predict --machine host --cores 1 --sync glibc --json four.sbt
check "a single core does all the work, one thread after another" json '.[0].runs[0] | .makespan_ns >= .work_ns'

span() { # CORES [OPTION...]: the time on so many cores under glibc
    subutai predict --machine host --cores "$1" --sync glibc --json "${@:2}" four.sbt
    jq .runs[0].makespan_ns <<<"$out"
}
subutai predict --machine host --cores 48,128 --sync glibc,delegate --servers 2 --json four.sbt
check "sections on servers, on machines of 48 and 128 cores" json '.[0].runs | map("\(.sync) \(.cores)") == ["glibc 48", "delegate 48", "glibc 128", "delegate 128"]'
subutai predict --machine host --cores 1,2 --sync glibc,delegate --json four.sbt
check "a machine of one core has no server, unless one is asked for" json '.[0].runs | map("\(.sync) \(.cores)") == ["glibc 1", "delegate 1", "glibc 2", "delegate 2"]'
refuses "predict: --servers: 1 of 1 cores \(legal: fewer than cores\)" predict --machine host --cores 1,2 --sync delegate --servers 1 four.sbt
refuses "predict: --servers: 2 of 2 cores \(legal: fewer than cores\)" predict --machine host --cores 4,2 --sync delegate --servers 2 four.sbt
refuses "predict: --servers: '0' is not a legal value \(legal: 1 to 1023\)" predict --machine host --sync delegate --servers 0 four.sbt
four=$(span 4)
check "cores share the memory's bandwidth" eval '(($(span 4 --memory-share 100) > four))'
check "unless that is left out" is "$(span 4 --memory-share 100 --without memory)" "$four"
check "which one core has for itself" is "$(span 1 --memory-share 100)" "$(span 1)"
late=$(span 4 --without ahead)
check "cache lines that come only when the work is done" test "$late" -gt "$four"
check "a machine without the ways of cache lines" eval '(($(span 4 --without lines) < late))'
check "and without everything" eval '(($(span 4 --without lines,latency,slices,balance,memory,preempt) < four))'

subutai predict --machine paper,host --cores 2,4 --sync glibc,subutai --sched rr,csa --json four.sbt
check "several machines: each with its own of the lists" json '.[0].runs | map("\(.machine) \(.cores) \(.sync) \(.sched)") ==
    ["paper 2 subutai rr", "paper 2 subutai csa", "paper 4 subutai rr", "paper 4 subutai csa", "host 2 glibc linux", "host 4 glibc linux"]'
many=$out
subutai predict --machine host --cores 2,4 --sync glibc --json four.sbt
check "each as it is alone" is "$(jq -c '.runs | map(del(.speedup))' <<<"$out")" "$(jq -c '.runs | map(select(.machine == "host") | del(.speedup))' <<<"$many")"
subutai predict --machine host,paper --mesh 2x2 --sync glibc,software four.sbt
check "a table in which rows say the machine" matches "$out" \
    '^1 application on 2 machines'$'\n''machine +sync .*'$'\n''host +glibc +linux +2 .*'$'\n''paper +software +rr +4 '
subutai predict --machine host --cores 2,8 four.sbt
cpu=$(jq -r .machine.cpu "$SOURCE_ROOT/sim/reference.costs")
check "a single machine is in the heading" test "${out%%, Linux*}" = "1 application on 2 and 8 cores of $cpu"

# ---- failures of the simulation ----
failed_with() {
    is "$status" 3 && is "$out" "" && matches "$err" "$1"
}
subutai predict --strict-trace --sync subutai stuck.sbt
check "nothing can advance: exit 3" failed_with '^subutai: predict: subutai, rr: 2 threads wait for what does not happen'
check "which thread waits for a thread" matches "$err" 'thread 0 waits for thread 1, which has not ended'
check "which thread waits for a mutex, and its owner" matches "$err" 'thread 1 waits for mutex 7 held by thread 0'
subutai predict --strict-trace --sync software stuck.sbt
check "in software too" failed_with 'thread 1 waits for mutex 7 held by thread 0'
subutai predict --strict-trace --sync software --timeline lines.csv --json stuck.sbt
check "no output" failed_with 'software, rr: 2 threads'
check "and no file half written" is "$(ls lines.csv* 2>/dev/null)" ""
subutai predict --strict-trace no-signal.sbt
check "which thread waits for a signal" failed_with 'thread 1 waits for signal 3 of condition 1, which has not happened'

# ---- what cannot be replayed as it was recorded: a prediction, and one line ----
counted() { # LINE JSON: of the last command, with --json
    is "$status" 0 && matches "$err" "^subutai: predict: $1\$" && json ".[0].runs | all(.makespan_ns > 0 and (.not_as_recorded | $2))"
}
subutai predict --json stuck.sbt
check "a deadlock" counted '2 events \(33\.3 %\) are not replayed as recorded: 2 waits that nothing would end' \
    '.n == 2 and .let_pass == 2 and .share == 0.333333'
subutai predict --json no-signal.sbt
check "a signal that is not in the trace" counted '1 events .*: 1 waits that nothing would end' '.n == 1 and .let_pass == 1'
subutai predict --json no-size.sbt
check "a barrier of unknown size" counted '1 events \(100\.0 %\) .*: 1 calls on unknown objects' '.unknown_objects == 1'
printf '%s\n' '0 init object=0 type=3 size=2' '0 thread_create other=1' '1 barrier_wait object=0' \
    '0 barrier_wait object=0' '0 barrier_wait object=0 work=1000' '0 thread_end' | trace early.sbt
subutai predict --sync software --app 'early.sbt*2' --json
check "events that end before their thread does" counted '2 events \(16\.7 %\) .*: 2 waits that nothing would end' '.n == 2'
check "their threads are in the report" json '.[0].runs[0].applications | all(.n_cut == 1)'
printf '%s\n' '0 thread_join result=3' '0 thread_join took=5000000 work=1000' '0 mutex_unlock object=0' \
    '0 thread_create other=1 result=11' '0 thread_create' '0 thread_end' '0 spin_lock object=1' | trace wrong.sbt
subutai predict --json wrong.sbt
check "joins, creations and unlocks of nothing, events behind an end" counted \
    '4 events \(57\.1 %\) are not replayed as recorded: 1 joins of unknown threads, 1 creations of unknown threads, 1 unlocks without the lock, 1 of threads that never began or had ended' \
    '.unknown_joins == 1 and .unknown_creations == 1 and .without_lock == 1 and .not_replayed == 1'
check "the join lasts as long as it did" json '.[0].runs | all(.makespan_ns > 5000000 and .makespan_ns < 5100000)'
subutai predict wrong.sbt
check "one line, whatever the number of runs" is "$status $(wc -l <<<"$err")" "0 1"
subutai predict --json four.sbt
check "nothing of that: no line, and zeros" is "$status $err $(jq -c '[.runs[].not_as_recorded | add] | unique' <<<"$out")" "0  [0]"

# ---- lists and bounds ----
subutai predict --json --cores 2,16,64 --sync subutai,software --sched rr,csa four.sbt
check "a run for each combination, in their order" json '.[0].runs | map("\(.cores) \(.width)x\(.height) \(.sync) \(.sched)") ==
    [("2 2x1", "16 4x4", "64 8x8") as $chip | ("subutai", "software") as $sync | ("rr", "csa") as $sched | "\($chip) \($sync) \($sched)"]'
check "no run is shorter than its bounds" json '.[0].runs | all(.makespan_ns >= .critical_path_ns and .makespan_ns >= .work_by_cores_ns)'
check "the critical path: 20 rounds of the longest thread; the work by the cores" json '.[0].runs | all(
    .critical_path_ns == 20 * 3800 and .work_by_cores_ns == ((20 * (4 * 2500 + 4000 + 600)) / .cores | ceil) and .speedup > 0)'
check "the speed-up is over the first" json '.[0].runs | .[0].speedup == 1 and (.[4].speedup * .[4].makespan_ns / .[0].makespan_ns | . > 0.99 and . < 1.01)'
many=$out
for cores in 2 16 64; do
    subutai predict --json --cores $cores --sync subutai,software --sched rr,csa four.sbt
    check "$cores cores: as in the list" is "$(jq -c '.runs | map(del(.speedup))' <<<"$out")" \
        "$(jq -c --argjson n $cores '.runs | map(select(.cores == $n) | del(.speedup))' <<<"$many")"
done
subutai predict --cores 2,16,64 four.sbt
check "one table, with the cores and the bounds" matches "$out" \
    '^1 application on 2, 16 and 64 cores'$'\n''sync +sched +cores +time +critical path +work / cores .*'$'\n''software +rr +2 .*'$'\n''subutai +rr +64 +[0-9.]+ us +76\.0 us +4\.6 us '
check "six rows" is "$(wc -l <<<"$out")" 8
subutai predict --cores 4,9 --sync software --timeline many.csv four.sbt
check "a time line says which chip" is "$(tail -n +2 many.csv | cut -d, -f1-3 | uniq | tr '\n' ' ')" "software,rr,4 software,rr,9 "
subutai predict --strict-trace --sync software --cores 3,5 stuck.sbt
check "a failure too" failed_with '^subutai: predict: software, rr, 3 cores: 2 threads wait'
subutai predict --sched oat,rr --cores 4 --app 'four.sbt*3' --json
check "one at a time: the critical paths follow each other" json '.[0].runs | .[0].critical_path_ns == 3 * .[1].critical_path_ns'
refuses "predict: --cores: '' is not a legal value \(legal: 1 to 1024\)" predict --cores 2, four.sbt
refuses "predict: --cores: '0' is not a legal value \(legal: 1 to 1024\)" predict --cores 2,0 four.sbt
refuses "predict: --cores: '16' twice" predict --cores 16,2,16 four.sbt
refuses 'predict: --cores 16: a mesh of 2x1 has 2 cores' predict --cores 2,16 --mesh 2x1 four.sbt
size=$(stat -c %s four.sbt)
for at in $((size / 4)) $((size / 2)) $((size * 3 / 4)); do
    cp four.sbt bent.sbt
    printf '\xff\xff\xff\xff' | dd of=bent.sbt bs=1 seek="$at" conv=notrunc status=none
    subutai predict bent.sbt
    check "damaged at byte $at: refused or failed in a line that names the file, or read" \
        matches "$status $err" '^(0 |[23] subutai: predict: .*bent.sbt: )'
done

# ---- reports ----
subutai predict four.sbt
check "both machines, a line each" matches "$out" $'\n''software +rr .*'$'\n''subutai +rr '
check "the first is the base" matches "$out" 'software +rr +64 +.* 1\.00 '
subutai predict --sync subutai,software --sched rr,csa,oat --cores 16 --app 'four.sbt*3' --unfairness --json
check "six combinations, subutai first" json '.[0].runs | map(.sync + .sched) ==
    ["subutairr", "subutaicsa", "subutaioat", "softwarerr", "softwarecsa", "softwareoat"]'
check "a chip of 4x4" json '.[0].runs | all(.cores == 16 and .width == 4 and .height == 4)'
check "three applications of four threads in each" json '.[0].runs | all(.applications | length == 3 and
    all(.n_threads == 4 and (.threads | length == 4)))'
check "each call is counted" json '.[0].runs | all(.n_calls == 3 * 4 * 60 and ([.calls[] | select(.call != "thread").n] | add) ==
    .n_calls)'
check "the work of the trace is done, no more and no less" json '.[0].runs | all(.work_ns ==
    ([.applications[].threads[].work_ns] | add) and .work_ns == 3 * 20 * (4 * 2500 + 4000 + 600))'
check "critical sections: octaves add up" json '.[0].runs | all(.applications | all(.sections |
    .n == 80 and ([.octaves[].n] | add) == .n and ([.octaves[].sum_ns] | add) == .sum_ns and .sum_ns >= 80 * 500))'
check "one at a time: each begins where another has ended" json '.[0].runs | map(select(.sched == "oat").applications) |
    all(.[0].from_ns == 0 and .[1].from_ns == .[0].to_ns and .[2].from_ns == .[1].to_ns)'
check "otherwise all at once" json '.[0].runs | map(select(.sched != "oat").applications[].from_ns) | all(. == 0)'
check "unfairness" json '.[0].runs | all(.unfairness >= 1) and all(.applications | all(.alone_ns > 0))'
check "the hardware is faster" json '.[0].runs | .[0].makespan_ns < .[3].makespan_ns'
check "and its report is there" json '.[0].runs | .[0].hardware.packets > 0 and .[3].hardware == null'
first=$out
subutai predict --sync subutai,software --sched rr,csa,oat --cores 16 --app 'four.sbt*3' --unfairness --json
check "the same again, bit by bit" is "$out" "$first"
subutai predict --sync subutai --data-load 500 --seed 7 --timeline a.csv four.sbt --json
first=$out
subutai predict --sync subutai --data-load 500 --seed 7 --timeline b.csv four.sbt --json
check "with data traffic, too" is "$out" "$first"
check "time lines are the same" cmp -s a.csv b.csv
subutai predict --sync subutai --data-load 500 --seed 8 four.sbt --json
check "another seed is another run" test "$out" != "$first"
check "packets: control packets first" json '.[0].runs[0] | .hardware.packets as $n | .packets |
    map(.packets) == ["control", "data"] and all(.n == $n and .mean_ns <= .max_ns and .deviation_ns > 0 and .p99_ns <= .max_ns) and
    .[0].mean_ns < .[1].mean_ns and .[0].deviation_ns < .[1].deviation_ns'
first=$out
subutai predict --sync subutai --data-load 500 --seed 8 --qos control four.sbt --json
check "--qos control is the default" is "$out $err" "$first "
subutai predict --sync subutai --data-load 500 --seed 8 --qos none four.sbt --json
check "--qos none is another run" test "$out" != "$first"
check "in which control packets are slower" is "$(jq -s '.[0].runs[0].packets[0].mean_ns > .[1].runs[0].packets[0].mean_ns' \
    <<<"$out$first")" true
subutai predict --sync subutai,software --data-load 500 --qos none four.sbt
check "a table of packets" matches "$out" $'\n''data load 500 permille, no quality of service'$'\n''sync .*deviation.*'$'\n''subutai +rr +64 +control +[0-9]+ .*'$'\n''subutai +rr +64 +data +[0-9]+ '
subutai predict --sync subutai --qos none four.sbt
check "--qos without data load does nothing, and says so" is "$status $err" \
    "0 subutai: predict: --qos does nothing: without data load no packet waits for data"
check "and there is no table of packets" eval '! matches "$out" "data load"'
subutai predict --sync software --qos none --data-load 5 four.sbt
check "nor in software" is "$status $err" "0 subutai: predict: --data-load does nothing: software sends no packets
subutai: predict: --qos does nothing: software sends no packets"
check "software without packets" eval '! matches "$out" "data load"'
idle() { # OPTION WHY [ARG...]
    subutai predict "${@:3}" four.sbt
    check "idle: ${*:3}" is "$status $err" "0 subutai: predict: --$1 does nothing: $2"
}
for option in control-elements=2 queue-elements=9 strict-paper; do
    idle "${option%=*}" "software has no scratchpads" --sync software "--$option"
done
for option in channels transport-cycles controller-cycles check-cycles interface-cycles; do
    idle "$option" "only --sync optical and atac have an optical network" --sync software,subutai "--$option=9"
done
idle check-cycles "the host has no such part" --machine host --check-cycles 9
refuses "predict: --channels: '0' is not a legal value \(legal: 1 to 1024\)" predict --sync atac --channels 0 four.sbt
refuses "predict: --transport-cycles: '1000001' is not a legal value \(legal: 0 to 1000000\)" predict --sync atac --transport-cycles 1000001 four.sbt
subutai predict --sync subutai,atac --cores 4 --json four.sbt
check "atac: each of 4 threads sends a message at each of 20 barriers, and retrieves three" json '.[0].runs | map(.sync) == ["subutai", "atac"] and
    (.[0] | has("optical") | not) and (.[1].optical | .messages == 80 and .retrieved == 240 and .transferred >= 19 * 12 and .transferred <= 240 and .max_lambda_queue == 1 and .without_channel == 0)'
check "and its mutex is the mesh's" json '[.[0].runs[] | .calls[] | select(.call == "unlock") | .median_ns] == [60, 60]'
first=$out
subutai predict --sync subutai,atac --cores 4 --json four.sbt
check "atac: the same input, the same output" is "$out" "$first"
subutai predict --sync atac --cores 4 --json --transport-cycles 105 four.sbt
check "a transport of 100 cycles more costs the barriers that much" json '.[0].runs[0].optical | .delay_ns >= .transferred * 115'
subutai predict --sync atac --cores 4 --json --channels 1 --interface-cycles 0 --check-cycles 0 --controller-cycles 0 --transport-cycles 0 four.sbt
check "a network that costs nothing: a barrier takes no time but its threads'" json '.[0].runs[0] | .makespan_ns < '"$(jq '.runs[0].makespan_ns' <<<"$first")"
subutai predict --json four.sbt
check "atac is not simulated unless it is asked for" json '[.[0].runs[].sync] == ["software", "subutai"]'
idle seed "software sends no packets" --sync software --seed 3
idle seed "there is no data load" --sync software,subutai --seed 3
idle without "the paper's chip has no such part" --without lines
idle memory-share "the paper's chip has no such part" --memory-share 5
idle servers "only --sync delegate has servers" --machine host --servers 2
idle memory-share "--without has memory" --machine host --memory-share 5 --without memory
idle slot-ns "the host has no such part" --machine host --slot-ns 2000000
idle data-load "software sends no packets" --sync software --data-load 3
subutai predict --sync software,subutai --data-load 3 --seed 2 --qos none --control-elements 2 --queue-elements 9 --strict-paper four.sbt
check "not idle with the hardware" is "$status $err" "0 "
subutai predict --sync subutai --data-load 500 --seed 9 four.sbt --json
check "yet another seed is another run" test "$out" != "$first"
mkfifo pipe
ln -s c.csv link.csv
cat pipe >from-pipe.csv &
reader=$!
subutai predict --sync subutai --data-load 500 --seed 7 --timeline pipe four.sbt
wait "$reader"
check "a pipe gets the time lines" cmp -s a.csv from-pipe.csv
check "and stays a pipe" test -p pipe
subutai predict --sync subutai --data-load 500 --seed 7 --timeline link.csv four.sbt
check "a link stays a link" test -L link.csv
check "and its file gets them" cmp -s a.csv c.csv
mkdir folder
ln -s folder/inner.csv outer.csv
ln -s ../a.csv folder/inner.csv
cp a.csv kept.csv
chmod 600 a.csv
subutai predict --strict-trace --sync software --timeline outer.csv stuck.sbt
check "behind links, too, a file stays what it was when the simulation fails" cmp -s a.csv kept.csv
check "and nothing is left beside it" is "$(compgen -G '*.part'; compgen -G 'folder/*.part')" ""
subutai predict --sync subutai --data-load 500 --seed 7 --timeline outer.csv four.sbt
check "and is replaced when it does not" cmp -s a.csv kept.csv
check "links stay, and so do rights" is "$(readlink outer.csv folder/inner.csv | tr '\n' ' ')$(stat -c %a a.csv)" \
    "folder/inner.csv ../a.csv 600"
ln -s loop.csv loop.csv
refuses "predict: --timeline: 'loop.csv': Too many levels" predict --timeline loop.csv four.sbt
echo "what was there" >log
"$SUBUTAI" predict --sync subutai --data-load 500 --seed 7 --timeline /dev/stdout four.sbt >>log
check "standard output is appended to as it is" is "$(head -n 2 log)" "what was there"$'\n'"$(head -n 1 a.csv)"
check "the time line's heading" is "$(head -n 1 a.csv)" sync,sched,cores,application,thread,core,state,from_ns,to_ns,machine
check "a thread's intervals follow each other" is "$(awk -F, 'NR > 1 { k = $1 $2 $4 "," $5
    if (k in to && to[k] != $8) bad++
    if ($9 <= $8) bad++
    to[k] = $9 } END { print bad + 0, length(to) }' a.csv)" "0 4"
subutai predict --calls --cores 1 --app four.sbt,four.sbt four.sbt
check "more threads than cores" is "$status" 0
check "the table of calls" matches "$out" 'subutai +rr +1 +barrier wait +240 '
subutai predict --order recorded --pinned --strict-paper --cores 1024 four.sbt
check "1024 cores" matches "$out" '^1 application on 1024 cores, 32x32'
for chip in '1 1x1' '2 2x1' '34 17x2' '37 7x6' '1009 32x32' '1023 32x32'; do
    subutai predict --cores "${chip% *}" four.sbt
    check "${chip% *} cores" matches "$out" "^1 application on ${chip% *} cores, ${chip#* }"
done
subutai predict --cores 1 --slot-ns 1001 --sched rr,csa,oat --sync subutai --app 'four.sbt*2'
check "a slot of which a nanosecond is left" is "$status" 0
refuses "predict: --slot-ns: '1000' is not a legal value" predict --slot-ns 1000 four.sbt
subutai predict --control-elements 256 --queue-elements 16000 --sync subutai four.sbt
check "the largest scratchpad" is "$status" 0
subutai predict --progress four.sbt
check "no progress for what is over at once" is "$err" ""
finish
