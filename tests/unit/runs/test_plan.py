"""The plan of a run: its hash covers what parties agree to, and nothing of the server's own."""

import json
from dataclasses import asdict, replace

import pytest

from tertulia.errors import ConfigError
from tertulia.federation.plan import Plan
from tertulia.runs.plan import modules_of, plan_of, terms_of
from tertulia.runs.settings import RunSettings

PARTIES = ("north", "south")
KEYS = {"north": "ab" * 32, "south": "cd" * 32}


def test_keys_are_covered_by_a_plans_hash():
    settings = RunSettings(method={"name": "consensus"})
    plain, keyed = plan_of(settings, PARTIES), plan_of(settings, PARTIES, KEYS)
    assert plain.hash == replace(plain, keys={}, start="").hash
    assert keyed.hash != plain.hash
    assert plan_of(settings, PARTIES, {**KEYS, "south": "00" * 32}).hash != keyed.hash
    assert Plan.from_dict(json.loads(json.dumps(asdict(keyed)))).hash == keyed.hash


def test_a_plan_with_keys_names_no_file(tmp_path):
    (tmp_path / "vectors.txt").write_text("rain 1\n")
    settings = RunSettings(method={"name": "pctd", "vectors": str(tmp_path / "vectors.txt")})
    assert str(tmp_path) not in json.dumps(plan_of(settings, PARTIES, KEYS).settings)
    without = RunSettings(method={"name": "pctd"})
    assert plan_of(settings, PARTIES, KEYS).hash == plan_of(without, PARTIES, KEYS).hash


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"heldout": 0.2},
        {"method": {"name": "consensus", "topics": 7}},
        {"text": {"min_length": 5}},
        {"federation": {"quorum": 0.9}},
        {"operator": {"purpose": "triage"}},
    ],
)
def test_every_term_is_covered_by_a_plans_hash(change):
    base = {"method": {"name": "consensus"}}
    assert plan_of(RunSettings(**base), PARTIES).hash != plan_of(RunSettings(**(base | change)), PARTIES).hash


@pytest.mark.parametrize("change", [{"directory": "/elsewhere"}, {"engine": "processes"}, {"workers": 2}])
def test_the_servers_own_settings_are_not(change):
    base = {"method": {"name": "consensus"}}
    assert plan_of(RunSettings(**base), PARTIES).hash == plan_of(RunSettings(**(base | change)), PARTIES).hash


def test_parties_and_the_start_model_are_covered():
    settings = RunSettings(method={"name": "consensus"})
    assert len({
        plan_of(settings, PARTIES).hash,
        plan_of(settings, PARTIES[::-1]).hash,
        plan_of(settings, PARTIES[:1]).hash,
        plan_of(settings, PARTIES, start="ef" * 32).hash,
    }) == 4  # fmt: skip


def test_a_long_word_list_is_named_by_its_fingerprint():
    method = {"name": "consensus", "vocabulary": {"mode": "public", "words": ("fever", "cough")}}
    plan = plan_of(RunSettings(method=method), PARTIES)
    assert plan.settings["vocabulary"]["words"] == []
    assert plan.words is not None
    other = {"name": "consensus", "vocabulary": {"mode": "public", "words": ("fever", "cold")}}
    assert plan_of(RunSettings(method=other), PARTIES).words != plan.words


def test_choosing_adds_its_module_and_terms_have_their_names_in_toml():
    plain = RunSettings(method={"name": "consensus"})
    choosing = RunSettings(method={"name": "consensus"}, validation=0.1)
    assert modules_of(plain) == ("tertulia.methods.consensus.method",)
    assert modules_of(choosing) == (*modules_of(plain), "tertulia.methods.common.model_choice")
    assert {"seed", "heldout", "validation", "text.language", "federation.quorum"} <= terms_of(plain).keys()


def test_where_users_may_have_documents_is_a_term_of_the_plan():
    anywhere, at_one = (
        plan_of(RunSettings(method={"name": "consensus"}, federation={"users": users}), PARTIES)
        for users in ("anywhere", "one_party")
    )
    assert plan_of(RunSettings(method={"name": "consensus"}), PARTIES).hash == anywhere.hash != at_one.hash
    assert (anywhere.user_at, at_one.user_at) == (len(PARTIES), 1)
    assert anywhere.terms["federation.users"] == "anywhere"
    with pytest.raises(ConfigError, match=r"federation\.users"):
        RunSettings(federation={"users": "everywhere"})
