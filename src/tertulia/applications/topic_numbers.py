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

from tertulia._arrays import F64, Array
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

MEASURES = ("perplexity", "coherence", "stability")
_TOP = 50  # words by which topics of two runs are matched


@dataclass(frozen=True, eq=False, repr=False)
class TopicNumbers:
    """The result of a sweep.

    `best` has the highest score. The score is the mean of three measures, each on a scale from 0 for the worst number
    that was tried to 1 for the best: the logarithm of held-out perplexity, coherence and stability. Among equals the
    smallest number is best. Perplexity alone would mostly choose the largest number, coherence the smallest. A measure
    that is not known is left out: perplexity of neural models, stability of a sweep with one run each.
    """

    table: pl.DataFrame  # a row for each number: topics, perplexity, coherence, stability, score, seconds
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
        known = [name for name in MEASURES if _is_known(self.table[name])]
        score = self.table.filter(self.table["topics"] == self.best)["score"][0]
        return f"{self.best} topics: the highest score, {score:.2f}, of {' and '.join(known)} together.{end}"

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

    kinds = {"topics": pl.Int64, **dict.fromkeys((*MEASURES, "seconds"), pl.Float64)}
    table = pl.DataFrame(rows, schema=kinds)
    scored = table.with_columns(score=pl.Series(scores_of(table), dtype=pl.Float64))
    return Frame(scored.select("topics", *MEASURES, "score", "seconds"))


def scores_of(table: pl.DataFrame) -> list[float]:
    """Score numbers of topics by their measures, by the rule of `TopicNumbers`.

    >>> import polars as pl
    >>> rows = {"perplexity": [200.0, 100.0, 98.0], "coherence": [0.1, 0.1, 0.0], "stability": [0.6, 0.9, 0.3]}
    >>> table = pl.DataFrame(rows)
    >>> [round(score, 2) for score in scores_of(table)]
    [0.5, 0.99, 0.33]
    """
    scales = [_scale(table[name].to_numpy(), name) for name in MEASURES if _is_known(table[name])]
    return np.mean(scales, axis=0).tolist() if scales else [1.0] * table.height


def _is_known(measure: pl.Series) -> bool:
    return not measure.null_count() and bool(measure.is_finite().all())


def _scale(values: Array, name: str) -> F64:
    """Put a measure on a scale from 0, the worst, to 1, the best."""
    good = -np.log(values) if name == "perplexity" else values
    width = np.ptp(good)
    return np.asarray((good - good.min()) / width if width > 0 else np.ones(len(good)))


def _best(table: pl.DataFrame) -> int:
    """Choose the number of topics with the highest score; among equals the smallest."""
    order = table.sort("score", "topics", descending=[True, False])
    return cast(int, order["topics"][0])
