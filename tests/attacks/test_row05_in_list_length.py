"""The server picks a word list and reads the number of reports: a word off the list was dropped, so it was counted."""

import numpy as np
import pytest

from helpers.attacks_words import ask, make_party
from tertulia.federation.codec import encode
from tertulia.kernels.pctd import unit_noise
from tertulia.kernels.reports import reports
from tertulia.methods.common import local_lda as local
from tertulia.methods.common.lda_settings import Training
from tertulia.methods.consensus import method as consensus
from tertulia.methods.fedlda import method as fedlda
from tertulia.methods.fedlda.settings import UserSettings
from tertulia.methods.ftm import method as ftm
from tertulia.methods.pctd import method as pctd
from tertulia.methods.pctd.settings import UnitNoise, UnitSettings

WORDS = ("diabetes", "fever", "cough", "pain")
NOTES = ["diabetes fever. cough plum diabetes.", "pain fever cough. diabetes pain fever.", "fever pain. cough cough."]
OTHER = [note.replace("diabetes", "cherry") for note in NOTES]  # as long, and not a word of it on the list
ASKS = 80  # one-token notes, half of them with the word


def training(**settings) -> Training:
    return Training(**{"mode": "sound", "epsilon": 2.0, "topics": 2, "sweeps": 4, **settings})


def local_task(**settings):
    return ftm.train_local, ftm.LocalTask(WORDS, training(**settings), None, with_sizes=True)


def shared_task():
    counts = np.ones((2, len(WORDS)))
    return consensus.count_together, consensus.Shared(WORDS, training(), counts, np.ones(2), 0, adds_up=True)


def broadcast():
    settings = UserSettings(mode="sound", epsilon=2.0)
    return fedlda.count_reports, fedlda.Broadcast(WORDS, settings, np.zeros((2, len(WORDS))), 0)


QUESTIONS = {
    **{f"ftm-{c}": (ftm, *local_task(channel=c)) for c in ("krr", "subset", "laplace")},
    "ftm-sentence": (ftm, *local_task(model="sentence")),
    "ftm-warp": (ftm, *local_task(sampler="warp")),
    "consensus": (consensus, *shared_task()),
    "fedlda": (fedlda, *broadcast()),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_answers_are_a_function_of_reports_alone_whichever_words_are_listed(name, tmp_path, monkeypatch):
    """The reports of a corpus are replaced by those of fixed words: the true words can show in nothing else."""

    def fixed(words, documents, channel, keys, first=0, last=None, threads=1):
        return reports(np.arange(len(words)) % channel.V, channel, b"k" * 32, "fixed", first, last, threads)

    monkeypatch.setattr(local, "reports_of_documents", fixed)
    monkeypatch.setattr(fedlda, "reports_of_documents", fixed)
    method, step, message = QUESTIONS[name]
    answers = [
        ask(make_party(tmp_path / f"{i}", notes, method, noise_key="42" * 32), step, message)
        for i, notes in enumerate((NOTES, OTHER))
    ]
    assert [a.kind for a in answers] == ["ok", "ok"]
    assert encode(answers[0].reply) == encode(answers[1].reply)


def test_nobody_tells_better_than_epsilon_allows_whether_a_word_is_listed(tmp_path):
    words = ("diabetes", "fever")
    message = ftm.LocalTask(words, training(epsilon=1.0, topics=1), None, with_sizes=True)
    right = np.zeros(2)  # of two attackers: one looks whether there is an answer at all, the other reads it
    for i in range(ASKS):
        there = i % 2 == 0
        host = make_party(tmp_path / f"{i}", ["diabetes" if there else "cherry"], ftm, noise_key=f"{i:064x}")
        answer = ask(host, ftm.train_local, message)
        answered = answer.kind == "ok"
        read = answered and answer.reply.topic_word[0, 0] > answer.reply.topic_word[0, 1]
        right += [answered == there, read == there]
    best = np.e / (1 + np.e)  # of any attacker, at epsilon 1
    assert right.max() <= ASKS * best + 4 * np.sqrt(ASKS * best * (1 - best)) < ASKS


def test_where_units_of_pctd_end_is_no_word_s_doing(tmp_path, monkeypatch):
    seen, draw = [], unit_noise.on_all_words
    monkeypatch.setattr(unit_noise, "on_all_words", lambda found, *rest: seen.append(found) or draw(found, *rest))
    noise = UnitNoise(mode="paper", sigma=1.0, rounds=1)
    task = pctd.UnitTask(WORDS, UnitSettings(), noise, np.full((2, len(WORDS)), 0.25))
    for i, notes in enumerate((NOTES, OTHER)):
        answer = ask(make_party(tmp_path / f"{i}", notes, pctd), pctd.expect, task, verb="sum")
        assert answer.kind == "ok"
        assert answer.reply.counts.shape == (2, len(WORDS))
    assert np.array_equal(seen[0].bounds, seen[1].bounds)
    assert np.array_equal(seen[0].documents, seen[1].documents)
