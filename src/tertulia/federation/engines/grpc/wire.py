"""The wire protocol of the network engine: names of calls, protocol versions, chunks and addresses.

Frames travel in chunks of at most 1 MiB; each chunk carries the serial number of its question. A receiver allocates
memory only as bytes arrive, up to a limit, and trusts no length in a header.
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

PROTOCOL = 2
SERVICE = "tertulia.Federation"
CHUNK = 1 << 20  # bytes of a frame per chunk
MOST_MESSAGE = 1 << 24  # bytes of a single message: a chunk, a proposal
QUESTION, ANSWER, MODEL, NEWS = 1, 2, 3, 4
ANY = -1  # accept any serial number
HELLO = "tertulia-hello-bin"  # metadata key: protocol and version of a side
CERTIFICATE = "tertulia-certificate-bin"  # metadata key: a party's certificate, where there is no TLS to prove it
LISTENS = ("tertulia-listens", "1")  # metadata of a party that reads news
OTHER_PROTOCOL = "the two sides speak other protocols"
NONSENSE = "this stream carried what no party sends"
NEWER_STREAM = "this party has connected again"
CLOSING = "the server is closing"
NOT_FINISHED = "this run is not finished yet: its model can be fetched when it is"
GIVEN_UP = "this run was given up by the operator, and has no model"
NOT_YOURS = "the server has no such run, or this party is not on its roster"
TOO_LONG = "the model is too long to be sent: ask the operator for its files"
NO_MODEL = (NOT_FINISHED, GIVEN_UP, NOT_YOURS)

_HEAD = struct.Struct("<BBQ")  # kind, whether it is the last chunk, serial number of the question
_VERSION = re.compile(r"[0-9A-Za-z.+_-]{1,40}")


@dataclass(frozen=True)
class Keepalive:
    """When a link counts as dead: seconds of silence before a ping, and seconds to wait for its echo."""

    every: float = 30.0  # routers drop idle links after five minutes or more
    patience: float = 40.0  # on a slow line an echo waits behind megabytes


def options(keepalive: Keepalive) -> list[tuple[str, int]]:
    """Return gRPC's options for both sides: pings, also without calls, and the limits of messages."""
    return [
        ("grpc.keepalive_time_ms", round(keepalive.every * 1000)),
        ("grpc.keepalive_timeout_ms", round(keepalive.patience * 1000)),
        ("grpc.http2.ping_timeout_ms", round(keepalive.patience * 1000)),  # the one in force since gRPC 1.60
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", 100),
        ("grpc.http2.max_ping_strikes", 0),
        ("grpc.max_send_message_length", MOST_MESSAGE),
        ("grpc.max_receive_message_length", MOST_MESSAGE),
    ]


def path(call: str) -> str:
    """Return the full name of a call."""
    return f"/{SERVICE}/{call}"


# --- versions ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Hello:
    """A side's protocol and version, sent as metadata with every call."""

    protocol: int = PROTOCOL
    version: str = tertulia.__version__

    def to_bytes(self) -> bytes:
        """Encode for the metadata of a call."""
        return json.dumps({"protocol": self.protocol, "version": self.version}).encode()

    @classmethod
    def read(cls, metadata: Sequence[tuple[str, Any]] | None) -> Hello:
        """Read the other side's metadata; protocol 0 stands for a missing or malformed hello."""
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
    """Return a sentence that names both versions if their protocols differ."""
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
    """Cut a frame into chunks; each byte is copied once."""
    view, size = memoryview(frame), len(frame)
    for start in range(0, size or 1, CHUNK):
        last = start + CHUNK >= size
        yield b"".join((_HEAD.pack(kind, last, serial), view[start : start + CHUNK]))


def news_or_none(chunk: bytes) -> bytes | None:
    """Return the news that a chunk carries; None for a chunk of another kind. Malformed news raise `FormatError`."""
    if chunk[:1] != bytes([NEWS]):
        return None
    received = Assembler(NEWS).take(chunk)
    if received is None:
        raise FormatError("news is one chunk")
    return received[1]


class Assembler:
    """Reassembles the chunks of one side, one frame at a time."""

    def __init__(self, kind: int) -> None:
        self._kind = kind
        self._serial: int | None = None
        self._parts: list[memoryview] = []
        self._size = 0

    def take(self, message: bytes, wanted: int | None = ANY) -> tuple[int, bytes] | None:
        """Take a chunk; return serial number and frame after the last one. A frame that is not wanted is dropped.

        Malformed chunks raise `FormatError`.
        """
        if len(message) < _HEAD.size:
            raise FormatError("a chunk is too short")
        kind, last, serial = _HEAD.unpack_from(message)
        part = memoryview(message)[_HEAD.size :]
        if kind != self._kind or last > 1 or len(part) > CHUNK or (len(part) < CHUNK and not last):
            raise FormatError("a chunk cannot be")
        if serial != self._serial:  # the frame before it is obsolete
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
    """A server's address. The prefix `http://` means without TLS, which is allowed on loopback only."""

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
        """The address in gRPC's form."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether the address is on this machine."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False
