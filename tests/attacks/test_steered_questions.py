"""A server that follows the masks but makes up its questions, to read single documents out of totals.

Alone it cannot: parties refuse questions that are no totals. The other tests are of a server that one member helps, by
giving it the key of tags. Then the rule of five documents is what is left.
"""

import pytest

from helpers import steering
from tertulia.errors import QuorumError
from tertulia.federation.party import context
from tertulia.methods.consensus.start import EXPECTED
from tertulia.runs.one_machine import run_on_one_machine
from tertulia.runs.settings import RunSettings


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
    refused = list(tmp_path.glob("run/parties/*/refusals.log"))
    assert len(refused) == 4
    assert all('"text": "secure"' in log.read_text() for log in refused)


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


def test_a_wrong_tag_of_one_member_ends_the_run(tmp_path, monkeypatch):
    """Such a member could as well mask wrongly; nobody learns anything by it."""
    sum_tag = context.StepContext.sum_tag

    def wrong(party, name, *released):
        tag = sum_tag(party, name, *released)
        if party.id == "p1" and name == EXPECTED:
            tag.flags.writeable = True
            tag += 1
        return tag

    monkeypatch.setattr(context.StepContext, "sum_tag", wrong)
    given = {"name": "consensus", "topics": 2, "vocabulary": {"mode": "common"}, "evaluate": False}
    settings = RunSettings(directory=str(tmp_path / "run"), federation={"secure": True}, method=given)
    with pytest.raises(QuorumError, match=r"no party answered.*or a member has sent a wrong tag"):
        run_on_one_machine(settings, steering.corpora_of_notes())
