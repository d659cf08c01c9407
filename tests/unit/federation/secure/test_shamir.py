"""Any t shares give the secret, and fewer give nothing."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tertulia.federation.secure import shamir
from tertulia.federation.secure.lists import threshold


@given(st.integers(1, 12), st.data())
@settings(max_examples=40, deadline=None)
def test_any_t_shares_give_the_secret(members, data):
    t = data.draw(st.integers(1, members))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    secrets = rng.integers(0, 256, (3, 32), dtype=np.uint8)
    random = rng.integers(0, 256, (t - 1, 3, 32), dtype=np.uint8)
    shares = shamir.share(secrets, random, members)
    for chosen in list(combinations(range(members), t))[:30]:
        assert np.array_equal(shamir.recover(shares[list(chosen)], chosen), secrets)
        for other in range(members):
            assert np.array_equal(shamir.recover(shares[list(chosen)], chosen, at=other), shares[other])


def test_fewer_shares_fit_every_secret():
    """With t - 1 shares, each of the 256 values of a byte is equally possible: another secret gives the same shares."""
    secret, t = np.array([[77]], np.uint8), 3
    random = np.random.default_rng(0).integers(0, 256, (t - 1, 1, 1), dtype=np.uint8)
    shares = shamir.share(secret, random, 5)
    seen = set()
    for guess in range(256):
        third = shamir.recover(np.stack([np.array([[guess]], np.uint8), shares[1], shares[3]]), (-1, 1, 3), at=2)
        seen.add(int(third[0, 0]))
    assert len(seen) == 256  # each guess is consistent with exactly one value of a third share


def test_shares_look_uniform():
    rng = np.random.default_rng(1)
    secrets = np.zeros((1, 20_000), np.uint8)
    shares = shamir.share(secrets, rng.integers(0, 256, (2, 1, 20_000), dtype=np.uint8), 4)
    for share in shares:
        counts = np.bincount(share[0], minlength=256)
        assert ((counts - counts.mean()) ** 2 / counts.mean()).sum() < 350  # chi-squared, 255 degrees: p about 1e-4


def test_field_has_inverses_and_distributes():
    rng = np.random.default_rng(2)
    a, b, c = rng.integers(1, 256, (3, 500))
    times = shamir._TIMES
    assert np.array_equal(times[a, b ^ c], times[a, b] ^ times[a, c])
    assert np.array_equal(times[times[a, b], c], times[a, times[b, c]])
    assert (times[a, shamir._INVERSE[a]] == 1).all()


def test_too_many_members_are_refused():
    with pytest.raises(ValueError, match="256 members"):
        shamir.share(np.zeros((1, 1), np.uint8), np.zeros((0, 1, 1), np.uint8), 256)


def test_thresholds_are_those_of_the_protocol():
    assert [threshold(n) for n in (3, 4, 5, 10, 50)] == [3, 3, 4, 7, 34]
    for n in range(3, 256):
        c = max(1, (n - 1) // 3)
        assert 2 * threshold(n) - n > c  # two lists share an honest signer
        assert threshold(n) <= n
