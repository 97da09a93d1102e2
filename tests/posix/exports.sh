#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Compares the dynamic symbols that the library defines with the reviewed list (exports.list explains its marks).
# usage: exports.sh LIBRARY LIST [NM [MORE...]]      output: TAP. MORE: names that this library must define as well
set -u
library=$1 list=$2 nm=${3:-nm}
shift $(($# < 3 ? $# : 3))
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

if ! "$nm" -D --defined-only "$library" >"$work/nm"; then
    echo "Bail out! $nm cannot read $library"
    exit 1
fi
# Absolute symbols ("A") are the version definitions' own names.
awk '$2 != "A" { name = $3; sub(/@.*/, "", name); print name }' "$work/nm" | sort -u >"$work/exported"
{
    grep -E '^[a-z_]' "$list"
    for name; do echo "$name"; done
} | sort -u >"$work/required"
sed -n 's/^?//p' "$list" | sort -u >"$work/allowed"
sed -n 's/^!//p' "$list" | sort -u >"$work/never"
sed -nE 's/^# ([a-z_0-9]+)$/\1/p' "$list" | sort -u | comm -23 - "$work/required" >"$work/left"

# test NUMBER NAME FILE: passes if FILE, the offending symbols, is empty.
status=0
verdict() {
    if [ -s "$3" ]; then
        echo "not ok $1 - $2"
        sed 's/^/#   /' "$3"
        status=1
    else
        echo "ok $1 - $2"
    fi
}

echo 1..5
if [ "$(wc -l <"$work/required")" -lt 60 ]; then echo "the list names fewer than 60 functions"; fi >"$work/short"
n_required=$(wc -l <"$work/required") n_left=$(wc -l <"$work/left")
verdict 1 "exports__list_is_read: $n_required names required, $n_left left to glibc" "$work/short"
comm -13 "$work/exported" "$work/required" >"$work/missing"
verdict 2 "exports__every_required_name_is_defined" "$work/missing"
sort -u "$work/required" "$work/allowed" | comm -23 "$work/exported" - >"$work/surplus"
verdict 3 "exports__nothing_but_the_list_is_defined" "$work/surplus"
comm -12 "$work/exported" "$work/left" >"$work/taken"
verdict 4 "exports__names_left_to_glibc_are_not_defined" "$work/taken"
comm -12 "$work/exported" "$work/never" >"$work/forbidden"
verdict 5 "exports__key_create_alias_is_not_defined: $(tr '\n' ' ' <"$work/never")" "$work/forbidden"
exit $status
