"""Fault points: named places at which a crash test may kill this process.

No setting of a user activates them. A test arms them from inside the process, with a function that is called with the
name of each point.
"""

from collections.abc import Callable

_armed: list[Callable[[str], None]] = []


def arm(passed: Callable[[str], None]) -> None:
    """Call this function at every point; for tests."""
    _armed[:] = [passed]


def point(name: str) -> None:
    """Pass a fault point."""
    for passed in _armed:
        passed(name)
