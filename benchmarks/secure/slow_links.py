"""Links of limited speed: every party reaches the server through a proxy that limits its bits per second."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from tertulia.federation.engines.grpc import loopback
from tertulia.federation.engines.grpc.wire import Address

_CHUNK = 1 << 14


class _Link:
    """A proxy in a thread of its own; each connection has its own limit, in each direction."""

    def __init__(self, target: str, megabits: float) -> None:
        self._target, self._rate = Address.parse(target), megabits * 1e6 / 8
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self.port = 0
        threading.Thread(target=self._run, daemon=True).start()
        self._ready.wait(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.create_task(self._serve())
        self._loop.run_forever()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()

    async def _carry(self, near_in: asyncio.StreamReader, near_out: asyncio.StreamWriter) -> None:
        far_in, far_out = await asyncio.open_connection(self._target.host, self._target.port)
        await asyncio.gather(self._pump(near_in, far_out), self._pump(far_in, near_out), return_exceptions=True)

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        due = time.monotonic()
        try:
            while data := await source.read(_CHUNK):
                due = max(due, time.monotonic()) + len(data) / self._rate
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                target.write(data)
                await target.drain()
        finally:
            target.close()

    def stop(self) -> None:
        """End the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)


@contextmanager
def limited(megabits: float) -> Iterator[None]:
    """Let engine `grpc` start parties that reach the server through such links."""
    links: list[_Link] = []
    command = loopback.LoopbackTransport._command

    def through_proxy(self: Any, member: str, address: str, *more: Any) -> list[str]:
        if not links:
            links.append(_Link(address, megabits))
        return command(self, member, f"127.0.0.1:{links[0].port}", *more)

    with mock.patch.object(loopback.LoopbackTransport, "_command", through_proxy):
        try:
            yield
        finally:
            for link in links:
                link.stop()
