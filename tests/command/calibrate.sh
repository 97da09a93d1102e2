#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# `subutai calibrate`: the file and the table of known samples, what is refused, what stays when it fails or is ended,
# and the real program. The time that anything takes is not judged.
. "$(dirname "$0")/lib.sh"

reference=$SOURCE_ROOT/sim/reference.costs
keys=$(jq -r '["kernel", "core", "memory", "glibc", "direct", "switch"][] as $g | .[$g] | keys_unsorted[] | "\($g) \(.)"' "$reference" | grep -v ' interrupt_ns$')

# A program with known samples, but for interrupts: each part prints its costs, and writes down in which environment it ran.
cat >fake <<'END'
#!/bin/bash
echo "$1 ${SUBUTAI_ENGINE-} ${SUBUTAI_WAIT-} ${SUBUTAI_SPIN_NS-} ${LD_PRELOAD:+preload}" >>calls
list() { # GROUP REGEX
    sed -n "s/^$1 \($2\)$/\1/p" keys | sed 's/.*/"&":[5,1,4,100,2]/' | paste -sd, | sed 's/.*/{&}/'
}
case $1 in
machine) echo '{"machine":{"cpu":"Some \"CPU\"","kernel":"Linux 1","libc":"glibc 2","n_cpus":8,"n_cores":4},
    "caches":{"line_bytes":64,"l1d_bytes":32768,"l2_bytes":0,"l3_bytes":0,"last_level_cpus":2}}' ;;
kernel) list kernel '.*' ;;
turns) echo "{\"tick_ns\":[4]${INTERRUPT_NS:+,\"interrupt_ns\":[$INTERRUPT_NS]}}" ;;
sync) list glibc '.*' ;;
fibers) echo '{"fiber_switch_ns":[7,9]}' ;;
*) list "$1" '.*' ;;
esac
END
chmod +x fake
echo "$keys" >keys
calibrate() {
    rm -f calls
    subutai calibrate --library "$STUB" --program ./fake "$@"
}

SUBUTAI_SPIN_NS=7 calibrate --force -o host.costs
check "exit 0" is "$status" 0
check "nothing on standard error" is "$err" ""
check "the table has medians, extremes and quartiles" matches "$out" \
    $'\n''kernel.call_ns +4.00 +1.00 +2.00 +5.00 +100.00 +5 +a system call'
check "and says what the machine is" matches "$out" '^Some "CPU", 8 CPUs on 4 cores, Linux 1, glibc 2'
out=$(cat host.costs)
check "the file: its form and version" json '.[0] | .format == "subutai host costs" and .version == 1'
check "the machine" json '.[0].machine == {"cpu": "Some \"CPU\"", "kernel": "Linux 1", "libc": "glibc 2", "n_cpus": 8, "n_cores": 4}'
check "caches are plain numbers" json '.[0].caches == {"line_bytes": 64, "l1d_bytes": 32768, "l2_bytes": 0, "l3_bytes": 0, "last_level_cpus": 2}'
check "a cost has its spread" json '.[0].memory.latency_ns == {"median": 4, "min": 1, "q1": 2, "q3": 5, "max": 100, "n": 5}'
check "two parts can have samples of one cost" json '.[0].kernel.tick_ns.n == 6'
check "calls are measured in two rounds" json '.[0].glibc.mutex_ns.n == 10 and .[0].switch.join_ns.n == 10 and
    .[0].switch.fiber_switch_ns == {"median": 8, "min": 7, "q1": 7.5, "q3": 8.5, "max": 9, "n": 2}'
check "when, by what and how it was measured" json '.[0].measured | keys_unsorted == ["by", "at", "seconds", "forced",
    "busy_share", "stolen_share"] and (.by | test("^subutai [0-9]")) and (.at | fromdate > 1700000000)'
check "the same keys as the reference machine's" is \
    "$(jq -c 'del(.measured) | [paths | select(length < 3)]' host.costs)" "$(jq -c 'del(.measured, .kernel.interrupt_ns) | [paths | select(length < 3)]' "$reference")"
check "a cost on each line" test "$(wc -l <host.costs)" -gt "$(wc -l <keys)"
check "each engine's runs, in turn, without the user's settings" is "$(tr '\n' ';' <calls)" \
    "machine    ;kernel    ;turns    ;core    ;memory    ;$(printf '%s' \
        'sync    ;sync direct   preload;sync direct switch  preload;fibers direct switch  preload;' \
        'sync    ;sync direct   preload;sync direct switch  preload;')"
check "nothing else is left" is "$(ls)" $'calls\nfake\nhost.costs\nkeys'
calibrate --force --json
check "a cost without samples that not every kernel has is not there" json '.[0].kernel | has("interrupt_ns") | not'
INTERRUPT_NS=9 calibrate --force --json
check "with samples it is" json '.[0].kernel.interrupt_ns.median == 9'
calibrate --force --json
check "--json prints the file" json 'length == 1 and .[0].version == 1 and .[0].kernel.call_ns.median == 4'

refuses "calibrate: unexpected argument 'host.costs' \(legal: options\)" calibrate host.costs
refuses "calibrate: unknown option '--runs' \(legal: --out, --json, --seconds, --force, --program, --library, --help\)" calibrate --runs 3
refuses "calibrate: --seconds: .*'0'" calibrate --seconds 0
refuses "calibrate: --seconds: illegal value '0.5' \(legal: 1 to 25\)" calibrate --seconds 0.5
refuses "calibrate: --seconds: .*'26'" calibrate --seconds 26
refuses "calibrate: program './none': not found" calibrate --program ./none
refuses "calibrate: --library: './none': No such file" calibrate --library ./none
refuses "calibrate: --out: '/no/such/place/host.costs': No such file or directory \(legal: a file that can be written\)" \
    calibrate --program ./fake -o /no/such/place/host.costs
refuses "calibrate: --out: '$PWD': " calibrate --program ./fake -o "$PWD"
calibrate --force -o /dev/full
check "a full disk: exit 2" is "$status" 2
check "is said" is "$err" "subutai: calibrate: --out: '/dev/full': No space left on device"
timeout "$(stretched 60)" "$SUBUTAI" calibrate --force --library "$STUB" --program ./fake >/dev/full 2>.err
check "a table that cannot be written: exit 2" is "$? $(cat .err)" "2 subutai: cannot write to standard output"

# What a failed measurement leaves: the old file.
cp host.costs old
fails() { # TEXT STATUS REGEX: ./bad fails that way
    subutai calibrate --force --library "$STUB" --program ./bad -o host.costs
    check "$1: exit $2" is "$status" "$2"
    check "$1: one line that says so" is "$(wc -l <"$scratch/.err")" 1
    check "$1: which" matches "$err" "^subutai: calibrate: $3"
    check "$1: the file stays as it was" cmp host.costs old
    check "$1: nothing else is left" is "$(ls)" $'bad\ncalls\nfake\nhost.costs\nkeys\nold'
}
bad() { # WHAT-PART SHELL-TEXT: as fake, but for that part
    printf '#!/bin/bash\nif [ "$1" = %s ]; then\n%s\nelse exec ./fake "$@"; fi\n' "$1" "$2" >bad
    chmod +x bad
}
bad memory 'echo "no memory" >&2; echo more >&2; exit 1'
fails "a part that fails" 1 'memory: exit 1: no memory$'
bad machine 'echo "one CPU" >&2; exit 2'
fails "a machine that cannot be measured" 2 'machine: exit 2: one CPU$'
bad sync '[ -n "${SUBUTAI_WAIT-}" ] || exec ./fake "$@"; kill -SEGV $$'
fails "a part that dies under an engine" 1 'sync of switch: SIGSEGV'
bad core 'echo "{\"atomic_ns\":[1"'
fails "output that is cut" 1 "core: no result in '"
bad core 'echo "{\"atomic_ns\":[1,2]}"'
fails "a cost without samples" 1 "there is no sample of 'core.line_transfer_ns'"
bad kernel './fake "$@" | jq "del(.wake_remote_ns)"'
fails "a cost without samples that older files may lack" 1 "there is no sample of 'kernel.wake_remote_ns'"
bad core 'echo "{\"atom_ns\":[1,2]}"'
fails "an unknown cost" 1 "core: no sample of a cost: 'atom_ns'"
bad core 'echo "{\"atomic_ns\":[1,null]}"'
fails "a sample that is no number" 1 "core: no sample of a cost: 'atomic_ns'"
bad core 'echo "{\"atomic_ns\":[1,-2,3],\"line_transfer_ns\":[1]}"'
fails "a sample that makes no sense" 2 "what was measured makes no sense: 'core.atomic_ns.min' is -2 \(legal: "

# The signals that end it.
bad memory 'echo $$ >running; sleep 100'
for signal in INT TERM HUP; do
    rm -f running
    "$SUBUTAI" calibrate --force --library "$STUB" --program ./bad -o host.costs >.out 2>.err &
    pid=$!
    started+=("$pid")
    comes test -s running
    parts=$(ls host.costs.*)
    kill -"$signal" "$pid"
    wait "$pid"
    status=$?
    unset 'started[-1]'
    check "SIG$signal ends it" is "$status" $((128 + $(kill -l "$signal")))
    check "SIG$signal: it had begun a file" matches "$parts" "host.costs.$pid.part"
    check "SIG$signal: which is gone, and the old one is there" is "$(ls; cmp host.costs old)" \
        $'bad\ncalls\nfake\nhost.costs\nkeys\nold\nrunning'
    check "SIG$signal: the part has ended too" eval '! kill -0 "$(cat running)" 2>/dev/null'
done

# A busy machine: a process for each CPU that computes.
hogs=()
for ((i = 0; i < $(nproc); i++)); do
    (while :; do :; done) &
    hogs+=($!)
done
calibrate -o busy.costs
check "a busy machine is refused" refused_with \
    'calibrate: the machine is busy: other processes use [0-9.]+ % .*, the hypervisor takes .* \(legal: at most 5 and 2 %; --force measures all the same\)'
check "and leaves no file" is "$(ls busy.costs* 2>/dev/null)" ""
check "it was not measured" is "$(cat calls)" "machine    "
calibrate --force --json
check "--force measures it" is "$status" 0
check "and the file says so" json '.[0].measured.forced'
calibrate --force
check "so does the table" matches "$out" 'measured by force, do not trust the numbers'
kill "${hogs[@]}"
wait "${hogs[@]}" 2>/dev/null

# The real program, on a machine that may be busy with other tests. On one that is so all the time it may find costs that
# make no sense, as a sleep that costs less than nothing: it has measured a switch to another process, or none at all. That
# it does not succeed then is tried a few times, and is no failure if it would have refused to begin. What else it says is
# one on any machine.
no_wonder='makes no sense|does not switch to another thread|no thread sleeps|do not sleep in turn'
really() {
    for _ in 1 2 3; do
        subutai calibrate --force --seconds 1 -o real.costs
        ((status != 0)) || return 0
        note "$err"
        [[ $err =~ $no_wonder ]] || return 0
    done
    local failed=$err
    subutai calibrate -o unforced.costs
    [[ $err != *"the machine is busy"* ]] && status=1 err=$failed
}
if [ "$(nproc)" -lt 2 ]; then
    skip "the real program" "it needs two CPUs"
elif really; then
    check "the real program: exit 0" is "$status" 0
    out=$(cat real.costs)
    optional='.kernel.interrupt_ns, .kernel.idle_entry_ns, .kernel.wake_soon_ns, .kernel.latency_soon_ns, .kernel.wake_short_ns, .kernel.latency_short_ns, .core.line_after_work_ns'
    check "its file has what the reference machine's has, but for what not each machine has" is \
        "$(jq -c "del(.measured, $optional) | [paths | select(length < 3)]" real.costs)" "$(jq -c "del(.measured, $optional) | [paths | select(length < 3)]" "$reference")"
    check "each cost has five samples or more, in order" json '.[0] | [.. | objects | select(has("median"))] | length > 40 and
        all(.[]; .n >= 5 and .min <= .q1 and .q1 <= .median and .median <= .q3 and .q3 <= .max) or . == []'
    check "long pauses are measured among the short ones, not after them" json \
        '.[0].kernel | .latency_idle_ns.n <= 2 * .latency_deep_ns.n'
    check "the number of CPUs" json ".[0].machine.n_cpus == $(nproc)"
    run taskset -c "$(allowed_cpu)" "$SUBUTAI" calibrate --force
    check "one CPU is refused" refused_with 'calibrate: machine: exit 2: .*may use one CPU, and two are needed'
else
    skip "the real program" "the machine is too busy for it"
fi
finish
