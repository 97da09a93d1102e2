# SPDX-License-Identifier: LGPL-2.1-or-later
"""The tests of a module of Python's unittest, reported in the Test Anything Protocol, which meson reads."""
import sys
import unittest


class Tap(unittest.TextTestResult):
    number = 0

    def point(self, test, ok, more=""):
        Tap.number += 1
        print(f"{'ok' if ok else 'not ok'} {Tap.number} - {test.id()}{more}", flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.point(test, True)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.point(test, False)

    def addError(self, test, err):
        super().addError(test, err)
        self.point(test, False)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.point(test, True, f" # SKIP {reason}")


def main(module):
    """Run the tests of the module; the exit status."""
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    outcome = unittest.TextTestRunner(stream=sys.stderr, resultclass=Tap, verbosity=0).run(suite)
    print(f"1..{Tap.number}")
    return 0 if outcome.wasSuccessful() else 1
