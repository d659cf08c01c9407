"""A party's work, apart from its link: one question is answered at a time, and one may wait."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tertulia.federation.engines.base import MOST_BYTES
from tertulia.federation.party.failures import ENCODED_FAILURE


class Work:
    """The question in work, the one that waits, and the answer that waits for a stream: one of each at most."""

    def __init__(self, answer: Callable[[bytes], bytes]) -> None:
        self._answer = answer
        self._changed = threading.Condition()
        self._waiting: tuple[int, bytes] | None = None
        self._working: int | None = None
        self._ready: tuple[int, bytes] | None = None
        self._sending: int | None = None
        self._taken: int | None = None  # the last answer that went onto the stream that lasts
        self._stopped = False

    def add(self, serial: int, frame: bytes) -> None:
        """Take a question, in place of one that still waits: it is past its time. A repeat is not worked twice."""
        with self._changed:
            ready = self._ready and self._ready[0]
            if serial not in (self._working, ready, self._taken):
                self._waiting = (serial, frame)
                self._changed.notify_all()

    def run(self) -> None:
        """Answer questions until it is stopped."""
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
            except Exception:  # whatever it is, it stays here
                answer = ENCODED_FAILURE
            del frame
            if len(answer) > MOST_BYTES:  # the server would end the stream over it, again and again
                answer = ENCODED_FAILURE
            with self._changed:
                self._working, self._ready = None, (serial, answer)
                self._changed.notify_all()

    def take(self, ended: threading.Event) -> tuple[int, bytes] | None:
        """The next answer to send, for a stream; None when that has ended."""
        with self._changed:
            while self._ready is None and not ended.is_set():
                self._changed.wait()
            if ended.is_set():
                return None
            ready, self._ready = self._ready, None
            self._sending = self._taken = ready[0] if ready else None
            return ready

    def sent(self, serial: int) -> None:
        """An answer has left."""
        with self._changed:
            if self._sending == serial:
                self._sending = None

    def wake(self) -> None:
        """Let a stream see that it has ended; what it did not bring to the server is asked again on the next."""
        with self._changed:
            self._sending = self._taken = None
            self._changed.notify_all()

    def stop(self) -> None:
        """Take no more questions."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    @property
    def busy(self) -> bool:
        """Whether a question is in work."""
        return self._working is not None

    @property
    def unsent(self) -> bool:
        """Whether an answer has not left yet."""
        return self._ready is not None or self._sending is not None
