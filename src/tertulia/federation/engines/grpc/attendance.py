"""A party's long-lived connection: it dials out, answers questions in order, and comes back when the link breaks.

The link and the work are apart. A step goes on while the link is down, and its answer leaves by whatever stream there
is then; a question that comes twice is answered twice, from the party's log.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import grpc

from tertulia._memory import keep_blocks
from tertulia.errors import ConnectionTrouble, FormatError, TertuliaError
from tertulia.federation import faults
from tertulia.federation.engines.grpc import calls, dial, wire
from tertulia.federation.engines.grpc.work import Work
from tertulia.federation.identity.own import Identity

_SHORTEST, _LONGEST = 0.2, 20.0  # seconds between two attempts: within the 30 after which a party counts as absent
_STEADY = 5.0  # a link that held for so long was no attempt: the next begins anew
_TICK = 0.2
_RENEWALS = 60.0  # seconds between two looks at the certificate
_LAST_WORDS = 5.0  # seconds for the last answer to leave


class Attendance:
    """Stays connected until it is stopped, or refused for good."""

    def __init__(
        self,
        identity: Identity,
        address: str,
        answer: Callable[[bytes], bytes],
        observe: Callable[[str, Mapping[str, object]], None] | None = None,
        keepalive: wire.Keepalive | None = None,
    ) -> None:
        self._identity = identity
        self._address, self._given = wire.Address.parse(address), address
        self._work = Work(answer)
        self._observe = observe or (lambda kind, facts: None)
        self._keepalive = keepalive or wire.Keepalive()
        self._renewals = 0.0  # when the certificate is looked at again

    def run(self, stop: threading.Event) -> None:
        """Attend until `stop` is set; the question in work is still answered. Raise `Refused` if there is no use."""
        keep_blocks()
        worker = threading.Thread(target=self._work.run, name="party-work")
        worker.start()
        attempts = -1
        try:
            while not stop.is_set():
                started = time.monotonic()
                try:
                    self._connect(stop)
                except ConnectionTrouble as error:
                    if isinstance(error, dial.Refused):
                        raise
                    self._observe("disconnected", {"text": str(error)})
                attempts = 0 if time.monotonic() - started > _STEADY else min(attempts + 1, 10)
                pause = min(_LONGEST, _SHORTEST * 2**attempts)
                stop.wait(random.uniform(pause / 2, pause))  # noqa: S311 - so that not all come back at once
        finally:
            self._work.stop()
            worker.join()

    def _connect(self, stop: threading.Event) -> None:
        """One connection, from the dialling to its end."""
        shown = self._identity.credentials
        if (expired := dial.expired_or_none(shown[1])) is not None:
            raise expired
        with dial.channel(self._address, self._identity.ca_pem, shown, self._keepalive) as channel:
            ended = threading.Event()
            call = channel.stream_stream(wire.path("Attend"))(
                self._answers(ended), metadata=dial.metadata(self._address, shown[1]), wait_for_ready=False
            )
            reader = threading.Thread(target=self._read, args=(call, ended), daemon=True)
            reader.start()
            try:
                while not ended.wait(_TICK) and not stop.is_set():
                    if self._renewed():
                        break  # and dial again with the new certificate
                if stop.is_set():
                    self._say_last_words(ended)
            finally:
                over = ended.is_set()
                ended.set()
                self._work.wake()
                call.cancel()
                reader.join()
            if over and not stop.is_set():
                error = dial.trouble(call, self._address)
                if not isinstance(error, dial.Refused) or self._identity.credentials == shown:
                    raise error  # else another process has renewed the certificate: dial again with the new one

    def _read(self, call: Any, ended: threading.Event) -> None:
        """Take in questions until the stream ends."""
        assembler = wire.Assembler(wire.QUESTION)
        try:
            server = wire.Hello.read(call.initial_metadata())
            if call.is_active():
                self._observe("connected", {"server": str(server)})
            for chunk in call:
                received = assembler.take(chunk)
                if received is not None:
                    faults.point("party.after_receive")
                    self._work.add(*received)
        except (grpc.RpcError, FormatError):  # why it ended is in the call; nonsense ends it as well
            pass
        finally:
            ended.set()
            self._work.wake()

    def _answers(self, ended: threading.Event) -> Iterator[bytes]:
        """The chunks of answers, for as long as this stream lasts; gRPC takes the next when the last is under way."""
        while (ready := self._work.take(ended)) is not None:
            faults.point("party.before_send")
            for chunk in wire.chunks(wire.ANSWER, *ready):
                if ended.is_set():
                    return
                yield chunk
            self._work.sent(ready[0])

    def _say_last_words(self, ended: threading.Event) -> None:
        """Finish the question in work, and let its answer leave."""
        self._work.stop()
        while self._work.busy and not ended.is_set():
            ended.wait(_TICK)
        until = time.monotonic() + _LAST_WORDS
        while self._work.unsent and not ended.is_set() and time.monotonic() < until:
            ended.wait(0.02)

    def _renewed(self) -> bool:
        """Get a new certificate when it is time; that it fails is said, and tried again later."""
        if time.monotonic() < self._renewals:
            return False
        self._renewals = time.monotonic() + _RENEWALS
        if not self._identity.renewal_due:
            return False
        try:
            calls.renew(self._identity, self._given)
        except TertuliaError as error:
            self._observe("warning", {"text": f"the certificate could not be renewed: {error}"})
            return False
        self._observe("renewed", {"expires": self._identity.expires.isoformat()})
        return True
