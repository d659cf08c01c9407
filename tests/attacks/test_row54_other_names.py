"""Row 54: a web page whose name leads to this machine (DNS rebinding) reads the state and the budget of a party."""

from http.client import HTTPConnection

import pytest

from tertulia.operations.health import LOOPBACK, Monitor, on_port


@pytest.fixture(scope="module")
def port():
    with on_port(Monitor("party", "north", lambda: {("document", "add-remove"): 0.75}), 0) as port:
        yield port


def get(port, path, host):
    link = HTTPConnection(LOOPBACK, port, timeout=10)
    try:
        link.putrequest("GET", path, skip_host=True)
        if host is not None:
            link.putheader("Host", host)
        link.endheaders()
        answer = link.getresponse()
        return answer.status, answer.read()
    finally:
        link.close()


@pytest.mark.parametrize("path", ["/healthz", "/metrics", "/"])
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example", "10.0.0.1", "", None]
)
def test_another_name_reads_nothing(port, path, host):
    status, body = get(port, path, host and host.format(port=port))
    assert status in (400, 421)
    assert b"north" not in body
    assert b"0.75" not in body


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:{port}", "localhost:{port}", "LOCALHOST", "[::1]:{port}"])
def test_this_machines_names_read(port, host):
    assert get(port, "/healthz", host.format(port=port))[0] == 200
    assert b"budget_left" in get(port, "/metrics", host.format(port=port))[1]
