"""Organisations with their own parties, against a server that does not follow the protocol."""

import contextlib
import dataclasses
import json

import pytest

from helpers.sites import MEMBERS, METHOD, Sites
from tertulia.errors import ConfigError, FormatError, PolicyRefusal, QuorumError, TertuliaError
from tertulia.federation.messages import Inquiry
from tertulia.federation.server.answers import read_answer
from tertulia.network.party.attendant import Attendant
from tertulia.network.party.received_models import keep_model
from tertulia.network.proposals import Proposal
from tertulia.privacy.policy_lines import write_lines
from tertulia.runs.budgets import open_ledger
from tertulia.runs.directory import Run
from tertulia.runs.plan import plan_of
from tertulia.view.dry_run import dry_run

OTHER = "ab" * 32


@pytest.fixture(scope="module")
def agreed(tmp_path_factory):
    """A federation whose members have approved; tests change nothing of it but the server's run."""
    return Sites(tmp_path_factory.mktemp("agreed")).agree()


def charged(sites, member="north"):
    return open_ledger(str(sites.parties[member].home)).releases()


# --- the plan is pinned -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"keys": {"north": None, "south": OTHER, "east": None}},  # a member swapped, or given another key
        {
            "parties": (*MEMBERS, "west"),
            "keys": {"north": None, "south": None, "east": None, "west": OTHER},
        },  # invented
        {"parties": MEMBERS[:2], "keys": {"north": None, "south": None}},  # left out
        {"keys": {}},  # as if there were no keys
    ],
    ids=["swapped", "invented", "left-out", "without-keys"],
)
def test_a_roster_that_changed_after_approval_is_refused_by_all(agreed, tmp_path, change):
    proposal = agreed.registry.current()
    keys = {name: key or proposal.keys[name] for name, key in change["keys"].items()}
    settings = agreed.server.file.run_settings(tmp_path / "run")
    run = Run(
        tmp_path / "run", proposal.run, change.get("parties", MEMBERS), settings.model_dump(mode="json"), keys=keys
    )
    run.save()
    with pytest.raises(QuorumError, match="refused by rule 'plan'"):
        agreed.finish(run)
    assert not any(charged(agreed, member) for member in MEMBERS)


def test_a_run_that_nobody_approved_is_refused_by_all(agreed, tmp_path):
    settings, keys = agreed.server.file.run_settings(tmp_path / "run"), agreed.registry.current().keys
    run = Run(tmp_path / "run", "00" * 8, MEMBERS, settings.model_dump(mode="json"), keys=keys)
    run.save()
    with pytest.raises(QuorumError, match="refused by rule 'run'"):
        agreed.finish(run)


@pytest.mark.parametrize("run", ["../north", "..", "", "runs", "a" * 5000, "%2e"])
def test_a_runs_name_leads_nowhere_else(agreed, run):
    carried = agreed.carried()
    answer = read_answer(carried.ask({"north": Inquiry(run, "ledger digest").to_bytes()}, None)["north"])
    assert answer.kind == "refused"


# --- a hostile proposal -----------------------------------------------------------------------------------------


def forged(proposal, **changes):
    """A proposal that the server changed, with all its names right."""
    other = dataclasses.replace(proposal, **changes)
    with contextlib.suppress(ConfigError, FormatError):
        other = dataclasses.replace(other, plan=plan_of(other.run_settings, other.roster, other.keys).hash)
    return other.to_bytes()


def test_a_proposal_that_names_a_file_is_not_read(agreed, tmp_path):
    (tmp_path / "words.txt").write_text("secret\n")
    proposal = agreed.registry.current()
    method = {**proposal.settings["method"], "vocabulary": {"mode": "public", "words": str(tmp_path / "words.txt")}}
    for settings in (
        {**proposal.settings, "method": method},
        {**proposal.settings, "directory": "/tmp"},
        {**proposal.settings, "parties": {"north": {"path": "/etc/passwd"}}},
        {**proposal.settings, "method": {"name": "pctd", "vectors": "/etc/passwd"}},
    ):
        with pytest.raises(FormatError, match="proposal"):
            agreed.consider("north", forged(proposal, settings=settings))


def test_a_proposal_of_a_simulation_or_of_a_method_that_is_not_offered(agreed, tmp_path):
    proposal = agreed.registry.current()
    federation = {**proposal.settings["federation"], "owners": "one"}
    with pytest.raises(ConfigError, match="a simulation"):
        agreed.consider("north", forged(proposal, settings={**proposal.settings, "federation": federation}))
    custom = {"name": "custom", "module": "os"}
    with pytest.raises(FormatError, match="proposal"):
        agreed.consider("north", forged(proposal, settings={**proposal.settings, "method": custom}))
    alone = {"name": "alone", "topics": 2}
    with pytest.raises(ConfigError, match="does not offer the method 'alone'"):
        agreed.consider("north", forged(proposal, settings={**proposal.settings, "method": alone}))


def test_another_key_for_this_party_is_noticed(agreed):
    proposal = agreed.registry.current()
    with pytest.raises(ConfigError, match="names a key for this party that is not the one"):
        agreed.consider("north", forged(proposal, keys={**proposal.keys, "north": OTHER}))


def test_a_plan_that_means_something_else_is_noticed(agreed):
    proposal = dataclasses.replace(agreed.registry.current(), plan="00" * 32, version="9.9.9")
    with pytest.raises(ConfigError, match=r"its version is 9\.9\.9, and all need the same"):
        _ = agreed.consider("north", proposal.to_bytes()).proposal.own_plan


def test_a_proposal_under_a_false_name_is_not_read(agreed):
    facts = json.loads(agreed.registry.proposal())
    for change in ({"run": "../../x"}, {"run": "0" * 16}, {"roster": ["north", "north"]}, {"keys": {"x": OTHER}}):
        with pytest.raises(FormatError):
            Proposal.from_bytes(json.dumps({**facts, **change}).encode())


def test_an_approval_of_something_else_is_not_noted(agreed):
    for approval in (b"", b"[]", b'{"run": "x", "plan": "y"}'):
        with pytest.raises(ConfigError, match="not what is proposed now"):
            agreed.registry.approve("north", approval)
    with pytest.raises(ConfigError, match="not what is proposed now"):
        agreed.registry.approve("stranger", agreed.consider("north").approval())


# --- what the server gets to see --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    sites = Sites(tmp_path_factory.mktemp("finished")).agree()
    run, carried = sites.registry.start(), sites.carried()
    sites.finish(run, transport=carried)
    sites.registry.end(run.id, "finished")
    sites.received = [*carried.received, *(sites.consider(member).approval() for member in MEMBERS)]
    return sites


def test_the_server_receives_no_path_and_no_policy(finished):
    assert len(finished.received) > 20
    secrets = [str(finished.base), "jsonl", "policy", "allow_clear", "party.toml", "note"]
    for data in finished.received:
        assert not [secret for secret in secrets if secret.encode() in data]
    for path in finished.server.directory.rglob("*"):
        if path.is_file() and path.name != "federation.toml":
            text = path.read_bytes().replace(str(finished.server.directory).encode(), b"")
            assert not [secret for secret in secrets if secret.encode() in text], path


def test_a_forgotten_run_is_answered_no_more(finished):
    party, run = finished.parties["east"], finished.registry.newest()
    before = charged(finished, "east")
    assert set(party.forget(run)) == {"corpus", "answers"}
    opened = Run.open(finished.server.runs / run)
    for commit in (opened.directory / "server").glob("commit-*"):
        commit.unlink()
    warnings = []
    with contextlib.suppress(QuorumError):
        finished.finish(opened, observe=lambda kind, facts: warnings.append(facts.get("text", "")))
    assert any("'east' did not answer: refused by rule 'plan'" in text for text in warnings)
    assert charged(finished, "east") == before
    with pytest.raises(ConfigError, match="was forgotten here"):
        finished.consider("east").lay_out()


# --- policies and budgets ---------------------------------------------------------------------------------------


def test_without_a_policy_check_says_that_nothing_may_leave_in_clear(tmp_path):
    sites = Sites(tmp_path)
    sites.join(*MEMBERS)
    sites.parties["north"].policy_path.unlink()
    verdicts = {row["what"]: row["verdict"] for row in dry_run(sites.consider("north").settings)["disclosed"]}
    assert "allow_clear" in verdicts["topic-word counts"]


def test_a_question_that_is_too_long_is_not_read(tmp_path):
    sites = Sites(tmp_path)
    sites.join("north")
    write_lines(sites.parties["north"].policy_path, {"max_question_bytes": 100})
    assert read_answer(Attendant(sites.parties["north"]).answer(b"x" * 101)).kind == "refused"
    assert read_answer(Attendant(sites.parties["north"]).answer(b"x" * 99)).kind == "failed"


def test_without_the_lines_nothing_leaves(tmp_path):
    sites = Sites(tmp_path)
    sites.join(*MEMBERS)
    for member in MEMBERS:
        seen = sites.consider(member)
        seen.lay_out()
        sites.registry.approve(member, seen.approval())
    with pytest.raises(QuorumError, match="refused by rule 'allow_clear'"):
        sites.finish(sites.registry.start())
    assert not charged(sites)


def test_a_policy_that_gets_stricter_in_the_middle_holds_at_once(tmp_path):
    sites, warnings = Sites(tmp_path).agree(), []

    def observe(kind, facts):
        if kind == "warning":
            warnings.append(facts["text"])
        elif facts["round"] == 2:
            write_lines(sites.parties["south"].policy_path, {"allow_single": False})

    sites.finish(sites.registry.start(), observe)
    assert any("'south' did not answer: refused by rule 'allow_single'" in text for text in warnings)
    assert max(release.round for release in charged(sites, "south")) < max(r.round for r in charged(sites, "north"))


def test_a_budget_without_room_is_noticed_before_anything_is_approved(tmp_path):
    method = METHOD + 'mode = "sound"\nepsilon = 8.0\nvocabulary = { mode = "public", words = ["harbour", "garden"] }\n'
    sites = Sites(tmp_path, method=method)
    sites.join(*MEMBERS)
    path = sites.parties["north"].policy_path
    path.write_text(path.read_text() + '\n[[budget]]\nunit = "token"\nadjacency = "substitute"\nepsilon = 1.0\n')
    with pytest.raises(PolicyRefusal, match="beyond 1"):
        sites.consider("north").check()
    sites.consider("south").check()


def test_a_plan_beyond_the_policys_caps_is_noticed_before_anything_is_approved(tmp_path):
    sites = Sites(tmp_path)
    sites.join(*MEMBERS)
    write_lines(sites.parties["north"].policy_path, {"max_rounds": 2})
    with pytest.raises(PolicyRefusal, match="the plan has rounds = 3, and the policy allows 2"):
        sites.consider("north").check()


def test_an_epsilon_of_ones_own_needs_a_plan_with_noise(tmp_path):
    sites = Sites(tmp_path)
    sites.join(*MEMBERS)
    file = sites.base / "north" / "party.toml"
    file.write_text(file.read_text().replace("#threads = 2", "epsilon = 2.0"))
    with pytest.raises(PolicyRefusal, match=r"\[choices\] has epsilon = 2, and the plan has no noise"):
        sites.consider("north").check()


# --- members come and go ----------------------------------------------------------------------------------------


def test_who_approves_late_starts_from_the_current_model(tmp_path):
    sites = Sites(tmp_path)
    sites.join(*MEMBERS)
    sites.approve("north", "south")
    run, seen = sites.registry.start(), {}

    def observe(kind, facts):
        if kind == "round":
            seen[facts["round"]] = sorted(party for party, (_, up) in facts["bytes"].items() if up > 500)
            if facts["round"] == 3:
                sites.approve("east")  # what is under way is what it is shown

    sites.finish(run, observe)
    assert seen[3] == ["north", "south"]
    assert seen[5] == sorted(MEMBERS)


def test_a_party_has_the_model_that_it_chose_itself(tmp_path, tertulia):
    sites = Sites(tmp_path)
    sites.edit("heldout = 0.1", "heldout = 0.1\nvalidation = 0.2")
    run = sites.agree().registry.start()
    sites.finish(run)
    place = sites.parties["north"].runs / run.id
    sites.registry.end(run.id, "finished")
    keep_model(sites.parties["north"], run.id, sites.registry.model("north", run.id))  # that one has no party
    code, out, err = tertulia("topics", place, "--json")
    assert code == 0, err
    assert json.loads(out)["provenance"]["party"] == "north"
    sites.parties["north"].forget(run.id)
    code, _, err = tertulia("topics", place)
    assert code == 1
    assert "was forgotten here" in err


HOSTILE = [
    None,
    True,
    -1,
    0,
    10**30,
    1e308,
    float("nan"),
    "",
    "x",
    "../../x",
    "\ud800",
    [],
    {},
    [[]],
    {"": {}},
    ["x"] * 3,
]


def places(value, path=()):
    """The paths of all values in a tree."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def put(tree, path, value):
    if not path:
        return value
    copy = dict(tree) if isinstance(tree, dict) else list(tree)
    copy[path[0]] = put(tree[path[0]], path[1:], value)
    return copy


def test_whatever_a_server_proposes_is_right_or_an_error_of_ours(agreed):
    facts = json.loads(agreed.registry.proposal())
    facts.pop("run")
    tried, read, said = 0, 0, []
    for path in [path for path in places(facts) if path]:
        for value in HOSTILE:
            forgery = Proposal(**put(facts, path, value))
            tried += 1
            try:
                seen = agreed.consider("north", forgery.to_bytes())  # its id is right, as a server can make it
                _ = seen.proposal.own_plan, seen.settings, seen.keys(), seen.lines_needed(), seen.check()
                read += 1
            except TertuliaError as error:
                said.append(str(error))
    assert not [text for text in said if "\n" in text or len(text) > 600]
    assert tried > 500
    assert 0 < read < tried / 2
