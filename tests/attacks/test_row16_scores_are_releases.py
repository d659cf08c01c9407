"""A server sends a "model" whose score is the count of a word."""

import numpy as np
import pytest

from helpers.attacks_noise import WORDS, ask, corpus_of, party
from tertulia.methods.common import evaluation
from tertulia.methods.common.evaluation import MOST_TOKENS, WORST, Candidate, clipped_sum, score
from tertulia.privacy.mechanisms import Adjacency, Unit

TEXTS = ["cold fever", "cold dose", "ache fever", "burn fever", "dose fever", "ache cold"]
NOISY = "allow_clear = false\nscore_epsilon = 0.5\n"
METHODS = ("tertulia.methods.consensus.method",)


def crafted(word: str) -> Candidate:
    """One topic in which a single word is unlikely: its count is the log likelihood's slope."""
    phi = np.ones((1, len(WORDS)))
    phi[0, WORDS.index(word)] = 1e-6
    return Candidate(WORDS, phi / phi.sum(), np.ones(1), 0.0)


def heldout_party(tmp_path, policy):
    return party(tmp_path / "north", corpus_of(TEXTS * 20, [str(i) for i in range(120)]), policy=policy, heldout=0.5,
                 methods=METHODS)  # fmt: skip


def read_out(reply, word: str) -> float:
    """How often the word is scored, if the score is exact."""
    phi = crafted(word).topic_word[0]
    other, own = np.log(phi.max()), np.log(phi[WORDS.index(word)])
    return (reply.log_likelihood - reply.tokens * other) / (own - other)


def test_a_crafted_model_reads_out_no_count(tmp_path):
    open_party = heldout_party(tmp_path / "open", "")
    true = read_out(ask(open_party, score, crafted("fever")).reply, "fever")
    assert true == pytest.approx(round(true), abs=1e-6)  # what the attack gives where clear metrics are allowed
    strict = heldout_party(tmp_path / "strict", NOISY)
    answer = ask(strict, score, crafted("fever"))
    assert answer.kind == "ok", answer.text
    assert abs(read_out(answer.reply, "fever") - true) > 1e-3
    assert strict.ledger.cost(Unit.DOCUMENT, Adjacency.ADD_REMOVE, 0.0).epsilon == pytest.approx(0.5)


def test_one_score_in_a_round_and_a_repeat_is_free(tmp_path):
    host = heldout_party(tmp_path, NOISY)
    first = ask(host, score, crafted("fever"), place=(1, 0))
    again = ask(host, score, crafted("fever"), place=(1, 0))
    assert np.array_equal(first.reply.log_likelihood, again.reply.log_likelihood)
    second = ask(host, score, crafted("cold"), place=(1, 1), previous=(1, 0))
    assert (second.kind, "one score in a round" in second.text) == ("refused", True)
    assert ask(host, score, crafted("cold"), place=(2, 0), previous=(1, 0)).kind == "ok"
    assert host.ledger.cost(Unit.DOCUMENT, Adjacency.ADD_REMOVE, 0.0).epsilon == pytest.approx(1.0)


@pytest.mark.parametrize(
    "policy", ["allow_clear = false\n", "allow_metrics = false\n", NOISY + "allow_metrics = false\n"]
)
def test_without_a_word_for_scores_there_are_none(tmp_path, policy):
    assert ask(heldout_party(tmp_path, policy), score, crafted("fever")).kind == "refused"


def test_no_model_moves_the_sum_further_than_is_charged():
    """It holds for any likelihood of one document: NaN, infinite, positive, of a long document."""
    worst = 0
    for likelihood in (np.nan, -np.inf, np.inf, 0.0, -1e300, -3.0, 1e9):
        for tokens in (0, 1, MOST_TOKENS, 10**6):
            steps = clipped_sum(np.array([likelihood]), np.array([tokens]))
            assert np.all(steps >= 0)
            worst = max(worst, int(steps.sum()))
    assert worst <= evaluation.noisy_score(1.0).sensitivity == 2 * MOST_TOKENS * WORST * 2**evaluation.GRID_BITS
