"""gFedNTM from documents to a saved model, on both engines; equal to training in one place."""

import numpy as np
import pytest
import torch

import tertulia as tt
from helpers.runs import Interrupted, interrupt_at
from tertulia.models.neural.training import has_stalled
from tertulia.runs.directory import Run
from tertulia.view.tables import disclosure_rows, privacy_rows

torch.set_num_threads(1)
SMALL = {"topics": 3, "hidden": (8, 6), "batch_size": 16, "vocabulary": {"max_share": 1.0}}


@pytest.fixture
def parties(worded):
    return {name: [f"{text} n{i}x" for i, text in enumerate(worded(n, 20 + n))] for n, name in enumerate("abc")}


def fit(parties, settings, **options):
    return tt.GFedNTM(**{**SMALL, **settings}).fit(parties, heldout=0.0, **options)


def test_federated_steps_equal_pooled_ones(parties):
    settings = {"epochs": 1000, "rounds": 60, "precision": "float64"}
    federated = fit(parties, settings)
    pooled = fit(parties, {**settings, "scenario": "centralised"})
    assert len(federated.history) == len(pooled.history) == 61
    assert np.abs(federated.encoder.weights - pooled.encoder.weights).max() < 1e-9
    assert np.abs(federated.encoder.statistics - pooled.encoder.statistics).max() < 1e-9
    assert np.abs(federated.topic_word - pooled.topic_word).max() < 1e-9


@pytest.mark.parametrize(
    "settings",
    [
        {"normalisation": "batch"},
        {"normalisation": "layer"},
        {"optimiser": "sgd"},
        {"compression": "fp16"},
        {"paper": {"keep": 0.2}},
        {"averaging": "fedavg", "rounds": 6},
        {"averaging": "fedadam", "rounds": 6},
    ],
)
def test_every_way_of_training_learns(settings, parties):
    model = fit(parties, {"rounds": 20, "learning_rate": 0.02, **settings})
    losses = [facts["loss"] for facts in model.history[1:]]
    assert np.mean(losses[-3:]) < 0.99 * np.mean(losses[:3])


def test_local_steps_go_on_with_everybodys_moments(parties):
    """With one party, rounds of local steps are training in one go; with fresh moments they are not."""
    rounds = {"averaging": "fedavg", "local_steps": 5, "rounds": 4, "epochs": 100, "precision": "float64"}
    alone = {"a": parties["a"]}
    one = fit(alone, {**rounds, "local_steps": 20, "rounds": 1})
    assert np.abs(fit(alone, rounds).encoder.weights - one.encoder.weights).max() < 1e-12
    fresh = fit(alone, {**rounds, "local_moments": "fresh"})
    assert np.abs(fresh.encoder.weights - one.encoder.weights).max() > 1e-4


@pytest.mark.parametrize("averaging", ["syncopt", "fedavg"])
def test_validation_stops_training_and_the_best_is_kept(averaging, parties):
    settings = {"averaging": averaging, "local_steps": 4, "learning_rate": 0.1, "validation": 0.25, "stop_after": 2}
    model = fit(parties, {**settings, "normalisation": "layer", "epochs": 60})
    losses = [facts["validation"] for facts in model.history if "validation" in facts]
    assert len(losses) < 60
    assert has_stalled(losses, 2)
    assert not has_stalled(losses[:-1], 2)
    assert min(losses) < losses[-1]  # so the last is not the one that is kept


def test_validation_of_parties_together_is_that_of_one_place(parties):
    settings = {"epochs": 4, "validation": 0.25, "precision": "float64"}
    histories = [fit(parties, {**settings, "scenario": scenario}).history for scenario in ("federated", "centralised")]
    together, pooled = ([facts["validation"] for facts in history if "validation" in facts] for history in histories)
    assert len(together) == 4
    assert together == pytest.approx(pooled, rel=1e-9)


def test_a_federation_ends_by_itself_when_the_loss_stalls(parties):
    model = fit(parties, {"learning_rate": 0.1, "stop_after": 3, "normalisation": "batch"})
    losses = [facts["loss"] for facts in model.history[1:]]
    epochs = np.array(losses).reshape(-1, 4).mean(axis=1)  # 63 documents in batches of 16
    assert 6 <= len(epochs) < 100
    assert has_stalled(list(epochs), 3)
    assert not has_stalled(list(epochs[:-1]), 3)


def test_validation_that_gets_no_document_is_refused(parties):
    with pytest.raises(tt.TertuliaError, match="none falls to it"):
        fit({"a": parties["a"][:4]}, {"validation": 1e-9, "rounds": 1})


def test_compression_saves_bytes(parties):
    def up(settings):
        return fit(parties, {"rounds": 3, "normalisation": "batch", **settings}).communication.bytes_up

    assert up({"compression": "fp16"}) < up({})


@pytest.mark.slow  # a process with torch for each party; quick tests of other methods compare the engines too
def test_engines_give_the_same_bits(parties, tmp_path):
    parties = {name: parties[name] for name in "ab"}
    local = fit(parties, {"rounds": 8})
    apart = fit(parties, {"rounds": 8}, engine="processes", directory=tmp_path / "apart")
    assert local.topic_word.tobytes() == apart.topic_word.tobytes()


def test_a_run_goes_on_after_an_interruption(parties, tmp_path):
    from tertulia.runs.driver import finish

    parties = {name: parties[name] for name in "ab"}
    settings = {"rounds": 8, "checkpoint_every": 4}
    with pytest.raises(Interrupted):
        fit(parties, settings, directory=tmp_path / "run", observe=interrupt_at(6))
    resumed = finish(Run.open(tmp_path / "run"))
    assert resumed.topic_word.tobytes() == fit(parties, {"rounds": 8}).topic_word.tobytes()


def test_a_model_is_saved_with_its_encoder(parties, tmp_path):
    model = fit(parties, {"rounds": 20})
    model.save(tmp_path / "model")
    loaded = tt.Topics.load(tmp_path / "model")
    texts = parties["a"][:3]
    assert loaded.encoder == model.encoder
    assert np.array_equal(loaded.transform(texts), model.transform(texts))
    assert np.allclose(loaded.transform(texts).sum(axis=1), 1)


def test_models_that_read_sentences(parties):
    random = np.random.default_rng(0)
    corpora = {
        name: (corpus := tt.Corpus.from_texts(texts)).with_embeddings(random.normal(size=(corpus.n_documents, 5)))
        for name, texts in parties.items()
    }
    for kind in ("combinedtm", "zeroshottm"):
        model = fit(corpora, {"model": kind, "rounds": 4})
        theta = model.transform(corpora["a"])
        assert np.allclose(theta.sum(axis=1), 1)
        other = corpora["a"].with_embeddings(np.ones((20, 5)))
        assert not np.allclose(model.transform(other), theta)  # it reads the vectors
    with pytest.raises(tt.TertuliaError, match="keep_text=True"):
        fit({"a": tt.Corpus.from_texts(parties["a"])}, {"model": "zeroshottm", "rounds": 1})


def shares_of_tokens(model, texts):
    """What the encoder says of texts whose every word the model knows, each as long as it is."""
    shares = np.array([len(text.split()) for text in texts]) @ model.transform(texts)
    return shares / shares.sum()


@pytest.mark.parametrize("settings", [{}, {"averaging": "fedavg", "local_steps": 5}])
def test_topic_weights_are_shares_of_all_tokens(settings, parties):
    texts = {name: [" ".join(own.split()[:-1]) for own in longer] for name, longer in parties.items()}
    texts["a"] = [text * (1 + n % 3) for n, text in enumerate(f"{text} " for text in texts["a"])]
    model = fit(texts, {"rounds": 15, "learning_rate": 0.05, **settings})
    expected = shares_of_tokens(model, [text for own in texts.values() for text in own])
    assert np.allclose(model.weights, expected, atol=1e-6)
    assert expected.max() > 1.2 * expected.min()
    assert model.topics_table()["weight"].to_list() == sorted(model.weights, reverse=True)


def test_alone_gives_each_party_its_own(parties):
    model = fit(parties, {"scenario": "alone", "epochs": 2})
    assert set(model.local) == {"a", "b", "c"}
    assert not np.allclose(model.local["a"].weights, model.local["b"].weights)
    assert model.local["a"].transform(parties["a"][:2]).shape == (2, 3)


def test_a_party_without_a_known_word_changes_nothing(parties):
    words = (*sorted({w for texts in parties.values() for t in texts for w in t.split()}), "nobodysword")
    settings = {"rounds": 5, "vocabulary": {"mode": "public", "words": words}}
    with_tiny = {**parties, "tiny": ["winter letter"]}
    model = fit(with_tiny, settings)
    assert np.abs(model.topic_word - fit(parties, settings).topic_word).max() > 1e-6  # one document counts
    odd = fit({**with_tiny, "foreign": ["zug um zug"] * 3}, settings)
    assert np.abs(odd.topic_word - model.topic_word).max() < 1e-6
    assert "nobodysword" in odd.vocabulary.index


def test_absences_do_not_stop_it(parties):
    settings = {"rounds": 20, "learning_rate": 0.02}
    model = fit(parties, settings, federation={"dropouts": {"rate": 0.3}, "quorum": 0.1})
    present = [len(facts["bytes"]) for facts in model.history[1:]]
    assert min(present) < 3
    losses = [facts["loss"] for facts in model.history[1:]]
    assert np.mean(losses[-3:]) < 0.99 * np.mean(losses[:3])


def test_the_ledger_says_that_gradients_are_not_private(parties, tmp_path):
    fit(parties, {"rounds": 2}, directory=tmp_path / "run")
    run = Run.open(tmp_path / "run")
    real = {row["what"]: row["real epsilon"] for row in privacy_rows(run, 1e-6)}
    assert real["gradient of a mini-batch"] == "infinite (non-private)"
    assert real["statistics of a mini-batch"] == "infinite (non-private)"
    seen = {row["seen"] for row in disclosure_rows(run) if "mini-batch" in row["what"]}
    assert seen == {f"singly by the server's machine, as a {verb} by the method" for verb in ("sum", "mean")}


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"topics": 1}, "at least 2 topics"),
        ({"compression": "fp16", "averaging": "fedavg"}, "they go with averaging = 'syncopt'"),
        ({"compression": "fp16", "paper": {"keep": 0.5}}, "give one of them"),
        ({"keep": 0.5}, "so write 'paper.keep'"),
        ({"dropout": 1.0}, "dropout = 1.0"),
        ({"normalisation": "sync", "averaging": "fedavg"}, "with local steps take 'layer'"),
    ],
)
def test_wrong_settings_name_the_key(settings, says):
    with pytest.raises(tt.TertuliaError, match=says):
        tt.GFedNTM(**settings)
