"""What server and parties agree on: names of calls, who says which version, and how frames are cut into chunks.

Frames travel in chunks of at most 1 MiB, each with the number of the question that it belongs to. Whoever receives
takes memory as bytes come, up to a cap, whatever a header says.
"""

from __future__ import annotations

import ipaddress
import json
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import tertulia
from tertulia.errors import ConfigError, FormatError
from tertulia.federation.engines.base import MOST_BYTES

PROTOCOL = 1
SERVICE = "tertulia.Federation"
CHUNK = 1 << 20  # bytes of a frame that travel at once
MOST_MESSAGE = 1 << 24  # bytes of a single message: a chunk, a proposal
QUESTION, ANSWER, MODEL = 1, 2, 3
ANY = -1  # question, whatever its number
HELLO = "tertulia-hello-bin"  # the key of what both sides say of themselves
CERTIFICATE = "tertulia-certificate-bin"  # and, without TLS, of who a party says it is
OTHER_PROTOCOL = "the two sides speak other protocols"
NONSENSE = "this stream carried what no party sends"
NEWER_STREAM = "this party has connected again"
CLOSING = "the server is closing"
NOT_FINISHED = "this run is not finished yet: its model can be fetched when it is"
GIVEN_UP = "this run was given up by the operator, and has no model"
NOT_YOURS = "the server has no such run, or this party is not on its roster"
TOO_LONG = "the model is too long to be sent: ask the operator for its files"
NO_MODEL = (NOT_FINISHED, GIVEN_UP, NOT_YOURS)

_HEAD = struct.Struct("<BBQ")  # kind, whether it is the last, number of the question
_VERSION = re.compile(r"[0-9A-Za-z.+_-]{1,40}")


@dataclass(frozen=True)
class Keepalive:
    """How a dead link is noticed: a ping after so many seconds of silence, and so many for its echo."""

    every: float = 30.0  # routers forget idle links after five minutes and more
    patience: float = 40.0  # on a thin line an echo waits behind megabytes


def options(keepalive: Keepalive) -> list[tuple[str, int]]:
    """What both sides set: pings, whatever is under way, and room for long messages."""
    return [
        ("grpc.keepalive_time_ms", round(keepalive.every * 1000)),
        ("grpc.keepalive_timeout_ms", round(keepalive.patience * 1000)),
        ("grpc.http2.ping_timeout_ms", round(keepalive.patience * 1000)),  # what really counts since gRPC 1.60
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", 100),
        ("grpc.http2.max_ping_strikes", 0),
        ("grpc.max_send_message_length", MOST_MESSAGE),
        ("grpc.max_receive_message_length", MOST_MESSAGE),
    ]


def path(call: str) -> str:
    """The full name of a call."""
    return f"/{SERVICE}/{call}"


# --- who speaks which version -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Hello:
    """What each side says of itself before anything else."""

    protocol: int = PROTOCOL
    version: str = tertulia.__version__

    def to_bytes(self) -> bytes:
        """As it travels, beside every call."""
        return json.dumps({"protocol": self.protocol, "version": self.version}).encode()

    @classmethod
    def read(cls, metadata: Sequence[tuple[str, Any]] | None) -> Hello:
        """What the other side says; protocol 0 if it says nothing that can be read."""
        for key, value in metadata or ():
            if key == HELLO:
                try:
                    facts = json.loads(value[:1000])
                    protocol, version = facts["protocol"], facts["version"]
                    if type(protocol) is int and abs(protocol) < 10**6 and _VERSION.fullmatch(version):
                        return cls(protocol, version)
                except (ValueError, TypeError, LookupError, RecursionError):
                    break
        return cls(0, "unknown")

    def __str__(self) -> str:
        return f"protocol {self.protocol} (tertulia {self.version})"


def difference_or_none(server: Hello, party: Hello) -> str | None:
    """A sentence that names both versions, if they cannot talk."""
    if server.protocol == party.protocol:
        return None
    newer = "party" if server.protocol < party.protocol else "server"
    older = "server" if newer == "party" else "party"
    return (
        f"the server speaks {server}, the party {party}: install the {newer}'s version of tertulia at the {older}, "
        "or the other way round"
    )


# --- chunks -----------------------------------------------------------------------------------------------------------


def chunks(kind: int, serial: int, frame: bytes) -> Iterator[bytes]:
    """Cut a frame; each piece is copied once."""
    view, size = memoryview(frame), len(frame)
    for start in range(0, size or 1, CHUNK):
        last = start + CHUNK >= size
        yield b"".join((_HEAD.pack(kind, last, serial), view[start : start + CHUNK]))


class Assembler:
    """Puts one side's chunks together again, one frame at a time."""

    def __init__(self, kind: int) -> None:
        self._kind = kind
        self._serial: int | None = None
        self._parts: list[memoryview] = []
        self._size = 0

    def take(self, message: bytes, wanted: int | None = ANY) -> tuple[int, bytes] | None:
        """Take a chunk; return number and frame when it was the last. Of a frame that is not wanted nothing is kept.

        What cannot be raises `FormatError`.
        """
        if len(message) < _HEAD.size:
            raise FormatError("a chunk is too short")
        kind, last, serial = _HEAD.unpack_from(message)
        part = memoryview(message)[_HEAD.size :]
        if kind != self._kind or last > 1 or len(part) > CHUNK or (len(part) < CHUNK and not last):
            raise FormatError("a chunk cannot be")
        if serial != self._serial:  # what was begun before is past its time
            self._serial, self._parts, self._size = serial, [], 0
        self._size += len(part)
        if self._size > MOST_BYTES:
            raise FormatError("a frame is too long")
        if wanted not in (ANY, serial):
            self._serial, self._parts = None, []
            return None
        self._parts.append(part)
        if not last:
            return None
        frame = b"".join(self._parts)
        self._serial, self._parts, self._size = None, [], 0
        return serial, frame


# --- addresses --------------------------------------------------------------------------------------------------------

_PLAIN = "http://"


@dataclass(frozen=True)
class Address:
    """Where a server listens. `http://` before it means: without TLS, which only loopback may be."""

    host: str
    port: int
    plain: bool = False

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read `host:port`, `[::1]:port` or `http://127.0.0.1:port`."""
        plain = text.startswith(_PLAIN)
        host, _, port = text.removeprefix(_PLAIN).rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
            raise ConfigError(f"'{text[:200]}' is no address: write host:port, such as topics.example.org:7443")
        address = cls(host, int(port), plain)
        if plain and not address.is_loopback:
            raise ConfigError(f"'{text[:200]}' would go without TLS: only 127.0.0.1 or ::1 may; leave out {_PLAIN}")
        return address

    @property
    def target(self) -> str:
        """As gRPC wants it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether this is the machine itself."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False
