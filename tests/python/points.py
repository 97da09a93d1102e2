# SPDX-License-Identifier: LGPL-2.1-or-later
"""TAP for the tests in Python."""

from collections.abc import Callable

_n_points = 0


def point(good: bool, text: str) -> None:
    """One result."""
    global _n_points
    _n_points += 1
    print(f"{'ok' if good else 'not ok'} {_n_points} - {text}", flush=True)  # run_as_long sees that the test goes on


def raises(kind: type[Exception], text: str, call: Callable[[], object]) -> bool:
    """Does the call raise this, with the text in it?"""
    try:
        call()
    except kind as error:
        print(f"# {error}")
        return text in str(error)
    return False


def done() -> None:
    """The plan, at the end."""
    print(f"1..{_n_points}")
