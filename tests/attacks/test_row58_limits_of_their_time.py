"""A stricter limit in the policy lowers what the ledger says was spent before, and a budget allows a further run."""

import math

import pytest

from helpers.attacks_noise import STRICT, as_written_before, ask, corpus_of, count, party, report
from tertulia.privacy.adjacency import Bounds
from tertulia.privacy.mechanisms import Adjacency, Unit
from tertulia.privacy.policy import Policy

LONG, OTHER = "ache burn cold dose fever ache burn cold", "dose fever cold ache"
LIMIT = "max_tokens_per_document = {}\n"
DOCUMENTS = '[[budget]]\nunit = "document"\nadjacency = "substitute"\nepsilon = {}\ndelta = 0.0\n'


def spent(host, unit=Unit.DOCUMENT, adjacency=Adjacency.SUBSTITUTE, bounds=None):
    return host.ledger.cost(unit, adjacency, 0.0, bounds=bounds or host.policy.bounds).epsilon


def test_a_stricter_limit_does_not_lower_what_was_spent(tmp_path):
    """Eight reports of epsilon 1 have left of the document; later declarations do not change that."""
    first = party(tmp_path / "first", corpus_of([LONG], ["a"]), policy=STRICT + LIMIT.format(8))
    assert ask(first, report).kind == "ok"
    strict = STRICT + LIMIT.format(2)
    again = party(tmp_path / "again", corpus_of([OTHER], ["b"]), policy=strict, run="again")
    assert spent(again) == pytest.approx(8.0)
    again = party(tmp_path / "more", corpus_of([OTHER], ["b"]), policy=strict + DOCUMENTS.format(7.9), run="more")
    assert ask(again, report).kind == "refused"  # by today's limit a document would have spent 2
    roomy = party(tmp_path / "room", corpus_of([OTHER], ["b"]), policy=strict + DOCUMENTS.format(8.1), run="room")
    assert ask(roomy, report).kind == "ok"


def test_an_edited_document_adds_up_by_the_limits_of_each_time(tmp_path):
    """Cut to two tokens it is another version: 8 + 2 reports of one document have left."""
    for run, limit in (("first", 8), ("cut", 2)):
        host = party(tmp_path / run, corpus_of([LONG], ["a"]), policy=STRICT + LIMIT.format(limit), run=run)
        assert ask(host, report).kind == "ok"
    assert spent(host) == pytest.approx(10.0)


def test_a_looser_limit_raises_what_a_charge_of_before_covers(tmp_path):
    """The charge is made once for all documents; those of later are longer, and their budget is asked for."""
    first = party(tmp_path / "first", corpus_of([LONG], ["a"]), policy=STRICT + LIMIT.format(2))
    assert ask(first, report).kind == "ok"
    texts, ids = [OTHER], ["b"]
    loose = STRICT + LIMIT.format(4)
    tight = party(tmp_path / "no", corpus_of(texts, ids), policy=loose + DOCUMENTS.format(3.9), run="no")
    assert ask(tight, report).kind == "refused"
    assert spent(tight) == pytest.approx(2.0)  # nothing was charged
    wide = party(tmp_path / "yes", corpus_of(texts, ids), policy=loose + DOCUMENTS.format(4.0), run="yes")
    assert ask(wide, report).kind == "ok"
    assert spent(wide) == pytest.approx(4.0)


def test_documents_of_a_user_are_those_that_were_allowed_then(tmp_path):
    """Noise on counts: a user's four documents moved them together."""
    corpus = corpus_of([LONG] * 4, list("abcd"), ["ann"] * 4)
    host = party(tmp_path / "first", corpus, policy=STRICT + "max_documents_per_user = 4\n")
    assert ask(host, count).kind == "ok"
    assert spent(host, Unit.USER, Adjacency.ADD_REMOVE, Bounds(None, 1)) == pytest.approx(0.4)


def test_rows_without_limits_count_as_unlimited_unless_the_policy_is_still_that_of_then(tmp_path):
    """An earlier version wrote no limits beside a charge, but a hash of the whole policy."""
    policy = STRICT + LIMIT.format(8)
    host = party(tmp_path / "first", corpus_of([LONG], ["a"]), policy=policy)
    assert ask(host, report).kind == "ok"
    assert [r.charged.limits(Bounds()) for r in host.ledger.releases() if r.charges] == [Bounds(8)]
    as_written_before(host, tmp_path)
    assert [r.charged.limits(Bounds()) for r in host.ledger.releases() if r.charges] == [Bounds()]
    assert spent(host) == pytest.approx(8.0)
    for limit in (2, 9):
        other = Policy.parse(STRICT + LIMIT.format(limit))
        assert spent(host, bounds=other.bounds) == math.inf
    assert spent(host, Unit.TOKEN) == pytest.approx(1.0)  # needs no limit
