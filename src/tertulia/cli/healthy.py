"""Health probe for containers, run inside them.

`python -m tertulia.cli.healthy 9100` requests `/healthz` from a command that was started with `--metrics 9100`. The
exit code is 0 if it is healthy. With `--alive` any answer counts: restarting the server does not repair a stopped run.
"""

from __future__ import annotations

import sys
from http.client import OK, HTTPConnection, HTTPException

_HOST = "127.0.0.1"
_PATIENCE = 5.0  # seconds


def status_or_none(port: int) -> int | None:
    """Return the HTTP status of `/healthz`, or None if nothing answers."""
    try:
        connection = HTTPConnection(_HOST, port, timeout=_PATIENCE)
        connection.request("GET", "/healthz")
        return connection.getresponse().status
    except (OSError, HTTPException):
        return None


def main(arguments: list[str]) -> int:
    """Return the exit code: 0 if healthy, 1 if not, 2 for invalid arguments."""
    match arguments:
        case [port] if port.isdecimal():
            return 0 if status_or_none(int(port)) == OK else 1
        case ["--alive", port] if port.isdecimal():
            return 0 if status_or_none(int(port)) is not None else 1
    print("usage: python -m tertulia.cli.healthy [--alive] PORT", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
