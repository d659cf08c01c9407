"""The number of topics: a sweep over several numbers with three measures, and a rule that picks one.

>>> import tertulia as tt
>>> found = tt.choose_topics(texts, topics=(5, 10, 20, 40))  # doctest: +SKIP
>>> found.best, found.model  # doctest: +SKIP
>>> found.plot()  # doctest: +SKIP
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tertulia._lazy import view
from tertulia.api.estimators import Estimator
from tertulia.api.lda import LDA
from tertulia.api.progress import Tick, show_progress
from tertulia.corpus import Corpus, TextOptions
from tertulia.corpus.counts import from_counts, is_matrix
from tertulia.corpus.inputs import Documents, as_corpus, with_column
from tertulia.errors import ConfigError, InputError
from tertulia.metrics import completion
from tertulia.metrics.coherence import npmi
from tertulia.models import Topics
from tertulia.models.compare import match_one_to_one, similarities

if TYPE_CHECKING:
    import polars as pl

NEAR = 0.02  # relative tolerance above the lowest perplexity
_TOP = 50  # words by which topics of two runs are matched


@dataclass(frozen=True, eq=False, repr=False)
class TopicNumbers:
    """The result of a sweep.

    `best` is the number with the most stable topics, among those whose held-out perplexity is at most 2 % above the
    lowest; among equals it is the smallest. Neural models have no such perplexity, and are chosen by stability only; a
    sweep with one run each chooses the fewest topics. Coherence is only reported, because it favours few, general
    topics.
    """

    table: pl.DataFrame  # a row for each number: topics, perplexity, coherence, stability, seconds
    best: int
    models: dict[int, Topics]  # the first run of each number, trained without the held-out documents

    @property
    def model(self) -> Topics:
        """The model with the best number of topics."""
        return self.models[self.best]

    @property
    def why(self) -> str:
        """The choice in a sentence."""
        sizes = self.table["topics"].to_list()
        end = " It is the largest that was tried: try larger ones, too." if self.best == max(sizes) else ""
        if self.best == min(sizes) and len(sizes) > 1:
            end = " It is the smallest that was tried: try smaller ones, too."
        near = "" if self.table["perplexity"].null_count() else f" among those within {NEAR:.0%} of the best perplexity"
        rule = "the fewest" if self.table["stability"].null_count() else "the most stable"
        return f"{self.best} topics: {rule}{near}.{end}"

    def plot(self, ax: Any = None) -> Any:
        """Draw the measures over the number of topics (the extra `plot`); returns matplotlib's axes."""
        return view("topic_numbers_plot")(self, ax=ax)

    def __repr__(self) -> str:
        return f"{self.table}\n{self.why}"


def choose_topics(
    documents: Documents,
    topics: Iterable[int] = (5, 10, 20, 40),
    *,
    estimator: Estimator | None = None,
    runs: int = 2,
    heldout: float = 0.1,
    text: TextOptions | None = None,
    column: str | None = None,
    progress: bool | Tick | None = None,
) -> TopicNumbers:
    """Train models with several numbers of topics and measure them.

    Measures are means over `runs` with different seeds: the perplexity of a share `heldout` of the documents, which are
    not used for training; coherence, the NPMI of ten top words in all documents (for counts, which have no word order,
    over whole documents); stability, the similarity (from 0 to 1) of the topics of two runs, matched one to one.
    `estimator` has all other settings; the default is `tt.LDA()`, others are `tt.LDA(sweeps=200)` or `tt.ProdLDA()`.
    """
    numbers = _check(topics, runs, heldout)
    untrained = LDA() if estimator is None else estimator
    documents = with_column(documents, column)
    corpus = _corpus(documents, text or untrained.text, untrained)
    if counts := is_matrix(documents):  # every column is a word to model
        words = {"mode": "public", "words": corpus.vocabulary.words}
        untrained = type(untrained)(**{**untrained.get_params(), "vocabulary": words})
    train, rest = corpus.split(heldout, seed=untrained._seed())
    if not train.n_documents or not rest.n_documents:
        raise InputError(
            f"{corpus.n_documents} documents leave {train.n_documents} to train on and {rest.n_documents} to score: "
            "give more documents, or another `heldout`"
        )
    rows, models = [], {}
    with show_progress(progress, "choose_topics", "model", "perplexity", len(numbers) * runs) as tick:
        for place, K in enumerate(numbers):
            started, found = time.monotonic(), []
            for run in range(runs):
                found.append(_train(untrained, K, run, train))
                scores = [_perplexity_or_none(model, rest) for model in found]
                if tick is not None:
                    tick(place * runs + run + 1, float("nan") if scores[-1] is None else scores[-1])
            models[K] = found[0]
            measures = _row(K, found, scores, corpus, window=None if counts else 10)
            rows.append(measures | {"seconds": time.monotonic() - started})
    table = _table(rows)
    return TopicNumbers(table, _best(table), models)


def _check(topics: Iterable[int], runs: int, heldout: float) -> list[int]:
    if isinstance(topics, int | str) or not isinstance(topics, Iterable):
        raise ConfigError(f"topics = {topics!r}: give the numbers to try, such as (5, 10, 20, 40)")
    numbers = sorted({int(K) for K in topics})
    if not numbers or numbers[0] < 1:
        raise ConfigError(f"topics = {numbers}: give the numbers to try, such as (5, 10, 20, 40)")
    if runs < 1 or not 0 < heldout < 1:
        raise ConfigError(f"runs = {runs}, heldout = {heldout}: give 1 run or more, and a share between 0 and 1")
    return numbers


def _corpus(documents: Documents, text: TextOptions | None, estimator: Estimator) -> Corpus:
    if is_matrix(documents):
        return from_counts(documents)
    return as_corpus(None, documents, text, keep_text=getattr(estimator.trainer, "kind", "prodlda") != "prodlda")


def _train(estimator: Estimator, K: int, run: int, train: Corpus) -> Topics:
    fresh = type(estimator)(**{**estimator.get_params(), "topics": K})
    return fresh.fit(train, seed=estimator._seed() + run, progress=False).topics_


def _perplexity_or_none(model: Topics, rest: Corpus) -> float | None:
    """Compute the perplexity by completion; None for a neural model, whose topics mix differently."""
    if model.encoder is not None:
        return None
    return completion(model.topic_word, model.alpha, rest.encode(model.vocabulary)).perplexity


def _row(
    K: int, models: Sequence[Topics], scores: Sequence[float | None], corpus: Corpus, window: int | None
) -> dict[str, Any]:
    reference = corpus.encode(models[0].vocabulary)
    coherence = [npmi(model, reference, window=window).mean for model in models]
    pairs = [agreement(one, other) for one, other in combinations(models, 2)]
    known = [score for score in scores if score is not None]
    return {
        "topics": K,
        "perplexity": float(np.mean(known)) if known else None,
        "coherence": float(np.mean(coherence)),
        "stability": float(np.mean(pairs)) if pairs else None,
    }


def agreement(one: Topics, other: Topics) -> float:
    """Compute the mean similarity of the topics of two models, matched one to one: 1 if they are equal."""
    similarity = similarities(one, other, _TOP)
    return float(sum(similarity[pair] for pair in match_one_to_one(similarity, 0.0)) / max(similarity.shape))


def _table(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    import polars as pl

    from tertulia.models.frame import Frame

    kinds = {"topics": pl.Int64, **dict.fromkeys(("perplexity", "coherence", "stability", "seconds"), pl.Float64)}
    return Frame(rows, schema=kinds)


def _best(table: pl.DataFrame) -> int:
    """Choose a number of topics by the rule of `TopicNumbers`."""
    import polars as pl

    near = table
    if not table["perplexity"].null_count():
        near = table.filter(pl.col("perplexity") <= (1 + NEAR) * pl.col("perplexity").min())
    order = near.sort("stability", "topics", descending=[True, False], nulls_last=True)
    return cast(int, order["topics"][0])
