"""Secure sums from end to end: on every engine between owners, through kills at every phase, between organisations."""

import random
import shutil
import time
from contextlib import closing

import numpy as np
import pytest

from helpers import masked_toys as toys
from helpers.marks import slow
from helpers.processes import Nursery, kill_a_party
from helpers.runs import change, outcome
from helpers.sites import Sites
from tertulia.errors import ConfigError, PolicyRefusal
from tertulia.federation.party.host import PartyHost
from tertulia.methods.pctd import method as pctd  # noqa: F401 - its messages are in the commits that we read
from tertulia.runs.directory import Run
from tertulia.runs.settings import RunSettings

PHASES = [  # right before and after what is made durable in each phase
    "party.before_step:2",
    "party.after_save:3",
    "party.after_mask:4",
    "party.after_sign:3",
    "server.before_list:2",
    "server.after_list:2",
    "server.after_seeds:3",
    "server.before_commit:2",
    "server.after_ask:9",
    "party.before_heads:2",
    "party.after_heads:3",
]


@pytest.fixture(scope="module")
def nursery(tmp_path_factory):
    nursery = Nursery(tmp_path_factory.mktemp("nursery"))
    yield nursery
    nursery.close()


@pytest.fixture(scope="module")
def trial(tmp_path_factory, nursery):
    """Copies of a prepared run of four parties, one of which is absent for a round, and how it ends undisturbed."""
    base = tmp_path_factory.mktemp("masked")
    script = {"dropouts": {"script": {2: [toys.names(4)[1]]}}}
    toys.begun(base / "template", 4, rounds=3, durable=2, federation=script)
    shutil.copytree(base / "template", base / "reference")
    started = time.monotonic()
    nursery.finish(base / "reference")
    seconds, expected = time.monotonic() - started, outcome(Run.open(base / "reference", [toys.__name__]))

    def make(directory, engine="local"):
        shutil.copytree(base / "template", directory)
        change(directory, engine=engine)
        return expected, seconds

    return make


def test_the_reference_has_the_right_totals(trial, tmp_path, nursery):
    expected, _ = trial(tmp_path / "run")
    nursery.finish(tmp_path / "run")
    run = Run.open(tmp_path / "run", [toys.__name__])
    assert outcome(run) == expected  # other keys, other masks, the same totals
    state = run.journal().last()[0].state
    there = [name for name in toys.names(4) if name != toys.names(4)[1]]
    for round_, members in enumerate((toys.names(4), there, toys.names(4))):
        assert np.array_equal(state.totals[round_][0], sum(toys.numbers_of(name, round_)[0] for name in members))


@pytest.mark.parametrize("engine", ["processes", "grpc"])
def test_engines_give_the_same_totals(engine, trial, tmp_path, nursery):
    expected, _ = trial(tmp_path / "run", engine)
    nursery.finish(tmp_path / "run")
    assert outcome(Run.open(tmp_path / "run", [toys.__name__])) == expected


@pytest.mark.parametrize(
    ("engine", "aim"),
    [
        *(("local", aim) for aim in PHASES[1:7]),
        ("grpc", "party.after_sign:3"),
        ("processes", "party.after_mask:4"),
        *(slow("processes", aim) for aim in PHASES),
        *(slow("grpc", aim) for aim in PHASES),
    ],
)
def test_kills_aimed_at_every_phase(engine, aim, trial, tmp_path, nursery):
    expected, _ = trial(tmp_path / "run", engine)
    nursery.resume(tmp_path / "run", f"{aim}:{tmp_path / 'killed'}").wait()
    assert (tmp_path / "killed").exists()
    nursery.finish(tmp_path / "run")
    assert outcome(Run.open(tmp_path / "run", [toys.__name__])) == expected


@pytest.mark.parametrize(("engine", "trials"), [("local", 3), slow("processes", 10), slow("grpc", 10)])
def test_kills_at_random_moments(engine, trials, trial, tmp_path, nursery):
    moments = random.Random(11)
    for number in range(trials):
        directory = tmp_path / str(number)
        expected, seconds = trial(directory, engine)
        child = nursery.resume(directory)
        time.sleep(moments.uniform(0.1, 1.0) * seconds)
        if engine == "processes" and number % 2:
            kill_a_party(directory, moments)
        else:
            child.kill()
        child.wait()
        nursery.finish(directory)
        assert outcome(Run.open(directory, [toys.__name__])) == expected


# --- between organisations --------------------------------------------------------------------------------------------

METHOD = 'name = "pctd"\ntopics = 2\nrounds = 2\nvocabulary = { mode = "common", max_share = 1.0 }\n'


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    return Sites(tmp_path_factory.mktemp("sites"), method=METHOD, secure=True).agree()


def test_organisations_train_and_the_server_reads_no_single_reply(sites):
    carried = sites.carried()
    run = sites.registry.start()
    model = sites.finish(run, transport=carried)
    assert model.n_topics == 2
    ledger = PartyHost(sites.parties["north"].run_directories()[-1]).ledger
    sums = [release for release in ledger.releases() if release.verb in ("sum", "mean")]
    assert sums
    assert all(release.masked for release in sums)
    clear = [release.what for release in ledger.releases() if release.verb == "each"]
    assert set(clear) == {"names of agreed words"}


def test_members_of_a_plan_make_their_keys_when_they_approve(sites):
    for party in sites.parties.values():
        (directory,) = party.run_directories()
        assert (directory / "secure" / "keys.safetensors").stat().st_mode & 0o077 == 0


def test_a_policy_may_require_secure_sums(tmp_path):
    plain = Sites(tmp_path, method=METHOD.replace('"common"', '"union"'))
    plain.join(*plain.server.file.members)
    path = plain.parties["north"].policy_path
    path.write_text(path.read_text().replace("\nrequire_secure = false\n", "\nrequire_secure = true\n"))
    with pytest.raises(PolicyRefusal, match="require_secure"):
        plain.consider("north").check()
    plain.consider("south").check()


def test_two_members_cannot_have_secure_sums(tmp_path):
    two = Sites(tmp_path, members=("north", "south"), method=METHOD, secure=True)
    two.join("north", "south")
    with pytest.raises(ConfigError, match="needs 3 members or more, not 2"):
        two.registry.current()


def test_a_party_refuses_plain_runs_at_its_door_too(tmp_path):
    """A server that proposes secure sums and then asks without is refused, for the plan's hash covers the word."""
    run = toys.begun(tmp_path / "run", 3)
    party = run.party_directory(run.parties[0])
    (party / "policy.toml").write_text("require_secure = true\n")
    with closing(run.transport("local", 1)) as transport:
        fed = toys.handle_of(run, transport)
        assert fed.sum(toys.contribute, toys.Task(0)) is not None
    plain = toys.begun(tmp_path / "plain", 3, federation={"secure": False})
    (plain.party_directory(plain.parties[0]) / "policy.toml").write_text("require_secure = true\n")
    host = PartyHost(plain.party_directory(plain.parties[0]))
    with pytest.raises(PolicyRefusal, match="require_secure"):
        host.door.check_plan("")


# --- what does not go together ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "why"),
    [
        ({"name": "ftm"}, "it merges single parties' models, which secure sums hide: use Consensus"),
        ({"name": "consensus", "robust": True}, "robust = true judges each party's counts"),
        ({"name": "alone"}, "it does not federate"),
    ],
)
def test_methods_that_need_single_replies_are_refused(method, why):
    with pytest.raises(ConfigError, match=why):
        RunSettings(method=method, federation={"secure": True})


def test_a_cluster_has_one_owner():
    with pytest.raises(ConfigError, match="engine 'ray' is for one owner"):
        RunSettings(engine="ray", method={"name": "pctd"}, federation={"secure": True})


REFUSALS = {
    "robust": ('name = "consensus"\nrobust = true', 3, "", "robust = true judges each party's counts"),
    "merge": ('name = "ftm"', 3, "", "it merges single parties' models, which secure sums hide: use Consensus"),
    "two": (METHOD, 2, "", "secure = true needs 3 members or more, not 2: of two, each would read the other's numbers"),
    "ray": (METHOD, 3, 'engine = "ray"', "engine 'ray' is for one owner, who has all parties: leave it out"),
    "words": ('name = "pctd"', 3, "", "vocabulary mode 'union' sends every party's words in clear"),
}


@pytest.mark.parametrize("command", ["run", "check"])
@pytest.mark.parametrize("case", REFUSALS)
def test_the_command_line_says_why_in_a_sentence(case, command, tmp_path, tertulia):
    method, n, engine, why = REFUSALS[case]
    for name in toys.names(n):
        (tmp_path / f"{name}.jsonl").write_text('{"text": "fever cough ward"}\n' * 9)
    parties = "".join(f'[parties.{name}]\npath = "{name}.jsonl"\n' for name in toys.names(n))
    text = f'directory = "run"\n{engine}\n[method]\n{method}\n[federation]\nsecure = true\n{parties}'
    (tmp_path / "run.toml").write_text(text)
    code, out, err = tertulia(command, tmp_path / "run.toml")
    assert (code, out) == (1, "")
    assert why in err
    assert "Traceback" not in err
    assert not (tmp_path / "run").exists()  # nothing was begun
