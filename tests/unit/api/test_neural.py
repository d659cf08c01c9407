"""Neural models on one machine: what goes in, what comes out, what is said when torch is missing."""

import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tertulia as tt
from tertulia.models.topics import UnknownWordsWarning

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
    from tertulia.models.neural.architecture import Sizes
    from tertulia.models.neural.bags import Bags, Schedule
    from tertulia.models.neural.network import Network
    from tertulia.models.neural.training import Pace, Progress, train_until, validation_loss

    corpus = tt.Corpus.from_texts(texts)
    bags, validation = Bags.of(corpus).split_validation(0.25, 0)
    assert 0 < validation.n_documents < bags.n_documents
    assert bags.n_documents + validation.n_documents == 60
    network = Network("prodlda", Sizes(len(corpus.vocabulary), 3, hidden=(8, 6)), "batch")
    start, schedule = Progress.initial(network, 0), Schedule.over(bags.n_documents, 16, 0)
    ends = [
        train_until(network, start, bags, validation, schedule, Pace(epochs, 0.1, (0.9, 0.99), stop_after=3))
        for epochs in (60, 200, None)
    ]
    assert ends[0].weights.tobytes() == ends[1].weights.tobytes()  # the learning rate is far too high: it soon stopped
    assert ends[0].weights.tobytes() == ends[2].weights.tobytes()
    losses = [validation_loss(network, p.weights, validation, 0) for p in (start, ends[0])]
    assert losses[1] < losses[0]


def short_texts(topics=8, n=600):
    """Texts of five words, most of one topic: to find all words alike costs less than to tell which topic it is."""
    random, letters = np.random.default_rng(0), "abcdefghijklmnopqrst"

    def word(topic, w):
        return f"word{letters[w]}{letters[topic if random.random() > 0.2 else random.integers(topics)]}"

    return [" ".join(word(d % topics, w) for w in random.integers(0, 20, 5)) for d in range(n)]


def purity(model):
    """How much of a topic's ten top words belong to one and the same of the true topics, on average."""
    return np.mean([max(Counter(word[-1] for word in top).values()) / 10 for top in model.top_words(10)])


SHORT = {"topics": 8, "hidden": (20, 20), "learning_rate": 0.01, "vocabulary": {"max_share": 1.0}}


def test_validation_keeps_no_untrained_model():
    kept = purity(tt.ProdLDA(**SHORT, epochs=60, stop_after=5, validation=0.25).fit(short_texts()))
    assert purity(tt.ProdLDA(**SHORT, epochs=1).fit(short_texts())) < 0.5
    assert kept > 0.7  # after 60 epochs without validation it is 0.85


def test_epochs_end_by_themselves_when_the_loss_stalls(monkeypatch):
    from tertulia.models.neural import training

    taken = []

    def counted(*args):
        taken.append(args[4])
        return train(*args)

    train = training.train
    monkeypatch.setattr(training, "train", counted)
    model = tt.ProdLDA(**SHORT, stop_after=10).fit(short_texts())
    assert 20 <= len(taken) == model.provenance["epochs"] < 300 < training.MOST_EPOCHS
    assert purity(model) > 0.7


def test_a_model_of_words_has_two_thousand_by_default():
    assert tt.ProdLDA.trainer().vocabulary.max_words == 2000
    assert tt.GFedNTM(vocabulary={"min_documents": 3}).vocabulary.max_words == 2000
    assert tt.ProdLDA.trainer(vocabulary={"max_words": None}).vocabulary.max_words is None
    assert tt.LDA.trainer().vocabulary.max_words is None
    words = [f"w{''.join(chr(97 + int(d)) for d in str(v))}" for v in range(2100)]
    texts = [" ".join(words[i::3]) for i in range(3)] * 4
    model = tt.ProdLDA(topics=2, hidden=(4,), epochs=1).fit(texts)
    assert len(model.vocabulary) == 2000


def test_weights_are_shares_of_tokens():
    texts = [text if d % 2 else f"{text} {text} {text}" for d, text in enumerate(short_texts(2))]
    model = tt.ProdLDA(**{**SHORT, "topics": 2}, epochs=20).fit(texts)
    tokens = [len(text.split()) for text in texts]
    assert model.weights == pytest.approx(np.average(model.transform(texts), axis=0, weights=tokens), abs=1e-6)
    assert np.ptp(model.weights) > 0.01


def test_a_document_without_words_gets_the_prior_mean(texts):
    corpus = embedded(texts)
    for trainer, says in ((tt.ProdLDA, ["", "zzz", texts[0]]), (tt.ZeroShotTM, None)):
        model = trainer(**SMALL, normalisation="layer").fit(corpus)
        prior = np.exp(model.encoder.network.named(model.encoder.weights)["prior_mean"])
        prior /= prior.sum()
        assert np.abs(prior - 1 / 3).max() > 1e-4  # learned: with BatchNorm all topics have the same
        if says:
            with pytest.warns(UnknownWordsWarning, match="2 of 3"):
                theta = model.transform(says)
            assert theta[:2] == pytest.approx(np.stack([prior, prior]), abs=1e-6)
        else:  # it reads sentences: a document with a vector is informative for any words
            vectors = np.array([[0.0] * 5, [1.0] * 5], np.float32)
            unknown = tt.Corpus.from_texts(["zzz", "zzz"]).with_embeddings(vectors)
            with pytest.warns(UnknownWordsWarning, match="1 of 2"):
                theta = model.transform(unknown)
            assert theta[0] == pytest.approx(prior, abs=1e-6)
            assert np.abs(theta[1] - prior).max() > 1e-3


def test_a_neural_model_refuses_to_be_adapted(texts):
    model = tt.ProdLDA(**SMALL).fit(texts)
    with pytest.raises(tt.TertuliaError, match="infers by its encoder"):
        model.adapt(texts)
    own = tt.Topics(model.topic_word, model.vocabulary, model.alpha).adapt(texts)
    assert own.alpha.sum() == pytest.approx(3.0)


def test_training_in_two_goes_is_training_in_one(texts):
    from tertulia.models.neural.architecture import Sizes
    from tertulia.models.neural.bags import Bags, Schedule
    from tertulia.models.neural.network import Network
    from tertulia.models.neural.training import Progress, train

    corpus = tt.Corpus.from_texts(texts)
    bags, schedule = Bags.of(corpus), Schedule(0, 4)
    network = Network("prodlda", Sizes(len(corpus.vocabulary), 3, hidden=(8, 6)), "batch")
    start = Progress.initial(network, 0)
    whole = train(network, start, bags, schedule, range(12), 0.01)
    half = train(network, start, bags, schedule, range(5), 0.01)
    rest = train(network, half, bags, schedule, range(5, 12), 0.01)
    assert np.abs(rest.weights - whole.weights).max() < 1e-6  # rows that waited are brought up to date in between
    assert np.abs(rest.weights - half.weights).max() > 1e-3


def test_threads_hold_in_the_thread_that_computes():
    import torch

    from tertulia.models.neural.network import use_threads

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
        tt.ProdLDA(**settings).fit(short_texts())


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
