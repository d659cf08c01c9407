"""The messages of Consensus, and the states of party and server."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import numpy as np

from tertulia._arrays import I64, Array
from tertulia._kinds import check_array
from tertulia.errors import FormatError
from tertulia.federation import fields
from tertulia.federation.types import Place, message
from tertulia.kernels.lda import priors
from tertulia.methods.common.lda_settings import Training


def no_tag() -> I64:
    """Return the tag of nothing."""
    return np.zeros(2, np.int64)


@message
class Shared:
    """The question of a round to all parties. It broadcasts the merged topics first, later the summed counts."""

    words: fields.Words
    training: Training
    counts: fields.Counts  # [K, V]; in the first round pseudo-counts of the merged topics
    alpha: fields.Prior  # [K]
    round: fields.Round  # the round in which these counts were summed; 0 or less: they are merged topics
    adds_up: bool  # whether the reply must also contain the counts added up over all sweeps
    singly: bool = False  # whether the reply must hold whole counts, to be judged, instead of differences
    left_out: bool = False  # whether this party's own last counts were not added
    tag: fields.SumTag = dataclasses.field(default_factory=no_tag)  # of the counts, if they are the parties' total
    per_token: Annotated[int, fields.Between(1, fields.MOST_COUNT)] = 1  # units of counts in a token


@message
class Counts:
    """One party's new counts minus its counts in the sum; whole counts if the question says `singly`."""

    counts: fields.CountChange  # [K, V] after the last sweep
    added: fields.SweptChange  # [K, V] added up over all sweeps; [0, V] if not asked for
    tag: fields.SumTag  # of `counts`

    def check_reply(self, ask: Shared) -> None:
        """Raise unless `added` is present exactly if it was asked for, and whole counts are not negative."""
        if len(self.added) != (len(ask.counts) if ask.adds_up else 0):
            raise FormatError("'added' is there, or missing, against what was asked for")
        if ask.singly and any(np.min(getattr(self, part.name), initial=0) < 0 for part in dataclasses.fields(self)):
            raise FormatError("counts go below 0")


@message
class CountsAndHistograms(Counts):
    """Counts, and the histograms from which alpha is learned."""

    topics: fields.HistogramChange  # [K, COLUMNS] number of documents by their number of tokens of each topic
    lengths: fields.LengthChange  # [COLUMNS] number of documents by their number of tokens of all topics

    def check_reply(self, ask: Shared) -> None:
        """Raise unless the histograms have their fixed width."""
        super().check_reply(ask)
        check_array("lengths", self.lengths, (priors.COLUMNS,))


@message
class Assigned:
    """The topics of a party's tokens at the time when it sent their counts."""

    place: Place  # the place of the question
    round: int
    z: Array  # [N] topic of each token; -1: none, because its report carries no information
    taken_for: Array  # [N] the word as which each token is counted; [0] if it is always the token's own


@message
class Counting:
    """A party's state."""

    latest: Assigned
    counted: Assigned | None  # this party's part of the sum when it sent its latest counts


@message
class Agreed:
    """The server's state before there are topics."""

    words: tuple[str, ...]


@message
class ConsensusState:
    """The server's state."""

    round: int
    words: tuple[str, ...]
    counts: Array  # [K, V] the parties' sum plus `start`
    kept: Array  # [K, V] counts added up over all sweeps of the rounds that are averaged
    alpha: Array  # [K]
    start: Array  # [K, V] pseudo-counts of topics that no party has counted with yet; [0, V] if there are none
    topics: Array  # [K, COLUMNS] the parties' sum of histograms
    lengths: Array  # [COLUMNS]
    left_out: tuple[str, ...] = ()  # parties whose counts of the last round are not in the sum
    tag: Array = dataclasses.field(default_factory=no_tag)  # of the parties' sum; before they count, of `expected`
    expected: Array | None = None  # [K, V] the total of the last round of EM, before parties count
    per_token: int = 1  # units of `expected` in a token

    @property
    def contributed(self) -> Array:
        """The parties' sum of counts [K, V], without `start`."""
        return self.counts - self.start if len(self.start) else self.counts
