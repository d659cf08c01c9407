"""Comparison of parties: each infers the topics of its documents under a shared model and releases their totals.

>>> from tertulia.applications import compare
>>> found = compare.parties(model, {"north": texts, "south": more_texts})  # doctest: +SKIP
>>> found.table()  # doctest: +SKIP
>>> found.shared(), found.private(), found.similarity()  # doctest: +SKIP
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
import polars as pl

from tertulia.applications.comparison import Comparison
from tertulia.corpus import Corpus
from tertulia.corpus.inputs import Documents, as_corpus
from tertulia.errors import ConfigError, InputError
from tertulia.methods.prevalence import method
from tertulia.methods.prevalence.method import Measured
from tertulia.methods.prevalence.settings import PrevalenceSettings
from tertulia.methods.registry import CustomSettings
from tertulia.models import Topics
from tertulia.privacy.accounting import guarantee_of
from tertulia.privacy.mechanisms.noisy_tables import STEP
from tertulia.runs.directory import Run
from tertulia.runs.one_machine import open_party, run_on_one_machine
from tertulia.runs.settings import RunSettings

__all__ = ["Comparison", "of_run", "parties", "plan", "settings_of_run"]


class CompareOptions(TypedDict, total=False):
    """Options of a comparison: the fields of `PrevalenceSettings` except the model."""

    weigh: Literal["documents", "tokens"]
    by: Literal["month", "quarter", "year"] | None
    since: str | None
    until: str | None
    min_documents_per_cell: int
    epsilon: float | None
    delta: float
    adjacency: Literal["add-remove", "substitute"]
    groups: Mapping[str, Sequence[str]]


_SEEN = {"each": "each party's, by the server", "sum": "as a sum over a group; its parts reach the server's machine"}
_MASKED = "only as a sum over a group, of three parties or more; its parts are masked"


def parties(
    model: Topics,
    documents: Mapping[str, Documents],
    *,
    directory: str | Path | None = None,
    party_settings: Mapping[str, Mapping[str, Any]] | None = None,
    engine: str = "local",
    workers: int = 1,
    secure: bool = False,
    **settings: Unpack[CompareOptions],
) -> Comparison:
    """Let each party measure its topic prevalence under a shared model, and compare the released numbers.

    `documents` maps a party to texts, to a data frame (`text`, and `date` for periods) or to a corpus. `settings` are
    those of `PrevalenceSettings`: `groups={"science": ["MPS", "GEO"]}` to use only sums over groups; `by="quarter",
    since="2025-10", until="2026-09"` for a table over time; `epsilon=1.0` for noise that protects single documents;
    `min_documents_per_cell=5` to leave small cells empty. `party_settings` are the parties' own: a `policy` that may
    refuse all this, a `home` for ledger and noise key. With a `directory`, the run can be inspected afterwards
    (`tertulia disclosures`, `tertulia privacy`). A party that refuses is left out, with a warning.

    With `secure`, tables are masked, and the server learns nothing but the sums over `groups`. Each group, and the
    parties in no group, must then be three parties or more, or none.
    """
    if not documents:
        raise InputError("there are no parties: give a mapping from a name to documents")
    corpora = {name: _corpus(name, given, model) for name, given in documents.items()}
    with tempfile.TemporaryDirectory(prefix="tertulia-") as temporary:
        home = Path(directory or Path(temporary) / "run")
        if (home / "run.json").exists():
            raise ConfigError(f"{home} holds a run already: choose another directory")
        asked = PrevalenceSettings(model=str(model.save(home / "shared-topics").resolve()), **settings)
        _check_secure(asked, secure, "secure = true")
        method.plan(asked.model_dump())  # raises for impossible noise, before any party is asked
        whole = RunSettings(
            directory=str(home), method=_custom(asked), text=model.options.to_dict(), heldout=0.0, engine=engine,
            workers=workers, parties={party: dict(own) for party, own in (party_settings or {}).items()},
            federation={"quorum": 0.0, "secure": secure},
        )  # fmt: skip
        measured = run_on_one_machine(whole, corpora, durable=directory is not None, observe=_warn)
    return _comparison(measured, model, asked)


def of_run(
    run: str | Path, *, directory: str | Path | None = None, secure: bool | None = None,
    **settings: Unpack[CompareOptions],
) -> Comparison:  # fmt: skip
    """Compare the parties of a finished run by its model; the comparison is another run, in `directory`.

    Parties keep their policies, homes and documents. The default directory is the run's name with "-compared".

    A run with secure sums is compared with secure sums, too: it needs `groups`, and is refused without. If all parties
    are yours, `secure=False` compares single parties all the same.
    """
    whole = settings_of_run(run, directory=directory, secure=secure, **settings)
    asked = PrevalenceSettings(**whole.method.config)  # type: ignore[attr-defined]
    opened = Run.open(Path(run))
    corpora = {party: open_party(opened, party).corpus for party in opened.parties}
    return _comparison(run_on_one_machine(whole, corpora, observe=_warn), Topics.load(asked.model), asked)


def settings_of_run(
    run: str | Path, *, directory: str | Path | None = None, secure: bool | None = None,
    **settings: Unpack[CompareOptions],
) -> RunSettings:  # fmt: skip
    """Make the settings of a comparison of a run's parties, for a dry run for example; `secure` is that of the run."""
    run = Path(run)
    trained = RunSettings(**Run.open(run).config)
    if trained.method.pools:
        raise ConfigError(f"{run} pooled all documents in one place: it has no parties to compare")
    if not (run / "model").exists():
        raise ConfigError(f"{run} has no model yet: `tertulia resume {run}` ends the run")
    asked = PrevalenceSettings(model=str((run / "model").resolve()), **settings)
    masked = trained.federation.secure if secure is None else secure
    _check_secure(asked, masked, f"{run} has secure sums" if secure is None else "secure = true")
    return trained.replace(
        directory=str(directory or run.with_name(f"{run.resolve().name}-compared")), method=_custom(asked),
        heldout=0.0, validation=0.0, start_from=None, federation=trained.federation.replace(quorum=0.0, secure=masked),
    )  # fmt: skip


def _check_secure(asked: PrevalenceSettings, secure: bool, why: str) -> None:
    """Raise `ConfigError` unless a comparison with secure sums is one of groups."""
    if secure and not asked.groups:
        raise ConfigError(
            f"{why}: tables of single parties stay hidden. Give groups of three parties or more (`groups`, `--group`). "
            "If all parties are yours, `compare` in Python takes secure=False"
        )


def plan(model: Topics, *, secure: bool = False, **settings: Unpack[CompareOptions]) -> pl.DataFrame:
    """List the releases of each party and their privacy cost, for the same settings as `parties`."""
    asked = PrevalenceSettings(model=".", **settings)
    _check_secure(asked, secure, "secure = true")
    rows = 1 if asked.periods is None else asked.periods.count
    return pl.DataFrame(
        [
            {
                "what": one.mechanism.what,
                "seen": _MASKED if secure else _SEEN[one.verb],
                "times": one.times,
                "numbers": f"{rows}x{model.n_topics}",
                "mechanism": one.mechanism.name,
                "unit": one.mechanism.unit.value,
                "adjacency": one.mechanism.adjacency.value,
                "real epsilon": guarantee_of(one.mechanism, asked.delta).epsilon,
                "delta": asked.delta,
            }
            for one in method.plan(asked.model_dump())
        ]
    )


def _corpus(name: str, given: Documents, model: Topics) -> Corpus:
    corpus = as_corpus(name, given, model.options, model.reads_sentences)
    if corpus.options != model.options:
        raise ConfigError(
            f"the documents of party '{name}' were cut into words in another way than the model's: read them with "
            "`options=model.options`"
        )
    return corpus


def _custom(asked: PrevalenceSettings) -> CustomSettings:
    return CustomSettings(module=method.__name__, config=asked.model_dump(mode="json"))


def _comparison(measured: Measured, model: Topics, asked: PrevalenceSettings) -> Comparison:
    (planned,) = method.plan(asked.model_dump())
    return Comparison(
        measured.names,
        measured.members,
        ("all",) if asked.periods is None else asked.periods.labels,
        np.asarray(measured.cells * STEP),
        model.top_words(10),
        asked.weigh,
        asked.sigma,
        guarantee_of(planned.mechanism, asked.delta).epsilon,
        asked.delta,
    )


def _warn(kind: str, facts: Mapping[str, Any]) -> None:
    if kind == "warning":
        warnings.warn(str(facts["text"]), stacklevel=2)
