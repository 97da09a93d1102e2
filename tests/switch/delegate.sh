#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Delegated mutexes: every scene of delegate.c and delegate_waits.c, on the C library alone and with its mutexes
# delegated, with servers and without; exceptions through sections; names of mutexes; and what is refused, when the
# program runs undelegated.
. "$SOURCE_ROOT/tests/switch/delegate_scenes.sh"

subject=$SUBJECTS/switch-delegate
play_delegated switch "$subject" "$subject-waits"
[[ ! -x $subject-cxx ]] || for servers in 0 1; do
    run "$SUBUTAI" run --verbose 2 --wait 'switch!' --delegate all --servers $servers -- "$subject-cxx"
    check "exceptions, $servers servers" is "$status" 0
    check "exceptions, $servers servers: sections are handed over" delegated all
done

# A section that spins on the server holds up those that are queued behind it once, not each of them for a look of the
# monitor, which would send one home at a time.
run "$SUBUTAI" run --wait 'switch!' --delegate all --servers 1 -- "$subject-waits" spins-there
check 'behind a section that spins: right' is "$status" 0
check 'behind a section that spins: sections run on the workers' matches "$out" '^at home: ([0-9]|[1-9][0-9])$'

# On a single CPU, and by the names that profile and report print.
cpu=$(allowed_cpu)
address() {
    nm "$subject" | awk -v name="$1" '$3 == name {print $1}'
}
hot=$(printf '0x%x' "0x$(address hot)")
for name in hot "${subject##*/}+$hot" none,hot hot+0x0; do
    run taskset -c "$cpu" "$SUBUTAI" run --verbose 2 --wait switch --delegate "$name" -- "$subject" counts
    check "the name $name: right" is "$status" 0
    check "the name $name: sections are handed over" delegated "$(sed 's/.*,//; s/+/[+]/' <<<"$name")"
done
# A program that is called as its variable is: what is within the variable is its, the rest is the file's.
cp "$subject" "$scratch/hot"
for name in hot+0x0 "hot+$hot"; do
    run taskset -c "$cpu" "$SUBUTAI" run --verbose 2 --wait switch --delegate "$name" -- "$scratch/hot" counts
    check "the name $name of a program that is called hot: right" is "$status" 0
    check "the name $name of a program that is called hot: sections are handed over" delegated "${name/+/[+]}"
done
run "$SUBUTAI" run --verbose 2 --wait switch --delegate second -- "$subject" counts
check "another mutex: right" is "$status" 0
check "another mutex: is not delegated" matches "$err" "delegated: 'second': 0 sections"
run "$SUBUTAI" run --verbose 2 --wait switch --delegate hot -- "$subject" overwritten
check "the program overwrites its environment: the name is said as it was" delegated hot
run "$SUBUTAI" run --verbose 2 --wait switch --delegate hot --log overwritten.log -- "$subject" overwritten
check "and in the file of --log" matches "$err$(cat overwritten.log)" "^subutai: .*delegated: 'hot': [0-9]"
# Of one that is made at run time, the place of its init: of the function's only call.
# In the file it is the call's last byte; the linkers give code the same offset there as in memory.
mapfile -t sites < <(objdump -d --no-show-raw-insn "$subject" |
    awk -v file="${subject##*/}" '/^[0-9a-f]+ <new_mutex>:/ {begin = strtonum("0x" $1); on = 1}
         on && seen {sub(":", "", $1); at = strtonum("0x" $1)
                     printf "new_mutex+0x%x\n%s+0x%x\n", at - begin, file, at - 1; exit}
         on && /pthread_mutex_init/ {seen = 1}')
check 'the call that makes a mutex is found' is "${#sites[@]}" 2
for site in "${sites[@]}"; do
    run "$SUBUTAI" run --verbose 2 --wait switch --delegate "$site" -- "$subject" made-counts
    check "the place $site: right" is "$status" 0
    check "the place $site: sections are handed over" delegated "${site/+/[+]}"
done

# And its line in the source, of which the command finds the code.
line=$(grep -n 'pthread_mutex_init(' "$SOURCE_ROOT/tests/switch/delegate.c" | head -n 1 | cut -d: -f1)
for name in "delegate.c:$line" "none,delegate.c:$line@0"; do
    run "$SUBUTAI" run --verbose 2 --wait 'switch!' --servers 1 --delegate "$name" -- "$subject" made-counts
    check "the line $name: right" is "$status" 0
    check "the line $name: sections are handed over" matches "$err" "delegated: '${subject##*/}[+]0x[0-9a-f]+[.][.]0x[0-9a-f]+(@0)?': [1-9]"
done
run "$SUBUTAI" compare --warmup 0 --runs 1 --show-stderr --verbose 2 --engines "native,direct:wait=switch!,delegate=delegate.c:$line" -- "$subject" made-counts
check "the line in compare: sections are handed over" matches "$err" "delegated: '${subject##*/}[+]0x[0-9a-f]+[.][.]0x[0-9a-f]+': [1-9]"
# A comma parts the list: a program with one in its name has no lines.
cp "$subject" "$scratch/a,b"
run "$SUBUTAI" run --wait switch --delegate "delegate.c:$line" -- "$scratch/a,b" made-counts
check "a line of a program with a comma in its name" matches "$status $err" "^0 subutai: not delegated: 'delegate.c:$line': no source line is known"
check "a line of a program with a comma in its name: one line" is "$(wc -l <<<"$err")" 1
for name in new_mutex+0x1..0x new_mutex+0x1. new_mutex+0x9..0x1 new_mutex+..0x1; do
    run "$SUBUTAI" run --wait switch --delegate "$name" -- "$subject" counts
    check "the range $name: is none" matches "$status $err" "^0 subutai: not delegated: '${name/+/[+]}': the program and its libraries have none of that name\$"
done

# Refused, one line for each, and the program runs.
undelegated() { # WHAT LINE OPTION...
    local what=$1 line=$2
    shift 2
    run "$SUBUTAI" run "$@" -- "$subject" counts
    check "$what: the program runs" is "$status" 0
    check "$what: says why" matches "$err" "^subutai: $line\$"
    check "$what: in one line" is "$(wc -l <<<"$err")" 1
}
# Variables of the library itself are none of the program's.
undelegated "a name of the library's" "not delegated: 'entries': the program and its libraries have none of that name" \
    --wait switch --delegate entries
undelegated 'a C++ name' "not delegated: 'app::hot': a C[+]{2} name is that of the linker, _ZN[.]{3}, as profile and report print it" \
    --wait switch --delegate app::hot
for name in none all auto 'auto!' 'turns!'; do
    undelegated "$name, and a name" "not delegated: '$name': it stands alone, without other names and servers" \
        --wait switch --delegate "hot,$name"
done
undelegated 'an unknown name' "not delegated: 'cold': the program and its libraries have none of that name" \
    --wait switch --delegate cold
undelegated 'a name among others' "not delegated: 'cold[+]0x10': the program and its libraries have none of that name" \
    --wait switch --delegate hot,cold+0x10,second
undelegated 'a function' "not delegated: 'new_mutex': it is a function: add a call's place in it, [+]0xN" \
    --wait switch --delegate hot,new_mutex
names=$(printf 'hot,%.0s' {1..64})
undelegated 'more than 64 names' "not delegated: 'second,third': there are more names than the library has room for" \
    --wait switch --delegate "${names}second,third"
for line in delegate.c:1 nosuch.c:7 delegate.c:x delegate.c: :7 delegate.c:4294967299; do
    undelegated "the source line '$line'" "not delegated: '$line': no source line is known while a program runs, .*" \
        --wait switch --delegate "$line"
done
for list in a,,b ',' @0 'a,' ,a; do
    undelegated "the list '$list'" "nothing is delegated: '$list' is no list of names with commas" --wait switch --delegate "$list"
done
undelegated 'an unknown server' "not delegated: 'hot@3': there is no server of that name" --wait switch --delegate hot@3
run "$SUBUTAI" run --verbose 2 --wait 'switch!' --delegate hot@0,second@0 --servers 1 -- "$subject" nested
check 'two mutexes of one server: right' is "$status" 0
check 'two mutexes of one server: the first is delegated' delegated hot@0
check 'two mutexes of one server: some sections wait for those of the other' matches "$err" \
    "delegated: 'second@0': [0-9]+ sections in [0-9]+ batches, behind those of other mutexes [1-9]"
for server in 1 '' x 4294967296 00000000000000000001; do
    undelegated "the unknown server '$server'" "not delegated: 'hot@$server': there is no server of that name" \
        --wait switch --servers 1 --delegate "hot@$server"
done
undelegated "the unknown server of all mutexes" "not delegated: 'all@1': there is no server of that name" \
    --wait switch --servers 1 --delegate all@1
run "$SUBUTAI" run --verbose 2 --wait 'switch!' --delegate all@1 --servers 2 -- "$subject" counts
check 'all mutexes of one server: right' is "$status" 0
check 'all mutexes of one server: sections are handed over' delegated all@1
for servers in 63 64 1024; do
    undelegated "$servers servers, more than CPUs" \
        "nothing is delegated: $servers servers are more than the (CPUs, which are [0-9]+|library has room for, which is 63)" \
        --wait switch --servers $servers --delegate all
done
undelegated 'servers, and no mutex' 'run: --servers does nothing: no mutex is delegated [(]legal: beside --delegate[)]' \
    --servers 1
undelegated 'servers without switching' "run: --servers does nothing: with --wait adaptive no thread is switched" \
    --wait adaptive --servers 1
undelegated 'servers of another engine' "run: --servers does nothing: only the engine direct reads it" --engine det --servers 1
undelegated 'no switching' "run: --delegate does nothing: with --wait adaptive no thread is switched" \
    --wait adaptive --delegate hot
undelegated 'another engine' "run: --delegate does nothing: only the engine direct reads it" --engine ni --delegate hot
ineligible=$SUBJECTS/switch-auto-ineligible
# with --wait auto too: before the first thread, not only when switching would begin to pay
for how in auto switch; do
    run "$SUBUTAI" run --wait $how --delegate all -- "$ineligible" ends-soon
    check "$how, a program that cannot be switched: says why" matches "$err" \
        'threads are not switched but wait adaptively: .*sighold'
    check "$how, a program that cannot be switched: in one line" is "$(wc -l <<<"$err")" 1
    check "$how, a program that cannot be switched: runs" is "$status" 0
done
run "$SUBUTAI" run --delegate all -- true
check 'a program without threads: runs' is "$status" 0
check 'a program without threads: nothing to say' is "$err" ''
run "$SUBUTAI" run --delegate= -- true
check 'no name: refused' is "$status" 2
finish
