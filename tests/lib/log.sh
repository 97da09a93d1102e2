# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# What a log of meson's (testlog.json) says; sourced by tests/run.

# One result line for each test of a meson log: NAME <tab> RESULT <tab> passed <tab> failed <tab> skipped points.
# In TAP, "# SKIP" is a directive whatever ok says and "1..0" skips the whole program.
results() {
    jq -r '
        (.stdout // "" | split("\n")) as $lines
        | ($lines | map(select(test("^(not )?ok\\b")))) as $points
        | ($points | map(select(test("# *skip"; "i")))) as $skips
        | ($points - $skips | map(select(startswith("ok"))) | length) as $ok
        | ($points - $skips | map(select(startswith("not"))) | length) as $bad
        | .result as $result
        | if $result == "SKIP" and ($points | length) == 0 then [0, 0, 1]
          elif ($points | length) == 0 and ($result == "OK" or $result == "EXPECTEDFAIL") then [1, 0, 0]
          elif ($points | length) == 0 then [0, 1, 0]
          elif $result == "OK" or $result == "SKIP" or $result == "EXPECTEDFAIL" then [$ok, $bad, ($skips | length)]
          elif $bad > 0 and ($result == "FAIL" or ($result == "ERROR" and .returncode == 1)) then [$ok, $bad, ($skips | length)]
          else [$ok, $bad + 1, ($skips | length)] end
        | . as $count | [$count[0], $count[1], $count[2]] | @tsv' "$1"
}

# The failing tests of a meson log, each with the points that failed and the end of what it said.
explain() {
    jq -r 'select(.result != "OK" and .result != "SKIP" and .result != "EXPECTEDFAIL")
        | (.stdout // "" | split("\n")) as $lines
        | ["---- \(.name): \(.result), status \(.returncode), \(.duration | floor) s", (.command | join(" "))]
          + ([$lines[] | select(startswith("not ok"))] | .[:20])
          + ["-- end of its output"] + $lines[-60:]
          + ["-- end of its stderr"] + ((.stderr // "") | split("\n") | .[-60:])
        | .[]' "$1" | cut -c 1-300
}

# A line for each failing test of a meson log: its first failing point with what is said about it, or else the last line
# that it said.
name_failures() {
    jq -r 'select(.result != "OK" and .result != "SKIP" and .result != "EXPECTEDFAIL")
        | (.stdout // "" | split("\n") | map(select(. != ""))) as $lines
        | ((.stderr // "") | split("\n") | map(select(. != ""))) as $errors
        | ($lines | map(startswith("not ok")) | index(true)) as $at
        | (if $at != null then $lines[$at:$at + 12] | .[:1] + (.[1:] | map(select(startswith("#")))) | join(" ")
           else $errors[-1] // $lines[-1] // "" end) as $why
        | "\(.name): \(.result), status \(.returncode): \($why)"' "$1" | cut -c 1-800
}
