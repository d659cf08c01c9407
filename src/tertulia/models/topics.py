"""`Topics`: the model that every method returns. It holds words and numbers about words, never a document."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tertulia._arrays import F32, F64, Array
from tertulia._plain import plain
from tertulia.corpus import Corpus, TextOptions, Vocabulary
from tertulia.corpus.counts import from_counts, is_matrix
from tertulia.corpus.inputs import Documents, as_corpus, with_column
from tertulia.errors import FormatError, InputError
from tertulia.metrics.history import describe_participation
from tertulia.models.compare import Comparable
from tertulia.models.display import Readable
from tertulia.models.documents import Searchable
from tertulia.models.edits import Editable, check_names
from tertulia.models.groups import Groupable

if TYPE_CHECKING:
    import polars as pl

    from tertulia.models.neural.encoder import Encoder
    from tertulia.models.vectors.centroids import Centroids


class UnknownWordsWarning(UserWarning):
    """A warning that some documents hold no word of the model's vocabulary."""


@dataclass(eq=False, repr=False)
class Topics(Readable, Editable, Comparable, Groupable, Searchable):
    """A topic model: for each topic a distribution over the words of a vocabulary.

    It follows scikit-learn's conventions for fitted transformers, so it can be a step of a `Pipeline`.

    >>> model = Topics(np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]), Vocabulary(("rain", "sun", "money")))
    >>> model.top_words(2)
    [['rain', 'sun'], ['money', 'rain']]
    >>> model.transform(["Rain, rain and sun!"]).round(2)
    array([[0.96, 0.04]])
    """

    topic_word: F32 | F64  # [K, V] each row sums to 1
    vocabulary: Vocabulary
    alpha: F64 = field(default_factory=lambda: np.array(0.1))  # [K] prior of topics in a document; or one number
    beta: float = 0.01  # prior of words in a topic
    weights: F64 | None = None  # [K] share of the tokens in each topic; None: unknown
    options: TextOptions = field(default_factory=TextOptions)
    provenance: dict[str, Any] = field(default_factory=dict)  # method, config, parties, ledger digest
    encoder: Encoder | Centroids | None = None  # of a neural model, or of clusters: it infers topic shares
    ids: tuple[int, ...] = ()  # stable ids, kept by models that continue this one; default: 0, 1, ...
    retired: tuple[int, ...] = ()  # ids of topics of earlier models, never used again
    names: list[str] = field(default_factory=list)  # [K] names that people gave, "" for none
    hidden: tuple[int, ...] = ()  # numbers of topics that tables leave out

    def __post_init__(self) -> None:
        self.topic_word = _distributions(self.topic_word, len(self.vocabulary))
        K = len(self.topic_word)
        if self.encoder is not None:
            self.encoder.check_sizes(K, len(self.vocabulary))
        self.alpha = _per_topic("alpha", self.alpha, K)
        self.weights = None if self.weights is None else _shares(_per_topic("weights", self.weights, K))
        self.beta = float(self.beta)
        self.provenance = _plain(self.provenance)
        self.ids, self.retired = _ids(self.ids or range(K), self.retired, K)
        self.names, self.hidden = check_names(self.names, self.hidden, K)
        if not np.all(self.alpha > 0) or not (np.isfinite(self.beta) and self.beta >= 0):
            raise InputError(f"alpha = {self.alpha}, beta = {self.beta}: alpha must be positive, beta not negative")

    @property
    def n_topics(self) -> int:
        """The number of topics."""
        return len(self.topic_word)

    @property
    def reads_sentences(self) -> bool:
        """Whether topic shares are inferred from whole texts, not from their words alone."""
        return self.encoder is not None and self.encoder.reads_sentences

    @property
    def components_(self) -> F32 | F64:
        """The topic-word matrix [K, V], under scikit-learn's name."""
        return self.topic_word

    @property
    def n_features_in_(self) -> int:
        """The number of words, under scikit-learn's name."""
        return len(self.vocabulary)

    def get_feature_names_out(self, input_features: object = None) -> Array:
        """Name the columns of `transform` by the topics' ids: topic0, topic1 and so on."""
        return np.array([f"topic{id_}" for id_ in self.ids], dtype=object)

    def fit(self, documents: object = None, y: object = None) -> Self:
        """Return the model unchanged: it is trained already, and can be a step of a `Pipeline`."""
        return self

    def transform(
        self, documents: Documents, *, iterations: int = 100, n_jobs: int = 1, column: str | None = None
    ) -> F64:
        """Infer the topic shares theta [D, K] of texts, of a table's column `text` (or `column`), or of a corpus.

        Texts are tokenised with the model's own options. A document without a known word, or a row without a text, gets
        the prior mean, and a warning gives the number of these. Each document is iterated until its shares converge
        (most do within ten steps), at most `iterations` times. `n_jobs` threads (-1: all cores) share the documents;
        the result does not depend on the threads or on the other documents. A neural model infers by its encoder, in
        one pass.
        """
        from tertulia.kernels.core.parallel import threads_for
        from tertulia.kernels.lda import fold_in

        threads = threads_for(n_jobs)
        corpus = self.encode(documents, column=column)
        unknown = int((corpus.lengths == 0 if self.encoder is None else self.encoder.silent(corpus)).sum())
        if unknown:
            warnings.warn(
                f"{unknown} of {corpus.n_documents} documents hold no word that the model knows: "
                "they get the prior mean. Is it the right language, or the right column?",
                UnknownWordsWarning,
                stacklevel=2,
            )
        if self.encoder is not None:
            return self.encoder.theta(corpus)
        return fold_in.settle(corpus.words, corpus.documents, self.topic_word, self.alpha, iterations, threads)

    def adapt(self, documents: Documents, *, rounds: int = 3, n_jobs: int = 1, column: str | None = None) -> Self:
        """Return the same topics with a prior fitted to a party's own documents; no other party is needed.

        A shared model has topics that a single party does not need. Alpha keeps its sum, and each topic gets its mean
        share in the documents (a fixed point of empirical Bayes). A neural model has no such prior.
        """
        from tertulia.kernels.core.parallel import threads_for
        from tertulia.kernels.lda import fold_in

        threads = threads_for(n_jobs)
        if self.encoder is not None:
            raise InputError(
                "this model infers by its encoder, which reads no prior that could be adapted: use the model as it "
                "is, or adapt its topics alone, Topics(model.topic_word, model.vocabulary, model.alpha).adapt(...)"
            )
        corpus = self.encode(documents, column=column)
        total, alpha = self.alpha.sum(), self.alpha
        for _ in range(rounds):
            theta = fold_in.theta(corpus.words, corpus.documents, self.topic_word, alpha, threads=threads)
            # Documents without words are left out; 1 % of the old prior keeps every topic possible.
            share = theta[corpus.lengths > 0].mean(axis=0) if corpus.n_tokens else alpha / total
            alpha = 0.99 * total * share + 0.01 * self.alpha
        return replace(self, alpha=alpha)

    def encode(self, documents: Documents, *, column: str | None = None) -> Corpus:
        """Turn texts, a table, a corpus over other words or counts into a corpus over the model's vocabulary.

        Column v of a matrix of counts is the model's word v.
        """
        documents = with_column(documents, column)
        if is_matrix(documents):
            return from_counts(documents, self.vocabulary.words)
        return as_corpus(None, documents, self.options, self.reads_sentences).encode(self.vocabulary)

    def top_words(self, n: int = 10) -> list[list[str]]:
        """List the n most probable words of each topic; among equal ones, in the order of the vocabulary."""
        from tertulia.metrics.similarity import top_words_sparse

        words = self.vocabulary.words
        return [[words[w] for w in topic] for topic in top_words_sparse(self.topic_word, n).indices.tolist()]

    def topics_table(self, n: int = 10) -> pl.DataFrame:
        """Tabulate the topics that are not hidden, heaviest first: number, name and weight if known, n top words.

        A model that continues another also has the topics' stable ids.
        """
        import polars as pl

        from tertulia.models.frame import Frame

        words, numbers = [" ".join(topic) for topic in self.top_words(n)], tuple(range(self.n_topics))
        weights = {} if self.weights is None else {"weight": self.weights}
        ids = {} if self.ids == numbers else {"id": self.ids}
        table = self.with_names(pl.DataFrame({"topic": numbers, **ids, **weights, "words": words}))
        return Frame(table.sort("weight", descending=True, maintain_order=True) if weights else table)

    def save(self, directory: str | Path) -> Path:
        """Write the model to a directory, where it replaces an existing model; return its path."""
        from tertulia.models import storage

        return storage.save(self, Path(directory))

    @classmethod
    def load(cls, directory: str | Path) -> Self:
        """Read a saved model; it equals the saved one bit for bit."""
        from tertulia.models import storage

        parts = storage.load(Path(directory))
        try:
            return cls(**parts)
        except (InputError, TypeError, ValueError, OverflowError) as error:
            raise FormatError(f"the files in {directory} do not fit together: {error}") from error

    def to_gensim(self) -> Any:
        """Convert to a `gensim.models.LdaModel` (gensim: the extra `bench`)."""
        from tertulia.models.export import to_gensim

        return to_gensim(self)

    def to_pyldavis(self, documents: Documents, *, column: str | None = None) -> dict[str, Any]:
        """Make the arguments of `pyLDAvis.prepare(**...)` for documents."""
        from tertulia.models.export import to_pyldavis

        return to_pyldavis(self, with_column(documents, column))

    def __eq__(self, other: object) -> bool:
        """Compare bit for bit."""
        if not isinstance(other, Topics):
            return NotImplemented
        return all(_same(getattr(self, part.name), getattr(other, part.name)) for part in fields(Topics))

    def __repr__(self) -> str:
        origin = [str(self.provenance.get("method", "")), describe_participation(self.provenance)]
        known = ", ".join(part for part in origin if part)
        lines = [f"Topics({self.n_topics} topics over {len(self.vocabulary):,} words{f'; {known}' if known else ''})"]
        for row in self.topics_table(8).head(10).iter_rows(named=True):
            share = f" {row['weight']:6.1%}" if "weight" in row else ""
            name = f"{row['name']}: " if row.get("name") else ""
            lines.append(f"  {row['topic']:>3}{share}  {name}{row['words']}")
        if (more := self.n_topics - len(self.hidden) - 10) > 0:
            lines.append(f"  ... and {more} more: see topics_table()")
        return plain("\n".join(lines))


def _distributions(topic_word: Array, V: int) -> F32 | F64:
    matrix = np.ascontiguousarray(topic_word)
    if matrix.ndim != 2 or matrix.shape[0] < 1 or matrix.shape[1] != V or V < 1:
        raise InputError(f"topic_word has shape {matrix.shape}: it must be [topics, {V} words of the vocabulary]")
    if matrix.dtype.kind not in "iufb":
        raise InputError(f"topic_word holds {matrix.dtype}: give probabilities")
    if matrix.dtype not in (np.float32, np.float64):
        matrix = matrix.astype(np.float64)
    if not (np.all(np.isfinite(matrix)) and np.all(matrix >= 0)):
        raise InputError("topic_word holds negative or non-finite entries: give probabilities")
    sums = matrix.sum(axis=1, dtype=np.float64)
    if not np.allclose(sums, 1.0, atol=1e-3):
        k = int(np.argmax(np.abs(sums - 1.0)))
        raise InputError(f"topic {k} has total probability {sums[k]:.4g}: divide each row of topic_word by its sum")
    return matrix


def _per_topic(name: str, values: float | Array, K: int) -> F64:
    array = np.asarray(values, np.float64)
    if array.shape not in ((), (K,)) or not np.all(np.isfinite(array)) or np.any(array < 0):
        raise InputError(f"{name} = {array}: give one number, or {K} of them, none negative")
    return np.array(np.broadcast_to(array, (K,)))


def _shares(weights: F64) -> F64:
    total = weights.sum()
    if total == 0:
        raise InputError("weights are all 0: give each topic's share of the tokens")
    if abs(total - 1.0) < 1e-9:
        return weights  # unchanged, so that a loaded model keeps its bits
    shares: F64 = weights / total
    return shares


def _ids(ids: Iterable[int], retired: Iterable[int], K: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the ids of topics and of earlier topics; raise `InputError` if two are the same."""
    given, gone = tuple(ids), tuple(retired)
    if len(given) != K or len({*given, *gone}) < len(given) + len(gone):
        raise InputError(f"ids = {given}, retired = {gone}: give {K} topics an id each, and no id twice")
    if any(type(id_) is not int or id_ < 0 for id_ in (*given, *gone)):
        raise InputError("ids of topics must be whole numbers from 0 on")
    return given, gone


def _plain(provenance: dict[str, Any]) -> dict[str, Any]:
    """Convert provenance to plain JSON data, NumPy numbers included, so that a loaded model equals the saved one."""
    try:
        text = json.dumps(provenance, default=lambda x: x.tolist(), allow_nan=False)
    except (AttributeError, TypeError, ValueError) as error:
        raise InputError(f"provenance must be plain numbers, texts, lists and dicts: {error}") from error
    return dict(json.loads(text))


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())
    return type(a) is type(b) and bool(a == b)
