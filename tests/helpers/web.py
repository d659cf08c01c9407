"""A web server on loopback that answers for ranges of its files."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class _Files(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        self.server.asked.append(self.path)
        file = self.server.folder / self.path.split("?")[0].lstrip("/")
        if not file.is_file():
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        data = file.read_bytes()
        first, last, asked = 0, len(data) - 1, re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if asked:
            first = int(asked[1]) if asked[1] else max(0, len(data) - int(asked[2]))
            last = min(int(asked[2]), last) if asked[1] and asked[2] else last
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
        self.send_header("Content-Length", str(last - first + 1))
        self.send_header("Last-Modified", formatdate(file.stat().st_mtime, usegmt=True))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data[first : last + 1])


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Serve a folder; the address, and the paths that are asked for."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Files) as server:
        server.folder, server.asked = folder, []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", server.asked
        server.shutdown()
