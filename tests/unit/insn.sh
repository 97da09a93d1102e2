#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Lengths and kinds of instructions, as the disassembler of binutils has them, in the C library and libgomp, which have
# code for many processors. Not decoded on purpose: transactional memory, `int`, and the way of `call` with prefixes.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
lengths=$1

code_of() { # FILE
    objdump -d --wide --insn-width=16 "$1" | awk -F'\t' 'NF == 3 { print $2 "|" $3 }' |
        grep -v -e '(bad)' -e '|xbegin' -e '|xabort' -e '|int '
}

for name in libc.so.6 libgomp.so.1 libstdc++.so.6; do
    library=$(ldconfig -p 2>/dev/null | awk -v name="$name" '$1 == name && /x86-64/ { print $NF; exit }')
    if [ -z "$library" ] || ! command -v objdump >/dev/null; then
        skip "$name" "no objdump, or no such library here"
        continue
    fi
    result=$(code_of "$library" | "$lengths")
    tail -20 <<<"$result" | note
    last=$(tail -1 <<<"$result")
    [[ $last =~ ^[0-9]{5,}\ instructions,\ 0\ differ$ ]]
    point $? "$name: every instruction is read as it is"
done
finish
