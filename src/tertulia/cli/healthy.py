"""Is a server or a party healthy? For containers, which ask again and again, from inside.

`python -m tertulia.cli.healthy 9100` asks `/healthz` of what was started with `--metrics 9100`. Exit code 0: yes. With
`--alive` it is enough that something answers: a run that has stopped is not mended by starting the server again.
"""

from __future__ import annotations

import sys
from http.client import OK, HTTPConnection, HTTPException

_HOST = "127.0.0.1"
_PATIENCE = 5.0  # seconds


def status_or_none(port: int) -> int | None:
    """The status that `/healthz` answers with, if anything answers."""
    try:
        connection = HTTPConnection(_HOST, port, timeout=_PATIENCE)
        connection.request("GET", "/healthz")
        return connection.getresponse().status
    except (OSError, HTTPException):
        return None


def main(arguments: list[str]) -> int:
    """The exit code: 0 for yes, 1 for no, 2 if the question was none."""
    match arguments:
        case [port] if port.isdecimal():
            return 0 if status_or_none(int(port)) == OK else 1
        case ["--alive", port] if port.isdecimal():
            return 0 if status_or_none(int(port)) is not None else 1
    print("usage: python -m tertulia.cli.healthy [--alive] PORT", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
