"""A server that follows the masks but makes up its questions, to read single documents out of totals."""

import pytest

from helpers import steering
from tertulia.federation.party import context


@pytest.fixture
def attack(tmp_path):
    corpora = steering.corpora_of_notes()
    words = tuple(sorted({word for corpus in corpora.values() for word in corpus.vocabulary.words}))
    return lambda: steering.singled_out(tmp_path / "run", corpora, words, topics=21, number=20)


def test_without_the_rule_a_server_that_knows_the_other_parts_reads_documents(attack, monkeypatch):
    monkeypatch.setattr(context, "RARE", 1)
    read = attack()
    assert read.knowing_others >= 0.6 * read.tried
    assert read.of_totals < read.knowing_others  # every word of the list is in three parties, so totals mix


def test_topics_of_few_documents_leave_nothing(attack):
    read = attack()
    assert read.tried == 20
    assert read.knowing_others <= 1
    assert read.of_totals <= 1
