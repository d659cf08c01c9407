"""Short texts of ten public words, for runs that need some documents and no more."""

import numpy as np

STEMS = ["harbour", "garden", "engine", "violin", "winter", "letter", "bridge", "market", "copper", "meadow"]
PUBLIC = {"mode": "public", "words": STEMS}


def halves(seed: int, n: int = 25) -> list[str]:
    """Documents of one half of the words, then of the other, in turn; of two sentences each."""
    rng = np.random.default_rng(seed)
    kinds = [STEMS[:5], STEMS[5:]]
    return [" ".join(rng.choice(kinds[i % 2], 11)).capitalize() + ". Letter garden." for i in range(n)]


def mixed(seed: int, n: int = 25) -> list[str]:
    """Documents of all words, seventeen each, in two sentences."""
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(STEMS, 12)) + ". " + " ".join(rng.choice(STEMS, 5)) + "." for _ in range(n)]
