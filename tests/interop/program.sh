#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A self-checking program of subjects/ (argument 1, further arguments are its own; "." stands for the directory of the
# built programs): ends with 0 and prints what it prints under the plain C library.
. "$(dirname "$0")/lib.sh"
name=${1:?"usage: program.sh NAME [ARGUMENT...]"}
shift
arguments=("${@/#.\//$bin/}")

program() {
    check_run "$name $* ends with 0" 60 "$bin/$name" "${arguments[@]}"
    keep lines
    same "$name $* prints the same" lines
}

each_variant program "$@"
finish
