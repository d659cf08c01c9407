"""How many topics FTM ends with, on planted topics that share their general words, as topics of real texts do."""

from dataclasses import replace

import numpy as np
import pytest

import tertulia as tt
from helpers.marks import slow
from helpers.planted import word_list
from tertulia.methods.ftm.alignment import MergeWarning
from tertulia.metrics import completion

V, DOCUMENTS, SENTENCES = 400, 150, 8
WORDS = word_list(V)
METHOD = {"rounds": 4, "sweeps": 20, "evaluate": False, "vocabulary": {"max_share": 1.0}}
HELDOUT = 0.15


def planted(K: int, words: slice = slice(None)) -> np.ndarray:
    """Half of each topic is one Zipf distribution over all words; the rest is its own, over some of them."""
    zipf = np.random.default_rng(99).permutation(1 / np.arange(1, V + 1) ** 0.9)
    own = np.zeros((K, V))
    own[:, words] = np.random.default_rng(7).dirichlet(np.full(own[:, words].shape[1], 0.1), K)
    return 0.5 * zipf / zipf.sum() + 0.5 * own


def party(name: str, seed: int, phi: np.ndarray) -> tt.Corpus:
    """Documents of sentences of six words, each sentence of one topic."""
    rng, texts = np.random.default_rng(seed), []
    for _ in range(DOCUMENTS):
        topics = rng.choice(len(phi), SENTENCES, p=rng.dirichlet(np.full(len(phi), 0.3)))
        drawn = [" ".join(WORDS[w] for w in rng.choice(V, 6, p=phi[k])) for k in topics]
        texts.append(" ".join(f"{sentence.capitalize()}." for sentence in drawn))
    options = tt.TextOptions(stop_words="none")
    return tt.Corpus.from_texts(texts, ids=[f"{name}{i}" for i in range(DOCUMENTS)], options=options)


def perplexity(model: tt.Topics, parties: dict[str, tt.Corpus], total: float | None = None) -> float:
    """Of held-out tokens; with an alpha of this total where topics are compared, and not what is known of alpha."""
    if total is not None:
        model = replace(model, alpha=model.alpha * total / model.alpha.sum())
    first, *rest = [
        completion(model.topic_word, model.alpha, c.split(HELDOUT)[1].encode(model.vocabulary), smoothing=0.01)
        for c in parties.values()
    ]
    return sum(rest, start=first).perplexity


@pytest.mark.parametrize(
    ("model", "n", "K", "seed"),
    [
        *(("lda", 3, 20, 3), ("sentence", 2, 10, 1)),
        *(slow("lda", 2, 10, 1), slow("lda", 3, 12, 2), slow("sentence", 3, 12, 2), slow("sentence", 3, 20, 3)),
    ],
)
def test_parties_that_are_alike_end_with_the_topics_that_were_asked_for(model, n, K, seed):
    """Within 25 % of K, and better than the best party alone at as many sweeps, or equal to it but for 0.5 %.

    Topics are, at the same total of alpha: parties learn it and keep it, so that the shared model has 5, where the
    documents, half of whose words are general, say some 30. So it would lose, 299 to 273 with 20 topics.
    """
    parties = {f"p{i}": party(f"p{i}-", 10 * seed + i, planted(K)) for i in range(n)}
    shared = tt.FTM(topics=K, model=model, **METHOD).fit(parties, seed=seed, heldout=HELDOUT)
    assert K <= shared.n_topics <= 1.25 * K
    alone = tt.Alone(topics=K, model=model, sweeps=80, vocabulary={"max_share": 1.0}).fit(
        parties, seed=seed, heldout=HELDOUT
    )
    for total in (5.0, max(own.alpha.sum() for own in alone.local.values())):
        best = min(perplexity(own, parties, total) for own in alone.local.values())
        assert perplexity(shared, parties, total) <= 1.005 * best


@pytest.mark.parametrize("model", ["lda", "sentence"])
def test_parties_of_different_subjects_keep_their_topics_with_a_warning(model):
    K = 8
    parties = {f"p{i}": party(f"p{i}-", i, planted(K, slice(130 * i, 130 * i + 130))) for i in range(3)}
    with pytest.warns(MergeWarning, match="side by side"):
        shared = tt.FTM(topics=K, model=model, **METHOD).fit(parties, heldout=HELDOUT)
    assert shared.n_topics == 3 * K


def test_the_papers_merge_collapses_and_says_so():
    """Sentences share general words: union-find chains all topics together at the papers' xi.

    Those of mode `clear` are unlike enough: of 20, 17 are left.
    """
    parties = {f"p{i}": party(f"p{i}-", i, planted(10)) for i in range(2)}
    with pytest.warns(MergeWarning, match="fewer than the smallest"):
        shared = tt.FTM(topics=10, model="sentence", mode="paper", epsilon=20.0, **METHOD).fit(parties, heldout=HELDOUT)
    assert shared.n_topics <= 5
