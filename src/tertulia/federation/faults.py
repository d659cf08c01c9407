"""Fault points: places where a crash test may kill this process, named so that a kill can be aimed.

Nothing that a user can set makes a point do anything. Tests arm it from inside the process, with a function that is
called with each name that is passed.
"""

from collections.abc import Callable

_armed: list[Callable[[str], None]] = []


def arm(passed: Callable[[str], None]) -> None:
    """Call a function at every point; for tests."""
    _armed[:] = [passed]


def point(name: str) -> None:
    """Pass a fault point."""
    for passed in _armed:
        passed(name)
