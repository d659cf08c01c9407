"""Tables on narrow terminals: nothing is wider than the terminal, and no word is cut."""

import json
import re

import pytest

from tertulia.runs import settings as config
from tertulia.runs.driver import finish
from tertulia.runs.one_machine import begin
from tertulia.view import console
from tertulia.view.console import stacked, widths_or_none
from tertulia.view.verdicts import LINES

CONFIG = """
directory = "run"
[method]
name = "{method}"
topics = 3
rounds = 2
{more}
[parties.north]
path = "north.jsonl"
[parties.south]
path = "south.jsonl"
[parties.west]
path = "west.jsonl"
"""
MORE = {
    "clear": ("ftm", "sweeps = 4"),
    "sound": (
        "consensus",
        'mode = "sound"\nepsilon = 8.0\nstart_sweeps = 2\nsweeps = 1\n'
        'vocabulary = { mode = "public", words = ["winter", "letter", "bridge", "market", "harboura"] }',
    ),
}
COMMANDS = (["privacy"], ["privacy", "--all"], ["disclosures"], ["disclosures", "--all"], ["topics"], ["check"])
LONGEST = 24  # what is longer may be a path


@pytest.fixture(scope="module", params=MORE)
def base(request, tmp_path_factory, worded):
    base = tmp_path_factory.mktemp(request.param)
    for i, name in enumerate(("north", "south", "west")):
        rows = [json.dumps({"id": str(k), "text": text}) for k, text in enumerate(worded(i, 24))]
        (base / f"{name}.jsonl").write_text("\n".join(rows))
    method, more = MORE[request.param]
    (base / "run.toml").write_text(CONFIG.format(method=method, more=more))
    finish(begin(config.load(base / "run.toml")))
    return base


def words(text):
    """All words of a table, the longest left out."""
    found = set(re.split(r"[\s─-╿]+|;\s", text))
    return {word for word in found if 0 < len(word) <= LONGEST}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_tables_fit_and_no_word_is_cut(tertulia, base, command, monkeypatch):
    place = base / ("run.toml" if command == ["check"] else "run")

    def printed(width):
        monkeypatch.setattr(console.output, "width", width)
        code, out, err = tertulia(command[0], place, *command[1:])
        assert code == 0, err
        return out

    wide = printed(400)
    for width in (80, 60):
        narrow = printed(width)
        most = 80 if command == ["privacy"] else width  # an officer's page is laid out for paper
        long = [line for line in narrow.splitlines() if len(line) > most and str(base) not in line]
        assert long == [] or "--all" in command, long
        missing = words(wide) - words(narrow) - {"reports", "left"}  # columns that may be empty
        assert missing == set()


def test_an_officer_reads_fifteen_lines_per_party_and_an_engineer_one_per_kind(tertulia, base):
    pages = tertulia("privacy", base / "run")[1].strip().split("\n\n")
    assert len(pages) == 3
    assert all(len(page.splitlines()) <= LINES for page in pages)
    rows = [line for line in tertulia("disclosures", base / "run")[1].splitlines() if line.startswith("│ north")]
    every = json.loads(tertulia("disclosures", base / "run", "--json")[1])["disclosures"]
    assert len(rows) == len({(row["what"], row["mechanism"]) for row in every if row["party"] == "north"})


def test_columns_share_what_is_left_and_give_up_in_time():
    names, cells = ["party", "what it is"], [["north", "many short words in a row"], ["south", "unbreakable"]]
    assert widths_or_none(names, cells, 80) == [5, 25]  # as wide as wanted
    assert widths_or_none(names, cells, 30) == [5, 18]
    assert widths_or_none(names, cells, 22) is None  # 5 and 11, and 7 of borders
    assert stacked(names, [["north", "many words"], ["", "a well-known one"]], 24) == [
        "- party       north", "  what it is  many words",
        "- what it is  a", "              well-known", "              one",
    ]  # fmt: skip
