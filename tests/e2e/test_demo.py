"""The demo: its documents are harvested from installed packages, and no team loses by federating."""

import json
import time

import numpy as np
import pytest

from helpers.marks import slow
from tertulia.cli import demo
from tertulia.cli.outputs.results import Demo
from tertulia.corpus import demo_corpus
from tertulia.corpus.demo_corpus import demo_parties, demo_teams
from tertulia.models import Topics
from tertulia.view import console


@pytest.fixture(scope="module")
def harvest():
    """The parties, and how long it took to read them."""
    start = time.process_time()
    return demo_parties(), time.process_time() - start


@pytest.fixture
def thinned(harvest, monkeypatch):
    """Let the demo see every n-th document."""

    def thin(every):
        parties = {name: c.select(np.arange(0, c.n_documents, every)) for name, c in harvest[0].items()}
        monkeypatch.setattr(demo_corpus, "demo_parties", lambda: parties)
        return parties

    return thin


def test_there_are_three_parties_and_thousands_of_documents(harvest):
    parties, seconds = harvest
    assert list(parties) == ["stdlib", "numpy", "scipy"]
    assert all(corpus.n_documents > 1000 for corpus in parties.values())
    assert sum(corpus.n_documents for corpus in parties.values()) > 5000
    assert {"scipy.stats", "scipy.signal"} <= set(parties["scipy"].table["label"])
    assert {"random", "river"} & set(parties["numpy"].vocabulary.words) == {"random"}
    assert "distribution" in parties["scipy"].vocabulary.index
    assert seconds < 60  # about 7 on one core of 2026


def test_teams_share_all_documents_out_among_them(thinned):
    parties = thinned(4)
    teams = demo_teams()
    assert list(teams) == [f"team {number}" for number in range(1, 9)]
    ids = [name for corpus in teams.values() for name in corpus.table["id"]]
    assert sorted(ids) == sorted(name for corpus in parties.values() for name in corpus.table["id"])
    assert max(c.n_documents for c in teams.values()) < 1.5 * min(c.n_documents for c in teams.values())
    assert demo_teams(seed=1)["team 1"].table["id"].to_list() != teams["team 1"].table["id"].to_list()


@pytest.mark.parametrize(("every", "seed"), [(4, 0), *(slow(1, seed) for seed in range(3))])
def test_nobody_loses_by_federating(thinned, every, seed, tertulia, tmp_path, monkeypatch):
    thinned(every)
    teams = demo_teams(seed=seed)
    monkeypatch.setattr(demo, "demo_teams", lambda: teams)
    code, out, err = tertulia("demo", "--directory", tmp_path / "demo", "--json")
    assert code == 0, err
    assert "words that leave now" not in err  # of each team; one sentence speaks for all
    facts = json.loads(out)
    Demo.model_validate(facts, strict=True)  # as docs/commands.md has it
    assert facts["documents"] == {name: corpus.n_documents for name, corpus in teams.items()}
    alone, together, pooled = (facts["perplexity"][name] for name in ("alone", "federated", "pooled"))
    assert list(together) == ["everybody", *teams]
    assert all(together[whose] < alone[whose] for whose in together)
    assert together["everybody"] < 0.9 * alone["everybody"]
    assert together["everybody"] < 1.1 * pooled["everybody"]
    assert facts["perplexity"]["pooled, converged"]["everybody"] < 1.02 * pooled["everybody"]
    sweeps = facts["sweeps"]
    assert sweeps["alone"] == sweeps["federated"] == sweeps["pooled"] == 60 < sweeps["pooled, converged"]
    assert Topics.load(tmp_path / "demo" / "model").n_topics == facts["topics"] == 40


def test_what_is_printed_fits_a_terminal_and_says_what_was_found(thinned, tertulia, tmp_path, monkeypatch):
    thinned(8)
    monkeypatch.setattr(console.output, "width", 80)
    code, out, _ = tertulia("demo", "--directory", tmp_path / "d")
    assert code == 0
    lines = out.splitlines()
    assert max(map(len, lines[: lines.index("")])) <= 80
    assert "team 8" in out
    said = " ".join(out.split())
    assert "gain on their own documents, without showing them" in said
    assert "with as many sweeps (60)" in said
    assert "trained there until it has settled (converged, " in said
    assert f"tertulia privacy {tmp_path / 'd'}" in out


def test_a_team_that_loses_is_named():
    sweeps = {"pooled": 60, "pooled, converged": 240}
    said = demo._meaning({"team 1": 0.2, "team 2": -0.01, "team 3": 0.0}, -0.02, 0.035, sweeps)
    assert "all teams but team 2, team 3 gain" in said
    assert "2.0% better than one trained where all" in said
    assert "3.5% worse than one that is trained there until it has settled (converged, 240 sweeps)" in said
