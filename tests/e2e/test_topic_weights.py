"""A topic's weight is its share of the tokens: a release of its own, or not there at all."""

import json

import numpy as np
import pytest

import tertulia as tt
from tertulia.methods.ftm import method as ftm
from tertulia.runs.directory import Run
from tertulia.view.tables import disclosure_rows, privacy_rows

SEA = ("harbour", "winter", "bridge", "copper", "anchor")
LAND = ("garden", "meadow", "violin", "letter", "market")
PUBLIC = {"mode": "public", "words": (*SEA, *LAND)}
SMALL = {"topics": 2, "sweeps": 20, "alpha": 0.2, "vocabulary": PUBLIC}
SOUND = {"mode": "sound", "epsilon": 12.0, "beta": 0.1}


def party(sea: int, land: int, seed: int) -> list[str]:
    """Make the given number of documents of each kind, of 20 words; none is about both."""
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(words, 20)) for words, n in ((SEA, sea), (LAND, land)) for _ in range(n)]


PARTIES = {"north": party(45, 15, 1), "south": party(36, 4, 2)}  # 3:1 and 9:1; together 81:19


def share_of_sea(model: tt.Topics) -> float:
    """The weight of topics that are about the sea."""
    columns = [model.vocabulary.index[word] for word in SEA]
    assert model.weights is not None
    assert np.isclose(model.weights.sum(), 1)
    return float(model.weights[model.topic_word[:, columns].sum(axis=1) > 0.5].sum())


@pytest.mark.parametrize("settings", [{}, {"model": "sentence"}, SOUND, {**SOUND, "model": "sentence"}])
def test_ftm_s_topics_weigh_what_their_members_hold(settings):
    model = tt.FTM(**{**SMALL, "rounds": 2, **settings}).fit(PARTIES, heldout=0.0)
    assert share_of_sea(model) == pytest.approx(0.81, abs=0.04)
    assert share_of_sea(model.local["north"]) == pytest.approx(0.75, abs=0.04)
    assert share_of_sea(model.local["south"]) == pytest.approx(0.9, abs=0.04)


def test_baselines_and_consensus_count_tokens_too():
    alone = tt.Alone(**SMALL).fit(PARTIES, heldout=0.0)
    assert [share_of_sea(alone.local[name]) for name in PARTIES] == pytest.approx([0.75, 0.9], abs=0.04)
    assert share_of_sea(tt.Pooled(**SMALL).fit(PARTIES, heldout=0.0)) == pytest.approx(0.81, abs=0.04)
    together = tt.Consensus(**{**SMALL, "rounds": 2, "sweeps": 5}).fit(PARTIES, heldout=0.0)
    assert share_of_sea(together) == pytest.approx(0.81, abs=0.04)


@pytest.mark.parametrize(("settings", "mechanism"), [({}, "clear"), (SOUND, "derived")])
def test_sizes_are_a_release_of_their_own_that_was_planned(tmp_path, settings, mechanism):
    method = tt.FTM(**{**SMALL, "rounds": 2, "evaluate": False, **settings})
    method.fit(PARTIES, directory=tmp_path / "run", heldout=0.0)
    run = Run.open(tmp_path / "run")
    rows = [row for row in disclosure_rows(run) if row["party"] == "north"]
    assert [(row["mechanism"], row["shape"]) for row in rows if row["what"] == "topic sizes"] == [(mechanism, "2")] * 2
    planned = {(p.mechanism.what, p.mechanism.name): p.times for p in ftm.plan(method)}
    left = {key: sum((row["what"], row["mechanism"]) == key for row in rows) for key in planned}
    assert left == planned
    assert len(rows) == sum(planned.values())
    assert "topic sizes" in {row["what"] for row in privacy_rows(run, 1e-6)}


@pytest.mark.filterwarnings("ignore:merging left")  # three literal sweeps find nothing to tell apart
def test_in_paper_mode_nobody_tells_and_no_table_shows_weights(tmp_path, tertulia):
    method = tt.FTM(**{**SMALL, "rounds": 1, "sweeps": 3}, mode="paper", epsilon=8.0, evaluate=False)
    model = method.fit(PARTIES, directory=tmp_path / "run", heldout=0.0)
    assert model.weights is None
    assert {local.weights for local in model.local.values()} == {None}
    whats = {row["what"] for row in disclosure_rows(Run.open(tmp_path / "run"))}
    assert whats == {"topic-word distributions", "number of documents", "reports of tokens"}
    assert "topic sizes" not in {planned.mechanism.what for planned in ftm.plan(method)}
    assert model.topics_table(3).columns == ["topic", "words"]
    assert "%" not in repr(model)
    assert json.loads(tertulia("topics", tmp_path / "run", "--json")[1]).keys() == {"topics", "provenance"}
    assert "weight" not in tertulia("topics", tmp_path / "run")[1]
