"""The operator's way, as it is typed: from `init` to `forget`, each command a process, with kills in the middle.

One federation serves for everything: it is made once, and tests look at what was said and written on the way.
"""

import json
import signal
import socket
import time
from pathlib import Path

import numpy as np
import pytest

from helpers.commands import Typist
from helpers.texts import halves
from tertulia.models import Topics
from tertulia.runs.driver import finish
from tertulia.runs.one_machine import begin
from tertulia.runs.settings import RunSettings

MEMBERS = ("north", "south", "east")
ROUNDS, PATIENCE = 60, 120.0
METHOD = f'name = "consensus"\ntopics = 3\nrounds = {ROUNDS}\nsweeps = 2\nstart_sweeps = 3\n'


class Way:
    """What was typed, and what was said to it."""

    def __init__(self, base: Path):
        self.base, self.server, self.said, self.running = base / "way", base / "way" / "oncology", {}, {}
        (base / "typed").mkdir()
        self.base.mkdir()
        self.typist = Typist(base / "typed")
        with socket.socket() as free:
            free.bind(("localhost", 0))
            self.port = free.getsockname()[1]

    def type(self, *arguments, answers="", label=None):
        """Type a command; what came of it is (exit code, output, errors)."""
        typed = self.typist.type(*arguments, cwd=self.base, answers=answers)
        found = (typed.wait(), typed.out, typed.err)
        self.said[label or " ".join(map(str, arguments))] = found
        return found

    def begin(self, *arguments):
        """Type a command that stays."""
        self.running[arguments] = self.typist.type(*arguments, cwd=self.base)

    def end(self, *arguments, how=signal.SIGTERM):
        """End a command that stays; its exit code and all that it said."""
        typed = self.running[arguments]
        typed.send_signal(how)
        return typed.wait(), typed.err

    def status(self):
        code, out, err = self.type("status", "oncology", "--json", label="status")
        assert code == 0, err
        return json.loads(out)

    def events(self):
        log = self.server / "server.log"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def wait(self, ready, what):
        until = time.monotonic() + PATIENCE
        while not ready():
            assert time.monotonic() < until, f"{what}: {self.events()[-5:]}"
            time.sleep(0.05)

    def wait_for(self, event, number=1):
        self.wait(lambda: sum(e["event"] == event for e in self.events()) >= number, f"{number} times {event}")

    def wait_for_round(self, number):
        self.wait(lambda: max((e.get("round", 0) for e in self.events()), default=0) >= number, f"round {number}")


def texts_of(member):
    return halves(MEMBERS.index(member) + 1, 60)


def prepare(way):
    way.type("init", "oncology", "--members", ",".join(MEMBERS), "--address", f"localhost:{way.port}", label="init")
    file = way.server / "federation.toml"
    head, _, rest = file.read_text().partition("[method]")
    rest = rest.partition("[text]")[2].replace("absent_after = 30.0", "absent_after = 90.0")
    rest = rest.replace("secure = true ", "secure = false ")  # a round of three would wait for the one that is killed
    file.write_text(f"{head}[method]\n{METHOD}\n[text]{rest}")
    for member in MEMBERS:
        rows = [json.dumps({"number": i, "note": text}) for i, text in enumerate(texts_of(member))]
        (way.base / f"{member}.jsonl").write_text("\n".join(rows) + "\n")


def join(way, member):
    invitation = f"oncology/invitations/{member}.invite"
    way.type("join", invitation, "--documents", f"{member}.jsonl", "--text", "note", label=f"join {member}")


def disturb(way):
    """Kill a party, then the server, in the middle of the run; then end both politely; start them again each time."""
    way.wait_for_round(3)
    file = way.server / "federation.toml"
    file.write_text(file.read_text().replace("seed = 0", "seed = 1"))
    way.type("start", "oncology", label="start when under way")
    way.edited = way.status()
    way.end("attend", "north", how=signal.SIGKILL)
    way.begin("attend", "north")
    way.wait_for_round(12)
    way.end("serve", "oncology", how=signal.SIGKILL)
    way.killed_at = max(e.get("round", 0) for e in way.events())
    way.begin("serve", "oncology")
    way.wait_for_round(24)
    way.terminated = [way.end("attend", "south")[0]]
    way.begin("attend", "south")
    way.wait_for_round(36)
    way.terminated.append(way.end("serve", "oncology")[0])
    way.begin("serve", "oncology")
    way.wait_for("finished")


@pytest.fixture(scope="module")
def way(tmp_path_factory):
    way = Way(tmp_path_factory.mktemp("way"))
    try:
        prepare(way)
        way.begin("serve", "oncology")
        way.wait_for("serving")
        for member in MEMBERS[:2]:
            join(way, member)
        way.type("approve", "north", "--yes", label="approve too early")
        join(way, "east")
        way.type("check", "north", "--json", label="check")
        way.type("start", "oncology", label="start too early")
        way.type("approve", "north", answers="y\n" * 9, label="approve north")
        for member in MEMBERS[1:]:
            way.type("approve", member, "--yes", label=f"approve {member}")
        for member in MEMBERS:
            way.begin("attend", member)
        way.type("start", "oncology", label="start")
        disturb(way)
        way.ended = way.status()
        yield way
    finally:
        way.typist.close()


def test_every_command_says_what_to_type_next(way):
    for label in ("init", "join north", "approve north", "start"):
        code, out, err = way.said[label]
        assert code == 0, (label, err)
        assert "next: tertulia" in out, label
    for member in MEMBERS:
        assert f"{member}.invite" in way.said["init"][1]


def test_approve_shows_where_users_may_have_documents(way):
    shown = " ".join(way.said["approve north"][1].split())
    assert "federation.users" in shown
    assert "anywhere" in shown


def test_who_is_missing_is_named(way):
    code, _, err = way.said["approve too early"]
    assert code == 1
    assert "not all members have joined: east can still do so" in err
    code, _, err = way.said["start too early"]
    assert code == 1
    assert "0 of 3 members have approved, and 2 must" in err
    assert "north, south, east" in err


def test_check_says_what_would_be_read_and_what_leave(way):
    code, out, _ = way.said["check"]
    report = json.loads(out)
    assert code == 3  # the strict policy refuses
    assert [(row["party"], row["documents"]) for row in report["read"]] == [("north", 60)]
    verdicts = {row["what"]: row["verdict"] for row in report["disclosed"]}
    assert "allow_clear" in verdicts["topic-word counts"]
    assert verdicts["number of documents"] == "allowed"


def test_approve_writes_the_accepted_lines_and_shows_all_keys(way):
    out = way.said["approve north"][1]
    assert 'allow_clear = ["words with document counts"' in out
    assert "allow_metrics = true" in out
    members = json.loads((way.server / "members.json").read_text())
    for member in MEMBERS:
        key = members[member]["fingerprint"]
        assert key[:4] + " " + key[4:8] in out
    policy = (way.base / "north" / "policy.toml").read_text()
    assert "\nallow_metrics = true\n" in policy
    assert "# Things that are no secret here." in policy  # comments stay


def test_files_are_their_owners_alone(way):
    for directory in (way.server, *(way.base / member for member in MEMBERS)):
        for path in (directory, *directory.rglob("*")):
            assert path.stat().st_mode & 0o077 == 0, path


def test_a_killed_run_ends_bit_for_bit_like_the_same_run_on_one_machine(way, tmp_path):
    assert way.ended["run"]["state"] == "finished"
    assert 12 <= way.killed_at < ROUNDS
    assert [event["event"] for event in way.events()].count("run") == 3  # it was taken up twice
    assert way.terminated == [0, 0]
    absent = [event for event in way.events() if event["event"] == "warning"]
    assert not absent
    (tmp_path / "policy.toml").write_text("")
    parties = {
        member: {"path": str(way.base / f"{member}.jsonl"), "text": "note", "policy": str(tmp_path / "policy.toml")}
        for member in MEMBERS
    }
    method = {"name": "consensus", "topics": 3, "rounds": ROUNDS, "sweeps": 2, "start_sweeps": 3}
    settings = RunSettings(
        directory=str(tmp_path / "run"), method=method, parties=parties, federation={"owners": "several"}
    )
    alone, together = finish(begin(settings)), Topics.load(way.base / way.ended["model"])
    assert together.vocabulary.words == alone.vocabulary.words
    np.testing.assert_array_equal(together.topic_word, alone.topic_word)
    np.testing.assert_array_equal(together.alpha, alone.alpha)


def test_an_edit_in_the_middle_changes_nothing(way):
    code, _, err = way.said["start when under way"]
    assert code == 1
    assert "is under way, as its members have approved it; what was edited since counts for the next one" in err
    assert way.edited["edited"]
    run = json.loads((way.server / "runs" / way.ended["run"]["id"] / "run.json").read_text())
    assert run["config"]["seed"] == 0


def test_status_has_members_rounds_and_bytes(way):
    run = way.edited["run"]
    assert run["state"] == "under way"
    assert run["round"] >= 3
    assert run["absent"] == []
    assert all(down > 0 and up > 0 for down, up in run["bytes"].values())
    assert [row["member"] for row in way.edited["members"]] == list(MEMBERS)
    assert all(row["connected"] and row["approved"] and row["state"] == "joined" for row in way.edited["members"])
    code, out, _ = way.type("status", "north", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["attending"]
    assert found["runs"][0]["method"] == "consensus"


def test_the_server_has_no_path_and_no_policy_of_a_party(way):
    secrets = [str(way.base / member) for member in MEMBERS] + [f"{member}.jsonl" for member in MEMBERS]
    secrets += ["policy.toml", "allow_clear", "note"]
    for path in way.server.rglob("*"):
        if path.is_file() and path.name != "federation.toml":
            found = [secret for secret in secrets if secret.encode() in path.read_bytes()]
            assert not found, path


def test_a_used_invitation_is_refused(way):
    code, _, err = way.type("join", "oncology/invitations/north.invite", "--directory", "thief")
    assert code == 1
    assert "this invitation was used already" in err
    assert not (way.base / "thief" / "party.toml").exists()


def test_a_join_that_was_broken_off_is_taken_up(way):
    file = way.base / "east" / "party.toml"
    before = file.read_text()
    file.unlink()  # as after a kill between the certificate and the last file
    code, _, err = way.type("join", "oncology/invitations/north.invite", "--directory", "east")
    assert code == 1
    assert "east holds the identity of 'east', and the invitation is for 'north'" in err
    invitation = "oncology/invitations/east.invite"
    assert way.type("join", invitation, "--documents", "east.jsonl", "--text", "note")[0] == 0
    assert file.read_text() == before


def test_a_file_that_is_no_invitation(way):
    code, _, err = way.type("join", "oncology/federation.toml", "--directory", "thief")
    assert code == 1
    assert "is not an invitation: use the file that the operator has sent" in err


def test_a_server_under_another_name_is_not_trusted(way):
    file = way.base / "north" / "party.toml"
    before = file.read_text()
    file.write_text(before.replace("localhost:", "127.0.0.1:"))
    code, _, err = way.type("check", "north")
    file.write_text(before)
    assert code == 1
    assert "is not for '127.0.0.1': use the name that the operator gave" in err


def test_a_place_that_holds_a_party_is_refused(way):
    code, _, err = way.type("join", "oncology/invitations/north.invite")
    assert code == 1
    assert "north holds a party already, 'north'" in err


def test_two_servers_or_two_attendants_are_one_too_many(way):
    code, _, err = way.type("serve", "oncology")
    assert code == 1
    assert "oncology is in use by process" in err
    code, _, err = way.type("attend", "south")
    assert code == 1
    assert "run `tertulia attend south`" in err


def test_a_port_that_is_taken(way):
    way.type("init", "cardiology", "--members", "north", "--address", f"localhost:{way.port}")
    code, _, err = way.type("serve", "cardiology")
    assert code == 1
    (line,) = err.splitlines()  # and nothing of gRPC's own
    assert line.startswith(f"error: cannot listen on localhost:{way.port}: Address already in use; choose another")


def test_a_finished_run_is_not_started_again(way):
    """The seed was edited meanwhile: another run is proposed, and nobody has approved it."""
    assert way.ended["proposal"]["run"] != way.ended["run"]["id"]
    code, _, err = way.type("start", "oncology")
    assert code == 1
    assert "0 of 3 members have approved" in err


def test_a_reason_travels_with_the_proposal(way):
    before = way.status()["proposal"]["run"]
    code, out, err = way.type("start", "oncology", "--reason", "the winter's notes are complete")
    assert code == 0, err
    assert "next: tertulia approve NAME" in out
    proposed = way.status()["proposal"]
    assert proposed["run"] != before  # the id is a hash of the proposal, with its reason
    code, _, err = way.type("check", "north")
    assert "reason of the run, by the operator: the winter's notes are complete" in " ".join(err.split())
    for wrong, says in (("a" * 501, "500"), ("red \x1b[31m", "control characters")):
        code, _, err = way.type("start", "oncology", "--reason", wrong)
        assert (code, says in err) == (1, True), err
    assert way.status()["proposal"]["run"] == proposed["run"]
    code, _, err = way.type("start", "oncology", "--reason", "the winter's notes are complete")
    assert (code, "members have approved" in err) == (1, True)  # nothing is new, so the run would begin


def test_privacy_then_forget(way):
    run = way.ended["run"]["id"]
    code, out, err = way.type("privacy", "south")
    assert code == 0, err
    assert "NOT PROTECTED" in out
    directory = way.base / "south" / "runs" / run
    assert (directory / "corpus").exists()
    entries = way.type("ledger", "show", "south", "--json")[1]
    code, out, _ = way.type("forget", "south", run, "--yes")
    assert code == 0
    assert "next: tertulia privacy south" in out
    assert {path.name for path in directory.iterdir() if path.is_dir()} == set()
    assert way.type("ledger", "show", "south", "--json")[1] == entries
    code, out, err = way.type("privacy", "south")
    assert code == 0, err
    assert "were forgotten" in " ".join(out.split())


def test_leave_revoke_and_invite(way):
    code, out, err = way.type("leave", "south", "--yes")
    assert code == 0, err
    assert "tertulia privacy south" in out
    code, _, err = way.type("check", "south")
    assert code == 1
    assert "this member has left the federation" in err
    assert way.type("revoke", "oncology", "east", "--yes")[0] == 0
    code, _, err = way.type("check", "east")
    assert code == 1
    assert "was revoked" in err
    assert way.type("invite", "oncology", "north")[0] == 1  # it has joined
    code, out, _ = way.type("invite", "oncology", "west")
    assert code == 0
    assert '"west"]' in (way.server / "federation.toml").read_text()
    states = {row["member"]: row["state"] for row in way.status()["members"]}
    assert states == {"north": "joined", "south": "left", "east": "revoked", "west": "invited"}


def test_sigterm_ends_with_0_and_ctrl_c_says_how_to_go_on(way):
    assert way.end("attend", "north")[0] == 0
    way.begin("attend", "north")
    way.wait(lambda: json.loads((way.base / "north" / "status.json").read_text())["connected"], "north is back")
    code, said = way.end("attend", "north", how=signal.SIGINT)
    assert code == 130
    assert "`tertulia attend north` goes on where it was" in said
    assert way.end("serve", "oncology")[0] == 0
    way.begin("serve", "oncology")
    way.wait_for("serving", 4)
    code, said = way.end("serve", "oncology", how=signal.SIGINT)
    assert code == 130
    assert "`tertulia serve oncology` goes on from the last round" in said
