"""The plan's counts as limits: nothing leaves that was not announced, and nothing more often than announced.

Questions are counted by their places in the run. A question that is asked again is the same release. After an
interruption, the server may ask at the same place with other contents: for example, another party is absent now, so the
model to be scored differs. That is a further release at a known place. The party's policy allows `max_repeats` of these
for each thing that leaves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from tertulia.errors import PolicyRefusal
from tertulia.federation.plan import Limit
from tertulia.privacy.releases import Release

Thing = tuple[str, str, str]  # step, verb, what
Occasion = tuple[str, str]  # a place in the run, the hash of what was asked there


class ReleaseLimits:
    """The number of times that each thing may leave in a run, and has left."""

    def __init__(self, limits: Iterable[Limit], left: Iterable[Release], max_repeats: int) -> None:
        self._limits = {(step, verb, what): most for step, verb, what, most in limits}
        self._max_repeats = max_repeats
        self._left: dict[Thing, dict[str, set[str]]] = defaultdict(dict)  # place -> hashes of the questions there
        self._repeats: dict[Thing, int] = defaultdict(int)
        for release in left:
            self.note(release)

    def note(self, release: Release) -> None:
        """Count a release of the ledger."""
        thing, (place, asked) = _thing(release), occasion_of_release(release)
        known = self._left[thing].setdefault(place, set())
        if known and asked not in known:
            self._repeats[thing] += 1
        known.add(asked)

    def check_release(self, release: Release) -> None:
        """Raise `PolicyRefusal` unless the plan announces this release and it has not left too often."""
        self._check(_thing(release), occasion_of_release(release))

    def check_question(self, step: str, verb: str, occasion: Occasion) -> None:
        """Raise if nothing may leave by this question any more, before anything is charged for it."""
        refusals = []
        for thing in [thing for thing in self._limits if thing[:2] == (step, verb)]:
            try:
                self._check(thing, occasion)
                return
            except PolicyRefusal as refusal:
                refusals.append(refusal)
        if refusals:
            raise refusals[0]

    def _check(self, thing: Thing, occasion: Occasion) -> None:
        if thing not in self._limits:
            raise PolicyRefusal("plan", f"'{thing[2]}' is not announced for this step")
        (place, asked), known, most = occasion, self._left.get(thing, {}), self._limits[thing]
        if most is None or asked in known.get(place, ()):
            return
        if place not in known and len(known) >= most:
            raise PolicyRefusal("plan", f"'{thing[2]}' is announced {most} times, and has left as often")
        if len(known) + self._repeats[thing] >= most + self._max_repeats:
            why = f"'{thing[2]}' is announced {most} times and has left {self._max_repeats} times more"
            raise PolicyRefusal("max_repeats", f"{why}, as places in the run were asked again with other contents")


def _thing(release: Release) -> Thing:
    return release.step, release.verb, release.what


def occasion_of_release(release: Release) -> Occasion:
    """Return the place, which follows run and party in a release's id, and the hash of the question."""
    return release.id.removeprefix(f"{release.run}/{release.party}/").partition("/")[0], release.message_hash


def occasion_of(place: tuple[int, int], hash_: str) -> Occasion:
    """Return place and hash of a question, in the same form.

    >>> occasion_of((3, 1), "ab12")
    ('3.1', 'ab12')
    """
    return f"{place[0]}.{place[1]}", hash_
