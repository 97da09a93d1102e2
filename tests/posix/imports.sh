#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Compares the dynamic symbols that the library takes from others with the reviewed list (imports.list).
# usage: imports.sh LIBRARY LIST [NM [MORE...]]      output: TAP. MORE: names that this library may take as well
set -u
library=$1 list=$2 nm=${3:-nm}
shift $(($# < 3 ? $# : 3))
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

if ! "$nm" -D --undefined-only "$library" >"$work/nm"; then
    echo "Bail out! $nm cannot read $library"
    exit 1
fi
awk '{ name = $2; sub(/@.*/, "", name); print name }' "$work/nm" | sort -u >"$work/taken"
{
    grep -v '^#' "$list" | tr ' ' '\n' | grep .
    for name; do echo "$name"; done
} | sort -u >"$work/allowed"
comm -23 "$work/taken" "$work/allowed" >"$work/surplus"

echo 1..2
if [ "$(wc -l <"$work/taken")" -ge 20 ]; then
    echo "ok 1 - imports__are_read: $(wc -l <"$work/taken") names taken from others"
else
    echo "not ok 1 - imports__are_read: $(wc -l <"$work/taken") names"
fi
if [ ! -s "$work/surplus" ]; then
    echo "ok 2 - imports__nothing_but_the_list_is_taken"
else
    echo "not ok 2 - imports__nothing_but_the_list_is_taken"
    sed 's/^/#   /' "$work/surplus"
    exit 1
fi
