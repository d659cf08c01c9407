"""The checks of `tertulia doctor`: causes that keep a server or a party from working, each with its remedy.

A check never changes anything. It reports "good", "beware" or "bad", with a sentence. The server learns no more from a
check than from any connection.
"""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import getproxies, proxy_bypass

from tertulia._memory import available_bytes
from tertulia.corpus.readers import Source
from tertulia.corpus.report import ReadReport
from tertulia.errors import TertuliaError
from tertulia.privacy.policy import Policy

GOOD, BEWARE, BAD = "good", "beware", "bad"
_PATIENCE = 10.0  # seconds for a connection
_DISK, _MEMORY = 2 << 30, 2 << 30  # bytes below which a run may not end
_SAMPLE = 100  # rows
_SOON = 30  # days before a certificate ends


class Finding(NamedTuple):
    """The result of one check."""

    what: str
    state: str
    text: str


def check_name(host: str) -> Finding:
    """Check that the server's name can be resolved."""
    try:
        found = sorted({str(entry[4][0]) for entry in socket.getaddrinfo(host, None)})
    except OSError as error:
        return Finding("name", BAD, f"'{host}' cannot be resolved ({error}): check the address, or this machine's DNS")
    return Finding("name", GOOD, f"'{host}' is {', '.join(found)}")


def check_proxy(host: str) -> Finding:
    """Report whether connections go through a proxy."""
    proxy = getproxies().get("https")
    if proxy is None or proxy_bypass(host):
        return Finding("proxy", GOOD, "none: the connection is direct")
    return Finding("proxy", GOOD, f"connections go through https_proxy; no_proxy={os.environ.get('no_proxy', '')!r}")


def check_port(host: str, port: int) -> Finding:
    """Check that a server listens on the port, if the connection is direct."""
    if getproxies().get("https") and not proxy_bypass(host):
        return Finding("port", GOOD, "not tried: the proxy connects")
    try:
        with socket.create_connection((host, port), _PATIENCE):
            return Finding("port", GOOD, f"{host}:{port} is open")
    except OSError as error:
        why = "nobody listens there" if isinstance(error, ConnectionRefusedError) else str(error)
        remedy = "is `tertulia serve` running, and does a firewall let it through?"
        return Finding("port", BAD, f"{host}:{port}: {why}; {remedy}")


def check_beyond(port: Finding, what: str, check: Callable[[], Finding]) -> Finding:
    """Run a check that needs the connection, unless the port is closed: it would only repeat that."""
    return Finding(what, BEWARE, "not tried: the port is closed") if port.state == BAD else check()


def check_listen(host: str, port: int) -> Finding:
    """Check that the server's port is free, or already its own."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, port))
        except OSError as error:
            why = f"{host}:{port} cannot be taken ({error.strerror})"
            return Finding("port", BEWARE, f"{why}: fine if the server runs now")
    return Finding("port", GOOD, f"{host}:{port} is free")


def check_tls(host: str, port: int, ca: bytes, certificate: bytes, key: bytes) -> Finding:
    """Check that server and party trust each other's certificates."""
    context = ssl.create_default_context(cadata=ca.decode())
    context.set_alpn_protocols(["h2"])
    with _as_files(certificate, key) as (certificate_file, key_file):
        context.load_cert_chain(certificate_file, key_file)
    try:
        raw = socket.create_connection((host, port), _PATIENCE)
        with raw, context.wrap_socket(raw, server_hostname=host) as s:
            if not s.recv(1):  # HTTP/2 begins with the server's settings; a refused caller gets nothing
                raise ConnectionAbortedError("it closed the connection")
            return Finding("TLS", GOOD, f"{s.version()}, and the server is the one that the invitation names")
    except ssl.SSLCertVerificationError as error:
        why = error.verify_message
        return Finding("TLS", BAD, f"this is not the server of the invitation ({why}): ask its operator")
    except (ssl.SSLError, OSError) as error:
        return Finding("TLS", BAD, f"the server does not take this party's certificate ({error}): ask its operator")


@contextmanager
def _as_files(*contents: bytes) -> Iterator[tuple[str, ...]]:
    """Write contents to private temporary files: Python's TLS reads certificates from files only."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / str(number) for number in range(len(contents))]
        for path, content in zip(paths, contents, strict=True):
            path.touch(0o600)
            path.write_bytes(content)
        yield tuple(map(str, paths))


def check_expiry(what: str, ends: datetime) -> Finding:
    """Check how long a certificate is still valid."""
    days = (ends - datetime.now(UTC)).total_seconds() / 86400
    state = BAD if days <= 0 else BEWARE if days < _SOON else GOOD
    remedy = "" if state == GOOD else ": it is renewed by itself while the party attends or the server serves"
    return Finding("certificate", state, f"{what} ends on {ends:%Y-%m-%d}, in {days:.0f} days{remedy}")


def check_clock(server_time: Callable[[], datetime]) -> Finding:
    """Check that the server answers this party as a member, and that the clocks of both agree."""
    try:
        others = server_time()
    except TertuliaError as error:
        return Finding("member", BAD, str(error))
    apart = abs((datetime.now(UTC) - others).total_seconds())
    state = GOOD if apart < 120 else BEWARE if apart < 86400 else BAD
    remedy = "" if state == GOOD else ": set it, or certificates seem expired and dates in ledgers are wrong"
    return Finding("clock", state, f"the server answers, and its clock is {apart:.0f} s apart{remedy}")


def check_disk(directory: Path) -> Finding:
    """Check that the directory can be written, and has room."""
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(b"\0" * 4096)
            file.flush()
            os.fsync(file.fileno())
        free = shutil.disk_usage(directory).free
    except OSError as error:
        return Finding("disk", BAD, f"{directory} cannot be written ({error.strerror}): check its owner and its room")
    state = GOOD if free >= _DISK else BEWARE
    return Finding("disk", state, f"{free / 2**30:.1f} GB are free{'' if state == GOOD else ': make room for a run'}")


def check_memory() -> Finding:
    """Check the memory that is available for a step."""
    available = available_bytes()
    if available is None:
        return Finding("memory", BEWARE, "the system does not say how much is available")
    state = GOOD if available >= _MEMORY else BEWARE
    return Finding("memory", state, f"{available / 2**30:.1f} GB are available")


def check_kernels() -> Finding:
    """Check that kernels run, and are cached on the disk."""
    import numpy as np

    started = time.monotonic()
    try:
        from tertulia.kernels import lda

        words, documents = np.array([0, 1], dtype=np.int32), np.array([0, 2])
        lda.train(words, documents, 2, 2, 0.1, 0.01, 1, 1)
    except Exception as error:  # a broken compiler may raise anything
        return Finding("kernels", BAD, f"they do not run ({type(error).__name__}): reinstall numba and llvmlite")
    took = time.monotonic() - started
    hint = "" if took < 5 else ": `tertulia warm` makes later starts quick"
    return Finding("kernels", GOOD if took < 5 else BEWARE, f"they ran after {took:.1f} s{hint}")


def check_policy(path: Path) -> Finding:
    """Check that the policy can be read, and summarise it."""
    if not path.exists():
        return Finding("policy", BEWARE, "there is none, so nothing leaves in the clear: `tertulia policy` writes one")
    try:
        policy = Policy.load(path)
    except TertuliaError as error:
        return Finding("policy", BAD, str(error))
    clear = policy.allow_clear
    things = ("everything" if clear else "nothing") if isinstance(clear, bool) else ", ".join(clear)
    state = BEWARE if policy.allow_clear is True else GOOD
    return Finding("policy", state, f"in the clear may leave: {things}; budgets: {len(policy.budget) or 'none'}")


def check_authorization(path: Path, loose: Sequence[str]) -> Finding:
    """Check that FLARE's administrators can neither run code at the site nor read its files."""
    if not loose:
        return Finding("authorization", GOOD, "no job may bring code, and nobody may read files or restart the site")
    remedy = f'write "none" for these in {path}, or `tertulia nvflare join` again without that file'
    return Finding(
        "authorization", BAD, f"FLARE's administrators may do more than a run needs ({', '.join(loose)}): {remedy}"
    )


def check_documents(source: Mapping[str, Any]) -> Finding:
    """Check that the first rows can be read; their contents are not shown."""
    fields = {name: value for name, value in source.items() if name in Source.__dataclass_fields__}
    if not any(fields.get(name) for name in ("path", "query", "address_env")):
        return Finding("documents", BAD, "party.toml names none: write `path`, or `query`, under [documents]")
    try:
        report = ReadReport()
        rows = sum(1 for _ in islice(Source(**fields).rows(report), _SAMPLE))
    except TertuliaError as error:
        return Finding("documents", BAD, str(error))
    dropped = sum(report.dropped.values())
    return Finding("documents", GOOD if rows else BAD, f"of the first rows {rows} can be used, {dropped} cannot")


def examine(checks: list[Callable[[], Finding]]) -> list[Finding]:
    """Run all checks; a check that raises an error is a finding, too."""
    found = []
    for check in checks:
        try:
            found.append(check())
        except Exception as error:  # a broken machine may raise anything
            found.append(Finding("a check", BAD, f"it failed by itself ({type(error).__name__}: {error})"))
    return found
