"""Documents planted around a target: their cluster shows its secret where nothing protects, and not under noise.

`python -m benchmarks.embedding_topics --parts attack` has many more targets, among real documents.
"""

import numpy as np
import pytest

from benchmarks.embedding_topics.attack import (
    GUESS,
    SECRETS,
    cluster_and_summarise,
    guesses,
    ours,
    over_public_list,
    scene,
)
from tertulia.corpus.vocabulary import public

TARGETS = 8
# One run of 8 targets by luck alone: 7 or more right have a chance of 8 in 100,000
MOST_BY_LUCK = 6


@pytest.fixture(scope="module")
def others():
    """Documents of thirty subjects, a few of which have a secret word as well."""
    rng = np.random.default_rng(0)
    subjects = rng.permutation(public("english").words[:3000]).reshape(30, 100)
    drawn = [[*rng.choice(subjects[n % 30], 25), *rng.choice(SECRETS, int(n % 40 == 0))] for n in range(6000)]
    return over_public_list([" ".join(words) for words in drawn])


def attack(method, others, seed):
    given = scene(others, seed, TARGETS)
    return sum(guesses(method(given, seed), given, np.random.default_rng(seed)))


def test_without_protection_the_cluster_shows_the_secret(others):
    assert attack(cluster_and_summarise, others, 1) >= 6


def test_without_noise_the_cluster_shows_the_secret_and_the_pages_say_so(others):
    assert attack(ours(None, chosen=True), others, 1) >= 6


@pytest.mark.parametrize("how", [{}, {"chosen": True, "server": True}], ids=str)
def test_noise_hides_the_secret(others, how):
    assert GUESS < 0.5
    assert attack(ours(3.0, **how), others, 1) <= MOST_BY_LUCK
