"""A proxy in front of gRPC: it accepts connections, limits their number, and forwards their bytes.

gRPC accepts every connection and has no limit per address, so a caller without a certificate could exhaust the file
descriptors of the process. Therefore gRPC listens on a socket in a private folder, and this proxy on the port:

- It closes a connection that does not offer TLS 1.3 within a few seconds, before gRPC hears of it.
- It limits the connections of callers that the service has not admitted, per address and in total. One more closes the
  oldest of them, so that members can connect while strangers hold all slots.
- It closes a connection of an admitted caller only for a newer one of the same caller.

Every connection takes three descriptors here. A reserve is kept for files and for gRPC itself. On loopback, 24 MB to
three parties and back took 0.11 to 0.17 s without the proxy, and 0.15 to 0.19 s with it; 100 bytes take 0.1 ms more.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import ipaddress
import shutil
import socket
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

from tertulia.errors import ConfigError
from tertulia.federation.engines.grpc import wire
from tertulia.federation.engines.grpc.callers import Throttle

SILENCE = 5.0  # seconds for a connection's first message
MOST_PER_CALLER = 4  # connections of one admitted caller: one in use, and some that broke unnoticed
_PER_LINK = 3  # descriptors: to the caller, to gRPC, and gRPC's own end
_RESERVE = 96  # descriptors for everything else
_WANTED = 4096  # descriptors, if the system allows it
_LEAST = 8  # connections, even with few descriptors
_CHUNK = 1 << 18  # bytes per read
_LINGER = 1.0  # seconds for the other direction to end
_MOST_PATH = 90  # bytes; the system's limit for the path of a socket is slightly higher


@dataclass(frozen=True)
class Limits:
    """The limits on connections whose caller is not admitted."""

    strangers: int
    per_address: int

    @classmethod
    def of_process(cls) -> Limits:
        """Derive the limits from the descriptors of this process; ask the system for more first."""
        resource = importlib.import_module("resource")  # Windows has none, and no server either
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = _WANTED if hard == resource.RLIM_INFINITY else min(hard, _WANTED)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
                soft = wanted
        available = _WANTED if soft == resource.RLIM_INFINITY else min(soft, _WANTED)
        links = max(_LEAST, (available - _RESERVE) // _PER_LINK)
        return cls(links // 2, links // 4)  # the other half is for members


@dataclass(eq=False)
class _Link:
    """One connection."""

    number: int
    near: socket.socket
    address: str
    caller: str = ""  # empty until the service has admitted it
    task: asyncio.Task[None] | None = None


class Proxy:
    """Accepts, limits and forwards connections, in a thread of its own."""

    def __init__(
        self,
        address: wire.Address,
        listeners: Sequence[socket.socket],
        patience: float,
        observe: Callable[[str], None],
        folder: Path | None = None,
    ) -> None:
        self._address, self._listeners, self._patience, self._observe = address, listeners, patience, observe
        if not hasattr(socket, "AF_UNIX"):
            raise ConfigError(
                "the server of a federation needs Unix sockets, which this system has not: run `tertulia serve` on "
                "Linux or macOS. Members (`tertulia attend`) may use Windows, and so may engines local and processes"
            )
        self._limits = Limits.of_process()
        self._folder = _short_folder(folder)
        self._links: dict[int, _Link] = {}
        self._numbers = count()
        self._throttle = Throttle()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)

    @property
    def target(self) -> str:
        """The address on which gRPC must listen."""
        return f"unix:{self._folder / 'grpc'}"

    def start(self) -> None:
        """Accept connections; gRPC must listen already."""
        self._thread.start()

    def stop(self) -> None:
        """Close all connections, and stop accepting."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()
        for listener in self._listeners:
            listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def admit(self, peer: str, caller: str) -> None:
        """Mark a connection, which gRPC names as its peer, as one of an admitted caller."""
        name = peer.rpartition("/")[2]
        link = self._links.get(int(name)) if name.isdigit() else None
        if link is not None and link.caller != caller:
            link.caller = caller
            with contextlib.suppress(RuntimeError):  # the proxy has stopped
                self._loop.call_soon_threadsafe(self._limit_caller, caller)

    # --- in the proxy's own thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        accepting = [self._loop.create_task(self._accept(listener)) for listener in self._listeners]
        self._loop.run_forever()
        tasks = asyncio.all_tasks(self._loop).union(accepting)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))

    async def _accept(self, listener: socket.socket) -> None:
        listener.setblocking(False)
        while True:
            try:
                near, place = await self._loop.sock_accept(listener)
            except OSError:  # no descriptor is left, or the caller has gone
                self._make_room(list(self._links.values()))
                await asyncio.sleep(0.05)
                continue
            link = _Link(next(self._numbers), near, _origin(str(place[0])))
            self._links[link.number] = link
            link.task = self._loop.create_task(self._carry(link))
            link.task.add_done_callback(partial(self._forget, link))  # even if it never began
            self._limit_strangers(link.address)

    def _limit_strangers(self, address: str) -> None:
        strangers = [link for link in list(self._links.values()) if not link.caller]
        same = [link for link in strangers if link.address == address]
        if len(same) > self._limits.per_address:
            self._make_room(same)
        elif len(strangers) > self._limits.strangers:
            largest = Counter(link.address for link in strangers).most_common(1)[0][0]
            self._make_room([link for link in strangers if link.address == largest])

    def _limit_caller(self, caller: str) -> None:
        own = [link for link in list(self._links.values()) if link.caller == caller]
        for link in own[:-MOST_PER_CALLER]:
            self._close(link)

    def _make_room(self, links: Sequence[_Link]) -> None:
        """Close the oldest of these connections whose caller is not admitted."""
        strangers = [link for link in links if not link.caller]
        if not strangers:
            return
        chosen = min(strangers, key=lambda link: link.number)
        self._close(chosen)
        if (more := self._throttle.due(chosen.address)) is not None:
            said = f"too many connections at once from {chosen.address}, whose callers are no members: the oldest are"
            with contextlib.suppress(Exception):  # keep accepting when the log cannot be written
                self._observe(f"{said} closed" + (f" ({more} more since the last message)" if more else ""))

    def _forget(self, link: _Link, _: asyncio.Task[None]) -> None:
        self._links.pop(link.number, None)
        link.near.close()

    def _close(self, link: _Link) -> None:
        self._links.pop(link.number, None)
        if link.task is not None:
            link.task.cancel()

    async def _carry(self, link: _Link) -> None:
        """Wait for the first message, then forward all bytes until one side ends."""
        with contextlib.suppress(OSError, TimeoutError):  # the caller is silent, or has gone
            _tune(link.near, self._patience)
            first = await asyncio.wait_for(self._first_message(link.near), SILENCE)
            if not first:
                return
            with socket.socket(socket.AF_UNIX) as far:
                await self._connect(far, link.number)
                await self._loop.sock_sendall(far, first)
                await self._exchange(link.near, far)

    async def _first_message(self, near: socket.socket) -> bytes:
        """Read a caller's first message; empty if the caller closes before, or offers only an old version of TLS."""
        message = b""
        while more := await self._loop.sock_recv(near, _CHUNK):
            message += more
            may_pass = self._address.plain or offers_tls_13(message)
            if may_pass is not None:
                return message if may_pass else b""
        return b""

    async def _exchange(self, near: socket.socket, far: socket.socket) -> None:
        """Forward bytes in both directions; when one ends, give the other a moment to end as well."""
        tasks = [self._loop.create_task(self._pump(*way)) for way in ((near, far), (far, near))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait(tasks, timeout=_LINGER)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _connect(self, far: socket.socket, number: int) -> None:
        """Connect to gRPC from a socket whose name lets `admit` find the connection."""
        path = self._folder / str(number)
        far.setblocking(False)
        far.bind(str(path))
        try:
            await self._loop.sock_connect(far, str(self._folder / "grpc"))
        finally:
            path.unlink()

    async def _pump(self, source: socket.socket, target: socket.socket) -> None:
        while data := await self._loop.sock_recv(source, _CHUNK):  # an idle direction holds no buffer
            await self._loop.sock_sendall(target, data)
        target.shutdown(socket.SHUT_WR)


def _origin(host: str) -> str:
    """Return the origin that an address counts for: the holder of an IPv6 address holds its whole /64 network."""
    address = ipaddress.ip_address(host.partition("%")[0])
    if isinstance(address, ipaddress.IPv4Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False))


def _tune(near: socket.socket, patience: float) -> None:
    """Send small messages at once; drop a peer that acknowledges nothing for as long as gRPC would wait."""
    near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    near.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, max(1000, round(patience * 1000)))


def _short_folder(parent: Path | None) -> Path:
    """Make a private folder whose path is short enough for a socket."""
    folder = Path(tempfile.mkdtemp(prefix="tertulia-grpc-socket-", dir=parent))
    if len(bytes(folder)) <= _MOST_PATH:
        return folder
    folder.rmdir()
    return Path(tempfile.mkdtemp(prefix="tertulia-grpc-socket-", dir="/tmp"))


# --- the first message of TLS (RFC 8446, section 4.1.2) ---------------------------------------------------------------
#
# gRPC for Python has no setting for the version of TLS, and accepts 1.2. A server that supports 1.3 chooses it whenever
# a client offers it, so the proxy passes only clients that do.

_HANDSHAKE, _CLIENT_HELLO = 22, 1
_RECORD_HEAD = 5  # bytes: kind, version, and length of the record
_MOST_RECORD = 1 << 14  # bytes
_RANDOM = 34  # bytes of the old version number and of the client's random bytes
_SUPPORTED_VERSIONS = b"\x00\x2b"
_TLS_13 = b"\x03\x04"


def offers_tls_13(data: bytes) -> bool | None:
    """Tell whether these bytes begin a TLS connection that offers version 1.3; None if more bytes are needed."""
    if data and data[0] != _HANDSHAKE:
        return False
    if len(data) < _RECORD_HEAD:
        return None
    length = int.from_bytes(data[3:_RECORD_HEAD], "big")
    if length > _MOST_RECORD:
        return False
    record = data[_RECORD_HEAD : _RECORD_HEAD + length]
    if len(record) < length:
        return None
    try:
        return record[0] == _CLIENT_HELLO and _TLS_13 in _versions(record)
    except (ValueError, IndexError):
        return False


def _versions(record: bytes) -> list[bytes]:
    """Return the versions that a client offers."""
    hello, _ = _vector(record[1:], 3)
    _, rest = _vector(hello[_RANDOM:], 1)  # the session
    _, rest = _vector(rest, 2)  # cipher suites
    _, rest = _vector(rest, 1)  # compression
    extensions, _ = _vector(rest, 2)
    while extensions:
        kind = extensions[:2]
        content, extensions = _vector(extensions[2:], 2)
        if kind == _SUPPORTED_VERSIONS:
            versions, _ = _vector(content, 1)
            return [versions[i : i + 2] for i in range(0, len(versions), 2)]
    return []


def _vector(data: bytes, width: int) -> tuple[bytes, bytes]:
    """Split off a vector, whose length comes first in `width` bytes; return its bytes and the rest."""
    end = width + int.from_bytes(data[:width], "big")
    if len(data) < max(width, end):
        raise ValueError("it ends too early")
    return data[width:end], data[end:]
