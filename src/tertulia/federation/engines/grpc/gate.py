"""The server's side: one port, mutual TLS always, and the few calls that a party may make.

Whoever calls shows a certificate; the register of members says whose it is, at every call and as long as a stream
lasts. What is refused is refused with a constant.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn, Protocol

import grpc
from cryptography import x509

from tertulia._memory import keep_blocks
from tertulia.errors import ConfigError, FormatError, Stranger, TertuliaError
from tertulia.federation import faults
from tertulia.federation.engines.grpc import wire
from tertulia.federation.engines.grpc.listening import Listening, cannot_listen, check_free, server_credentials
from tertulia.federation.engines.grpc.seats import GrpcTransport, Observe, Seats, Stream
from tertulia.federation.identity import keys
from tertulia.federation.identity.authority import Authority
from tertulia.federation.identity.members import REASONS, Members
from tertulia.federation.types import PartyId

NO_CERTIFICATE = "this call showed no certificate"
BROKEN = "the server could not do this: its log has the reason"
WRONG_REQUEST = "this request cannot be read"

_LOOK = 1.0  # seconds between two looks at the register, so that a revoked member's stream ends
_SPARE = 32  # threads beside those of streams
_LONGEST = 200  # bytes of a run's name
_log = logging.getLogger("tertulia.server")


class Desk(Protocol):
    """What the gate asks the run's side. A `ConfigError` that it raises is shown at the party, nothing else is."""

    def proposal(self) -> bytes:
        """The run that parties are asked to approve."""

    def approve(self, member: str, approval: bytes) -> bytes:
        """Note a member's approval; return the answer to it."""

    def leave(self, member: str) -> None:
        """Note that a member leaves."""

    def model(self, member: str, run: str) -> bytes:
        """The model of a finished run that this member takes part in."""


class Gate:
    """Lets members in, and keeps their streams."""

    def __init__(
        self,
        authority: Authority,
        members: Members,
        desk: Desk,
        listen: str | Listening,
        observe: Observe | None = None,
    ) -> None:
        self._authority, self._members, self._desk = authority, members, desk
        self._listening = listen if isinstance(listen, Listening) else Listening(listen)
        self._address = wire.Address.parse(self._listening.address)
        self.observe: Observe = observe or (lambda kind, facts: None)
        self.seats = Seats()
        self._server: Any = None
        self._open: set[Stream] = set()
        self._lock = threading.Lock()

    # --- for the server -------------------------------------------------------------------------------------------

    def start(self) -> int:
        """Listen; return the port."""
        keep_blocks()
        check_free(self._address)
        threads = 4 * len(self._members.names) + _SPARE  # a stream has one, and may outlive its link for a while
        self._server = grpc.server(
            ThreadPoolExecutor(threads, thread_name_prefix="gate"),
            options=[*wire.options(self._listening.keepalive), ("grpc.so_reuseport", 0)],
            handlers=[grpc.method_handlers_generic_handler(wire.SERVICE, self._handlers())],
        )
        target, hosts = self._address.target, self._listening.hosts or [self._address.host]
        try:
            if self._address.plain:
                port = self._server.add_insecure_port(target)
            else:
                port = self._server.add_secure_port(target, server_credentials(self._authority, hosts))
        except RuntimeError:
            port = 0
        if not port:
            raise cannot_listen(self._address, "the port is taken, or the address is not this machine's")
        self._server.start()
        return int(port)

    def stop(self, grace: float = 2.0) -> None:
        """Let all streams go, and listen no more."""
        with self._lock:
            streams = list(self._open)
        for stream in streams:
            stream.end(wire.CLOSING)
        if self._server is not None:
            self._server.stop(grace).wait()

    @property
    def connected(self) -> dict[PartyId, float]:
        """Who is there now, and since when (seconds since 1970)."""
        return self.seats.connected

    def transport(self, roster: Sequence[PartyId], absent_after: float = 30.0) -> GrpcTransport:
        """What carries a run's frames to these members."""
        return GrpcTransport(self.seats, roster, absent_after)

    # --- who calls ------------------------------------------------------------------------------------------------

    def _handlers(self) -> dict[str, Any]:
        calls = {
            "Enrol": self._enrol, "Renew": self._renew, "Proposal": self._proposal, "Approve": self._approve,
            "Leave": self._leave, "Time": self._time,
        }  # fmt: skip
        unary = {name: grpc.unary_unary_rpc_method_handler(self._guarded(call)) for name, call in calls.items()}
        return {
            **unary,
            "Model": grpc.unary_stream_rpc_method_handler(self._model),
            "Attend": grpc.stream_stream_rpc_method_handler(self._attend),
        }

    def _guarded(self, call: Callable[[bytes, Any, x509.Certificate], bytes]) -> Callable[[bytes, Any], bytes]:
        """A call whose caller is known by its certificate, and whose failures say nothing but constants."""

        def answered(request: bytes, context: Any) -> bytes:
            certificate = self._greet(context)
            try:
                return call(request, context, certificate)
            except Stranger as error:
                self._refuse(context, keys.name_of(certificate), str(error))
            except ConfigError as error:  # the desk's word
                context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
            except (FormatError, ValueError, TypeError, LookupError):
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, WRONG_REQUEST)
            except Exception as error:  # gRPC would send its text
                self._break(context, error)
            raise AssertionError("`abort` raises")

        return answered

    def _greet(self, context: Any) -> x509.Certificate:
        """Check the caller's version, and return its certificate."""
        mine, party = wire.Hello(), wire.Hello.read(context.invocation_metadata())
        if (difference := wire.difference_or_none(mine, party)) is not None:
            self.observe("refused", {"text": difference})
            context.set_trailing_metadata(((wire.HELLO, mine.to_bytes()),))
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, wire.OTHER_PROTOCOL)
        shown = context.auth_context().get("x509_pem_cert", [])
        if self._address.plain:  # on this machine alone, and only when asked for: taken at its word
            shown = [value for key, value in context.invocation_metadata() if key == wire.CERTIFICATE]
        try:
            return keys.read_certificate(shown[0])
        except (FormatError, LookupError):
            self._refuse(context, "", NO_CERTIFICATE)

    def _break(self, context: Any, error: Exception) -> NoReturn:
        _log.error("a member's call failed", exc_info=error)
        context.abort(grpc.StatusCode.INTERNAL, BROKEN)
        raise AssertionError("`abort` raises")

    def _refuse(self, context: Any, name: str, reason: str) -> NoReturn:
        self.observe("refused", {"text": f"a caller was refused: {reason}", "name": name[: keys.MOST_LETTERS]})
        context.abort(grpc.StatusCode.PERMISSION_DENIED, reason)
        raise AssertionError("`abort` raises")

    # --- calls ----------------------------------------------------------------------------------------------------

    def _enrol(self, request: bytes, context: Any, certificate: x509.Certificate) -> bytes:
        """Sign a party's first certificate; with an invitation, and nothing else."""
        member = self._members.invited_by(certificate)
        signed = self._authority.sign(json.loads(request)["csr"].encode(), member)
        self._members.enrol(member, f"{certificate.serial_number:x}", signed)
        self.observe("joined", {"name": member})
        return signed

    def _renew(self, request: bytes, context: Any, certificate: x509.Certificate) -> bytes:
        """Sign a member's next certificate, for a key that its old key vouches for."""
        member = self._members.admits(certificate)
        facts = json.loads(request)
        csr = facts["csr"].encode()
        keys.check_renewal(certificate, csr, bytes.fromhex(facts["signature"]))
        signed = self._authority.sign(csr, member)
        self._members.renew(member, signed)
        self.observe("renewed", {"name": member})
        return signed

    def _proposal(self, request: bytes, context: Any, certificate: x509.Certificate) -> bytes:
        self._members.admits(certificate)
        return self._desk.proposal()

    def _approve(self, request: bytes, context: Any, certificate: x509.Certificate) -> bytes:
        return self._desk.approve(self._members.admits(certificate), request)

    def _leave(self, request: bytes, context: Any, certificate: x509.Certificate) -> bytes:
        member = self._members.admits(certificate)
        self._desk.leave(member)
        self._members.leave(member)
        self.observe("left", {"name": member})
        return b""

    def _time(self, request: bytes, context: Any, certificate: x509.Certificate) -> bytes:
        """The clock here, by which a party can set its own."""
        self._members.admits(certificate)
        return keys.now().isoformat().encode()

    def _model(self, request: bytes, context: Any) -> Iterator[bytes]:
        """A run's model, in chunks: it may be longer than a message. Who is revoked meanwhile gets no more of it."""

        def found(request: bytes, context: Any, certificate: x509.Certificate) -> bytes:
            return self._desk.model(self._members.admits(certificate), request[:_LONGEST].decode())

        def still(request: bytes, context: Any, certificate: x509.Certificate) -> bytes:
            return self._members.admits(certificate).encode()

        for chunk in wire.chunks(wire.MODEL, 0, self._guarded(found)(request, context)):
            yield chunk
            self._guarded(still)(request, context)

    # --- the stream -----------------------------------------------------------------------------------------------

    def _attend(self, requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        """Keep a member's stream: questions go out here, a thread takes in the answers."""
        certificate = self._greet(context)
        try:
            member = self._members.admits(certificate)
        except Stranger as error:
            self._refuse(context, keys.name_of(certificate), str(error))
        except TertuliaError as error:  # a damaged register, say
            self._break(context, error)
        stream = Stream()
        if not context.add_callback(stream.end):  # the link is gone already
            return
        with self._lock:
            self._open.add(stream)
        context.send_initial_metadata(((wire.HELLO, wire.Hello().to_bytes()),))
        self.seats.sit(member, stream, wire.NEWER_STREAM)
        self.observe("connected", {"name": member})
        threading.Thread(target=self._take_in, args=(member, stream, requests), daemon=True).start()
        try:
            yield from self._questions(member, stream, certificate)
        finally:
            with self._lock:
                self._open.discard(stream)
            if self.seats.rise(member, stream):
                self.observe("disconnected", {"name": member})
        if stream.reason is not None:
            lasting = stream.reason in REASONS
            context.abort(grpc.StatusCode.PERMISSION_DENIED if lasting else grpc.StatusCode.ABORTED, stream.reason)

    def _questions(self, member: PartyId, stream: Stream, certificate: x509.Certificate) -> Iterator[bytes]:
        """The chunks of each question, in turn; none of one that is past its time."""
        seat = self.seats.seat(member)
        while not stream.ended:
            question = stream.next_or_none(_LOOK)
            try:
                self._members.admits(certificate)
            except TertuliaError as error:  # revoked, say; or the register is damaged: nobody can be sure
                stream.end(str(error) if isinstance(error, Stranger) else BROKEN)
                return
            if question is None:
                continue
            faults.point("server.before_send")
            for chunk in wire.chunks(wire.QUESTION, *question):
                if stream.ended or seat.wanted != question[0]:
                    break
                yield chunk

    def _take_in(self, member: PartyId, stream: Stream, requests: Iterator[bytes]) -> None:
        """Take answers until the stream ends, or carries what cannot be: then the party loses it, and no more."""
        seat, assembler = self.seats.seat(member), wire.Assembler(wire.ANSWER)
        try:
            for chunk in requests:
                received = assembler.take(chunk, seat.wanted)
                if stream.ended:
                    return
                if received is not None:
                    faults.point("server.after_receive")
                    self.seats.take(member, *received)
        except FormatError:
            self.observe("warning", {"text": f"party '{member}': {wire.NONSENSE}"})
            self.seats.breach(member)
            stream.end(wire.NONSENSE)
        except Exception:  # the link broke: gRPC has an error of its own for it
            stream.end()
        else:
            stream.end()
