"""Our coherence compared with gensim on 20 Newsgroups: the same topics and tokens, one thread each, interleaved.

gensim gets prepared inputs (token lists, dictionary, bags of words). Only the scoring is timed, in CPU seconds, which a
busy machine disturbs least. When the first occurrence of a word leaves the sliding window, gensim forgets the others,
so its C_V and C_NPMI differ from the definitions. gensim is timed as shipped. `max_abs_diff` compares with gensim after
a repair of that method, and `max_abs_diff_as_shipped` with gensim as it is.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

try:
    from gensim.corpora import Dictionary
    from gensim.models import CoherenceModel
    from gensim.topic_coherence.text_analysis import WordOccurrenceAccumulator
except ModuleNotFoundError as error:
    raise SystemExit("This benchmark needs gensim: pip install '.[bench]'") from error

from benchmarks.common import arguments, finish, newsgroups, say, time_cpu
from tertulia._arrays import F64
from tertulia.corpus import Corpus
from tertulia.kernels import lda
from tertulia.metrics import c_v, npmi, umass_gensim
from tertulia.models import Topics

TOP = 10
ROUNDS = {"npmi": 3, "umass": 9, "c_v": 3}  # gensim's UMass is fast, but short times are noisy
MEASURES = {"npmi": (npmi, "c_npmi"), "umass": (umass_gensim, "u_mass"), "c_v": (c_v, "c_v")}  # ours, gensim's name


class Peer(NamedTuple):
    """The corpus in gensim's format."""

    texts: list[list[str]]
    dictionary: Dictionary
    corpus: list[Any]

    def score(self, topics: list[list[str]], measure: str) -> F64:
        """Score topics as in gensim's manual."""
        model = CoherenceModel(topics=topics, **self._asdict(), coherence=measure, topn=TOP, processes=1)
        return np.array(model.get_coherence_per_topic())


def peer(corpus: Corpus) -> Peer:
    """Convert a corpus to gensim's format."""
    words = corpus.vocabulary.words
    bounds = zip(corpus.documents[:-1], corpus.documents[1:], strict=True)
    texts = [[words[w] for w in corpus.words[start:end]] for start, end in bounds]
    dictionary = Dictionary(texts)
    return Peer(texts, dictionary, [dictionary.doc2bow(text) for text in texts])


def train(corpus: Corpus, K: int) -> Topics:
    """Train real topics to score, with our own sampler."""
    state = lda.init(corpus.words, corpus.documents, len(corpus.vocabulary), K, 10.0 / K, 0.01, key=1)
    state, _ = lda.run(corpus.words, corpus.documents, state, sweeps=50, key=2)
    return Topics(lda.topic_word(state), corpus.vocabulary, alpha=state.alpha)


@contextmanager
def repair_gensim() -> Iterator[None]:
    """Make gensim's window hold exactly the words that are in it."""

    def slide(self: Any, window: Any, _: object) -> None:
        self._uniq_words[:] = False
        self._uniq_words[np.unique(window)] = True

    with mock.patch.object(WordOccurrenceAccumulator, "_slide_window", slide):
        yield


def race(topics: list[list[str]], corpus: Corpus, gensim: Peer, name: str) -> dict[str, float]:
    """Time both in turn, so that a busy machine affects both; compare the medians and the values."""
    measure, gensim_name = MEASURES[name]
    found = measure(topics, corpus).per_topic  # also compiles
    mine, other = [], []
    for _ in range(ROUNDS[name]):
        mine += [time_cpu(lambda: measure(topics, corpus))[0] for _ in range(9)]
        taken, shipped = time_cpu(lambda: gensim.score(topics, gensim_name))
        other.append(taken)
    with repair_gensim():
        defined = gensim.score(topics, gensim_name)
    return {
        "cpu_seconds": statistics.median(mine),
        "gensim_cpu_seconds": statistics.median(other),
        "speedup": statistics.median(other) / statistics.median(mine),
        "max_abs_diff": float(np.abs(found - defined).max()),
        "max_abs_diff_as_shipped": float(np.abs(found - shipped).max()),
    }


def compare(corpus: Corpus, gensim: Peer, K: int) -> dict[str, dict[str, float]]:
    """Race all measures on a model of K topics."""
    topics = train(corpus, K).top_words(TOP)
    results = {}
    for name in MEASURES:
        results[name] = result = race(topics, corpus, gensim, name)
        say(
            f"K = {K} {name:>5}: {result['cpu_seconds'] * 1e3:7.2f} ms, gensim {result['gensim_cpu_seconds']:6.2f} s, "
            f"{result['speedup']:6.0f} times faster; largest difference {result['max_abs_diff']:.1e} "
            f"({result['max_abs_diff_as_shipped']:.1e} as shipped)"
        )
    return results


def main() -> None:
    """Run the benchmark."""
    quick = arguments("Topic coherence against gensim on 20 Newsgroups").quick
    corpus = newsgroups()
    gensim = peer(corpus)
    runs = {K: compare(corpus, gensim, K) for K in ((20,) if quick else (20, 50))}
    worst = {name: [run[name] for run in runs.values()] for name in MEASURES}
    finish(
        {
            "benchmark": "coherence",
            "documents": corpus.n_documents,
            "tokens": corpus.n_tokens,
            "words": len(corpus.vocabulary),
            "speedups": {name: round(min(run["speedup"] for run in runs), 1) for name, runs in worst.items()},
            "max_abs_diff": {name: max(run["max_abs_diff"] for run in runs) for name, runs in worst.items()},
            "max_abs_diff_as_shipped": {
                name: max(run["max_abs_diff_as_shipped"] for run in runs) for name, runs in worst.items()
            },
            "runs": {f"K{K}": run for K, run in runs.items()},
        }
    )


if __name__ == "__main__":
    main()
