"""Model cards: what a hub reads, no party that did not agree, and epsilons of the run's own ledgers."""

import json
from pathlib import Path

import pytest
import yaml

import tertulia as tt
from tertulia.errors import InputError
from tertulia.view.verdicts import summaries

TEXTS = ["rain fell on the river", "the bank lent money", "rivers rise with rain", "money and loans"] * 10
WORDS = {"mode": "public", "words": ["rain", "river", "money", "bank"]}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A model of three parties with noise for words, and where its run is."""
    directory = tmp_path_factory.mktemp("card") / "run"
    settings = tt.Consensus(topics=2, rounds=1, sweeps=2, mode="sound", epsilon=8, vocabulary=WORDS)
    parties = {"infirmary": TEXTS, "lighthouse": TEXTS, "observatory": TEXTS}
    return settings.fit(parties, directory=directory, progress=False), directory


def test_a_hub_reads_the_head(trained):
    head = yaml.safe_load(trained[0].card().split("---")[1])
    assert head["library_name"] == "tertulia"
    assert head["language"] == "en"
    assert {"topic-modeling", "federated-learning", "consensus"} <= set(head["tags"])
    assert "federated-learning" not in tt.LDA(topics=2, sweeps=2).fit(TEXTS).card()


def test_no_party_is_named_that_has_not_agreed(trained):
    model, directory = trained
    names = {"infirmary", "lighthouse", "observatory"}
    assert not [name for name in names if name in model.card()]
    named = model.card(agreed=["lighthouse"])
    assert [name for name in sorted(names) if name in named] == ["lighthouse"]
    assert "Parties: 3, among them lighthouse." in named
    with pytest.raises(InputError, match="'harbour' took no part"):
        model.card(agreed=["harbour"])
    with pytest.raises(InputError, match="list the parties"):
        model.card(agreed="lighthouse")
    assert str(directory) not in named


def test_epsilons_are_those_of_the_ledgers(trained):
    model, directory = trained
    rows = [line for line in model.card().splitlines() if line.startswith("| a word")]
    assert rows == ["| a word, replaced by another | 8 | 1e-06 |"]
    (verdict,) = {one.verdict.partition(". ")[0] for one in summaries_of(directory)}
    assert f"{verdict}. Ledgers of 3 parties" in model.card()


def summaries_of(directory):
    from tertulia.runs.directory import Run

    return summaries(Run.open(directory), 1e-6)


def test_a_loaded_model_says_that_its_ledgers_are_elsewhere_or_where_they_are(trained, tmp_path):
    model, directory = trained
    loaded = tt.Topics.load(model.save(tmp_path / "model"))
    assert "mode = sound, epsilon = 8.0" in loaded.card()
    assert "no real epsilon is stated" in loaded.card()
    assert loaded.card(run=directory) == model.card()
    loaded.provenance["run"] = "another"
    with pytest.raises(InputError, match="another run"):
        loaded.card(run=directory)


def test_the_card_is_written_with_measures_of_the_user(trained, tmp_path):
    written = trained[0].card(tmp_path / "README.md", metrics={"npmi": 0.12345})
    assert Path(tmp_path / "README.md").read_text(encoding="utf-8") == written
    assert "| npmi | 0.1235 |" in written
    assert json.dumps(TEXTS[0]) not in written


def test_names_cannot_break_the_table():
    model = tt.LDA(topics=2, sweeps=2).fit(TEXTS).topics_.rename({0: "a | b\x1b[31m"})
    rows = [line for line in model.card().splitlines() if line.startswith("| 0")]
    assert len(rows) == 1
    assert "a \\| b" in rows[0]
    assert "\x1b" not in rows[0]
