"""`kill -9` at any moment, then `tertulia resume`: the end is bit for bit that of an uninterrupted run.

The method is noisy and stateful (`toys.train`), so that a step run twice, a state lost or noise drawn twice all show;
a few trials use FTM and gFedNTM. Kills at random moments seldom hit the narrow windows, so as many are aimed. Both
engines run the same party, so every fault point is tried in the local one, and the rest of the matrix is slow.
"""

import random
import shutil
import time

import pytest

import tertulia as tt
from helpers import toys  # noqa: F401 - its messages are in the commits that we read
from helpers.marks import slow
from helpers.processes import Nursery, kill_a_party
from helpers.runs import change, outcome, prepared
from helpers.texts import PUBLIC, halves
from tertulia.methods.consensus import method as consensus  # noqa: F401 - likewise
from tertulia.methods.ftm import method as ftm  # noqa: F401 - likewise
from tertulia.methods.gfedntm import method as gfedntm  # noqa: F401 - likewise
from tertulia.methods.pctd import method as pctd  # noqa: F401 - likewise
from tertulia.methods.registry import ConsensusSettings, FTMSettings, GFedNTMSettings, PCTDSettings
from tertulia.runs.directory import Run

POINTS = [
    "party.before_step",
    "party.before_save",
    "party.after_save",
    "party.before_reply",
    "server.before_ask",
    "server.after_ask",
    "server.before_commit",
    "server.after_commit",
]
AIMS = [(point, count) for count in (1, 3) for point in POINTS]
IN_BOTH = [("party.after_save", 3), ("server.after_ask", 5)]  # a party that dies alone, and a server
METHODS = {
    "toy": {"name": "custom", "module": "helpers.toys", "config": {"rounds": 4}},
    "ftm": FTMSettings(topics=4, rounds=3, sweeps=5).model_dump(),
    "consensus": ConsensusSettings(  # half of its questions are sent as differences from those before
        topics=12, rounds=6, start_sweeps=2, sweeps=1, vocabulary={"max_share": 1.0}
    ).model_dump(),
    "continued": ConsensusSettings(topics=3, start_sweeps=2, sweeps=2, vocabulary={"max_share": 1.0}).model_dump(),
    "pctd": PCTDSettings(topics=2, rounds=4, mode="paper", sigma=0.1, vocabulary=PUBLIC).model_dump(),
    "gfedntm": GFedNTMSettings(  # parties hold back a part of every gradient, and three rounds in four are not on disk
        topics=3, hidden=(8, 6), rounds=7, checkpoint_every=4, paper={"keep": 0.1}, vocabulary={"max_share": 1.0}
    ).model_dump(),
}


@pytest.fixture(scope="module")
def nursery(tmp_path_factory):
    nursery = Nursery(tmp_path_factory.mktemp("nursery"))
    yield nursery
    nursery.close()


def earlier_model(base, corpora):
    """A model of some of the documents, with a topic less."""
    some = {party: texts[:8] for party, texts in corpora.items()}
    return tt.Consensus(topics=2, rounds=2, start_sweeps=2, sweeps=2).fit(some, heldout=0).save(base / "last")


@pytest.fixture(scope="module")
def trial(tmp_path_factory, nursery, worded):
    """Copies of prepared runs, and what they end in when nothing goes wrong."""
    references: dict = {}

    def make(engine, name, directory):
        if (engine, name) not in references:
            base = tmp_path_factory.mktemp(f"{engine}-{name}")
            corpora = {p: halves(i) if name == "pctd" else worded(i, 12 + i) for i, p in enumerate("abc")}
            last = {"start_from": str(earlier_model(base, corpora))} if name == "continued" else {}
            if name == "consensus":  # one party misses two rounds and returns, another is new in the third
                absences = {"dropouts": {"script": {2: ["a"], 3: ["a"]}}, "quorum": 0.3}
                last = {"federation": absences, "parties": {"c": {"joins": 3}}}
            prepared(base / "template", corpora, METHODS[name], engine=engine, **last)
            shutil.rmtree(base / "last", ignore_errors=True)  # a run has all that it needs
            shutil.copytree(base / "template", base / "reference")
            started = time.monotonic()
            nursery.finish(base / "reference")
            seconds = time.monotonic() - started
            references[engine, name] = (base / "template", outcome(Run.open(base / "reference")), seconds)
        template, expected, seconds = references[engine, name]
        shutil.copytree(template, directory)
        return expected, seconds

    return make


@pytest.mark.parametrize("engine", ["local", slow("processes")])
def test_kills_at_random_moments(engine, nursery, trial, tmp_path):
    moments = random.Random(7)
    killed = 0
    for number in range(6 if engine == "local" else 20):
        directory = tmp_path / str(number)
        expected, seconds = trial(engine, "toy", directory)
        child = nursery.resume(directory)
        time.sleep(moments.uniform(0.1, 1.0) * seconds)
        if engine == "processes" and number % 2:
            kill_a_party(directory, moments)  # the engine starts the party again by itself
        else:
            child.kill()
        killed += child.wait() != 0
        nursery.finish(directory)
        assert outcome(Run.open(directory)) == expected
    assert killed >= 3


@pytest.mark.parametrize(
    ("engine", "aims"),
    [("local", AIMS[len(POINTS) :]), ("processes", IN_BOTH), slow("local", AIMS), slow("processes", AIMS)],
)
def test_kills_aimed_at_fault_points(engine, aims, nursery, trial, tmp_path):
    for number, (point, count) in enumerate(aims):
        directory, marker = tmp_path / str(number), tmp_path / f"{number}.killed"
        expected, _ = trial("local", "toy", directory)
        change(directory, engine=engine)
        code = nursery.resume(directory, f"{point}:{count}:{marker}").wait()
        assert marker.exists(), f"{point}:{count}"
        if code:
            nursery.finish(directory)
        assert outcome(Run.open(directory)) == expected, f"{point}:{count}"


@pytest.mark.parametrize("engine", ["local", slow("processes")])
@pytest.mark.parametrize(
    ("method", "aim"),
    [
        *(("ftm", aim) for aim in ("party.after_save:3", "server.after_ask:4")),
        ("pctd", "server.before_commit:3"),
        *(("consensus", aim) for aim in ("party.before_reply:6", "server.after_ask:6")),
        *(("continued", aim) for aim in ("party.after_save:4", "server.after_ask:2", "server.before_commit:1")),
    ],
)
def test_methods_resume_bit_for_bit(engine, method, aim, nursery, trial, tmp_path):
    expected, _ = trial(engine, method, tmp_path / "run")
    nursery.resume(tmp_path / "run", f"{aim}:{tmp_path / 'killed'}").wait()
    assert (tmp_path / "killed").exists()
    nursery.finish(tmp_path / "run")
    assert outcome(Run.open(tmp_path / "run")) == expected
    assert expected["model"]


@pytest.mark.parametrize("aim", ["party.after_save:9", slow("party.before_step:9"), slow("server.after_ask:9")])
def test_questions_that_came_as_differences_come_again_in_full(aim, nursery, trial, tmp_path):
    """A party that dies alone has lost the question from which the next one differs, and a server all of them."""
    expected, _ = trial("local", "consensus", tmp_path / "run")
    change(tmp_path / "run", engine="processes")
    code = nursery.resume(tmp_path / "run", f"{aim}:{tmp_path / 'killed'}").wait()
    assert code == (-9 if aim.startswith("server") else 0)
    assert (tmp_path / "killed").exists()
    if code:
        nursery.finish(tmp_path / "run")
    assert outcome(Run.open(tmp_path / "run")) == expected
    assert expected["model"]


def test_gfedntm_resumes_bit_for_bit(nursery, trial, tmp_path):
    expected, _ = trial("local", "gfedntm", tmp_path / "run")
    assert nursery.resume(tmp_path / "run", f"server.after_ask:33:{tmp_path / 'killed'}").wait() == -9
    assert (tmp_path / "killed").exists()
    nursery.finish(tmp_path / "run")
    found = outcome(Run.open(tmp_path / "run"))
    for name in ("server", "round", "model"):
        assert found[name] == expected[name]
    for party in "abc":  # steps that charge nothing private may be computed, and so noted in the ledger, twice
        assert found[party]["state"] == expected[party]["state"]
    assert expected["model"]


@pytest.mark.parametrize(("method", "commit"), [("toy", 3), ("consensus", 5)])
def test_a_damaged_commit_is_passed_over_without_loss(method, commit, nursery, trial, tmp_path):
    expected, _ = trial("local", method, tmp_path / "run")
    assert nursery.resume(tmp_path / "run", f"server.after_commit:{commit}:{tmp_path / 'killed'}").wait() == -9
    newest = sorted((tmp_path / "run" / "server").glob("commit-*"))[-1]
    newest.write_bytes(newest.read_bytes()[:-20])
    child = nursery.resume(tmp_path / "run")
    assert child.wait() == 0
    assert "truncated or damaged" in child.errors
    assert outcome(Run.open(tmp_path / "run")) == expected
