"""FedLDA from end to end: both engines, interruption, users who drop or come late, odd documents, the ledger."""

import json
from pathlib import Path

import numpy as np
import pytest

import tertulia as tt
from helpers.marks import slow
from helpers.runs import Interrupted, interrupt_at, prepared
from helpers.texts import PUBLIC, STEMS
from tertulia.errors import ConfigError
from tertulia.federation.party.answer_log import AnswerLog
from tertulia.federation.server.journal import Journal
from tertulia.runs.directory import Run
from tertulia.runs.driver import finish
from tertulia.runs.one_machine import hosts_of
from tertulia.view.dry_run import dry_run
from tertulia.view.tables import privacy_rows
from tertulia.view.totals import totals_of_host

TOPICS = np.array([[0.3, 0.3, 0.2, 0.1, 0.02, 0.02, 0.02, 0.02, 0.01, 0.01]])
TOPICS = np.concatenate([TOPICS, TOPICS[:, ::-1]])


def texts(seed, n, length=15):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(STEMS, length, p=rng.dirichlet([0.2, 0.2]) @ TOPICS)) for _ in range(n)]


ODD = ["", "unheard words only", "harbour " * 400]  # empty, outside the vocabulary, more than M words
PARTIES = {"north": [*texts(1, 120), *ODD], "south": texts(2, 80)}
PRIVATE = {"mode": "paper", "epsilon": 5.0}
SOUND = {"mode": "sound", "epsilon": 4.0}
LATE = {"arrival_rounds": 3}
MODES = [{}, *({**PRIVATE, "mechanism": m} for m in ("rrp", "krr", "tkrr", "hm")), SOUND]


def method(**settings):
    return tt.FedLDA(**{"topics": 2, "rounds": 4, "vocabulary": PUBLIC, "alpha": 0.5, "max_words": 30} | settings)


def real_epsilons(directory):
    return {row["what"]: row for row in privacy_rows(Run.open(directory), 1e-6) if row["party"] == "north"}


def found_topics(model):
    """The best cosine of each true topic with one that was found."""
    rows = model.topic_word / np.linalg.norm(model.topic_word, axis=1, keepdims=True)
    return (TOPICS / np.linalg.norm(TOPICS, axis=1, keepdims=True) @ rows.T).max(axis=1)


@pytest.mark.parametrize("settings", [{}, {"sampler": "mh"}, {**PRIVATE, "epsilon": 9.0}, {**SOUND, "sweeps": 3}])
def test_topics_are_recovered(settings):
    model = method(rounds=25, beta=0.1, **settings).fit({"north": texts(1, 400), "south": texts(2, 300)})
    assert found_topics(model).min() > 0.95


@pytest.mark.parametrize("settings", [{**PRIVATE, "mechanism": "rrp"}, slow(SOUND)])
def test_engines_agree(settings, tmp_path, monkeypatch):
    monkeypatch.setattr("secrets.token_hex", lambda n: "run")  # noise is of one run
    config = {"name": "fedlda", "topics": 2, "rounds": 4, "vocabulary": PUBLIC, "max_words": 30, **settings}
    models = [finish(prepared(tmp_path / engine, PARTIES, config, engine=engine)) for engine in ("local", "processes")]
    assert models[0].topic_word.tobytes() == models[1].topic_word.tobytes()


@pytest.mark.parametrize("settings", [{**PRIVATE, "mechanism": "rrp"}, SOUND], ids=["rrp", "sound"])
def test_an_interrupted_run_ends_like_any_other(settings, tmp_path, monkeypatch):
    monkeypatch.setattr("secrets.token_hex", lambda n: "run")
    monkeypatch.setattr("secrets.token_bytes", lambda n: b"k" * n)
    whole = method(**settings).fit(PARTIES, directory=tmp_path / "whole")

    with pytest.raises(Interrupted):
        method(**settings).fit(PARTIES, directory=tmp_path / "cut", observe=interrupt_at(3))
    resumed = finish(Run.open(tmp_path / "cut"))
    assert resumed.topic_word.tobytes() == whole.topic_word.tobytes()
    assert len(privacy_rows(Run.open(tmp_path / "cut"), 1e-6)) == len(privacy_rows(Run.open(tmp_path / "whole"), 1e-6))


@pytest.mark.slow  # quick, of the counts alone: test_words_drawn_again_leave_counts_that_belong_to_no_token
def test_noise_does_not_drive_counts_apart_in_240_rounds(monkeypatch):
    """The same noise, and no tuple is left out, but words that are drawn again in every round: errors add up."""
    monkeypatch.setattr("secrets.token_hex", lambda n: "run")
    monkeypatch.setattr("secrets.token_bytes", lambda n: b"k" * n)
    words, rng = [f"word{a}{b}" for a in "abcdefgh" for b in "abcdefghij"], np.random.default_rng(0)
    topics = rng.dirichlet(np.full(80, 0.05), size=4)
    users = [" ".join(rng.choice(words, 20, p=rng.dirichlet(np.full(4, 0.2)) @ topics)) for _ in range(150)]
    early, late = {}, {}
    for bookkeeping in ("converging", "paper"):
        model = method(
            **PRIVATE, topics=4, rounds=240, beta=0.1, max_words=20, sample_ratio=1.0,
            paper={"bookkeeping": bookkeeping}, vocabulary={"mode": "public", "words": words},
        ).fit({"north": users}, heldout=0.25)  # fmt: skip
        perplexity = [facts["perplexity"] for facts in model.history[1:]]
        early[bookkeeping], late[bookkeeping] = np.mean(perplexity[20:60]), np.mean(perplexity[200:])
    assert late["converging"] < 1.01 * early["converging"]
    assert late["paper"] > 1.05 * early["paper"]
    assert late["converging"] < 0.8 * late["paper"]


@pytest.mark.parametrize("mechanism", ["rrp", "krr", "tkrr"])
def test_the_servers_counts_are_those_of_the_words_that_users_keep(mechanism, tmp_path):
    away = {"users_per_round": 0.7, "user_dropout": 0.2, "paper": {"arrival_rounds": 2}}
    method(**PRIVATE, mechanism=mechanism, **away).fit(PARTIES, directory=tmp_path / "run")
    run = Run.open(tmp_path / "run")
    commit, _ = Journal(tmp_path / "run" / "server").last()
    counts = np.zeros((2, len(STEMS)))
    for party in PARTIES:
        users = AnswerLog(run.party_directory(party) / "answers").state
        known = users.reported >= 0
        np.add.at(counts, (users.reported[known], users.word[known]), 1)
        assert known.any()
        assert not known.all()
    assert np.array_equal(commit.state.counts, counts)


@pytest.mark.parametrize(
    "settings", [{"users_per_round": 0.4, "user_dropout": 0.3}, {"paper": LATE}, {"paper": LATE, **SOUND}]
)
def test_users_may_be_sampled_drop_and_come_late(settings):
    model = method(rounds=6, **settings).fit(PARTIES, heldout=0.0)
    assert np.allclose(model.topic_word.sum(axis=1), 1)
    if settings.get("mode") == "sound":
        return
    users = [facts["users"] for facts in model.history[1:]]
    assert users[0] < 203
    assert (users[-1] == 203) == ("paper" in settings)


def test_a_shard_that_is_away_takes_up_where_it_was():
    model = method(rounds=20, beta=0.1).fit(
        {"north": texts(1, 300), "south": texts(2, 300)},
        federation={"dropouts": {"script": {3: ["north"], 4: ["north"], 7: ["south"]}}},
        party_settings={"south": {"joins": 2}},
    )
    assert found_topics(model).min() > 0.95


def test_the_ledger_gives_the_real_epsilon_of_every_mechanism(tmp_path):
    said = {}
    for settings in MODES:
        name = settings.get("mechanism", settings.get("mode", "clear"))
        method(**settings, evaluate=False).fit(PARTIES, directory=tmp_path / name)
        said[name] = real_epsilons(tmp_path / name)
    tuples = {name: rows["users' tuples"] for name, rows in said.items() if name != "sound"}
    assert {row["unit"] for row in tuples.values()} == {"user"}
    assert all(tuples[name]["real epsilon"].startswith("infinite") for name in ("clear", "rrp", "krr", "tkrr"))
    assert tuples["rrp"]["claimed epsilon"] == "5 (FedLDA theorem 1, per tuple, delta 0.2)"
    assert "theorem 1 fails for" in tuples["rrp"]["remarks"]
    assert "dummies can be distinguished from tuples" in tuples["rrp"]["remarks"]
    assert "the word of one token alone, drawn once: epsilon 5" in tuples["krr"]["remarks"]
    assert "the topics of tuples are not perturbed" in tuples["krr"]["remarks"]
    assert tuples["hm"]["real epsilon"] == "20"  # epsilon 5 in each of four rounds
    assert all(row["releases"] == 4 for row in tuples.values())
    sums = [said[name]["topic-word counts of users' tuples"] for name in ("rrp", "krr", "tkrr", "hm")]
    assert all(row["mechanism"] == "derived" and row["releases"] == 4 for row in sums)
    assert sums[-1]["real epsilon"] == "20"  # no more than what it is computed from
    reports = said["sound"]["reports of tokens"]
    assert (reports["unit"], reports["releases"]) == ("user", 1)
    assert 30 < float(reports["real epsilon"]) <= 30 * 4.0  # thirty tokens at most, in any number of rounds
    assert said["sound"]["topic-word counts of reports"]["real epsilon"] == reports["real epsilon"]


def test_a_budget_for_users_is_kept(tmp_path):
    policy = tmp_path / "policy.toml"
    budget = '[[budget]]\nunit = "user"\nadjacency = "substitute"\nepsilon = 12.0\ndelta = 0\n'
    policy.write_text("allow_clear = false\n" + budget)

    def fit(name, **settings):
        own = {party: {"policy": str(policy), "home": str(tmp_path / name / party)} for party in PARTIES}
        return method(**settings).fit(PARTIES, party_settings=own)

    with pytest.raises(tt.TertuliaError, match=r"budget\.user\.substitute"):  # the third round is too much
        fit("three", **PRIVATE, mechanism="hm", evaluate=False)
    fit("two", **PRIVATE, mechanism="hm", evaluate=False, rounds=2)
    fit("reports", mode="sound", epsilon=1.0, max_words=12)


def test_a_dry_run_names_what_leaves(tmp_path):
    from tertulia.runs.settings import RunSettings

    (tmp_path / "north.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in texts(1, 20)))
    said = {}
    for settings in MODES:
        run = RunSettings(
            method={"name": "fedlda", "vocabulary": PUBLIC, **settings},
            parties={"north": {"path": str(tmp_path / "north.jsonl")}},
        )
        said[settings.get("mechanism", settings.get("mode"))] = {
            row["what"]: row["mechanism"] for row in dry_run(run)["disclosed"]
        }
    assert said[None]["users' tuples"] == "clear"
    assert said["rrp"]["users' tuples"] == "user-tuples"
    assert said["rrp"]["topic-word counts of users' tuples"] == "derived"
    assert said["sound"]["reports of tokens"] == "user-reports"
    assert said["sound"]["topic-word counts of reports"] == "derived"


def test_a_dry_run_and_the_ledger_say_the_same_total_for_a_user(tmp_path):
    from tertulia.runs.settings import RunSettings

    own = {"mode": "sound", "user_epsilon": 20.0, "max_words": 30}
    (tmp_path / "north.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in texts(1, 20)))
    run = RunSettings(
        method={"name": "fedlda", "vocabulary": PUBLIC, **own},
        parties={"north": {"path": str(tmp_path / "north.jsonl")}},
    )
    planned = next(row for row in dry_run(run)["totals"] if row["of"] == "a user")
    assert 18.0 < float(planned["real epsilon"]) <= 20.0
    method(**own).fit({"north": texts(1, 20)}, heldout=0, directory=tmp_path / "run")
    (spent,) = [row for row in totals_of_host(*hosts_of(Run.open(tmp_path / "run")), 1e-6) if row["of"] == "a user"]
    assert spent["real epsilon"] == planned["real epsilon"]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"mode": "sound"}, "these need one"),
        ({"epsilon": 5.0}, "goes with mode"),
        ({**SOUND, "vocabulary": {}}, "public word list"),
        ({**SOUND, "user_dropout": 0.1}, "asks each user once"),
        ({"mechanism": "rr"}, "mechanism = 'rr'"),
        ({"sample_ratio": 1.5}, "sample_ratio = 1.5"),
        ({"gamma": 2.0}, "write 'paper.gamma'"),
    ],
)
def test_wrong_settings_name_the_key(settings, says):
    with pytest.raises(ConfigError, match=says):
        method(**settings)


def test_more_topics_than_words_are_refused():
    with pytest.raises(ConfigError, match="topics = 11: at most"):
        method(topics=11).fit(PARTIES)


def test_the_example_runs_from_its_file(tmp_path):
    from tertulia.runs.one_machine import begin
    from tertulia.runs.settings import load

    example = Path(__file__).parents[2] / "examples" / "fedlda.toml"
    finish(begin(load(example).replace(directory=str(tmp_path / "run"))))
    (reports,) = [row for row in privacy_rows(Run.open(tmp_path / "run"), 1e-6) if row["mechanism"] == "user-reports"]
    assert 100 < float(reports["real epsilon"]) <= 120
