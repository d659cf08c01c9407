"""`best_for`: each party chooses a model for its own documents, at home, on documents that nothing else has seen."""

import json

import numpy as np
import pytest

import tertulia as tt
from helpers.marks import slow
from helpers.planted import word_list
from tertulia.errors import ConfigError, InputError
from tertulia.federation.party.document_limits import parts_of
from tertulia.methods.common.model_choice import CANDIDATES, clearly_best
from tertulia.metrics.perplexity import by_document, completion
from tertulia.runs.directory import Run
from tertulia.runs.one_machine import open_party

V = 120
WORDS = word_list(V)
FTM = tt.FTM(topics=4, rounds=2, sweeps=15, evaluate=False, vocabulary={"mode": "public", "words": WORDS})
CONSENSUS = tt.Consensus(
    topics=4, start_sweeps=10, rounds=4, sweeps=5, evaluate=False, vocabulary={"mode": "public", "words": WORDS}
)
SHARES = {"heldout": 0.2, "validation": 0.2}


def party(name: str, seed: int, documents: int, words: slice = slice(None)) -> tt.Corpus:
    """Documents of 40 words over four topics."""
    rng = np.random.default_rng(seed)
    phi = np.zeros((4, V))
    phi[:, words] = np.random.default_rng(5).dirichlet(np.full(phi[:, words].shape[1], 0.1), 4)
    theta = rng.dirichlet(np.full(4, 0.3), documents)
    texts = [" ".join(WORDS[w] for w in rng.choice(V, 40, p=share @ phi)) for share in theta]
    return tt.Corpus.from_texts(texts, ids=[f"{name}{i}" for i in range(documents)])


def alike() -> dict[str, tt.Corpus]:
    return {name: party(name, i, n) for i, (name, n) in enumerate({"north": 60, "south": 90, "west": 120}.items())}


def unlike() -> dict[str, tt.Corpus]:
    return {name: party(name, i, 90, slice(40 * i, 40 * i + 40)) for i, name in enumerate(("north", "south", "west"))}


def own_gain(model: tt.FederatedTopics, name: str, corpus: tt.Corpus) -> float:
    """Perplexity of the party alone, with its own prior, over that of its choice, on documents held out from both."""
    heldout = parts_of(corpus, **SHARES)["heldout"].encode(model.vocabulary)
    alone, best = (
        completion(m.topic_word, m.alpha, heldout, smoothing=0.01).perplexity
        for m in (model.choices[name].alone, model.best_for(name))
    )
    return alone / best


@pytest.mark.parametrize("method", [FTM, CONSENSUS], ids=["ftm", "consensus"])
def test_alike_parties_win_on_their_own_documents_and_no_party_loses(method):
    parties = alike()
    model = method.fit(parties, **SHARES)
    gains = [own_gain(model, name, corpus) for name, corpus in parties.items()]
    assert min(gains) >= 0.99
    assert np.mean(gains) >= 1.03
    assert any(model.best_for(name).provenance["chosen"] != "alone" for name in parties)
    for name in parties:
        says = model.best_for(name).provenance
        assert says["party"] == name
        assert says["chosen"] in CANDIDATES
        assert says["validation_perplexity"][says["chosen"]] <= says["validation_perplexity"]["alone"]


def test_parties_of_different_subjects_do_not_lose():
    parties = unlike()
    model = FTM.fit(parties, **SHARES)
    assert min(own_gain(model, name, corpus) for name, corpus in parties.items()) >= 0.99


def test_the_parts_are_disjoint_and_cover_everything():
    corpus = party("a", 0, 200)
    parts = parts_of(corpus, 0.2, 0.1)
    ids = [set(part.table["id"]) for part in parts.values()]
    assert sum(len(part) for part in ids) == corpus.n_documents == len(set.union(*ids))
    assert ids[1] == set(parts_of(corpus, 0.2)["heldout"].table["id"])  # the same documents are scored, with or without
    assert all(part for part in ids)


@pytest.mark.parametrize("engine", ["local", slow("processes")])
def test_the_choice_stays_at_the_party_and_can_be_read_later(engine, tmp_path):
    parties = {name: corpus for name, corpus in alike().items() if name != "south"}
    model = FTM.fit(parties, **SHARES, directory=tmp_path / "run", engine=engine)
    run = Run.open(tmp_path / "run")
    for name in parties:
        best = tt.best_for(tmp_path / "run", name)
        assert best == model.best_for(name)
        assert (run.party_directory(name) / "kept" / "best.safetensors").exists()
        assert not [release for release in open_party(run, name).ledger.releases() if "model_choice" in release.step]
    with pytest.raises(ConfigError, match="no party 'east'"):
        tt.best_for(tmp_path / "run", "east")


def test_the_command_line_reads_a_partys_choice(tmp_path, tertulia):
    model = FTM.fit(alike(), **SHARES, directory=tmp_path / "run")
    code, out, err = tertulia("topics", tmp_path / "run" / "parties" / "north", "--json")
    assert code == 0, err
    assert json.loads(out)["provenance"]["chosen"] == model.best_for("north").provenance["chosen"]


def test_without_validation_documents_there_is_no_choice(tmp_path):
    model = FTM.fit(alike(), directory=tmp_path / "run")
    with pytest.raises(InputError, match="fit with a share `validation`"):
        model.best_for("north")
    with pytest.raises(ConfigError, match="has chosen no model"):
        tt.best_for(tmp_path / "run", "north")


def test_shares_and_methods_that_do_not_go_together_are_refused():
    with pytest.raises(ConfigError, match="leave nothing to train on"):
        FTM.fit(alike(), heldout=0.5, validation=0.5)
    with pytest.raises(ConfigError, match="not with 'pctd'"):
        tt.PCTD().fit(alike(), validation=0.1)


def test_a_win_within_the_noise_is_none():
    rng = np.random.default_rng(0)
    alone = rng.normal(-50, 5, 100)
    assert clearly_best({"alone": alone, "global": alone + rng.normal(0.02, 1, 100)}) == "alone"
    assert clearly_best({"alone": alone, "global": alone + rng.normal(0.5, 1, 100)}) == "global"
    assert clearly_best({"alone": alone[:1], "global": alone[:1] + 9}) == "alone"  # one document tells nothing


def test_documents_add_up_to_the_completion():
    corpus = tt.Corpus.from_texts(["sun rain sun rain", "money", "rain rain money"])
    topics = np.array([[0.5, 0.4, 0.1], [0.1, 0.2, 0.7]])
    likelihood, tokens = by_document(topics, 0.5, corpus)
    found = completion(topics, 0.5, corpus)
    assert tokens.tolist() == [2, 0, 2]
    assert likelihood[1] == 0
    assert np.isclose(likelihood.sum(), found.log_likelihood)
