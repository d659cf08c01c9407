"""Private reports: the keystream is ChaCha20, and a token's report is always the same, in any block."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from tertulia.errors import ConfigError, InputError
from tertulia.kernels.reports import Channel, chacha, reports, reports_of_documents
from tertulia.kernels.reports.channel import constants

KEY = bytes(range(32))
WORDS = np.random.default_rng(1).integers(0, 300, 500).astype(np.int32)
CHANNELS = [
    Channel("laplace", 8.0, 300),
    Channel("laplace", 1.0, 300, tau=0.0),
    Channel("krr", 4.0, 300),
    Channel("subset", 3.0, 300),
]
RFC_8439_2_3_2 = (
    "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
    "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
)


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def test_the_block_function_is_that_of_rfc_8439():
    out = np.empty(256, dtype=np.uint32)
    chacha.many_tokens(chacha.initial_state(KEY), 1, 0x4A000000_09000000, out)
    assert out[::16].astype("<u4").tobytes().hex() == RFC_8439_2_3_2


@pytest.mark.parametrize("token", [0, 5, 2**32 - 1, 2**32 + 7])
def test_every_lane_is_the_keystream_of_the_library(token):
    nonce = token.to_bytes(8, "little") + bytes(4)
    stream = Cipher(algorithms.ChaCha20(KEY, (3).to_bytes(4, "little") + nonce), mode=None).encryptor()
    expected = np.frombuffer(stream.update(bytes(1024)), dtype="<u4").reshape(16, 16)
    out = np.empty(256, dtype=np.uint32)
    chacha.one_token(chacha.initial_state(KEY), 3, token, out)
    assert np.array_equal(out.reshape(16, 16).T, expected)
    chacha.many_tokens(chacha.initial_state(KEY), 3, token, out)
    assert np.array_equal(out[::16], expected[0])


@pytest.mark.parametrize("channel", CHANNELS)
def test_neither_blocks_nor_threads_change_a_report(channel):
    whole = reports(WORDS, channel, KEY, "corpus")
    assert same(whole, reports(WORDS, channel, KEY, b"corpus", threads=3))
    for first, last in [(0, 1), (17, 18), (3, 210), (499, 500), (500, 500)]:
        part = reports(WORDS, channel, KEY, "corpus", first, last)
        cut = slice(whole.indptr[first], whole.indptr[last])
        assert np.array_equal(part.indptr, whole.indptr[first : last + 1] - whole.indptr[first])
        assert same(part[1:4], (whole.idx[cut], whole.a[cut], whole.value[cut]))


def test_another_process_makes_the_same_reports():
    code = (
        "import sys, numpy as np, hashlib\nfrom tertulia.kernels.reports import *\n"
        "words = np.random.default_rng(1).integers(0, 300, 500).astype(np.int32)\n"
        f"for channel in {CHANNELS!r}:\n"
        "    r = reports(words, channel, bytes(range(32)), 'corpus')\n"
        "    print(hashlib.sha256(b''.join(x.tobytes() for x in r[:4])).hexdigest())"
    )
    made = [reports(WORDS, channel, KEY, "corpus") for channel in CHANNELS]
    here = [hashlib.sha256(b"".join(x.tobytes() for x in r[:4])).hexdigest() for r in made]
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert there.stdout.split() == here


@pytest.mark.parametrize("channel", CHANNELS)
def test_keys_corpora_and_channels_have_noise_of_their_own(channel):
    here = reports(WORDS, channel, KEY, "corpus")
    other = Channel(channel.kind, channel.epsilon + 1e-9, channel.V, channel.tau)
    for another in (
        reports(WORDS, channel, bytes(32), "corpus"),
        reports(WORDS, channel, KEY, "corpus 2"),
        reports(WORDS, other, KEY, "corpus"),
    ):
        assert not same(here[:2], another[:2])


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_report_is_a_set_of_words_in_order_with_their_ratios(channel):
    r = reports(WORDS, channel, KEY, "corpus")
    assert r.idx.min() >= 0
    assert r.idx.max() < channel.V
    for i in range(len(WORDS)):
        row = slice(r.indptr[i], r.indptr[i + 1])
        assert np.all(np.diff(r.idx[row]) > 0)
        if channel.kind != "laplace":
            assert row.stop - row.start == channel.m
    if channel.kind == "laplace":
        assert r.value.min() > channel.threshold
        ratio = np.exp(channel.epsilon * (2 * np.minimum(r.value.astype(float), 1) - 1))
        assert r.a == pytest.approx(ratio - r.r0, rel=1e-5)
        steps = r.value / channel.grid - 0.5
        assert np.array_equal(steps, np.round(steps))  # own entries and others lie on one grid
    else:
        assert np.all(r.value == 1)
        assert r.a == pytest.approx(np.expm1(channel.epsilon), rel=1e-6)
        assert r.r0 == 1.0


def test_background_is_the_table_of_the_formulas():
    channel = Channel("laplace", 8.0, 2949, tau=0.25)
    assert channel.threshold == 0.25
    assert channel.background() == pytest.approx(0.5 * np.exp(-6.0) / (1 - 0.5 * np.exp(-2.0)))
    assert channel.expected_support() == pytest.approx(2948 * 0.5 * np.exp(-2.0) + 1 - 0.5 * np.exp(-6.0))
    assert Channel("laplace", 8.0, 2949).threshold == pytest.approx(0.2, abs=2**-12)
    assert Channel("subset", 6.0, 2949).m == 7


def test_odds_are_rounded_towards_privacy():
    for channel in (Channel("krr", 8.0, 2949), Channel("krr", 0.1, 10), Channel("subset", 3.0, 300)):
        tell, m, V = int(constants(channel).thresholds[0]), channel.m, channel.V
        odds = tell * (V - m) / ((2**64 - tell) * m)
        assert odds <= np.exp(channel.epsilon) * (1 + 1e-15)
        assert odds == pytest.approx(np.exp(channel.epsilon), rel=1e-12)


def test_impossible_settings_are_refused():
    for settings in ({"kind": "oue"}, {"epsilon": 0.0}, {"epsilon": 50.0}, {"V": 1}, {"tau": 1.0}, {"tau": -0.1}):
        with pytest.raises(ConfigError, match=next(iter(settings.keys())).replace("kind", "channel")):
            Channel(**{"kind": "laplace", "epsilon": 8.0, "V": 10} | settings)
    channel = CHANNELS[2]
    with pytest.raises(InputError, match="32 bytes"):
        reports(WORDS, channel, b"short", "corpus")
    with pytest.raises(InputError, match="outside"):
        reports(WORDS + 10, channel, KEY, "corpus")
    with pytest.raises(InputError, match="the corpus has 500"):
        reports(WORDS, channel, KEY, "corpus", 0, 501)


# --- a key for each document ------------------------------------------------------------------------------------------

LENGTHS = [0, 40, 1, 159, 200, 100]
OFFSETS = np.concatenate([[0], np.cumsum(LENGTHS)])
KEYS = np.random.default_rng(2).integers(0, 2**32, (len(LENGTHS), 8), dtype=np.uint64).astype(np.uint32)


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_documents_reports_depend_on_its_own_key_and_words_alone(channel):
    whole = reports_of_documents(WORDS, OFFSETS, channel, KEYS)
    assert same(whole, reports_of_documents(WORDS, OFFSETS, channel, KEYS, threads=3))
    for d in (1, 3, 5):
        own = slice(OFFSETS[d], OFFSETS[d + 1])
        alone = reports_of_documents(WORDS[own], np.array([0, LENGTHS[d]]), channel, KEYS[d : d + 1])
        cut = slice(whole.indptr[own.start], whole.indptr[own.stop])
        assert same(alone[1:4], (whole.idx[cut], whole.a[cut], whole.value[cut]))
        part = reports_of_documents(WORDS, OFFSETS, channel, KEYS, own.start + 7, own.stop)
        cut = slice(whole.indptr[own.start + 7], whole.indptr[own.stop])
        assert same(part[1:4], (whole.idx[cut], whole.a[cut], whole.value[cut]))


def test_documents_of_equal_words_have_noise_of_their_own():
    words, halves = np.zeros(2000, np.int32), np.array([0, 1000, 2000])
    whole = reports_of_documents(words, halves, CHANNELS[2], KEYS[:2])
    assert not np.array_equal(whole.idx[:1000], whole.idx[1000:])


def test_every_document_needs_a_key():
    with pytest.raises(InputError, match="6 documents need 8 numbers each"):
        reports_of_documents(WORDS, OFFSETS, CHANNELS[0], KEYS[1:])
