"""Learned alpha in federations: in Consensus it is everybody's, in FTM each party's own."""

import numpy as np
import pytest

import tertulia as tt
from helpers.runs import Interrupted, interrupt_at, outcome, prepared
from helpers.texts import PUBLIC, halves
from tertulia._disk import read_checked
from tertulia.corpus import Corpus
from tertulia.federation.codec import decode
from tertulia.federation.party.document_limits import parts_of
from tertulia.methods.common import local_lda as local
from tertulia.methods.common.priors import by_size
from tertulia.metrics.perplexity import completion
from tertulia.runs.directory import Run
from tertulia.runs.driver import finish
from tertulia.runs.one_machine import open_party
from tertulia.view.tables import disclosure_rows

pytestmark = pytest.mark.filterwarnings("ignore:merging")  # toy tests have toy topics
PARTIES = {"north": Corpus.from_texts(halves(1, 40)), "south": Corpus.from_texts(halves(2, 60)[::2] + halves(3, 30))}
SOUND = {"mode": "sound", "epsilon": 6.0}
CONSENSUS = {"name": "consensus", "topics": 3, "rounds": 4, "start_sweeps": 4, "sweeps": 2, "vocabulary": PUBLIC}
FTM = {"topics": 3, "rounds": 3, "sweeps": 4, "vocabulary": PUBLIC, "evaluate": False}


@pytest.mark.parametrize("mode", [{}, SOUND], ids=["clear", "sound"])
def test_a_resumed_run_has_the_same_alpha(mode, tmp_path):
    whole = prepared(tmp_path / "whole", PARTIES, {**CONSENSUS, **mode})
    model = finish(whole)
    cut = prepared(tmp_path / "cut", PARTIES, {**CONSENSUS, **mode})
    for number in (2, 4):
        with pytest.raises(Interrupted):
            finish(cut, observe=interrupt_at(number))
    resumed = finish(cut)
    assert resumed.alpha.tobytes() == model.alpha.tobytes()
    assert np.ptp(model.alpha) > 0
    assert outcome(cut)["server"] == outcome(whole)["server"]


@pytest.mark.parametrize(
    "method", [tt.Consensus(**CONSENSUS), tt.FTM(**FTM | {"evaluate": True})], ids=["consensus", "ftm"]
)
def test_rounds_are_scored_with_the_alpha_of_the_model(method):
    model = method.fit(PARTIES, heldout=0.3)
    heldout = [parts_of(corpus, 0.3)["heldout"].encode(model.vocabulary) for corpus in PARTIES.values()]
    scores = [completion(model.topic_word.astype(np.float32), model.alpha, documents) for documents in heldout]
    assert model.history[-1]["perplexity"] == pytest.approx(sum(scores[1:], start=scores[0]).perplexity, rel=1e-12)
    assert np.ptp(model.alpha) > 0


@pytest.mark.parametrize("kind", ["lda", "sentence"])
@pytest.mark.parametrize("mode", [{}, SOUND], ids=["clear", "sound"])
def test_ftm_s_parties_keep_their_alpha(mode, kind, tmp_path):
    method = tt.FTM(**FTM, **mode, model=kind, learn_alpha=True)  # which mode `sound` does only if asked
    model = method.fit(PARTIES, directory=tmp_path / "run", heldout=0.0)
    run = Run.open(tmp_path / "run")
    for name in PARTIES:
        host = open_party(run, name)
        own = host.answers.state.alpha
        composed = kept_model(run, name)
        assert np.array_equal(composed["alpha"], own)
        assert np.ptp(own) > 0
        sizes = model.local[name].weights
        assert not np.allclose(model.local[name].alpha, own)  # the server has the sizes of topics to go by, no more
        assert model.local[name].alpha.sum() == pytest.approx(5.0)
        assert np.array_equal(np.argsort(model.local[name].alpha), np.argsort(sizes))
    assert not [row for row in disclosure_rows(run) if "alpha" in row["what"] or "histogram" in row["what"]]


@pytest.mark.parametrize("mode", [{}, SOUND], ids=["clear", "sound"])
def test_ftm_learns_alpha_by_default_but_under_noise(mode, tmp_path):
    assert tt.FTM(**FTM, **mode).learn_alpha is (not mode)
    tt.FTM(**FTM, **mode).fit(PARTIES, directory=tmp_path / "run", heldout=0.0)
    own = open_party(Run.open(tmp_path / "run"), next(iter(PARTIES))).answers.state.alpha
    assert bool(np.ptp(own) > 0) is (not mode)


def kept_model(run, name):
    return decode(read_checked(run.party_directory(name) / "kept" / "composed.safetensors"))


def test_ftm_s_parties_go_on_from_their_alpha(monkeypatch):
    given, found = [], []
    train = local.lda.train

    def spy(words, documents, V, K, alpha, *rest, **how):
        state = train(words, documents, V, K, alpha, *rest, **how)
        given.append(alpha)
        found.append(state.alpha)
        return state

    monkeypatch.setattr(local.lda, "train", spy)
    tt.FTM(**FTM).fit({"north": PARTIES["north"]})
    assert np.array_equal(given[0], np.full(3, 5 / 3))
    assert [a.tobytes() for a in given[1:]] == [a.tobytes() for a in found[:-1]]
    assert all(np.ptp(a) > 0 for a in found)  # in each round, though its sweeps are few


def test_a_prior_by_size_keeps_its_sum_and_rules_nothing_out():
    prior = by_size(5.0, np.array([30, 0, 10]))
    assert prior.sum() == pytest.approx(5.0)
    assert prior.min() > 0
    assert np.all(np.diff(prior[[1, 2, 0]]) > 0)


def test_baselines_report_the_alpha_that_was_learned(monkeypatch, tmp_path):
    found = []
    train = local.lda.train
    monkeypatch.setattr(local.lda, "train", lambda *a, **k: found.append(train(*a, **k)) or found[-1])
    model = tt.Alone(topics=3, sweeps=4, vocabulary=PUBLIC).fit(PARTIES, directory=tmp_path / "run")
    assert [own.alpha.tobytes() for own in model.local.values()] == [state.alpha.tobytes() for state in found]


@pytest.mark.parametrize("method", [tt.FTM(**FTM), tt.Consensus(**CONSENSUS)], ids=["ftm", "consensus"])
def test_a_party_chooses_between_models_with_learned_priors(method):
    model = method.fit(PARTIES, validation=0.3)
    for name in PARTIES:
        alone = model.choices[name].alone
        assert not np.isclose(alone.alpha.sum(), 5.0)
