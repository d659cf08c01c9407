"""Runs for tests: prepared with fixed noise keys, interrupted, and compared bit for bit."""

import dataclasses

from tertulia.corpus import Corpus
from tertulia.federation.codec import encode
from tertulia.federation.party.host import PartyConfig, PartyHost
from tertulia.runs.config import RunSettings
from tertulia.runs.layout import Run
from tertulia.runs.rehearsal import begin


def prepared(directory, corpora, method, **settings) -> Run:
    """A run that has not started, with fixed noise keys so that its bits can be compared."""
    corpora = {
        name: texts if isinstance(texts, Corpus) else Corpus.from_texts(texts) for name, texts in corpora.items()
    }
    run = begin(RunSettings(directory=str(directory), method=method, seed=3, **settings), corpora)
    for party in run.parties:
        home = run.party_directory(party)
        dataclasses.replace(PartyConfig.load(home), noise_key="42" * 32).save(home)
    return run


def outcome(run: Run) -> dict:
    """Everything that must not depend on crashes and engines, bit for bit: what the server has, and each party."""
    commit, warnings = run.journal().last()
    assert not warnings
    model = run.directory / "model" / "topics.safetensors"
    found = {
        "server": encode(commit.state),
        "round": commit.round,
        "model": model.read_bytes() if model.exists() else None,
    }
    for party in run.parties:
        host = PartyHost(run.party_directory(party))
        kept = {path.name: path.read_bytes() for path in (host.directory / "kept").glob("*")}
        charged = [(row.seq, row.entry.id, row.entry.body) for row in host.ledger.entries()]  # at times that differ
        found[party] = {"state": encode(host.answers.state), "ledger": charged, "kept": kept}
    return found


class Interrupted(Exception):
    """Raised by an observer."""


def interrupt_at(*rounds):
    """An observer that interrupts a run once at each of these rounds."""
    left = set(rounds)

    def observe(kind, facts):
        if kind == "round" and facts["round"] in left:
            left.remove(facts["round"])
            raise Interrupted

    return observe
