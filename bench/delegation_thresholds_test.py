#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""bench/delegation-thresholds: from which share on, out of numbers that are given."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tools", "report"))
sys.dont_write_bytecode = True
import tap  # noqa: E402  after the path is set


def shown(*rows):
    """What is printed of rows (share, ns under glibc, under direct, combine, server)."""
    names = ("glibc", "direct", "delegate-combine", "delegate-server")
    data = {"rows": [{"share": share, "delay_ns": 0,
                      "times": [{"engine": name, "ns_per_op": ns, "min": ns, "max": ns + 1}
                                for name, ns in zip(names, times)]} for share, *times in rows]}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(data, file)
        file.flush()
        return subprocess.run([sys.executable, os.path.join(HERE, "delegation-thresholds"), "--from", file.name],
                              check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


class Thresholds(unittest.TestCase):
    def test_from_the_least_share_on(self):
        lines = shown((90, 200, 120, 100, 110), (50, 200, 120, 190, 110), (20, 100, 90, 95, 94), (10, 100, 90, 99, 99))
        self.assertEqual(lines[-3:], ["Delegation beats POSIX: from 20 % on.", "Delegation beats all others: from 50 % on.",
                                      "For the advice of subutai profile and report: --delegate-from 20,50"])

    def test_in_every_row_above(self):
        lines = shown((90, 200, 250, 100, 110), (50, 100, 250, 100, 100), (20, 100, 250, 50, 50))
        self.assertEqual(lines[-3], "Delegation beats POSIX: from 90 % on.")

    def test_by_a_margin(self):
        lines = shown((90, 100, 100, 96, 99), (50, 100, 100, 50, 50))
        self.assertEqual(lines[-3:], ["Delegation beats POSIX: at no share.", "Delegation beats all others: at no share.",
                                      "For the advice of subutai profile and report: --delegate-from never,never"])

    def test_rows_of_the_table(self):
        lines = shown((89.6, 200, 120, 100, 110))
        self.assertEqual(lines[0], "| share in sections | delay, ns | glibc | direct | delegate-combine | delegate-server |")
        self.assertEqual(lines[2], "| 90 % | 0 | 200 (200 to 201) | 120 (120 to 121) | 100 (100 to 101) | 110 (110 to 111) |")


if __name__ == "__main__":
    sys.exit(tap.main(sys.modules[__name__]))
