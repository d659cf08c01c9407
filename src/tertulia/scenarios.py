"""The three scenarios that every paper compares, in one go: federated, centralised, each party alone.

All are scored alike, by document completion, on everybody's held-out documents; models by party are averaged.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tertulia.config import RunSettings
from tertulia.corpus import Corpus
from tertulia.corpus.recipes import read_recipe
from tertulia.errors import ConfigError
from tertulia.method_settings import AloneSettings, GFedNTMSettings, LDASettings
from tertulia.metrics.diversity import topic_diversity
from tertulia.metrics.perplexity import completion
from tertulia.models import Topics
from tertulia.runs import begin, finish
from tertulia.sources import sources_of

SCENARIOS = ("federated", "centralised", "alone")
SMOOTHING = 0.01  # the uniform distribution's share: a party alone has never seen some words


def compare(settings: RunSettings, tell: Callable[[str], None]) -> list[dict[str, Any]]:
    """Run a method and its two baselines below one directory; a row of scores each."""
    corpora = {party: read_recipe(source) for party, source in sources_of(settings).items()}
    heldout = Corpus.concatenate([corpus.split(settings.heldout)[1] for corpus in corpora.values()])
    rows = []
    for scenario in SCENARIOS:
        tell(f"training: {scenario}")
        where = str(Path(settings.directory) / scenario)
        changed = settings.changed({"method": method_in(settings, scenario), "directory": where})
        model = finish(begin(changed, corpora))
        rows.append({"scenario": scenario, **_scores(model, list(model.local.values()), heldout, scenario)})
    return rows


def method_in(settings: RunSettings, scenario: str) -> dict[str, Any]:
    """The method's own settings in a scenario; LDA's baselines are methods of their own."""
    method = settings.method.model_dump()
    if isinstance(settings.method, GFedNTMSettings):
        return {**method, "scenario": scenario}
    if scenario == "federated":
        return method
    if settings.method.name in ("alone", "centralised", "custom"):
        raise ConfigError(
            f"method.name = '{settings.method.name}': give the federated method to compare with its baselines"
        )
    shared = set(AloneSettings.model_fields) - (set() if isinstance(settings.method, LDASettings) else {"sampler"})
    common = {name: value for name, value in method.items() if name in shared}
    sweeps = method.get("sweeps", 1) * method["rounds"] + method.get("start_sweeps", 0)
    return {**common, "name": scenario, "sweeps": sweeps}


def _scores(shared: Topics, local: list[Topics], heldout: Corpus, scenario: str) -> dict[str, Any]:
    models = local if scenario == "alone" else [shared]
    found = [completion(m.topic_word, m.alpha, heldout.encode(m.vocabulary), smoothing=SMOOTHING) for m in models]
    return {
        "models": len(models),
        "topics": shared.n_topics,
        "perplexity": float(np.mean([score.perplexity for score in found])),
        "diversity": float(np.mean([topic_diversity(m) for m in models])),
    }
