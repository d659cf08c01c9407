"""Row 55: a start model that the operator changed passes for the one that members have; and who has left still answers
under the plan that it approved."""

import dataclasses

import pytest

from helpers.serving import on_a_free_port, serving
from helpers.sites import Sites
from tertulia.errors import ConfigError
from tertulia.federation.codec import decode
from tertulia.federation.messages import BEFORE_ALL, DISCLOSURES, LEDGER_DIGEST, Inquiry, Question
from tertulia.federation.party.host import PartyConfig
from tertulia.federation.plan import Plan
from tertulia.models import Topics
from tertulia.network.party import received_models as starting
from tertulia.network.party.attendant import Attendant
from tertulia.network.party.received_models import keep_model


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    sites = Sites(tmp_path_factory.mktemp("sites"))
    on_a_free_port(sites)
    sites.agree().run()
    return sites


def test_a_start_that_the_operator_changed_is_not_approved(sites, tertulia):
    registry, party = sites.registry, sites.parties["north"]
    run = registry.newest()
    keep_model(party, run, registry.model("north", run))
    registry.go_on_from("last")
    assert sites.consider("north").start_fetched
    assert not sites.consider("south").start_fetched
    with serving(sites):
        code, out, err = tertulia("check", party.directory)
        assert code == 0, err
        assert "it is the one that this party fetched" in " ".join(out.split())
    place = registry.model_of(run)
    before = Topics.load(place)
    dataclasses.replace(before, alpha=before.alpha * 2).save(place)
    try:
        with pytest.raises(ConfigError, match=f"^{starting.CHANGED}$"):
            sites.consider("north")
        assert sites.consider("south").start is not None
        keep_model(party, run, registry.model("north", run))  # fetched again, and looked at
        assert sites.consider("north").start_fetched
    finally:
        before.save(place)


def test_a_party_that_has_left_answers_nothing(sites, tertulia):
    party, run = sites.parties["south"], sites.registry.newest()
    attendant, plan = Attendant(party), Plan.from_dict(PartyConfig.load(party.runs / run).plan).hash

    def answers():
        question = Question(run, (9, 0), BEFORE_ALL, 0, True, b"", plan)
        frames = [asked.to_bytes() for asked in (question, Inquiry(run, LEDGER_DIGEST), Inquiry(run, DISCLOSURES))]
        return [decode(attendant.answer(frame)) for frame in frames]

    assert [answer.kind for answer in answers()] == ["ok"] * 3
    with serving(sites):
        code, out, err = tertulia("leave", party.directory, "--yes")
        assert code == 0, err
        assert "'south' answers no run any more (1 were approved)" in out
    assert [(answer.kind, answer.text) for answer in answers()] == [("refused", "refused by rule 'plan'")] * 3
    assert (party.runs / run / "corpus").exists()  # until it is forgotten


def test_leaving_counts_though_the_server_does_not_answer(sites, tertulia):
    party, run = sites.parties["east"], sites.registry.newest()
    code, _, err = tertulia("leave", party.directory, "--yes")
    assert code == 1
    assert "no server answers" in err
    assert PartyConfig.load(party.runs / run).plan is None
