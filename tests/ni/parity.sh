#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The requests of live runs, replayed in the simulator by `subutai replay`: the same answers in the same order, at the
# same times, to the cycle.
. "$(dirname "$0")/lib.sh"

replay() { # [OPTION...]: the log in `requests`
    run "$SUBUTAI" replay "$@" requests
}

# parity TEXT LEAST SERVICE [OPTION...] -- SUBJECT [ARGUMENT...]: at least LEAST grants were compared.
parity() {
    local text=$1 least=$2 service=$3
    shift 3
    rm -f requests
    under "$service" --requests requests "$@"
    passes "$service, $text"
    replay --json
    check "$service, $text: the same answers at the same times" is "$status $err" '0 '
    check "$service, $text: and enough of them" json '[.[].grants] | add >= '"$least"
    check "$service, $text: in each process" json 'all(.differs == false and .difference == "" and .requests > 0)'
}

for service in dedicated inline; do
    parity 'mutexes, alone' 10000 "$service" -- many 4 8 500 alone
    parity 'many threads at one mutex' 1600 "$service" -- contend mutex 24 200
    parity 'conditions, cancelled and timed' 200 "$service" -- contend cond 24 200
    parity 'few elements: held, withdrawn and evicted' 500 "$service" --mesh 2x2 --control-elements 2 \
        --queue-elements 3 -- contend mixed 24 100
    check "$service, few elements: some were held" json '[.[].held] | add > 0'
    parity 'tokens, and the program ends while others wait' 800 "$service" -- contend tokens 24 200
    parity 'with a time scale' 100 "$service" --time-scale 100 -- contend mutex 8 50
    check "$service, with a time scale: the log says so" json 'all(.time_scale == 100)'
    parity 'with a time scale, one core for all' 100 "$service" --time-scale 100 --mesh 1x1 -- contend mutex 8 50
    parity 'with data traffic' 100 "$service" --data-load 300 -- contend mutex 8 50
    parity 'without room: EAGAIN' 100 "$service" --mesh 2x2 --queue-elements 2 --queue-full again -- strict 16 50
    check "$service, without room: some were refused" counted '.[] | .again > 0 and .held == 0'
    parity 'the strict paper' 100 "$service" --mesh 2x2 --queue-elements 2 --strict-paper -- strict 16 50
    check "$service, the strict paper: some were refused" counted '.[] | .again > 0 and .held == 0'

    # A forked child's part begins with what it was forked with: a mutex that is held, and a barrier with arrivals.
    parity 'forked children' 100 "$service" -- forks
    check "$service, forked children: each has its part" json '([.[] | select(.forked)] | length) == 3 and length == 4'
done

# Several NI threads hand requests over to each other, and keep those that are not due.
for n in 2 4; do
    parity "$n NI threads" 1000 dedicated --ni-threads $n -- many 16 64 20
    parity "$n NI threads at one mutex" 1600 dedicated --ni-threads $n --mesh 2x2 -- contend mutex 24 200
    parity "$n NI threads, all at once" 500 dedicated --ni-threads $n --mesh 2x2 --control-elements 2 --queue-elements 3 -- \
        contend mixed 24 100
    parity "$n NI threads, with a time scale" 1000 dedicated --ni-threads $n --time-scale 20 -- many 16 64 4
    parity "$n NI threads, and packets find gaps before others" 1000 dedicated --ni-threads $n --mesh 4x4 --time-scale 20 \
        --data-load 600 --qos none -- many 16 64 4
done

# The latencies are those of the statistics. A barrier's sum has its last thread's, too.
under dedicated --requests requests2 --map linear -- known pair 300
mv requests2 requests
replay --json
check 'latencies: a lock 69 ns, an unlock 60 ns' json '.[0].latencies | map({(.operation): .}) | add
    | .lock.count == 300 and .lock.mean_ns == 69 and .unlock.mean_ns == 60 and .lock.network_wait_ns == 0'
replay
check 'and in text' matches "$out" $'\nthe same in the model\n.*\nlock +300 +69.0 ns +0.0 ns\nunlock +300 +60.0 ns'

# The simulator's own calls take the same. The first lock allocates, which is another 69 ns.
run "$SUBUTAI" record -o pair.sbt -- "$SUBJECTS/ni-known" pair 300
run "$SUBUTAI" predict --sync subutai --calls --json pair.sbt
check 'the same in the simulator: 69 ns and 60 ns' json '.[0].runs[0].calls | map({(.call): .}) | add
    | .["lock, empty"].n == 300 and (.["lock, empty"].mean_ns * 300 - 301 * 69 | fabs) < 30 and .unlock.mean_ns == 60'

# It can fail. refuted WHAT REGEX: such a fault is found, and said.
refuted() {
    run "$MANGLE" "$1" requests
    check "$1: made" is "$status" 0
    replay
    check "$1: different, and the first difference is shown" matches "$status $out" "^1 .*different: NI [0-9]+, record [0-9]+: $2"
}
again() { # OPTION... -- SUBJECT...
    rm -f requests
    under dedicated --requests requests "$@"
}
again --mesh 1x1 -- contend mutex 24 500
refuted swap '(live: .*; model: |.* leaves the live NI at |thread [0-9]+ made a request at [0-9]+, and one )'
echo 9 >file
pair=(--map file:file -- known pair 20)
again "${pair[@]}"
refuted leaves 'grant .* leaves the live NI at [0-9]+, the model.s at '
again "${pair[@]}"
refuted seen 'grant .* is seen at [0-9]+, and in an empty network at '
again "${pair[@]}"
refuted arrives 'unlock .* reaches its NI at [0-9]+, and in an empty network at '
again "${pair[@]}"
refuted at-once 'core 9 hands over a request at [0-9]+, and until [0-9]+ another one'
again "${pair[@]}"
refuted overtakes 'thread 0 made a request at [0-9]+, and one that it made at [0-9]+ was served before'
again --time-scale 10 "${pair[@]}"
refuted hasty 'thread 0 makes a request at [0-9]+, and sees the answer to the one before at '
again "${pair[@]}"
refuted unasked 'the live engine answers: grant 0 of [0-9a-f]+ for thread 0 on core 9; the model does not'
again "${pair[@]}"
refuted unanswered 'the model answers: grant 0 of [0-9a-f]+ for thread 0 on core 9; the live engine does not'

# refused WHAT REGEX: nothing is replayed.
refused() {
    check "$1: one line and status 2" matches "$status $err" "^2 subutai: replay: 'requests': $2"
    check "$1: no more than a line, and nothing else" is "$out$(wc -l <<<"$err")" 1
}
again "${pair[@]}"
run "$MANGLE" record requests
replay
refused 'a record without a meaning' 'damaged: '
again -- forks
run "$MANGLE" state requests
check 'state: made' is "$status" 0
run "$SUBUTAI" replay requests
check 'a state that no NI can have' matches "$status $err" "^2 subutai: replay: 'requests': damaged: no NI can have such a state"
again "${pair[@]}"
cp requests whole
head -c -5 whole >requests
replay
refused 'a file that is cut' 'it ends within a block'
printf x | cat whole - >requests
replay
refused 'a file with something behind' 'not a request log'
: >requests
replay
refused 'an empty file' 'it is empty'
rm requests
replay
refused 'no file' 'No such file or directory'
# Whatever the file says, the replay ends by itself.
for ((i = 0; i < 40; i++)); do
    cp whole requests
    printf '%b' "\\x$(printf %x $((i * 37 % 256)))" | dd of=requests bs=1 seek=$((i * 101 % $(stat -c %s whole))) conv=notrunc 2>/dev/null
    replay
    ((status <= 2)) || break
done
check 'bytes that are wrong: it ends with 0, 1 or 2' test "$status" -le 2

# A file that cannot be written is one line, and no reason for the program to end.
run "$SUBUTAI" run --engine ni --requests /nowhere/x -- "$SUBJECTS/ni-contend" mutex 4 200
check 'no such file: one line, the program goes on' test "$status" = 0 -a \
    "$err" = 'subutai: requests: cannot write /nowhere/x: no more of them are written'
# One block of 4080 bytes fits, and of the second a quarter or nothing.
for kib in 5 4; do
    rm -f requests
    # shellcheck disable=SC2016  # expanded by the inner shell
    run bash -c 'ulimit -f "$0" && exec "$@"' $kib "$SUBUTAI" run --engine ni --requests requests -- \
        "$SUBJECTS/ni-contend" mutex 24 200
    check "a file of $kib KiB at most: one line, the program goes on" matches "$status $err" \
        '^0 subutai: requests: cannot write .*requests: no more of them are written$'
    check "a file of $kib KiB at most: whole blocks" is "$(stat -c %s requests)" 4080
    replay
    check "a file of $kib KiB at most: as much as there is is the same" is "$status" 0
done
finish
