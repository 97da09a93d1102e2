#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Everything that the command refuses: exit status 2 and one line on stderr that says what is legal.
. "$(dirname "$0")/lib.sh"

refuses 'no command given \(legal: run, record, profile, report, trace, schedule, check, hints, predict, sweep, replay, compare, bench, calibrate, doctor, engines'
refuses "unknown command 'fly' \(legal: run, record, profile, report, trace, schedule, check, hints, predict, sweep, replay, compare, bench, calibrate, doctor, engines" fly
refuses "unknown option '--fly' \(legal: " --fly
refuses "unknown command 'fly'" help fly

refuses "run: unknown option '--engin' \(legal: .*--engine, .*--no-children" run --engin direct -- true
refuses "run: unknown option '-x'" run -x -- true
refuses "run: unknown option '--no-engine'" run --no-engine -- true
refuses "run: engine: unknown value 'fast' \(legal: glibc, direct" run --engine fast -- true
refuses "run: engine: unknown value ''" run --engine= -- true
refuses "run: engine: unknown value 'fast' \(legal: glibc, direct" run --engine fast:seed=7 -- true
refuses "run: --engine: seed: not a number: 'x' \(legal: 0 to" run --engine det:seed=x -- true
refuses "run: --engine: unknown setting 'sed' \(legal: verbose, " run --engine det:sed=7 -- true
refuses "run: --engine: 'seed' is not a setting \(legal: OPTION=VALUE\)" run --engine det:seed -- true
refuses "run: --engine: '' is not a setting" run --engine det: -- true
refuses "run: spin-ns: value out of range '1000001' \(legal: 0 to 1000000\)" run --spin-ns 1000001 -- true
refuses "run: yields: not a number: 'many' \(legal: 0 to 100000\)" run --yields=many -- true
refuses "run: verbose: .*'-1' \(legal: 0 to 3\)" run --verbose -1 -- true
refuses "run: children: unknown value 'maybe' \(legal: 0, 1" run --children maybe -- true
refuses 'run: --no-children takes no value' run --no-children=1 -- true
refuses 'run: --engine needs a value' run --engine
refuses "run: delegate: unknown value '' \(legal: none, all, auto, NAME,\.\.\.\)" run --delegate '' -- true
# Of each option of the engine ni: what is next to the legal values.
for mesh in 0x8 8x33 8 8x 4x4x4; do
    refuses "run: mesh: .*'$mesh' \(legal: WxH, each 1 to 32\)" run --mesh $mesh -- true
done
for map in '' rows linear:1 random: random:x file: 18446744073709551616; do
    refuses "run: map: unknown value '$map' \(legal: linear, random, random:SEED, file:PATH\)" run --map "$map" -- true
done
refuses "run: ni-service: unknown value 'both' \(legal: dedicated, inline\)" run --ni-service both -- true
refuses "run: ni-threads: value out of range '65' \(legal: 0 to 64\)" run --ni-threads 65 -- true
refuses "run: time-scale: value out of range '1000001' \(legal: 0 to 1000000\)" run --time-scale 1000001 -- true
refuses "run: time-scale: not a number: '0.5'" run --time-scale 0.5 -- true
refuses "run: control-elements: value out of range '0' \(legal: 1 to 256\)" run --control-elements 0 -- true
refuses "run: control-elements: value out of range '257'" run --control-elements 257 -- true
refuses "run: queue-elements: value out of range '0' \(legal: 1 to 16000\)" run --queue-elements 0 -- true
refuses "run: queue-elements: value out of range '16001'" run --queue-elements 16001 -- true
refuses "run: control-full: unknown value 'hold' \(legal: evict, software\)" run --control-full hold -- true
refuses "run: queue-full: unknown value 'evict' \(legal: hold, again\)" run --queue-full evict -- true
refuses "run: strict-paper: unknown value '2' \(legal: 0, 1" run --strict-paper=2 -- true
refuses 'run: --no-strict-paper takes no value' run --no-strict-paper=1 -- true
refuses "run: data-load: value out of range '901' \(legal: 0 to 900\)" run --data-load 901 -- true
refuses "run: qos: unknown value 'data' \(legal: control, none\)" run --qos data -- true
refuses "run: qos: unknown value '' \(legal: control, none\)" run --qos= -- true
refuses 'run: --qos needs a value' run --qos
refuses "run: stats: unknown value 'xml' \(legal: off, text, json\)" run --stats=xml -- true
refuses "run: stats: unknown value '' \(legal: off, text, json\)" run --stats= -- true
refuses "run: program 'json': not found" run --stats json
refuses 'run: --stats-file needs a value' run --stats-file
for option in stats-file requests log record; do
    refuses "run: $option: unknown value '' \(legal: a file name\)" run --engine ni --$option= -- true
    refuses "run: $option: unknown value '' \(legal: a file name\)" run --engine ni --$option '' -- true
done
refuses "compare: --engines: stats-file: unknown value '' \(legal: a file name\)" compare --engines ni:stats-file= -- true
refuses "run: unknown option '--no-stats' \(legal: .*--stats, --stats-file" run --no-stats -- true
refuses 'run: no program given' run
refuses 'run: no program given' run --engine direct --
refuses "run: program 'no-such-program': not found \(legal: an executable file in PATH" run no-such-program
refuses "run: program './no-such-program': not found \(legal: an executable file\)" run -- ./no-such-program
refuses "run: program '': not found" run ''
refuses "run: program '/': is a directory" run /
echo 'int main(void) { return 0; }' >plain.c
refuses "run: program './plain.c': not executable" run ./plain.c
printf '#!/no/such/interpreter\n' >orphan && chmod +x orphan
refuses "run: program './orphan' cannot be executed: No such file" run --library "$STUB" --verbose 0 ./orphan
refuses "run: --library: '/no/such.so': No such file" run --library /no/such.so -- true
mkdir 'a b' && cp "$STUB" 'a b/stub.so' && cp "$STUB" 'a:b.so'
refuses "run: library '.*a b/stub.so': LD_PRELOAD cannot name it" run --library 'a b/stub.so' -- true
refuses "run: library '.*a:b.so': LD_PRELOAD cannot name it" run --library a:b.so -- true

export SUBUTAI_ENGINE=fast
refuses "run: SUBUTAI_ENGINE: unknown value 'fast' \(legal: glibc, direct" run --library "$STUB" -- true
export SUBUTAI_ENGINE=direct SUBUTAI_ENGIN=direct
refuses 'run: SUBUTAI_ENGIN: unknown variable \(legal: SUBUTAI_ENGINE.*, SUBUTAI_STATS_FILE, SUBUTAI_SEED, SUBUTAI_STALL, SUBUTAI_DEADLOCK, SUBUTAI_SERIAL, SUBUTAI_SCHEDULE, .*, SUBUTAI_SOFT_BARRIERS\)' \
    run --library "$STUB" -- true
unset SUBUTAI_ENGINE SUBUTAI_ENGIN
export SUBUTAI_MESH=8x
refuses "run: SUBUTAI_MESH: not a mesh: '8x' \(legal: WxH, each 1 to 32\)" run --library "$STUB" -- true
unset SUBUTAI_MESH

refuses 'replay: no file given \(legal: subutai replay \[--json\] FILE\)' replay
refuses "replay: unknown option '--swap' \(legal: --json, --help\)" replay --swap log
refuses "replay: unexpected argument 'b' \(legal: one FILE\)" replay a b
refuses "replay: 'nosuch': No such file or directory \(legal: what subutai run --engine ni --requests FILE has written\)" \
    replay nosuch
refuses "replay: '/bin/sh': not a request log \(legal: what subutai run" replay /bin/sh
refuses "replay: '/': .* \(legal: what subutai run" replay /
refuses "compare: unknown option '--engin' \(legal: --engines, .*--engine" compare --engin a -- true
refuses 'compare: --engine chooses nothing here \(legal: --engines LIST\)' compare --engine direct -- true
refuses "compare: --engines: unknown engine 'fast' \(legal: glibc, direct.*native, delegate-combine, delegate-server\)" \
    compare --engines glibc,fast -- true
refuses "compare: --engines: unknown engine '' \(legal" compare --engines glibc, -- true
refuses "compare: --engines: unknown setting 'spin' \(legal: .*spin-ns" compare --engines direct:spin=1 -- true
refuses "compare: --engines: unknown setting 'engine'" compare --engines direct:engine=glibc -- true
refuses "compare: --engines: unknown setting '' \(legal: .*, stats-file, seed, stall, deadlock, serial, schedule, schedule-times, schedule-callers, hints, sfs, sts, soft-barriers\)" compare --engines ni:=1 -- true
refuses "compare: --engines: unknown setting 'time' \(legal: .*time-scale" compare --engines ni:time=1 -- true
refuses "compare: --engines: unknown setting '-scale'" compare --engines ni:-scale=1 -- true
refuses "compare: --engines: unknown setting 'cale'" compare --engines ni:cale=1 -- true
refuses "compare: --engines: setting 'elements' can be more than one option \(legal: control-elements, queue-" \
    compare --engines ni:elements=1 -- true
refuses "compare: --engines: setting 'full' can be more than one option \(legal: control-full, queue-full\)" \
    compare --engines glibc,ni:scale=1,full=evict -- true
refuses "compare: --engines: time-scale: value out of range '1000001' \(legal: 0 to 1000000\)" \
    compare --engines ni:scale=1000001 -- true
refuses "compare: --engines: ni-service: unknown value 'both' \(legal: dedicated, inline\)" \
    compare --engines glibc,ni:mesh=4x4,service=both -- true
refuses "compare: --engines: mesh: not a mesh: '' \(legal: WxH" compare --engines ni:mesh= -- true
refuses "compare: --engines: 'stats' is not a setting \(legal: OPTION=VALUE\)" compare --engines ni:stats -- true
refuses "compare: --engines: unknown engine 'stats' \(legal: glibc, direct, ni, det, native, delegate-combine, delegate-server\)" \
    compare --engines ni:scale=1,stats -- true
refuses "compare: --engines: the setting 'ni=4' has no engine before it" compare --engines ni=4 -- true
refuses "compare: --engines: unknown setting 'ni' \(legal: " compare --engines glibc,ni=4 -- true
refuses 'compare: --engines: spin-ns: value out of range' compare --engines direct:spin-ns=9999999 -- true
refuses "compare: --engines: 'yields' is not a setting \(legal: OPTION=VALUE\)" compare --engines direct:yields -- true
refuses "compare: --engines: the setting 'yields=1' has no engine before it" compare --engines yields=1 -- true
refuses 'compare: --engines: native takes no settings' compare --engines native:yields=1 -- true
refuses 'compare: --engines: more than 16 engines' compare \
    --engines "$(printf 'glibc,%.0s' {1..16})direct" -- true
refuses "compare: --runs: '0' is not a legal value \(legal: 1 to 10000\)" compare --runs 0 -- true
refuses "compare: --runs: '3x' is not" compare --runs 3x -- true
refuses "compare: --runs: ' 3' is not" compare --runs ' 3' -- true
refuses "compare: --runs: '99999999999999999999' is not" compare --runs 99999999999999999999 -- true
refuses "compare: --warmup: '-1' is not" compare --warmup -1 -- true
refuses "compare: --timeout: '0' is not a legal value \(legal: seconds above 0" compare --timeout 0 -- true
refuses "compare: --timeout: 'inf' is not" compare --timeout inf -- true
refuses "compare: --threads: '2,x'|compare: --threads: 'x' is not" compare -n 2,x -- echo '{}'
refuses 'compare: --threads: no \{\} in the arguments' compare -n 2,4 -- true
refuses 'compare: --json takes no value' compare --json=1 -- true
refuses 'compare: no program given' compare --runs 3
refuses "compare: program 'no-such-program': not found" compare no-such-program
refuses "compare: './orphan' cannot be executed" compare --library "$STUB" --verbose 0 --runs 1 ./orphan
refuses "compare: --output: '/dev/null' is no regular file" compare --library "$STUB" --output /dev/null -- true

cat >kinds <<'END'
#!/bin/sh
printf 'barrier\tall wait for all\nrwlock\n'
END
chmod +x kinds
refuses 'bench: no kind given \(legal: barrier, rwlock\)' bench --program ./kinds
refuses "bench: unknown kind 'fly' \(legal: barrier, rwlock\)" bench --program ./kinds fly
refuses "bench: unexpected argument 'rwlock'" bench --program ./kinds barrier rwlock
refuses "bench: --threads: '0' is not a legal value \(legal: 1 to 10000\)" bench --program ./kinds barrier --threads 2,0
refuses "bench: --cs: 'x' is not" bench --program ./kinds barrier --cs x
refuses "bench: --write-percent: '101' is not" bench --program ./kinds rwlock --write-percent 101
refuses 'bench: --locks: barrier has none \(legal: with' bench --program ./kinds barrier --locks mcs
refuses 'bench: --lines: barrier has none \(legal: with' bench --program ./kinds barrier --lines 2
refuses "bench: --lines: '65' is not" bench --program ./kinds barrier --lines 65
refuses "bench: --seconds: '0' is not" bench --program ./kinds barrier --seconds 0
refuses "bench: --engines: unknown engine 'fast'" bench --program ./kinds barrier --engines fast
refuses "bench: --engines: setting 'full' can be more than one option" \
    bench --program ./kinds barrier --engines ni:full=1
refuses "bench: --engines: data-load: value out of range '901'" bench --program ./kinds barrier --engines ni:load=901
refuses "bench: unknown option '--ns'" bench --program ./kinds barrier --ns 1
refuses "bench: program './no-bench': not found" bench --program ./no-bench barrier

refuses 'doctor: no program given' doctor
refuses "doctor: program 'no-such-program': not found" doctor no-such-program
refuses "doctor: program './plain.c': not executable" doctor ./plain.c
refuses "doctor: unexpected argument 'ls'" doctor sh ls
refuses "doctor: unknown option '--engine' \(legal: --json, --help\)" doctor --engine direct sh
refuses "engines: unexpected argument 'glibc'" engines glibc

# Every option that takes a value, as --help names it: an empty value; and unless it is a file, what is no value of any.
n_options=0
for command in run record trace schedule check predict replay compare bench doctor engines; do
    words=()
    [[ $command != @(run|record|compare|check) ]] || words=(-- true)
    [[ $command != bench ]] || words=(--program ./kinds barrier)
    while read -r option metavar; do
        n_options=$((n_options + 1))
        refuses "$command: (--)?$option: .*\(legal: " "$command" "--$option=" "${words[@]}"
        [[ $metavar != @(FILE|LOCKS) ]] || continue
        [[ $option == app ]] || refuses "$command: (--)?$option: .*\(legal: " "$command" "--$option=@" "${words[@]}"
    done < <("$SUBUTAI" "$command" --help | sed -n 's/^  \(-., \)\?--\([a-z-]*\)\(\[=\| \)\([^] ]\+\).*/\2 \4/p')
done
check "--help names options with values" test "$n_options" -gt 100

# Output that cannot be written must not look like success.
timeout "$(stretched 60)" "$SUBUTAI" engines >/dev/full 2>.err
status=$? out='' err=$(cat .err)
check "a full disk under stdout is an error" refused_with 'cannot write to standard output'
finish
