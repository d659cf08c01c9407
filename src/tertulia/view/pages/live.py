"""The live page: read-only; served to this machine only, or at another address with a token.

GET /          the page
GET /events    server-sent events: a snapshot, whenever it has changed

It runs in threads beside the run and reads the files of the run a few times a second. Nothing waits for it, and it
ends with the run. A page of another site cannot read it: requests must name this host (against DNS rebinding), nothing
is shared across origins, and other machines need a token.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import secrets
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tertulia._plain import plain
from tertulia.errors import ConfigError
from tertulia.operations.health import OWN_NAMES, host_of
from tertulia.view.pages.html import asset, data, el, join, page

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

PORT = 7434
_INTERVAL = 0.2  # seconds between two snapshots
_TURN = 0.05  # seconds between two checks for a new snapshot
_BEAT = 15.0  # seconds between keep-alive comments of a stream
_MOST_STREAMS = 50
_COOKIE = "tertulia"
_LAST = 10.0  # seconds to deliver the last snapshot to open pages
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
TakeSnapshot = Callable[[], dict[str, Any]]


class SnapshotStream:
    """The last snapshot as JSON, with a number that grows whenever it changes."""

    def __init__(self, take: TakeSnapshot) -> None:
        self._take, self.number, self.text = take, 0, "{}"
        self._over = threading.Event()  # no further snapshots
        self._complete = threading.Event()  # the last snapshot is ready
        self.streams = 0
        self._refresh()

    def _refresh(self, *, ended: bool = False) -> None:
        """Take a snapshot; an error here must not affect the run, and the next snapshot may succeed."""
        try:
            found = json.dumps({**_plain(self._take()), "ended": ended}, ensure_ascii=False, allow_nan=False)
        except Exception as error:
            said = {"text": f"cannot be read just now ({type(error).__name__})", "ended": ended}
            found = json.dumps({**json.loads(self.text), **said})
        if found != self.text:
            self.text = found
            self.number += 1

    def poll(self) -> None:
        """Take snapshots until `end`, then a last one that shows how the run ended."""
        while not self._over.wait(_INTERVAL):
            self._refresh()
        self._refresh(ended=True)
        self._complete.set()

    def end(self) -> None:
        """Request the last snapshot, and wait until open pages have received it."""
        self._over.set()
        until = time.monotonic() + _LAST
        while (self.streams or not self._complete.is_set()) and time.monotonic() < until:
            time.sleep(_TURN)

    async def events(self) -> AsyncIterator[str]:
        """Yield the current snapshot, then every new one."""
        seen, said = -1, time.monotonic()
        self.streams += 1
        try:
            while True:
                complete = self._complete.is_set()  # read before the number, which no longer grows then
                if self.number != seen:
                    seen, said = self.number, time.monotonic()
                    yield f"id: {seen}\ndata: {self.text}\n\n"
                elif time.monotonic() - said > _BEAT:
                    said = time.monotonic()
                    yield ": here\n\n"
                if complete:
                    return
                await asyncio.sleep(_TURN)
        finally:
            self.streams -= 1


def _plain(value: Any) -> Any:
    """Make every text plain, because the script shows it as it is."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, dict):
        return {plain(str(name)): _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def page_of(first: str) -> str:
    """Build the page with a first snapshot in it."""
    body = join(
        el("header", el("div", id="head"), class_="broad"),
        el("main", [el("section", el("h2", title), el("div", id=name), class_=f"at-{name}", aria_label=title)
                    for name, title in _PARTS.items()], id="content", class_="broad live"),
        el("footer", el("p", "Read-only. This page shows the journal and the ledgers of the run, and sends nothing.",
                        id="foot"), class_="broad"),
        el("noscript", el("p", "This page needs scripts; `tertulia status DIRECTORY --watch` shows the same "
                               "in a terminal.")),
        data("first", json.loads(first)),
    )  # fmt: skip
    return page("Tertulia, live", body, scripts=[asset("live.js")], policy={"connect-src": "'self'"})


_PARTS = {
    "parties": "Parties",
    "scores": "Perplexity by round",
    "topics": "Topics as they form",
    "releases": "What left",
}


class Guard:
    """Access control: a request must name this host and, from other machines, have the token."""

    def __init__(self, hosts: frozenset[str], token: str | None) -> None:
        self._hosts, self._token = hosts, token

    def refusal_or_none(self, request: Request) -> Response | None:
        """Return a refusal, or the redirect after a valid token; None if the request may proceed."""
        from starlette.responses import PlainTextResponse, RedirectResponse

        if host_of(request.headers.get("host", "")) not in self._hosts:
            return PlainTextResponse("this page has another name\n", 421, headers=_HEADERS)
        if self._token is None or self._same(request.cookies.get(_COOKIE, "")):
            return None
        if not self._same(request.query_params.get("token", "")):
            return PlainTextResponse("open the whole address, with its token\n", 403, headers=_HEADERS)
        answer = RedirectResponse("/", 303, headers=_HEADERS)  # keeps the token out of histories and screenshots
        answer.set_cookie(_COOKIE, self._token, httponly=True, samesite="strict", path="/")
        return answer

    def _same(self, given: str) -> bool:
        return self._token is not None and hmac.compare_digest(given.encode(), self._token.encode())


def app_of(shown: SnapshotStream, guard: Guard) -> Any:
    """Build the application with its two routes."""
    from starlette.applications import Starlette
    from starlette.responses import HTMLResponse, PlainTextResponse, StreamingResponse
    from starlette.routing import Route

    async def front(request: Request) -> Response:
        return guard.refusal_or_none(request) or HTMLResponse(page_of(shown.text), headers=_HEADERS)

    async def events(request: Request) -> Response:
        if (refusal := guard.refusal_or_none(request)) is not None:
            return refusal
        if shown.streams >= _MOST_STREAMS:
            return PlainTextResponse("too many pages are open\n", 503, headers=_HEADERS)
        return StreamingResponse(shown.events(), media_type="text/event-stream", headers=_HEADERS)

    return Starlette(routes=[Route("/", front, methods=["GET"]), Route("/events", events, methods=["GET"])])


@contextmanager
def live_page(take: TakeSnapshot, at: str | None) -> Iterator[str | None]:
    """Serve the page while the block runs, and yield its address. `at` is a port or host:port; None: no page."""
    if at is None:
        yield None
        return
    try:
        import starlette  # noqa: F401
        import uvicorn
    except ImportError as error:
        raise ConfigError(f"the live page needs {error.name}: pip install 'tertulia[live]'") from None
    host, listener = _listen(at)
    local = _is_loopback(host)
    token = None if local else secrets.token_urlsafe(24)
    shown = SnapshotStream(take)
    app = app_of(shown, Guard(_names(host), token))
    config = uvicorn.Config(  # uvicorn's own log configuration would close all handlers of the process that calls us
        app, log_config=None, log_level="critical", access_log=False, lifespan="off", ws="none", server_header=False,
        date_header=False, timeout_graceful_shutdown=1, limit_concurrency=200,
    )  # fmt: skip
    server = uvicorn.Server(config)
    threads = [
        threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="live page", daemon=True),
        threading.Thread(target=shown.poll, name="live snapshots", daemon=True),
    ]
    for thread in threads:
        thread.start()
    address = f"http://{_written(host)}:{listener.getsockname()[1]}/"
    try:
        yield address if token is None else f"{address}?token={token}"
    finally:
        shown.end()
        server.should_exit = True
        for thread in threads:
            thread.join(5.0)
        listener.close()


def _listen(at: str) -> tuple[str, socket.socket]:
    """Listen at an address; if the default port is taken, use any free one."""
    host, _, port = at.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not (port.isdecimal() and int(port) < 1 << 16) and at:
        raise ConfigError(f"'{at[:100]}' is no address for the live page: write a port, or host:port")
    tries = [int(port)] if at else [PORT, 0]
    for number in tries:
        try:
            family = socket.getaddrinfo(host, number, type=socket.SOCK_STREAM)[0][0]
            listener = socket.socket(family, socket.SOCK_STREAM)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, number))
            listener.listen(64)
            return host, listener
        except OSError as error:
            if number == tries[-1]:
                raise ConfigError(
                    f"the live page cannot be shown at {host}:{number} ({error.strerror}): write --live=PORT"
                ) from None
    raise AssertionError


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _names(host: str) -> frozenset[str]:
    """Return the host names that requests may use; for all interfaces, the names of all."""
    if _is_loopback(host):
        return OWN_NAMES | {host.lower()}
    names = {host.lower()}
    if host in ("0.0.0.0", "::"):  # noqa: S104  compared, not bound
        names |= {socket.gethostname().lower(), socket.getfqdn().lower(), *OWN_NAMES}
        names |= {str(found[4][0]) for found in socket.getaddrinfo(socket.gethostname(), None)}
    return frozenset(names)


def _written(host: str) -> str:
    """Format a host for an address."""
    if host in ("0.0.0.0", "::"):  # noqa: S104  compared, not bound
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host
