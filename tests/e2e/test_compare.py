"""`tertulia compare` on a finished run: tables, a dry run, and policies."""

import json

import polars as pl
import pytest

from tertulia.applications import compare

CONFIG = """
directory = "runs/two"
[method]
name = "consensus"
topics = 3
rounds = 1
sweeps = 2
start_sweeps = 3
[parties.north]
path = "north.jsonl"
date = "when"
[parties.south]
path = "south.jsonl"
date = "when"
policy = "south.toml"
"""

SECURE = """
[method]
name = "pctd"
topics = 3
rounds = 1
vocabulary = { mode = "common", max_share = 1.0 }
[federation]
secure = true
"""


@pytest.fixture
def run(tertulia, tmp_path, worded):
    for party, name in enumerate(("north", "south")):
        rows = [{"text": t, "when": f"2026-{1 + i % 6:02d}-01"} for i, t in enumerate(worded(party, 30))]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "south.toml").write_text("")
    (tmp_path / "run.toml").write_text(CONFIG)
    assert tertulia("run", tmp_path / "run.toml")[0] == 0
    return tmp_path / "runs" / "two"


def test_compare_is_a_run_of_its_own(tertulia, run):
    periods = ("--by", "quarter", "--between", "2026-01", "2026-06")
    code, out, _ = tertulia("compare", run, *periods, "--check", "--json")
    assert code == 0
    (row, _) = json.loads(out)["disclosed"]
    assert (row["what"], row["mechanism"], row["verdict"]) == ("topic prevalence", "clear", "allowed")
    assert not (run.parent / "two-compared").exists()

    code, out, err = tertulia("compare", run, *periods, "--json", "-o", run.parent / "tables")
    assert code == 0, err
    found = json.loads(out)
    assert found["parties"] == ["north", "south"]
    assert sum(row["shares"]["north"] for row in found["prevalence"]) == pytest.approx(1, abs=1e-6)
    assert {row["period"] for row in found["over_time"]} == {"2026-Q1", "2026-Q2"}
    assert sum(row["documents"] for row in found["over_time"] if row["topic"] == 0) == pytest.approx(60, abs=0.01)
    assert pl.read_csv(run.parent / "tables" / "similarity.csv")["party"].to_list() == ["north", "south"]

    rows = json.loads(tertulia("disclosures", run.parent / "two-compared", "--json")[1])["disclosures"]
    assert [(row["party"], row["what"], row["shape"]) for row in rows] == [
        ("north", "topic prevalence", [2, 3]), ("south", "topic prevalence", [2, 3]),
    ]  # fmt: skip
    for given, text in (
        ((), "holds a run already"),
        (("--group", "both"), "write NAME=PARTY,PARTY"),
        (("--by", "month"), "needs `since` and `until`"),
    ):
        code, _, err = tertulia("compare", run, *given)
        assert code == 1
        assert text in err
        assert "Traceback" not in err


def test_a_policy_is_asked_beforehand_and_in_the_run(tertulia, run):
    (run / ".." / ".." / "south.toml").write_text("allow_single = false\n")
    code, out, _ = tertulia("compare", run, "--check", "--epsilon", 1, "--json")
    assert code == 3
    north, south = json.loads(out)["disclosed"]
    assert (north["verdict"], north["real_epsilon"]) == ("allowed", 1)
    assert "allow_single" in south["verdict"]
    (run / ".." / ".." / "south.toml").write_text("allow_clear = false\n")
    code, out, err = tertulia("compare", run, "--group", "both=north,south", "--epsilon", 1, "--json")
    assert code == 0, err
    assert json.loads(out)["parties"] == ["both"]
    (row, *_) = json.loads(tertulia("privacy", run.parent / "two-compared", "--json")[1])["privacy"]
    assert row["real_epsilon"] == 1


def test_a_run_with_secure_sums_is_compared_by_groups(tertulia, tmp_path, worded):
    names = ("a", "b", "c", "d", "e", "f")
    for seed, name in enumerate(names):
        rows = [json.dumps({"text": text}) for text in worded(seed % 2, 12)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows))
    parties = "".join(f'[parties.{name}]\npath = "{name}.jsonl"\n' for name in names)
    (tmp_path / "run.toml").write_text(f'directory = "run"\n{SECURE}{parties}')
    run = tmp_path / "run"
    assert tertulia("run", tmp_path / "run.toml")[0] == 0

    code, _, err = tertulia("compare", run)
    assert code == 1
    assert "run has secure sums: tables of single parties stay hidden. Give groups of three parties or more" in err
    groups = ("--group", "odd=a,c,e", "--group", "even=b,d,f")
    code, out, err = tertulia("compare", run, *groups, "--check", "--json")
    assert code == 0, err
    assert {row["seen"] for row in json.loads(out)["disclosed"]} == {"masked: only the total over at least 3 parties"}
    code, out, err = tertulia("compare", run, *groups, "--json")
    assert code == 0, err
    masked = json.loads(out)
    rows = json.loads(tertulia("disclosures", tmp_path / "run-compared", "--json")[1])["disclosures"]
    assert [row["masked"] for row in rows] == [True] * 6

    plain = compare.of_run(run, directory=tmp_path / "plain", secure=False)  # all parties are ours
    assert plain.names == names
    for number, (group, members) in enumerate({"odd": "ace", "even": "bdf"}.items()):
        shares = [row["shares"][group] for row in masked["prevalence"]]
        total = sum(plain.released[names.index(one), 0] for one in members)
        assert shares == pytest.approx((total / total.sum()).tolist(), abs=1e-6), number
