"""Every trainer of LDA behind one function: a corpus in, topics after some sweeps out, and what they cost.

Each peer runs as its manual says it is fastest: priors fixed, no optimisation of hyper-parameters, no traces, no
averaging of samples. The clock runs from a corpus in the peer's own form to its topics; loading is not timed. Ours
includes the warm start, and not the loading of compiled kernels.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tertulia._arrays import Array
from tertulia.corpus import Corpus

PEERS = ("tomotopy", "topica", "gensim", "sklearn")
PACKAGES = {"sklearn": "scikit-learn"}  # where the name to import is not the name to install
VARIATIONAL = ("gensim", "sklearn")  # they pass over the documents, each about forty times the cost of a sweep
ALPHA, BETA = 10.0, 0.01  # the sum over all topics; of each word
EPOCH = (0.125, 0.25, 0.5, 1.0)  # where on the way our warm start is scored: each a start on that share of documents


@dataclass(frozen=True)
class Task:
    """What one process has to train."""

    trainer: str
    directory: str  # with the corpora train/ and heldout/
    topics: int
    sweeps: int
    threads: int = 1
    seed: int = 1

    @property
    def marks(self) -> list[int]:
        """The sweeps after which the topics are scored."""
        ladder = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 45, 60, 80, 100, 150, 200)
        return sorted({mark for mark in ladder if mark < self.sweeps} | {self.sweeps})


class Step(NamedTuple):
    """Topics on the way, and the CPU and wall seconds since the step before."""

    sweeps: int
    cpu: float
    wall: float
    topic_word: Array  # [K, V]


class Clock:
    """Measures a piece of work: CPU seconds of all threads, and wall seconds."""

    cpu = wall = 0.0

    def __call__(self, work: Callable[[], Any]) -> Any:
        """Do the work."""
        cpu, wall = time.process_time(), time.perf_counter()
        value = work()
        self.cpu, self.wall = time.process_time() - cpu, time.perf_counter() - wall
        return value


def train(task: Task, corpus: Corpus) -> Iterator[Step]:
    """Train, and stop at every mark."""
    name, _, variant = task.trainer.partition(":")
    trainers = {"tertulia": _tertulia, "tomotopy": _tomotopy, "topica": _topica, "gensim": _gensim, "sklearn": _sklearn}
    return trainers[name](task, corpus, variant)


def tokens(corpus: Corpus) -> list[list[str]]:
    """The documents as lists of words, those without words left out."""
    words = corpus.vocabulary.words
    bounds = zip(corpus.documents[:-1], corpus.documents[1:], strict=True)
    return [[words[w] for w in corpus.words[start:end]] for start, end in bounds if end > start]


def align(topic_word: Array, words: list[str], corpus: Corpus) -> Array:
    """A peer's topics over the corpus's words."""
    phi = np.zeros((len(topic_word), len(corpus.vocabulary)))
    phi[:, corpus.vocabulary.lookup(words)] = topic_word
    return phi


def matrix(corpus: Corpus) -> Any:
    """The documents as a sparse matrix of counts [D, V]."""
    from scipy.sparse import csr_matrix

    ones, shape = np.ones(corpus.n_tokens, dtype=np.int32), (corpus.n_documents, len(corpus.vocabulary))
    counts = csr_matrix((ones, corpus.words, corpus.documents), shape=shape, copy=True)
    counts.sum_duplicates()  # sorts in place: without the copy, the corpus's own words
    return counts


def _tertulia(task: Task, corpus: Corpus, sampler: str) -> Iterator[Step]:
    from tertulia.kernels import lda

    V, K, clock = len(corpus.vocabulary), task.topics, Clock()

    def begin(words: Array, documents: Array, sweeps: int) -> Any:
        priors = (ALPHA / K, BETA)
        options: dict[str, Any] = {"sampler": sampler or "auto", "threads": task.threads}
        state = lda.train(words, documents, V, K, *priors, 0, task.seed, **options)
        return lda.run(words, documents, state, sweeps, task.seed, phi="mean", **options)[0]

    few, cpu, wall = corpus.documents[:3], 0.0, 0.0
    begin(corpus.words[: few[-1]], few, 1)  # loads the kernels
    for share in EPOCH:
        part = corpus.documents[: round(share * corpus.n_documents) + 1]
        state = clock(partial(begin, corpus.words[: part[-1]], part, 0))
        yield Step(0, clock.cpu - cpu, clock.wall - wall, lda.topic_word(state))
        cpu, wall = clock.cpu, clock.wall
    done = 0
    for mark in task.marks:
        more: dict[str, Any] = {"sampler": sampler or "auto", "threads": task.threads, "phi": "mean"}
        work = (corpus.words, corpus.documents, state, mark - done, task.seed + 1 + mark)
        state = clock(partial(lda.run, *work, **more))[0]
        yield Step(mark, clock.cpu, clock.wall, lda.topic_word(state))
        done = mark


def _tomotopy(task: Task, corpus: Corpus, _: str) -> Iterator[Step]:
    model, clock = tomotopy_model(task, corpus), Clock()
    done = 0
    for mark in [mark for mark in task.marks if mark >= 5]:  # a call for every sweep would cost it time
        clock(partial(model.train, mark - done, workers=task.threads))
        found = np.array([model.get_topic_word_dist(k) for k in range(task.topics)])
        yield Step(mark, clock.cpu, clock.wall, align(found, list(model.used_vocabs), corpus))
        done = mark


def tomotopy_model(task: Task, corpus: Corpus) -> Any:
    """Tomotopy's model with the documents in it, untrained."""
    import tomotopy

    model = tomotopy.LDAModel(k=task.topics, alpha=ALPHA / task.topics, eta=BETA, seed=task.seed)
    model.optim_interval = 0
    for document in tokens(corpus):
        model.add_doc(document)
    return model


def _topica(task: Task, corpus: Corpus, sampler: str) -> Iterator[Step]:
    """It cannot continue, so every mark is a training of its own."""
    import topica

    documents = topica.Corpus.from_documents(tokens(corpus), vocabulary=list(corpus.vocabulary.words))
    clock, cpu, wall = Clock(), 0.0, 0.0
    for mark in sorted({max(task.sweeps // 4, 1), max(task.sweeps // 2, 1), task.sweeps}):
        model = clock(partial(topica_fit, topica, documents, task, sampler, mark))
        yield Step(mark, clock.cpu - cpu, clock.wall - wall, align(model.topic_word, model.vocabulary, corpus))
        cpu, wall = clock.cpu, clock.wall


def topica_fit(topica: Any, documents: Any, task: Task, sampler: str, sweeps: int) -> Any:
    """Topica's model, trained."""
    priors = {"alpha_sum": ALPHA, "beta": BETA, "optimize_interval": 0}
    model = topica.LDA(task.topics, **priors, num_threads=task.threads, sampler=sampler or "warp", seed=task.seed)
    return model.fit(documents, iters=sweeps, num_samples=1, keep_theta_draws=False, check_every=0)


def _gensim(task: Task, corpus: Corpus, _: str) -> Iterator[Step]:
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaModel

    bags = list(Sparse2Corpus(matrix(corpus), documents_columns=False))
    names = dict(enumerate(corpus.vocabulary.words))
    clock, K = Clock(), task.topics
    model = LdaModel(
        id2word=names, num_topics=K, alpha=[ALPHA / K] * K, eta=BETA, eval_every=None, random_state=task.seed
    )
    for done in range(task.sweeps):
        clock(lambda: model.update(bags, passes=1))
        yield Step(done + 1, clock.cpu, clock.wall, model.get_topics())


def _sklearn(task: Task, corpus: Corpus, _: str) -> Iterator[Step]:
    """Batch variational Bayes: its online kind reaches less in the same time. Every mark is a training of its own."""
    counts, clock, cpu, wall = matrix(corpus), Clock(), 0.0, 0.0
    for mark in sorted({max(task.sweeps // 2, 1), task.sweeps}):
        model = clock(partial(sklearn_model(task, mark).fit, counts))
        yield Step(mark, clock.cpu - cpu, clock.wall - wall, model.components_)
        cpu, wall = clock.cpu, clock.wall


def sklearn_model(task: Task, passes: int) -> Any:
    """scikit-learn's model, untrained."""
    from sklearn.decomposition import LatentDirichletAllocation

    K = task.topics
    priors = {"doc_topic_prior": ALPHA / K, "topic_word_prior": BETA}
    options = {"learning_method": "batch", "n_jobs": task.threads, "random_state": task.seed}
    return LatentDirichletAllocation(K, **priors, **options, max_iter=passes)
