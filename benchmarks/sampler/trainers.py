"""Every trainer of LDA behind one function, which yields topics on the way, with their CPU and wall seconds.

By default each trainer runs with its own defaults, and learns the priors that it learns by default. `fixed` gives all
the same priors, and no trainer learns any. The clock runs from a corpus in the trainer's own form to its topics;
loading is not timed. Ours includes the start, and not the loading of compiled kernels.

Ours trains as `tt.LDA` does. The number of averaged sweeps depends on the number of all sweeps, so every mark is a
training of its own. The last training ends by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tertulia._arrays import F64, Array
from tertulia.corpus import Corpus
from tertulia.kernels import lda
from tertulia.kernels.lda.options import NEVER, Learning

PEERS = ("tomotopy", "topica", "gensim", "sklearn")
PACKAGES = {"sklearn": "scikit-learn"}  # where the name to import is not the name to install
ALPHA, BETA = 5.0, 0.01  # where priors are fixed: the sum over all topics; of each word
OWN_MARKS, FEW_MARKS = (30, 60, 120, 180, 240, 320, 480), (30, 60, 120, 240)
_MARKS = (10, 20, 30, 50, 75, 100, 150, 200, 300, 400, 500, 600, 800, 1000)


@dataclass(frozen=True)
class Task:
    """A training for one process."""

    trainer: str
    corpus: str
    topics: int
    iterations: int
    fixed: bool = False  # the same priors for all
    threads: int = 1
    seed: int = 1

    @property
    def marks(self) -> list[int]:
        """The iterations after which the topics are scored."""
        if self.trainer in ("tertulia-once", "tertulia-auto"):
            return [self.iterations] if self.trainer == "tertulia-once" else []
        own = OWN_MARKS if self.iterations > FEW_MARKS[-1] else FEW_MARKS
        usual = own if self.trainer == "tertulia" else _MARKS
        return sorted({mark for mark in usual if mark < self.iterations} | {self.iterations})

    @property
    def name(self) -> str:
        """The name of the file with its curve."""
        priors = "-fixed" if self.fixed else ""
        return f"{self.corpus}-{self.topics}-{self.trainer}{priors}-{self.iterations}-{self.seed}"


class Step(NamedTuple):
    """A model on the way, and the CPU and wall seconds since the step before."""

    iterations: int
    cpu: float
    wall: float
    topic_word: Array  # [K, V]
    alpha: F64  # [K]
    auto: bool = False  # the trainer chose how many iterations


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
    ours = dict.fromkeys(("tertulia", "tertulia-once", "tertulia-auto"), _tertulia)  # all marks and `auto`, or one
    trainers = {"tomotopy": _tomotopy, "topica": _topica, "gensim": _gensim, "sklearn": _sklearn, **ours}
    return trainers[task.trainer](task, corpus)


def tokens(corpus: Corpus) -> list[list[str]]:
    """Return the documents as lists of words, without empty documents."""
    words = corpus.vocabulary.words
    bounds = zip(corpus.documents[:-1], corpus.documents[1:], strict=True)
    return [[words[w] for w in corpus.words[start:end]] for start, end in bounds if end > start]


def align(topic_word: Array, words: list[str], corpus: Corpus) -> Array:
    """Return a peer's topics over the corpus's words."""
    phi = np.zeros((len(topic_word), len(corpus.vocabulary)))
    phi[:, corpus.vocabulary.lookup(words)] = topic_word
    return phi


def matrix(corpus: Corpus) -> Any:
    """Return the documents as a sparse matrix of counts [D, V]."""
    from scipy.sparse import csr_matrix

    ones, shape = np.ones(corpus.n_tokens, dtype=np.int32), (corpus.n_documents, len(corpus.vocabulary))
    counts = csr_matrix((ones, corpus.words, corpus.documents), shape=shape, copy=True)
    counts.sum_duplicates()  # sorts in place: without the copy, the corpus's own words
    return counts


def _tertulia(task: Task, corpus: Corpus) -> Iterator[Step]:
    tertulia_fit(task, corpus, min(100, corpus.n_documents), 4)  # loads the kernels
    clock, cpu, wall = Clock(), 0.0, 0.0
    for mark in [*task.marks, *([] if task.trainer == "tertulia-once" else [None])]:
        state, sweeps = clock(partial(tertulia_fit, task, corpus, corpus.n_documents, mark))
        yield Step(sweeps, clock.cpu - cpu, clock.wall - wall, lda.topic_word(state), state.alpha, auto=mark is None)
        cpu, wall = clock.cpu, clock.wall


def tertulia_fit(task: Task, corpus: Corpus, D: int, sweeps: int | None) -> tuple[lda.LDAState, int]:
    """Train on the first D documents as `tt.LDA` does; return the model and the number of sweeps."""
    documents, done = corpus.documents[: D + 1], [0]
    state = lda.train(
        corpus.words[: documents[-1]],
        documents,
        len(corpus.vocabulary),
        task.topics,
        ALPHA / task.topics,
        BETA,
        sweeps,
        task.seed,
        learning=NEVER if task.fixed else Learning(alpha=True),
        threads=task.threads,
        progress=lambda sweep, _: done.append(sweep),
    )
    return state, done[-1]


def _tomotopy(task: Task, corpus: Corpus) -> Iterator[Step]:
    model, clock = tomotopy_model(task, corpus), Clock()
    done = 0
    for mark in task.marks:
        clock(partial(model.train, mark - done, workers=task.threads))
        found = np.array([model.get_topic_word_dist(k) for k in range(task.topics)])
        alpha = np.asarray(model.alpha, np.float64)
        yield Step(mark, clock.cpu, clock.wall, align(found, list(model.used_vocabs), corpus), alpha)
        done = mark


def tomotopy_model(task: Task, corpus: Corpus) -> Any:
    """Make tomotopy's model with the documents in it, untrained."""
    import tomotopy

    priors = {"alpha": ALPHA / task.topics, "eta": BETA} if task.fixed else {}
    model = tomotopy.LDAModel(k=task.topics, seed=task.seed, **priors)
    if task.fixed:
        model.optim_interval = 0
    for document in tokens(corpus):
        model.add_doc(document)
    return model


def _topica(task: Task, corpus: Corpus) -> Iterator[Step]:
    """Train topica, which cannot continue: every mark is a training of its own; only the last draws five samples."""
    import topica

    documents = topica.Corpus.from_documents(tokens(corpus), vocabulary=list(corpus.vocabulary.words))
    clock, cpu, wall = Clock(), 0.0, 0.0
    for mark in sorted({min(100, task.iterations), task.iterations}):
        model = clock(partial(topica_fit, topica, documents, task, mark))
        phi, alpha = align(model.topic_word, model.vocabulary, corpus), np.asarray(model.alpha, np.float64)
        yield Step(mark, clock.cpu - cpu, clock.wall - wall, phi, alpha)
        cpu, wall = clock.cpu, clock.wall


def topica_fit(topica: Any, documents: Any, task: Task, iterations: int) -> Any:
    """Train topica's model."""
    priors = {"alpha_sum": ALPHA, "beta": BETA, "optimize_interval": 0} if task.fixed else {}
    model = topica.LDA(task.topics, **priors, num_threads=task.threads, seed=task.seed)
    samples = {} if iterations == task.iterations else {"num_samples": 1}  # by default five, 25 iterations apart
    return model.fit(documents, iters=iterations, keep_theta_draws=False, **samples)


def _gensim(task: Task, corpus: Corpus) -> Iterator[Step]:
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaModel

    bags = list(Sparse2Corpus(matrix(corpus), documents_columns=False))
    names = dict(enumerate(corpus.vocabulary.words))
    clock, K = Clock(), task.topics
    priors = {"alpha": [ALPHA / K] * K, "eta": BETA} if task.fixed else {}
    model = LdaModel(id2word=names, num_topics=K, eval_every=None, random_state=task.seed, **priors)
    for done in range(task.iterations):
        clock(lambda: model.update(bags, passes=1))
        yield Step(done + 1, clock.cpu, clock.wall, model.get_topics(), np.asarray(model.alpha, np.float64))


def _sklearn(task: Task, corpus: Corpus) -> Iterator[Step]:
    """Train scikit-learn's batch variational Bayes, its default; every mark is a training of its own."""
    counts, clock, cpu, wall = matrix(corpus), Clock(), 0.0, 0.0
    for mark in sorted({max(task.iterations // 2, 1), task.iterations}):
        model = clock(partial(sklearn_model(task, mark).fit, counts))
        alpha = np.full(task.topics, model.doc_topic_prior_)
        yield Step(mark, clock.cpu - cpu, clock.wall - wall, model.components_, alpha)
        cpu, wall = clock.cpu, clock.wall


def sklearn_model(task: Task, passes: int) -> Any:
    """Make scikit-learn's model, untrained."""
    from sklearn.decomposition import LatentDirichletAllocation

    K = task.topics
    priors = {"doc_topic_prior": ALPHA / K, "topic_word_prior": BETA} if task.fixed else {}
    return LatentDirichletAllocation(K, **priors, n_jobs=task.threads, random_state=task.seed, max_iter=passes)
