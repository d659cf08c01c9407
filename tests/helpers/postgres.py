"""A PostgreSQL server of the tests' own, in a temporary directory, as an unprivileged user if we are root."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pytest

PASSWORD = "s3cret/@x"  # special characters, which drivers' errors would quote


class Server(NamedTuple):
    """A running server, and the commands to end it."""

    port: int
    place: Path

    def address(self, password: str = PASSWORD, database: str = "postgres") -> str:
        return f"postgresql://postgres:{quote(password, safe='')}@127.0.0.1:{self.port}/{database}"

    def execute(self, *statements: str) -> None:
        import adbc_driver_postgresql.dbapi as driver

        with driver.connect(self.address(), autocommit=True) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def kill(self) -> None:
        """End the server at once, as a power cut would; `pg_ctl` cannot."""
        os.kill(int((self.place / "data" / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)


def programs() -> Path | None:
    """The folder of PostgreSQL's programs, which Debian does not put on the path; install it if we may."""
    found = _programs()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", "postgresql"]
        subprocess.run(install, capture_output=True, timeout=300, check=False)
        found = _programs()
    return found


def _programs() -> Path | None:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if which := shutil.which("initdb"):
        folders.append(Path(which).resolve().parent)
    return next((folder for folder in reversed(folders) if (folder / "initdb").exists()), None)


@contextmanager
def postgres(place: Path) -> Iterator[Server]:
    """Start a server, and stop it at the end; skip the test where there is none."""
    folder = programs()
    if folder is None:
        pytest.skip("PostgreSQL is not installed here, and cannot be (Debian: apt-get install postgresql)")
    place.mkdir(parents=True)
    (place / "password").write_text(PASSWORD)
    as_user = []
    if os.geteuid() == 0:  # the server refuses root
        as_user = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
        for path in (place, place / "password"):
            shutil.chown(path, "nobody", "nogroup")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    def run(*words: object) -> None:
        subprocess.run([*as_user, *map(str, words)], cwd=place, check=True, capture_output=True, timeout=60)

    data = place / "data"
    run(folder / "initdb", "-D", data, "-U", "postgres", "--auth=scram-sha-256", "--pwfile", place / "password",
        "--no-sync", "--no-locale", "--encoding=UTF8")  # fmt: skip
    options = f"-p {port} -k {place} -c listen_addresses=127.0.0.1 -c fsync=off -c shared_buffers=16MB"
    run(folder / "pg_ctl", "-D", data, "-o", options, "-l", place / "log", "-w", "start")
    try:
        yield Server(port, place)
    finally:
        subprocess.run([*as_user, str(folder / "pg_ctl"), "-D", str(data), "-m", "immediate", "stop"],
                       capture_output=True, timeout=60, check=False)  # fmt: skip


@contextmanager
def anywhere() -> Iterator[Path]:
    """Give a path whose parents every user may enter, which those of pytest are not, and short enough for a socket."""
    place = Path("/tmp") / f"tertulia-pg-{secrets.token_hex(4)}"
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
