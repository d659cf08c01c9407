"""Health and metrics of a server or a party, over HTTP on a port of this machine alone, if one is given.

All numbers come from the run's history or from the party's own ledger: the round, its seconds, bytes by direction,
absent members, and what is left of a budget.

GET /healthz   200 and a JSON object while it works; 503 when it has ended or stopped
GET /metrics   Prometheus's text format

Requests must name this machine, so that pages of other sites cannot read the numbers by DNS rebinding.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, generate_latest

from tertulia.errors import ConfigError

LOOPBACK = "127.0.0.1"
OWN_NAMES = frozenset({LOOPBACK, "localhost", "::1"})  # of this machine, in a request
_FRESH = 60.0  # seconds for which a computed budget is shown again: computing one takes a while
Budgets = Callable[[], Mapping[tuple[str, str], float]]  # by unit and adjacency: what is left


class Monitor:
    """The metrics of one server or of one party, updated by the events of a run."""

    def __init__(self, role: str, name: str, budgets: Budgets | None = None) -> None:
        self._budgets, self._computed = budgets, -_FRESH
        self.facts: dict[str, Any] = {"role": role, "name": name, "state": "starting"}
        self._registry = CollectorRegistry()
        self._lock = threading.Lock()
        self._started = time.time()
        self._round = self._gauge("round", "The last round that was committed.")
        self._seconds = self._gauge("round_seconds", "How long the last round took.")
        self._absent = self._gauge("absent_parties", "Members that are not connected.")
        self._left = self._gauge("budget_left_epsilon", "What is left of a budget.", ["unit", "adjacency"])
        self._questions = self._counter("questions", "Questions that were answered.", [])
        self._bytes = self._counter(
            "bytes", "Bytes that travelled, by direction: down to parties, up from them.", ["way"]
        )
        self._warnings = self._counter("warnings", "Warnings since the start.", [])

    def _gauge(self, name: str, help_: str, labels: tuple[str, ...] | list[str] = ()) -> Gauge:
        return Gauge(f"tertulia_{name}", help_, labels, registry=self._registry)

    def _counter(self, name: str, help_: str, labels: list[str]) -> Counter:
        return Counter(f"tertulia_{name}", help_, labels, registry=self._registry)

    def observe(self, kind: str, facts: Mapping[str, Any]) -> None:
        """Count an event of a run, as `Handle.observe` reports it: a "round" or a "warning"."""
        if kind == "warning":
            self._warnings.inc()
        elif kind == "round":
            self._round.set(facts["round"])
            self._seconds.set(facts["seconds"])
            for down, up in facts.get("bytes", {}).values():
                self._bytes.labels("down").inc(down)
                self._bytes.labels("up").inc(up)
            self.say(round=facts["round"])

    def answered(self, received: int, sent: int) -> None:
        """Count a question that this party has answered, and its bytes."""
        self._questions.inc()
        self._bytes.labels("down").inc(received)
        self._bytes.labels("up").inc(sent)

    def absent(self, members: int) -> None:
        """Set the number of members that are not connected."""
        self._absent.set(members)

    def say(self, **facts: Any) -> None:
        """Change what `/healthz` shows: `state="ended"` and `state="stopped"` make it 503."""
        with self._lock:
            self.facts |= facts

    def health(self) -> tuple[int, bytes]:
        """Return the HTTP status, and the facts as JSON."""
        with self._lock:
            facts = {**self.facts, "seconds": round(time.time() - self._started, 1)}
        return (503 if facts["state"] in ("ended", "stopped") else 200), json.dumps(facts).encode()

    def metrics(self) -> bytes:
        """Return all numbers in Prometheus's text format."""
        with self._lock:
            if self._budgets is not None and time.monotonic() - self._computed > _FRESH:
                for labels, left in self._budgets().items():
                    self._left.labels(*labels).set(max(0.0, left))
                self._computed = time.monotonic()
        found: bytes = generate_latest(self._registry)
        return found


@contextmanager
def on_port(monitor: Monitor, port: int | None) -> Iterator[int | None]:
    """Serve health and metrics on a port of this machine while the block runs; None: no port, 0: any free one."""
    if port is None:
        yield None
        return
    try:
        server = ThreadingHTTPServer((LOOPBACK, port), _page_of(monitor))
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"metrics cannot be shown on port {port} ({error}): choose another with `--metrics`"
        ) from None
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def host_of(header: str) -> str:
    """Return the host that a request names, without its port: a forwarded page has another one.

    >>> host_of("LocalHost:9100"), host_of("[::1]:80"), host_of("evil.example")
    ('localhost', '::1', 'evil.example')
    """
    name = header.rpartition(":")[0] if header.rpartition(":")[2].isdecimal() else header
    return name.strip("[]").lower()


def _page_of(monitor: Monitor) -> type[BaseHTTPRequestHandler]:
    class Page(BaseHTTPRequestHandler):
        timeout = 10  # seconds, after which silent connections are closed

        def do_GET(self) -> None:
            """Answer the two addresses that there are."""
            if host_of(self.headers.get("Host", "")) not in OWN_NAMES:
                self._send(421, b"this page has another name\n", "text/plain")
            elif self.path == "/healthz":
                status, body = monitor.health()
                self._send(status, body, "application/json")
            elif self.path == "/metrics":
                self._send(200, monitor.metrics(), CONTENT_TYPE_LATEST)
            else:
                self._send(404, b"there is /healthz and /metrics\n", "text/plain")

        def _send(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Log nothing: scrapers call every few seconds."""

    return Page
