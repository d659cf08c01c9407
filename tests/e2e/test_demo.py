"""The demo: its documents are harvested from installed packages, and federating pays."""

import json
import time

import numpy as np
import pytest

from helpers.marks import slow
from tertulia.cli import demo
from tertulia.models import Topics


@pytest.fixture(scope="module")
def harvest():
    """The parties, and how long it took to read them."""
    start = time.process_time()
    return demo.demo_parties(), time.process_time() - start


def test_there_are_three_parties_and_thousands_of_documents(harvest):
    parties, seconds = harvest
    assert list(parties) == ["stdlib", "numpy", "scipy"]
    assert all(corpus.n_documents > 1000 for corpus in parties.values())
    assert sum(corpus.n_documents for corpus in parties.values()) > 5000
    assert {"scipy.stats", "scipy.signal"} <= set(parties["scipy"].table["label"])
    assert {"random", "river"} & set(parties["numpy"].vocabulary.words) == {"random"}
    assert "distribution" in parties["scipy"].vocabulary.index
    assert seconds < 30  # about 7 on one core of 2026


@pytest.mark.parametrize("every", [4, slow(1)])
def test_nobody_loses_by_federating(harvest, every, tertulia, tmp_path, monkeypatch):
    parties = {name: corpus.select(np.arange(0, corpus.n_documents, every)) for name, corpus in harvest[0].items()}
    monkeypatch.setattr(demo, "demo_parties", lambda: parties)
    code, out, err = tertulia("demo", "--directory", tmp_path / "demo", "--json")
    assert code == 0, err
    facts = json.loads(out)
    scores = {name: value["everyone"] for name, value in facts["perplexity"].items()}
    alone = [score for name, score in scores.items() if name.endswith("alone")]
    assert scores["federated"] < min(alone)
    own, best = (facts["perplexity"][name] for name in ("each party's own", "federated, best_for"))
    assert all(best[party] < 1.01 * own[party] for party in facts["documents"])
    assert best["everyone"] < own["everyone"]
    assert facts["documents"] == {name: corpus.n_documents for name, corpus in parties.items()}
    assert Topics.load(tmp_path / "demo" / "model").n_topics == facts["topics"]
