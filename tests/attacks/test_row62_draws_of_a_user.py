"""Row 62: a user's random numbers began where earlier users' words end, so their lengths moved its answer."""

import numpy as np

from tertulia.kernels.fedlda.sampling import broadcast_phi, resample
from tertulia.methods.fedlda.shard import Shard, Spread

V, K, D, LONGEST = 12, 3, 8, 10
PHI = broadcast_phi(np.random.default_rng(1).integers(0, 50, (K, V)), 0.1)
ALPHA = np.full(K, 0.5)


def shard(first):
    """Users of five words each, but for the first."""
    lengths = [first] + [5] * (D - 1)
    words = np.random.default_rng(2).integers(0, V, 5 * D + LONGEST).astype(np.int32)
    others = words[LONGEST : LONGEST + 5 * (D - 1)]
    return Shard(np.concatenate((words[:first], others)), np.concatenate(([0], np.cumsum(lengths))))


def others_topics(first, spread):
    users, none = shard(first), np.full(first + 5 * (D - 1), -1, np.int16)
    asked, how = np.ones(D, np.bool_), (PHI, ALPHA, 7, 3, "gibbs", 1)
    if not spread:
        return resample(*users, none, asked, *how)[first:].tolist()
    return Spread.of(users, LONGEST).apply(resample, users.words, none, asked, *how)[first:].tolist()


def test_a_users_length_moves_no_other_users_draws():
    assert others_topics(4, True) == others_topics(9, True) == others_topics(0, True)
    assert others_topics(4, False) != others_topics(9, False)
