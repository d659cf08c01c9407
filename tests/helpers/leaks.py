"""A toy method whose steps keep their promises, and variants of them that do not."""

import numpy as np

from helpers.texts import STEMS
from tertulia.corpus import Vocabulary
from tertulia.errors import InputError
from tertulia.federation import fields
from tertulia.federation.types import Planned, message, step
from tertulia.kernels.reports import Channel, reports_of_documents
from tertulia.privacy.mechanisms import Derived, DiscreteLaplace, Public
from tertulia.privacy.mechanisms.sampled_gaussian import SampledGaussian
from tertulia.privacy.mechanisms.shared_gaussian import SharedGaussian
from tertulia.privacy.mechanisms.token_reports import TokenReports

BITS, CAP, THRESHOLD, LONG = 14, 5, 10, 500
V = len(STEMS)


@message
class Question:
    """The number of the round."""

    round: fields.Round


@message
class Values:
    values: object
    other: object


NOISY = SharedGaussian("sum", sensitivity=1.0, sigma=4.0, bits=BITS)
HELD = DiscreteLaplace("numbers of documents", sensitivity=V, epsilon=1.0)
SAMPLED = SampledGaussian("sum", sensitivity=1.0, sigma=4.0, bits=BITS, rate=0.5)
REPORTS = TokenReports("reports", channel=Channel("krr", 3.0, V + 1))
WEIGHT, MEAN = Public("number of documents"), Derived("mean", parents=("sum",))


def bags(party):
    """Counts of words, [D, V]."""
    corpus = party.documents(Vocabulary(tuple(STEMS)))
    document = np.repeat(np.arange(corpus.n_documents), corpus.lengths)
    return np.bincount(document * V + corpus.words, minlength=corpus.n_documents * V).reshape(-1, V).astype(float)


def clipped(rows, norm=1.0):
    return rows * np.minimum(1.0, norm / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9))


def on_grid(values):
    return np.floor(values * 2**BITS * (1 - 2.0**-10)).astype(np.int64)  # rounding leaves room below the norm


def twice(party, values, mechanism, derived=None):
    """Release a sum, and what is computed from it."""
    noisy = party.release(values, mechanism)
    mean = np.asarray(noisy, float).mean() if derived is None else derived
    return Values(noisy, party.release(np.array(mean), Derived("mean", parents=(noisy,))))


@step
def sum_clipped(party, state, ask: Question):
    """Kept: every document counts for 1 at most."""
    return state, twice(party, on_grid(clipped(bags(party))).sum(axis=0), NOISY)


@step
def sum_unclipped(party, state, ask: Question):
    return state, twice(party, on_grid(bags(party)).sum(axis=0), NOISY)


@step
def clip_the_sum(party, state, ask: Question):
    return state, twice(party, on_grid(clipped(bags(party).sum(axis=0)[None], 50.0)[0]), NOISY)


@step
def clip_by_the_longest(party, state, ask: Question):
    rows = bags(party)
    clip = float(np.linalg.norm(rows, axis=1).max())
    mechanism = SharedGaussian("sum", sensitivity=clip, sigma=4.0 * clip, bits=BITS)
    return state, twice(party, on_grid(clipped(rows, clip)).sum(axis=0), mechanism)


@step
def scale_noise_by_the_total(party, state, ask: Question):
    rows = bags(party)
    mechanism = SharedGaussian("sum", sensitivity=1.0, sigma=4.0 + rows.sum() / 1000, bits=BITS)
    return state, twice(party, on_grid(clipped(rows)).sum(axis=0), mechanism)


@step
def cap_the_total(party, state, ask: Question):
    """The cap of a document's words is applied to what all documents have together."""
    rows = bags(party)
    return state, twice(party, np.minimum(rows.sum(axis=0), CAP * len(rows)).astype(np.int64), HELD)


@step
def count_documents(party, state, ask: Question):
    """Kept: a document holds each word or not."""
    return state, twice(party, (bags(party) > 0).sum(axis=0), HELD)


@step
def count_frequent(party, state, ask: Question):
    held = (bags(party) > 0).sum(axis=0)
    return state, twice(party, np.where(held >= THRESHOLD, held, 0), HELD)


@step
def derive_from_counts(party, state, ask: Question):
    rows = bags(party)
    return state, twice(party, on_grid(clipped(rows)).sum(axis=0), NOISY, derived=rows.sum())


@step
def shuffle_by_the_data(party, state, ask: Question):
    rows = bags(party)
    noisy = party.release(on_grid(clipped(rows)).sum(axis=0), NOISY)
    order = np.random.default_rng(int(rows.sum())).permutation(V)
    return state, Values(noisy, party.release(np.asarray(noisy)[order], Derived("mean", parents=(noisy,))))


@step
def show_own_words(party, state, ask: Question):
    """One number for each word that the party has."""
    corpus = party.documents()
    own = np.unique(corpus.words, return_counts=True)[1]
    return state, twice(party, np.minimum(own, CAP), HELD)


@step
def release_by_size(party, state, ask: Question):
    """Two sums of an even number of documents, and one of an odd one."""
    rows = bags(party)
    reply = twice(party, on_grid(clipped(rows)).sum(axis=0), NOISY)
    return state, twice(party, on_grid(clipped(rows)).sum(axis=0), NOISY) if len(rows) % 2 else reply


@step
def weigh_by_words(party, state, ask: Question):
    rows = bags(party)
    noisy = party.release(on_grid(clipped(rows)).sum(axis=0), NOISY)
    return state, Values(noisy, party.release(np.array(rows.sum()), WEIGHT))


@step
def fail_on_long(party, state, ask: Question):
    rows = bags(party)
    if rows.sum(axis=1).max() > LONG:
        raise InputError("a document is too long")
    return state, twice(party, on_grid(clipped(rows)).sum(axis=0), NOISY)


@step
def swap_fields(party, state, ask: Question):
    rows = bags(party)
    reply = twice(party, on_grid(clipped(rows)).sum(axis=0), NOISY)
    return state, Values(reply.other, reply.values) if rows.sum() > 300 else reply


@step
def sum_sampled(party, state, ask: Question):
    """Kept: a secret sample."""
    rows = bags(party)
    chosen = party.sample(SAMPLED.rate, (rows,), len(rows))
    return state, twice(party, on_grid(clipped(rows[chosen])).sum(axis=0), SAMPLED)


@step
def show_sample(party, state, ask: Question):
    rows = bags(party)
    chosen = party.sample(SAMPLED.rate, (rows,), len(rows))
    noisy = party.release(on_grid(clipped(rows[chosen])).sum(axis=0), SAMPLED)
    return state, Values(noisy, party.release(np.array(len(chosen)), WEIGHT))


@step
def count_reports(party, state, ask: Question):
    """Kept: all that leaves is computed from reports."""
    corpus = party.documents(Vocabulary(tuple(STEMS)), unknown=True)
    return state, _count(party, corpus)


@step
def drop_unknown(party, state, ask: Question):
    return state, _count(party, party.documents(Vocabulary(tuple(STEMS))))


@step
def count_words_beside(party, state, ask: Question):
    """The reports are right, and the counts are of the words."""
    corpus = party.documents(Vocabulary(tuple(STEMS)), unknown=True)
    return state, _count(party, corpus, corpus.words)


def _count(party, corpus, words=None):
    made = party.randomise(corpus, REPORTS)
    found = reports_of_documents(*made.drawn_from, REPORTS.channel, made.documents)
    counted = np.bincount(found.idx if words is None else words, minlength=V + 1)
    derived = Derived("counts", parents=made.parents)
    return Values(party.release(counted, derived), party.release(counted.sum(), derived))


KEPT = (sum_clipped, count_documents, sum_sampled, count_reports)
BROKEN = {
    sum_unclipped: "sensitivity",
    clip_the_sum: "sensitivity",
    cap_the_total: "sensitivity",
    count_frequent: "sensitivity",
    drop_unknown: "sensitivity",
    clip_by_the_longest: "charge",
    scale_noise_by_the_total: "charge",
    derive_from_counts: "derived",
    shuffle_by_the_data: "derived",
    count_words_beside: "derived",
    show_own_words: "shape",
    release_by_size: "releases",
    weigh_by_words: "public",
    show_sample: "public",
    fail_on_long: "failure",
    swap_fields: "reply",
}
STEPS = (*KEPT, *BROKEN)
_OF_REPORTS = (count_reports, drop_unknown, count_words_beside)
_OF_COUNTS = (cap_the_total, count_documents, count_frequent, show_own_words)


def plan(config):
    """Announce what the variant's honest form would release."""
    asked = _step(config)
    if asked in _OF_REPORTS:
        counts = Derived("counts", parents=("reports",))
        return [Planned(asked, "reports", REPORTS, 1), Planned(asked, "each", counts, 9)]
    noise = HELD if asked in _OF_COUNTS else SAMPLED if asked in (sum_sampled, show_sample) else NOISY
    return [Planned(asked, "each", one, 9) for one in (noise, WEIGHT, MEAN)]


def _step(config):
    return next(one for one in STEPS if one.__name__ == config["step"])


def train(fed, config, state=None):
    """Ask twice."""
    for round_ in range(2):
        fed.each(_step(config), Question(round_))
    return
