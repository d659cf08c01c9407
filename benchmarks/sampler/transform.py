"""The race of inference: topic shares of unseen documents, in CPU seconds and in how well they complete them.

Everybody sees the first half of each held-out document; the shares are scored on the second. scikit-learn and gensim
infer under our topics; tomotopy and topica cannot be given any, so they infer under their own, trained before.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.common import time_cpu
from benchmarks.sampler.corpora import parts
from benchmarks.sampler.trainers import align, matrix, tokens
from tertulia._arrays import Array
from tertulia.corpus import Corpus
from tertulia.kernels import lda
from tertulia.metrics import perplexity_plugin
from tertulia.models import Topics

Infer = Callable[[], Array]  # -> theta [D, K]
ALPHA, BETA, SEED = 10.0, 0.01, 1  # the priors: the sum over all topics; of each word
ITERATIONS = 20  # sweeps of the peers' samplers; their variational methods stop by themselves, and so does ours


def sweeps(K: int) -> int:
    """Return the training length of peers that need a model of their own."""
    return 60 if K < 1000 else 20


def ours(corpus: Corpus, K: int) -> Topics:
    """Train the topics under which most trainers infer."""
    V, priors = len(corpus.vocabulary), (ALPHA / K, BETA)
    state = lda.train(corpus.words, corpus.documents, V, K, *priors, sweeps(K), SEED)
    return Topics(lda.topic_word(state), corpus.vocabulary, state.alpha, BETA, state.ck.astype(np.float64))


def halves(corpus: Corpus) -> tuple[Corpus, Corpus]:
    """Return first and second halves of the documents that have both."""
    corpus = corpus.select(corpus.lengths >= 2)
    middle = corpus.documents[:-1] + corpus.lengths // 2
    return _only(corpus, corpus.documents[:-1], middle), _only(corpus, middle, corpus.documents[1:])


def _only(corpus: Corpus, starts: Array, ends: Array) -> Corpus:
    documents = np.concatenate(([0], np.cumsum(ends - starts)))
    words = np.concatenate([corpus.words[start:end] for start, end in zip(starts, ends, strict=True)])
    return Corpus(words, documents, documents, documents, corpus.vocabulary, corpus.table)


def sklearn(model: Topics, train: Corpus, seen: Corpus) -> tuple[Array, Infer]:
    """Prepare scikit-learn's `transform`."""
    from scipy.special import digamma
    from sklearn.decomposition import LatentDirichletAllocation

    K, weights = model.n_topics, np.asarray(model.weights)
    peer = LatentDirichletAllocation(K, doc_topic_prior=ALPHA / K, topic_word_prior=BETA, max_iter=1, random_state=1)
    peer.fit(matrix(train.select(np.arange(50))))
    peer.components_ = model.topic_word * weights[:, None] * train.n_tokens + BETA
    peer.exp_dirichlet_component_ = np.exp(
        digamma(peer.components_) - digamma(peer.components_.sum(axis=1, keepdims=True))
    )
    counts = matrix(seen)
    return model.topic_word, lambda: np.asarray(peer.transform(counts))


def gensim(model: Topics, train: Corpus, seen: Corpus) -> tuple[Array, Infer]:
    """Prepare Gensim's `inference`."""
    from gensim.matutils import Sparse2Corpus

    peer = model.to_gensim()
    bags = list(Sparse2Corpus(matrix(seen), documents_columns=False))

    def infer() -> Array:
        gamma = peer.inference(bags)[0]
        return np.asarray(gamma / gamma.sum(axis=1, keepdims=True), np.float64)

    return model.topic_word, infer


def tomotopy(model: Topics, train: Corpus, seen: Corpus) -> tuple[Array, Infer]:
    """Prepare tomotopy's `infer`, all documents together."""
    import tomotopy as package

    K = model.n_topics
    peer = package.LDAModel(k=K, alpha=ALPHA / K, eta=BETA, seed=SEED)
    peer.optim_interval = 0
    for document in tokens(train):
        peer.add_doc(document)
    peer.train(sweeps(K), workers=1)
    phi = np.array([peer.get_topic_word_dist(k) for k in range(K)])
    texts = tokens(seen)

    def infer() -> Array:
        documents = [peer.make_doc(text) for text in texts]
        return np.array(peer.infer(documents, iterations=ITERATIONS, workers=1, together=True)[0], np.float64)

    return align(phi, list(peer.used_vocabs), train), infer


def topica(model: Topics, train: Corpus, seen: Corpus) -> tuple[Array, Infer]:
    """Prepare topica's `transform`."""
    import topica as package

    documents = package.Corpus.from_documents(tokens(train), vocabulary=list(train.vocabulary.words))
    K = model.n_topics
    options: dict[str, Any] = {"optimize_interval": 0, "num_threads": 1, "sampler": "warp", "seed": SEED}
    peer = package.LDA(K, alpha_sum=ALPHA, beta=BETA, **options)
    peer = peer.fit(documents, iters=sweeps(K), num_samples=1, keep_theta_draws=False, check_every=0)
    unseen = documents.transform(tokens(seen))
    schedule = {"iters": ITERATIONS, "burn_in": ITERATIONS // 2, "num_samples": 2, "sample_interval": 5}
    return align(peer.topic_word, peer.vocabulary, train), lambda: np.asarray(peer.transform(unseen, **schedule))


PEERS = {"tomotopy": tomotopy, "topica": topica, "gensim": gensim, "sklearn": sklearn}


def race(documents: tuple[Corpus, Corpus], K: int, peers: Sequence[str], rounds: int) -> dict[str, dict[str, float]]:
    """Measure seconds and perplexity of all on the held-out part; rounds are interleaved."""
    train, heldout = documents
    seen, unseen = halves(heldout)
    model = ours(train, K)
    runners: dict[str, tuple[Array, Infer]] = {"tertulia": (model.topic_word, lambda: model.transform(seen))}
    runners |= {name: PEERS[name](model, train, seen) for name in peers}
    found: dict[str, list[float]] = {name: [] for name in runners}
    scores = {name: perplexity_plugin(phi, infer(), unseen) for name, (phi, infer) in runners.items()}
    for _ in range(rounds):
        for name, (_phi, infer) in runners.items():
            repeats = 5 if name == "tertulia" else 1  # short times are noisy
            found[name] += [time_cpu(infer)[0] for _ in range(repeats)]
    return {name: {"cpu_s": statistics.median(found[name]), "perplexity": scores[name]} for name in runners}


def main() -> None:
    """Race what the command line says: a corpus, topics, peers, rounds."""
    wanted: dict[str, Any] = json.loads(sys.argv[1])
    print(json.dumps(race(parts(wanted["corpus"]), wanted["topics"], wanted["peers"], wanted["rounds"])))


if __name__ == "__main__":
    main()
