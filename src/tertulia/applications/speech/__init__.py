"""Speech recognition with topics: rescoring of n-best lists, and a fair comparison (extra `asr`).

>>> from tertulia.applications import speech
>>> heldout = speech.read_nbest("heldout.jsonl")  # doctest: +SKIP
>>> weights = speech.tune(heldout, topics)  # doctest: +SKIP
>>> for choice in speech.rescore(speech.read_nbest("calls.jsonl"), topics, weights):  # doctest: +SKIP
...     print(" ".join(choice.words))
"""

from tertulia.applications.speech.evaluation import (
    Grid,
    Interval,
    Score,
    compare,
    error_rate,
    tune,
    unigram,
    word_errors,
    wrong_contexts,
)
from tertulia.applications.speech.nbest import Hypothesis, Utterance, read_nbest, write_nbest
from tertulia.applications.speech.ngrams import NGrams
from tertulia.applications.speech.rescoring import Choice, Weights, contexts, rescore, with_language

__all__ = [
    "Choice",
    "Grid",
    "Hypothesis",
    "Interval",
    "NGrams",
    "Score",
    "Utterance",
    "Weights",
    "compare",
    "contexts",
    "error_rate",
    "read_nbest",
    "rescore",
    "tune",
    "unigram",
    "with_language",
    "word_errors",
    "write_nbest",
    "wrong_contexts",
]
