"""Runs for tests: prepared with fixed noise keys, interrupted, and compared bit for bit."""

import dataclasses
import hashlib
import json
import shutil

from tertulia.corpus import Corpus
from tertulia.federation.codec import encode
from tertulia.federation.party.host import PartyConfig, PartyHost
from tertulia.runs.directory import Run
from tertulia.runs.one_machine import begin
from tertulia.runs.settings import RunSettings


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


def outcome(run: Run, directories=None) -> dict:
    """Everything that must not depend on crashes and engines, bit for bit: what the server has, and each party.

    Parties are in the run's directory, unless it is said where they are.
    """
    directories = directories or {party: run.party_directory(party) for party in run.parties}
    commit, warnings = run.journal().last()
    assert not warnings
    model = run.directory / "model" / "topics.safetensors"
    found = {
        "server": encode(commit.state),
        "round": commit.round,
        "model": model.read_bytes() if model.exists() else None,
    }
    for party in run.parties:
        host = PartyHost(directories[party])
        kept = {path.name: path.read_bytes() for path in (host.directory / "kept").glob("*")}
        charged = [(row.seq, row.entry.id, row.entry.body) for row in host.ledger.entries()]  # at times that differ
        found[party] = {"state": encode(host.answers.state), "ledger": charged, "kept": kept}
    return found


class Trials:
    """Copies of prepared runs of parties a and b, and what each ends in within one process, when nothing goes wrong."""

    def __init__(self, nursery, folder, worded):
        self.nursery, self.folder = nursery, folder
        self.corpora = {party: worded(i, 9 + i) for i, party in enumerate("ab")}
        self.ends = {}

    def copy(self, method, directory, **config):
        """A copy that is driven with other settings, such as its engine; and how it must end."""
        name = hashlib.sha256(json.dumps(method, sort_keys=True).encode()).hexdigest()
        template, reference = self.folder / name / "template", self.folder / name / "reference"
        if name not in self.ends:
            prepared(template, self.corpora, method)
            shutil.copytree(template, reference)
            self.nursery.finish(reference)
            self.ends[name] = outcome(Run.open(reference))
        shutil.copytree(template, directory)
        change(directory, **config)
        return self.ends[name]


def change(directory, **config) -> None:
    """Have a run driven with other settings."""
    facts = json.loads((directory / "run.json").read_text())
    facts["config"] |= config
    (directory / "run.json").write_text(json.dumps(facts))


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
