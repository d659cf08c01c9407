"""The server's gRPC service: one port, mutual TLS, and the few calls that a party may make.

Every caller shows a certificate. The register of members is checked at every call, and again while a stream lasts.
Refusals carry constant texts.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import grpc
from cryptography import x509

from tertulia._memory import keep_blocks
from tertulia.errors import FormatError, Stranger, TertuliaError
from tertulia.federation import faults
from tertulia.federation.engines.grpc import wire
from tertulia.federation.engines.grpc.callers import BROKEN, MOST_CALLS, Callers, MemberOf
from tertulia.federation.engines.grpc.connections import Connections, GrpcTransport, Observe, Stream
from tertulia.federation.engines.grpc.listener import ListenOptions, listen, server_credentials
from tertulia.federation.engines.grpc.proxy import Proxy
from tertulia.federation.identity import keys
from tertulia.federation.identity.authority import Authority
from tertulia.federation.identity.members import REASONS, Members
from tertulia.federation.types import PartyId

Call = Callable[[bytes, str, x509.Certificate], bytes]

_LOOK = 1.0  # seconds between two looks at the register, so that a revoked member's stream ends
_SPARE = 32  # threads for calls that are refused, beside those of members
_LONGEST = 200  # bytes of a run's name
_LIMITS = [  # on connections that have passed the proxy
    ("grpc.server_handshake_timeout_ms", 10_000),  # a slow line needs a few seconds
    ("grpc.max_connection_idle_ms", 60_000),  # without any call
    ("grpc.max_concurrent_streams", 16),  # per connection
]


class RunBackend(Protocol):
    """The side of the server that knows runs. Of its errors, only the text of a `ConfigError` reaches the party."""

    def proposal(self) -> bytes:
        """Return the run that parties are asked to approve."""

    def approve(self, member: str, approval: bytes) -> bytes:
        """Record a member's approval; return the answer to it."""

    def leave(self, member: str) -> None:
        """Record that a member leaves."""

    def model(self, member: str, run: str) -> bytes:
        """Return the model of a finished run that this member takes part in."""

    def news(self, member: PartyId) -> bytes:
        """Return the state of a member's runs, at most one chunk."""


class News:
    """The state of runs, sent on one party's stream between questions: at its start, and after each change.

    Only a party that announces `wire.LISTENS` gets news; an earlier version would take it for malformed data.
    """

    def __init__(self, backend: RunBackend, member: PartyId, metadata: Sequence[tuple[str, Any]]) -> None:
        self._backend, self._member = backend, member
        self._listens = wire.LISTENS in [tuple(pair) for pair in metadata]
        self._sent: bytes | None = None

    def chunks(self, *, idle: bool) -> list[bytes]:
        """Return the chunks of news that were not sent before; after the first time, only on an idle stream."""
        if not self._listens or (self._sent is not None and not idle):
            return []
        try:
            news = self._backend.news(self._member)
        except (TertuliaError, OSError):  # for example, a file is being replaced: the next look finds it
            return []
        if news == self._sent or len(news) > wire.CHUNK:
            return []
        self._sent = news
        return list(wire.chunks(wire.NEWS, 0, news))


class Service:
    """Admits members, answers their calls and keeps their streams."""

    def __init__(
        self,
        authority: Authority,
        members: Members,
        backend: RunBackend,
        listen: str | ListenOptions,
        observe: Observe | None = None,
    ) -> None:
        self._authority, self._members, self._backend = authority, members, backend
        self._options = listen if isinstance(listen, ListenOptions) else ListenOptions(listen)
        self._address = wire.Address.parse(self._options.address)
        self.observe: Observe = observe or (lambda kind, facts: None)
        self.connections = Connections()
        self._server: Any = None
        self._proxy: Proxy | None = None
        self._callers = Callers(lambda kind, facts: self.observe(kind, facts), self._admitted, self._address.plain)
        self._open: set[Stream] = set()
        self._lock = threading.Lock()

    # --- for the server -------------------------------------------------------------------------------------------

    def start(self) -> int:
        """Start to listen; return the port."""
        keep_blocks()
        listeners = listen(self._address)
        pings = self._options.keepalive
        self._proxy = Proxy(self._address, listeners, pings.every + pings.patience, self._warn, self._options.folder)
        threads = 2 * MOST_CALLS * len(self._members.names) + _SPARE  # for all calls of members and of invitations
        self._server = grpc.server(
            ThreadPoolExecutor(threads, thread_name_prefix="service"),
            options=[*wire.options(pings), *_LIMITS],
            handlers=[grpc.method_handlers_generic_handler(wire.SERVICE, self._handlers())],
        )
        try:
            if self._address.plain:
                self._server.add_insecure_port(self._proxy.target)
            else:
                hosts = self._options.hosts or [self._address.host]
                self._server.add_secure_port(self._proxy.target, server_credentials(self._authority, hosts))
        except BaseException:
            self._proxy.stop()
            raise
        self._server.start()
        self._proxy.start()
        return int(listeners[0].getsockname()[1])

    def _warn(self, text: str) -> None:
        self.observe("warning", {"text": text})

    def _admitted(self, peer: str, caller: str) -> None:
        if self._proxy is not None:
            self._proxy.admit(peer, caller)

    def stop(self, grace: float = 2.0) -> None:
        """End all streams, and stop listening."""
        with self._lock:
            streams = list(self._open)
        for stream in streams:
            stream.end(wire.CLOSING)
        if self._server is not None:
            self._server.stop(grace).wait()
        if self._proxy is not None:
            self._proxy.stop()

    @property
    def connected(self) -> dict[PartyId, float]:
        """The attached parties, and when each attached (seconds since 1970)."""
        return self.connections.connected

    def transport(self, roster: Sequence[PartyId], absent_after: float = 30.0) -> GrpcTransport:
        """Return the transport that carries a run's frames to these members."""
        return GrpcTransport(self.connections, roster, absent_after)

    # --- handlers -------------------------------------------------------------------------------------------------

    def _handlers(self) -> dict[str, Any]:
        """Return a handler for each call, always a streaming one.

        For a unary call, gRPC would block a thread on the request of a caller that is not admitted yet.
        """
        calls = {
            "Renew": self._renew, "Proposal": self._proposal, "Approve": self._approve, "Leave": self._leave,
            "Time": self._time,
        }  # fmt: skip
        member_of = self._members.member_of
        handlers: dict[str, Callable[[Iterator[bytes], Any], Iterator[bytes]]] = {
            **{name: self._unary(call, member_of) for name, call in calls.items()},
            "Enrol": self._unary(self._enrol, self._members.invitee_of),
            "Model": self._model,
            "Attend": self._attend,
        }
        return {name: grpc.stream_stream_rpc_method_handler(handler) for name, handler in handlers.items()}

    def _unary(self, call: Call, member_of: MemberOf) -> Callable[[Iterator[bytes], Any], Iterator[bytes]]:
        """Make the handler of a call with one request and one answer."""

        def handler(requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
            with self._callers.admit(context, member_of) as (member, certificate):
                answer = call(_request(requests), member, certificate)
            yield answer

        return handler

    # --- calls ----------------------------------------------------------------------------------------------------

    def _enrol(self, request: bytes, member: str, certificate: x509.Certificate) -> bytes:
        """Sign a party's first certificate; an invitation is required."""
        signed = self._authority.sign(json.loads(request)["csr"].encode(), member)
        self._members.enrol(member, f"{certificate.serial_number:x}", signed)
        self.observe("joined", {"name": member})
        return signed

    def _renew(self, request: bytes, member: str, certificate: x509.Certificate) -> bytes:
        """Sign a member's next certificate, for a new key whose request the old key has signed."""
        facts = json.loads(request)
        csr = facts["csr"].encode()
        keys.check_renewal(certificate, csr, bytes.fromhex(facts["signature"]))
        signed = self._authority.sign(csr, member)
        self._members.renew(member, signed)
        self.observe("renewed", {"name": member})
        return signed

    def _proposal(self, request: bytes, member: str, certificate: x509.Certificate) -> bytes:
        return self._backend.proposal()

    def _approve(self, request: bytes, member: str, certificate: x509.Certificate) -> bytes:
        return self._backend.approve(member, request)

    def _leave(self, request: bytes, member: str, certificate: x509.Certificate) -> bytes:
        self._backend.leave(member)
        self._members.leave(member)
        self.observe("left", {"name": member})
        return b""

    def _time(self, request: bytes, member: str, certificate: x509.Certificate) -> bytes:
        """Return the server's time, by which a party can check its clock."""
        return keys.now().isoformat().encode()

    def _model(self, requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        """Send a run's model in chunks, as it may exceed a message; stop if the member is revoked meanwhile."""
        with self._callers.admit(context, self._members.member_of) as (member, certificate):
            model = self._backend.model(member, _request(requests)[:_LONGEST].decode())
            for chunk in wire.chunks(wire.MODEL, 0, model):
                yield chunk
                self._members.member_of(certificate)

    # --- the stream -----------------------------------------------------------------------------------------------

    def _attend(self, requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        """Serve a member's stream: send its questions here, and read its answers in a thread."""
        stream = Stream()
        with self._callers.admit(context, self._members.member_of) as (member, certificate):
            if not context.add_callback(stream.end):  # the link has broken already
                return
            with self._lock:
                self._open.add(stream)
            context.send_initial_metadata(((wire.HELLO, wire.Hello().to_bytes()),))
            self.connections.attach(member, stream, wire.NEWER_STREAM)
            self.observe("connected", {"name": member})
            threading.Thread(target=self._read_answers, args=(member, stream, requests), daemon=True).start()
            try:
                news = News(self._backend, member, context.invocation_metadata())
                yield from self._questions(member, stream, certificate, news)
            finally:
                with self._lock:
                    self._open.discard(stream)
                if self.connections.detach(member, stream):
                    self.observe("disconnected", {"name": member})
        if stream.reason is not None:
            lasting = stream.reason in REASONS
            context.abort(grpc.StatusCode.PERMISSION_DENIED if lasting else grpc.StatusCode.ABORTED, stream.reason)

    def _questions(self, member: PartyId, stream: Stream, certificate: x509.Certificate, news: News) -> Iterator[bytes]:
        """Yield the chunks of each question, and news between questions; skip an obsolete question."""
        connection = self.connections.of(member)
        while not stream.ended:
            question = stream.next_or_none(_LOOK)
            try:
                self._members.member_of(certificate)
            except TertuliaError as error:  # the member was revoked, or the register is damaged
                stream.end(str(error) if isinstance(error, Stranger) else BROKEN)
                return
            yield from news.chunks(idle=question is None)
            if question is None:
                continue
            faults.point("server.before_send")
            for chunk in wire.chunks(wire.QUESTION, *question):
                if stream.ended or connection.wanted != question[0]:
                    break
                yield chunk

    def _read_answers(self, member: PartyId, stream: Stream, requests: Iterator[bytes]) -> None:
        """Read answers until the stream ends; malformed data end it, too."""
        connection, assembler = self.connections.of(member), wire.Assembler(wire.ANSWER)
        try:
            for chunk in requests:
                received = assembler.take(chunk, connection.wanted)
                if stream.ended:
                    return
                if received is not None:
                    faults.point("server.after_receive")
                    self.connections.receive(member, *received)
        except FormatError:
            self.observe("warning", {"text": f"party '{member}': {wire.NONSENSE}"})
            self.connections.record_violation(member)
            stream.end(wire.NONSENSE)
        except Exception:  # the link broke; gRPC raises errors of its own types
            stream.end()
        else:
            stream.end()


def _request(requests: Iterator[bytes]) -> bytes:
    """Return the only request of a unary call."""
    for request in requests:
        return request
    raise FormatError("this call has no request")
