"""Models for the explorer: topics of counts, as samplers leave them, over words of many kinds."""

import numpy as np

from tertulia import Topics
from tertulia.corpus import TextOptions, Vocabulary

ODD = (
    "naïve", "straße", "нормальный", "οδός", "don't", "mp3", "été", "नमस्ते", "l'arbre", "ångström", "п'ять", "ısı",
    "istanbul", "can't", "co2", "日本", "ﬁne", "1,000.5", "2026", "c'est", "arbre", "est", "o'clock", "Zürich", "the",
)  # fmt: skip
SYLLABLES = ("ba", "ke", "lo", "mi", "nu", "ra", "se", "ti", "vo", "za")


def made_up_words(n):
    """Words that nobody uses: barake, barala and so on."""
    return [
        "".join(SYLLABLES[number // 10**i % 10] for i in range(4)) + SYLLABLES[number % 7] + "n" for number in range(n)
    ]


def counted_model(K=8, V=400, *, seed=0, options=None, **parts):
    """A model of K topics whose words were counted, not drawn: most entries are what smoothing left."""
    draw = np.random.default_rng(seed)
    words = list(dict.fromkeys([*ODD, *made_up_words(V)]))[:V]
    mixtures = draw.dirichlet(np.full(V, 0.05), K)
    sizes = draw.integers(20 * V, 60 * V, K)
    counts = np.array([draw.multinomial(n, mixture) for n, mixture in zip(sizes, mixtures, strict=True)])
    phi = (counts + 0.01) / (counts + 0.01).sum(axis=1, keepdims=True)
    alpha = draw.uniform(0.02, 0.3, K)
    return Topics(
        phi, Vocabulary(tuple(words)), alpha, 0.01, sizes.astype(float), options or TextOptions(), {"method": "lda"},
        **parts,
    )  # fmt: skip


def texts_for(model, n=200, *, seed=1):
    """Texts of a model's words between words that it does not know, in all kinds of writing."""
    draw = np.random.default_rng(seed)
    words = model.vocabulary.words
    between = (
        "The",
        "and",
        "unheard",
        "3",
        "3.14",
        "état",
        "İstanbul",
        "I",
        "ΟΔΟΣ",
        "ΟΔΌΣ",
        "Straße",
        "NAÏVE",
        "don’t",
    )
    marks = (
        " ",
        " ",
        " ",
        ", ",
        ". ",
        "\n\n",
        "-",
        "_",
        "'s ",
        "\u00ad",
        " “",
        "” ",
        "…",
        "。",
        "\t",
        " 🙂 ",
        "\u200d ",
    )
    texts = [
        "",
        "   ",
        "?!",
        "the and of",
        words[0],
        "e\u0301te\u0301 na\u0308ive",
        "O'CLOCK o’clock",
        "DON'T Can't can’T",
    ]
    for _ in range(n - len(texts)):
        k = draw.integers(model.n_topics)
        own = draw.choice(words, size=draw.integers(1, 60), p=model.topic_word[k] / model.topic_word[k].sum())
        pieces = []
        for word in own:
            shown = word.upper() if draw.random() < 0.1 else word.title() if draw.random() < 0.1 else word
            other = draw.random() < 0.2
            pieces += [
                between[draw.integers(len(between))] + " " if other else "",
                shown,
                marks[draw.integers(len(marks))],
            ]
        texts.append("".join(pieces))
    return texts
