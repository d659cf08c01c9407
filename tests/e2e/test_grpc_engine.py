"""Engine `grpc`: the same bits as in one process, also when a party or the server is killed at a chosen point."""

import sys
from contextlib import closing
from functools import partial

import pytest

from helpers import toys
from helpers.marks import slow
from helpers.network import eventually
from helpers.processes import Nursery
from helpers.runs import Trials, outcome
from tertulia.errors import ConfigError
from tertulia.federation.codec import decode
from tertulia.federation.engines.base import EngineSetup, start_engine
from tertulia.federation.engines.grpc import loopback
from tertulia.federation.messages import Inquiry
from tertulia.federation.party.host import PartyConfig
from tertulia.methods.ftm import method as ftm  # noqa: F401 - its messages are in the commits that we read
from tertulia.methods.registry import FTMSettings
from tertulia.runs.directory import Run

TOY = {"name": "custom", "module": toys.__name__, "config": {"rounds": 3}}  # noisy and stateful
FTM = FTMSettings(topics=3, rounds=2, sweeps=3, vocabulary={"mode": "union"}).model_dump()
AIMS = [
    "party.after_save:3",
    "party.before_send:3",
    "server.after_receive:5",
    "server.before_commit:2",
    *map(
        slow,
        [
            "party.after_receive:2",
            "party.before_step:4",
            "party.before_reply:2",
            "server.before_send:4",
            "server.after_ask:2",
            "server.after_commit:3",
        ],
    ),
]


@pytest.fixture(scope="module")
def scrap(tmp_path_factory):
    """Where the runs of this file have their temporary folders."""
    return tmp_path_factory.mktemp("scrap")


@pytest.fixture(scope="module")
def nursery(tmp_path_factory, scrap):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(scrap))
        nursery = Nursery(tmp_path_factory.mktemp("nursery"))
    yield nursery
    nursery.close()


@pytest.fixture(scope="module")
def trial(tmp_path_factory, nursery, worded):
    """Copies of a prepared run, for engine `grpc`, and what it ends in within one process."""
    return partial(Trials(nursery, tmp_path_factory.mktemp("trials"), worded).copy, engine="grpc")


@pytest.mark.parametrize("method", [TOY, FTM], ids=["noisy", "ftm"])
def test_models_are_those_of_one_process_bit_for_bit(method, nursery, trial, scrap, tmp_path):
    expected = trial(method, tmp_path / "run")
    nursery.finish(tmp_path / "run")
    assert outcome(Run.open(tmp_path / "run")) == expected
    assert not list(scrap.iterdir())


@pytest.mark.parametrize("aim", AIMS)
def test_kills_aimed_at_fault_points(aim, nursery, trial, scrap, tmp_path):
    expected = trial(TOY, tmp_path / "run")
    code = nursery.resume(tmp_path / "run", f"{aim}:{tmp_path / 'killed'}").wait()
    assert (tmp_path / "killed").exists()
    if aim.startswith("server."):
        assert code == -9
        nursery.finish(tmp_path / "run")
    else:  # the engine starts a party again by itself
        assert code == 0
    assert outcome(Run.open(tmp_path / "run")) == expected
    eventually(
        lambda: not list(scrap.iterdir())
    )  # keys to throw away are thrown away, also by a server that was killed


def test_a_party_that_only_dies_has_failed_and_the_others_answer(tmp_path, monkeypatch):
    monkeypatch.setattr(loopback, "_RESTARTS", 1)
    alive, dying = tmp_path / "alive", tmp_path / "dying"
    PartyConfig(id="alive", run="run", seed=1, methods=()).save(alive)
    dying.write_text("no directory at all")
    with closing(start_engine("grpc", EngineSetup({"alive": alive, "dying": dying}))) as transport:
        assert transport.parties == ["alive", "dying"]
        answers = transport.ask(dict.fromkeys(transport.parties, Inquiry("run", "ledger digest").to_bytes()), 60.0)
    assert decode(answers["alive"]).kind == "ok"
    assert decode(answers["dying"]).kind == "failed"
    assert "it died 2 times over one question" in decode(answers["dying"]).text


def test_without_grpcio_the_remedy_is_said(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("tertulia.federation.engines.grpc")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "grpc", None)  # as if it were not installed
    with pytest.raises(ConfigError, match=r"pip install 'tertulia\[network\]'"):
        start_engine("grpc", EngineSetup({}))
