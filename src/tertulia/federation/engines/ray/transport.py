"""The transport of engine `ray`: one actor for each party, spread over the nodes of the cluster.

Frames are plain bytes, which Ray carries unchanged, large ones through its object store. An actor that dies, alone or
with its node, is started and asked again, on another node if necessary; its answer log makes the repeat harmless.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import ray

import tertulia
from tertulia.federation.codec import encode
from tertulia.federation.engines.base import EngineSetup
from tertulia.federation.engines.ray.actor import PartyActor
from tertulia.federation.engines.ray.cluster import connection
from tertulia.federation.messages import Answer
from tertulia.federation.method_modules import folders_of
from tertulia.federation.types import PartyId

_RESTARTS = 5  # in a row, for one question
_PATIENCE = 10.0  # seconds for parties to finish the step in work


class RayTransport:
    """Carries frames to actors."""

    def __init__(self, setup: EngineSetup) -> None:
        self._directories = {party: str(path.resolve()) for party, path in setup.directories.items()}
        self._rest = (dict(setup.pins), folders_of(setup.pins), (str(Path.cwd()), tertulia.__version__))
        self._stack = ExitStack()
        self._stack.enter_context(connection(setup.address))
        # Ray must not restart actors: a call to a restarting actor fails at once, one to a new actor waits for it.
        # Each actor claims a small share of a processor, so that Ray spreads any number of them evenly.
        self._kind = ray.remote(max_restarts=0, num_cpus=0.01, scheduling_strategy="SPREAD")(PartyActor)
        self._actors = {party: self._start(party) for party in self._directories}
        self._why: dict[PartyId, str] = {}  # Ray's reason for the last death of a party's actor
        self._late: dict[PartyId, Any] = {}  # calls that timed out before they were answered

    def _start(self, party: PartyId) -> Any:
        return self._kind.remote(self._directories[party], *self._rest)

    @property
    def parties(self) -> list[PartyId]:
        """The parties in the order in which they were given."""
        return list(self._actors)

    def ask(
        self, frames: Mapping[PartyId, bytes], timeout: float | None, enough: int | None = None
    ) -> dict[PartyId, bytes]:
        """Ask all at once; return the answers that come in time. A busy party is asked when it has finished."""
        deadline = None if timeout is None else time.monotonic() + timeout
        late = {party: self._late.pop(party) for party in frames if party in self._late}
        calls = {late.get(party) or self._call(party, frame): party for party, frame in frames.items()}
        answers: dict[PartyId, bytes] = {}
        deaths: Counter[PartyId] = Counter()
        while calls:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready, _ = ray.wait(list(calls), timeout=left)
            if not ready:
                break
            party = calls.pop(ready[0])
            answer = self._answer_or_none(party, ready[0])
            if late.pop(party, None) is not None:  # to an earlier question
                calls[self._call(party, frames[party])] = party
            elif answer is not None:
                answers[party] = answer
            elif (deaths := deaths + Counter([party]))[party] > _RESTARTS:
                text = f"it died {deaths[party]} times over one question: see its log ({self._why[party]})"
                answers[party] = encode(Answer("failed", text, None))
            else:
                calls[self._call(party, frames[party])] = party
        self._late |= {party: call for call, party in calls.items()}
        return {party: answers[party] for party in frames if party in answers}

    def _call(self, party: PartyId, frame: bytes) -> Any:
        return self._actors[party].answer.remote(frame)

    def _answer_or_none(self, party: PartyId, call: Any) -> bytes | None:
        """Return the answer; None if the actor has died, and start another in its place."""
        try:
            answer: bytes = ray.get(call)
            return answer
        except ray.exceptions.RayTaskError as error:  # the party's host itself raised
            return encode(Answer("failed", f"{type(error.cause).__name__} in its host", None))
        except ray.exceptions.RayError as error:
            self._why[party] = _reason(error)
            self._end(party)
            self._actors[party] = self._start(party)
            return None

    def _end(self, party: PartyId) -> None:
        with suppress(ray.exceptions.RayError):
            ray.kill(self._actors[party])

    def close(self) -> None:
        """End all actors, and Ray if it is ours."""
        with self._stack:
            leaving = [actor.leave.remote() for actor in self._actors.values()]
            ray.wait(leaving, num_returns=len(leaving), timeout=_PATIENCE)
            for party in self._actors:
                self._end(party)


def _reason(error: Exception) -> str:
    """Return the last line of Ray's reason why an actor died."""
    last = str(error).strip().splitlines()[-1].strip()
    return "it never began: have all nodes RAY_AUTH_MODE=token, and one token?" if "never ran" in last else last


def start(setup: EngineSetup) -> RayTransport:
    """Connect to Ray, or start one, and start an actor for every party."""
    return RayTransport(setup)
