"""Seeds of clusters: as the rule says, one by one, and the same at any number of threads."""

import numpy as np
import pytest

from tertulia.kernels.core.jit import freeze
from tertulia.kernels.core.rng import derive
from tertulia.kernels.lda import seeding

D, V, KEY = 150, 40, derive(3)


@pytest.fixture(scope="module")
def rows():
    """Documents of up to twelve words, some empty."""
    generator = np.random.default_rng(1)
    chosen = [np.sort(generator.choice(V, n, replace=False)) for n in generator.integers(0, 13, size=D)]
    values = [generator.gamma(1.0, size=len(some)) for some in chosen]
    values = [some / max(np.linalg.norm(some), 1e-9) for some in values]
    starts = np.concatenate([[0], np.cumsum([len(some) for some in chosen])])
    sizes = generator.integers(1, 50, size=D)
    return seeding.Rows(freeze(starts, np.int64), freeze(np.concatenate(chosen), np.int32),
                        freeze(np.concatenate(values), np.float32), freeze(sizes, np.float32))  # fmt: skip


def by_the_rule(rows, K):
    """Seeds as the module describes them, by dense arrays."""
    dense = np.zeros((D, V))
    for d in range(D):
        mine = slice(rows.starts[d], rows.starts[d + 1])
        dense[d, rows.words[mine]] = rows.values[mine]
    alike, best, found, n = dense @ dense.T, np.zeros(D), [], seeding.CANDIDATES
    for k in range(K):
        upto = np.cumsum(rows.sizes * np.maximum(1 - best, 1e-6) ** 6)
        draws = [((int(derive(KEY, n * k + c)) >> 12) + 0.5) * 2.0**-52 * upto[-1] for c in range(n)]
        candidates = np.searchsorted(upto, draws, side="right")
        gains = [(rows.sizes * np.maximum(best, alike[c])).sum() for c in candidates]
        found.append(candidates[int(np.argmax(gains))])
        best = np.maximum(best, alike[found[-1]])
    return found


def test_the_rule_is_followed(rows):
    assert seeding.seeds(rows, V, 30, KEY).tolist() == by_the_rule(rows, 30)


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_same_seeds_at_any_number_of_threads(rows, threads):
    assert np.array_equal(seeding.seeds(rows, V, 30, KEY), seeding.seeds(rows, V, 30, KEY, threads))
