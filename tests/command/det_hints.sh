#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Hints of the engine det, from a file and of the program's own: the same schedule and output in each run, threads that
# end, are cancelled, handle signals and fork meanwhile, what is said of hints, and what is refused.
. "$(dirname "$0")/lib.sh"
: "${HINTED:?}"
here=$(dirname "$HINTED")

cat >app.hints <<EOF
subutai-hints 1
# threads that compute for long
give-up-turn lock_and_compute (${HINTED##*/}) 300
soft-barrier meet (${HINTED##*/}) 4 200  # each call in it
EOF

# runs N WHAT: N runs with $options; $out has the distinct lines "STATUS OUTPUT, SCHEDULE".
options=()
runs() {
    for ((i = 0; i < $1; i++)); do
        rm -f said
        within 30 "$SUBUTAI" run --engine det --verbose 2 --log said "${options[@]}" -- "$HINTED" "$2"
        echo "$status $out, $(sed -n 's/.*: schedule //p' said)"
    done >seen
    out=$(sort -u seen)
}
# has_line REGEX: a line of $out.
has_line() {
    grep -qE "$1" <<<"$out"
}
one_inside() {
    is "$(wc -l <<<"$out")" 1 && matches "$out" '^0 [0-9a-f]{16}, [0-9a-f]{16}, [0-9]+ operations, 0 returns from outside$'
}

declare -A alone
for what in pipeline alike lone; do
    runs 10 $what
    check "$what: one schedule and one output" one_inside
    alone[$what]=$out
done
hints_for() { # a file's hints for `sites`; the others have their own
    options=()
    [[ $1 != sites ]] || options=(--hints app.hints)
}
hints_for sites
runs 10 sites
check "hints of a file: one schedule and one output" one_inside
alone[sites]=$out
check "they were used" matches "$(cat said)" 'the turn was given up 240 times, 96 waits at soft barriers, 0 times outside'
begin_load 2
for what in pipeline alike lone sites; do
    hints_for $what
    runs 100 $what
    check "$what: the same in 100 runs beside two computing processes" is "$out" "${alone[$what]}"
done
end_load
for what in pipeline alike lone sites; do
    hints_for $what
    options+=(--wait switch)
    runs 10 $what
    check "$what: the same when passing the turn is a switch" is "$out" "${alone[$what]}"
    hints_for $what
    options+=(--no-sts)
    runs 10 $what
    check "$what: the same without single-threaded sections" is "$out" "${alone[$what]}"
    for seed in 3 7 11; do
        hints_for $what
        options+=(--seed "$seed")
        runs 10 $what
        check "$what: one schedule with seed $seed" one_inside
        check "and another one than without" test "$out" != "${alone[$what]}"
        seeded=$out
        options+=(--sts off)
        runs 3 $what
        check "and the same without single-threaded sections" is "$out" "$seeded"
    done
done
options=(--hints app.hints)
runs 5 sites
hinted=$out
options+=(--sfs off)
runs 5 sites
without_sfs=$out
check "without synchronization-free sections: one other schedule" one_inside
check "it is another one" test "$out" != "$hinted"
options+=(--no-soft-barriers)
runs 5 sites
check "without soft barriers too: one other schedule" one_inside
check "it is another one" test "$out" != "$without_sfs"
without_all=$out
options=()
runs 5 sites
check "it is that without hints" is "$out" "$without_all"


# The turn is kept: the thread that has locked in lock_often unlocks before another one makes an operation.
app=${HINTED##*/}
printf '%s\n' 'subutai-hints 1' "keep-turn lock_often ($app) 1" "keep-turn try_until_had ($app)" "keep-turn try_here_and_there ($app) 1" \
    "keep-turn try_elsewhere ($app) 100" >keep.hints
options=(--hints keep.hints)
runs 10 sites
check "a turn that is kept: one schedule and one output" one_inside
check "it is another one" test "$out" != "$without_all"
check "it is kept" matches "$(cat said)" ', 600 turns kept'
kept=$out
for more in "--wait switch" "--no-sts" "--serial" "--no-sfs --no-soft-barriers"; do
    # shellcheck disable=SC2206 # words
    options=(--hints keep.hints $more)
    runs 10 sites
    check "the same with $more" is "$out" "$kept"
done
begin_load 2
options=(--hints keep.hints)
runs 30 sites
check "the same beside two computing processes" is "$out" "$kept"
end_load
rm -f log
run "$SUBUTAI" run --engine det --hints keep.hints --schedule log -- "$HINTED" sites
run "$SUBUTAI" schedule dump log
# Its unlock is a jump, and so at_sites' call. Before it comes the lock, or the end of the wait for that.
kept_unlocks() {
    awk '/mutex_unlock .*(at_sites|lock_often)/ { all++; n += $4 == thread } { thread = $4 } END { print n, all }'
}
check "no other operation comes in between" is "$(kept_unlocks <<<"$out")" "600 600"
for waits in adaptive switch; do
    within 30 "$SUBUTAI" run --engine det --wait $waits --hints keep.hints -- "$HINTED" tries
    check "it is kept so many times in a row at most, $waits" is "$status $out" "0 done"
    within 30 "$SUBUTAI" run --engine det --wait $waits --hints keep.hints -- "$HINTED" tries-twice
    check "also at two sites that differ in how often, $waits" is "$status $out" "0 done"
done

# A section that gives up the order keeps no turn in it; each round has an operation outside of sections, the soft barriers' none.
printf '%s\n' 'subutai-hints 1' "keep-turn count_up ($app)" >pcs.hints
run "$SUBUTAI" run --engine det --verbose 2 --hints pcs.hints -- "$HINTED" pcs
check "in a performance-critical section no turn is kept" matches "$err" ', 0 turns kept'

for what in pipeline sites pcs; do
    hints_for $what
    options+=(--serial)
    runs 10 $what
    check "$what: serially, one schedule, and no thread computes without the turn" one_inside
    check "so none gives the turn up or leaves the order" matches "$(cat said)" 'given up 0 times, .* 0 times outside the order'
done

# Edges. Where a call returns from outside the schedule may be another one in each run.
for waits in adaptive switch; do
    options=(--wait "$waits")
    runs 10 pcs
    check "critical sections, $waits: every operation inside is from outside" matches "$out" \
        '^0 0{16}, [0-9a-f]{16}, 2176 operations, 1920 returns from outside'
    runs 5 cancelled
    # pthread_testcancel is no operation: after how many more of them a thread ends is not in the order.
    check "cancelled at a soft barrier, $waits" matches "$out" '^0 2 [0-9a-f]{16}, [0-9a-f]{16}, [0-9]+ operations, 0 returns'
    check "always with the same output" is "$(cut -d, -f1 seen | sort -u | wc -l)" 1
    for ((n = 0; n < 10; n++)); do
        within 30 "$SUBUTAI" run --engine det --wait $waits -- "$HINTED" ends
        echo "$status $out $err"
        within 30 "$SUBUTAI" run --engine det --wait $waits -- "$HINTED" handlers
        echo "$status $out $err"
        within 30 "$SUBUTAI" run --engine det --wait $waits -- "$HINTED" forks
        echo "$status $(sort <<<"$out" | uniq -c | tr -s ' \n' ' ')$err"
    done | sort -u >edges
    out=$(cat edges)
    check "threads end at a soft barrier, in a section; handlers; forks, $waits: always the same" is "$(wc -l <edges)" 3
    check "three threads have ended" has_line '^0 3 $'
    check "handlers have run" has_line '^0 1 $'
    check "ten children, five of each kind" has_line '^0  1 10 5 [0-9a-f]{16} 5 [0-9a-f]{16} $'
done
for options in "" "--stall release" "--serial"; do
    # shellcheck disable=SC2086 # words
    within 20 "$SUBUTAI" run --engine det $options -- "$HINTED" stdio
    check "a call that the library does not see does not keep a thread at a soft barrier $options" is "$status $out" "0 done"
done
for options in "" "--wait switch"; do
    # shellcheck disable=SC2086 # words
    within 20 "$SUBUTAI" run --engine det --stall release $options -- "$HINTED" stall
    check "nor does a loop on a plain variable that goes on outside $options" is "$status $out" "0 done"
done
for what in pipeline alike lone; do
    run "$HINTED" $what
    check "$what: without the library hints do nothing" is "$status $err" "0 "
done
run "$HINTED" bad
check "nor do they refuse" is "$status $out" "0 1 1 0"
for engine in det direct glibc; do
    run "$SUBUTAI" run --engine $engine -- "$HINTED" bad
    check "bad numbers, $engine" is "$status $out" "0 1 1 0"
done
cat >forward.c <<'EOF'
#include <subutai/det.h>
#include <stdio.h>
int main(void) {
    subutai_soft_barrier_t b = SUBUTAI_SOFT_BARRIER_INITIALIZER(2, 5);
    subutai_pcs_begin();
    subutai_pcs_end();
    printf("%d %d\n", subutai_det_pcs != 0, subutai_give_up_turn(1, 2) + subutai_soft_barrier_wait(&b));
    return 0;
}
EOF
for how in "-fPIE -pie" "-no-pie -fno-pie" "-x c++ -fPIE -pie"; do
    # shellcheck disable=SC2086 # words
    run $CC $how -Wall -Wextra -Werror -I "$SOURCE_ROOT/libsubutai/abi" forward.c -o forward
    check "the header compiles: $how" is "$status $err" "0 "
    run "$SUBUTAI" run --engine det -- ./forward
    check "and finds the library" is "$status $out" "0 1 0"
    run ./forward
    check "and does without" is "$status $out" "0 0 0"
done

# What is said.
rm -f log
run "$SUBUTAI" run --engine det --hints app.hints --schedule log --schedule-times 1 -- "$HINTED" sites
run "$SUBUTAI" schedule info log
check "info says which file and what was on" has_line '^hints [0-9a-f]{16}, 2 in the file; sfs on, sts on, soft barriers on$'
check "and how often" has_line '^line 3: the turn was given up 240 times, for [0-9.]+ turns each'
check "and the same schedule with times as without" has_line "^schedule $(cut -d' ' -f3 <<<"$hinted" | tr -d ,), "
run "$SUBUTAI" schedule info --json log
check "the same as JSON" json '.[0].hints.sts and .[0].hints.number == 2 and .[0].sections[0].number == 240'
run "$SUBUTAI" schedule dump --json log
check "times: each operation has one, and waits are not longer than the run" json \
    '[.[] | select(.kind == "operation")] | all(.real_ns >= 0 and .waited_ns < 60000000000)'
run "$SUBUTAI" schedule dump log
check "dump says for how long" has_line 'thread [0-9]+ gives the turn up for [0-9]+ turns? \(line 3\)$'
run "$SUBUTAI" check --runs 10 --seeds 3 --hints app.hints -- "$HINTED" sites
check "check takes hints" matches "$out" '^4 orders, 10 runs of each: 4 schedules, [1-4] outputs?; 0 orders failed, 0 with another output, 0 with'
printf '%s\n' 'subutai-hints 1' "pcs lock_often (${HINTED##*/})" 'give-up-turn nowhere (other)' >own.hints
run env LD_PRELOAD="$BUILD_ROOT/libsubutai/libsubutai.so" SUBUTAI_ENGINE=det SUBUTAI_HINTS=own.hints SUBUTAI_VERBOSE=2 "$HINTED" sites
check "by a variable, without the command; a module that is not there is no error" is "$status" 0
check "operations at a call site leave the order" matches "$err" ' [1-9][0-9]* times outside the order'
check "a hint that was not used is told of" matches "$err" 'own.hints:3: no operation was made there$'
run "$SUBUTAI" run --engine det --hints app.hints --verbose 2 -- sh -c "cd /; exec '$HINTED' sites"
check "a hint for a program that the program starts has to name its path" matches "$err" 'legal modules: .*sh.*; or the path of a file'
sed "s|(${HINTED##*/})|($HINTED)|" app.hints >path.hints
run "$SUBUTAI" run --engine det --hints path.hints --verbose 2 -- sh -c "cd /; exec '$HINTED' sites"
check "and is used from wherever that runs" matches "$err" 'the turn was given up 240 times, 96 waits'

# Budgets grow until another thread has done what the section weighs.
turns_with() {
    printf 'subutai-hints 1\ngive-up-turn lock_and_compute (%s) %s\nweight lock_often (%s) %s\n' "${HINTED##*/}" "$1" "${HINTED##*/}" "$2" >weight.hints
    rm -f log
    "$SUBUTAI" run --engine det --hints weight.hints --schedule log -- "$HINTED" sites >/dev/null
    "$SUBUTAI" schedule info --json log | jq '.sections[0].turns'
}
least=$(turns_with '1 1000' 1)
check "budgets are never smaller than the hint says: $least turns in 240 sections" test "$least" -ge 240000
light=$(turns_with 1 1) middle=$(turns_with 3 1) heavy=$(turns_with 100 1) against=$(turns_with 20 20)
check "the heavier a section, the larger its budgets: $light, $middle, $heavy turns" test "$light" -lt "$middle" -a "$middle" -lt "$heavy"
check "and the smaller, the heavier what others do: $against turns" test "$against" -lt "$heavy"
sed 's/.*/give-up-turn & ('"${HINTED##*/}) 1000/" >>weight.hints < <(printf '%s\n' lock_often meet)
sed -i '/^weight/d' weight.hints
rm -f log
run "$SUBUTAI" run --engine det --hints weight.hints --schedule log -- "$HINTED" sites
run "$SUBUTAI" schedule info --json log
check "where all threads give the turn up, sections are over early, and budgets stay small" json \
    '.[0].sections | length == 3 and (map(.turns) | add) < 6000'

# What is refused, before anything is run.
refused_file() {
    printf '%s\n' "${@:2}" >bad.hints
    refuses "hints: bad\.hints:$1" run --engine det --hints bad.hints -- "$HINTED" sites
    run env LD_PRELOAD="$BUILD_ROOT/libsubutai/libsubutai.so" SUBUTAI_ENGINE=det SUBUTAI_HINTS=bad.hints "$HINTED" sites
}
same_by_variable() {
    refused_file "$@"
    check "and by the library" is "$status $(wc -l <<<"$err") $out" "2 1 "
}
app=${HINTED##*/}
same_by_variable "1: not a hint file.*legal: subutai-hints 1 as the first line" 'give-up-turn a+0x1'
same_by_variable "1: not a hint file" 'subutai-hints 2'
same_by_variable "3: unknown kind of hint 'give-up' \(legal: give-up-turn, keep-turn, soft-barrier, pcs, weight\)$" 'subutai-hints 1' '' \
    "give-up meet ($app)"
same_by_variable "2: not a call site: '' \(legal: MODULE\+0xOFFSET, which subutai schedule dump --json has as site; SYMBOL" 'subutai-hints 1' \
    'give-up-turn'
same_by_variable "2: not a call site: 'a.c:5 meet \($app\)' " 'subutai-hints 1' "pcs a.c:5 meet ($app)"
same_by_variable "2: not a call site: 'meet' " 'subutai-hints 1' 'give-up-turn meet'
same_by_variable "2: not a call site: 'meet\+0x0 " 'subutai-hints 1' "give-up-turn meet+0x0 ($app)"
same_by_variable "2: not a call site: 'meet\+0xzz " 'subutai-hints 1' "give-up-turn meet+0xzz ($app)"
same_by_variable "2: not a call site: '.\"meet" 'subutai-hints 1' "give-up-turn ?\"meet ($app"
same_by_variable "2: not a weight: '0' \(legal: 1 to 1000000\)" 'subutai-hints 1' "give-up-turn meet ($app) 0"
same_by_variable "2: not a number of threads: '1' \(legal: 2 to 16384\)" 'subutai-hints 1' "soft-barrier meet ($app) 1"
same_by_variable "2: not a number of turns: '1000001' " 'subutai-hints 1' "soft-barrier meet ($app) 2 1000001"
same_by_variable "2: unexpected words 'more' \(legal: " 'subutai-hints 1' "pcs meet ($app) more"
same_by_variable "4: a second hint for call site 'meet \($app\)': line 2 has one \(legal: one weight, and one of the other kinds\)$" \
    'subutai-hints 1' "give-up-turn meet ($app) 5" "weight meet ($app) 5" "give-up-turn meet ($app)"
refused_file "2: call site 'meet \(other\)' is not in the program \(legal modules: $app, .*libc" 'subutai-hints 1' 'pcs meet (other)'
refused_file "2: call site 'mete \($app\)' is not in the program: '$HINTED' has no code there \(legal: " 'subutai-hints 1' \
    "pcs mete ($app)"
refused_file "2: call site 'meet\+0x5000 .*' is not in the program" 'subutai-hints 1' "pcs meet+0x5000 ($app)"
refused_file "2: call site '$app\+0x7fffffff' is not in the program" 'subutai-hints 1' "pcs $app+0x7fffffff"
refused_file "2: call site '$here/none\+0x5' is not in the program" 'subutai-hints 1' "pcs $here/none+0x5"
cat >mangled.c <<'END'
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
void push(void) __asm__("_ZN3app4pushEi");
void push(void) {
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
}
#define EMPTY(name, linked) \
    void name(void) __asm__(linked); \
    void name(void) { \
        __asm__ volatile("" ::"r"(&m)); \
    }
EMPTY(pop_of_int, "_ZN3app3popEi") /* one before the other in the file, and the other way */
EMPTY(pop_of_ints, "_ZN3app3popEii")
EMPTY(put_of_ints, "_ZN3app3putEii")
EMPTY(put_of_int, "_ZN3app3putEi")
int main(void) {
    push();
    return 0;
}
END
$CC -O1 -pthread mangled.c -o mangled
printf 'subutai-hints 1\nkeep-turn %s\n' '_ZN3app4pushEi (mangled)' >linked.hints
run "$SUBUTAI" run --engine det --verbose 2 --hints linked.hints -- ./mangled
check "the linker's name of a function of C++" matches "$err" ', 2 turns kept'
for what in '' '+0x9'; do
    printf 'subutai-hints 1\nkeep-turn %s\n' "app::push$what (mangled)" >source.hints
    if [[ $DEMANGLES == true ]]; then
        refuses "hints: source.hints:2: call site 'app::push.* \(mangled\)' has a name of the source \(legal: the linker's, _ZN3app4pushEi; or MODULE" \
            run --engine det --hints source.hints -- ./mangled
    else
        skip "a name of the source" "no libiberty at the build"
    fi
done
for what in pop put; do
    printf 'subutai-hints 1\nkeep-turn %s\n' "app::$what (mangled)" >source.hints
    run "$SUBUTAI" run --engine det --hints source.hints -- ./mangled
    if [[ $DEMANGLES == true ]]; then
        check "$what: both of the linker's names" is "$(grep -o "_ZN3app3${what}Eii*" <<<"$err" | sort | paste -sd' ')" \
            "_ZN3app3${what}Ei _ZN3app3${what}Eii"
    else
        skip "$what: both of the linker's names" "no libiberty at the build"
    fi
done
refuses "hints: 'none': No such file" run --engine det --hints none -- "$HINTED" sites
refuses "hints: '/': Is a directory" check --hints / -- "$HINTED" sites
head -c 1100000 /dev/zero >large.hints
refuses 'too large \(legal: a mebibyte\)' run --engine det --hints large.hints -- "$HINTED" sites
head -c 5000 /dev/urandom >random.hints
refuses 'hints: random\.hints:1: not a hint file' run --engine det --hints random.hints -- "$HINTED" sites
{ echo 'subutai-hints 1'; for ((i = 0; i < 1001; i++)); do printf 'weight libc.so.6+0x%x 5\n' $((0x40000 + i)); done; } >many.hints
refuses 'hints: many\.hints:1002: too many hints \(legal: 1000 in a file\)' run --engine det --hints many.hints -- "$HINTED" sites
run "$SUBUTAI" run --hints app.hints --no-sts --schedule-times 1 -- true
check "under another engine the options do nothing" is "$status $(grep -c 'does nothing: it is an option of the engine det$' <<<"$err")" "0 3"
finish
