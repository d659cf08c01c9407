"""What a server or a party shows on its own machine while it runs."""

import json
import socket
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tertulia.errors import ConfigError
from tertulia.operations.health import LOOPBACK, Monitor, on_port


def get(port, path):
    try:
        with urlopen(f"http://{LOOPBACK}:{port}{path}", timeout=5) as page:
            return page.status, page.read().decode()
    except HTTPError as refusal:
        with refusal:
            return refusal.code, refusal.read().decode()


def numbers(text):
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_rounds_bytes_and_budgets_are_shown():
    monitor = Monitor("server", "oncology", lambda: {("document", "add-remove"): 0.75, ("token", "substitute"): -1.0})
    with on_port(monitor, 0) as port:
        monitor.observe("round", {"round": 1, "seconds": 2.5, "bytes": {"north": [100, 20], "south": [50, 30]}})
        monitor.observe("round", {"round": 2, "seconds": 1.5, "bytes": {"north": [7, 1]}})
        monitor.observe("warning", {"text": "party 'south' did not answer"})
        monitor.absent(1)
        monitor.answered(10, 5)
        found = numbers(get(port, "/metrics")[1])
        status, body = get(port, "/healthz")
    assert found["tertulia_round",] == 2
    assert found["tertulia_round_seconds",] == 1.5
    assert found["tertulia_bytes_total", "down"] == 167
    assert found["tertulia_bytes_total", "up"] == 56
    assert found["tertulia_absent_parties",] == 1
    assert found["tertulia_warnings_total",] == 1
    assert found["tertulia_budget_left_epsilon", "add-remove", "document"] == 0.75
    assert found["tertulia_budget_left_epsilon", "substitute", "token"] == 0
    assert found["tertulia_questions_total",] == 1
    assert status == 200
    assert json.loads(body)["round"] == 2


def test_a_run_that_stopped_is_not_healthy():
    monitor = Monitor("party", "north")
    with on_port(monitor, 0) as port:
        monitor.say(state="stopped")
        assert get(port, "/healthz")[0] == 503
        assert get(port, "/elsewhere")[0] == 404


def test_only_this_machine_can_look():
    with on_port(Monitor("server", "oncology"), 0) as port, socket.socket() as other:
        other.bind(("127.0.0.2", port))  # would fail if it listened on all addresses


def test_a_taken_port_is_named():
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port}"), on_port(Monitor("party", "north"), port):
            pass


def test_no_port_unless_asked_for():
    with on_port(Monitor("server", "oncology"), None) as port:
        assert port is None
