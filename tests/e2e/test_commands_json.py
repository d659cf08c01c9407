"""What `--json` prints is what the page says: every command on a small run, held against its schema."""

import json
from pathlib import Path

import click
import jsonschema
import pytest
import typer

from tertulia.cli import commands_page
from tertulia.cli.main import app
from tertulia.cli.outputs import OUTPUTS, schemas
from tertulia.runs import settings as config
from tertulia.runs.driver import finish
from tertulia.runs.one_machine import begin

DOCS = Path(__file__).parents[2] / "docs"
CONFIG = """
directory = "run"
[method]
name = "consensus"
topics = 3
rounds = 2
start_sweeps = 3
sweeps = 2
[parties.north]
path = "north.jsonl"
[parties.south]
path = "south.jsonl"
"""
ELSEWHERE = {"audit", "demo", "warm"}  # these take long: test_audit.py, test_demo.py, test_warm.py


@pytest.fixture(scope="module")
def base(tmp_path_factory, worded):
    """A folder with a finished run."""
    base = tmp_path_factory.mktemp("json")
    for i, name in enumerate(("north", "south")):
        rows = [json.dumps({"text": text, "when": "2026-02-01"}) for text in worded(i, 30)]
        (base / f"{name}.jsonl").write_text("\n".join(rows))
    (base / "run.toml").write_text(CONFIG)
    finish(begin(config.load(base / "run.toml")))
    return base


@pytest.fixture
def printed(tertulia):
    """What a command prints, held against the schema that the page has."""
    known = json.loads((DOCS / "commands.schema.json").read_text())

    def run(name, *arguments, codes=(0,)):
        code, out, err = tertulia(*name.split(), *arguments, "--json")
        assert code in codes, err
        assert out.count("\n") == 1  # one object on one line
        facts = json.loads(out, parse_constant=pytest.fail)
        jsonschema.validate(facts, known[name])
        OUTPUTS[name].model_validate(facts)
        return facts

    return run


def test_every_command_that_has_json_has_a_schema():
    having = {
        name
        for name, command in commands_page._commands(typer.main.get_command(app), "")
        if any("--json" in parameter.opts for parameter in command.params if isinstance(parameter, click.Option))
    }
    assert {name.removesuffix(" --check") for name in OUTPUTS} == having


def test_the_page_is_current():
    again = "run `python -m tertulia.cli.commands_page`"
    assert (DOCS / "commands.md").read_text() == commands_page.page(), again
    assert json.loads((DOCS / "commands.schema.json").read_text()) == schemas(), again


def test_no_key_has_a_space():
    text = json.dumps([schema["properties"] for schema in schemas().values()])
    assert all(" " not in key for schema in schemas().values() for key in schema["properties"]), text
    inner = [inner for schema in schemas().values() for inner in schema.get("$defs", {}).values()]
    assert all(" " not in key for one in inner for key in one["properties"])


def test_a_run_is_checked_trained_and_resumed(printed, base):
    disclosed = printed("check", base / "run.toml")["disclosed"]
    assert all(row["real_epsilon"] is None for row in disclosed if row["mechanism"] == "clear")
    assert printed("run", base / "run.toml", "--directory", base / "again")["parties"] == ["north", "south"]
    assert printed("resume", base / "again")["topics"] == 3


def test_one_file_is_trained_here(printed, base):
    trained = printed("train", base / "north.jsonl", "--topics", 3, "--output", base / "alone")
    assert (trained["topics"], trained["documents"]) == (3, 30)


def test_a_run_goes_on_and_has_drifted(printed, base):
    assert printed("run", base / "run.toml", "--from", base / "run", "--directory", base / "later")["round"] > 0
    assert {row["state"] for row in printed("drift", base / "later")["drift"]} <= {"kept", "new", "retired"}


@pytest.mark.filterwarnings("default::tertulia.models.display.FewDocumentsWarning")
def test_a_model_speaks_to_machines(printed, base):
    assert len(printed("topics", base / "run")["topics"]) == 3
    shares = printed("transform", base / "run", base / "north.jsonl")["documents"][0]
    assert sum(value for name, value in shares.items() if name != "id") == pytest.approx(1)
    assert printed("evaluate", base / "run", base / "north.jsonl")["documents"] == 30


def test_what_left_speaks_to_machines(printed, base):
    assert printed("disclosures", base / "run")["disclosures"][0]["shape"]
    assert printed("privacy", base / "run")["totals"][0]["real_epsilon"] is None
    shown = printed("ledger show", base / "run" / "parties" / "north")
    assert shown["ledger"][0]["charged"] is True
    others = [number for kind in shown["no_releases"] for number in kind["entries"]]
    numbers = [*others, *(row["entry"] for row in shown["ledger"])]
    assert others
    assert sorted(numbers) == list(range(len(numbers)))  # no number is missing without an explanation
    assert printed("upgrade", base / "run", "--dry-run")["backup"] is None


def test_parties_are_compared(printed, base):
    assert printed("compare --check", base / "run")["disclosed"]
    assert printed("compare", base / "run")["prevalence"][0]["shares"].keys() == {"north", "south"}


def test_scenarios_are_compared(printed, base):
    rows = printed("scenarios", base / "run.toml", "--directory", base / "scenarios")["scenarios"]
    assert {"federated", "pooled", "alone"} <= {row["scenario"] for row in rows}


def test_a_federation_speaks_to_machines(tertulia, printed, tmp_path):
    assert tertulia("init", tmp_path / "ward", "--members", "north,south")[0] == 0
    assert [row["member"] for row in printed("status", tmp_path / "ward")["members"]] == ["north", "south"]
    assert printed("doctor", tmp_path / "ward", codes=(0, 1))["findings"]


def test_all_commands_were_tried():
    text = Path(__file__).read_text()
    assert {name for name in OUTPUTS if f'printed("{name}"' not in text} == ELSEWHERE
