"""The live page: read-only, on this machine alone unless another address is given, and there behind a token.

GET /          the page
GET /events    server-sent events: what is seen, whenever it has changed

It runs in a thread beside the run and looks a few times a second at what is on disk: nothing waits for it, and it ends
with the run. A page of another site cannot read it: requests must name this host (DNS rebinding), nothing is shared
across origins, and away from this machine a token is asked for.
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
from tertulia.view.pages.html import asset, data, el, join, page

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

PORT = 7434
_LOOK = 0.2  # seconds between two looks at the run
_TURN = 0.05  # seconds between two looks for something to send
_BEAT = 15.0  # seconds after which a silent stream says that it is there
_MOST_STREAMS = 50
_COOKIE = "tertulia"
_LAST = 10.0  # seconds that the last state has to get to who still looks; it takes a moment
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
Look = Callable[[], dict[str, Any]]


class Shown:
    """What was last seen, as JSON, with a number that grows whenever it changes."""

    def __init__(self, look: Look) -> None:
        self._look, self.number, self.text = look, 0, "{}"
        self._over = threading.Event()  # nothing is looked at any more
        self._complete = threading.Event()  # the last look is there to be sent
        self.streams = 0
        self._refresh()

    def _refresh(self, *, ended: bool = False) -> None:
        """Look again; what goes wrong here must not touch the run, and the next look may be luckier."""
        try:
            found = json.dumps({**_plain(self._look()), "ended": ended}, ensure_ascii=False, allow_nan=False)
        except Exception as error:
            said = {"text": f"cannot be read just now ({type(error).__name__})", "ended": ended}
            found = json.dumps({**json.loads(self.text), **said})
        if found != self.text:
            self.text = found
            self.number += 1

    def keep_looking(self) -> None:
        """Until it is over; then once more, so that the last that is shown is how it ended."""
        while not self._over.wait(_LOOK):
            self._refresh()
        self._refresh(ended=True)
        self._complete.set()

    def end(self) -> None:
        """Have a last look taken, and give it some time to get to who still looks."""
        self._over.set()
        until = time.monotonic() + _LAST
        while (self.streams or not self._complete.is_set()) and time.monotonic() < until:
            time.sleep(_TURN)

    async def events(self) -> AsyncIterator[str]:
        """What a client is sent: all there is, then whatever is new."""
        seen, said = -1, time.monotonic()
        self.streams += 1
        try:
            while True:
                complete = self._complete.is_set()  # before the number is looked at: it grows no more after that
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
    """The same with every text made plain, whoever wrote it: a script shows what it is given."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, dict):
        return {plain(str(name)): _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def page_of(first: str) -> str:
    """The page itself, with what was last seen in it."""
    body = join(
        el("header", el("div", id="head"), class_="broad"),
        el("main", [el("section", el("h2", title), el("div", id=name), class_=f"at-{name}", aria_label=title)
                    for name, title in _PARTS.items()], id="content", class_="broad live"),
        el("footer", el("p", "Read-only. This page shows what the run's journal and ledgers hold, and sends nothing.",
                        id="foot"), class_="broad"),
        el("noscript", el("p", "This page draws itself by a script; `tertulia status DIRECTORY --watch` shows the same "
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
    """Who may read: whoever asks for this host and, away from this machine, knows the token."""

    def __init__(self, hosts: frozenset[str], token: str | None) -> None:
        self._hosts, self._token = hosts, token

    def refusal_or_none(self, request: Request) -> Response | None:
        """An answer for who may not, or for who has just shown the token."""
        from starlette.responses import PlainTextResponse, RedirectResponse

        if _host(request.headers.get("host", "")) not in self._hosts:
            return PlainTextResponse("this page has another name\n", 421, headers=_HEADERS)
        if self._token is None or self._same(request.cookies.get(_COOKIE, "")):
            return None
        if not self._same(request.query_params.get("token", "")):
            return PlainTextResponse("open the whole address, with its token\n", 403, headers=_HEADERS)
        answer = RedirectResponse("/", 303, headers=_HEADERS)  # so that the token is in no history and no picture
        answer.set_cookie(_COOKIE, self._token, httponly=True, samesite="strict", path="/")
        return answer

    def _same(self, given: str) -> bool:
        return self._token is not None and hmac.compare_digest(given.encode(), self._token.encode())


def _host(header: str) -> str:
    """A host without its port: a forwarded page has another one."""
    name = header.rpartition(":")[0] if header.rpartition(":")[2].isdecimal() else header
    return name.strip("[]").lower()


def app_of(shown: Shown, guard: Guard) -> Any:
    """The two addresses that there are."""
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
def live_page(look: Look, at: str | None) -> Iterator[str | None]:
    """Show a page while the block runs; gives its address. `at` is a port, or host:port; None: there is none."""
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
    shown = Shown(look)
    app = app_of(shown, Guard(_names(host), token))
    config = uvicorn.Config(
        app, log_level="critical", access_log=False, lifespan="off", ws="none", server_header=False, date_header=False,
        timeout_graceful_shutdown=1, limit_concurrency=200,
    )  # fmt: skip
    server = uvicorn.Server(config)
    threads = [
        threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="live page", daemon=True),
        threading.Thread(target=shown.keep_looking, name="live look", daemon=True),
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
    """Take the address; the usual port gives way to any free one, a port that was named does not."""
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
    """What a browser may call this host; where all interfaces are listened on, all of their names."""
    if _is_loopback(host):
        return frozenset({"127.0.0.1", "localhost", "::1", host.lower()})
    names = {host.lower()}
    if host in ("0.0.0.0", "::"):  # noqa: S104  compared, not bound
        names |= {socket.gethostname().lower(), socket.getfqdn().lower(), "127.0.0.1", "localhost", "::1"}
        names |= {str(found[4][0]) for found in socket.getaddrinfo(socket.gethostname(), None)}
    return frozenset(names)


def _written(host: str) -> str:
    """A host as it stands in an address."""
    if host in ("0.0.0.0", "::"):  # noqa: S104  compared, not bound
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host
