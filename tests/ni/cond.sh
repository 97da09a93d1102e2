#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Conditions move with their mutexes; see conds.c.
. "$(dirname "$0")/lib.sh"
for service in dedicated inline; do
    for options in "" "--mesh 1x1" "--mesh 1x1 --control-elements 2" "--mesh 1x1 --control-elements 1" \
        "--mesh 2x2 --queue-elements 1" "--control-full software --mesh 1x1"; do
        # shellcheck disable=SC2086 # words
        under "$service" $options -- conds 50
        check "$service, ${options:-as it is}" quiet_success
    done
    under "$service" -- conds 50
    check "$service: waits of glibc's mutexes are software's, others are not" counted \
        "$n"'.[] | .condition_waits_in_software > 100 and n("condition") > 400'
    # The paper's least scratchpad has no element for a condition beside its mutex's; a second one suffices.
    under "$service" --control-elements 1 --queue-elements 63 -- known
    check "$service: with one control element conditions are software's" counted \
        "$n"'.[] | .condition_waits_in_software == 22 and n("condition") == 0'
    under "$service" --control-elements 2 --queue-elements 63 -- known
    check "$service: with two they are the hardware's" counted \
        "$n"'.[] | .condition_waits_in_software == 0 and n("condition") == 22'
done
finish
