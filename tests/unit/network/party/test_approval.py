"""A party's review of a proposal: checked by its own software, approved by the hash of its own plan."""

import dataclasses
import json

import pytest

from helpers.sites import MEMBERS, Sites
from tertulia.errors import ConfigError


@pytest.fixture
def sites(tmp_path):
    return Sites(tmp_path)


def test_a_partys_choices_and_columns_reach_its_run(sites):
    sites.join(*MEMBERS)
    file = sites.base / "north" / "party.toml"
    file.write_text(file.read_text().replace("#threads = 2", "threads = 2"))
    seen = sites.consider("north")
    assert seen.settings.parties["north"].choices() == {"threads": 2}
    assert seen.settings.parties["north"].text == "note"
    config = json.loads((seen.lay_out() / "party.json").read_text())
    assert config["settings"] == {"threads": 2}
    assert config["owners"] == "several"
    assert config["home"] == str((sites.base / "north").resolve())
    assert config["plan"]["keys"] == seen.proposal.keys


def test_a_party_without_documents_is_asked_for_them(sites):
    sites.join(*MEMBERS)
    file = sites.base / "north" / "party.toml"
    file.write_text(file.read_text().replace("path =", "#path ="))
    with pytest.raises(ConfigError, match=r"\[documents\] has no `path`"):
        sites.consider("north").lay_out()


def test_an_approval_holds_the_run_and_the_hash_of_the_partys_own_plan(sites):
    sites.join(*MEMBERS)
    seen = sites.consider("south")
    assert json.loads(seen.approval()) == {"run": seen.proposal.run, "plan": seen.proposal.own_plan.hash}
    rows = seen.keys()
    assert [row["member"] for row in rows] == list(MEMBERS)
    assert [row[""] for row in rows] == ["", "this party", ""]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"federation": "cardiology"}, "proposes a run of 'cardiology', not of 'oncology'"),
        ({"roster": MEMBERS[1:]}, "the next run is without 'north'"),
    ],
)
def test_a_proposal_for_somebody_else_is_refused(sites, change, said):
    sites.join(*MEMBERS)
    proposal = sites.registry.current()
    keys = {name: proposal.keys[name] for name in change.get("roster", MEMBERS)}
    with pytest.raises(ConfigError, match=said):
        sites.consider("north", dataclasses.replace(proposal, keys=keys, **change).to_bytes())
