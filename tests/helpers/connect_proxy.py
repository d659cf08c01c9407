"""An HTTPS proxy as companies have them: it takes `CONNECT host:port`, and passes bytes on."""

import socket
import threading


class ConnectProxy:
    """Listens on loopback; `targets` is what it was asked to connect to."""

    def __init__(self):
        self.targets = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                link, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(link,), daemon=True).start()

    def _connect(self, link):
        head = b""
        while b"\r\n\r\n" not in head:
            part = link.recv(4096)
            if not part or len(head) > 1 << 14:
                return
            head += part
        verb, target, _ = head.split(b" ", 2)
        if verb != b"CONNECT":
            link.close()
            return
        self.targets.append(target.decode())
        host, port = target.decode().rsplit(":", 1)
        far = socket.create_connection((host, int(port)), 10)
        link.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        threading.Thread(target=_pass_on, args=(link, far), daemon=True).start()
        _pass_on(far, link)

    def close(self):
        self._server.close()


def _pass_on(source, target):
    try:
        while part := source.recv(1 << 16):
            target.sendall(part)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass
