"""Neural models on one machine: what goes in, what comes out, what is said when torch is missing."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tertulia as tt

SMALL = {"topics": 3, "hidden": (8, 6), "batch_size": 16, "epochs": 8, "vocabulary": {"max_share": 1.0}}


@pytest.fixture
def texts(worded):
    return [f"{text} n{i}x" for n in range(3) for i, text in enumerate(worded(n, 20))]


def embedded(texts):
    corpus = tt.Corpus.from_texts(texts)
    return corpus.with_embeddings(np.random.default_rng(0).normal(size=(corpus.n_documents, 5)))


def test_prodlda_from_texts_to_a_file_and_back(texts, tmp_path):
    model = tt.ProdLDA(**SMALL).fit(texts, seed=1)
    assert model.top_words(3) != tt.ProdLDA(**SMALL).fit(texts, seed=2).top_words(3)
    assert model == tt.ProdLDA(**SMALL).fit(tt.Corpus.from_texts(texts), seed=1)
    assert model.provenance["method"] == "prodlda"
    loaded = tt.Topics.load(model.save(tmp_path / "model"))
    assert loaded == model
    assert np.array_equal(loaded.transform(texts[:4]), model.transform(texts[:4]))
    assert np.allclose(model.transform(texts[:4]).sum(axis=1), 1)


@pytest.mark.parametrize("trainer", [tt.CombinedTM, tt.ZeroShotTM])
def test_models_of_sentences_take_vectors(trainer, texts):
    corpus = embedded(texts)
    model = trainer(**SMALL, normalisation="layer").fit(corpus)
    assert model.transform(corpus).shape == (60, 3)
    with pytest.raises(tt.TertuliaError, match="embeddings of 5 numbers, these have 9"):
        model.transform(corpus.with_embeddings(np.zeros((60, 9))))
    with pytest.raises(tt.TertuliaError, match="keep_text=True"):
        trainer(**SMALL).fit(tt.Corpus.from_texts(texts))


def test_one_machine_equals_a_party_alone(texts):
    settings = {**SMALL, "precision": "float64", "validation": 0.25, "stop_after": 1}
    federated = tt.GFedNTM(**settings, scenario="alone", seed=3).fit({"a": texts}, heldout=0.0).local["a"]
    words = {"mode": "public", "words": federated.vocabulary.words}
    alone = tt.ProdLDA(**{**settings, "vocabulary": words}).fit(texts, seed=3)
    assert alone.encoder == federated.encoder


def test_training_stops_when_validation_no_longer_improves(texts):
    from tertulia.models.bags import Bags, Schedule
    from tertulia.models.network import Network
    from tertulia.models.prodlda import Sizes
    from tertulia.models.training import Progress
    from tertulia.models.validation import loss_of, train_until

    corpus = tt.Corpus.from_texts(texts)
    bags, validation = Bags.of(corpus).parted(0.25, 0)
    assert 0 < validation.n_documents < bags.n_documents
    assert bags.n_documents + validation.n_documents == 60
    network = Network("prodlda", Sizes(len(corpus.vocabulary), 3, hidden=(8, 6)), "batch")
    start, schedule = Progress(network.start(0), network.resting(), 0.0), Schedule.over(bags.n_documents, 16, 0)
    ends = [
        train_until(network, start, bags, validation, schedule, epochs, 0.1, (0.9, 0.99), stop_after=3)
        for epochs in (40, 200)
    ]
    assert ends[0].weights.tobytes() == ends[1].weights.tobytes()  # the learning rate is far too high: it soon stopped
    losses = [loss_of(network, p.weights, p.statistics, validation) for p in (start, ends[0])]
    assert losses[1] < losses[0]


def test_training_in_two_goes_is_training_in_one(texts):
    from tertulia.models.bags import Bags, Schedule
    from tertulia.models.network import Network
    from tertulia.models.prodlda import Sizes
    from tertulia.models.training import Progress, train

    corpus = tt.Corpus.from_texts(texts)
    bags, schedule = Bags.of(corpus), Schedule(0, 4)
    network = Network("prodlda", Sizes(len(corpus.vocabulary), 3, hidden=(8, 6)), "batch")
    start = Progress(network.start(0), network.resting(), 0.0)
    whole = train(network, start, bags, schedule, range(12), 0.01)
    half = train(network, start, bags, schedule, range(5), 0.01)
    rest = train(network, half, bags, schedule, range(5, 12), 0.01)
    assert np.abs(rest.weights - whole.weights).max() < 1e-6  # rows that waited are brought up to date in between
    assert np.abs(rest.weights - half.weights).max() > 1e-3


def test_threads_hold_in_the_thread_that_computes():
    import torch

    from tertulia.models.threads import use_threads

    def counted(n):
        use_threads(n)
        return torch.get_num_threads()

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(counted, 2).result() == 2
        assert pool.submit(counted, 1).result() == 1


@pytest.mark.parametrize(
    ("settings", "says"),
    [({"topics": 1}, "at least 2 topics"), ({"validation": 1.0}, "validation = 1.0"), ({"vocab": 3}, "unknown key")],
)
def test_wrong_settings_name_the_key(settings, says):
    with pytest.raises(tt.TertuliaError, match=says):
        tt.ProdLDA(**settings)


def test_too_few_documents_are_named():
    with pytest.raises(tt.TertuliaError, match="1 documents with a word"):
        tt.ProdLDA(vocabulary={"min_documents": 1, "max_share": 1.0}).fit(["harbour garden"])


def test_without_torch_the_extra_is_named():
    code = (
        "import sys; sys.modules['torch'] = None\nimport tertulia as tt\n"
        "try: tt.ProdLDA(vocabulary={'max_share': 1.0}).fit(['rain river'] * 9)\n"
        "except tt.TertuliaError as error: print(error)"
    )
    said = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert "pip install 'tertulia[neural]'" in said
