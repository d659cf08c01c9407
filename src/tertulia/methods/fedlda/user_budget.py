"""Reports for a total epsilon of a user: how many words are reported, and at which epsilon each.

A user with n documents makes n L reports, of the first L words of each. For every cap L, the composition of n L reports
gives the largest epsilon of one report: more words leave less for each. Topics are learned from pairs of words that one
document has. So the cap with the most information of pairs is taken, L (L - 1) C², where C is the information of a
report about its word, in nats. It depends on public numbers alone: the total, the word list's size and the limits.

Of two words a report names one alone with probability a, the other alone with probability a e^-epsilon, else both or
none (Ye and Barg 2018). So the privacy loss of n L reports is a sum of independent steps of +epsilon, -epsilon and 0,
whose law is computed exactly. The accountant of the ledger rounds up, so it has the last word.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tertulia.corpus import Corpus
from tertulia.errors import ConfigError, PolicyRefusal
from tertulia.kernels.reports.channel import Channel, Kind
from tertulia.methods.common.local_lda import REPORTS
from tertulia.methods.fedlda.settings import FEWEST_WORDS, UserSettings
from tertulia.privacy.accounting import guarantee_of
from tertulia.privacy.mechanisms.token_reports import UserReports

LEAST = 1.0  # epsilon of a report: below it a report names over a quarter of all words
_GRID = 100  # epsilons of reports are hundredths: no rounding of another machine draws other reports
_LARGEST = 40 * _GRID  # of a channel
_MOST_PER_EPSILON = 10  # more reports of epsilon 1 exceed a total at any delta: each has a mean loss of 0.23


class Total(NamedTuple):
    """A total for one user, and what it is to be divided among."""

    epsilon: float
    delta: float
    documents: int  # of one user
    most_words: int  # of a document
    most_epsilon: float  # of a report


def reports_of_user(settings: UserSettings, V: int) -> UserReports:
    """Return how a user's words are reported over V listed words; raise `ConfigError` if epsilon is too small."""
    if settings.user_epsilon is None:
        if settings.epsilon is None:
            raise ConfigError("mode 'sound' needs an epsilon: set method.epsilon or method.user_epsilon")
        return _reports(Channel(settings.channel, settings.epsilon, V + 1), settings.max_words)
    most = math.inf if settings.epsilon is None else settings.epsilon
    total = Total(settings.user_epsilon, settings.user_delta, settings.user_documents, settings.max_words, most)
    return _divided(total, settings.channel, V + 1)  # with UNK


def check_total(corpus: Corpus, settings: UserSettings) -> None:
    """Raise an error if a shard's documents do not fit the total for a user; nothing is reported then."""
    if settings.user_epsilon is None:
        return
    documents = corpus.n_documents
    if settings.user_delta * documents >= 1:
        raise ConfigError(
            f"user_delta = {settings.user_delta:g} is not below 1 / {documents}, so that publishing one of the shard's "
            f"{documents} documents would satisfy it: give a smaller one"
        )
    users = corpus.table["user"].to_list() if "user" in corpus.table.columns else []
    most = max(Counter(user for user in users if user and user.strip()).values(), default=1)
    if most > settings.user_documents:
        raise PolicyRefusal(
            "max_documents_per_user",
            f"a user has {most} documents, and user_epsilon is for {settings.user_documents}: set "
            f"max_documents_per_user = {settings.user_documents} in the policy, or a larger method.user_documents",
        )


@lru_cache(maxsize=64)
def _divided(total: Total, kind: Kind, V: int) -> UserReports:
    """Choose the cap, and the largest epsilon of a report that the ledger's accountant allows for it."""
    found = [(cap, _largest(total, kind, V, cap)) for cap in _caps(total.most_words)]
    useful = [(cap, hundredths) for cap, hundredths in found if hundredths >= LEAST * _GRID]
    if not useful and total.most_epsilon < LEAST:
        raise ConfigError(
            f"epsilon = {total.most_epsilon:g} of a report is too small to learn topics from: beside user_epsilon give "
            f"{LEAST:g} or more, or none. Nothing is reported"
        )
    if not useful:
        raise ConfigError(
            f"user_epsilon = {total.epsilon:g} is too small to learn topics from: that takes two words of each "
            f"document of a user ({total.documents}), with epsilon {LEAST:g} each. Nothing is reported; give "
            f"{FEWEST_WORDS * LEAST * total.documents:g} or more"
        )
    cap, hundredths = max(useful, key=lambda one: _information_of_pairs(one[0], Channel(kind, one[1] / _GRID, V)))
    while True:
        reports = _reports(Channel(kind, hundredths / _GRID, V), cap)
        if guarantee_of(reports, total.delta, total.documents).epsilon <= total.epsilon:
            return reports
        hundredths -= 1


def _reports(channel: Channel, tokens: int) -> UserReports:
    return UserReports(REPORTS, channel=channel, tokens=tokens)


def _caps(most: int) -> list[int]:
    """Return the caps that are compared: the numbers of two digits and zeros, from 2 on, and the largest."""
    caps = [cap * 10**zeros for zeros in range(len(str(most))) for cap in range(10 if zeros else FEWEST_WORDS, 100)]
    return sorted({*(cap for cap in caps if cap < most), most})


def _largest(total: Total, kind: Kind, V: int, cap: int) -> int:
    """Return the largest epsilon of one of a cap's reports, in hundredths; 0: none fits into the total."""
    reports = cap * total.documents
    if reports > _MOST_PER_EPSILON * total.epsilon + 100:
        return 0
    most = int(min(_LARGEST, total.epsilon * _GRID, total.most_epsilon * _GRID))
    fits, beyond = min(most, int(total.epsilon * _GRID / reports)), most + 1  # by plain composition
    while beyond - fits > 1:
        middle = (fits + beyond) // 2
        if _excess(Channel(kind, middle / _GRID, V), reports, total.epsilon) <= total.delta:
            fits = middle
        else:
            beyond = middle
    return fits


def _excess(channel: Channel, reports: int, epsilon: float) -> float:
    """Return the delta at which `reports` reports together have this epsilon."""
    alone = channel.own_word_probability() * (channel.V - channel.m) / (channel.V - 1)
    law = np.zeros(2 * reports + 1)  # of the steps, from 0 on, then from -reports to -1
    law[[0, 1, -1]] = 1 - alone * (1 + math.exp(-channel.epsilon)), alone, alone * math.exp(-channel.epsilon)
    steps = np.arange(math.floor(epsilon / channel.epsilon) + 1, reports + 1)
    of_sum = np.fft.irfft(np.fft.rfft(law) ** reports, len(law))[steps]
    return float(np.sum(np.maximum(of_sum, 0) * -np.expm1(epsilon - steps * channel.epsilon)))


def _information_of_pairs(cap: int, channel: Channel) -> float:
    """Return the root of L (L - 1) C², in nats, of a document's pairs of words."""
    return math.sqrt(cap * (cap - 1)) * information(channel)


def information(channel: Channel) -> float:
    """Return what one report says about a word of which nothing is known, in nats: the capacity of the channel.

    >>> round(information(Channel("krr", 20.0, V=1000)), 2), round(information(Channel("subset", 1.0, V=1000)), 2)
    (6.91, 0.12)
    """
    named, V, m = channel.own_word_probability(), channel.V, channel.m
    others = 0.0 if named == 1 else (1 - named) * math.log((1 - named) / (V - m))
    return math.log(V) + named * math.log(named / m) + others
