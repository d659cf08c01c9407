"""A federation's directory at its server: the file, the papers, and who is on the roster."""

import json
from dataclasses import asdict

import pytest

from helpers.houses import MEMBERS, Houses
from tertulia.errors import ConfigError, FormatError
from tertulia.federation.plan import Plan
from tertulia.runs.config import RunSettings
from tertulia.runs.desk import ABANDONED, FINISHED, STOPPED, UNDER_WAY
from tertulia.runs.federations import Federation, FederationFile, create, split_address
from tertulia.runs.layout import Run
from tertulia.runs.membership import PartyDirectory, PartyFile
from tertulia.runs.plans import plan_of

KEYS = {"north": "ab" * 32, "south": "cd" * 32}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"members": ("a", "a")}, "'a' is named twice"),
        ({"members": ()}, "members"),
        ({"members": ("../a",)}, "a member cannot be called '../a'"),
        ({"address": "here"}, "'here' is no address: write host:port"),
        ({"address": "here:99999"}, "is no address"),
        ({"address": "::1:80"}, "is no address"),
        ({"method": {"name": "centralised"}}, "brings all documents to one place"),
        ({"method": {"name": "custom", "module": "mine"}}, "runs on one machine only"),
        ({"parties": {}}, "unknown key 'parties'"),
        ({"terms": {"quorum": 2}}, "terms.quorum = 2"),
        ({"terms": {"owners": "one"}}, "unknown key 'terms.owners'"),
        ({"quorum": 0.5}, "it belongs to 'terms', so write 'terms.quorum'"),
    ],
)
def test_a_wrong_file_is_one_sentence(changes, said):
    with pytest.raises(ConfigError) as caught:
        FederationFile(**{"name": "x", "address": "localhost:1", "members": ("a",), **changes})
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_where_the_server_listens():
    def listens(address, listen=None):
        return FederationFile(name="x", address=address, members=("a",), listen=listen).listens_on

    assert listens("localhost:7") == "localhost:7"
    assert listens("[::1]:7") == "[::1]:7"
    assert listens("topics.example.org:7") == "0.0.0.0:7"
    assert listens("topics.example.org:443", "10.0.0.1:7433") == "10.0.0.1:7433"
    assert split_address("[::1]:7") == ("::1", 7)


def test_init_is_not_repeated_and_can_be_taken_up(tmp_path):
    with pytest.raises(ConfigError, match="named twice"):
        create(tmp_path / "x", ["a", "a"], "localhost:1", 7)
    assert not (tmp_path / "x").exists()
    create(tmp_path / "x", ["a", "b"], "localhost:1", 7)
    with pytest.raises(ConfigError, match="holds a federation already"):
        create(tmp_path / "x", ["a", "b"], "localhost:1", 7)
    (tmp_path / "x" / "federation.toml").unlink()  # as if it had been broken off
    before = (tmp_path / "x" / "authority" / "ca.pem").read_bytes()
    create(tmp_path / "x", ["a", "b"], "localhost:1", 7)
    assert (tmp_path / "x" / "authority" / "ca.pem").read_bytes() == before
    with pytest.raises(ConfigError, match="it has no federation"):
        Federation(tmp_path)
    with pytest.raises(ConfigError, match="it has no party"):
        PartyDirectory(tmp_path)


def test_a_federations_name_is_one(tmp_path):
    with pytest.raises(ConfigError, match="a federation cannot be called 'two words'"):
        create(tmp_path / "two words", ["a"], "localhost:1", 7)


def test_partys_file_says_what_is_wrong():
    given = {"name": "north", "federation": "x", "server": "localhost:1"}
    with pytest.raises(ConfigError, match="there is no method 'nonsense' to offer"):
        PartyFile(**given, methods=("nonsense",))
    with pytest.raises(ConfigError, match="unknown key 'policy'"):
        PartyFile(**given, policy="x")
    with pytest.raises(ConfigError, match=r"unknown key 'documents\.folder'"):
        PartyFile(**given, documents={"folder": "x"})
    with pytest.raises(ConfigError, match=r"choices.topics = 0"):
        PartyFile(**given, choices={"topics": 0})


# --- plans and runs with keys -----------------------------------------------------------------------------------


def test_keys_are_part_of_a_plans_name_and_none_change_nothing():
    settings = RunSettings(method={"name": "consensus"})
    plain, keyed = plan_of(settings, ("north", "south")), plan_of(settings, ("north", "south"), KEYS)
    assert plain.hash == Plan(plain.method, plain.settings, plain.words, plain.roster, plain.steps).hash
    assert keyed.hash != plain.hash
    assert plan_of(settings, ("north", "south"), {**KEYS, "south": "00" * 32}).hash != keyed.hash
    assert Plan.from_dict(json.loads(json.dumps(asdict(keyed)))).hash == keyed.hash


def test_a_plan_between_houses_names_no_file(tmp_path):
    (tmp_path / "vectors.txt").write_text("rain 1\n")
    settings = RunSettings(method={"name": "pctd", "vectors": str(tmp_path / "vectors.txt")})
    assert str(tmp_path) not in json.dumps(plan_of(settings, ("north", "south"), KEYS).settings)
    without = RunSettings(method={"name": "pctd"})
    assert plan_of(settings, ("north", "south"), KEYS).hash == plan_of(without, ("north", "south"), KEYS).hash


def test_a_run_keeps_its_keys_and_is_not_resumed_without_its_server(tmp_path):
    settings = RunSettings(method={"name": "consensus"}).model_dump(mode="json")
    Run(tmp_path / "x" / "runs" / "r", "r", ("north", "south"), settings, keys=KEYS).save()
    run = Run.open(tmp_path / "x" / "runs" / "r")
    assert run.keys == KEYS
    with pytest.raises(ConfigError, match=f"`tertulia serve {tmp_path / 'x'}` goes on with this run"):
        run.transport("local", 1)
    path = run.directory / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "keys": {"north": 1}}))
    with pytest.raises(FormatError, match="damaged"):
        Run.open(run.directory)


# --- the desk ---------------------------------------------------------------------------------------------------


@pytest.fixture
def houses(tmp_path):
    return Houses(tmp_path)


def test_a_proposal_is_made_anew_when_file_or_roster_change(houses):
    first = houses.desk.current()
    assert first.missing == list(MEMBERS)
    assert first.plan == ""
    houses.join("north")
    second = houses.desk.current()
    assert second.run != first.run
    assert second.missing == ["south", "east"]
    assert houses.desk.current().run == second.run
    houses.edit("seed = 0", "seed = 1")
    assert houses.desk.current().run != second.run


def test_start_names_who_is_missing(houses):
    houses.join("north", "south")
    with pytest.raises(ConfigError, match="not all members have joined: east"):
        houses.desk.start()
    houses.join("east")
    houses.approve("south")
    with pytest.raises(ConfigError, match=r"1 of 3 members have approved, and 2 must: .* from north, east"):
        houses.desk.start()
    houses.approve("east")
    assert houses.desk.start().parties == MEMBERS


def test_a_run_under_way_pins_what_was_agreed(houses):
    run = houses.agree().desk.start()
    houses.edit("seed = 0", "seed = 1")
    houses.server.members.revoke("east")
    assert houses.desk.current().run == run.id
    assert houses.desk.edited()
    with pytest.raises(ConfigError, match=r"under way.*what was edited since counts for the next one"):
        houses.desk.start()
    houses.edit("seed = 1", "seed = maybe")  # broken: members still see what is under way
    assert json.loads(houses.desk.proposal())["run"] == run.id
    houses.edit("seed = maybe", "seed = 1")
    houses.desk.end(run.id, FINISHED)
    assert houses.desk.current().roster == ("north", "south")
    assert houses.desk.newest() == run.id


def test_a_run_that_stopped_goes_on_and_one_that_is_abandoned_does_not(houses):
    run = houses.agree().desk.start()
    houses.desk.end(run.id, STOPPED, "the disk is full")
    assert houses.desk.under_way() is None
    assert houses.desk.start().id == run.id
    assert houses.desk.state(run.id).state == UNDER_WAY
    assert houses.desk.under_way().id == run.id
    assert houses.desk.abandon() == run.id
    assert houses.desk.state(run.id).state == ABANDONED
    with pytest.raises(ConfigError, match="no unfinished run"):
        houses.desk.abandon()


def test_a_finished_run_is_not_run_again(houses):
    run = houses.agree().desk.start()
    houses.desk.end(run.id, FINISHED)
    with pytest.raises(ConfigError, match="is finished, its model is"):
        houses.desk.start()


def test_invitations(houses):
    houses.join("north")
    with pytest.raises(ConfigError, match="'north' has joined already"):
        houses.server.invite("north", 7)
    houses.server.members.revoke("north")
    assert houses.server.invite("north", 7).name == "north.invite"


@pytest.mark.parametrize("name", ["approvals.json", "proposal.json"])
def test_a_damaged_paper_is_named(houses, name):
    houses.agree()
    (houses.server.directory / name).write_text("{")
    with pytest.raises(FormatError):
        houses.desk.start()


def test_a_partys_choices_and_columns_reach_its_run(houses):
    houses.join(*MEMBERS)
    file = houses.base / "north" / "party.toml"
    file.write_text(file.read_text().replace("#threads = 2", "threads = 2"))
    seen = houses.consider("north")
    assert seen.settings.parties["north"].choices() == {"threads": 2}
    assert seen.settings.parties["north"].text == "note"
    config = json.loads((seen.lay_out() / "party.json").read_text())
    assert config["settings"] == {"threads": 2}
    assert config["owners"] == "several"
    assert config["home"] == str((houses.base / "north").resolve())
    assert config["plan"]["keys"] == seen.proposal.keys


def test_a_party_without_documents_is_asked_for_them(houses):
    houses.join(*MEMBERS)
    file = houses.base / "north" / "party.toml"
    file.write_text(file.read_text().replace("path =", "#path ="))
    with pytest.raises(ConfigError, match=r"\[documents\] has no `path`"):
        houses.consider("north").lay_out()
