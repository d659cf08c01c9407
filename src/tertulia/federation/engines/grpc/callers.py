"""The callers of the service: a caller is identified by its certificate before any of its request is read.

A call takes one of the server's threads. The service refuses a caller that is not a member, or no longer one, as soon
as its thread starts. A member has at most `MOST_CALLS` open calls: one more ends its oldest.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import grpc
from cryptography import x509

from tertulia.errors import ConfigError, FormatError, Stranger, TertuliaError
from tertulia.federation.engines.grpc import wire
from tertulia.federation.identity import keys

_EVERY = 60.0  # seconds
_MOST = 1000  # subjects that are remembered


class Throttle:
    """Limits log messages that strangers can cause: one per subject and minute, with the number of those left out."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[
            Hashable, tuple[float, int]
        ] = {}  # the time of the last message, and the number left out since

    def due(self, subject: Hashable) -> int | None:
        """Return the number of messages left out since the last one, or None if this one must be left out, too."""
        now = time.monotonic()
        with self._lock:
            written, left_out = self._seen.get(subject, (-_EVERY, 0))
            if now - written < _EVERY:
                self._seen[subject] = (written, left_out + 1)
                return None
            if len(self._seen) >= _MOST:
                self._seen.clear()
            self._seen[subject] = (now, 0)
            return left_out


NO_CERTIFICATE = "this call showed no certificate"
BROKEN = "the server could not do this: its log has the reason"
WRONG_REQUEST = "this request cannot be read"
MOST_CALLS = 4  # open calls of one caller: a stream, one on a link that broke unnoticed, and two short ones

Observe = Callable[[str, dict[str, object]], None]
MemberOf = Callable[[x509.Certificate], str]
_log = logging.getLogger("tertulia.server")


class Callers:
    """Admits members, refuses other callers, and limits the open calls of each."""

    def __init__(self, observe: Observe, admitted: Callable[[str, str], None], plain: bool) -> None:
        self._observe, self._admitted, self._plain = observe, admitted, plain
        self._lock = threading.Lock()
        self._open: dict[str, list[Any]] = {}  # the calls of each caller, oldest first
        self._throttle = Throttle()

    @contextmanager
    def admit(self, context: Any, member_of: MemberOf) -> Iterator[tuple[str, x509.Certificate]]:
        """Admit a caller for one call. A failure inside ends the call with a constant text."""
        certificate = self._certificate(context)
        shown = keys.name_of(certificate)
        try:
            name = member_of(certificate)
        except Stranger as error:
            self._refuse(context, shown, str(error))
        except TertuliaError as error:  # for example, a damaged register
            _abort(context, error)
        caller = name if name == shown else f"{shown} of {name}"  # an invitation must not end a member's calls
        try:
            self._begin(caller, context)
            try:
                self._admitted(context.peer(), caller)
                yield name, certificate
            finally:
                self._end(caller, context)
        except Stranger as error:
            self._refuse(context, shown, str(error))
        except ConfigError as error:  # from the backend, for the party to read
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
        except (FormatError, ValueError, TypeError, LookupError):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, WRONG_REQUEST)
        except grpc.RpcError:  # the call has ended already
            context.abort(grpc.StatusCode.CANCELLED, "")
        except Exception as error:  # gRPC would send its text
            _abort(context, error)

    def _certificate(self, context: Any) -> x509.Certificate:
        """Check the caller's protocol version, and return its certificate."""
        mine, party = wire.Hello(), wire.Hello.read(context.invocation_metadata())
        if (difference := wire.difference_or_none(mine, party)) is not None:
            self._note(difference, difference, "")
            context.set_trailing_metadata(((wire.HELLO, mine.to_bytes()),))
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, wire.OTHER_PROTOCOL)
        shown = context.auth_context().get("x509_pem_cert", [])
        if self._plain:  # loopback without TLS, on request only: the claim is trusted
            shown = [value for key, value in context.invocation_metadata() if key == wire.CERTIFICATE]
        try:
            return keys.read_certificate(shown[0])
        except (FormatError, LookupError):
            self._refuse(context, "", NO_CERTIFICATE)

    def _refuse(self, context: Any, name: str, reason: str) -> NoReturn:
        self._note((name, reason), f"a caller was refused: {reason}", name)
        context.abort(grpc.StatusCode.PERMISSION_DENIED, reason)
        raise AssertionError("`abort` raises")

    def _begin(self, caller: str, context: Any) -> None:
        with self._lock:
            calls = self._open.setdefault(caller, [])
            calls.append(context)
            oldest = calls.pop(0) if len(calls) > MOST_CALLS else None
        if oldest is not None:
            oldest.cancel()
            self._note((caller, "calls"), f"more than {MOST_CALLS} calls at once: the oldest is ended", caller)

    def _end(self, caller: str, context: Any) -> None:
        with self._lock:
            left = [call for call in self._open.get(caller, []) if call is not context]
            self._open[caller] = left
            if not left:
                del self._open[caller]

    def _note(self, subject: object, text: str, name: str) -> None:
        """Report a refusal, once per subject and minute."""
        if (more := self._throttle.due(subject)) is not None:
            text += f" ({more} more since the last message)" if more else ""
            facts: dict[str, object] = {"text": text, "name": name[: keys.MOST_LETTERS]}
            self._observe("refused", facts if name else {"text": text})


def _abort(context: Any, error: Exception) -> NoReturn:
    _log.error("a member's call failed", exc_info=error)
    context.abort(grpc.StatusCode.INTERNAL, BROKEN)
    raise AssertionError("`abort` raises")
