"""A party's secret noise: a pure function of its key and of the question, drawn exactly.

noise = PRF(key, run, release id, hash of the message), and a release's id holds a MAC of its contents: a repeated
question about the same data gets the same bits, a changed question or other data get fresh bits. A keyed BLAKE2b
derives a ChaCha20 key, whose keystream stands for real numbers U uniform on (0, 1): 64 bits of each are drawn at once,
and more, from a stream of their own, in the rare case that these do not settle the outcome. So floating point only ever
sorts out the clear cases, and draws are those of exact arithmetic, equal on every machine.
"""

from __future__ import annotations

import decimal
import hashlib
import os
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from tempfile import NamedTemporaryFile

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from tertulia._arrays import F64, I64, U64, Array, Bool
from tertulia._disk import sync_directory
from tertulia.errors import ConfigError, FormatError

_KEY_BYTES = 32
_BOUND = b" ledger"  # after the key in its file: there is a ledger that names it
_CHUNK = 1 << 18  # draws made at a time; another value would be other noise for the same key
_ROUNDING = 2.0**-46  # well above the error of a few float64 operations; draws nearer to an edge are settled exactly


@dataclass(frozen=True)
class NoiseKey:
    """A party's 32 secret bytes. With a fixed key anyone could subtract the noise, so it is for tests alone."""

    key: bytes = field(repr=False)
    secret: bool = True  # False: the ledger must be marked non-private

    def __post_init__(self) -> None:
        if len(self.key) != _KEY_BYTES:
            raise FormatError(f"a noise key has {_KEY_BYTES} bytes, not {len(self.key)}: restore the file of the party")

    @classmethod
    def load(cls, path: Path) -> NoiseKey:
        """Read the party's key, which nobody else may be able to read."""
        if path.stat().st_mode & 0o077:
            raise ConfigError(f"{path} can be read by others, so its noise is no secret: chmod 600 {path}")
        return cls(path.read_bytes().removesuffix(_BOUND))

    @classmethod
    def fixed(cls, key: bytes) -> NoiseKey:
        """Make a known key, for tests that compare bits."""
        return cls(key, secret=False)

    @property
    def commitment(self) -> str:
        """A name for the key that tells nothing about it."""
        return self.derive(b"tertulia-commit").hex()

    def derive(self, purpose: bytes) -> bytes:
        """Derive a key for another purpose: 32 bytes."""
        return hashlib.blake2b(key=self.key, person=purpose, digest_size=_KEY_BYTES).digest()

    def mac(self, *parts: bytes | memoryview) -> bytes:
        """Compute a MAC of contents, which only the key's holder can compute or compare: 16 bytes."""
        return _prf(self.key, b"tertulia-content", parts, 16)

    def mac_of_array(self, x: Array, *, sparse: bool = False) -> str:
        """Compute the MAC of an array: its numbers, their type and its shape.

        The numbers enter by their SHA-256, which processors compute twice as fast as BLAKE2b. If the MAC may be
        `sparse`, only those that are not 0 enter, and their places, if most numbers are 0. It is then another MAC.
        """
        numbers, about = np.ascontiguousarray(x).reshape(-1), f"{x.dtype.str}{x.shape}"
        filled = numbers != 0 if sparse and x.dtype.kind in "iu" else None
        if filled is not None and 2 * np.count_nonzero(filled) < len(numbers):
            places = hashlib.sha256(np.packbits(filled).data).digest()
            others = hashlib.sha256(numbers[np.flatnonzero(filled)].view(np.uint8).data).digest()
            return self.mac(f"{about}sparse".encode(), places, others).hex()
        return self.mac(about.encode(), hashlib.sha256(numbers.view(np.uint8).data).digest()).hex()

    def document_key(self, *parts: bytes) -> bytes:
        """Derive the key of one document's reports: 32 bytes."""
        return _prf(self.key, b"tertulia-report", parts, _KEY_BYTES)

    def stream(self, run: str, release_id: str, message_hash: str) -> NoiseStream:
        """Return the noise of one release: the same inputs give the same bits."""
        parts = (part.encode() for part in (run, release_id, message_hash))
        return NoiseStream(_prf(self.key, b"tertulia-noise", parts, _KEY_BYTES))


def _prf(key: bytes, purpose: bytes, parts: Iterable[bytes | memoryview], size: int) -> bytes:
    prf = hashlib.blake2b(key=key, person=purpose, digest_size=size)
    for part in parts:
        prf.update(len(part).to_bytes(8, "little"))
        prf.update(part)
    return prf.digest()


def create_key(path: Path) -> None:
    """Write a fresh key durably, or raise FileExistsError; never replace a key that others may have used."""
    if path.exists():
        raise FileExistsError(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=path.parent, prefix=path.name) as file:  # created with mode 0600
        file.write(secrets.token_bytes(_KEY_BYTES) + _BOUND)
        file.flush()
        os.fsync(file.fileno())
        os.link(file.name, path)  # unlike a rename, it fails if someone else was first
    sync_directory(path.parent)


class NoiseStream:
    """Exact integer draws from a ChaCha20 keystream."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._position = 0  # words drawn so far

    @cached_property
    def _keystream(self) -> Callable[[int], bytes]:
        return _chacha(self._key, 0)  # when the first is drawn: a release in clear draws none

    def words(self, n: int) -> U64:
        """Return the next `n` uniform 64-bit words."""
        self._position += n
        return np.frombuffer(self._keystream(8 * n), dtype="<u8").astype(np.uint64, copy=False)

    def geometric(self, n: int, rate: Fraction) -> I64:
        """Draw from P(k) ∝ exp(-rate k) on k = 0, 1, ...: the whole part of an exponential variable."""
        start = self._position
        words = self.words(n)
        value, error = _exponential(words)
        scale = 1 / float(rate)
        value, error = value * scale, error * scale + value * scale * _ROUNDING
        k = np.floor(value - error)
        unsettled = k != np.floor(value + error)
        k = np.where(unsettled, 0, k).astype(np.int64)
        for i in np.flatnonzero(unsettled):
            k[i] = self._settle(int(words[i]), start + int(i), lambda e: e // rate)
        return k

    def laplace(self, n: int, rate: Fraction) -> I64:
        """Draw from P(k) ∝ exp(-rate |k|) on the integers: the difference of two geometric variables."""
        out = np.empty(n, dtype=np.int64)
        for start in range(0, n, _CHUNK):
            m = min(_CHUNK, n - start + 1)  # one draw more at the end: noise that was drawn once must stay the same
            out[start : start + m] = (self.geometric(m, rate) - self.geometric(m, rate))[: n - start]
        return out

    def gaussian(self, n: int, sigma: Fraction) -> I64:
        """Draw from P(k) ∝ exp(-k² / 2 sigma²) on integers: thinned Laplace noise (Canonne, Kamath, Steinke 2020)."""
        out = np.empty(0, dtype=np.int64)
        scale = int(sigma) + 1
        while len(out) < n:
            proposed = self.laplace(n - len(out), Fraction(1, scale))
            out = np.concatenate([out, proposed[self._accepts(np.abs(proposed), sigma**2, scale)]])
        return out

    def _accepts(self, size: I64, variance: Fraction, scale: int) -> Bool:
        """Toss a coin for each: it falls with probability exp(-(size - variance / scale)² / 2 variance)."""
        start = self._position
        words = self.words(len(size))
        value, error = _exponential(words)
        spread = float(variance)
        needed = (size - spread / scale) ** 2 / (2 * spread)
        accepted = value >= needed
        for i in np.flatnonzero(np.abs(value - needed) <= error + (1 + needed + size**2.0 / spread) * _ROUNDING):
            exact = (int(size[i]) - variance / scale) ** 2 / (2 * variance)
            accepted[i] = self._settle(int(words[i]), start + int(i), lambda e, exact=exact: int(e >= exact))  # type: ignore[misc]
        return accepted

    def _settle(self, word: int, position: int, outcome: Callable[[Fraction], int]) -> int:
        """Find the outcome, monotone in -ln U, where U = 0.(word)(more bits): read on until both ends agree."""
        more, bits, read = word, 64, _chacha(self._key, 1 + position)
        while True:
            more, bits = more << 128 | int.from_bytes(read(16), "big"), bits + 128
            low, high = _minus_log(more + 1, bits), _minus_log(more, bits)
            margin = Fraction(1, 10 ** (bits // 3))  # the logarithms have twenty more digits
            if more and outcome(low - margin) == outcome(high + margin):
                return outcome(high)


def _exponential(words: U64) -> tuple[F64, F64]:
    """Compute -ln U and a bound on its error, where the words are the leading bits of U."""
    leading = words.astype(np.float64)
    value = -np.log((leading + 0.5) * 2.0**-64)
    with np.errstate(divide="ignore"):  # sixty-four zeros say nothing: the error is infinite
        return value, 1 / leading + (1 + np.abs(value)) * _ROUNDING


def _minus_log(numerator: int, bits: int) -> Fraction:
    """Compute -ln(numerator / 2^bits), rounded correctly to more digits than the bits can settle."""
    if numerator == 0:
        return Fraction(bits)
    with decimal.localcontext(decimal.Context(prec=bits // 3 + 20)) as context:
        return Fraction(context.subtract(context.multiply(bits, context.ln(2)), context.ln(numerator)))


def _chacha(key: bytes, nonce: int) -> Callable[[int], bytes]:
    """Return a reader of the ChaCha20 keystream with this nonce."""
    counter_and_nonce = bytes(4) + nonce.to_bytes(12, "little")
    update = Cipher(algorithms.ChaCha20(key, counter_and_nonce), mode=None).encryptor().update
    return lambda n: update(bytes(n))
