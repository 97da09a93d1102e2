#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What Python does of subutai report: the page, Parquet, speedscope. PICTURES=DIR keeps screenshots.
. "$(dirname "$0")/lib.sh"
: "${SUBJECT:?}" "${SCENES:?}"
refuses 'report: --html needs a value' report x.sbt --html
refuses 'report: no file given' report --html x.html
refuses 'report: --html, --parquet, --speedscope and --perfetto go with no option that prints' report --html x.html --json x.sbt
printf '#!/bin/sh\nexec python3 -I -S "$@"\n' >bare
chmod +x bare
PYSUBUTAI_PYTHON=$scratch/bare refuses "report: .* has no module subutai \(legal: Python 3.11 or later with the package: pip \
install './python\[report\]'" report --html x.html x.sbt
need_python "subutai report"
export PYSUBUTAI_PYTHON
subutai record -o all.sbt -- "$SUBJECT"
check "a trace is recorded" is "$status" 0
subutai record -o '<b>.sbt' -- /bin/true '<script>window.evil = 1</script><img src=x onerror="window.evil=1">'
check "and one of a program that does not synchronize" is "$status" 0

# The command, with the widest names and numbers that a report could have, in the place of those that it has: each name
# is a word that has no place to break it, and each advice that there is is given.
cat >widest <<END
#!/bin/bash
[[ "\$*" == *--json* ]] || exec '$SUBUTAI' "\$@"
'$SUBUTAI' "\$@" | jq 'def named: IN("name", "symbol", "place", "function", "module", "file", "routine", "command", "path", "text");
    def counted: test("^(ns|n|.*_ns|acquisitions|contended|generations|events|size)\$");
    walk(if type == "object" then with_entries(
        if (.key | named) and (.value | type == "string") then .value += "_with_a_long_name" * 12
        elif (.key | counted) and (.value | type == "number") then .value *= 1e9
        else . end) else . end) |
    .advice |= (.[0] // {"cause": "", "object": null, "figure": null, "gain": {"share": null, "ratio": null, "basis": null}, "command": null, "text": "advice"}
        | .measured = {"runs": 12345, "identical": false, "engines": [range(20) |
            {"engine": "direct:wait=switch_and_a_long_name", "ratio": 1234567.5, "ratio_min": 1234567.5, "ratio_max": 1234567.5}]}
        | [range(12) as \$i | . + {"cause": "a-cause-\(\$i)\("_which_is_long" * 10)"}])'
END
chmod +x widest

# ---- the page ----
subutai report --html both.html all.sbt '<b>.sbt'
check "a page of two traces: nothing is printed" is "$status $out$err" "0 "
check "one file" is "$(find . -newer all.sbt -name '*html*' -printf '%f ')" "both.html "
check "of at most 15 MB" test "$(stat -c %s both.html)" -lt 15000000
check "that names no other" is "$(grep -oE '<(script|link|img|iframe)[^>]* (src|href)="[^"]*"' both.html | grep -v 'href="data:,"')" ""
if no=$("$PYSUBUTAI_PYTHON" "$SOURCE_ROOT/tests/python/browser.py" 2>&1); then
    run_as_long "$PYSUBUTAI_PYTHON" "$SOURCE_ROOT/tests/python/report_page.py" both.html all.sbt ${PICTURES:+"$PICTURES"}
    points "in a browser: "
    PYSUBUTAI_COMMAND=$scratch/widest subutai report --html widest.html all.sbt '<b>.sbt'
    check "a page with the widest names and numbers" is "$status $out$err" "0 "
    run_as_long "$PYSUBUTAI_PYTHON" "$SOURCE_ROOT/tests/python/report_narrow.py" widest.html ${PICTURES:+"$PICTURES"}
    points "in narrow windows: "
else
    check "a browser is missing" matches "$no" '^no chromium( and no chromedriver)?$|^no chromedriver$' # and not a mistake
    skip "the page in a browser" "$no"
fi
cat >graph.py <<'EOF2'
from subutai.report import figures

threads = [{"id": i, "name": f"<T as Run>::run#{i}", "routine": "<T as Run>::run"} for i in range(2)]
wait = {"waiter": 0, "holder": 1, "object": 0, "kind": "mutex", "n": 1, "ns": 5000}
figure = figures.waits_for({"threads": threads, "objects": [{"id": 0, "name": "lock", "type": "mutex"}], "waits_for": [wait]})
print(*figure["data"][0]["node"]["label"])
EOF2
check "the graph of waits: names of Rust's, which begin with '<'" matches "$("$PYSUBUTAI_PYTHON" graph.py 2>&1)" \
    '&lt;T as Run&gt;::run#1.* lock #0 &lt;T as Run&gt;::run#0'
size=$(stat -c %s all.sbt)
head -c $((size / 2)) all.sbt >cut.sbt
subutai report --html cut.html cut.sbt
check "a trace that was cut" is "$status $out$err" "0 "
check "the page says so" grep -q 'The trace is not whole' cut.html
four four.sbt
subutai report --html four.html four.sbt
check "a generated trace" is "$status $out$err" "0 "

# Traces made by hand (tests/report/scenes.c), of which the report's words can be worked out.
# page_says WORDS: in the page, without its tags
page_says() {
    grep -qF "$1" <<<"$words" || { echo "# not on the page: $1" && return 1; }
}
"$SCENES" off-cpu-beside no-core.sbt 0 600 1 25
"$SCENES" many-locks many.sbt
"$SCENES" timed-out timed.sbt
for scene in no-core many timed; do
    subutai report --html $scene.html $scene.sbt
    words=$(sed "s/<script.*//; s/<[^>]*>/ /g; s/&#39;/'/g" $scene.html | tr -s ' \n' ' ')
    case $scene in
    no-core)
        check "the page: no core for 590 of 1700 us, and 35 in calls" page_says "without a core 34.7 % of the threads' time, between calls; in calls too: 36.8 %"
        check "the page: the advice says that there was no core" page_says "Of most of that the kernel says that it could have run and had no core: "
        check "the page: and the table of threads" page_says "of that, without a core"
        ;;
    many) check "the page: what is counted is no bound" page_says "It would bring 10.0 % of the run time, by the number of calls." ;;
    timed)
        check "the page: a lock's wait that timed out has the thread that had the lock" page_says "main thread#1 mutex#0 #0 mutex, timed out 1 "
        check "the page: and a condition's has none" page_says "main timed out cond#1 #1 cond 1 "
        ;;
    esac
done

# ---- what cannot be ----
cp all.sbt damaged.sbt
printf '\xff\xff\xff\xff' | dd of=damaged.sbt bs=1 seek=$((size / 2)) conv=notrunc status=none
echo before >old.html
refuses "report: 'damaged.sbt': at byte [0-9]+: .*record the program again" report --html old.html damaged.sbt
check "a page that was there stays" is "$(cat old.html)" before
refuses "report: 'no-such.sbt': .*No such file" report --html x.html no-such.sbt
refuses "report: 'old.html': at byte 7: too short for a trace" report --html x.html old.html
refuses "report: --html: 'nowhere/x.html': No such file or directory \(legal: a file that can be written\)" report --html nowhere/x.html all.sbt
refuses "report: --html: 'x+': File name too long \(legal: a file that can be written\)" report --html "$(printf 'x%.0s' {1..300})" all.sbt
refuses "report: --html: '.': Is a directory" report --html . all.sbt
refuses "report: --html: 'all.sbt' is the trace itself" report --html all.sbt all.sbt
refuses "report: --parquet: 'old.html': File exists \(legal: a folder" report --parquet old.html all.sbt
refuses "report: --speedscope: 2 traces \(legal: one\)" report --speedscope x.json all.sbt four.sbt
refuses "report: --perfetto: 2 traces \(legal: one\)" report --perfetto x.pftrace all.sbt four.sbt
check "nothing half written is left" is "$(find . -name '.*html*' -o -name 'x.*' | tr '\n' ' ')" ""
subutai report --html /dev/full all.sbt
check "a full device" matches "$status $err" "^2 subutai: report: --html: '/dev/full': No space left on device"
mkdir without
printf 'raise ModuleNotFoundError("No module named plotly", name="plotly")\n' >without/plotly.py
cat >without/sitecustomize.py <<'END'
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "plotly" else real(name, package)
END
PYTHONPATH=$scratch/without:$PYTHONPATH refuses "report: .*python has no module plotly \(legal: pip install './python\[report\]' in \
Subutai's sources\)" report --html x.html all.sbt

# ---- other tools ----
subutai report --parquet tables --speedscope all.json --perfetto all.pftrace all.sbt
check "Parquet, speedscope and Perfetto in one go" is "$status $out$err" "0 "
subutai trace to-perfetto -o again.pftrace all.sbt
check "--perfetto is trace to-perfetto" cmp all.pftrace again.pftrace
run "$PYSUBUTAI_PYTHON" -c 'import polars, subutai
trace = subutai.load("all.sbt")
for name in ("events", "objects", "threads", "sites", "waits", "releases", "tallies", "stacks"):
    read = polars.read_parquet(f"tables/{name}.parquet")
    print(name, read.equals(getattr(trace, name)), read.schema == getattr(trace, name).schema)'
check "Parquet files are the frames" is "$status $out" "0 events True True
objects True True
threads True True
sites True True
waits True True
releases True True
tallies True True
stacks True True"
subutai report --parquet each all.sbt four.sbt
check "of two traces: a folder for each" is "$status $(listed each)" "0 all four "
subutai report --folded all.folded all.sbt
check "speedscope has the stacks of --folded, with their weights" is "$(jq -r '.shared.frames as $f | .profiles[0] |
    [.samples, .weights] | transpose[] | ([.[0][] | $f[.].name] | join(";")) + " " + (.[1] | tostring)' all.json)" "$(cat all.folded)"
run "$PYSUBUTAI_PYTHON" "$SOURCE_ROOT/tests/python/speedscope.py" --test
check "each rule of speedscope's format finds what breaks it" is "$status $out" "0 "
for trace in all four '<b>'; do # the last has no stacks
    subutai report --speedscope "$trace.speedscope.json" "$trace.sbt"
    run "$PYSUBUTAI_PYTHON" "$SOURCE_ROOT/tests/python/speedscope.py" "$trace.speedscope.json"
    check "speedscope can open what is of $trace" is "$status $out" "0 "
done

# ---- progress ----
if command -v script >/dev/null; then
    cat >slow <<END
#!/bin/bash
[[ "\$*" != *--json* ]] || sleep 3
exec '$SUBUTAI' "\$@"
END
    chmod +x slow
    PYSUBUTAI_COMMAND=$scratch/slow run script -qec "'$SUBUTAI' report --html slow.html all.sbt" /dev/null
    check "a terminal that has waited for more than two seconds sees how far it is" matches "$status $out" '^0 .*%\|'
    run script -qec "'$SUBUTAI' report --parquet quick four.sbt" /dev/null
    check "a quick one sees nothing" is "$status $out" "0 "
else
    skip "the progress bar" "no command script"
fi
finish
