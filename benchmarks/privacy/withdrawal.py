"""How far topics move if documents are withdrawn: trained again from nothing, and continued from the earlier model.

The demo corpus has three parties. One of them withdraws 1 % of its documents, chosen at random, or all documents of one
user, who is the module with about 1 % of them: a user's documents are alike, so their topic may go with them. The
controls are two seeds without a withdrawal, and a continuation without one.

The perplexity of the withdrawn documents shows what the models still know of them: the lower, the more.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

import tertulia as tt
from benchmarks.common import say
from tertulia.corpus import Corpus
from tertulia.corpus.demo_corpus import demo_parties
from tertulia.metrics.perplexity import completion
from tertulia.metrics.similarity import match
from tertulia.models import Topics
from tertulia.privacy.home import open_home
from tertulia.privacy.withdrawals import Kind, Withdrawal

PARTY = "scipy"
SHARE = 0.01
SEEDS = (1, 2, 3)
TOPICS = 20


def measure(quick: bool) -> dict[str, Any]:
    """Return the matched cosine of topics before and after, with the controls; for each seed, and their mean."""
    logging.getLogger("tertulia.party").setLevel(logging.ERROR)  # notices of what leaves, the same in every run
    parties = {name: _with_users(corpus) for name, corpus in demo_parties().items()}
    cases: dict[str, tuple[Kind, list[str]]] = {
        "1 % of the documents": ("document", _some_documents(parties[PARTY])),
        "one user": ("user", [_user_of_one_percent(parties[PARTY])]),
    }
    found: dict[str, list[float]] = {}
    perplexity: dict[str, list[float]] = {}
    for seed in SEEDS[:1] if quick else SEEDS:
        before, other = (_fit(parties, seed=one, quick=quick) for one in (seed, seed + 100))
        found.setdefault("another seed", []).append(_moved(before, other))
        control = _fit(parties, seed=seed, quick=quick, start_from=before)
        found.setdefault("continued, nothing withdrawn", []).append(_moved(before, control))
        for name, (kind, names) in cases.items():
            with TemporaryDirectory() as home:
                _withdraw(Path(home), kind, names)
                again = _fit(parties, seed=seed, quick=quick, home=home)
                found.setdefault(f"{name}, from nothing", []).append(_moved(before, again))
                gone_on = _fit(parties, seed=seed, quick=quick, home=home, start_from=before)
                found.setdefault(f"{name}, continued", []).append(_moved(before, gone_on))
            withdrawn = _documents(parties[PARTY], kind, names)
            models = {"before": before, "continued, nothing withdrawn": control}
            for how, model in {**models, "from nothing": again, "continued": gone_on}.items():
                perplexity.setdefault(f"{name}, {how}", []).append(_perplexity(model, withdrawn))
        say(f"withdrawal, seed {seed}: " + ", ".join(f"{name} {values[-1]:.3f}" for name, values in found.items()))
    return {
        "withdrawal": {
            "documents": {party: corpus.n_documents for party, corpus in parties.items()},
            "withdrawn": {name: _documents(parties[PARTY], *case).n_documents for name, case in cases.items()},
            "match": {name: [round(value, 3) for value in values] for name, values in found.items()},
            "mean": {name: round(float(np.mean(values)), 3) for name, values in found.items()},
            "perplexity of the withdrawn": {
                name: [round(value) for value in values] for name, values in perplexity.items()
            },
        }
    }


def _with_users(corpus: Corpus) -> Corpus:
    return replace(corpus, table=corpus.table.with_columns(pl.col("label").alias("user")))


def _some_documents(corpus: Corpus) -> list[str]:
    chosen = np.random.default_rng(0).choice(corpus.n_documents, round(SHARE * corpus.n_documents), replace=False)
    return [str(corpus.table["id"][int(place)]) for place in chosen]


def _user_of_one_percent(corpus: Corpus) -> str:
    """Return the user whose number of documents is nearest to 1 % of all; of equal ones the first by name."""
    counts = corpus.table["user"].value_counts().sort("user")
    distance = (counts["count"] - SHARE * corpus.n_documents).abs()
    return str(counts["user"][distance.arg_min() or 0])


def _documents(corpus: Corpus, kind: Kind, names: list[str]) -> Corpus:
    column = corpus.table["user" if kind == "user" else "id"]
    return corpus.select(column.is_in(names).to_numpy())


def _perplexity(model: Topics, documents: Corpus) -> float:
    return completion(model.topic_word, model.alpha, documents.encode(model.vocabulary), smoothing=0.01).perplexity


def _withdraw(home: Path, kind: Kind, names: list[str]) -> None:
    """Withdraw names at a home, as `tertulia withdraw` does once it has found them."""
    opened = open_home(home)
    with closing(opened.ledger) as ledger:
        ledger.withdraw([Withdrawal.of(opened.key, kind, name) for name in names])


def _fit(
    parties: Mapping[str, Corpus], *, seed: int, quick: bool, home: str | None = None, start_from: Topics | None = None
) -> Topics:
    method = tt.Consensus(topics=TOPICS, **({"rounds": 2, "sweeps": 10} if quick else {}))
    options: dict[str, Any] = {} if start_from is None else {"start_from": start_from}
    choices = {} if home is None else {PARTY: {"home": home}}
    model: Topics = method.fit(parties, seed=seed, heldout=0.0, party_settings=choices, progress=False, **options)
    return model


def _moved(before: Topics, after: Topics) -> float:
    """Return the mean cosine of the topics before with their partners after; 1: nothing has moved."""
    place = {word: v for v, word in enumerate(after.vocabulary.words)}
    columns = np.array([place.get(word, -1) for word in before.vocabulary.words])
    over = np.where(columns >= 0, after.topic_word[:, np.maximum(columns, 0)], 0.0)
    return match(before.topic_word, over)
