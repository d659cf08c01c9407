"""Texts about four subjects in common English words, which the shipped word vectors tell apart."""

import numpy as np

THEMES = {
    "sport": "football coach league score goal player match stadium championship tournament referee striker",
    "money": "bank loan interest mortgage credit finance investor market shares profit economy currency",
    "health": "doctor patient hospital disease treatment surgery nurse clinic infection cancer diagnosis therapy",
    "music": "guitar singer concert album band orchestra melody song piano drum lyrics opera",
}
COMMON = ["people", "year", "day", "week", "place", "thing", "group", "city", "country", "number"]
SUBJECTS = list(THEMES)
WORDS = tuple(word for words in THEMES.values() for word in words.split()) + tuple(COMMON)
PUBLIC = {"mode": "public", "words": list(WORDS)}


def themed(n: int, seed: int, length: int = 14) -> tuple[list[str], list[int]]:
    """Texts of one subject each, with some common words, and the numbers of their subjects."""
    rng = np.random.default_rng(seed)
    subjects = rng.integers(0, len(THEMES), n)
    texts = []
    for subject in subjects:
        own = rng.choice(THEMES[SUBJECTS[subject]].split(), length - 5)
        texts.append(" ".join(rng.permutation([*own, *rng.choice(COMMON, 5)])))
    return texts, subjects.tolist()
