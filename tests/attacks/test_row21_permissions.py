"""Somebody with an account on the party's machine reads its corpus, answers and ledger: they are its owner's alone."""

import os

import pytest

from helpers import toys
from tertulia.corpus import Corpus
from tertulia.federation.server.handle import Handle
from tertulia.federation.types import Nothing
from tertulia.runs.driver import terms_of
from tertulia.runs.one_machine import begin
from tertulia.runs.settings import RunSettings


@pytest.mark.parametrize("engine", ["local", "processes"])
def test_whatever_the_umask(engine, worded, tmp_path):
    before = os.umask(0o000)
    try:
        method = {"name": "custom", "module": "helpers.toys", "config": {"rounds": 1}}
        policy = tmp_path / "policy.toml"
        policy.write_text("allow_clear = true\n")
        settings = RunSettings(
            directory=str(tmp_path / "run"), engine=engine, method=method,
            parties={"a": {"policy": str(policy), "home": str(tmp_path / "homes" / "a")}},
        )  # fmt: skip
        run = begin(settings, {"a": Corpus.from_texts(worded(0, 5))})
        transport = run.transport(engine, 1)
        fed = Handle(run.id, transport, run.journal(), terms_of(settings))
        fed.each(toys.accumulate, Nothing())
        fed.each(toys.keep_secret, Nothing())
        transport.close()
    finally:
        os.umask(before)
    party = run.party_directory("a")
    found = [path for root in (party, tmp_path / "homes" / "a") for path in (root, *root.rglob("*"))]
    kinds = {path.suffix for path in found}
    assert {".parquet", ".npy", ".json", ".toml", ".safetensors", ".sqlite"} <= kinds
    wide = {str(path): oct(path.stat().st_mode & 0o777) for path in found if path.stat().st_mode & 0o077}
    assert not wide
    assert (run.directory / "run.json").stat().st_mode & 0o077 == 0


def test_directories_of_before_are_closed_when_they_are_opened(worded, tmp_path):
    run = begin(
        RunSettings(directory=str(tmp_path / "run"), method={"name": "alone"}), {"a": Corpus.from_texts(worded(0, 5))}
    )
    run.party_directory("a").chmod(0o755)
    run.transport("local", 1).close()
    assert run.party_directory("a").stat().st_mode & 0o777 == 0o700
