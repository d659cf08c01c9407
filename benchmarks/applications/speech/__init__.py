"""Topics in speech recognition: word error rates on real decoders' n-best lists (iFTM, table 2).

Eight synthetic voices speak sentences of finance and medicine, noise is added, and pocketsphinx and Moonshine decode
them; rescoring by (30)-(31) then chooses among each decoder's hypotheses. P_LM is pocketsphinx's trigram model of
general US English, for both. All settings are tuned on utterances of other documents.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.applications.speech import decode, parties, texts
from benchmarks.common import say
from tertulia import Corpus, Topics
from tertulia.applications import speech
from tertulia.applications.speech import NGrams, Score, Utterance
from tertulia.applications.speech.evaluation import Interval, error_rate

RESULTS = Path(__file__).parents[2] / "results" / "applications"
NUMBERS = {True: (24, 100), False: parties.FULL}  # quick: utterances to tune and to test on
SEEDS = {True: (0,), False: (0, 1, 2)}  # of the topic models
GRID = speech.Grid()


def run(quick: bool, *, seeds: Sequence[int] | None = None, only_decoded: bool = False) -> dict[str, Any]:
    """Measure word error rates; return the stored result of a full run with the same configuration.

    With `only_decoded`, nothing is spoken or decoded: only utterances with stored n-best lists are used.
    """
    seeds = SEEDS[quick] if seeds is None else seeds
    ready = decode.decoders()
    tuning, test = texts.utterances(*NUMBERS[quick])
    if only_decoded:
        there = set.intersection(*(set(decode.kept(decode.path_of(decoder))) for decoder in ready))
        tuning, test = ([s for s in part if s.id in there] for part in (tuning, test))
    configuration = {
        "decoders": [decode.configuration(decoder) for decoder in ready],
        "topics": parties.sizes(quick),
        "utterances": [len(tuning), len(test)],
        "seeds": list(seeds),
        "grid": [GRID.mix, GRID.lm_weight, GRID.penalty],
        "version": 1,
    }
    path = RESULTS / f"speech-{decode.hash_of(configuration)}.json"
    if path.is_file() and not quick:
        say(f"{path.name} was measured before: it is returned as it is; remove it to measure again")
        found: dict[str, Any] = json.loads(path.read_text())
        return found
    lists = decode.decode([*tuning, *test], ready)
    found = measure(lists, {s.id for s in test}, quick, seeds)
    found |= {"utterances": len(test), "tuning_utterances": len(tuning), "seeds": list(seeds)}
    found |= {"hash": decode.hash_of(configuration), "configuration": configuration}
    if not quick:
        RESULTS.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=1) + "\n")
    return found


def measure(lists: dict[str, list[Utterance]], test: set[str], quick: bool, seeds: Sequence[int]) -> dict[str, Any]:
    """Train all models, rescore with each, and collect the results."""
    held = parties.documents(quick)
    corpora = parties.corpora(held)
    pooled = Corpus.concatenate(list(corpora.values()))
    folder = decode.hash_of(parties.sizes(quick))
    models = {seed: parties.train(corpora, quick, seed, folder) for seed in seeds}
    say("counting n-grams of the parties' documents")
    ngrams = NGrams.train(parties.sentences_of(held), order=3, min_count=2)
    found: dict[str, Any] = {
        name: {} for name in ("wer", "wer_in_domain_ngram", "differences", "limits", "weights", "topics")
    }
    for decoder, utterances in lists.items():
        halves = tuple([u for u in utterances if (u.id in test) is part] for part in (False, True))
        scores = [_scores(models[seed], pooled, *halves) for seed in seeds]
        found["wer"][decoder], found["differences"][decoder] = _intervals(scores, halves[1])
        found["weights"][decoder] = {name: vars(score.weights) for name, score in scores[0].items()}
        found["topics"][decoder] = {name: score.topics.n_topics for name, score in scores[0].items() if score.topics}
        found["limits"][decoder] = limits(halves[1])
        other = tuple(speech.with_language(half, ngrams) for half in halves)
        scores = [_scores(models[seed], pooled, *other) for seed in seeds]
        found["wer_in_domain_ngram"][decoder], _ = _intervals(scores, halves[1])
        say(f"{decoder}: {found['wer'][decoder]}")
    found["topics_tried"] = {name: [topics.n_topics for topics in tried] for name, tried in models[seeds[0]].items()}
    return found


def _scores(
    models: dict[str, list[Topics]], pooled: Corpus, heldout: list[Utterance], test: list[Utterance]
) -> dict[str, Score]:
    control = speech.unigram(pooled, models["pooled"][0])
    # Documents of two domains alternate: the next one is of the other domain, the one after that of the same.
    wrong = {"wrong_topic_control": 1, "wrong_topic_same_domain": 2}
    return speech.compare(models, heldout, test, control=control, wrong=wrong, grid=GRID)


def _intervals(scores: Sequence[dict[str, Score]], test: list[Utterance]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Compute word error rates, and paired differences to `none`, of the mean over seeds."""
    lengths, documents = [len(u.reference or ()) for u in test], [u.document for u in test]
    errors = {name: np.mean([score[name].errors for score in scores], axis=0) for name in scores[0]}
    wer = {name: _rounded(error_rate(wrong, lengths, documents)) for name, wrong in errors.items()}
    base = errors["none"]
    return wer, {name: _rounded(error_rate(wrong - base, lengths, documents)) for name, wrong in errors.items()}


def limits(test: list[Utterance]) -> dict[str, Any]:
    """Measure the decoder's own choice, the best possible choice, and the words that no hypothesis has."""
    lengths, documents = [len(u.reference or ()) for u in test], [u.document for u in test]
    all_errors = [
        speech.word_errors([u.reference or ()] * len(u.hypotheses), [h.words for h in u.hypotheses]) for u in test
    ]
    first = [int(errors[0]) for errors in all_errors]
    oracle = [int(errors.min()) for errors in all_errors]
    heard = [{word for h in u.hypotheses for word in h.words} for u in test]
    missing = sum(word not in words for u, words in zip(test, heard, strict=True) for word in u.reference or ())
    return {
        "first_pass": _rounded(error_rate(first, lengths, documents)),
        "oracle": _rounded(error_rate(oracle, lengths, documents)),
        "never_heard": round(missing / sum(lengths), 4),
        "hypotheses": round(float(np.mean([len(u.hypotheses) for u in test])), 1),
    }


def _rounded(interval: Interval) -> list[float]:
    return [round(value, 4) for value in interval]
