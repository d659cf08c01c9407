"""Engine `ray`: the same bits as in one process, also when an actor, its node or the driver is killed."""

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from helpers import toys
from helpers.marks import slow
from helpers.network import eventually
from helpers.processes import Nursery, party_pids
from helpers.ray_nodes import Nodes, parent
from helpers.runs import Trials, change, outcome, prepared
from tertulia.errors import ConfigError
from tertulia.federation.codec import decode
from tertulia.federation.engines.base import EngineSetup, start_engine
from tertulia.federation.messages import Inquiry
from tertulia.federation.server.handle import Handle, Terms
from tertulia.federation.types import Nothing
from tertulia.methods.ftm import method as ftm  # noqa: F401 - its messages are in the commits that we read
from tertulia.methods.registry import FTMSettings
from tertulia.runs.directory import Run
from tertulia.runs.settings import RunSettings

TOY = {"name": "custom", "module": toys.__name__, "config": {"rounds": 3}}  # noisy and stateful
LONG = {"name": "custom", "module": toys.__name__, "config": {"rounds": 30}}
FTM = FTMSettings(topics=3, rounds=2, sweeps=3, vocabulary={"mode": "union"}).model_dump()
TRIES = """
import os
from tertulia.errors import TertuliaError
from tertulia.federation.engines.base import EngineSetup, start_engine

def say(address):
    try:
        start_engine("ray", EngineSetup({}, address=address))
    except TertuliaError as error:
        print(error)

say("127.0.0.1:1")
say(os.environ["CLUSTER"])
os.environ["RAY_AUTH_TOKEN"] = "another"
say("auto")
"""


@pytest.fixture(scope="module")
def nodes():
    """Two nodes on this machine, and their token in the environment."""
    nodes = Nodes(2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_TOKEN", nodes.token)
        yield nodes
    nodes.close()
    eventually(lambda: not _living(nodes.process.pid))


@pytest.fixture(scope="module")
def nursery(tmp_path_factory, nodes):
    nursery = Nursery(tmp_path_factory.mktemp("nursery"))
    yield nursery
    nursery.close()


@pytest.fixture(scope="module")
def trial(tmp_path_factory, nursery, worded):
    """Copies of a prepared run, for engine `ray`, and what it ends in within one process."""
    return partial(Trials(nursery, tmp_path_factory.mktemp("trials"), worded).copy, engine="ray")


def _supervisors(driver: int) -> list[tuple[int, Path]]:
    """Return the supervisors of this run's own Ray, which lead its session, and the folder of that Ray."""
    listed = subprocess.run(["ps", "-o", "pid,args", "--ppid", str(driver)], capture_output=True, text=True).stdout
    found = [line.split() for line in listed.splitlines() if "ray.supervisor" in line]
    return [(int(words[0]), Path(words[-1])) for words in found]


def _living(session: int) -> list[str]:
    """Return the live processes of a session."""
    listed = subprocess.run(["ps", "-o", "stat,args", "-s", str(session)], capture_output=True, text=True).stdout
    return [line for line in listed.splitlines()[1:] if not line.startswith("Z")]


def _in_the_middle(run: Path) -> None:
    """Wait until a run has committed a few rounds, of many more."""
    eventually(lambda: any(path.name > "commit-00000005" for path in (run / "server").glob("commit-*.safetensors")))


def test_where_parties_have_several_owners_it_is_refused_with_the_remedy():
    with pytest.raises(ConfigError, match=r"engine 'ray' is for one owner.*take engine 'grpc'"):
        RunSettings(engine="ray", federation={"owners": "several"})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"engine": "processes", "address": "auto"}, "goes with engine 'ray', not with 'processes': leave it out"),
        ({"engine": "ray", "address": "somewhere"}, "address"),
    ],
)
def test_an_address_is_for_ray_and_is_one(settings, said):
    with pytest.raises(ConfigError, match=said):
        RunSettings(**settings)


def test_without_ray_the_remedy_is_said(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("tertulia.federation.engines.ray")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it were not installed
    with pytest.raises(ConfigError, match=r"pip install 'tertulia\[ray\]'"):
        start_engine("ray", EngineSetup({}))


@pytest.mark.parametrize("method", [FTM, slow(TOY)])
def test_models_are_those_of_one_process_bit_for_bit(method, nodes, nursery, trial, tmp_path):
    expected = trial(method, tmp_path / "run", address=nodes.address)
    nursery.finish(tmp_path / "run")
    assert outcome(Run.open(tmp_path / "run")) == expected


def test_an_actor_is_killed_and_the_driver_and_the_run_goes_on(nodes, nursery, trial, tmp_path):
    expected = trial(LONG, tmp_path / "run", address=nodes.address)
    driver = nursery.resume(tmp_path / "run", f"server.after_ask:40:{tmp_path / 'killed'}")
    _in_the_middle(tmp_path / "run")
    os.kill(party_pids(tmp_path / "run")["a"], signal.SIGKILL)
    assert driver.wait() == -9
    nursery.finish(tmp_path / "run")
    assert outcome(Run.open(tmp_path / "run")) == expected


def test_parties_that_die_are_not_seen_or_late(nodes, tmp_path, worded, monkeypatch):
    """They have failed, or count as silent, and the others answer: all with one start of the actors."""
    run = prepared(tmp_path / "run", {p: worded(i, 3) for i, p in enumerate("ab")}, TOY)
    directories = {party: run.party_directory(party) for party in run.parties}
    directories |= {"missing": tmp_path / "missing", "dying": tmp_path / "dying"}
    (tmp_path / "dying" / "lock").mkdir(parents=True)  # which must be a file
    with closing(start_engine("ray", EngineSetup(directories, pins=run.pins, address=nodes.address))) as transport:
        monkeypatch.setattr("tertulia.federation.engines.ray.transport._RESTARTS", 1)
        ask = Inquiry(run.id, "ledger digest").to_bytes()
        answers = {party: decode(a) for party, a in transport.ask(dict.fromkeys(transport.parties, ask), 60.0).items()}
        assert {party: answer.kind for party, answer in answers.items()} == {
            "a": "ok", "b": "ok", "missing": "failed", "dying": "failed"
        }  # fmt: skip
        assert "missing is not seen on node" in answers["missing"].text
        assert "it died 2 times over one question" in answers["dying"].text
        fed = Handle(run.id, SimpleNamespace(parties=["a", "b"], ask=transport.ask), run.journal(), Terms(timeout=4.0))
        assert list(fed.each(toys.dawdle, toys.Late("b", 8.0))) == ["a"]
        fed.terms = Terms()
        assert {p: int(r.value) for p, r in fed.each(toys.count_free, Nothing()).items()} == {"a": 2, "b": 1}


def test_clusters_that_cannot_be_joined(nodes, tmp_path):
    """In a process of its own: Ray reads its token once."""
    environment = os.environ | {"HOME": str(tmp_path), "CLUSTER": nodes.address}
    del environment["RAY_AUTH_TOKEN"]
    said = subprocess.run([sys.executable, "-c", TRIES], env=environment, capture_output=True, text=True).stdout
    nobody, no_token, wrong_token = said.splitlines()
    assert "no Ray cluster answers at 127.0.0.1:1 " in nobody
    assert f"there is no token for the Ray cluster at {nodes.address}: set RAY_AUTH_TOKEN" in no_token
    assert "the token is not that of a Ray cluster: set RAY_AUTH_TOKEN" in wrong_token


@pytest.mark.slow
def test_a_node_is_killed_in_the_middle(nodes, nursery, trial, tmp_path):
    expected = trial(LONG, tmp_path / "run", address=nodes.address)
    driver = nursery.resume(tmp_path / "run")
    _in_the_middle(tmp_path / "run")
    hosts = {party: parent(pid) for party, pid in party_pids(tmp_path / "run").items()}
    assert set(hosts.values()) == set(nodes.raylets)  # one party on each
    nodes.kill(nodes.raylets[1])
    assert driver.wait() == 0, driver.errors
    assert outcome(Run.open(tmp_path / "run")) == expected


@pytest.mark.parametrize(
    "aim", ["server.after_ask:2", *map(slow, ["server.before_commit:2", "party.after_save:3", "party.before_step:4"])]
)
def test_kills_on_a_ray_of_its_own_of_which_nothing_stays(aim, nodes, nursery, trial, tmp_path):
    """Actors have their environment, and so an aim, from the driver here; what was begun here goes on anywhere."""
    expected = trial(TOY, tmp_path / "run")
    driver = nursery.resume(tmp_path / "run", f"{aim}:{tmp_path / 'killed'}")
    eventually(lambda: _supervisors(driver.pid))
    ((session, folder),) = _supervisors(driver.pid)
    assert folder.exists()
    code = driver.wait()
    assert (tmp_path / "killed").exists()
    assert code == (-9 if aim.startswith("server.") else 0)
    eventually(lambda: not _living(session) and not folder.exists())
    if code:
        change(tmp_path / "run", address=nodes.address)
        nursery.finish(tmp_path / "run")
    assert outcome(Run.open(tmp_path / "run")) == expected


@pytest.mark.slow
def test_a_run_that_is_killed_while_its_ray_starts_leaves_nothing(nodes, tmp_path):
    command = [sys.executable, "-P", "-m", "tertulia.federation.engines.ray.supervisor"]
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as short:  # Ray's sockets have long names
        folder = Path(short) / "own"
        folder.mkdir()
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        supervisor = subprocess.Popen([*command, folder], **pipes, start_new_session=True)
        supervisor.stdin.close()
        supervisor.stdout.close()
        assert supervisor.wait(90) == 0
        assert not folder.exists()
        eventually(lambda: not _living(supervisor.pid))
