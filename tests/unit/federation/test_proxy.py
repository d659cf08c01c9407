"""The proxy in front of gRPC: limits of connections, the first message of TLS, and throttled log messages."""

import resource
import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.federation.engines.grpc import callers, proxy
from tertulia.federation.engines.grpc.proxy import offers_tls_13


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_a_network_of_ipv6_counts_as_one(host, origin):
    assert proxy._origin(host) == origin


def test_half_of_the_connections_is_for_members(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda which: (256, 256))
    limits = proxy.Limits.of_process()
    assert limits == proxy.Limits(strangers=26, per_address=13)
    assert 2 * limits.strangers * 3 + 90 < 256


def test_a_message_is_written_once_a_minute(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(callers.time, "monotonic", lambda: now[0])
    throttled = callers.Throttle()
    assert [throttled.due("a"), throttled.due("a"), throttled.due("b"), throttled.due("a")] == [0, None, 0, None]
    now[0] += 61
    assert throttled.due("a") == 2
    assert all(throttled.due(i) == 0 for i in range(5000))
    assert len(throttled._seen) <= 1000


def client_hello(version="TLSv1_3"):
    out = ssl.MemoryBIO()
    context = ssl.create_default_context()
    context.maximum_version = ssl.TLSVersion[version]
    client = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return out.read()


WHOLE = client_hello()


def test_versions_that_are_offered():
    assert offers_tls_13(WHOLE) is True
    assert offers_tls_13(WHOLE + b"more") is True
    assert offers_tls_13(client_hello("TLSv1_2")) is False


def test_a_part_is_not_judged_and_another_protocol_is_refused_at_once():
    assert all(offers_tls_13(WHOLE[:size]) is None for size in range(len(WHOLE)))
    assert offers_tls_13(b"G") is False
    assert offers_tls_13(b"\x16\x03\x01\xff\xff") is False


@given(st.binary(max_size=300), st.integers(0, len(WHOLE)), st.integers(0, len(WHOLE)))
def test_any_bytes_get_a_verdict(noise, start, end):
    for data in (noise, WHOLE[:start] + noise, WHOLE[:start] + noise + WHOLE[end:]):
        assert offers_tls_13(data) in (True, False, None)
