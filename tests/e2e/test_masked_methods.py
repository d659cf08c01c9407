"""FedLDA and gFedNTM with secure sums: words, weights, early stopping and sizes; totals are those of the integers."""

import numpy as np
import pytest

from tertulia.corpus import Corpus
from tertulia.federation.party.secure_sums import SecureSums as Member
from tertulia.federation.secure.rings import to_integers
from tertulia.federation.server.secure_sums import SecureSums as Server
from tertulia.federation.types import replies_of, step_name
from tertulia.privacy.ledger import Ledger
from tertulia.runs.one_machine import run_on_one_machine
from tertulia.runs.settings import RunSettings

WORDS = [f"{theme}{letter}" for theme in ("fever", "river", "violin") for letter in "abcdefgh"]
PARTIES = ("east", "north", "west")
NEURAL = {"name": "gfedntm", "topics": 3, "hidden": [8, 6], "batch_size": 64, "stop_after": 1, "learning_rate": 0.3}
METHODS = {
    "fedlda": {"name": "fedlda", "topics": 3, "rounds": 3, "users_per_round": 0.6},
    "syncopt": {**NEURAL, "learning_rate": 1.5, "epochs": 6, "validation": 0.25},
    "fedavg": {**NEURAL, "epochs": 6, "validation": 0.25, "averaging": "fedavg", "local_steps": 2},
}


def corpora():
    rng = np.random.default_rng(4)
    texts = {
        p: [" ".join(rng.choice(WORDS[8 * (d % 3) :][:8], 12)) for d in range(30)] for p in ("east", "north", "west")
    }
    return {party: Corpus.from_texts([f"{text} {party}alone" for text in own]) for party, own in texts.items()}


def trained(directory, method, secure):
    listed = {"mode": "listed", "words": [*WORDS, *(f"{party}alone" for party in PARTIES)]}
    vocabulary = {**(listed if secure else {"mode": "min_parties"}), "max_share": 1.0}
    settings = RunSettings(
        directory=str(directory), heldout=0.0, seed=5, federation={"secure": secure},
        method={**METHODS[method], "vocabulary": vocabulary},
    )  # fmt: skip
    return run_on_one_machine(settings, corpora(), durable=False)


@pytest.fixture
def sums(monkeypatch):
    """Each masked sum by its place: its step, the parties' integers before they are masked, and the total."""
    sent, found, mask, unmask = {}, {}, Member.mask, Server._unmask

    def note(self, question, step, reply):
        if replies_of(step) != "standing":
            sent.setdefault(question.place, {})[self._keys.member] = step_name(step), to_integers(reply)
        return mask(self, question, step, reply)

    def compare(self, place, masked, seeds):
        totals = unmask(self, place, masked, seeds)
        if place in sent:
            step, parts = masked.step.rpartition(":")[2], [integers for _, integers in sent[place].values()]
            signed = [total.view(total.dtype.str.replace("u", "i")) for total in totals]
            found.setdefault(step, []).append(
                (len(parts), signed, [sum(column) for column in zip(*parts, strict=True)])
            )
        return totals

    monkeypatch.setattr(Member, "mask", note)
    monkeypatch.setattr(Server, "_unmask", compare)
    return found


@pytest.mark.parametrize("method", METHODS)
def test_masked_totals_are_those_of_the_integers_and_the_model_that_of_a_plain_run(method, sums, tmp_path):
    masked = trained(tmp_path / "masked", method, secure=True)
    for step, totals in sums.items():
        for parties, found, wanted in totals:
            assert parties == 3, step
            assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True)), step
    plain = trained(tmp_path / "plain", method, secure=False)
    assert masked.vocabulary.words == plain.vocabulary.words
    assert set(masked.vocabulary.words) == set(WORDS)  # stage 0: no word of one party
    if method == "fedlda":
        assert np.array_equal(masked.topic_word, plain.topic_word)
        assert [r.get("users") for r in masked.history] == [r.get("users") for r in plain.history]
        return
    assert np.isclose(masked.history[1]["loss"], plain.history[1]["loss"], rtol=1e-4)  # weights of the mean
    scores, expected = ([r["validation"] for r in run.history if "validation" in r] for run in (masked, plain))
    assert 2 <= len(scores) == len(expected) < 6  # early stopping, before the last epoch
    assert np.allclose(scores, expected, rtol=1e-2)
    assert {"count_documents", "validate", "sum_sizes"} <= set(sums)
    sizes = np.asarray(masked.weights)
    assert np.isclose(sizes.sum(), 1)
    assert sizes.std() > 0


@pytest.mark.parametrize("channel", ["krr", "subset", "laplace"])
def test_consensus_in_mode_sound_starts_from_masked_sums_of_reports(channel, sums, tmp_path):
    method = {
        "name": "consensus",
        "topics": 3,
        "mode": "sound",
        "channel": channel,
        "epsilon": 6.0,
        "beta": 0.1,
        "start_rounds": 2,
        "rounds": 2,
        "sweeps": 2,
        "vocabulary": {"mode": "public", "words": WORDS},
    }
    settings = RunSettings(directory=str(tmp_path / "run"), seed=5, federation={"secure": True}, method=method)
    model = run_on_one_machine(settings, corpora(), durable=False)
    assert {step: len(totals) for step, totals in sums.items() if step != "score"} == {
        "count_tokens": 1, "profile_words": 1, "expect": 2, "count_together": 2,
    }  # fmt: skip
    assert all(
        parties == 3 and all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))
        for totals in sums.values()
        for parties, found, wanted in totals
    )
    assert model.n_topics == 3
    for party in PARTIES:
        releases = Ledger(tmp_path / "run" / "parties" / party / "ledger.sqlite").releases()
        assert {release.what for release in releases if release.charges} == {"reports of tokens"}
        assert {release.parents for release in releases if release.what != "reports of tokens"} == {(releases[0].id,)}
