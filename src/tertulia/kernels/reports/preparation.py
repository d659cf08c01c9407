"""Reports as samplers of topics read them: without faint Laplace entries, and without UNK.

*Condensed reports* keep the louder entries of Laplace reports: a tenth of them, with nearly all that a report says.
Without the entries below any threshold above tau, a report is distributed as Laplace noise thresholded there, and has
the likelihood ratios of that channel. So samplers that know the noise stay exact given what they see. This costs no
privacy, for it is computed from the report. Entries below 1/2 speak against the word that they name: their ratio
e^(epsilon (2 n^ - 1)) is below 1. A token's own entry falls there with probability e^(-epsilon / 2) / 2: 0.9 % at
epsilon = 8, where a report over 3,000 words keeps 27 of 300 entries.

*Listed reports* leave out UNK, the symbol for all words off the list. UNK is free of topics: a token is UNK with
probability pi in every document; else it has a topic, and a listed word of that topic. So a report has the likelihood

    pi (r0 + a_UNK) + (1 - pi) (r0 + sum_j a_j phi[z, idx_j])

given the topic z that the token has if it is listed, with a_UNK = 0 where the report does not name UNK. Each report's
likelihood matters only up to a factor. So this is the form that samplers know, r0' + sum_j a'_j phi[z, idx_j] over
listed words, with r0' = r0 / (1 - pi) and a'_j = a_j r0 / (r0 + pi a_UNK). A report that names no listed word says
nothing of topics. Pi is estimated from the reports: a share p of the reports of UNK name it, and a share q of all
others.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tertulia._arrays import I32, I64, Array, Bool
from tertulia.errors import InputError
from tertulia.kernels.reports import Reports
from tertulia.kernels.reports.channel import Channel

LOUD = 0.5
_BLOCK = 4096  # tokens whose reports are regenerated at a time
_KEPT = 2**24  # entries that may stay in memory, 200 MB of them

Source = Reports | Callable[[int, int], Reports]


def condense(source: Callable[[int, int], Reports], channel: Channel, n_tokens: int) -> Source:
    """Condense the reports of all tokens: as a whole where memory allows it, else on demand.

    `source` gives those of tokens first..last-1, all entries. Other channels than Laplace have nothing to drop.
    """
    if channel.kind != "laplace":
        return source(0, n_tokens)
    louder = condensed_channel(channel)

    def part(first: int, last: int) -> Reports:
        return keep_above(source(first, last), louder)

    if n_tokens * louder.expected_support() > _KEPT:
        return part
    parts = [part(start, min(start + _BLOCK, n_tokens)) for start in range(0, n_tokens, _BLOCK)]
    return _join(parts, louder)


def condensed_channel(channel: Channel) -> Channel:
    """Return the channel that condensed reports seem to come from."""
    return dataclasses.replace(channel, tau=max(LOUD, channel.tau)) if channel.kind == "laplace" else channel


def keep_above(reports: Reports, louder: Channel) -> Reports:
    """Keep the entries of Laplace reports above the threshold of `louder`, a channel of the same noise."""
    keep = reports.value > louder.threshold
    indptr = np.concatenate([[0], np.cumsum(keep)])[reports.indptr]
    r0 = louder.background()
    a = reports.a[keep] + np.float32(reports.r0 - r0)
    return Reports(indptr, reports.idx[keep], a, reports.value[keep], r0)


def _join(parts: list[Reports], channel: Channel) -> Reports:
    if not parts:
        nothing = np.empty(0, dtype=np.float32)
        return Reports(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32), nothing, nothing, channel.background())
    starts = np.cumsum([0, *(part.indptr[-1] for part in parts[:-1])])
    indptr = [part.indptr[1:] + start for part, start in zip(parts, starts, strict=True)]
    idx, a, value = (np.concatenate([getattr(part, name) for part in parts]) for name in ("idx", "a", "value"))
    return Reports(np.concatenate([[0], *indptr]), idx, a, value, channel.background())


class ListedReports(NamedTuple):
    """Reports about listed words."""

    source: Source  # of the tokens that were heard, words below V; r0 and a as above
    unknown: float  # the share of tokens that are UNK
    heard: Bool | None  # [N] whether a report names a listed word; None: `source` has all tokens

    def offsets(self, offsets: Array) -> I64:
        """Return where documents, or sentences, begin among the tokens that were heard."""
        if self.heard is None:
            return np.asarray(offsets, dtype=np.int64)
        before: I64 = np.concatenate(([0], np.cumsum(self.heard)))[offsets]
        return before

    def take(self, of_tokens: I32) -> I32:
        """Take the entries of the tokens that were heard."""
        if self.heard is None:
            return of_tokens
        if of_tokens.shape != self.heard.shape:
            raise InputError("the state is not of these tokens: is it another corpus's?")
        return of_tokens[self.heard]

    def put_back(self, of_heard: I32) -> I32:
        """Return an entry for every token, -1 for those that were not heard."""
        if self.heard is None:
            return of_heard
        of_tokens = np.full(len(self.heard), -1, dtype=np.int32)
        of_tokens[self.heard] = of_heard
        return of_tokens


def listed_reports(source: Callable[[int, int], Reports], channel: Channel, n_tokens: int) -> ListedReports:
    """Prepare reports of a channel whose last symbol, `channel.V - 1`, is UNK for samplers of topics."""
    unk, seen = channel.V - 1, condense(source, channel, n_tokens)
    pi = _share(seen, condensed_channel(channel), n_tokens)
    if not isinstance(seen, Reports):
        on_demand = seen

        def part(first: int, last: int) -> Reports:
            return _leave_out(on_demand(first, last), unk, pi)

        return ListedReports(part, pi, None)
    listed = _leave_out(seen, unk, pi)
    lengths = np.diff(listed.indptr)
    heard = lengths > 0
    indptr = np.concatenate(([0], np.cumsum(lengths[heard])))
    return ListedReports(listed._replace(indptr=indptr), pi, heard)


def _share(seen: Source, channel: Channel, n_tokens: int) -> float:
    """Estimate pi by moments: a share pi p + (1 - pi) q of all reports names UNK."""
    blocks = [seen] if isinstance(seen, Reports) else (
        seen(start, min(start + _BLOCK, n_tokens)) for start in range(0, n_tokens, _BLOCK)
    )  # fmt: skip
    named = sum(int(np.count_nonzero(block.idx == channel.V - 1)) for block in blocks) / max(n_tokens, 1)
    p = channel.own_word_probability()
    q = (channel.expected_support() - p) / (channel.V - 1)
    return min(max((named - q) / (p - q), 0.0), n_tokens / (n_tokens + 1))  # never all: phi must have a say


def _leave_out(reports: Reports, unk: int, pi: float) -> Reports:
    """Drop UNK from reports; its weight goes to the background."""
    is_unk, r0 = reports.idx == unk, reports.r0
    token = np.repeat(np.arange(len(reports.indptr) - 1), np.diff(reports.indptr))
    scale = np.ones(len(reports.indptr) - 1)
    scale[token[is_unk]] = r0 / (r0 + pi * reports.a[is_unk])
    listed = ~is_unk
    a = (reports.a[listed] * scale[token[listed]]).astype(np.float32)
    indptr = np.concatenate(([0], np.cumsum(listed)))[reports.indptr]
    return Reports(indptr, reports.idx[listed], a, reports.value[listed], r0 / (1 - pi))
