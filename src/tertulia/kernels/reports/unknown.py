"""Reports over a word list and one symbol more, UNK, for all words off the list: what samplers of topics see of them.

UNK is free of topics. A token is UNK with probability pi, whatever its document; else it has a topic, and a listed word
of it. So a report has the likelihood

    pi (r0 + a_UNK) + (1 - pi) (r0 + sum_j a_j phi[z, idx_j])

given the topic z that the token has if it is listed, with a_UNK = 0 where the report does not name UNK. Reports count
up to a factor of their own, so this is the form that samplers know, r0' + sum_j a'_j phi[z, idx_j] over listed words,
with r0' = r0 / (1 - pi) and a'_j = a_j r0 / (r0 + pi a_UNK). A report that names no listed word says nothing of topics.

Pi is found from the reports: UNK is named by a share p of the reports of UNK, and by a share q of all others. So
everything here is computed from reports alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tertulia._arrays import I32, I64, Array, Bool
from tertulia.errors import InputError
from tertulia.kernels.reports import Reports
from tertulia.kernels.reports.channel import Channel
from tertulia.kernels.reports.condense import Source, condense, condensed_channel

_BLOCK = 4096  # tokens whose reports are regenerated at a time


class ListedReports(NamedTuple):
    """What reports say about listed words."""

    source: Source  # of the tokens that were heard, words below V; r0 and a as above
    unknown: float  # the share of tokens that are UNK
    heard: Bool | None  # [N] whether a report names a listed word; None: all tokens stay in `source`

    def offsets(self, offsets: Array) -> I64:
        """Where documents, or sentences, begin among the tokens that were heard."""
        if self.heard is None:
            return np.asarray(offsets, dtype=np.int64)
        before: I64 = np.concatenate(([0], np.cumsum(self.heard)))[offsets]
        return before

    def take(self, of_tokens: I32) -> I32:
        """The entries of the tokens that were heard."""
        if self.heard is None:
            return of_tokens
        if of_tokens.shape != self.heard.shape:
            raise InputError("the state is not of these tokens: is it another corpus's?")
        return of_tokens[self.heard]

    def put_back(self, of_heard: I32) -> I32:
        """An entry for every token, -1 for those that were not heard."""
        if self.heard is None:
            return of_heard
        of_tokens = np.full(len(self.heard), -1, dtype=np.int32)
        of_tokens[self.heard] = of_heard
        return of_tokens


def listed_reports(source: Callable[[int, int], Reports], channel: Channel, n_tokens: int) -> ListedReports:
    """Reports by a channel whose last symbol is UNK, `channel.V - 1`, as samplers of topics want them."""
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
    """The moment estimate of pi: UNK is named by pi p + (1 - pi) q of all reports."""
    blocks = [seen] if isinstance(seen, Reports) else (
        seen(start, min(start + _BLOCK, n_tokens)) for start in range(0, n_tokens, _BLOCK)
    )  # fmt: skip
    named = sum(int(np.count_nonzero(block.idx == channel.V - 1)) for block in blocks) / max(n_tokens, 1)
    p = channel.own_word_probability()
    q = (channel.expected_support() - p) / (channel.V - 1)
    return min(max((named - q) / (p - q), 0.0), n_tokens / (n_tokens + 1))  # never all: phi must have a say


def _leave_out(reports: Reports, unk: int, pi: float) -> Reports:
    """The same reports without UNK, whose weight goes to the background."""
    is_unk, r0 = reports.idx == unk, reports.r0
    token = np.repeat(np.arange(len(reports.indptr) - 1), np.diff(reports.indptr))
    scale = np.ones(len(reports.indptr) - 1)
    scale[token[is_unk]] = r0 / (r0 + pi * reports.a[is_unk])
    listed = ~is_unk
    a = (reports.a[listed] * scale[token[listed]]).astype(np.float32)
    indptr = np.concatenate(([0], np.cumsum(listed)))[reports.indptr]
    return Reports(indptr, reports.idx[listed], a, reports.value[listed], r0 / (1 - pi))
