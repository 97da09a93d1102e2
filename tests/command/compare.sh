#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# `subutai compare`: differences are found, equality is not claimed wrongly, the numbers add up.
. "$(dirname "$0")/lib.sh"
compare() {
    subutai compare --library "$STUB" "$@"
}

compare --runs 3 -- echo same
check "equal runs: exit 0" is "$status" 0
check "and it says so" matches "$out" 'outputs and exit status identical in all runs \(exit 0\)'
check "nothing on stderr if that is no terminal" is "$err" ""
compare --runs 2 -- sh -c 'echo $SUBUTAI_ENGINE'
check "another output: exit 1" is "$status" 1
check "and names the engine" matches "$out" 'NOT identical; direct: other output in 3 of 3 runs'
compare --runs 2 -- sh -c 'printf %2000000d 0; echo $SUBUTAI_ENGINE'
check "a difference at the end of a long output" is "$status" 1
compare --runs 2 -- sh -c 'printf x; [ $SUBUTAI_ENGINE = glibc ] || printf x'
check "an output that is a prefix of the other" is "$status" 1
compare --runs 2 -- sh -c 'echo trouble >&2; [ $SUBUTAI_ENGINE = glibc ]'
check "another exit status: exit 1" is "$status" 1
check "and names the engine" matches "$out" 'direct: other exit status in 3 of 3 runs'
check "the failing engine's stderr is shown, once" is "$(grep -c trouble <<<"$err")" 1
compare --runs 2 -- sh -c '[ $SUBUTAI_ENGINE = glibc ] || kill -SEGV $$'
check "death by signal: exit 1" is "$status" 1
check "with the signal's name" matches "$out" SIGSEGV
compare --runs 2 --json -- sh -c 'exit 3'
check "the same failure everywhere is the same" is "$status" 0
check "and its status is reported" json '.[0].points[0].engines | all(.status == "exit 3" and .same_status)'
compare --runs 4 --warmup 0 --json -- sh -c 'echo $$'
check "a program that is not deterministic: exit 1" is "$status" 1
check "the first engine differs from itself" json '.[0].points[0].engines[0].same_output == false'
compare --runs 4 --warmup 0 -- sh -c 'echo $$'
check "and the text says so" matches "$out" "output varies under glibc alone"
# Differs in one run only: the counter makes the 5th run of all special.
compare --runs 3 --warmup 0 -- sh -c 'echo >>count; [ $(wc -l <count) -ne 5 ] || echo odd'
check "one different run among equal ones is found" matches "$out" 'glibc: other output in 1 of 3 runs'

compare --runs 2 --output result -- sh -c 'echo $SUBUTAI_ENGINE >result'
check "--output: another content" is "$status" 1
compare --runs 2 --output result -- sh -c 'echo alike >result'
check "--output: the same content" is "$status" 0
check "the last run's file stays" is "$(cat result)" alike
compare --runs 2 --output result -- sh -c '[ -e result ] && exit 1; echo alike >result'
check "the file is removed before each run" is "$status" 0
compare --runs 2 --output result -- sh -c '[ $SUBUTAI_ENGINE = direct ] || echo alike >result'
check "--output: not written by one engine" is "$status" 1
compare --runs 2 --output never -- true
check "--output: written by none" is "$status" 1
check "is named" matches "$out" 'a file named by --output was not written'
compare --runs 2 --output one --output two -- sh -c 'echo a >one; echo $SUBUTAI_ENGINE >two'
check "--output twice: the second differs" is "$status" 1

compare --runs 2 --engines native,glibc,direct -- sh -c 'echo ${LD_PRELOAD:-none} >>preloads'
check "native runs without a preload" is "$(sort preloads | uniq -c | tr -s ' ' | tr '\n' ';')" \
    " 6 $(realpath "$STUB"); 3 none;"
compare --runs 1 --warmup 0 --engines glibc,direct:spin-ns=0,yields=5,direct --log /x/y --json -- sh -c \
    'echo $SUBUTAI_ENGINE,$SUBUTAI_SPIN_NS,$SUBUTAI_YIELDS,$SUBUTAI_LOG >>settings'
check "settings belong to their engine, common options to all" is "$(tr '\n' ' ' <settings)" \
    "glibc,,,/x/y direct,0,5,/x/y direct,,,/x/y "
check "labels are the user's" json '[.[0].points[0].engines[].engine] ==
    ["glibc", "direct:spin-ns=0,yields=5", "direct"]'
engines=glibc,direct:yields=0,ni:service=inline,scale=0,ni:map=random:7,mesh=4x4,ni,stats=off
compare --runs 1 --warmup 0 --engines $engines --time-scale 5 --json -- sh -c \
    'echo $SUBUTAI_ENGINE,$SUBUTAI_YIELDS,$SUBUTAI_NI_SERVICE,$SUBUTAI_TIME_SCALE,$SUBUTAI_MAP,$SUBUTAI_MESH >>ni'
check "settings by the last part of their names, and common options to the engines that read them" is "$(tr '\n' ' ' <ni)" \
    "glibc,,,,, direct,0,,,, ni,,inline,0,, ni,,,5,random:7,4x4 ni,,,5,, "
check "labels with all settings" json '[.[0].points[0].engines[].engine] ==
    ["glibc", "direct:yields=0", "ni:service=inline,scale=0", "ni:map=random:7,mesh=4x4", "ni,stats=off"]'
compare --runs 1 --warmup 0 --engines $engines -- true
for label in ni:service=inline,scale=0 ni:map=random:7,mesh=4x4; do
    check "label $label in the table" matches "$out" $'\n'"$label  +[0-9]"
done
for pair in ns=SPIN_NS:7 threads=NI_THREADS:7 paper=STRICT_PAPER:1 load=DATA_LOAD:7 file=STATS_FILE:a:b=c \
    stats=STATS:json time-scale=TIME_SCALE:7; do
    value=${pair#*:}
    variable=${pair#*=}
    rm -f ni
    compare --runs 1 --warmup 0 --engines "ni:stats=text,${pair%%=*}=$value" -- sh -c "echo \"\$SUBUTAI_${variable%%:*}\" >>ni"
    check "${pair%%=*} is ${variable%%:*}" is "$(cat ni)" "$value"
done
compare --runs 3 --warmup 2 -- sh -c 'echo $SUBUTAI_ENGINE >>order'
check "runs alternate" is "$(tr '\n' ' ' <order)" "$(printf 'glibc direct %.0s' {1..5})"

cat >count <<'END'
#!/bin/bash
for _ in {1..300}; do # until each of the others has had a core
    all=() n=0
    for stat in /proc/[0-9]*/stat; do # 3: parent, 13: ticks
        read -ra fields <"$stat" && ((fields[3] == PPID && fields[0] != $$)) || continue
        all+=("${fields[0]}")
        n=$((n + (fields[13] > 0)))
    done 2>/dev/null
    ((n < ${#all[@]})) || break
    sleep 0.1
done
echo "$n" >>beside
echo "${all[@]}" >pids
exec sleep "${1:-0}"
END
chmod +x count
for n in 0 3; do
    compare --beside $n --runs 2 --warmup 0 --engines native --json -- ./count
    check "--beside $n: so many compute during each run" is "$(tr '\n' ' ' <beside)" "$n $n "
    check "and the report says so" json ".[0].n_beside == $n"
    # shellcheck disable=SC2046 # a list of numbers
    check "and they end with it" no_process $(<pids)
    rm beside pids
done

"$SUBUTAI" compare --library "$STUB" --beside 2 --runs 1 --warmup 0 --engines native -- ./count 5 >/dev/null 2>&1 &
killed=$!
comes test -s pids
kill -KILL $killed
wait $killed 2>/dev/null
# shellcheck disable=SC2046 # a list of numbers
check "those beside end with a command that is killed" comes no_process $(<pids)
check "there were some" is "$(wc -w <pids)" 2

compare --runs 3 --json -- sh -c 'sleep 0.05'
check "one JSON object" json 'length == 1'
check "as documented" json '.[0] | (.command == ["sh", "-c", "sleep 0.05"]) and .n_runs == 3 and .n_warmups == 1 and
    .identical and (.points | length == 1) and .points[0].threads == null'
check "each run is there" json '.[0].points[0].engines | length == 2 and all(.runs | length == 3)'
check "median, min and max are those of the runs" json '.[0].points[0].engines | all(
    (.runs | map(.wall_ns) | sort) as $w | .wall_ns == {median: $w[1], min: $w[0], max: $w[2]})'
check "the ratio is first median over median" json '.[0].points[0].engines | .[0].wall_ns.median as $base |
    all((.ratio.median - $base / .wall_ns.median) | fabs < 0.001) and .[0].ratio.median == 1'
check "the extremes are those of the pairs" json '.[0].points[0].engines | .[0].runs as $base | all(
    [[$base, .runs] | transpose[] | .[0].wall_ns / .[1].wall_ns] as $pairs |
    (.ratio.min - ($pairs | min) | fabs < 0.001) and (.ratio.max - ($pairs | max) | fabs < 0.001))'
check "a run that sleeps 50 ms takes 50 ms" json '.[0].points[0].engines | all(.wall_ns.min >= 50000000)'
check "and memory" json '.[0].points[0].engines | all(.peak_kib > 100)'
compare --runs 2 --json -- sh -c 'i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done'
check "CPU time is counted and not above the wall clock's of one thread" json '.[0].points[0].engines |
    all(.cpu_ns.min > 1000000 and all(.runs[]; .cpu_ns <= .wall_ns * 1.05 + 20000000))'
compare --runs 2 --json -- sh -c ': $(dd if=/dev/zero bs=20000000 count=1 2>&1 | wc -c)'
check "peak memory is that of the largest child" json '.[0].points[0].engines | all(.peak_kib > 19000)'
compare --runs 1 --json -- printf '\\"\t\x01\xff\n%s' $'\xff"\\\x01\xc3\xa4'
check "odd arguments make valid JSON" json '.[0].command[2] == "\ufffd\"\\\u0001ä"'

compare --runs 1 --warmup 0 -n 2,16 --json -- sh -c 'echo {}-{}' {}
check "-n: a point for each number" json '[.[0].points[].threads] == [2, 16]'
check "the template is reported" json '.[0].command == ["sh", "-c", "echo {}-{}", "{}"]'
compare --runs 1 --warmup 0 -n 2,16 --show-stderr -- sh -c 'echo {}-{}: $0 >&2' {}
check "{} is replaced everywhere" is "$(sort -u <<<"$err" | tr '\n' ' ')" "16-16: 16 2-2: 2 "
compare --runs 1 -n 2,16 --output 'result-{}' -- sh -c 'echo a{} >result-{}'
check "and in --output" is "$status $(cat result-2 result-16 | tr '\n' ' ')" "0 a2 a16 "
compare --runs 1 -n 2,16 -- sh -c '[ {} = 2 ] || echo $SUBUTAI_ENGINE'
check "one different point makes exit 1" is "$status" 1
check "the text names it" matches "$out" $'2 threads: outputs and exit status identical.*16 threads: NOT identical'

: >pids # where a run was over before it had begun
compare --runs 1 --warmup 0 --timeout 0.3 --json -- sh -c 'sleep 100 & echo $! >>pids; wait'
check "a timeout: exit 1" is "$status" 1
check "is reported" json '.[0].points[0].engines | all(.timeouts == 1 and .status == "timeout")'
# What is killed needs a processor for its end.
# shellcheck disable=SC2046 # a list of numbers
check "and leaves no process behind" comes no_process $(cat pids)
compare --runs 1 --warmup 0 --timeout 0.3 --engines native -- sh -c 'trap "" TERM; while :; do sleep 0.1; done'
check "also a program that ignores SIGTERM" matches "$out" 'timed out'

echo "the input" >input
for how in "from the start" "from where it stood"; do
    {
        [[ $how == "from the start" ]] || read -r -n 4 -u 0
        timeout "$(stretched 60)" "$SUBUTAI" compare --library "$STUB" --runs 2 --show-stderr -- sh -c 'cat >&2' 2>.err >.out
    } <input
    status=$? out=$(cat .out) err=$(cat .err)
    wanted="the input"
    [[ $how == "from the start" ]] || wanted="input"
    check "every run reads stdin $how" is "$(sort <.err | uniq -c | tr -s ' ')" " 6 $wanted"
done
mkfifo pipe && exec 9<>pipe
timeout "$(stretched 60)" "$SUBUTAI" compare --library "$STUB" --runs 1 -- cat <&9 >.out 2>.err
status=$? out=$(cat .out) err=$(cat .err)
check "a pipe as stdin is not waited for" is "$status" 0

STUB_SAY=1 compare --runs 2 -- true
check "the library's own lines are passed on, once" is "$err" \
    $'glibc: subutai: stub loaded for glibc\ndirect: subutai: stub loaded for direct'
compare --runs 2 --progress -- true
check "--progress: a line for each run" \
    is "$(grep -cE '^(glibc|direct): (warm-up|run [12] of 2): .*exit 0$' <<<"$err")" 6
run script -qec "$SUBUTAI compare --library $STUB --runs 2 -- true" /dev/null
check "on a terminal progress is one line, overwritten" matches "$out" $'\rdirect: run 2 of 2'

echo 'int main(void) { return 0; }' >plain.c && $CC -static -o static plain.c
compare --runs 1 ./static
check "a program that cannot be served is compared, with a warning" is "$status" 0
check "the warning" matches "$err" 'compare: ./static runs without an engine: statically linked'

# A signal that ends the command ends the run first, and the command dies of it.
"$SUBUTAI" compare --library "$STUB" -- sh -c 'echo $$ >running; exec sleep 100' >/dev/null 2>&1 &
pid=$!
comes test -s running
kill -TERM $pid
wait $pid
status=$? out='' err=''
check "SIGTERM ends the command" is "$status" 143
check "and the program" is "$([ -d "/proc/$(cat running)" ] && echo alive)" ""
finish
