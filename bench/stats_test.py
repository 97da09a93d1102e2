#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""bench/stats.py: medians and ratios, bounds, tables, and the outcome of a comparison."""
import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "tools", "report")]
sys.dont_write_bytecode = True
import stats  # noqa: E402  after the path is set
import tap  # noqa: E402


def run(*arguments, stdin=""):
    """Status, stdout and stderr of a subcommand."""
    out, err = io.StringIO(), io.StringIO()
    with mock.patch("sys.stdin", io.StringIO(stdin)), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = stats.main(list(arguments))
    return status, out.getvalue(), err.getvalue()


def engine(**changes):
    ratio = {"median": 2.0, "min": 1.6, "max": 4.0}
    return {"engine": "direct", "wall_ns": {"median": 1.5e6, "min": 1e6, "max": 2e9}, "cpu_ns": {}, "ratio": ratio,
            "cpu_ratio": ratio, "peak_kib": 7, "status": "exit 0", "same_status": True, "same_output": True,
            "timeouts": 0, **changes}


class Stats(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)

    def write(self, value):
        with open("file.json", "w", encoding="utf-8") as file:
            json.dump(value, file)
        return "file.json"

    def test_markdown(self):
        rows = [["bench", "threads", "engine", "bounds", "median", "min", "max", "within"],
                ["barrier", "2", "direct", "1", "3.00", "2.50", "4.00", "yes"], ["barrier", "2", "ni", "1", "-", "-", "-", "-"],
                ["barrier", "16", "direct", "1", "5.00", "5.00", "6.00", "yes"]]
        self.assertEqual(run("markdown", stdin="".join("\t".join(row) + "\n" for row in rows))[1].splitlines(), [
            "| bench | threads | `direct` | `ni` |", "| --- | --- | --- | --- |", "| barrier | 2 | 3.00 (2.50 to 4.00) | - |",
            "| barrier | 16 | 5.00 (5.00 to 6.00) | - |"])

    def test_middle(self):
        self.assertEqual(run("middle", stdin="3\n1\n10\n")[1], "3.00\t1.00\t10.00\n")
        self.assertEqual(run("middle", stdin="4\n2\n")[1], "3.00\t2.00\t4.00\n")
        self.assertEqual(run("middle", stdin="6 2\n1 4\n")[1], "1.62\t0.25\t3.00\n")
        self.assertEqual(run("middle")[0], 1)

    def test_nanoseconds(self):
        for ns, text in ((None, "-"), (999.94, "999.9 ns"), (1e3, "1.00 us"), (2.55e6, "2.5 ms"), (1e9, "1.00 s")):
            self.assertEqual(stats.nanoseconds(ns), text)

    def test_bounds(self):
        for bounds, median, within in (("1.0", "1.00", True), ("1.0", "0.99", False), ("<=4", "4", True),
                                       ("<=4", "4.01", False),
                                       ("0.95..1.05", "0.95", True), ("0.95..1.05", "1.06", False), ("-", "3", None),
                                       ("1.0", "-", None)):
            self.assertIs(stats.is_within(bounds, median), within, (bounds, median))

    def test_rows(self):
        _, out, err = run("row", "--columns", "bench,threads", "--", "barrier", "16", "4", "3.5", "3", "4")
        self.assertEqual((out, err), ("", "barrier, 16 threads: measured 3.5 (min 3, max 4); bounds 4, within: no\n"))
        _, out, _ = run("row", "--columns", "bench,threads", "--json", "--", "x", "2, 16", "-", "-", "-", "-")
        self.assertEqual(json.loads(out), {"bench": "x", "threads": None, "bounds": "-", "median": None, "min": None,
                                           "max": None, "within": None})
        _, out, _ = run("row", "--columns", "what", "--json", "--", "memory", "<=4", "-0.5", "-1", "2")
        self.assertEqual(json.loads(out), {"what": "memory", "bounds": "<=4", "median": -0.5, "min": -1, "max": 2, "within": True})
        with open("rows", encoding="utf-8") as file:
            self.assertEqual(file.readline(), "barrier\t16\t4\t3.5\t3\t4\tno\n")

    def test_table(self):
        self.assertEqual(run("table", stdin="a\tb\nlong\tc\n")[1], "a     b\n-------\nlong  c\n")

    def test_outcomes(self):
        for changes, missing, compared, said in (
                ({}, False, True, "identical"), ({}, False, False, "not compared"), ({}, True, True, "OUTPUT MISSING"),
                ({"same_output": False}, False, True, "DIFFERENT"), ({"same_output": False}, False, False, "not compared"),
                ({"same_status": False}, False, False, "EXIT STATUS DIFFERS"), ({"status": "exit 3"}, False, True, "FAILED (exit 3)"),
                ({"timeouts": 1, "same_status": False}, False, True, "TIMEOUT")):
            self.assertEqual(stats.outcome({"engines": [engine(**changes)] * 2, "missing_output": missing}, compared), said)
        self.assertEqual(run("outcome", self.write({"points": []}), "yes")[0], 1)

    def test_comparison(self):
        path = self.write({"points": [{"engines": [engine(engine="glibc"), engine()], "missing_output": False}]})
        labels = ["--program", "p", "--threads", "2", "--outcome", "identical"]
        self.assertEqual(run("comparison", path, "line", *labels)[1], "glibc 2 ms, direct 2 ms\n")
        self.assertEqual(run("comparison", path, "all", *labels)[1], "p\t2\t1.5 ms\t1.5 ms\t2.00\tidentical\n")
        self.assertEqual(run("comparison", path, "engines", *labels)[1].splitlines()[1],
                         "p\t2\tdirect\t1.5 ms\t1.0 ms\t2.00 s\t2.00\tidentical")
        objects = [json.loads(line) for line in run("comparison", path, "json", *labels)[1].splitlines()]
        self.assertEqual(list(objects[1])[:3] + [objects[1]["outcome"]], ["program", "threads", "engine", "identical"])
        self.assertEqual(run("ratio", path, "1", "ratio")[1], "2.00\t1.60\t4.00\n")
        self.assertEqual(run("ratio", path, "1", "ratio", "--inverse")[1], "0.50\t0.25\t0.62\n")

    def test_ratios_of_runs(self):
        self.assertEqual(run("throughput", "2", stdin="10 1 30\n20 1 30\n40 1 20\n")[1], "1.50\t0.50\t3.00\n")
        self.assertEqual(run("memory", "16", "116", stdin="100 200 150 450\n100 200 150 350\n")[1],
                         "1.50\t1.00\t2.00\n26.00\t18.00\t34.00\n")

    def test_trace(self):
        self.assertEqual(run("trace", self.write({"whole": True, "events": 3, "bytes": 20}))[1], "6.67\t3\n")
        self.assertEqual(run("trace", self.write({"whole": False, "events": 3, "bytes": 20}))[:2], (1, ""))

    def test_delay(self):
        with open("clock.json", "w", encoding="utf-8") as file:
            file.write('{"median_ns": 6600}')
        path = self.write({"latencies": [{"operation": "lock, empty", "count": 5, "local": 5, "median_ns": 60}]})
        self.assertEqual(run("delay", path, "clock.json", "local", "100")[1], "60 1.1\n")
        self.assertEqual(run("delay", path, "clock.json", "remote", "100")[:2], (1, ""))


if __name__ == "__main__":
    sys.exit(tap.main(sys.modules[__name__]))
