"""Attacks with their numbers (`tests/helpers`): the share that each gets right, by mode, beside that of a guess.

In `sound` a word is protected (epsilon 4), in `doc` a document (epsilon 3); `null` where the attack has no such mode.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.audits.cells import cell, helper

SEEDS, QUICK_SEEDS = 20, 3
MODELS, QUICK_MODELS = 128, 16
DOCUMENTS = 200  # that may be members
PLACES = ("clear", "paper", "sound", "doc")


def attacks(quick: bool) -> dict[str, Any]:
    """Return `{"attacks": {name: {clear, paper, sound, doc, guess}}}`, and standard errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {**_readings(quick), **_gradients(quick), **_steered(quick), "membership": _membership(quick)}
    return {
        "attacks": {name: {**rows, "guess": guess} for name, (rows, _, guess) in found.items()},
        "attack_errors": {name: errors for name, (_, errors, _) in found.items()},
    }


Row = tuple[dict[str, float | None], dict[str, float], float]


def _row(values: dict[str, list[float]], guess: float) -> Row:
    """Return the mean by mode, its standard error, and what a guess gets."""
    rows = {mode: round(float(np.mean(values[mode])), 3) if mode in values else None for mode in PLACES}
    errors = {mode: round(float(np.std(own, ddof=1) / np.sqrt(len(own))), 3) for mode, own in values.items()}
    return rows, errors, round(guess, 3)


def _seeds(
    name: str, attack: Callable[[str, int], float], modes: tuple[str, ...], seeds: int
) -> dict[str, list[float]]:
    return {
        mode: [cell(f"attack, {name}, {mode}, {seed}", partial(attack, mode, seed)) for seed in range(seeds)]
        for mode in modes
    }


def _readings(quick: bool) -> dict[str, Row]:
    reading = helper("reading")
    seeds = QUICK_SEEDS if quick else SEEDS
    return {
        "normalisation inverted": _row(_seeds("normalisation", reading.normalisation, ("paper", "sound"), seeds), 0.25),
        "lone words": _row(_seeds("lone", reading.lone, PLACES, seeds), 0.5),
        "RRP averaged": _row(_seeds("averaged", reading.averaged, ("paper", "sound"), seeds), 0.5),
        "planted documents": _row(_seeds("planted", reading.planted, PLACES, seeds), 0.5),
    }


def _gradients(quick: bool) -> dict[str, Row]:
    gradients = helper("gradients")
    seeds = QUICK_SEEDS if quick else 5
    found = {}
    for name, parties in (("documents in a gradient", 1), ("documents in a masked sum of gradients", 4)):
        attack = lambda mode, seed, parties=parties: gradients.read_off(mode, parties, seed)  # noqa: E731
        found[name] = _row(_seeds(name, attack, ("clear", "doc"), seeds), 0.0)
    return found


def _steered(quick: bool) -> dict[str, Row]:
    steering, steering_private = helper("steering"), helper("steering_private")
    corpora = steering.corpora_of_notes()
    words = tuple(sorted({word for corpus in corpora.values() for word in corpus.vocabulary.words}))
    seeds = QUICK_SEEDS if quick else 10

    def attack(mode: str, seed: int) -> list[float]:
        return [float(x) for x in steering_private.words_read(mode, corpora, words, seed=seed)]

    found = {
        mode: [cell(f"attack, steered, {mode}, {seed}", partial(attack, mode, seed)) for seed in range(seeds)]
        for mode in ("clear", "doc")
    }
    guess = float(np.mean([pair[1] for pairs in found.values() for pair in pairs]))
    return {"made-up topics": _row({mode: [pair[0] for pair in pairs] for mode, pairs in found.items()}, guess)}


def _membership(quick: bool) -> Row:
    membership = helper("membership")

    models = QUICK_MODELS if quick else MODELS
    texts, names = membership.made_up(DOCUMENTS)
    members = np.array([membership.members_of(model, DOCUMENTS) for model in range(models)])
    rows, errors = dict[str, float | None](), dict[str, float]()
    for mode in PLACES:
        query = partial(_queries, membership, mode, texts, names)
        queries = np.array([cell(f"membership, {mode}, {model}", partial(query, model)) for model in range(models)])
        found = membership.attack(queries, members)
        rows[mode], errors[mode] = round(found.accuracy, 3), round(found.spread, 3)
        errors[f"{mode}, auc"] = round(found.auc, 3)
        errors[f"{mode}, found at 1 % false"] = round(found.true_at_1_percent, 3)
    return rows, errors, 0.5


def _queries(membership: Any, mode: str, texts: list[str], names: list[str], model: int) -> list[float]:
    return [float(x) for x in membership.queries_of(mode, texts, names, model)]
