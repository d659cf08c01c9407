"""Planted violations: each small variant of an honest step is caught, by the kind of promise that it breaks."""

import numpy as np
import pytest

from helpers import leaks
from helpers.modes import CASES, PARTIES
from helpers.replays import corpora_of, replayed, said
from tertulia.federation.party import document_limits, host, reports
from tertulia.federation.party.context import StepContext
from tertulia.methods.common import shared_words
from tertulia.methods.fedlda.shard import Spread
from tertulia.methods.gfedntm import private
from tertulia.methods.pctd import method as pctd
from tertulia.methods.private_topics import budget
from tertulia.privacy.noise import NoiseKey


def method(step):
    return {"name": "custom", "module": leaks.__name__, "config": {"step": step.__name__}}


@pytest.mark.parametrize("step", leaks.KEPT, ids=lambda step: step.__name__)
def test_honest_steps_keep_their_promises(step):
    report = replayed(corpora_of(PARTIES), method(step))
    assert said(report) == []
    assert 0.05 < report.closest <= 1


@pytest.mark.parametrize("step", leaks.BROKEN, ids=lambda step: step.__name__)
def test_a_planted_violation_is_caught(step):
    report = replayed(corpora_of(PARTIES), method(step))
    found = [violation for violation in report.violations if violation.kind == leaks.BROKEN[step]]
    assert {violation.step for violation in found} == {f"leaks:{step.__name__}"}, said(report)


def test_noise_that_does_not_depend_on_the_contents_is_caught(monkeypatch):
    monkeypatch.setattr(NoiseKey, "mac_of_array", lambda self, x, **how: "0" * 32)
    kinds = {violation.kind for violation in replayed(corpora_of(PARTIES), method(leaks.sum_clipped)).violations}
    assert kinds == {"noise"}


def test_reports_that_do_not_depend_on_the_document_are_caught(monkeypatch):
    monkeypatch.setattr(reports, "contents_name", lambda documents, key: "0" * 32)
    kinds = {violation.kind for violation in replayed(corpora_of(PARTIES), method(leaks.count_reports)).violations}
    assert kinds == {"noise"}


def test_a_violation_says_where_and_by_how_much():
    report = replayed(corpora_of(PARTIES), method(leaks.sum_unclipped))
    worst = max(report.violations, key=lambda violation: violation.observed)
    assert (worst.neighbour, worst.what, worst.declared) == ("a document replaced by a long one", "sum", 2.0)
    assert worst.observed == pytest.approx(1000, rel=2e-2)
    assert worst.text.startswith("leaks:sum_unclipped, 'sum', round 0, a document replaced by a long one: the input ")


def declare_half(monkeypatch):
    """PrivateTopics declares half the sensitivity of its sums."""
    known = budget.sensitivity_of
    monkeypatch.setattr(budget, "sensitivity_of", lambda what: known(what) / 2)


def clip_late(monkeypatch):
    """PC-TD clips its documents to a hundred times the norm that it declares."""
    known = pctd.clipped_statistics
    monkeypatch.setattr(
        pctd, "clipped_statistics", lambda found, r, V, clip, bits: known(found, r, V, 100 * clip, bits)
    )


def clip_too_little(monkeypatch):
    """gFedNTM sums gradients of three times the clip norm."""
    known = private.clipped_sum
    monkeypatch.setattr(private, "clipped_sum", lambda *given: 3 * known(*given))


def drop_unknown(monkeypatch):
    """FTM's documents lose their words off the list, whatever the step asks for."""
    known = StepContext.documents
    monkeypatch.setattr(
        StepContext, "documents", lambda self, words=None, part="train", unknown=None: known(self, words, part)
    )


def count_all_words(monkeypatch):
    """The choice of words under noise counts every word of a document in full."""
    monkeypatch.setattr(
        shared_words, "word_weights", lambda words, documents, size, most: np.bincount(words, minlength=size) << 20
    )


def share_random_numbers(monkeypatch):
    """FedLDA's users draw one after another again (row 62)."""

    def apply(self, sample, words, z, asked, *how):
        ends = self.documents[1::2] - self.documents[:-1:2]
        return sample(words, np.concatenate(([0], np.cumsum(ends))), z, asked, *how)

    monkeypatch.setattr(Spread, "apply", apply)


def split_by_hash(monkeypatch):
    """Hashes of texts say again which documents are held out (row 61)."""
    known = document_limits.parts_of
    monkeypatch.setattr(host, "parts_of", lambda corpus, *shares, hides_words: known(corpus, *shares))


@pytest.mark.parametrize(
    ("plant", "mode", "kind", "ids"),
    [
        (declare_half, "private-topics", "sensitivity", True),
        (clip_late, "pctd-sound", "sensitivity", True),
        (clip_too_little, "gfedntm-doc", "sensitivity", True),
        (drop_unknown, "ftm-sound-lda", "sensitivity", True),
        (drop_unknown, "consensus-sound", "sensitivity", True),
        (count_all_words, "pctd-private-words", "sensitivity", True),
        (share_random_numbers, "fedlda-hm", "sensitivity", True),
        (split_by_hash, "ftm-sound-lda", "public", False),
    ],
)
def test_violations_planted_in_methods_are_caught(plant, mode, kind, ids, monkeypatch):
    plant(monkeypatch)
    assert kind in {found.kind for found in replayed(corpora_of(PARTIES, ids=ids), CASES[mode]).violations}
