"""The benchmark's beam search, on small random models."""

import itertools

import numpy as np
import pytest

from benchmarks.applications.speech.beam import beam_search
from tertulia.errors import InputError

START, END, V = 0, 1, 5


class Random:
    """A model whose next token depends on all tokens so far, through a state that beams must carry along."""

    def __init__(self, seed, spread=2.0):
        self.seed, self.spread, self.states = seed, spread, [()]

    def log_probs(self, tokens):
        logits = np.random.default_rng([self.seed, *tokens]).normal(0, self.spread, V)
        logits[START] = -np.inf
        return logits - np.log(np.exp(logits).sum())

    def __call__(self, parents, tokens):
        before = [self.states[parent] for parent in parents]
        self.states = [(*state, int(token)) for state, token in zip(before, tokens, strict=True)]
        return np.stack([self.log_probs(state) for state in self.states])

    def score(self, tokens):
        whole = (START, *tokens, END)
        return sum(self.log_probs(whole[:i])[whole[i]] for i in range(1, len(whole)))


def greedy(model, most):
    tokens = []
    for _ in range(most):
        token = int(np.argmax(model.log_probs((START, *tokens))))
        if token == END:
            return tuple(tokens)
        tokens.append(token)
    return None


@pytest.mark.parametrize("seed", range(40))
def test_beam_search_of_width_1_is_greedy_and_wider_ones_are_never_worse(seed):
    expected = greedy(Random(seed), 6)
    (first,) = beam_search(Random(seed), START, END, width=1, most_tokens=6)
    if expected is None:
        return
    assert first.tokens == expected
    assert first.score == pytest.approx(Random(seed).score(expected))
    for width in (2, 3, 8):
        best = beam_search(Random(seed), START, END, width=width, most_tokens=6)[0]
        assert best.score >= first.score - 1e-12
        assert best.score == pytest.approx(Random(seed).score(best.tokens))


def test_a_beam_as_wide_as_everything_finds_the_best_of_all():
    model = Random(7)
    every = [tokens for n in range(4) for tokens in itertools.product(range(2, V), repeat=n)]
    best = sorted(every, key=lambda tokens: -model.score(tokens))[:5]
    found = beam_search(Random(7), START, END, width=200, most_tokens=4, n_best=5)
    assert [beam.tokens for beam in found] == best
    assert [beam.score for beam in found] == sorted((beam.score for beam in found), reverse=True)


def test_the_greedy_sequence_keeps_its_place():
    """A likely first token leads to poor sequences: a plain beam of 2 would lose the better greedy sequence."""
    table = {
        (0,): [0, 0, 0.4, 0.3, 0.3],
        (0, 2): [0, 0.34, 0.33, 0.33, 0],
        (0, 3): [0, 0.0, 0.5, 0.5, 0],
        (0, 4): [0, 0.0, 0.5, 0.5, 0],
    }
    states = [()]

    def step(parents, tokens):
        states[:] = [(*states[p], int(t)) for p, t in zip(parents, tokens, strict=True)]
        with np.errstate(divide="ignore"):
            return np.log([table.get(state, [0, 0.01, 0.33, 0.33, 0.33]) for state in states])

    found = beam_search(step, START, END, width=2, most_tokens=5)
    assert found[0].tokens == (2,)
    assert found[0].score == pytest.approx(np.log(0.4 * 0.34))


def test_sequences_that_do_not_end_are_returned_as_they_are():
    def step(parents, tokens):
        return np.log(np.tile([1e-9, 1e-300, 0.7, 0.2, 0.1], (len(tokens), 1)))

    found = beam_search(step, START, END, width=3, most_tokens=2, n_best=2)
    assert [beam.tokens for beam in found] == [(2, 2), (2, 3)]
    with pytest.raises(InputError, match="at least 1"):
        beam_search(step, START, END, width=0, most_tokens=2)
