"""Words chosen under noise, from end to end: in runs with reports of tokens, and with secure sums."""

import json

import numpy as np
import pytest

from tertulia.corpus import Corpus
from tertulia.errors import InputError
from tertulia.privacy.mechanisms import Adjacency, Unit
from tertulia.runs.directory import Run
from tertulia.runs.one_machine import hosts_of, run_on_one_machine
from tertulia.runs.release_counts import plan_and_fact_or_none
from tertulia.runs.settings import RunSettings
from tertulia.view.dry_run import dry_run

COMMON = ["fever", "cough", "ward", "clinic", "nurse", "doctor"]
NOISE = {"epsilon": 3.0}
CONSENSUS = {"name": "consensus", "topics": 2, "rounds": 2, "mode": "sound", "epsilon": 2.0, "channel": "krr"}
PCTD = {"name": "pctd", "topics": 2, "rounds": 2}


@pytest.fixture(scope="module")
def corpora():
    """Three parties; one has a word that many of its documents hold, and one that six do."""

    def texts(seed, often=(), seldom=()):
        rng = np.random.default_rng(seed)
        return [" ".join([*rng.choice(COMMON, 4), *often, *(seldom if i < 6 else ())]) for i in range(150)]

    given = {"north": (1, ["asthma"], ["garcia"]), "south": (2,), "east": (3,)}
    return {party: Corpus.from_texts(texts(*facts)) for party, facts in given.items()}


@pytest.fixture
def trained(tmp_path, corpora):
    """Settings and model of a run."""

    def train(method, vocabulary, **terms):
        settings = RunSettings(
            directory=str(tmp_path / "run"), heldout=0.0, federation=terms, method={**method, "vocabulary": vocabulary}
        )
        return settings, run_on_one_machine(settings, corpora)

    return train


def test_a_run_with_reports_of_tokens(trained, tmp_path, corpora, tertulia):
    settings, model = trained(CONSENSUS, {"mode": "private", **NOISE})
    assert set(model.vocabulary.words) == {*COMMON, "asthma"}  # not the name, of six documents
    ledger = hosts_of(Run.open(tmp_path / "run"))[0].ledger
    assert ledger.cost(Unit.DOCUMENT, Adjacency.ADD_REMOVE, delta=1e-6).epsilon == np.inf  # of reports: a word replaced
    charged = {release.name: release for release in ledger.releases() if release.charges}
    assert set(charged) == {"word-union", "token-reports"}
    code, out, err = tertulia("privacy", tmp_path / "run", "--json")
    found = json.loads(out)
    assert {row["real_epsilon"] for row in found["privacy"] if row["what"] == "words chosen under noise"} == {3.0}
    (word,) = {row["real_epsilon"] for row in found["totals"] if row["unit"] == "token"}
    assert 3 + 2 < word < 2 * 3 + 2 + 1  # a word that becomes another changes its document, and one report
    forecast = dry_run(settings, corpora)
    (planned,) = {row["real epsilon"] for row in forecast["totals"] if row["unit"] == "token"}
    assert word <= float(planned) < 1.05 * word  # the plan does not know the number of words
    rows = [row for row in forecast["disclosed"] if row["what"] == "words chosen under noise" and row["times"]]
    assert {row["real epsilon"] for row in rows} == {"3"}
    assert {row["seen"] for row in rows} == {"nobody: noise for what follows", "singly by the server"}
    assert err == ""
    assert code == 0


def test_a_run_with_secure_sums(trained, tmp_path):
    _, model = trained(PCTD, {"mode": "private", **NOISE}, secure=True)
    assert set(model.vocabulary.words) == {*COMMON, "asthma"}
    for host in hosts_of(Run.open(tmp_path / "run")):
        clear = {release.what for release in host.ledger.releases() if release.verb == "each"}
        assert clear == {"words chosen under noise"}
        compared = plan_and_fact_or_none(host)
        assert all(one.announced == one.took_place for one in compared), compared


def test_a_party_too_small_to_choose_any_word_takes_part(tmp_path, corpora):
    few = corpora | {"east": Corpus.from_texts(["fever cough", "ward nurse"] * 3)}
    settings = RunSettings(
        directory=str(tmp_path / "run"), heldout=0.0, federation={"secure": True},
        method={**PCTD, "vocabulary": {"mode": "private", "max_words": 6, **NOISE}},
    )  # fmt: skip
    model = run_on_one_machine(settings, few, durable=False)
    assert set(model.vocabulary.words) == set(COMMON)  # words that more parties have chosen come first


@pytest.mark.parametrize(("method", "secure"), [(CONSENSUS, False), (PCTD, True)])
def test_parties_that_choose_no_word_learn_what_to_do(method, secure, tmp_path):
    few = {party: Corpus.from_texts(["fever cough", "ward nurse"] * 3) for party in ("north", "south", "east")}
    settings = RunSettings(
        directory=str(tmp_path / "run"), federation={"secure": secure},
        method={**method, "vocabulary": {"mode": "private", **NOISE}},
    )  # fmt: skip
    with pytest.raises(InputError, match=r"no word was chosen under noise.* Raise vocabulary.epsilon"):
        run_on_one_machine(settings, few, durable=False)


def test_words_of_one_party_come_under_noise_beside_those_of_several(trained, tmp_path):
    """`common` alone names no word of one party; with an epsilon it does, if many documents hold the word."""
    _, model = trained(PCTD, {"mode": "common", "max_share": 1.0, **NOISE}, secure=True)
    assert set(model.vocabulary.words) == {*COMMON, "asthma"}
    north, south, _ = (host.ledger.table() for host in hosts_of(Run.open(tmp_path / "run")))
    for table in (north, south):
        costs = {row.real.epsilon for row in table if row.what == "words chosen under noise"}
        assert list(costs) == [pytest.approx(3.0, abs=2e-3)]


def test_without_an_epsilon_they_do_not(trained):
    _, model = trained(PCTD, {"mode": "common", "max_share": 1.0}, secure=True)
    assert set(model.vocabulary.words) == set(COMMON)
