"""A model card: what a model is, how it was trained, what protects the documents, for people and for model hubs.

A card names no party, unless that party has agreed. It holds no document and no length of one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from tertulia import __version__
from tertulia._plain import plain
from tertulia.errors import InputError
from tertulia.metrics.diversity import topic_diversity
from tertulia.models import Topics
from tertulia.runs.directory import Run
from tertulia.view.totals import epsilon
from tertulia.view.verdicts import Summary, number_of, summaries

_WORDS = 10  # of a topic
_UNITS = {"token": "a word", "document": "a document", "user": "all documents of a user"}
_ADJACENT = {"substitute": "replaced by another", "add-remove": "there or not"}
_PAPERS = {
    "ftm": "Jiang, Song, Tong et al., *Federated Topic Modeling*, CIKM 2019; Jiang, Tong, Song et al., TIST 2021",
    "fedlda": "Wang, Tong and Shi, *Federated LDA with Local Differential Privacy*, AAAI 2020",
    "pctd": "Shi et al., *Federated Topic Discovery: A Semantic Consistent Approach*, IEEE Intelligent Systems, 2020",
    "gfedntm": "Calvo-Bartolomé, Arenas-García et al., *gFedNTM*, 2022",
    "lda": "Blei, Ng and Jordan, *Latent Dirichlet Allocation*, JMLR 2003",
    "consensus": "distributed LDA: Newman, Asuncion, Smyth and Welling, JMLR 2009",
}


def card(
    model: Topics,
    path: str | Path | None,
    agreed: Collection[str],
    metrics: Mapping[str, float] | None,
    run: str | Path | None,
    delta: float,
) -> str:
    """Write the card of a model, see `Topics.card`."""
    strangers = sorted(set(agreed) - set(_parties(model)))
    if isinstance(agreed, str) or strangers:
        named = agreed if isinstance(agreed, str) else strangers[0]
        raise InputError(f"agreed: '{named}' took no part in this model: list the parties that may be named, or none")
    sections = [
        _head(model),
        f"# A topic model of {model.n_topics} topics\n\n{_what(model, agreed)}",
        "## Topics\n\n" + _topics(model),
        "## Privacy\n\n" + _privacy(model, _run_or_none(model, run), delta),
        "## Measures\n\n" + _measures(model, metrics or {}),
        "## Use\n\n" + _use(model),
        "## Cite\n\n" + _cite(model),
    ]
    text = "\n\n".join(sections) + "\n"
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text


def _method(model: Topics) -> str:
    return str(model.provenance.get("method", "topics"))


def _parties(model: Topics) -> list[str]:
    return [*(model.provenance.get("parties") or ()), *(model.provenance.get("absent") or ())]


def _head(model: Topics) -> str:
    """Return what a model hub reads: YAML between two lines of dashes."""
    tags = ["topic-modeling", "tertulia", _method(model)]
    tags += ["federated-learning"] if len(_parties(model)) > 1 else []
    lines = ["---", "library_name: tertulia", f"language: {model.options.language}", "tags:"]
    return "\n".join([*lines, *(f"  - {tag}" for tag in tags), "---"])


def _what(model: Topics, agreed: Collection[str]) -> str:
    here, absent = model.provenance.get("parties") or (), model.provenance.get("absent") or {}
    lines = [f"{model.n_topics} topics over {len(model.vocabulary):,} words, trained by `{_method(model)}`."]
    if here:
        named = [party for party in here if party in agreed]
        known = f", among them {', '.join(map(plain, named))}" if named else ""
        away = f" {len(absent)} more did not take part." if absent else ""
        lines.append(
            f"Parties: {len(here)}{known}.{away} Their documents did not leave them, and are not in this model."
        )
    return " ".join(lines)


def _topics(model: Topics) -> str:
    """Return a table of the topics that are not hidden."""
    rows = ["| topic | share | words |", "|---|---|---|"]
    for topic in model:
        if topic.number not in model.hidden:
            share = "" if topic.weight is None else f"{topic.weight:.1%}"
            name = f"{topic.number} {_cell(topic.name)}".strip()
            rows.append(f"| {name} | {share} | {_cell(' '.join(word for word, _ in topic.words[:_WORDS]))} |")
    return "\n".join(rows)


def _cell(text: str) -> str:
    return plain(text).replace("|", "\\|")


def _run_or_none(model: Topics, given: str | Path | None) -> Run | None:
    place = given or getattr(model, "directory", None)
    if place is None or (given is None and not (Path(place) / "run.json").exists()):
        return None
    run = Run.open(Path(place))
    if given is not None and model.provenance.get("run") not in (None, run.id):
        raise InputError(f"run = {given}: this model is of another run")
    return run


def _privacy(model: Topics, run: Run | None, delta: float) -> str:
    if len(_parties(model)) == 0:
        return "It was trained on documents in one place, without noise: words of single documents may show in it."
    if run is None:
        stated = model.provenance.get("config", {}).get("method", {})
        claims = {name: stated[name] for name in ("mode", "epsilon", "delta", "user_epsilon") if stated.get(name)}
        said = ", ".join(f"{name} = {value}" for name, value in claims.items()) or "no noise"
        return (
            f"Settings: {said}. The run's ledgers were not at hand, so no real epsilon is stated: "
            "`card(run=DIRECTORY)`, or `tertulia privacy` at each party, computes it."
        )
    found = summaries(run, delta)
    worst = max(found, key=lambda one: _worst(one.totals))
    rows = ["| of one party | real epsilon, the largest of all parties | delta |", "|---|---|---|"]
    for key in dict.fromkeys((row["unit"], row["adjacency"]) for one in found for row in one.totals):
        largest = max(_epsilons(found, key))
        rows.append(f"| {_UNITS[key[0]]}, {_ADJACENT.get(key[1], key[1])} | {epsilon(largest)} | {delta:g} |")
    return f"{worst.verdict.partition('. ')[0].rstrip('.')}. Ledgers of {len(found)} parties:\n\n" + "\n".join(rows)


def _worst(totals: list[dict[str, Any]]) -> float:
    return max((number_of(row["real epsilon"]) for row in totals), default=0.0)


def _epsilons(found: list[Summary], key: tuple[str, str]) -> list[float]:
    rows = (row for one in found for row in one.totals if (row["unit"], row["adjacency"]) == key)
    return [number_of(row["real epsilon"]) for row in rows]


def _measures(model: Topics, given: Mapping[str, float]) -> str:
    history: Any = getattr(model, "history", None) or ({},)
    values: dict[str, float] = {"diversity of the top 10 words": topic_diversity(model, top=10)}
    perplexity = history[-1].get("perplexity")
    if isinstance(perplexity, float) and math.isfinite(perplexity):
        values["held-out perplexity"] = perplexity
    values |= given
    return "\n".join(["| measure | value |", "|---|---|", *(f"| {_cell(k)} | {v:.4g} |" for k, v in values.items())])


def _use(model: Topics) -> str:
    return (
        "```python\nimport tertulia as tt\n\n"
        'model = tt.load("DIRECTORY")                # topics.safetensors and model.json\n'
        'shares = model.transform(["a new text"])    # one row for each text, one column for each topic\n```\n\n'
        f"Texts are in the language `{model.options.language}`. Topics describe the documents that they were trained "
        "on; they are no labels of people, and words that stand together are no facts."
    )


def _cite(model: Topics) -> str:
    paper = _PAPERS.get(_method(model))
    lines = [f"The Tertulia developers, *Tertulia: federated topic modelling*, version {__version__}."]
    return "\n".join([*lines, *([f"Method: {paper}."] if paper else [])])
