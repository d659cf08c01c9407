"""FTM's private modes: what the ledger says of them, and that the sound one sees documents only through reports."""

import dataclasses
import json

import numpy as np
import pytest

import tertulia as tt
from helpers.runs import prepared
from helpers.texts import PUBLIC, STEMS, mixed
from tertulia._disk import read_checked
from tertulia.errors import ConfigError, PolicyRefusal
from tertulia.federation.codec import decode
from tertulia.federation.party.context import StepContext
from tertulia.methods.common import local_lda as local
from tertulia.methods.ftm import method as ftm
from tertulia.methods.ftm.integration import compose
from tertulia.privacy.accounting import guarantee_of
from tertulia.privacy.mechanisms.token_reports import TokenReports
from tertulia.runs.directory import Run
from tertulia.runs.driver import finish
from tertulia.runs.one_machine import begin, open_party
from tertulia.runs.settings import load
from tertulia.view.tables import disclosure_rows, privacy_rows, privacy_totals

pytestmark = pytest.mark.filterwarnings("ignore:merging left")  # the papers' chains end so on a few sweeps of ten words
SMALL = {"topics": 3, "rounds": 2, "sweeps": 4}


PARTIES = {"north": mixed(1), "south": mixed(2)}


def method(mode: str, **settings) -> tt.FTM:
    return tt.FTM(**{**SMALL, "mode": mode, "epsilon": 4.0, "vocabulary": PUBLIC, **settings})


def real_epsilons(directory) -> dict[str, str]:
    return {row["what"]: row["real epsilon"] for row in privacy_rows(Run.open(directory), 1e-6)}


@pytest.mark.parametrize("channel", ["krr", "subset", "laplace"])
@pytest.mark.parametrize("model", ["lda", "sentence"])
def test_sound_costs_its_epsilon_once_however_many_rounds(tmp_path, channel, model):
    method("sound", channel=channel, model=model).fit(PARTIES, directory=tmp_path / "run")
    found = real_epsilons(tmp_path / "run")
    assert found["reports of tokens"] == "4"
    assert found["topic-word distributions"] == "4"  # as the reports that it is computed from
    assert found["number of documents"] == "0"
    pushed = [row for row in disclosure_rows(Run.open(tmp_path / "run")) if row["what"] == "topic-word distributions"]
    assert {row["mechanism"] for row in pushed} == {"derived"}
    assert "held-out log likelihood" not in found


@pytest.mark.parametrize("mode", ["paper", "sound"])
def test_epsilon_s_meaning_is_planned_as_it_is_charged(mode):
    """Of Laplace noise: by substitution in `sound`; the paper's own counts half of that."""
    planned = {row.mechanism.what: row.mechanism for row in ftm.plan(method(mode, channel="laplace"))}
    reports = planned["reports of tokens"]
    assert reports.channel.epsilon == {"paper": 4.0, "sound": 2.0}[mode]
    assert guarantee_of(TokenReports("reports", channel=reports.channel)).epsilon == pytest.approx(
        {"paper": 8, "sound": 4}[mode]
    )


@pytest.mark.parametrize(("chosen", "literal"), [(None, True), (False, False)])
def test_paper_mode_composes_as_the_paper_prints_it(chosen, literal, monkeypatch):
    asked = []
    monkeypatch.setattr(ftm, "compose", lambda *args, **how: asked.append(how["literal"]) or compose(*args, **how))
    method("paper", paper={"literal_compose": chosen}, rounds=1, sweeps=1, evaluate=False).fit(PARTIES)
    assert asked == [literal] * 2


@pytest.mark.parametrize("model", ["lda", "sentence"])
def test_paper_mode_prints_the_claim_beside_infinity(tmp_path, model):
    method("paper", epsilon=8.0, model=model, evaluate=False).fit(PARTIES, directory=tmp_path / "run")
    rows = {row["what"]: row for row in privacy_rows(Run.open(tmp_path / "run"), 1e-6)}
    assert rows["topic-word distributions"]["claimed epsilon"] == "8 (FTM sec. 3.1.1, delta 0)"
    assert rows["topic-word distributions"]["real epsilon"] == "infinite (non-private)"


SOUND = {"mode": "sound", "epsilon": 4.0, "vocabulary": PUBLIC}
ALL_KINDS = [
    *(({**SOUND, "model": model, "channel": channel}, False)
      for model in ("lda", "sentence") for channel in ("krr", "subset", "laplace")),
    *(({**SOUND, "mode": "paper", "model": model, "evaluate": False}, True) for model in ("lda", "sentence")),
    ({**SOUND, "name": "consensus"}, False),
    ({**SOUND, "sampler": "warp"}, False),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "leaks"), ALL_KINDS)
def test_a_changed_word_shows_only_through_its_report(tmp_path, monkeypatch, settings, leaks):
    """Change one word, and give both runs the reports of the first: in sound mode no outgoing byte may differ."""
    before = PARTIES["north"]
    old = before[0].split()[0]
    after = [before[0].replace(old, "meadow" if old == "copper" else "copper", 1), *before[1:]]
    real, prepare_reply = local.reports_of_documents, StepContext.prepare_reply
    first_run: list[tuple] = []
    sent: list[list[bytes]] = []

    def reports_of_the_first_run(words, documents, channel, keys, *tokens):
        first_run[1:] = []
        first_run.append((words, documents, channel, keys))
        return real(*first_run[0], *tokens)

    def recorded(context, reply):
        sent[-1] += [np.asarray(getattr(reply, f.name)).tobytes() for f in dataclasses.fields(reply)]
        return prepare_reply(context, reply)

    monkeypatch.setattr(local, "reports_of_documents", reports_of_the_first_run)
    monkeypatch.setattr(StepContext, "prepare_reply", recorded)
    for name, own in (("before", before), ("after", after)):
        sent.append([])
        finish(prepared(tmp_path / name, {"north": own}, {"name": "ftm", **SMALL, **settings}, heldout=0.0))
    assert len(sent[0]) == len(sent[1]) > SMALL["rounds"]
    assert (sent[0] != sent[1]) == leaks


def test_a_token_budget_allows_what_fits_and_refuses_what_does_not(tmp_path):
    policy = tmp_path / "policy.toml"
    policy.write_text(
        'allow_clear = false\n[[budget]]\nunit = "token"\nadjacency = "substitute"\nepsilon = 4.0\ndelta = 0\n'
    )
    own = {party: {"policy": str(policy), "home": str(tmp_path / party)} for party in PARTIES}
    model = method("sound").fit(PARTIES, directory=tmp_path / "fits", party_settings=own)
    assert set(model.local) == {"north", "south"}
    with pytest.raises(PolicyRefusal, match=r"budget\.token\.substitute"):
        method("sound", epsilon=4.5).fit(PARTIES, directory=tmp_path / "too-much", party_settings=own)
    model = method("sound").fit(PARTIES, directory=tmp_path / "again", party_settings=own)
    assert set(model.local) == {"north", "south"}  # the same reports again: nothing new to pay


def test_a_party_may_be_stricter_but_not_laxer(tmp_path):
    own = {"north": {"epsilon": 2.0}, "south": {"epsilon": 9.0, "model": "sentence", "topics": 2}}
    method("sound").fit(PARTIES, directory=tmp_path / "run", party_settings=own)
    spent = {row["party"]: row["real epsilon"] for row in privacy_rows(Run.open(tmp_path / "run"), 1e-6)
             if row["what"] == "reports of tokens"}  # fmt: skip
    assert spent == {"north": "2", "south": "4"}


def test_a_party_may_have_its_own_sampling_settings(tmp_path):
    own = {"north": {"sweeps": 1, "alpha": 0.3, "beta": 1000.0, "tau": 0.7}}
    runs = {}
    for name, choices in (("asked", {}), ("own", own)):
        method("sound", channel="laplace").fit(PARTIES, directory=tmp_path / name, party_settings=choices)
        commit, _ = Run.open(tmp_path / name).journal().last()
        runs[name] = commit.state.models
    uneven = {name: np.abs(len(STEMS) * models["north"].topic_word - 1).max() for name, models in runs.items()}
    assert uneven["own"] < 0.1 < 0.5 < uneven["asked"]  # so strong a prior leaves little of what the reports say
    taus = {party: params["tau"] for party, params in _reported(tmp_path / "own").items()}
    assert taus == {"north": 0.7, "south": 0.2}


def _reported(directory) -> dict[str, dict]:
    """How each party's reports were made, as its ledger names them: reports/party/words/mechanism/parameters."""
    run, found = Run.open(directory), {}
    for party in run.parties:
        open_party(run, party).ledger.export(directory / "ledger.jsonl")
        ids = [json.loads(line)["id"] for line in (directory / "ledger.jsonl").read_text().splitlines()]
        decode_first = json.JSONDecoder().raw_decode
        (found[party],) = [decode_first(name.split("/", 4)[4])[0] for name in ids if name.startswith("reports/")]
    return found


def test_a_stricter_similarity_keeps_a_party_s_own_topics(tmp_path):
    """With xi = 1 of its own a party takes over nothing, so that it trains as if nobody else were there."""
    settings = {**SMALL, "rounds": 3, "min_similarity": 0.01, "evaluate": False, "vocabulary": PUBLIC}
    kept = {}
    for name, choices in (("asked", {}), ("own", {"north": {"min_similarity": 1.0, "top_words": 5}})):
        tt.FTM(**settings).fit(PARTIES, directory=tmp_path / name, party_settings=choices, seed=3)
        run = Run.open(tmp_path / name)
        (path,) = (run.party_directory("north") / "kept").glob("composed*")
        kept[name] = decode(read_checked(path))["topic_word"]
        if choices:
            commit, _ = run.journal().last()
            assert np.array_equal(kept[name], commit.state.models["north"].topic_word)
    assert not np.array_equal(kept["asked"], kept["own"])


def test_reports_are_the_same_for_ever(tmp_path):
    own = {name: {"home": str(tmp_path / name)} for name in PARTIES}
    for run in ("one", "two"):
        method("sound").fit(PARTIES, directory=tmp_path / run, party_settings=own, seed=len(run))
    facts = [json.loads(line) for line in _exported(tmp_path)]
    assert sum(fact["id"].startswith("reports/north") for fact in facts) == 1


def _exported(tmp_path) -> list[str]:
    from tertulia.privacy.ledger import Ledger

    Ledger(tmp_path / "north" / "ledger.sqlite").export(tmp_path / "ledger.jsonl")
    return (tmp_path / "ledger.jsonl").read_text().splitlines()


def test_consensus_counts_reports_and_pays_once(tmp_path):
    sound = tt.Consensus(topics=3, rounds=4, start_sweeps=4, sweeps=2, mode="sound", epsilon=4.0, vocabulary=PUBLIC)
    model = sound.fit(PARTIES, directory=tmp_path / "run")
    found = real_epsilons(tmp_path / "run")
    assert found["reports of tokens"] == "4"
    assert found["topic-word counts"] == found["expected counts by topic"] == found["profiles of words"] == "4"
    assert found["document-topic histograms"] == "4"
    assert model.n_topics == 3
    with pytest.raises(tt.TertuliaError, match="mode"):
        tt.Consensus(mode="paper", epsilon=4.0)


def test_a_dry_run_names_reports_and_what_is_derived_from_them(tmp_path):
    from tertulia.runs.settings import RunSettings
    from tertulia.view.dry_run import dry_run

    (tmp_path / "north.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in mixed(1)))
    settings = RunSettings(
        method={"name": "ftm", "mode": "sound", "epsilon": 8.0, "vocabulary": PUBLIC},
        parties={"north": {"path": str(tmp_path / "north.jsonl")}},
    )
    report = dry_run(settings)
    rows = {row["what"]: row for row in report["disclosed"]}
    assert [row["real epsilon"] for row in report["totals"]] == ["8", "136", "136"]  # of 17 words each
    assert rows["reports of tokens"]["mechanism"] == "token-reports"
    assert rows["topic-word distributions"]["mechanism"] == "derived"
    assert rows["topic-word distributions"]["real epsilon"] == rows["reports of tokens"]["real epsilon"] == "8"


def test_totals_tell_words_from_documents_and_this_run_from_all(tmp_path):
    own = {"south": {"home": str(tmp_path / "home")}}
    method("sound").fit(PARTIES, directory=tmp_path / "run", party_settings=own)
    rows = privacy_totals(Run.open(tmp_path / "run"), 0.0)
    assert [row["real epsilon"] for row in rows if row["party"] == "north"] == ["4", "68", "68"]  # 17 words each
    assert rows[1]["of"] == "an average document (17 words)"
    assert {(row["party"], row["holds"]) for row in rows} == {
        ("north", "in this run"),
        ("south", "in all runs with this home"),
    }


BUDGET = 'allow_clear = false\n[[budget]]\nunit = "token"\nadjacency = "substitute"\nepsilon = 4.5\ndelta = 0\n'


def test_a_budget_without_a_home_is_an_error(tmp_path):
    """Every run would have a new ledger and a new key: three of them would spend the budget three times."""
    from tertulia.runs.settings import RunSettings
    from tertulia.view.dry_run import dry_run

    (tmp_path / "policy.toml").write_text(BUDGET)
    (tmp_path / "north.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in mixed(1)))
    policy = {"policy": str(tmp_path / "policy.toml")}
    says = r"party 'north' has a budget but no `home`.*home = \"\.\.\.\" under \[parties\.north\]"
    with pytest.raises(ConfigError, match=says):
        method("sound").fit(PARTIES, directory=tmp_path / "run", party_settings={"north": policy})
    assert not (tmp_path / "run").exists()
    settings = RunSettings(
        method={"name": "ftm", "mode": "sound", "epsilon": 4.0, "vocabulary": PUBLIC},
        parties={"north": {"path": str(tmp_path / "north.jsonl"), **policy}},
    )
    with pytest.raises(ConfigError, match=says):
        dry_run(settings)


def test_a_budget_that_is_put_into_the_party_s_directory_needs_a_home_too(tmp_path):
    method("sound").fit(PARTIES, directory=tmp_path / "run")
    (Run.open(tmp_path / "run").party_directory("south") / "policy.toml").write_text(BUDGET)
    with pytest.raises(ConfigError, match="party 'south' has a budget but no `home`"):
        finish(Run.open(tmp_path / "run"))


def test_a_home_is_the_same_wherever_a_run_is_resumed(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "north.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in mixed(1)))
    (tmp_path / "run.toml").write_text(
        'directory = "run"\n[method]\ntopics = 2\nrounds = 1\nsweeps = 2\nvocabulary.max_share = 1.0\n'
        '[parties.north]\npath = "north.jsonl"\nhome = "homes/north"\n'
    )
    monkeypatch.chdir(tmp_path / "elsewhere")
    finish(begin(load("../run.toml")))
    monkeypatch.chdir(tmp_path)
    finish(Run.open(tmp_path / "run"))
    assert [path.parent for path in tmp_path.rglob("ledger.sqlite")] == [tmp_path / "homes" / "north"]
