#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The report on the paper's evaluation, and that the paper's numbers as typed in agree with each other. Prints TAP."""
import io
import json
import os
import sys
import tempfile
import unittest
from contextlib import redirect_stderr, redirect_stdout

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import paper as report  # noqa: E402
import tap  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
DATA = os.path.join(ROOT, "bench", "paper", "paper.json")


def cut(value, digits):
    return int(value * 10**digits) / 10**digits


class Numbers(unittest.TestCase):
    """What the paper says twice, or as a sum, says the same here: the text it was typed from is not free of damage."""

    def setUp(self):
        self.paper = report.load(DATA)
        self.tables = self.paper["tables"]
        self.given = {e["id"]: e["paper"] for e in self.paper["compare"]}

    def test_names_are_unique(self):
        self.assertEqual(len(self.given), len(self.paper["compare"]))
        self.assertEqual(len({c["id"] for c in self.paper["claims"]}), len(self.paper["claims"]))

    def test_numbers_are_numbers(self):
        for entry in self.paper["compare"]:
            self.assertIsInstance(entry["paper"], (int, float), entry)
            self.assertIn(entry["kind"], ("fitted", "half fitted", "predicted", "model"))

    def test_table_ii(self):
        for name in ("mutex", "barrier", "condition"):
            glibc, subutai, reduction = self.tables["II"][name]
            self.assertAlmostEqual(100 * (1 - subutai / glibc), reduction, delta=0.05)

    def test_table_vi(self):
        events = self.tables["VI"]
        for column, ratio in enumerate(events["streamcluster over bodytrack (section VIII-C)"]):
            ours = [sum(events[a][k][column] for k in ("barrier", "condition", "mutex"))
                    for a in ("bodytrack", "streamcluster")]
            self.assertEqual(int(ours[1] / ours[0]), ratio)

    def test_table_vii(self):
        x8 = self.tables["VII"]["x8"]
        self.assertAlmostEqual(100 * (x8[1] + x8[2]) / x8[0], 5.12, delta=0.005)
        self.assertEqual(self.given["table7.x8.csa"], x8[1])
        self.assertAlmostEqual(sum(x8) / sum(self.tables["VII"]["x4"]), 1.05, delta=0.01)  # of one application, not of all

    def test_tables_viii_and_ix(self):
        ni, fsm, spm, total = self.tables["VIII"]["um2"]
        self.assertAlmostEqual(ni + fsm + spm, total, delta=0.005)
        self.assertEqual([int(100 * x / ni) for x in (fsm, spm, fsm + spm)], self.tables["VIII"]["percent"])
        for name in ("HTM", "MCAS", "Abellan et al.", "Subutai"):
            core, more, percent = self.tables["IX"][name]
            self.assertEqual(cut(100 * 64 * (core + more) / 400, 3), percent)
        self.assertEqual(cut(100 * 64 * total / 1e6 / 400, 3), self.given["area.chip.total"])

    def test_mean_of_figure_12(self):
        six = [self.given[f"fig12.{a}.{n}"] for a in ("bodytrack", "streamcluster", "x264") for n in (32, 64)]
        self.assertAlmostEqual(sum(six) / 6, self.given["fig12.mean"], delta=0.005)


class Report(unittest.TestCase):
    PAPER = {"compare": [{"id": "a.one", "paper": 2.0, "source": "S", "what": "one", "kind": "predicted", "unit": "x"},
                         {"id": "a.two", "paper": 10.0, "source": "S", "what": "two", "kind": "fitted", "unit": "%"}],
             "claims": [{"id": "c", "source": "S", "text": "one is less", "holds": "a.one < a.two"}]}

    def test_differences(self):
        rows = report.compare(self.PAPER, {"a.one": 2.2, "a.two": 8.9})
        self.assertAlmostEqual(rows[0][5], 10.0)
        self.assertFalse(rows[0][6])
        self.assertAlmostEqual(rows[1][5], -11.0)
        self.assertTrue(rows[1][6])
        self.assertIn("-11.0 %!", report.plain(rows, []))

    def test_what_is_missing_is_no_number(self):
        rows = report.compare(self.PAPER, {"a.one": 2.0})
        self.assertIsNone(rows[1][4])
        self.assertFalse(rows[1][6])
        self.assertEqual(report.texts(rows)[1][4:], ("-", "-"))
        self.assertIsNone(report.holds("a.one < a.two", {"a.one": 1}))

    def test_statements(self):
        self.assertIs(report.holds("a.one < a.two", {"a.one": 1, "a.two": 1e-7}), False)
        self.assertIs(report.holds("a.one - 0.5 < 1.05 * a.two and a.two > 0", {"a.one": 1, "a.two": 2}), True)
        self.assertEqual(report.statements(self.PAPER, {"a.one": 1, "a.two": 2}), [("S", "one is less", True)])
        assumed = {"claims": [dict(self.PAPER["claims"][0], assumed=True)]}
        self.assertEqual(report.statements(assumed, {"a.one": 1, "a.two": 2})[0][2], "assumed")
        self.assertIs(report.statements(assumed, {"a.one": 2, "a.two": 1})[0][2], False)
        for bad in ("__import__('os')", "a.one if 1 else 2", "a.one; 1", "[a.one]"):
            with self.assertRaises((ValueError, SyntaxError)):
                report.holds(bad, {"a.one": 1})

    def test_every_claim_can_be_decided(self):
        for claim in report.load(DATA)["claims"]:
            names = report.NAME.findall(claim["holds"])
            self.assertTrue(names, claim)
            self.assertIn(report.holds(claim["holds"], {n: 1 + i for i, n in enumerate(names)}), (True, False))

    def test_derived(self):
        values = {f"fig12.{a}.{n}": n / 32 for a in ("bodytrack", "streamcluster", "x264") for n in (32, 64)}
        values.update({"table7.x4.not_cs": 90, "table7.x4.csa": 8, "table7.x4.rr": 2,
                       "fig10.rr.x4.2^9": 5.0, "fig10.rr.x4.2^12": 60.0, "fig10.rr.x4.2^19": 20.0, "fig10.rr.x4.2^20": 15.0,
                       "fig10.rr.x1.2^12": 100.0})
        got = report.derive(values)
        self.assertAlmostEqual(got["fig12.mean"], 1.5)
        self.assertAlmostEqual(got["table7.x4.cs_percent"], 10)
        self.assertAlmostEqual(got["table7.x4.rr_percent"], 20)
        self.assertEqual((got["fig10.x4.peak_ns"], got["fig10.x4.second_peak_ns"]), (4096, 524288))
        self.assertNotIn("fig10.x1.second_peak_ns", got)
        self.assertNotIn("fig12.mean", report.derive({"fig12.x264.32": 1}))

    def test_variants(self):
        header, rows = report.spread(self.PAPER, {"a.one": 2.0}, [("other", {"a.one": 3.0}), ("none", {})])
        self.assertEqual(header[3:], ["as above", "other", "none"])
        self.assertEqual(rows, [["S", "one", "2.00", "2.00", "3.00", "-"]])
        share = {"id": "a.three", "paper": 5.0, "source": "S", "what": "three", "kind": "predicted", "unit": "%", "varied": True}
        header, rows = report.spread({"compare": [share]}, {"a.three": 4.0}, [("other", {"a.three": 3.0})])
        self.assertEqual(rows, [["S", "three (%)", "5.00", "4.00", "3.00"]])

    def test_update_touches_its_part_only(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "page.md")
            with open(path, "w") as file:
                file.write(f"head\n{report.BEGIN}\nold\n{report.END}\ntail\n")
            report.update(path, "new")
            with open(path) as file:
                self.assertEqual(file.read(), f"head\n{report.BEGIN}\nnew\n{report.END}\ntail\n")
            with open(path, "w") as file:
                file.write("no place\n")
            with self.assertRaises(ValueError):
                report.update(path, "new")

    def command(self, results):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "results.json")
            with open(path, "w") as file:
                file.write(results)
            out, err = io.StringIO(), io.StringIO()
            with redirect_stdout(out), redirect_stderr(err):
                status = report.main(["--paper", DATA, "--results", path])
            return status, out.getvalue(), err.getvalue()

    def test_command(self):
        status, out, _ = self.command(json.dumps({"values": {"fig12.x264.64": 1.30}}))
        self.assertEqual(status, 0)
        line = [x for x in out.splitlines() if "x264, 64 cores" in x][0]
        self.assertRegex(line, r"predicted +1\.05 +1\.30 +\+23\.8 %!$")

    def test_bad_results_are_refused(self):
        for bad in ("", "[", '{"values": {"a": NaN}}', '{"values": {"a": "1"}}', "{}"):
            status, out, err = self.command(bad)
            self.assertEqual((status, out), (2, ""), bad)
            self.assertEqual(err.count("\n"), 1)

    def test_plots_are_the_same_every_time(self):
        try:
            import paper_plots
        except ImportError:
            self.skipTest("no matplotlib")
        values = {"fig12.x264.32": 1.11, "fig12.x264.64": 1.2, "fig13.x264.a": 1.1}
        for cores in (32, 64):
            for thread in ("T0", "T7"):
                for sync in ("software", "subutai"):
                    for part in ("work", "sync", "total"):
                        values[f"fig12.x264.{cores}.{sync}.{thread}.{part}_s"] = 1.5
        for sync in ("software", "subutai"):
            for policy in ("oat", "rr", "csa"):
                values[f"fig13.x264.{sync}.{policy}.exec_s"] = 2.0
        with tempfile.TemporaryDirectory() as folder:
            drawn = []
            for turn in ("a", "b"):
                files = paper_plots.draw(report.load(DATA), values, os.path.join(folder, turn))
                drawn.append([open(f).read() for f in files])
            self.assertEqual(drawn[0], drawn[1])
            self.assertEqual(len(drawn[0]), 3)
            self.assertNotIn("stuck", "".join(drawn[0]))
            del values["fig13.x264.subutai.rr.exec_s"]
            files = paper_plots.draw(report.load(DATA), values, os.path.join(folder, "c"))
            self.assertEqual(sum(open(f).read().count(">stuck<") for f in files), 1)


if __name__ == "__main__":
    sys.exit(tap.main(sys.modules[__name__]))
