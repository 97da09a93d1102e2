#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# OpenBLAS with threads of its own, which wait by loops of sched_yield: products from one thread and from several.
. "$(dirname "$0")/lib.sh"
"$bin/blas" >/dev/null
[ $? != 77 ] || {
    echo "1..0 # SKIP OpenBLAS with threads is not installed"
    exit 0
}

products() {
    local threads
    for threads in 2 16; do
        check_run "products by $threads threads" 100 "$bin/blas" "$threads"
        check "by that many" grep -qx "$threads threads" "$variant.out"
        keep "$threads"
        same "products by $threads threads: same results" "$threads"
    done
}

each_variant products
finish
