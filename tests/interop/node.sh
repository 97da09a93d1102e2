#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Node.js binds the old (GLIBC_2.2.5) versions of many pthread functions and takes rwlocks by the million.
. "$(dirname "$0")/lib.sh"
need node

node_program() {
    check_run "workers.js holds its assertions" 90 env UV_THREADPOOL_SIZE=6 node "$here/subjects/workers.js"
    keep workers
    same "workers.js prints the same results" workers
}

each_variant node_program
finish
