"""Geweke's joint distribution test (JASA 2004): is the sampler right for the model that it claims to sample?

One simulator draws topics and words from the prior. The other alternates the sampler under test, z | w, with new words
from the model. Both must have the same joint distribution: a z-score beyond `BAR` in any statistic is a failure.

Power. A statistic whose mean is off by d standard deviations gets a z-score of about d sqrt(n), n the effective number
of independent steps, which `effective_steps` estimates: with n = 500 an error of d = 0.24 is beyond the bar with a
probability of 90 %, with n = 100 one of d = 0.53. The tests name what n they have; slow ones run longer chains.
"""

import numpy as np

BAR = 4.0
BATCHES = 40


def draw(p, generator):
    """A draw from each row of unnormalised p [..., n]."""
    upto = p.cumsum(axis=-1)
    return (upto <= generator.random((*p.shape[:-1], 1)) * upto[..., -1:]).sum(axis=-1).clip(max=p.shape[-1] - 1)


def reported_words(r, n, V):
    """Of n reports: which words they name [n, V], and what these add to the likelihood [n, V]."""
    named, a = np.zeros((n, V), dtype=bool), np.zeros((n, V))
    rows = np.repeat(np.arange(n), np.diff(r.indptr))
    named[rows, r.idx], a[rows, r.idx] = True, r.a
    return named, a


def _errors(chain):
    """The squared standard error of each column's mean, by batches of the chain."""
    batches = chain.reshape(BATCHES, -1, chain.shape[1]).mean(axis=1)
    return batches.var(axis=0, ddof=1) / BATCHES


def worst_score(truth, chain):
    """The largest z-score of a statistic: of independent draws [n, statistics] against a chain [steps, statistics]."""
    error = _errors(chain) + truth.var(axis=0) / len(truth)
    return float(np.abs((chain.mean(axis=0) - truth.mean(axis=0)) / np.sqrt(error)).max())


def effective_steps(truth, chain):
    """How many independent draws the chain is worth, for the statistic that mixes worst."""
    return float((truth.var(axis=0) / _errors(chain)).min())
