"""Choosing a model at a party sends no answer, but its time revealed whether the party has words of the list."""

import numpy as np
import pytest

from helpers.attacks_words import ask, make_party
from helpers.texts import mixed
from tertulia.corpus import Corpus
from tertulia.methods.common import model_choice
from tertulia.methods.common.lda_settings import Training

NOTES = mixed(3, 60)
OWN = Corpus.from_texts(NOTES)
LISTS = {"none": ("plum", "cherry"), "few": ("plum", *OWN.vocabulary.words[:3]), "all": OWN.vocabulary.words}


def offer(words) -> model_choice.Offer:
    training = Training(mode="clear", topics=2, sweeps=3)
    topics = np.random.default_rng(1).dirichlet(np.ones(len(words)), 2)
    return model_choice.Offer(tuple(words), training, 1, 2, topics, np.full(2, 0.5), None)


def work(directory, words, monkeypatch):
    """The number of tokens that are trained and scored on while a party answers, and whether it has chosen."""
    done, train, score = {"trained": 0, "scored": 0}, model_choice.train_exactly, model_choice.by_document

    def train_exactly(party, corpus, start, training):
        done["trained"] += corpus.n_tokens
        return train(party, corpus, start, training)

    def by_document(topic_word, alpha, corpus, **how):
        done["scored"] += corpus.n_tokens
        return score(topic_word, alpha, corpus, **how)

    with monkeypatch.context() as patch:
        patch.setattr(model_choice, "train_exactly", train_exactly)
        patch.setattr(model_choice, "by_document", by_document)
        answer = ask(make_party(directory, NOTES, model_choice, validation=0.3), model_choice.choose, offer(words))
    assert answer.kind == "ok"
    return done, (directory / "kept").exists()


@pytest.mark.filterwarnings("ignore")
def test_the_work_does_not_depend_on_how_many_words_are_listed(tmp_path, monkeypatch):
    found = {name: work(tmp_path / name, words, monkeypatch) for name, words in LISTS.items()}
    assert [chosen for _, chosen in found.values()] == [False, True, True]
    assert found["none"][0] == found["few"][0] == found["all"][0]
    tokens = found["all"][0]["trained"]
    assert 0 < tokens < OWN.n_tokens


def test_invented_words_change_no_choice(tmp_path, monkeypatch):
    """What is computed for them is thrown away."""
    kept = []
    for name, replaced in (("as it is", False), ("without", True)):
        with monkeypatch.context() as patch:
            if replaced:
                patch.setattr(model_choice, "_rest", lambda party, ask, known, part: known)
            host = make_party(tmp_path / name, NOTES, model_choice, validation=0.3)
            assert ask(host, model_choice.choose, offer(LISTS["few"])).kind == "ok"
        kept.append((tmp_path / name / "kept" / "best.safetensors").read_bytes())
    assert kept[0] == kept[1]
