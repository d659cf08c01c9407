"""A party's long-lived session: it dials the server, answers questions in order, and reconnects when the link breaks.

Link and work are separate. A step continues while the link is down, and its answer leaves on the next stream. A
question that comes twice is answered twice, from the party's log.
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
from tertulia.federation.engines.base import MOST_BYTES
from tertulia.federation.engines.grpc import client, wire
from tertulia.federation.identity.party_identity import Identity
from tertulia.federation.party.failures import ENCODED_FAILURE


class WorkQueue:
    """A queue of length one between link and work: a question that waits, one in work, and an answer to send."""

    def __init__(self, answer: Callable[[bytes], bytes]) -> None:
        self._answer = answer
        self._changed = threading.Condition()
        self._waiting: tuple[int, bytes] | None = None
        self._working: int | None = None
        self._ready: tuple[int, bytes] | None = None
        self._sending: int | None = None
        self._taken: int | None = None  # the last answer that the present stream took
        self._stopped = False

    def add(self, serial: int, frame: bytes) -> None:
        """Queue a question; it replaces an obsolete one that still waits. A repeat is not worked on twice."""
        with self._changed:
            ready = self._ready and self._ready[0]
            if serial not in (self._working, ready, self._taken):
                self._waiting = (serial, frame)
                self._changed.notify_all()

    def run(self) -> None:
        """Answer questions until stopped."""
        while True:
            with self._changed:
                while self._waiting is None and not self._stopped:
                    self._changed.wait()
                if self._stopped or self._waiting is None:
                    return
                (serial, frame), self._waiting = self._waiting, None
                self._working = serial
            try:
                answer = self._answer(frame)
            except Exception:  # the reason must not leave the party
                answer = ENCODED_FAILURE
            del frame
            if len(answer) > MOST_BYTES:  # the server would end every stream that carries it
                answer = ENCODED_FAILURE
            with self._changed:
                self._working, self._ready = None, (serial, answer)
                self._changed.notify_all()

    def take(self, ended: threading.Event) -> tuple[int, bytes] | None:
        """Wait for the next answer to send; None when the stream has ended."""
        with self._changed:
            while self._ready is None and not ended.is_set():
                self._changed.wait()
            if ended.is_set():
                return None
            ready, self._ready = self._ready, None
            self._sending = self._taken = ready[0] if ready else None
            return ready

    def sent(self, serial: int) -> None:
        """Mark an answer as sent."""
        with self._changed:
            if self._sending == serial:
                self._sending = None

    def wake(self) -> None:
        """Wake a stream that has ended; the server asks again, on the next stream, for answers it did not get."""
        with self._changed:
            self._sending = self._taken = None
            self._changed.notify_all()

    def stop(self) -> None:
        """Stop after the question in work."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    @property
    def busy(self) -> bool:
        """Whether a question is in work."""
        return self._working is not None

    @property
    def unsent(self) -> bool:
        """Whether an answer waits to be sent."""
        return self._ready is not None or self._sending is not None


_SHORTEST, _LONGEST = 0.2, 20.0  # seconds of back-off: less than the 30 after which a party counts as absent
_STEADY = 5.0  # seconds; a link that held longer resets the back-off
_TICK = 0.2
_RENEWALS = 60.0  # seconds between two checks of the certificate
_LAST_ANSWER = 5.0  # seconds to send the last answer


class PartySession:
    """A session that stays connected until it is stopped, or refused for good."""

    def __init__(
        self,
        identity: Identity,
        address: str,
        answer: Callable[[bytes], bytes],
        observe: Callable[[str, Mapping[str, object]], None] | None = None,
        keepalive: wire.Keepalive | None = None,
        hear: Callable[[bytes], None] | None = None,
    ) -> None:
        self._identity = identity
        self._address, self._given = wire.Address.parse(address), address
        self._work = WorkQueue(answer)
        self._observe = observe or (lambda kind, facts: None)
        self._keepalive = keepalive or wire.Keepalive()
        self._hear = hear  # receives the server's news of runs
        self._renewals = 0.0  # the time of the next check of the certificate

    def run(self, stop: threading.Event) -> None:
        """Run until `stop` is set, and finish the question in work. Raise `Refused` if a retry would not help."""
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
                    if isinstance(error, client.Refused):
                        raise
                    self._observe("disconnected", {"text": str(error)})
                attempts = 0 if time.monotonic() - started > _STEADY else min(attempts + 1, 10)
                pause = min(_LONGEST, _SHORTEST * 2**attempts)
                stop.wait(random.uniform(pause / 2, pause))  # noqa: S311 - jitter, so that parties do not reconnect at once
        finally:
            self._work.stop()
            worker.join()

    def _connect(self, stop: threading.Event) -> None:
        """Serve one connection, from dialling to its end."""
        shown = self._identity.credentials
        if (expired := client.expired_or_none(shown[1])) is not None:
            raise expired
        with client.open_channel(self._address, self._identity.ca_pem, shown, self._keepalive) as channel:
            ended = threading.Event()
            call = channel.stream_stream(wire.path("Attend"))(
                self._answers(ended), metadata=self._metadata(shown[1]), wait_for_ready=False
            )
            reader = threading.Thread(target=self._read, args=(call, ended), daemon=True)
            reader.start()
            try:
                while not ended.wait(_TICK) and not stop.is_set():
                    if self._renewed():
                        break  # and dial again with the new certificate
                if stop.is_set():
                    self._send_last_answer(ended)
            finally:
                over = ended.is_set()
                ended.set()
                self._work.wake()
                call.cancel()
                reader.join()
            if over and not stop.is_set():
                error = client.connection_error(call, self._address)
                if not isinstance(error, client.Refused) or self._identity.credentials == shown:
                    raise error  # else another process has renewed the certificate: dial again with the new one

    def _metadata(self, certificate_pem: bytes) -> tuple[tuple[str, Any], ...]:
        listens = (wire.LISTENS,) if self._hear is not None else ()
        return (*client.call_metadata(self._address, certificate_pem), *listens)

    def _read(self, call: Any, ended: threading.Event) -> None:
        """Read questions until the stream ends."""
        assembler = wire.Assembler(wire.QUESTION)
        try:
            server = wire.Hello.read(call.initial_metadata())
            if call.is_active():
                self._observe("connected", {"server": str(server)})
            for chunk in call:
                if self._hear is not None and (news := wire.news_or_none(chunk)) is not None:
                    self._hear(news)
                    continue
                received = assembler.take(chunk)
                if received is not None:
                    faults.point("party.after_receive")
                    self._work.add(*received)
        except (grpc.RpcError, FormatError):  # the call has the reason; malformed data end the stream, too
            pass
        finally:
            ended.set()
            self._work.wake()

    def _answers(self, ended: threading.Event) -> Iterator[bytes]:
        """Yield the chunks of answers while the stream lasts; gRPC takes a chunk when it has sent the one before."""
        while (ready := self._work.take(ended)) is not None:
            faults.point("party.before_send")
            for chunk in wire.chunks(wire.ANSWER, *ready):
                if ended.is_set():
                    return
                yield chunk
            self._work.sent(ready[0])

    def _send_last_answer(self, ended: threading.Event) -> None:
        """Finish the question in work, and send its answer."""
        self._work.stop()
        while self._work.busy and not ended.is_set():
            ended.wait(_TICK)
        until = time.monotonic() + _LAST_ANSWER
        while self._work.unsent and not ended.is_set() and time.monotonic() < until:
            ended.wait(0.02)

    def _renewed(self) -> bool:
        """Renew the certificate when it is due; report a failure, and try again later."""
        if time.monotonic() < self._renewals:
            return False
        self._renewals = time.monotonic() + _RENEWALS
        if not self._identity.renewal_due:
            return False
        try:
            client.renew(self._identity, self._given)
        except TertuliaError as error:
            self._observe("warning", {"text": f"the certificate could not be renewed: {error}"})
            return False
        self._observe("renewed", {"expires": self._identity.expires.isoformat()})
        return True
