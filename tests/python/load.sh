#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The package `subutai`: what it reads of a trace, where it finds the C library, and that it can be installed.
. "$(dirname "$0")/lib.sh"
: "${SUBJECT:?}"
need_python "the Python package"
python=$PYSUBUTAI_PYTHON

# ---- the C library ----
symbols=$(nm -D --defined-only --format=posix "$BUILD_ROOT/trace/libsubutai-trace.so" | awk '$2 == "T" { print $1 }' |
    sed 's/@.*//' | LC_ALL=C sort | tr '\n' ' ')
check "the library exports reading, and nothing else" is "$symbols" "sbt_trace_close sbt_trace_end sbt_trace_info sbt_trace_object_address sbt_trace_object_made \
sbt_trace_op_name sbt_trace_open sbt_trace_order_next sbt_trace_read_addresses sbt_trace_read_columns sbt_trace_read_counts sbt_trace_read_lanes \
sbt_trace_read_routines sbt_trace_read_tallies sbt_trace_reader_free sbt_trace_reader_limit sbt_trace_reader_new sbt_trace_reader_select sbt_trace_site_name sbt_trace_stack \
sbt_trace_tally_begin sbt_trace_tally_next sbt_trace_thread_queued sbt_trace_thread_routine sbt_trace_type_name "
loads=(-c 'import subutai; print(subutai.load("four.sbt").events.height)')
four four.sbt
PYSUBUTAI_LIBRARY=$BUILD_ROOT/trace/libsubutai-trace.so run "$python" "${loads[@]}"
check "the library by its path" is "$status $out" "0 131"
PYSUBUTAI_COMMAND=$SUBUTAI run "$python" "${loads[@]}"
check "beside the command, in a build tree" is "$status $out" "0 131"
mkdir -p there/bin there/lib/x86_64-linux-gnu
cp "$SUBUTAI" there/bin
cp "$BUILD_ROOT/trace/libsubutai-trace.so.1" there/lib/x86_64-linux-gnu
PATH=$scratch/there/bin:$PATH run "$python" "${loads[@]}"
check "beside the command in PATH, installed" is "$status $out" "0 131"
PYSUBUTAI_LIBRARY=/no/such/lib.so run "$python" "${loads[@]}"
check "no library: what to do" matches "$status $err" "^1 .*LibraryError: /no/such/lib.so: .*legal: install Subutai, or name its \
libsubutai-trace.so.1 in PYSUBUTAI_LIBRARY"

# ---- against dump ----
export PYSUBUTAI_COMMAND=$SUBUTAI
run "$SUBUTAI" record -o app.sbt -- "$SUBJECT"
check "a trace is recorded" is "$status" 0
size=$(stat -c %s app.sbt)
head -c $((size - 200)) app.sbt >cut.sbt
cp app.sbt damaged.sbt
printf '\xff\xff\xff\xff' | dd of=damaged.sbt bs=1 seek=$((size / 2)) conv=notrunc status=none
run "$python" "$SOURCE_ROOT/tests/python/load.py" "$SUBUTAI" app.sbt cut.sbt damaged.sbt
points ""

# ---- where no thread can be started ----
run "$python" -c 'import atexit, subutai
t = subutai.load("app.sbt")
subutai.trace.PART = 1
atexit.register(lambda: print(t.events.height == t.n_events > 0))'
check "events when the interpreter ends" is "$status $out $err" "0 True "
run "$python" -c 'import subutai.trace, threading
subutai.trace.PART = 1
here, start, n = subutai.load("app.sbt").events, threading.Thread.start, []
def some_start(thread):
    n.append(thread)
    if len(n) % 2 == 1:
        raise RuntimeError("can'"'"'t start new thread")
    start(thread)
threading.Thread.start = some_start
subutai.trace.os.sched_getaffinity = lambda _: range(8)
print(subutai.load("app.sbt").events.equals(here), len(n) > 1)'
check "and where some threads do not start" is "$status $out $err" "0 True True "

# ---- the package ----
cp -r "$SOURCE_ROOT/python" source
(cd source && rm -rf build src/*.egg-info)
run "$VENV/bin/pip" wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index -w wheels ./source
check "a wheel can be built" is "$status $(ls wheels)" "0 subutai-$("$SUBUTAI" --version | cut -d' ' -f2)-py3-none-any.whl"
run "$VENV/bin/pip" install --quiet --disable-pip-version-check --no-deps --no-index --target installed wheels/*.whl
check "and installed" is "$status" 0
PYTHONPATH=$scratch/installed run "$python" -c 'import subutai, subutai.sweep.task, os
print(subutai.load("four.sbt").events.height, os.path.exists(os.path.dirname(subutai.__file__) + "/py.typed"))'
check "the installed package has its modules, and says that it is typed" is "$status $out" "0 131 True"
finish
