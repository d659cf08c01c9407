"""A server that follows the masks but makes up its questions, to read single documents out of totals.

Alone it cannot: parties refuse questions that are no totals. The other tests are of a server that one member helps, by
giving it the key of tags. Then the rule of five documents is what is left.
"""

import pytest

from helpers import steering
from tertulia.federation.party import context


@pytest.fixture
def attack(tmp_path):
    corpora = steering.corpora_of_notes()
    words = tuple(sorted({word for corpus in corpora.values() for word in corpus.vocabulary.words}))
    return lambda how=steering.singled_out, **given: how(
        tmp_path / "run", corpora, words, topics=21, number=20, **given
    )


@pytest.mark.parametrize("how", [steering.singled_out, steering.singled_out_by_em])
def test_a_server_alone_gets_no_answer_to_questions_that_it_makes_up(attack, monkeypatch, tmp_path, how):
    monkeypatch.setattr(context, "RARE", 1)
    monkeypatch.setattr(steering, "ALPHAS", steering.ALPHAS[:1])
    monkeypatch.setattr(steering, "ODDS", steering.ODDS[3:4])
    assert attack(how, helper=False) == steering.Read(0, 0, 20)
    for log in tmp_path.glob("run/parties/*/party.log"):
        assert "the numbers of a question are not the members' total" in log.read_text()


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


def test_questions_of_em_are_read_without_the_rule(attack, monkeypatch):
    monkeypatch.setattr(context, "RARE", 1)
    assert attack(steering.singled_out_by_em).knowing_others >= 12


def test_the_rule_stops_questions_of_em_only_where_no_other_document_has_half_a_token(attack, monkeypatch):
    """The rule counts documents with half an expected token of a topic, and the server can choose odds that leave it.

    So the page says that only noise protects (`docs/consensus.md`).
    """
    monkeypatch.setattr(steering, "ODDS", (0.93, 0.95, 0.96))
    assert attack(steering.singled_out_by_em).knowing_others <= 1


def test_what_remains_a_server_that_leaves_half_a_token_to_others_reads_documents_in_em(attack, monkeypatch):
    monkeypatch.setattr(steering, "ODDS", (0.97,))
    assert attack(steering.singled_out_by_em).knowing_others >= 12
