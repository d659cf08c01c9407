"""`check` asked a policy about one release, not about all rounds together: "allowed", and the run died in its midst."""

import json

import pytest

from helpers.texts import STEMS, mixed
from tertulia.corpus import Corpus
from tertulia.errors import PolicyRefusal
from tertulia.privacy.ledger import Ledger
from tertulia.runs.driver import finish
from tertulia.runs.one_machine import begin, open_party
from tertulia.runs.results import AbsentPartyWarning
from tertulia.runs.settings import RunSettings, load

BUDGET = '[[budget]]\nunit = "token"\nadjacency = "null-replace"\nepsilon = 10.0\ndelta = 1e-6\n'
SUBSTITUTE = BUDGET.replace("null-replace", "substitute")
OPEN = 'allow_clear = true\ndeclared_public = ["number of documents", "number of units"]\n'
PCTD = 'name = "pctd"\ntopics = 2\nmode = "paper"\nsigma = 2.0\nevaluate = false\nrounds = '
SOUND = 'name = "consensus"\ntopics = 2\nmode = "sound"\nstart_sweeps = 1\nsweeps = 1\nrounds = 2\nepsilon = '


@pytest.fixture
def project(tmp_path):
    def make(method, policy=BUDGET):
        (tmp_path / "notes.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in mixed(1, 12)))
        (tmp_path / "policy.toml").write_text(policy)
        (tmp_path / "run.toml").write_text(
            f'directory = "run"\nheldout = 0.0\n[method]\n{method}\n[method.vocabulary]\nmode = "public"\n'
            f'words = {json.dumps(STEMS)}\n[parties.north]\npath = "notes.jsonl"\npolicy = "policy.toml"\n'
            'home = "home"\n'
        )
        return tmp_path / "run.toml"

    return make


def test_all_rounds_count_and_nothing_is_charged(tertulia, project, tmp_path):
    config = project(PCTD + "20")
    code, out, _ = tertulia("check", config, "--json")
    assert code == 3
    verdicts = {row["what"]: row["verdict"] for row in json.loads(out)["disclosed"]}
    assert "budget.token.null-replace" in verdicts["noisy counts of words in units"]
    with pytest.raises(PolicyRefusal, match="the whole run at party 'north' would bring epsilon to 1"):
        begin(load(config))
    assert not (tmp_path / "run").exists()
    assert not (tmp_path / "home" / "ledger.sqlite").exists() or not Ledger(tmp_path / "home/ledger.sqlite").releases()
    assert tertulia("check", project(PCTD + "2"))[0] == 0


def test_what_was_spent_before_counts_and_the_same_reports_are_free(tertulia, project):
    def outcome(epsilon, command):
        return tertulia(command, project(SOUND + epsilon, SUBSTITUTE), *(["--json"] if command == "check" else []))[0]

    assert outcome("6.0", "run") == 0
    (project(SOUND + "6.0", SUBSTITUTE).parent / "run").rename(project(SOUND + "6.0", SUBSTITUTE).parent / "old")
    assert outcome("6.0", "check") == 0  # the same reports once more
    assert outcome("5.0", "check") == 3  # 6 + 5 is more than 10
    assert outcome("3.0", "check") == 0


def test_between_owners_a_party_without_room_for_all_rounds_is_never_charged(tmp_path):
    """It agrees to no plan. The others go on by quorum; why, stays in the party's own log."""
    (tmp_path / "open.toml").write_text(OPEN)
    (tmp_path / "tight.toml").write_text(OPEN + BUDGET)
    policies = {"north": "tight.toml", "south": "open.toml", "west": "open.toml"}
    settings = RunSettings(
        directory=str(tmp_path / "run"), heldout=0.0, federation={"owners": "several", "on_failure": "skip"},
        method={"name": "pctd", "topics": 2, "mode": "paper", "sigma": 2.0, "rounds": 20, "evaluate": False,
                "vocabulary": {"mode": "public", "words": STEMS}},
        parties={name: {"policy": str(tmp_path / file), "home": str(tmp_path / name)}
                 for name, file in policies.items()},
    )  # fmt: skip
    corpora = {name: Corpus.from_texts(mixed(i, 12)) for i, name in enumerate(policies)}
    run, heard = begin(settings, corpora), []
    with pytest.warns(AbsentPartyWarning, match=r"2 of 3 parties; north refused \(plan\)"):
        finish(run, corpora, lambda _, facts: heard.append(str(facts.get("text", ""))))

    north, south = open_party(run, "north"), open_party(run, "south")
    assert (north.config.plan, north.ledger.releases()) == (None, [])
    assert south.config.plan is not None
    assert len([r for r in south.ledger.releases() if r.charges]) == 20
    assert "the whole run at party 'north' would bring epsilon to" in (north.directory / "party.log").read_text()
    assert list(dict.fromkeys(north.refusals())) == ["budget.token.null-replace", "plan"]
    about = [text for text in heard if "north" in text]
    assert about
    assert [text for text in about if "refused by rule 'plan'" not in text or "epsilon" in text] == []

    looser = settings.replace(directory=str(tmp_path / "next"), method={**settings.method.model_dump(), "rounds": 2})
    assert open_party(begin(looser, corpora), "north").config.plan is not None
