"""Seed words: a public prior of words that gives some topics a fixed place, a name and a subject.

Topic k of the seeded ones is the k-th entry of `seeds`, in every party and every run that continues the model. Its
prior of a word is beta, and beta + `seed_strength` of a seed word (Lu et al., ICDM Workshops 2011): Dirichlet, and
different by topic and word. The strength is a whole number of pseudo-tokens, so samplers take the prior as counts of
somebody else (`others`), and no kernel knows of it. The prior is public and holds nothing of documents: it is no
release and costs no privacy.

The first topics decide which one becomes which: each seeded topic begins as the first topic that has most of its words
beyond its size, one to one.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field

from tertulia._arrays import I32, I64, Array
from tertulia._kinds import FrozenDict
from tertulia._plain import plain
from tertulia.corpus.vocabulary import JOINT
from tertulia.errors import InputError
from tertulia.federation.fields import Between
from tertulia.models import Topics

SEEDS = "seeds"  # in a model's provenance
_LONGEST = 80  # letters of a name, as of names that people give
_MOST = 1_000_000


class SeedWarning(UserWarning):
    """A warning that some seed words are in nobody's documents."""


def _no_text(value: Any) -> Any:
    """Refuse a text where a list of words belongs: its letters would be taken for words."""
    if isinstance(value, str):
        raise ValueError(f"a list of words belongs here: write ['{value}']")
    return tuple(value) if isinstance(value, list) else value


def _check_table(seeds: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    for name, words in seeds.items():
        if not name.strip() or len(name) > _LONGEST or plain(name) != name:
            raise ValueError(f"{name!r} names no topic: take a text of 1 to {_LONGEST} letters on one line")
        if not words or not all(word.strip() for word in words):
            raise ValueError(f"'{name}' has no seed words, or an empty one: give it some, such as ['heart', 'artery']")
    return FrozenDict({name: tuple(dict.fromkeys(words)) for name, words in seeds.items()})


SeedWords = Annotated[tuple[str, ...], BeforeValidator(_no_text)]
Seeds = Annotated[
    dict[str, SeedWords],
    Field(
        description="seed words by topic, such as `{ cardiology = ['heart', 'artery'] }`: the first topics are these, "
        "in this order and with these names; public, so they cost no privacy"
    ),
    AfterValidator(_check_table),
]
SeedStrength = Annotated[
    int,
    Field(ge=1, le=_MOST, description="of a seed word: tokens that it has in its topic beforehand"),
    Between(1, _MOST),
]
STRENGTH = 100
NO_SEEDS: dict[str, tuple[str, ...]] = FrozenDict()


S = TypeVar("S", bound="Continued")


class OfSeeds(Protocol):
    """Settings with seeds."""

    @property
    def seeds(self) -> dict[str, tuple[str, ...]]:
        """Seed words by topic."""


class WithSeeds(OfSeeds, Protocol):
    """The same, of topics of words."""

    @property
    def seed_strength(self) -> int:
        """Pseudo-tokens of a seed word."""

    @property
    def topics(self) -> int:
        """The number of topics."""


class Seeded(WithSeeds, Protocol):
    """The same, of a sampler."""

    @property
    def sampler(self) -> str:
        """How LDA is sampled."""


class Continued(Seeded, Protocol):
    """The same, of which some may be replaced."""

    def replace(self, **changes: Any) -> Self:
        """Return the settings with some values changed."""


def check_places(config: WithSeeds) -> None:
    """Raise `ValueError` unless each seeded topic has a place."""
    if len(config.seeds) > config.topics:
        raise ValueError(
            f"{len(config.seeds)} topics have seeds, and topics = {config.topics}: ask for as many topics, or for more "
            "to have others beside them"
        )


def check_seeds(config: Seeded) -> None:
    """Raise `ValueError` unless the seeds fit the other settings."""
    check_places(config)
    if config.seeds and config.sampler not in ("auto", "blocked"):
        raise ValueError(f"seeds go with sampler 'auto' or 'blocked', not with '{config.sampler}'")


class Prior(NamedTuple):
    """The seeds over a list of words."""

    places: tuple[I64, ...]  # for each seeded topic, the numbers of its words
    strength: int
    words: int  # V

    @classmethod
    def of(cls, config: WithSeeds, words: Sequence[str]) -> Prior | None:
        """Find the seed words on a list, those that are there; None without seeds."""
        if not config.seeds:
            return None
        index = {word: v for v, word in enumerate(words)}
        found = tuple(_places(index, seeds) for seeds in config.seeds.values())
        return cls(found, config.seed_strength, len(words))

    def counts(self, K: int) -> I64:
        """Return the prior as counts [K, V]."""
        prior = np.zeros((K, self.words), np.int64)
        for k, places in enumerate(self.places):
            prior[k, places] = self.strength
        return prior

    def beside(self, K: int) -> I32:
        """Return the prior as counts [V, K] of somebody else, as samplers take them."""
        return np.ascontiguousarray(self.counts(K).T, dtype=np.int32)

    @property
    def flat(self) -> float:
        """A beta under which seed words hold a fifth of the largest seeded topic: first topics without documents."""
        return 4.0 * self.strength * max(map(len, self.places)) / self.words

    def arrange(self, first: Array, subjects: int) -> Array:
        """Put first topics [K, V] into the seeds' order: each seeded topic has the place of its seeds.

        They are matched one to one by the seed words' shares in a topic beyond its own size. The first `subjects` of
        them may become seeded ones; the others are general.
        """
        from scipy.optimize import linear_sum_assignment

        K, S = len(first), len(self.places)
        some = first[: max(subjects, S)]
        size = some.sum(axis=1) / max(some.sum(), 1)
        shares = some / np.maximum(some.sum(axis=0), 1)  # [topics, V]
        gain = np.array([shares[:, w].mean(axis=1) - size if len(w) else np.zeros(len(size)) for w in self.places])
        chosen = np.empty(S, np.int64)
        rows, columns = linear_sum_assignment(gain, maximize=True)
        chosen[rows] = columns
        return np.asarray(first[np.concatenate([chosen, np.setdiff1d(np.arange(K), chosen)])])


def _places(index: Mapping[str, int], seeds: Sequence[str]) -> I64:
    found = (next((index[form] for form in _forms(word) if form in index), -1) for word in seeds)
    return np.unique([v for v in found if v >= 0]).astype(np.int64)


def _forms(word: str) -> tuple[str, ...]:
    """Return the ways in which a seed word may stand on a list: as given, and as texts are cut into words.

    >>> _forms("Heart attack")
    ('Heart attack', 'heart attack', 'heart_attack')
    """
    return word, word.lower(), JOINT.join(word.lower().split())


def find_unknown(config: OfSeeds, words: Sequence[str]) -> tuple[str, ...]:
    """Return the seed words that are not on a list; raise `InputError` if a topic has no other."""
    known = set(words)
    unknown: dict[str, None] = {}
    for name, seeds in config.seeds.items():
        missing = [word for word in seeds if not known.intersection(_forms(word))]
        if len(missing) == len(seeds):
            raise InputError(
                f"seeds of '{name}': none of {', '.join(seeds)} is among the {len(known):,} words that are modelled. "
                "Give words of the documents, in the form in which they stand there"
            )
        unknown |= dict.fromkeys(missing)
    return tuple(unknown)


def warn_of_unknown(unknown: Sequence[str], where: str = "are not among the words that are modelled") -> None:
    """Name the seed words that nobody has."""
    if unknown:
        warnings.warn(f"seed words {', '.join(unknown)} {where}: they do nothing", SeedWarning, stacklevel=3)


def with_seeds(model: Topics, config: WithSeeds) -> Topics:
    """Name the seeded topics of a trained model, and store the seeds in its provenance."""
    if not config.seeds:
        return model
    names = [*config.seeds, *[""] * (model.n_topics - len(config.seeds))]
    stored = {"words": {name: list(words) for name, words in config.seeds.items()}, "strength": config.seed_strength}
    return replace(model, names=names, provenance=model.provenance | {SEEDS: stored})


def seeds_of(last: Topics) -> dict[str, Any]:
    """Return the settings by which a model was seeded, empty if it was not."""
    stored = last.provenance.get(SEEDS)
    return {"seeds": stored["words"], "seed_strength": stored["strength"]} if isinstance(stored, dict) else {}


def take_over(config: S, last: Topics) -> S:
    """Return settings with the seeds of an earlier model, unless they have seeds, or too few topics for these."""
    kept = {} if config.seeds else seeds_of(last)
    return config.replace(**kept) if kept and len(kept["seeds"]) <= config.topics else config


def why_other_seeds(config: WithSeeds, last: Topics) -> str | None:
    """Say why a run with these seeds cannot go on from a model; None: it can."""
    if not config.seeds and (kept := seeds_of(last)):
        return f"{len(kept['seeds'])} of its topics have seeds, and topics = {config.topics}: ask for more topics"
    named = last.names[: len(config.seeds)]
    if named == list(config.seeds):
        return None
    has = f"its first topics are {', '.join(repr(name) for name in named)}" if any(named) else "it has no seeded topics"
    return (
        f"{has}, and the seeds are of {', '.join(map(repr, config.seeds))}: leave `seeds` out to keep the model's own"
    )
