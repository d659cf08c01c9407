"""Edits of a model by its readers: they name, merge and hide topics, in code or in the explorer.

Models are immutable: every method returns a new model. Topics keep their numbers, except after `merge`. Names, hidden
topics and merges are saved with the model. The explorer saves its edits to a file, with a digest of the model.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tertulia._plain import plain
from tertulia.errors import InputError

if TYPE_CHECKING:
    from tertulia.models.topics import Topics


from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Self, cast

import numpy as np

from tertulia._arrays import F64

if TYPE_CHECKING:
    import polars as pl

    from tertulia.corpus.tokens import Tokenizer
    from tertulia.models.topics import Topics

FORMAT = "tertulia names"
_LARGEST = 10_000_000  # bytes of a file
_IN_A_NAME = 3  # words
_LONGEST = 80  # letters of a name
_BLOCK = 64  # topics processed at a time
_STEM = 4  # letters; a name has only one of several words with the same first letters


class Editable:
    """The methods of `Topics` that name, merge and hide topics."""

    def rename(self, names: Mapping[int, str]) -> Self:
        """Name topics by their numbers; others keep their names, and "" removes a name.

        >>> from tertulia import Topics, Vocabulary
        >>> model = Topics([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]], Vocabulary(("rain", "sun", "money")))
        >>> model.rename({0: "weather"})[0]
        Topic(0 "weather": rain sun money)
        """
        model = _topics(self)
        _check_numbers(names, model.n_topics)
        return cast(Self, replace(model, names=[names.get(k, name) for k, name in enumerate(model.names)]))

    def edit(self, edits: str | Path | Mapping[str, Any]) -> Self:
        """Apply edits that the explorer saved to a file: `model.edit("names.json")`.

        Its names and hidden topics replace those of the model. A file that was made with another model is refused.
        """
        model = _topics(self)
        found = read_edits(edits, model)
        # A merged topic gets the name of its first topic in the file.
        names = [found.names.get(k, "") for k in range(model.n_topics)]
        changed = replace(model, names=names, hidden=tuple(found.hidden))
        return cast(Self, changed.merge(found.merged) if found.merged else changed)

    def hide(self, topics: Iterable[int]) -> Self:
        """Leave topics out of tables, `print(model)` and notebooks.

        Nothing else changes: `top_words`, `transform`, `len(model)`, `model[3]` and measures use all topics.
        """
        model = _topics(self)
        return cast(Self, replace(model, hidden=(*model.hidden, *_check_numbers(topics, model.n_topics))))

    def unhide(self, topics: Iterable[int] | None = None) -> Self:
        """Show topics again, or all of them."""
        model = _topics(self)
        again = _check_numbers(model.hidden if topics is None else topics, model.n_topics)
        return cast(Self, replace(model, hidden=tuple(k for k in model.hidden if k not in again)))

    def with_tokenizer(self, function: Tokenizer) -> Self:
        """Return the same model with the tokeniser function, of which a saved model has only the name."""
        model = _topics(self)
        return cast(Self, replace(model, options=model.options.with_tokenizer(function)))

    def merge(self, groups: Iterable[Iterable[int]]) -> Self:
        """Make one topic of each group: `model.merge([[1, 4], [2, 7]])`.

        The new topic is the mixture of the group's topics by their weights (if these are unknown, by alpha). Its weight
        and its alpha are sums, and its name joins the names. It takes the place of the group's first topic, and later
        topics move up. `provenance["merged"]` keeps the merged numbers. The topics of a neural model cannot be merged,
        because its encoder infers the original ones.
        """
        model = _topics(self)
        if model.encoder is not None:
            raise InputError(
                "this model infers by its encoder, whose topics cannot be merged: hide some, or merge the topics "
                "alone, Topics(model.topic_word, model.vocabulary, model.alpha, weights=model.weights).merge(...)"
            )
        wanted = _groups(groups, model.n_topics)
        first = {k: group[0] for group in wanted for k in group}
        kept = [k for k in range(model.n_topics) if first.get(k, k) == k]
        members = [next((group for group in wanted if group[0] == k), [k]) for k in kept]
        shares = _shares(model)
        rows: Any = np.array([_mixture(model, group, shares) for group in members], model.topic_word.dtype)
        weights = None if model.weights is None else np.array([model.weights[group].sum() for group in members])
        done = [*model.provenance.get("merged", ()), {"of": model.n_topics, "groups": wanted}]
        return cast(Self, replace(
            model, topic_word=rows, weights=weights,
            alpha=np.array([model.alpha[group].sum() for group in members]),
            names=[" + ".join(dict.fromkeys(model.names[k] for k in g if model.names[k]))[:_LONGEST] for g in members],
            hidden=tuple(z for z, group in enumerate(members) if set(group) <= {*model.hidden}),
            ids=tuple(model.ids[k] for k in kept),
            retired=(*model.retired, *(model.ids[k] for k in sorted(first) if first[k] != k)),
            provenance={**model.provenance, "merged": done},
        ))  # fmt: skip

    def distinctive_words(self, n: int = 10, *, relevance: float = 0.6) -> list[list[str]]:
        """List the n words of each topic that tell it from the others, most relevant first.

        Relevance (Sievert and Shirley 2014, LDAvis) is a weighted mean of the log probability of a word, with weight
        `relevance`, and of its log lift: 1 gives the likeliest words, `top_words`, and 0 the words that occur only in
        this topic, most of which are rare.
        """
        from tertulia.metrics.similarity import top_words_sparse

        if not 0 <= relevance <= 1:
            raise InputError(f"relevance = {relevance}: give a share from 0 to 1")
        model = _topics(self)
        anywhere = _shares(model) @ model.topic_word  # [V]
        lift = np.divide(1.0, anywhere, out=np.zeros_like(anywhere), where=anywhere > 0) ** (1.0 - relevance)
        words, found = model.vocabulary.words, []
        for k in range(0, model.n_topics, _BLOCK):
            tops = top_words_sparse(model.topic_word[k : k + _BLOCK] * lift, n).indices.tolist()
            found += [[words[v] for v in topic if v >= 0] for topic in tops]
        return found

    def suggest_names(self, by: Callable[[list[str]], str] | None = None, *, n: int = 15) -> dict[int, str]:
        """Suggest names for topics that have none and are not hidden: `model.rename(model.suggest_names())`.

        A name is made of the three most distinctive words. `by` is a function that makes other names: it gets the n
        most distinctive words of a topic and returns a name. It may ask a language model, which then sees only words of
        the model, which were released before: no document, no number, no party.

        >>> model.suggest_names(by=lambda words: ask("Two words for: " + ", ".join(words)))  # doctest: +SKIP
        """
        model = _topics(self)
        words = self.distinctive_words(n)
        name = by or _name
        wanted = [k for k in range(model.n_topics) if not model.names[k] and k not in model.hidden]
        return {k: _first_line(name(list(words[k])), k) for k in wanted}

    def with_names(self, table: pl.DataFrame) -> pl.DataFrame:
        """Add names to a table whose row k is about topic k, if there are any, and drop hidden topics."""
        model = _topics(self)
        import polars as pl

        if any(model.names):
            table = table.insert_column(1, pl.Series("name", model.names, pl.String))
        return table.filter([k not in model.hidden for k in range(model.n_topics)]) if model.hidden else table


def check_names(names: Sequence[str], hidden: Iterable[int], K: int) -> tuple[list[str], tuple[int, ...]]:
    """Return the names of K topics, "" for none, and the sorted numbers of hidden ones; raise `InputError`."""
    given = list(names) or [""] * K
    if isinstance(names, str) or len(given) != K or not all(isinstance(name, str) for name in given):
        raise InputError(f"names = {names!r}: give a text for each of {K} topics, '' for none, or no names at all")
    given = [" ".join(name.split()) for name in given]
    for k, name in enumerate(given):
        if len(name) > _LONGEST or not _is_text(name):
            raise InputError(f"the name of topic {k} is longer than {_LONGEST} letters, or no text: give another one")
    return given, tuple(sorted(_check_numbers(hidden, K)))


def _check_numbers(topics: Iterable[int], K: int) -> set[int]:
    if isinstance(topics, int | str):
        raise InputError(f"{topics!r} is no list of topics: write [{topics!r}]")
    found = set(topics)
    for k in found:
        if not isinstance(k, int | np.integer) or isinstance(k, bool) or not 0 <= k < K:
            raise InputError(f"there is no topic {k!r}: topics are numbered 0 to {K - 1}")
    return {int(k) for k in found}


def _groups(groups: Iterable[Iterable[int]], K: int) -> list[list[int]]:
    """Return the groups, sorted; raise `InputError` if two share a topic."""
    found = []
    groups = list(groups)
    if groups and all(isinstance(k, int | np.integer) for k in groups):
        raise InputError(f"{groups} is one group of topics: write it in a list of groups, [{groups}]")
    for group in groups:
        numbers = sorted(_check_numbers(group, K))
        if len(numbers) < 2:
            raise InputError(f"the group {numbers} has nothing to merge: name two topics or more")
        found.append(numbers)
    every = [k for group in found for k in group]
    if twice := sorted({k for k in every if every.count(k) > 1}):
        raise InputError(f"topic {twice[0]} is in two groups: name it in one of them")
    if not found:
        raise InputError("there are no groups: write the topics to merge as [[1, 4], [2, 7]]")
    return found


def _mixture(model: Topics, group: list[int], shares: F64) -> Any:
    if len(group) == 1:
        return model.topic_word[group[0]]
    own = shares[group] if shares[group].sum() > 0 else np.ones(len(group))
    return own @ model.topic_word[group] / own.sum()


def _shares(model: Topics) -> F64:
    """Return each topic's share of the tokens; if it is unknown, the mean of the prior."""
    shares: F64 = model.alpha / model.alpha.sum() if model.weights is None else model.weights
    return shares


def _name(words: list[str]) -> str:
    """Join the first few words, but only the first of words that begin alike.

    >>> _name(["matrix", "matrices", "eigenvalue", "eigenvalues", "vector"])
    'matrix, eigenvalue, vector'
    """
    chosen: list[str] = []
    for word in words:
        if not any(word.startswith(one[:_STEM]) or one.startswith(word) for one in chosen):
            chosen.append(word)
    return ", ".join(chosen[:_IN_A_NAME])


def _first_line(name: Any, k: int) -> str:
    """Return the first line of a name from `by`, truncated."""
    if not isinstance(name, str):
        raise InputError(f"the function that names topics gave {type(name).__name__} for topic {k}: it must give text")
    lines = [line.strip() for line in name.splitlines() if line.strip()]
    return lines[0][:_LONGEST].strip() if lines else ""


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return True


def _topics(model: Editable) -> Topics:
    return cast("Topics", model)


class Edits(NamedTuple):
    """Edits of topics, by the numbers of the explored model."""

    names: dict[int, str]
    hidden: list[int]
    merged: list[list[int]]


def digest_of(model: Topics) -> str:
    """Hash the topics of a model, without their names and without which are hidden."""
    words = model.vocabulary.fingerprint.encode()
    return hashlib.blake2b(words + model.topic_word.tobytes(), digest_size=8).hexdigest()


def read_edits(source: str | Path | Mapping[str, Any], model: Topics) -> Edits:
    """Read edits from a file, or from its parsed contents; raise `InputError` if they are of another model."""
    given, where = (source, "edits") if isinstance(source, Mapping) else (_read(Path(source)), str(source))
    if not isinstance(given, Mapping) or given.get("format") != FORMAT:
        raise InputError(f"{where} holds no names of topics: give what the explorer's button 'Save names' wrote")
    if given.get("model") != digest_of(model):
        raise InputError(
            f"{where} is of another model than this one: explore this one, or load the model that was explored"
        )
    try:
        names = {int(k): _text(name) for k, name in dict(given.get("names", {})).items()}
        hidden = [_number(k) for k in given.get("hidden", [])]
        merged = [[_number(k) for k in group] for group in given.get("merged", [])]
    except (TypeError, ValueError) as error:
        raise InputError(f"{where} is damaged ({plain(str(error), 100)}): save it again in the explorer") from error
    for k in names:
        if not 0 <= k < model.n_topics:
            raise InputError(f"{where} names topic {k}: topics are numbered 0 to {model.n_topics - 1}")
    return Edits(names, hidden, merged)


def _read(path: Path) -> Any:
    try:
        if path.stat().st_size > _LARGEST:
            raise InputError(f"{path} is too large for names of topics")
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is no JSON: give what the explorer's button 'Save names' wrote") from error


def _text(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"a name is {type(name).__name__}")
    return name


def _number(k: Any) -> int:
    if type(k) is not int:
        raise TypeError(f"a topic is {type(k).__name__}")
    return k
