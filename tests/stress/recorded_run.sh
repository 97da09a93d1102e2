#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The torture under the linked recorder, with a trace that is thrown away.
# usage: recorded_run.sh TORTURE ARG...
set -u
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
SUBUTAI_RECORD=$scratch/t.sbt "$@"
status=$?
[[ -s $scratch/t.sbt ]] || { echo "Bail out! there is no trace" && exit 1; }
exit "$status"
