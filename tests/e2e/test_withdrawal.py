"""`tertulia withdraw`: later runs are without the documents, nothing is charged again, and pages say what stays."""

import json
from contextlib import closing

import pytest

from helpers.runs import Interrupted, interrupt_at
from helpers.sites import MEMBERS, Sites
from helpers.texts import STEMS, halves, mixed
from tertulia.corpus import Corpus
from tertulia.federation.party.reader import PartyReader
from tertulia.privacy.mechanisms import Adjacency, Unit
from tertulia.privacy.snapshots import read_ledger
from tertulia.privacy.withdrawals import NOT_RECALLED
from tertulia.runs.directory import Run
from tertulia.runs.driver import finish
from tertulia.runs.one_machine import begin
from tertulia.runs.scenarios import compare
from tertulia.runs.settings import load
from tertulia.view.pages.officer import officer_sections

USERS = ["ann", "ben", "cleo", "dan"]
CONFIG = f"""
seed = 1
heldout = 0.0

[method]
name = "consensus"
mode = "sound"
epsilon = 8.0
topics = 2
rounds = 1
sweeps = 1
start_sweeps = 1
vocabulary = {{ mode = "public", words = {json.dumps(STEMS)} }}

[parties.north]
path = "north.jsonl"
id = "id"
user = "who"
home = "home"

[parties.south]
path = "south.jsonl"
"""


@pytest.fixture
def project(tmp_path):
    for seed, party in enumerate(("north", "south")):
        rows = [{"text": t, "id": f"d{i}", "who": USERS[i % 4]} for i, t in enumerate(mixed(seed, 12))]
        (tmp_path / f"{party}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "run.toml").write_text(CONFIG)
    return tmp_path


def run(tertulia, project, name):
    code, _, err = tertulia("run", project / "run.toml", "--directory", project / name)
    assert code == 0, err
    return project / name / "parties" / "north"


def ledger_of(project):
    """The digest of north's ledger, its charges, and what they cost a word and a user."""
    with closing(read_ledger(project / "home")) as ledger:
        cost = [ledger.cost(unit, Adjacency.SUBSTITUTE, 1e-6).epsilon for unit in (Unit.TOKEN, Unit.DOCUMENT)]
        kinds = [row.entry.id.partition(":")[0] for row in ledger.entries()]
        return ledger.digest(), [r.id for r in ledger.releases() if r.charges], cost, kinds.count("documents")


def ids(party):
    return [int(name[1:]) for name in PartyReader(party).parts["train"].table["id"]]


def test_the_next_run_is_without_the_documents_and_charges_nothing_again(tertulia, project):
    first = run(tertulia, project, "first")
    _, charges, cost, batches = ledger_of(project)
    code, out, err = tertulia("withdraw", first, "--user", "ann", "--document", "d1", "--yes")
    assert code == 0, err
    assert "user 'ann': 3 documents now, copies in 1 run; its tokens were reported" in out
    assert "withdrawn: 1 user and 1 document; entry" in out
    assert "Cannot be called back: totals that the server has received" in out
    second = run(tertulia, project, "second")
    assert ids(second) == [i for i in range(2, 12) if i % 4]
    assert Corpus.load(second / "corpus").n_documents == 8  # the copy has no others
    assert ledger_of(project)[1:] == (charges, cost, batches)
    assert ids(first) == list(range(12))  # pages on the first run still show what it used

    said = json.loads(tertulia("privacy", second.parents[1], "--json")[1])["verdicts"]
    north, south = ({row["party"]: row["withdrawn"] for row in said}[party] for party in ("north", "south"))
    assert north.partition(": ")[2] == f"3 documents of 1 user and 1 document. {NOT_RECALLED}"
    assert south == ""
    assert NOT_RECALLED in str(officer_sections(PartyReader(second), 1e-6))
    assert "a user or a document that was withdrawn (hashes)" in tertulia("ledger", "show", project / "home")[1]
    assert tertulia("ledger", "verify", project / "home")[0] == 4  # unsure only of the end, without a model


def test_new_and_returned_documents_of_a_withdrawn_user_stay_out(tertulia, project):
    first = run(tertulia, project, "first")
    assert tertulia("withdraw", first, "--user", "ann", "--yes")[0] == 0
    rows = [json.loads(line) for line in (project / "north.jsonl").read_text().splitlines()]
    for row in rows[:2]:
        row["who"] = USERS[1] if row["who"] == "ann" else "ann"
    rows.append({"text": mixed(9, 1)[0], "id": "d99", "who": "ann"})
    (project / "north.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    second = run(tertulia, project, "second")
    found = ids(second)
    assert 0 in found  # it is another user's now
    assert not {1, 4, 8, 99} & set(found)


UNKNOWN = {
    ("--user", "Ann"): "rule 'withdrawal': user 'Ann' is unknown to",
    ("--document", "d12"): "Names are compared exactly, with capitals and blanks",
    ("--user", "ann", "--user", "nobody"): "nothing was written",
    ("--user", " "): "rule 'withdrawal': an empty name is no user",
    (): "nothing to withdraw: give --user ID or --document ID",
}


def test_an_unknown_name_is_refused_and_nothing_is_written(tertulia, project):
    first = run(tertulia, project, "first")
    before = ledger_of(project)
    for given, said in UNKNOWN.items():
        code, _, err = tertulia("withdraw", first, *given, "--yes")
        assert code == 1
        assert said in " ".join(err.split())
        assert ledger_of(project) == before


def test_a_second_withdrawal_of_the_same_name_writes_nothing(tertulia, project):
    first = run(tertulia, project, "first")
    assert tertulia("withdraw", first, "--user", "ann", "--yes")[0] == 0
    before = ledger_of(project)
    code, out, _ = tertulia("withdraw", first, "--user", "ann")  # asks nothing
    assert (code, ledger_of(project)) == (0, before)
    assert "user 'ann' was withdrawn on 20" in out


def test_a_party_without_a_home_or_ids_says_so(tertulia, project):
    run(tertulia, project, "first")
    code, _, err = tertulia("withdraw", project / "first" / "parties" / "south", "--user", "ann", "--yes")
    assert code == 1
    assert "has no home: what is withdrawn there would be forgotten with the run" in " ".join(err.split())
    nameless = CONFIG.replace('user = "who"\n', "")
    (project / "run.toml").write_text(nameless.replace('"home"', '"other"'))
    again = run(tertulia, project, "nameless")
    code, _, err = tertulia("withdraw", again, "--user", "ann", "--yes")
    assert code == 1
    assert "name the column of users by `user`" in " ".join(err.split())


def test_a_run_that_has_begun_goes_on_without_the_party(tertulia, project):
    text = CONFIG.replace('mode = "sound"\nepsilon = 8.0\n', "").replace("rounds = 1", "rounds = 3")
    (project / "run.toml").write_text(text)
    begun = begin(load(project / "run.toml").replace(directory=str(project / "begun")))
    with pytest.raises(Interrupted):
        finish(begun, observe=interrupt_at(2))
    north = begun.party_directory("north")
    before = ledger_of(project)[1]
    code, out, _ = tertulia("withdraw", north, "--user", "ann", "--yes")
    assert code == 0
    assert f"run {begun.id} has begun with them: from now on this party answers it no more" in " ".join(out.split())
    model = finish(Run.open(begun.directory))
    assert model.topic_word.shape == (2, len(STEMS))
    assert set(PartyReader(north).refusals()) == {"withdrawal"}
    assert ledger_of(project)[1] == before


@pytest.mark.slow
def test_scenarios_are_compared_without_withdrawn_documents(tertulia, project):
    first = run(tertulia, project, "first")
    assert tertulia("withdraw", first, "--user", "ann", "--yes")[0] == 0
    (project / "run.toml").write_text(CONFIG.replace('mode = "sound"\nepsilon = 8.0\n', ""))
    compare(load(project / "run.toml").replace(directory=str(project / "compared"), heldout=0.3), lambda said: None)
    sizes = {}
    for copy in (project / "compared").glob("**/corpus"):
        sizes.setdefault(copy.parent.name, set()).add(Corpus.load(copy).n_documents)
    assert sizes == {"north": {9}, "south": {12}, "pooled": {21}}


@pytest.fixture
def sites(tmp_path):
    sites = Sites(tmp_path, method='name = "consensus"\ntopics = 2\nrounds = 1\nsweeps = 1\nstart_sweeps = 1\n')
    sites.join(*MEMBERS)
    file = sites.parties["north"].directory / "party.toml"
    file.write_text(file.read_text().replace('text = "note"', 'text = "note"\nid = "id"\nuser = "who"'))
    rows = [{"note": text, "id": f"d{i}", "who": USERS[i % 4]} for i, text in enumerate(halves(1, 40))]
    (tmp_path / "north.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return sites


def test_between_organisations_copies_are_made_and_runs_begin_without_them(tertulia, sites):
    party = sites.parties["north"]
    code, out, _ = tertulia("withdraw", party.directory, "--user", "ben", "--yes")  # before anything was approved
    assert code == 0
    sites.approve(*MEMBERS)
    (directory,) = party.run_directories()
    assert set(Corpus.load(directory / "corpus").table["user"]) == {"ann", "cleo", "dan"}
    code, out, _ = tertulia("withdraw", party.directory, "--user", "ann", "--yes")  # before the run begins
    assert code == 0
    assert "10 documents now, copies in 1 run; no reports of its tokens are in the ledger" in out
    sites.run()
    users = set(PartyReader(directory).parts["train"].table["user"])
    assert users == {"cleo", "dan"}
    assert "20 documents of 2 users." in tertulia("privacy", party.directory)[1]
    code, out, _ = tertulia("withdraw", party.directory, "--user", "dan", "--yes")  # after its end
    assert code == 0
    assert f"tertulia forget {party.directory} {directory.name}" in " ".join(out.split())
