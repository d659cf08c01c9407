"""Runs replayed on neighbours: no mechanism is fed more than it declares, and nothing else depends on the documents."""

import dataclasses
import importlib
import inspect
import json
import pkgutil
import tempfile
from typing import get_args

import polars as pl
import pytest

import tertulia as tt
from helpers.modes import CASES, CONSENSUS, DOCUMENTS, FEDLDA, FOUR, FTM, NEURAL, PAPER, PARTIES, PCTD, SOUND
from helpers.replays import corpora_of, replayed, said
from helpers.texts import PUBLIC, halves
from tertulia.errors import ConfigError
from tertulia.methods.prevalence import method as prevalence
from tertulia.methods.registry import SETTINGS
from tertulia.models import Topics
from tertulia.privacy import mechanisms
from tertulia.privacy.mechanisms import DiscreteLaplace
from tertulia.privacy.mechanisms.noisy_tables import NoisyTable
from tertulia.runs import replay as runs_replay
from tertulia.runs.budgets import announced
from tertulia.runs.driver import finish
from tertulia.runs.replay import NO_DOCUMENTS, NO_PLAN, NOTHING_TO_AUDIT, replay
from tertulia.runs.settings import RunSettings

pytestmark = pytest.mark.filterwarnings("ignore:merging")
FIVE = {f"party-{i}": halves(i, 30) for i in range(5)}
PRIVATE = {"mode": "private", "epsilon": 60.0}
TOPICS = CASES["private-topics"]
SECURE = {"federation": {"secure": True}}
QUARTERS = {"by": "quarter", "since": "2025-01", "until": "2025-12"}
SCORES = "score_epsilon = 4.0\n"
# In mode `paper`, FTM drops words off the list, and fewer reports leave. Its model leaves in clear, too.
DROPS_WORDS = {"ftm-paper-lda", "ftm-paper-sentence"}
PROMISING = {name for name, method in CASES.items() if method.get("mode") in ("sound", "doc")} | {
    "private-topics", "embedding-topics-doc", "fedlda-hm", "pctd-paper", "pctd-private-words",
}  # fmt: skip
MORE = {  # method, settings, corpora
    "topics-of-users": ({**TOPICS, "unit": "user"}, {}, {"documents_per_user": 3}),
    "topics-secure": (TOPICS, SECURE, {}),
    "topics-of-users-secure": ({**TOPICS, "unit": "user"}, SECURE, {"documents_per_user": 3}),
    "topics-private-words": ({**TOPICS, "vocabulary": PRIVATE}, {}, {}),
    "topics-private-words-secure": ({**TOPICS, "vocabulary": PRIVATE}, SECURE, {}),
    "clusters-of-users-secure": ({**CASES["embedding-topics-doc"], "unit": "user"}, SECURE, {"documents_per_user": 3}),
    "gfedntm-doc-secure": ({**NEURAL, **DOCUMENTS}, SECURE, {}),
    "consensus-sound-secure": (CASES["consensus-sound"], SECURE, {}),
    "pctd-sound-secure": ({**PCTD, **SOUND}, SECURE, {}),
    "pctd-sound-private-words": ({**PCTD, **SOUND, "vocabulary": PRIVATE}, {}, {}),
    "pctd-sound-sentences": ({**PCTD, **SOUND, "unit": "sentence"}, {}, {}),
    "pctd-paper-private-words": ({**PCTD, "mode": "paper", "vocabulary": PRIVATE}, {}, {}),
    "fedlda-sound-secure": ({**FEDLDA, **SOUND}, SECURE, {}),
    "fedlda-hm-mh": ({**FEDLDA, **PAPER, "mechanism": "hm", "sampler": "mh"}, {}, {}),
    "fedlda-several-documents": (
        {**FEDLDA, "mode": "sound", "user_epsilon": 40.0, "user_documents": 3, "vocabulary": PUBLIC}, {},
        {"documents_per_user": 3},
    ),
    "ftm-sound-validation": ({**FTM, **SOUND}, {"validation": 0.2}, {}),
    "ftm-sound-private-words": ({**FTM, **SOUND, "vocabulary": PRIVATE}, {}, {}),
    "ftm-sound-several-owners": ({**FTM, **SOUND}, {"federation": {"owners": "several"}}, {}),
    "ftm-sound-own-epsilon": ({**FTM, **SOUND}, {"parties": {"north": {"epsilon": 2.0}}}, {}),
    "consensus-sound-laplace": ({**CONSENSUS, **SOUND, "channel": "laplace"}, {}, {}),
    "consensus-sound-subset": ({**CONSENSUS, **SOUND, "channel": "subset"}, {}, {}),
    "fedlda-sound-krr": ({**FEDLDA, **SOUND, "channel": "krr"}, {}, {}),
    "consensus-sound-validation": ({**CONSENSUS, **SOUND}, {"validation": 0.2}, {}),
}  # fmt: skip
LIMITS = "max_tokens_per_document = 8\n"
LIMITS_OF_USERS = "max_documents_per_user = 2\n"
ABSENT = {"federation": {"dropouts": {"rate": 0.4}}}
RARE = {  # method, settings, policy of the first party
    "ftm-limits": ({**FTM, **SOUND}, {}, LIMITS),
    "ftm-absent-parties": ({**FTM, **SOUND, "rounds": 4}, ABSENT, ""),
    "ftm-own-topics": ({**FTM, **SOUND}, {"parties": {"north": {"topics": 3, "min_similarity": 0.4}}}, ""),
    "ftm-warp": ({**FTM, **SOUND, "sampler": "warp"}, {}, ""),
    "consensus-absent-parties": ({**CONSENSUS, **SOUND, "rounds": 4}, ABSENT, ""),
    "fedlda-arrivals": ({**FEDLDA, **SOUND, "rounds": 3, "paper": {"arrival_rounds": 2}}, {}, ""),
    "fedlda-short": ({**FEDLDA, **SOUND, "max_words": 6}, {}, ""),
    "fedlda-hm-arrivals": (
        {**FEDLDA, **PAPER, "mechanism": "hm", "rounds": 3, "paper": {"arrival_rounds": 2}, "users_per_round": 0.5,
         "user_dropout": 0.2}, {}, "",
    ),
    "fedlda-hm-short": ({**FEDLDA, **PAPER, "mechanism": "hm", "max_words": 6}, {}, ""),
    "pctd-paper-paragraphs": ({**PCTD, "mode": "paper", "unit": "paragraph", "vocabulary": PUBLIC}, {}, ""),
    "pctd-sound-limits-of-users": ({**PCTD, **SOUND}, {}, LIMITS_OF_USERS),
    "gfedntm-doc-float64": ({**NEURAL, **DOCUMENTS, "precision": "float64", "optimiser": "sgd"}, {}, ""),
    "topics-limits": (TOPICS, {}, LIMITS),
    "topics-limits-of-users": ({**TOPICS, "unit": "user"}, {}, LIMITS_OF_USERS),
}  # fmt: skip
WITHOUT_IDS = (
    "ftm-sound-lda", "consensus-sound", "fedlda-sound", "fedlda-hm", "pctd-paper", "pctd-sound", "gfedntm-doc",
    "private-topics",
)  # fmt: skip


REPLAYED = {
    **{name: (CASES[name], {}) for name in PROMISING},
    **{name: (method, settings) for name, (method, settings, _) in MORE.items()},
}
ELSEWHERE = {NoisyTable, DiscreteLaplace}  # tables of prevalence, scores: tests of their own below


def test_no_mode_channel_or_mechanism_is_left_out():
    names = [f"{mechanisms.__name__}.{found.name}" for found in pkgutil.iter_modules(mechanisms.__path__)]
    modules = [mechanisms, *map(importlib.import_module, names)]
    noisy = {one for module in modules for _, one in inspect.getmembers(module, is_noisy_mechanism)}
    seen, chosen = set(ELSEWHERE), set()
    for method, settings in REPLAYED.values():
        run = RunSettings(method=method, **settings)
        seen |= {type(one.mechanism) for one in announced(run, "north", None)}
        chosen |= {(type(run.method), field, getattr(run.method, field, None)) for field in ("mode", "channel")}
    assert noisy - seen == set()
    assert [one for one in promising_choices() if one not in chosen] == []


def is_noisy_mechanism(one):
    """Tell whether a name of a module is a mechanism with noise."""
    plain = (mechanisms.Clear, mechanisms.Derived, mechanisms.Public)
    return (
        inspect.isclass(one) and issubclass(one, mechanisms.Mechanism) and not inspect.isabstract(one)
        and not issubclass(one, plain)
    )  # fmt: skip


def promising_choices():
    """List the modes that promise something, and all channels, of all methods."""
    for settings in SETTINGS:
        for field, promising in (("mode", {"sound", "doc"}), ("channel", None)):
            if field in settings.model_fields:
                values = get_args(settings.model_fields[field].annotation)
                yield from ((settings, field, value) for value in values if promising is None or value in promising)


@pytest.mark.parametrize("name", sorted(PROMISING))
def test_every_mode_keeps_its_promises(name):
    report = replayed(corpora_of(FOUR if "robust" in CASES[name] else PARTIES), CASES[name])
    assert said(report) == []
    assert report.closest > 0
    assert report.compared >= 2 * len(report.neighbours)


@pytest.mark.parametrize("name", sorted(MORE))
def test_so_does_every_combination(name):
    method, settings, how = MORE[name]
    report = replayed(corpora_of(FIVE if settings == SECURE else PARTIES, **how), method, **settings)
    assert said(report) == []
    assert report.closest > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(RARE))
def test_so_do_rare_settings(name, tmp_path):
    method, settings, policy = RARE[name]
    parties = settings.get("parties", {})
    if policy:
        (tmp_path / "policy.toml").write_text(policy)
        parties = {"north": {"policy": str(tmp_path / "policy.toml")}}
    corpora = corpora_of(FOUR if settings is ABSENT else PARTIES, documents_per_user=3)
    report = replayed(corpora, method, **{**settings, "parties": parties})
    assert said(report) == []
    assert report.closest > 0


@pytest.mark.slow
@pytest.mark.parametrize("method", [{**FTM, **SOUND}, {**CONSENSUS, **SOUND}, {**FEDLDA, **SOUND}, {**PCTD, **SOUND}])
def test_so_do_runs_that_continue_a_model(method, tmp_path):
    tt.FTM(topics=2, rounds=1, sweeps=2).fit(PARTIES, directory=tmp_path / "run")
    report = replayed(corpora_of(PARTIES), method, start_from=str(tmp_path / "run"))
    assert said(report) == []
    assert report.closest > 0


@pytest.mark.parametrize("name", sorted(CASES.keys() - PROMISING - DROPS_WORDS))
def test_without_noise_there_is_nothing_to_audit(name):
    with pytest.raises(ConfigError) as raised:
        replayed(corpora_of(FOUR if "robust" in CASES[name] else PARTIES), CASES[name])
    assert str(raised.value) == NOTHING_TO_AUDIT


@pytest.mark.parametrize("name", sorted(DROPS_WORDS))
def test_the_papers_reports_do_not_hide_words_off_the_list(name):
    report = replayed(corpora_of(PARTIES), CASES[name])
    assert {(v.kind, v.what) for v in report.violations} == {("sensitivity", "reports of tokens")}
    assert all("off the list" in v.neighbour for v in report.violations)
    assert "topic-word distributions" in report.unpromised


@pytest.mark.parametrize("name", WITHOUT_IDS)
def test_documents_without_ids_are_split_by_what_is_public(name):
    report = replayed(corpora_of(PARTIES, ids=False), CASES[name])
    assert "a word replaced in a document without id" in report.neighbours
    assert said(report) == []


def test_scores_under_noise_are_promised_where_the_model_is_not(tmp_path):
    (tmp_path / "policy.toml").write_text(SCORES)
    own = {"parties": {"north": {"policy": str(tmp_path / "policy.toml")}}}
    report = replayed(corpora_of(PARTIES), {**FTM, "vocabulary": PUBLIC}, **own)
    assert said(report) == []
    assert "a held-out document added" in report.neighbours
    assert report.unpromised == ("number of documents", "topic sizes", "topic-word distributions")


@pytest.mark.parametrize("users", [None, 3])
@pytest.mark.parametrize(
    "table", [{}, {"adjacency": "substitute"}, {"by": "quarter", "since": "2025-01", "until": "2025-12"}]
)
def test_tables_of_prevalence_keep_their_promise(users, table, measured):
    corpora = {party: dated(corpus) for party, corpus in corpora_of(PARTIES, documents_per_user=users).items()}
    asked = {"model": str(measured), "epsilon": 1.0, **table}
    custom = {"name": "custom", "module": prevalence.__name__, "config": asked}
    report = replayed(corpora, custom, heldout=0.0)
    assert said(report) == []
    assert report.closest > 0.5


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A small model whose topics parties measure."""
    directory = tmp_path_factory.mktemp("measured")
    tt.FTM(topics=2, rounds=1, sweeps=2).fit(PARTIES, directory=directory / "run")
    return Topics.load(directory / "run" / "model").save(directory / "model")


def dated(corpus):
    """The documents in turn in each month."""
    months = pl.Series("date", [f"2025-{1 + i % 12:02d}-03" for i in range(corpus.n_documents)])
    return dataclasses.replace(corpus, table=corpus.table.with_columns(months))


def test_a_method_of_ones_own_needs_a_plan():
    with pytest.raises(ConfigError) as raised:
        replayed(corpora_of(PARTIES), {"name": "custom", "module": "helpers.toys", "config": {"rounds": 1}})
    assert str(raised.value) == NO_PLAN


def test_too_few_documents_are_named():
    with pytest.raises(ConfigError) as raised:
        replayed(corpora_of({"north": ["harbour"], "south": ["garden"]}), CASES["ftm-sound-lda"])
    assert str(raised.value) == NO_DOCUMENTS


def test_an_interrupted_replay_leaves_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    there = []

    def interrupt(kind, facts):
        there.extend(path.name for path in tmp_path.iterdir())
        raise KeyboardInterrupt

    monkeypatch.setattr(runs_replay, "finish", lambda *given, **how: finish(*given, observe=interrupt, **how))
    with pytest.raises(KeyboardInterrupt):
        replayed(corpora_of(PARTIES), CASES["private-topics"], parties={"north": {"home": str(tmp_path / "home")}})
    assert there
    assert not list(tmp_path.iterdir())


def test_documents_are_read_as_the_settings_say_and_homes_stay_as_they_are(tmp_path):
    for party, texts in PARTIES.items():
        (tmp_path / f"{party}.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in texts))
    settings = RunSettings(
        method=CASES["ftm-sound-lda"], directory=str(tmp_path / "run"),
        parties={p: {"path": str(tmp_path / f"{p}.jsonl"), "home": str(tmp_path / f"home-{p}")} for p in PARTIES},
    )  # fmt: skip
    said_so = []
    report = replay(settings, observe=said_so.append)
    assert report.to_dict()["violations"] == []
    assert report.party == "north"
    assert len(said_so) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["north.jsonl", "south.jsonl"]


def test_a_run_that_ends_early_is_compared_as_far_as_it_got():
    report = replayed(corpora_of(PARTIES), {**CASES["private-topics"], "adapt": True})
    assert "show no topic" in report.ended
    assert said(report) == []
    assert report.to_dict()["closest"] == pytest.approx(1)
