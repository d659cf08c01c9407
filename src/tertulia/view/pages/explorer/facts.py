"""The data of a model for the explorer's script: plain data of the model only, never of a document."""

from __future__ import annotations

from typing import Any

import numpy as np

from tertulia.corpus.tokens import DOTLESS, stop_words, word_pattern
from tertulia.models import Topics
from tertulia.models.compare import similarities
from tertulia.models.display import origin_of, shares_of
from tertulia.models.edits import digest_of
from tertulia.view.pages.explorer.packing import error_of, pack, squeeze_json
from tertulia.view.plane import faithful_or_none, hellinger, to_plane

# Options that the script supports.
_REPEATED = {"language", "lowercase", "min_length", "numbers", "stop_words", "extra_stop_words"}
_TOP = 50  # number of words by which topics of two models are compared


def facts_of(model: Topics, other: Topics | None = None) -> dict[str, Any]:
    """Collect the data of a model for the page."""
    packed = pack(model.topic_word)
    distances = hellinger(model.topic_word)
    places = to_plane(distances)
    return {
        "digest": digest_of(model),
        "names": model.names,
        "hidden": model.hidden,
        "weights": None if model.weights is None else model.weights.tolist(),
        "shares_of": shares_of(model),
        "alpha": model.alpha.tolist(),
        "neural": model.encoder is not None,
        "words": squeeze_json(model.vocabulary.words),
        "phi": packed.text,
        "places": places.round(4).tolist(),
        "faithful": faithful_or_none(distances, places),
        "reader": {**reader_of(model), "error": error_of(packed, model.topic_word, model.alpha)},
        "parties": _parties(model),
        "compare": None if other is None else _compared(model, other),
    }


def reader_of(model: Topics) -> dict[str, Any]:
    """Return the rules by which the script tokenises a text, or the reason why it cannot."""
    options, why = model.options, None
    if model.encoder is not None:
        by = "a neural network" if model.encoder.mixes else "vectors of words"
        why = f"This model finds a text's topics by {by}, which a page cannot run: use `tertulia transform`."
    elif options.language == "zh":
        why = "Chinese is tokenised by jieba, which a page cannot run: use `tertulia transform`."
    elif others := set(options.to_dict()) - _REPEATED:
        asked = ", ".join(sorted(others))
        why = f"Texts of this model are tokenised with options ({asked}) which a page cannot run: use the model itself."
    if why is not None:
        return {"why": why}
    unwanted = stop_words(options)
    return {
        "why": None,
        "pattern": word_pattern(options),
        "lowercase": options.lowercase,
        "dotless": options.language in DOTLESS,
        "min_length": options.min_length,
        "stop": sorted({word.lower() for word in model.vocabulary.words} & unwanted),
    }


def _parties(model: Topics) -> dict[str, Any] | None:
    """Compute the similarity of each party's nearest topic, from the models that parties have released."""
    local: dict[str, Topics] = getattr(model, "local", {})
    if not local:
        return None
    held = [similarities(model, own, _TOP).max(axis=1) for own in local.values()]
    return {"names": list(local), "held": np.round(held, 3).tolist()}


def _compared(model: Topics, other: Topics) -> dict[str, Any]:
    """Compare the topics of two models, including hidden ones, which can be shown again."""
    rows = model.unhide().compare(other).to_dicts()
    kept = ("state", "topic", "other", "other_name", "similarity", "both", "here", "there")
    return {"title": origin_of(other), "rows": [{name: row.get(name) for name in kept} for row in rows]}
