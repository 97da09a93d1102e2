#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Usage: purity.sh NM LIBRARY PREFIX. A pure library needs nothing from outside but the four memory functions that
# compilers call on their own, defines nothing without its prefix, and has no variable that can be written to.
set -u
nm=$1 library=$2 prefix=$3
echo 1..3

defined=$("$nm" -P "$library" | awk '$2 ~ /^[TDBRVWC]$/ {print $1}' | sort -u)
[ -n "$defined" ] || { echo "Bail out! $library defines nothing"; exit 1; }
outside=$("$nm" -u -P "$library" | awk 'NF > 1 && $2 ~ /^[Uw]$/ {print $1}' | sort -u |
    grep -vxF "$defined" | grep -vxE 'mem(cpy|set|move|cmp)|__stack_chk_fail(_local)?|_GLOBAL_OFFSET_TABLE_')
# Sanitizers and coverage add calls of their own; they are the build's, not the library's.
outside=$(printf '%s\n' "$outside" | grep -vE '^(__(asan|ubsan|tsan|msan|sanitizer|gcov|llvm)_.*|)$')
report() {
    if [ -z "$2" ]; then echo "ok $1 - $3"; else echo "not ok $1 - $3: $(echo "$2" | tr "\n" " ")"; status=1; fi
}
status=0
report 1 "$outside" "nothing from outside"
report 2 "$(printf '%s\n' "$defined" | grep -vE "^(${prefix}|__odr_asan|_?_?ubsan|.*(asan|ubsan))")" "only $prefix names"
report 3 "$("$nm" -P "$library" | awk '$2 ~ /^[dDbBC]$/ {print $1}' | grep -vE 'asan|ubsan|gcov|__')" "no variables"
exit $status
