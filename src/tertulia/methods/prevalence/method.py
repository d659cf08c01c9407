"""Topic prevalence by party: each folds its documents into a shared model, and only sums over documents leave it.

gFedNTM (2022) is about funding agencies that want to see what each of them, and what all, work on. The model is there;
what is missing is how much of each topic a party has. A party infers its documents' topic shares and adds them up, by
period if dates are asked for: a table [P, K], on a grid of 2^-20, so that sums are exact. The server sees each party's
table (`fed.each`), or only sums over groups of parties (`fed.sum`).

The server chooses the model, so it could choose one whose topics are single words: without noise a table is charged as
what it is, unprotected. With noise the guarantee holds for any model: what a document adds is computed from that
document alone and clipped to shares that sum to at most 1, so it moves the table by at most 1 in the L2 norm. Where
documents say whose they are, a user's share one place among them: n documents count 1/n each. So a user, too, moves
the table by at most 1, and so does one of n documents (by sqrt(2)/n at most if n > 1, for it changes a mean of shares).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tertulia._arrays import F64, I64, Array, Bool
from tertulia._kinds import check_array
from tertulia.corpus import Corpus, Vocabulary
from tertulia.corpus.periods import Periods
from tertulia.errors import ConfigError, InputError, PolicyRefusal
from tertulia.federation import fields
from tertulia.federation.types import Federation, Party, PartyId, Planned, message, step
from tertulia.methods.common.neural_messages import NeuralEncoder
from tertulia.methods.prevalence.settings import PrevalenceSettings, TableSettings
from tertulia.models import Topics
from tertulia.models.neural.architecture import check_network
from tertulia.models.neural.encoder import Encoder
from tertulia.privacy.mechanisms import Adjacency, Clear, Mechanism
from tertulia.privacy.mechanisms.gaussian import epsilon_of
from tertulia.privacy.mechanisms.noisy_tables import BITS, NoisyTable

WHAT = "topic prevalence"
ENCODER = "the shares that an encoder finds for a document do not depend on other documents, but for rounding"
NO_DATES = "documents have no dates: read them with a column `date`, or compare without `by`"
_OWN_DELTA = 1e-6  # at which a party's own epsilon is meant
_BLOCK = 1 << 14  # documents whose shares are in memory at a time


@message
class PrevalenceTask:
    """The question to parties: a model, and what to count."""

    words: fields.Words
    topic_word: fields.TopicWord  # [K, V]
    alpha: fields.Prior  # [K]
    encoder: NeuralEncoder | None  # of a neural model
    table: TableSettings

    def model(self) -> Topics:
        """Build the model; its arrays are checked."""
        encoder = None if self.encoder is None else self.encoder.encoder()
        if encoder is not None:
            check_network(encoder.network, encoder.weights, encoder.statistics, len(self.words))
        return Topics(self.topic_word, Vocabulary(self.words), self.alpha, encoder=encoder)


@message
class Table:
    """A party's sums over documents, or the sum of parties'."""

    cells: fields.Cells  # [P, K] in steps of the grid

    def check_reply(self, ask: PrevalenceTask) -> None:
        """Raise unless it has a row for each period, and a column for each topic."""
        rows = 1 if ask.table.periods is None else ask.table.periods.count
        check_array("cells", self.cells, (rows, len(ask.topic_word)))


@message
class Measured:
    """The server's state: a table for each party, or group of parties."""

    names: tuple[str, ...]  # R
    members: dict[str, tuple[PartyId, ...]]  # whose documents are in each
    cells: Array  # [R, P, K] in steps of the grid


@step(doing="measuring")
def measure(party: Party, state: Any, ask: PrevalenceTask) -> tuple[Any, Table]:
    """Add up the topic shares of this party's documents."""
    smallest = max(ask.table.min_documents_per_cell, party.min_documents_per_cell)
    mechanism = _mechanism(ask.table, smallest)
    _check_own_epsilon(party, mechanism)
    model, periods, tokens = ask.model(), ask.table.periods, ask.table.weigh == "tokens"
    corpus = party.documents(model.vocabulary)
    places, rows = _places(party, corpus, periods), 1 if periods is None else periods.count
    noisy = isinstance(mechanism, NoisyTable)
    users = users_or_none(corpus) if noisy else None
    cells, documents = tabulate(
        model, corpus, places, rows, tokens=tokens, users=users, threads=party.setting("threads", 1)
    )
    if isinstance(mechanism, NoisyTable):
        own = () if model.encoder is None else (ENCODER,)
        mechanism = replace(mechanism, assumptions=own, documents_per_user=None if users is None else 1)
    else:
        cells = np.where(documents[:, None] < smallest, 0, cells)
    return state, Table(party.release(cells, mechanism))


def tabulate(
    model: Topics, corpus: Corpus, places: I64, rows: int, *, tokens: bool = False, users: I64 | None = None,
    threads: int = 1,
) -> tuple[I64, I64]:  # fmt: skip
    """Sum topic shares [P, K], in steps of the grid, and count documents [P]; place -1 and wordless ones are out.

    The corpus is one over the model's words. With `users` [D] all documents of a user together count as one.
    """
    cells, documents = np.zeros((rows, model.n_topics), np.int64), np.zeros(rows, np.int64)
    counted = np.flatnonzero((places >= 0) & ~_silent(model, corpus))
    owners = counted if users is None else users[counted]
    order = np.lexsort((places[counted], owners))  # documents of one user and one period stand together
    counted, owners = counted[order], owners[order]
    _, whose, sizes = np.unique(owners, return_inverse=True, return_counts=True)
    begins = np.flatnonzero(np.diff(owners, prepend=-1) | np.diff(places[counted], prepend=-1))
    for start, stop in _blocks(begins, len(counted)):
        chosen = counted[start:stop]
        part = corpus.select(chosen)
        weights = part.lengths if tokens else 1.0 / sizes[whose[start:stop]]
        first = begins[(begins >= start) & (begins < stop)]
        shares = np.add.reduceat(_clip(model.transform(part, n_jobs=threads)) * weights[:, None], first - start, axis=0)
        np.add.at(cells, places[counted[first]], np.floor(shares * 2**BITS).astype(np.int64))
        documents += np.bincount(places[chosen], minlength=rows)
    return cells, documents


def users_or_none(corpus: Corpus) -> I64 | None:
    """Number each document's user; None if some documents do not name one."""
    names = corpus.table["user"].to_list() if "user" in corpus.table.columns else []
    if not names or not all(name and name.strip() for name in names):
        return None
    return np.asarray(np.unique(np.array(names), return_inverse=True)[1], np.int64)


def _blocks(begins: I64, end: int) -> Iterator[tuple[int, int]]:
    """Split into ranges of about `_BLOCK` documents, none of which ends within a group; groups begin at `begins`."""
    start = 0
    while start < end:
        later = begins[np.searchsorted(begins, start + _BLOCK) :]
        stop = int(later[0]) if len(later) else end
        yield start, stop
        start = stop


def _silent(model: Topics, corpus: Corpus) -> Bool:
    """Find documents in which the model finds nothing: their shares would be the prior's, not theirs."""
    silent: Bool = corpus.lengths == 0
    return silent if model.encoder is None else model.encoder.silent(corpus)


def _clip(theta: F64) -> F64:
    """Clip shares so that the sensitivity holds for any model: not negative, with a sum of at most 1.

    The little that is taken off makes up for rounding in the sum.
    """
    shares = np.clip(np.nan_to_num(theta, nan=0.0, posinf=0.0, neginf=0.0), 0.0, 1.0)
    total = shares.sum(axis=1, keepdims=True)
    clipped: F64 = shares / np.maximum(total * (1 + 2.0**-40), 1.0)
    return clipped


def _places(party: Party, corpus: Corpus, periods: Periods | None) -> I64:
    """Return each document's row of the table."""
    if periods is None:
        return np.zeros(corpus.n_documents, np.int64)
    if "date" not in corpus.table.columns:
        raise InputError(NO_DATES)
    places = periods.places(corpus.table["date"])
    if outside := int((places < 0).sum()):
        party.notice(
            f"{outside} of {len(places)} documents are not counted: no date that can be read, or none asked for"
        )
    return places


def _mechanism(table: TableSettings, smallest: int) -> Mechanism:
    """Return the mechanism by which the table leaves."""
    if table.epsilon is None:
        return Clear(WHAT)
    return NoisyTable(
        WHAT, sigma=table.sigma, sensitivity=table.sensitivity, adjacency=Adjacency(table.adjacency),
        smallest=smallest if smallest > 1 else 0.0,
    )  # fmt: skip


def _check_own_epsilon(party: Party, mechanism: Mechanism) -> None:
    """Refuse what would cost a document more than the party's own epsilon."""
    own = party.setting("epsilon", None)
    if own is None:
        return
    noisy = isinstance(mechanism, NoisyTable)
    cost = epsilon_of(mechanism.sensitivity / mechanism.sigma, _OWN_DELTA) if noisy else np.inf  # type: ignore[attr-defined]
    if cost > own:
        why = f"'{WHAT}' would cost a document {cost:.4g} at delta {_OWN_DELTA:g}, beyond {own:g}"
        raise PolicyRefusal("the party's own epsilon", f"{why}; ask with a smaller epsilon")


STEPS = (measure,)
KEEPS_OWN_EPSILON = True  # `measure` refuses what would cost more


def train(fed: Federation, config: Mapping[str, Any], state: Measured | None = None) -> Measured:
    """Ask each party, or each group, once."""
    if state is not None:
        return state
    settings = PrevalenceSettings(**config)
    task = task_of(settings, Topics.load(settings.model))
    found = dict(_sums(fed, settings.groups, task) if settings.groups else _each(fed, task))
    if not found:
        raise InputError("no group is left in which at least two parties answered: ask larger groups")
    cells = np.stack([table for _, table in found.values()])
    return fed.commit(Measured(tuple(found), {name: members for name, (members, _) in found.items()}, cells))


_Rows = Iterator[tuple[str, tuple[tuple[PartyId, ...], Array]]]  # name, members and table


def _each(fed: Federation, task: PrevalenceTask) -> _Rows:
    for party, table in fed.each(measure, task).items():
        yield party, ((party,), table.cells)


def _sums(fed: Federation, groups: Mapping[str, tuple[PartyId, ...]], task: PrevalenceTask) -> _Rows:
    """Sum over each group. A group in which only one party answered is dropped: its sum is that party's own table."""
    if strangers := sorted({party for members in groups.values() for party in members} - set(fed.parties)):
        raise ConfigError(f"'{strangers[0]}' is in a group, but no party: the parties are {sorted(fed.parties)}")
    for name, members in groups.items():
        total = fed.sum(measure, dict.fromkeys(members, task))
        answered = tuple(fed.answered)
        if len(answered) > 1:
            yield name, (answered, total.cells)


def task_of(settings: PrevalenceSettings, model: Topics) -> PrevalenceTask:
    """Return the question to parties."""
    if model.encoder is not None and not isinstance(model.encoder, Encoder):
        raise ConfigError(
            "its topics are clusters of documents, which are not mixed in one: compare parties by a model of LDA, or a "
            "neural one"
        )
    encoder = None if model.encoder is None else NeuralEncoder.of(model.encoder)
    return PrevalenceTask(model.vocabulary.words, model.topic_word, model.alpha, encoder, settings.part(TableSettings))


def groups_of(config: Mapping[str, Any]) -> tuple[tuple[PartyId, ...], ...]:
    """Return the groups of parties over which tables are summed."""
    return tuple(PrevalenceSettings(**config).groups.values())


def words_of(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the words of the shared model, which parties are given with the plan."""
    return Topics.load(PrevalenceSettings(**config).model).vocabulary.words


def plan(config: Mapping[str, Any]) -> list[Planned]:
    """List everything that will leave a party, for `tertulia check`."""
    settings = PrevalenceSettings(**config)
    mechanism = _mechanism(settings, settings.min_documents_per_cell)
    return [Planned(measure, "sum" if settings.groups else "each", mechanism, 1)]
