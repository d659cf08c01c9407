"""Continue from an earlier model: the next quarter's documents and words, on top of the last model."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import safetensors.numpy as safetensors

import tertulia as tt
from helpers.marks import slow
from helpers.serving import attending, on_a_free_port, serving, wait
from helpers.sites import METHOD, Sites
from helpers.texts import PUBLIC, STEMS, halves
from tertulia._toml import with_value
from tertulia.corpus import TextOptions
from tertulia.errors import ConfigError, FormatError, QuorumError
from tertulia.federation.codec import encode
from tertulia.models import Topics, storage
from tertulia.network.party import received_models as starting
from tertulia.network.party.approval import Review
from tertulia.network.proposals import Proposal
from tertulia.runs.directory import Run

SOUND = {"mode": "sound", "epsilon": 6.0, "vocabulary": PUBLIC}
METHODS = {
    "consensus": tt.Consensus(topics=3, rounds=2, sweeps=2, start_sweeps=2),
    "consensus-sound": tt.Consensus(topics=3, rounds=2, sweeps=2, start_sweeps=2, beta=0.1, **SOUND),
    "ftm": tt.FTM(topics=3, rounds=2, sweeps=4),
    "ftm-sound": tt.FTM(topics=3, rounds=2, sweeps=4, **SOUND),
    "ftm-sentences": tt.FTM(topics=3, rounds=2, sweeps=4, model="sentence"),
    "ftm-paper": tt.FTM(topics=3, rounds=2, sweeps=4, mode="paper", epsilon=5.0),
    "fedlda": tt.FedLDA(topics=3, rounds=4, more_rounds=2),
    "fedlda-sound": tt.FedLDA(topics=3, rounds=4, more_rounds=2, **SOUND),
    "pctd": tt.PCTD(topics=3, rounds=4, more_rounds=2),
    "gfedntm": tt.GFedNTM(topics=3, hidden=(8, 6), rounds=4),
}


def quarter(n, extra="", parties=("north", "south")):
    """Two parties' documents so far, the first ones always the same."""
    return {name: [*halves(i, 24), *(f"{text} {extra}" for text in halves(i + 9, n))] for i, name in enumerate(parties)}


@pytest.mark.parametrize("name", [slow(name) if name in ("ftm-paper", "gfedntm") else name for name in METHODS])
def test_every_method_goes_on_with_its_words_in_their_places(name):
    method = METHODS[name]
    last = method.fit(quarter(0), heldout=0)
    model = method.fit(quarter(12, "compass lantern"), heldout=0, start_from=last)
    assert model.vocabulary.words[: len(last.vocabulary)] == last.vocabulary.words
    if "sound" not in name:
        assert {"compass", "lantern"} <= set(model.vocabulary.words)
    assert set(last.ids) == {row["topic"] for row in model.provenance["drift"] if row["state"] != "new"}
    assert model.provenance["continues"]["run"] == last.provenance["run"]
    assert model.local or "ftm" not in name


def test_fewer_rounds_are_asked_and_no_model_of_a_party_leaves():
    method = tt.Consensus(topics=3, rounds=6, more_rounds=2, sweeps=2, start_sweeps=2)
    last = method.fit(quarter(0), heldout=0)
    assert [len(m.history) for m in (last, method.fit(quarter(9), heldout=0, start_from=last))] == [8, 2]


def test_parties_join_and_leave_between_runs(tmp_path):
    method = tt.Consensus(topics=2, rounds=3, sweeps=3, start_sweeps=5)
    last = method.fit(quarter(0, parties=("north", "south", "east")), heldout=0, directory=tmp_path / "first")
    model = method.fit(quarter(5, parties=("north", "west")), heldout=0, start_from=tmp_path / "first")
    assert model.provenance["parties"] == ["north", "west"]
    assert model.ids == last.ids == (0, 1)


# --- on the command line ------------------------------------------------------------------------------------------

CONFIG = """
directory = "q1"
heldout = 0.0

[method]
name = "consensus"
topics = 2
rounds = 3
sweeps = 2
start_sweeps = 2
{method}

[parties.north]
path = "north.jsonl"
id = "id"
home = "{home}"
"""


@pytest.fixture
def project(tmp_path):
    def make(method="", text=""):
        rows = [{"id": str(i), "text": document} for i, document in enumerate(halves(0, 20))]
        (tmp_path / "north.jsonl").write_text("\n".join(map(json.dumps, rows)))
        (tmp_path / "run.toml").write_text(CONFIG.format(method=method, home=tmp_path / "home") + text)
        return tmp_path

    return make


def test_run_from_the_last_run_and_what_has_drifted(tertulia, project):
    base = project()
    assert tertulia("run", base / "run.toml")[0] == 0
    code, out, err = tertulia("run", base / "run.toml", "--from", base / "q1", "--directory", base / "q2")
    assert code == 0, err
    assert "Since run" in out
    assert "kept" in out
    shutil.rmtree(base / "q1")  # the run has all that it needs
    code, out, _ = tertulia("drift", base / "q2", "--json")
    assert [row["state"] for row in json.loads(out)["drift"]] == ["kept", "kept"]
    assert storage.fingerprint(base / "q2" / "start") == json.loads(out)["continues"]["model"]


def refused(tertulia, base, *arguments):
    code, _, err = tertulia("run", base / "run.toml", "--directory", base / "next", *arguments)
    assert code == 1
    assert not (base / "next" / "run.json").exists()
    assert err.count("\n") == 1, err
    return err


def test_what_cannot_be_gone_on_from(tertulia, project, tmp_path):
    base = project()
    assert tertulia("run", base / "run.toml")[0] == 0
    assert "there is nothing to go on from" in refused(tertulia, base, "--from", tmp_path)
    shutil.copytree(base / "q1", base / "unfinished")
    shutil.rmtree(base / "unfinished" / "model")
    assert "is not finished: `tertulia resume" in refused(tertulia, base, "--from", base / "unfinished")
    project(text='[text]\nlanguage = "de"\n')
    assert "cuts texts in another way (language 'en', here 'de'" in refused(tertulia, base, "--from", base / "q1")
    config = project().joinpath("run.toml")
    config.write_text(config.read_text().replace("topics = 2", "topics = 1"))
    assert "it has 2 topics, and topics = 1" in refused(tertulia, base, "--from", base / "q1")
    for name, why in (("gfedntm", "it is no neural model"), ("alone", "'alone' cannot go on from an earlier model")):
        (base / "run.toml").write_text(f'[method]\nname = "{name}"\n[parties.north]\npath = "north.jsonl"\n')
        assert why in refused(tertulia, base, "--from", base / "q1")
    code, _, err = tertulia("drift", base / "q1")
    assert (code, "continues no other" in err) == (1, True)


def test_reports_cost_for_new_documents_alone_and_it_is_said_beforehand(tertulia, project):
    base = project(f'mode = "sound"\nepsilon = 6.0\nvocabulary = {{mode = "public", words = {json.dumps(STEMS)}}}')
    assert tertulia("run", base / "run.toml")[0] == 0

    def budget():
        code, out, err = tertulia("check", base / "run.toml", "--json")
        assert code == 0, err
        (row,) = json.loads(out)["budgets"]
        return row["spent_so_far"], row["this_run"], row["after_it"], *row["reports"]

    documents = base / "north.jsonl"
    known = documents.read_text()
    new = [json.dumps({"id": f"new{i}", "text": text}) for i, text in enumerate(halves(5, 7))]
    documents.write_text("\n".join([known, *new]))
    assert budget() == (6, 0, 6, "reports of tokens: 7 of 27 documents are new or edited")
    code, _, err = tertulia("run", base / "run.toml", "--from", base / "q1", "--directory", base / "q2")
    assert code == 0, err
    assert budget() == (6, 0, 6, "reports of tokens: 0 of 27 documents are new or edited")
    documents.write_text("\n".join([known.replace("Letter garden", "Letter bridge", 1), *new]))
    assert budget() == (6, 6, 12, "reports of tokens: 1 of 27 documents are new or edited")


# --- between sites -----------------------------------------------------------------------------------------------


def test_organisations_go_on_by_commands_with_a_new_member(tertulia, tmp_path):
    sites = Sites(tmp_path, method=METHOD)
    on_a_free_port(sites)
    first = sites.agree().run()
    place = sites.server.directory
    code, out, err = tertulia("start", place, "--from", "last")
    assert code == 0, err
    assert f"goes on from run {first.provenance['run']}" in out
    sites.edit('"east"]', '"west"]')  # one leaves, another comes
    sites.server.invite("west", 7)
    sites.join("west")
    with serving(sites):
        for member in ("north", "south", "west"):
            code, out, err = tertulia("approve", tmp_path / member, "--yes")
            assert code == 0, err
            assert "2 topics over" in out
            assert "this party has no copy of it" in " ".join(out.split())
            assert "Budgets, in all runs from the same home" in out
        assert tertulia("start", place, "--from", first.provenance["run"])[0] == 0  # which is proposed: it begins
        with attending(sites, "north", "south", "west"):
            wait(lambda: sites.registry.state(sites.registry.newest()).state == "finished")
        assert tertulia("fetch", tmp_path / "west")[0] == 0
    run = sites.registry.newest()
    code, out, _ = tertulia("drift", tmp_path / "west" / "runs" / run / "model", "--json")
    assert json.loads(out)["continues"]["run"] == first.provenance["run"]
    assert (tmp_path / "west" / "runs" / run / "start" / "topics.safetensors").exists()
    assert Topics.load(place / "runs" / run / "model").ids == (0, 1)


@pytest.fixture(scope="module")
def going_on(tmp_path_factory):
    """Sites that are asked to approve of a run that goes on from their first."""
    sites = Sites(tmp_path_factory.mktemp("going-on"), method=METHOD).agree()
    sites.run()
    sites.registry.go_on_from("last")
    return sites


def sent(place):
    """A model as a server sends it."""
    return encode({name: np.frombuffer((place / name).read_bytes(), np.uint8) for name in storage.FILES})


def look_at(sites, place, options=None):
    """What a party says to a model that has the hash which the proposal names."""
    party, named = sites.parties["north"], storage.fingerprint(place)
    with pytest.raises(ConfigError) as refusal:
        starting.open_start(sent(place), named, party, options or TextOptions())
    return str(refusal.value)


@pytest.fixture
def model(going_on, tmp_path):
    """A copy of the model that the sites would begin with."""
    return shutil.copytree(going_on.registry.model_of(going_on.registry.current().start["run"]), tmp_path / "model")


def test_another_model_than_the_named_one_is_refused(going_on, model):
    seen = Review.of(going_on.parties["north"], going_on.registry.proposal())
    with pytest.raises(ConfigError, match=f"^{starting.NOT_SEEN}$"):
        seen.check()
    with pytest.raises(ConfigError, match=f"^{starting.DAMAGED}$"):
        seen.with_start(b"no model")
    assert seen.with_start(sent(model)).start.n_topics == 2
    (model / "model.json").write_text((model / "model.json").read_text() + " ")
    with pytest.raises(ConfigError, match=f"^{starting.NOT_NAMED}$"):
        seen.with_start(sent(model))


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_numbers_that_are_none_are_refused_with_a_constant(going_on, model, value):
    arrays = safetensors.load((model / "topics.safetensors").read_bytes())
    arrays["topic_word"][0, 0] = value
    (model / "topics.safetensors").write_bytes(safetensors.save(arrays))
    assert look_at(going_on, model) == starting.DAMAGED


@pytest.mark.parametrize("cap", [("max_topics", 1), ("max_words", 2), ("max_cells", 3)])
def test_a_model_beyond_the_limits_of_a_policy_is_refused_with_a_constant(going_on, model, cap):
    path = going_on.parties["north"].policy_path
    before = path.read_text()
    path.write_text(with_value(before, *cap))
    try:
        assert look_at(going_on, model) == starting.TOO_LARGE
    finally:
        path.write_text(before)


def test_a_model_that_reads_texts_in_another_way_is_refused_with_a_constant(going_on, model):
    assert look_at(going_on, model, TextOptions(language="de")) == starting.OTHER_TEXTS


def test_a_start_that_was_swapped_after_the_approval_is_refused_by_all(going_on, tmp_path):
    going_on.approve(*going_on.parties)
    proposal = going_on.registry.current()
    settings, _ = going_on.registry._settings(tmp_path / "run")
    run = Run(tmp_path / "run", proposal.run, proposal.roster, settings.model_dump(mode="json"), keys=proposal.keys)
    run.save()
    other = Topics.load(going_on.registry.model_of(proposal.start["run"]))
    replace(other, alpha=other.alpha * 2).save(run.directory / "start")
    with pytest.raises(QuorumError, match="refused by rule 'plan'"):
        going_on.finish(run)


def test_a_proposal_whose_start_is_no_start_is_not_read(going_on):
    facts = json.loads(going_on.registry.proposal())
    for start in ({"run": "../..", "hash": "0" * 64}, {"run": "0" * 16}, {"run": "0" * 16, "hash": "0" * 63}):
        forged = Proposal(**{**{k: v for k, v in facts.items() if k != "run"}, "start": start})
        with pytest.raises(FormatError, match="cannot be read"):
            Proposal.from_bytes(forged.to_bytes())


def test_runs_that_organisations_cannot_go_on_from(tertulia, going_on, tmp_path):
    place, file = going_on.server.directory, (going_on.server.directory / "federation.toml").read_text()
    for last, why in (("0123456789abcdef", "is no run of this federation"), ("../north", "is no run")):
        code, _, err = tertulia("start", place, "--from", last)
        assert (code, why in err) == (1, True), err
        assert (place / "federation.toml").read_text() == file
    empty = Sites(tmp_path, method=METHOD)
    assert "no run of this federation is finished" in tertulia("start", empty.server.directory, "--from", "last")[2]
    assert "cannot go on from" in str(_refusal(going_on, "topics = 2", "topics = 1"))


def _refusal(sites, old, new):
    sites.edit(old, new)
    try:
        with pytest.raises(ConfigError) as refusal:
            sites.registry.current()
    finally:
        sites.edit(new, old)
    return refusal.value
