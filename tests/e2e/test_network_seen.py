"""What a server and a party show while they run: numbers on a port of their own, and a doctor's findings."""

import json
import re
import signal
import socket
import time
from urllib.request import urlopen

import pytest

from helpers.commands import Typist

PATIENCE = 60


@pytest.fixture(scope="module")
def typist(tmp_path_factory):
    typist = Typist(tmp_path_factory.mktemp("typed"))
    yield typist
    typist.close()


def wait_for(found, what):
    until = time.monotonic() + PATIENCE
    while not (answer := found()):
        assert time.monotonic() < until, what
        time.sleep(0.05)
    return answer


def get(typed, page):
    """A page of a command's own port, once it says where that is."""
    port = wait_for(lambda: re.search(r"127\.0\.0\.1:(\d+)/metrics", typed.err), typed.err)[1]
    with urlopen(f"http://127.0.0.1:{port}{page}", timeout=10) as answer:
        return answer.read().decode()


def test_numbers_and_findings_of_a_server_and_a_party(typist, tmp_path):
    def type_(*arguments):
        typed = typist.type(*arguments, cwd=tmp_path)
        return typed.wait(), typed.out, typed.err

    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    assert type_("init", "ward", "--members", "north,south", "--address", address)[0] == 0
    (tmp_path / "notes.csv").write_text("text\nMrs Garcia is well\nrain and sun\n")
    serve = typist.type("serve", "ward", "--metrics", "0", cwd=tmp_path)
    assert json.loads(get(serve, "/healthz"))["role"] == "server"
    wait_for(lambda: "serving" in serve.err, serve.err)
    assert type_("join", "ward/invitations/north.invite", "--documents", "notes.csv")[0] == 0
    code, out, _ = type_("doctor", "north", "--json")
    states = {row["what"]: row["state"] for row in json.loads(out)["findings"]}
    assert "bad" not in states.values(), out
    assert code == 0
    assert states.keys() >= {
        "name", "proxy", "port", "TLS", "certificate", "clock", "disk", "memory", "kernels", "policy", "documents",
    }  # fmt: skip
    assert "Garcia" not in out
    assert type_("doctor", "ward", "--json")[0] == 0

    attend = typist.type("attend", "north", "--metrics", "0", cwd=tmp_path)
    wait_for(lambda: json.loads(get(attend, "/healthz"))["state"] == "connected", attend.err)
    assert "tertulia_questions_total 0.0" in get(attend, "/metrics")
    assert "tertulia_absent_parties 0.0" in get(serve, "/metrics")
    attend.send_signal(signal.SIGTERM)
    assert attend.wait() == 0
    wait_for(lambda: "tertulia_absent_parties 1.0" in get(serve, "/metrics"), "north is away")

    assert type_("revoke", "ward", "north", "--yes")[0] == 0
    code, out, _ = type_("doctor", "north", "--json")
    findings = {row["what"]: row for row in json.loads(out)["findings"]}
    assert code == 1
    assert "revoked" in findings["member"]["text"]
    serve.send_signal(signal.SIGTERM)
    assert serve.wait() == 0
    code, out, _ = type_("doctor", "north", "--json")
    findings = {row["what"]: row for row in json.loads(out)["findings"]}
    assert {row["what"] for row in findings.values() if row["state"] == "bad"} == {"port"}
    assert {findings[what]["text"] for what in ("TLS", "clock")} == {"not tried: the port is closed"}
    assert code == 1
