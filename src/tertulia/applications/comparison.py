"""Results of a comparison of parties: prevalence, shared and private topics, similarity of parties, trends.

Everything is computed from released numbers, so it costs no privacy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl

from tertulia._arrays import F64, Bool
from tertulia._lazy import view
from tertulia._plain import write_csv
from tertulia.errors import InputError
from tertulia.models.frame import Frame

if TYPE_CHECKING:
    from tertulia.view.plots.comparison import Figures

Measure = Literal["jensen-shannon", "hellinger"]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Topic prevalence of parties, or of groups of parties.

    >>> found.shared()  # doctest: +SKIP
    >>> found.similarity()  # doctest: +SKIP
    >>> found.plot.prevalence()  # doctest: +SKIP
    """

    names: tuple[str, ...]  # R parties or groups
    members: dict[str, tuple[str, ...]]  # the parties of each
    periods: tuple[str, ...]  # P; without dates one, "all"
    released: F64  # [R, P, K] documents (or tokens) by topic, as released
    words: list[list[str]]  # the top words of each topic
    weigh: str = "documents"
    sigma: float = 0.0  # standard deviation of the noise that each party added to each number
    epsilon: float = np.inf  # the privacy cost for one document, at `delta`
    delta: float = 0.0

    def __post_init__(self) -> None:
        if taken := sorted(
            {"topic", "party", "effective parties", "most in", "its share", "kind", "words"} & {*self.names}
        ):
            raise InputError(f"a party is called '{taken[0]}', like a column of the tables: give it another name")

    @property
    def n_topics(self) -> int:
        """The number of topics."""
        return int(self.released.shape[2])

    @cached_property
    def totals(self) -> F64:
        """The number of documents (or tokens) of each party, [R]; with noise it is approximate."""
        return np.asarray(self.released.sum(axis=(1, 2)))

    @cached_property
    def prevalence(self) -> F64:
        """Topic shares of each party, [R, K]: rows sum to 1, NaN for a party that released nothing."""
        return to_shares(self.released.sum(axis=1))

    @cached_property
    def margins(self) -> F64:
        """An upper bound of the standard error of `prevalence`, [R, K], from sampling and noise; NaN for tokens.

        Shares lie between 0 and 1, so their variance is at most p (1 - p), as for documents of a single topic.
        """
        p, n = self.prevalence, np.where(self.totals > 0, self.totals, np.nan)[:, None]
        if self.weigh == "tokens":
            return np.full_like(p, np.nan)
        noise = self.sigma**2 * len(self.periods) * np.array([[len(self.members[name])] for name in self.names])
        return np.asarray(np.sqrt(p * (1 - p) / n + noise / n**2))

    def party_shares(self, *, by_size: bool = False) -> F64:
        """Compute the share of each party in a topic, [R, K]: columns sum to 1.

        All parties have the same weight. With `by_size` they are weighted by their documents, so that a large party has
        most of everything.
        """
        mass = np.nan_to_num(self.prevalence) * (np.maximum(self.totals, 0)[:, None] if by_size else 1.0)
        total = mass.sum(axis=0)
        return np.asarray(mass / np.where(total > 0, total, np.nan))

    def effective_parties(self, *, by_size: bool = False) -> F64:
        """Compute the effective number of parties of a topic, [K]: exp of the entropy of its shares, from 1 to R."""
        shares = self.party_shares(by_size=by_size)
        logs = np.log(np.where(shares > 0, shares, 1.0))
        return np.asarray(np.exp(-(shares * logs).sum(axis=0)))

    def private(self, share: float = 0.6, *, by_size: bool = False) -> pl.DataFrame:
        """Tabulate topics of which one party has at least `share`, the most private first."""
        found = self.table(private=share, by_size=by_size).filter(pl.col("kind") == "private")
        return Frame(found.select("topic", "most in", "its share", "words").sort("its share", descending=True))

    def shared(self, at_least: float | None = None, *, private: float = 0.6, by_size: bool = False) -> pl.DataFrame:
        """Tabulate topics with `at_least` this number of effective parties (default: half) that are not private."""
        found = self.table(at_least, private=private, by_size=by_size).filter(pl.col("kind") == "shared")
        return Frame(found.select("topic", "effective parties", "words").sort("effective parties", descending=True))

    def table(
        self, at_least: float | None = None, *, private: float = 0.6, by_size: bool = False, words: int = 8
    ) -> pl.DataFrame:
        """Tabulate every topic: its prevalence in each party, whether it is shared or private, and its words."""
        if not 0 < private <= 1:
            raise InputError(f"private = {private}: the share of one party that makes a topic its own, such as 0.6")
        shares, effective = self.party_shares(by_size=by_size), self.effective_parties(by_size=by_size)
        enough = max(1.5, len(self.names) / 2) if at_least is None else at_least
        most = np.nan_to_num(shares).argmax(axis=0)
        top = shares[most, np.arange(self.n_topics)]
        kind = np.where(top >= private, "private", np.where(effective >= enough, "shared", "between"))
        return Frame(
            {
                "topic": range(self.n_topics),
                **dict(zip(self.names, self.prevalence, strict=True)),
                "effective parties": effective,
                "most in": [self.names[r] for r in most],
                "its share": top,
                "kind": kind,
                "words": [" ".join(topic[:words]) for topic in self.words],
            }
        )

    def similarity(self, measure: Measure = "jensen-shannon") -> pl.DataFrame:
        """Tabulate the similarity of parties: 1 minus the distance of their topic shares, from 0 to 1."""
        matrix = similarities(self.prevalence, measure)
        return Frame({"party": self.names, **dict(zip(self.names, matrix, strict=True))})

    def order(self) -> list[int]:
        """Order parties so that similar ones are neighbours, by average linkage on Jensen-Shannon distances."""
        from scipy.cluster.hierarchy import leaves_list, linkage
        from scipy.spatial.distance import squareform

        known = np.flatnonzero(self._known)
        if len(known) < 3:
            return [*known.tolist(), *np.flatnonzero(~self._known).tolist()]
        distances = 1 - similarities(self.prevalence[known], "jensen-shannon")
        np.fill_diagonal(distances, 0.0)
        tree = linkage(squareform(distances, checks=False), "average", optimal_ordering=True)
        return [*known[leaves_list(tree)].tolist(), *np.flatnonzero(~self._known).tolist()]

    def over_time(self) -> pl.DataFrame:
        """Tabulate shares of topics by party and period; null if nothing, or too little, was released."""
        self._check_periods()
        R, P, K = self.released.shape
        shares = to_shares(self.released)
        table = Frame(
            {
                "party": np.repeat(self.names, P * K),
                "period": np.tile(np.repeat(self.periods, K), R),
                "topic": np.tile(np.arange(K), R * P),
                "share": shares.ravel(),
                self.weigh: np.repeat(self.released.sum(axis=2).ravel(), K),
            }
        )
        return Frame(table.with_columns(pl.col("share").fill_nan(None)))

    def trends(self) -> pl.DataFrame:
        """Tabulate trends: slope of shares per period, by least squares weighted with the size of each period."""
        self._check_periods()
        rows = []
        time = np.arange(len(self.periods), dtype=float)
        for name, table in zip(self.names, self.released, strict=True):
            shares, size = to_shares(table), np.maximum(table.sum(axis=1), 0.0)
            seen = size > 0
            if seen.sum() < 3:  # two points always lie on a line
                continue
            t, w = time[seen] - np.average(time[seen], weights=size[seen]), size[seen]
            slope = (w * t) @ shares[seen] / (w @ t**2)
            rows += [
                {"party": name, "topic": k, "slope": float(b), "periods": int(seen.sum())} for k, b in enumerate(slope)
            ]
        schema = {"party": pl.String, "topic": pl.Int64, "slope": pl.Float64, "periods": pl.Int64}
        return Frame(pl.DataFrame(rows, schema=schema).sort(pl.col("slope").abs(), descending=True))

    def save(self, directory: str | Path) -> Path:
        """Write CSV files: prevalence, similarity and, with dates, over_time."""
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        tables = {"prevalence": self.table(), "similarity": self.similarity()}
        if len(self.periods) > 1:
            tables["over_time"] = self.over_time()
        for name, table in tables.items():
            write_csv(table, directory / f"{name}.csv")
        return directory

    @property
    def plot(self) -> Figures:
        """Figures; each method draws one, and returns its axes (matplotlib: the extra `plot`)."""
        figures: Figures = view("comparison_plots")(self)
        return figures

    @property
    def _known(self) -> Bool:
        return np.asarray(~np.isnan(self.prevalence).any(axis=1))

    def _check_periods(self) -> None:
        if len(self.periods) < 2:
            raise InputError(
                "this comparison has no periods: ask with by='quarter', since='2025-10', until='2026-09', say"
            )

    def __repr__(self) -> str:
        what = f"{len(self.names)} {'groups' if any(len(m) > 1 for m in self.members.values()) else 'parties'}"
        cost = "no noise" if not self.sigma else f"epsilon {self.epsilon:.3g} at delta {self.delta:g}"
        return f"Comparison({what}, {self.n_topics} topics, {len(self.periods)} periods, {cost})"


def to_shares(weights: F64) -> F64:
    """Convert weights to shares [..., K]; if noise made some negative, take the nearest shares (Euclidean).

    >>> to_shares(np.array([[3.0, 1.0], [5.0, -1.0], [0.0, 0.0]]))
    array([[0.75, 0.25],
           [1.  , 0.  ],
           [ nan,  nan]])
    """
    total = weights.sum(axis=-1, keepdims=True)
    scaled = weights / np.where(total > 0, total, np.nan)
    falling = -np.sort(-scaled, axis=-1)
    excess = (np.cumsum(falling, axis=-1) - 1) / np.arange(1, weights.shape[-1] + 1)
    last = np.maximum((falling > excess).sum(axis=-1, keepdims=True) - 1, 0)
    return np.asarray(np.maximum(scaled - np.take_along_axis(excess, last, axis=-1), 0.0))


def similarities(shares: F64, measure: Measure) -> F64:
    """Compute 1 minus the distance of each pair of rows, [R, R]; NaN if a row is unknown."""
    if measure == "hellinger":
        roots = np.sqrt(shares)
        return np.asarray(1 - np.sqrt(((roots[:, None] - roots[None]) ** 2).sum(axis=2) / 2))
    if measure != "jensen-shannon":
        raise InputError(f"measure = '{measure}': use 'jensen-shannon' or 'hellinger'")
    from scipy.spatial.distance import jensenshannon

    return np.asarray(1 - jensenshannon(shares[:, None], shares[None], base=2, axis=2))
