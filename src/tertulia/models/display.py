"""Single topics, notebook display, measures and plots of a model."""

from __future__ import annotations

import html
import math
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from tertulia._lazy import view
from tertulia._plain import plain
from tertulia.corpus.inputs import Documents
from tertulia.errors import InputError
from tertulia.metrics.history import describe_participation

if TYPE_CHECKING:
    from tertulia.models.topics import Topics
    from tertulia.view.plots import Plots

_FEW = 1_000  # documents; below this, measures depend more on the documents than on the topics
_SHOWN = 10  # words of a topic
_LONGEST = 60  # letters of a word in a table
_MOST_ROWS = 100  # of a table in a notebook


class FewDocumentsWarning(UserWarning):
    """A warning that a measure is computed on too few documents."""


class Topic(NamedTuple):
    """One topic: its number, its share of the tokens if known, its likeliest words in order, and its name."""

    number: int
    weight: float | None
    words: tuple[tuple[str, float], ...]
    name: str = ""

    def __repr__(self) -> str:
        name = f' "{self.name}"' if self.name else ""
        share = "" if self.weight is None else f" {self.weight:.1%}"
        return plain(f"Topic({self.number}{name}{share}: {' '.join(word for word, _ in self.words)})")


class Readable:
    """The methods of `Topics` that read it as a sequence of topics, measure it and show it."""

    def __len__(self) -> int:
        return _topics(self).n_topics

    def __getitem__(self, number: int) -> Topic:
        """Return one topic with its ten likeliest words; -1 is the last.

        >>> from tertulia import Topics, Vocabulary
        >>> Topics([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]], Vocabulary(("rain", "sun", "money")))[1].words[0]
        ('money', 0.8)
        """
        model = _topics(self)
        k = range(model.n_topics)[number]  # raises IndexError, which also ends iteration
        order = (-model.topic_word[k]).argsort(kind="stable")[:_SHOWN]
        words = tuple((model.vocabulary.words[v], float(model.topic_word[k, v])) for v in order)
        return Topic(k, None if model.weights is None else float(model.weights[k]), words, model.names[k])

    def __iter__(self) -> Iterator[Topic]:
        return (self[number] for number in range(len(self)))

    def coherence(
        self, documents: Documents, measure: str = "npmi", *, top: int = 10, column: str | None = None
    ) -> float:
        """Compute the mean coherence of the topics in documents: npmi, umass, umass_gensim or c_v."""
        from tertulia.metrics.coherence import topic_coherence

        corpus = _topics(self).encode(documents, column=column)
        warn_of_few(corpus.n_documents, measure)
        return float(topic_coherence(self.top_words(top), corpus, measure, top=top).mean)

    def perplexity(self, documents: Documents, *, n_jobs: int = 1, column: str | None = None) -> float:
        """Compute the perplexity of the second half of documents, given their first half: lower is better."""
        from tertulia.kernels.core.parallel import threads_for
        from tertulia.metrics.perplexity import completion

        model = _topics(self)
        corpus = model.encode(documents, column=column)
        if model.encoder is not None:
            raise InputError(
                "a neural model's topics mix in another way than this measure knows: use its `coherence`"
                if model.encoder.mixes
                else "topics that are clusters of documents give words no probabilities: use its `coherence`"
            )
        warn_of_few(corpus.n_documents, "perplexity")
        return completion(model.topic_word, model.alpha, corpus, threads=threads_for(n_jobs)).perplexity

    def diversity(self, *, top: int = 25) -> float:
        """Compute the share of different words among the top words of all topics: 1 if no two topics share any."""
        from tertulia.metrics.diversity import topic_diversity

        return topic_diversity(self.top_words(top), top=top)

    @property
    def plot(self) -> Plots:
        """Plots, such as `model.plot.words()`; each draws into axes and returns them (needs the extra `plot`)."""
        plots: Plots = view("plots")(self)
        return plots

    def explore(
        self,
        path: str | Path,
        documents: Documents = None,
        *,
        labels: Sequence[str | None] | None = None,
        dates: Sequence[str | None] | None = None,
        other: Any = None,
        column: str | None = None,
    ) -> Path:
        """Write a page to explore the topics: one file, which any browser opens without a network.

        It has a map, the words of each topic by relevance, similarities of topics, and a box to infer the topics of a
        text. Topics can be named, hidden and merged there: `model.edit("names.json")` reads the saved edits. `other` is
        a model to compare with. With `documents` (and their labels and dates, unless a table has them in columns
        `label` and `date`) the page shows the documents nearest to a topic, and trends. Such a page contains texts: do
        not share it.
        """
        written: Path = view("explorer")(
            self, Path(path), documents, labels=labels, dates=dates, other=other, column=column
        )
        return written

    def card(
        self,
        path: str | Path | None = None,
        *,
        agreed: Collection[str] = (),
        metrics: Mapping[str, float] | None = None,
        run: str | Path | None = None,
        delta: float = 1e-6,
    ) -> str:
        """Return a model card as Markdown, and write it to `path`; model hubs show it (`README.md`).

        It has the topics, the method, the number of parties, the real epsilons and the verdict, measures, and how to
        cite. No party is named but those in `agreed`. The epsilons are of the ledgers of the run, in its directory or
        `run`, which the owner of all parties has; without ledgers the card says so. `metrics` are measures of yours.
        """
        text: str = view("card")(_topics(self), path, agreed, metrics, run, delta)
        return text

    if TYPE_CHECKING:

        def top_words(self, n: int = 10) -> list[list[str]]:
            """List the top words of each topic."""

    def _repr_html_(self) -> str:
        """Render a table for notebooks: a row for each topic, heaviest first."""
        model = _topics(self)
        shown = (topic for topic in self if topic.number not in model.hidden)
        topics = sorted(shown, key=lambda topic: -(topic.weight or 0.0))
        most = max((topic.weight or 0.0 for topic in topics), default=0.0)
        rows = "".join(_row(topic, most, any(model.names)) for topic in topics[:_MOST_ROWS])
        foot = html.escape(plain(origin_of(model)))
        more = f"<p>and {len(topics) - _MOST_ROWS} more</p>" if len(topics) > _MOST_ROWS else ""
        return f'{_STYLE}<table class="tertulia-topics"><tbody>{rows}</tbody></table>{more}<p>{foot}</p>'


_STYLE = """<style>
.tertulia-topics td {text-align: left !important; vertical-align: baseline; padding: .15em .6em}
.tertulia-topics .bar {display: inline-block; height: .7em; background: #0072b2; margin-right: .4em}
</style>"""


def _row(topic: Topic, most: float, named: bool) -> str:
    """Render a row: number, name if topics have any, a bar of the weight, and words in sizes by probability."""
    share = ""
    if topic.weight is not None:
        width = 6 * topic.weight / most if most else 0.0
        share = f'<span class="bar" style="width:{width:.2f}em"></span>{topic.weight:.1%}'
    first = topic.words[0][1] or 1.0
    shown = [(html.escape(plain(word, _LONGEST)), p, 70 + 50 * p / first) for word, p in topic.words]
    words = " ".join(f'<span style="font-size:{size:.0f}%" title="{p:.4f}">{word}</span>' for word, p, size in shown)
    name = f"<td><b>{html.escape(plain(topic.name))}</b></td>" if named else ""
    return f"<tr><td>{topic.number}</td>{name}<td>{share}</td><td>{words}</td></tr>"


def shares_of(model: Topics) -> str:
    """Name what a topic's weight is a share of: a cluster has whole documents."""
    return "all documents" if model.encoder is not None and not model.encoder.mixes else "all words"


def origin_of(model: Topics) -> str:
    """Describe the model and its origin in one line."""
    facts: dict[str, Any] = model.provenance
    history: Any = getattr(model, "history", None) or ({},)
    hidden = f" ({len(model.hidden)} hidden)" if model.hidden else ""
    known = [f"{model.n_topics} topics{hidden} over {len(model.vocabulary):,} words", str(facts.get("method", ""))]
    known.append(describe_participation(facts))
    perplexity = history[-1].get("perplexity")
    is_known = isinstance(perplexity, float) and math.isfinite(perplexity)  # None without held-out documents
    known.append(f"held-out perplexity {perplexity:.0f}" if is_known else "")
    return "; ".join(part for part in known if part)


def _topics(model: Readable) -> Topics:
    return cast("Topics", model)


def warn_of_few(documents: int, measure: str) -> None:
    """Warn if a measure is computed on few documents."""
    if documents < _FEW:
        text = f"{measure} on {documents} documents says more about these than about the topics: use {_FEW:,} or more"
        warnings.warn(text, FewDocumentsWarning, stacklevel=3)
