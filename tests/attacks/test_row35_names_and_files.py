"""Names that lead elsewhere, links in folders of texts, and small files that unpack to no end."""

import gzip
import json

import numpy as np
import pytest

import tertulia as tt
from tertulia.corpus import Corpus
from tertulia.corpus.formats import base
from tertulia.errors import ConfigError, FormatError, InputError
from tertulia.federation.party.context import StepContext
from tertulia.federation.party.host import PartyConfig, PartyHost
from tertulia.runs.directory import Run, directory_name


@pytest.mark.parametrize("name", ["../../x", "..", "", "/etc/x", "a/b", "x" * 300, ".hidden", "a\0b"])
def test_keep_stays_in_the_partys_directory(name, worded, tmp_path):
    home = tmp_path / "deep" / "down" / "party"
    PartyConfig(id="a", run="run", seed=1, methods=("helpers.toys",)).save(home)
    context = StepContext(PartyHost(home, Corpus.from_texts(worded(0, 3))), None, None)
    with pytest.raises(FormatError, match="cannot name a file"):
        context.keep(name, x=np.ones(1))
    with pytest.raises(FormatError, match="cannot name a file"):
        context.kept(name)
    context.keep("diary", x=np.ones(1))
    assert context.kept("diary")["x"] == 1
    assert [path.name for path in tmp_path.rglob("*.safetensors")] == ["diary.safetensors"]


@pytest.mark.parametrize("name", ["", "  ", "\ud800"])
def test_a_party_needs_a_name(name, tmp_path):
    with pytest.raises(ConfigError, match=r"name|called"):
        Run.new(tmp_path, (name,), {})
    with pytest.raises(ConfigError):
        tt.FTM(topics=2).fit({name: ["rain sun"], "b": ["rain sun"]})


@pytest.mark.parametrize("name", ["n" * 300, "北" * 200, "é" * 255])
def test_long_names_are_shortened_and_stay_apart(name, tmp_path):
    run = Run(tmp_path, "run", (name, name + "x"), {})
    one, other = map(run.party_directory, run.parties)
    one.mkdir(parents=True)
    other.mkdir(parents=True)
    assert one != other
    assert {one.parent, other.parent} == {tmp_path / "parties"}


@pytest.mark.parametrize("name", ["..", ".", "/etc", "a/../b", "a\nb", "%2E%2E", "con"])
def test_names_stay_below_parties(name, tmp_path):
    found = (tmp_path / "parties" / directory_name(name)).resolve()
    assert found.parent == (tmp_path / "parties").resolve()


@pytest.mark.parametrize("pattern", ["", "*.txt", "**/*.txt"])
def test_links_in_a_folder_are_not_followed(pattern, tmp_path):
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "shadow.txt").write_text("the secret of others")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "one.txt").write_text("rain and sun")
    if pattern == "**/*.txt":
        (tmp_path / "notes" / "more").symlink_to(tmp_path / "secret")
    else:
        (tmp_path / "notes" / "link.txt").symlink_to(tmp_path / "secret" / "shadow.txt")
    with pytest.raises(InputError, match="is a link, which is not followed"):
        tt.read(tmp_path / "notes" / pattern if pattern else tmp_path / "notes")
    (tmp_path / "via").symlink_to(tmp_path / "secret")  # a path that was given is meant
    assert tt.read(tmp_path / "via").n_documents == 1


@pytest.mark.parametrize("name", ["rows.jsonl.gz", "rows.csv.gz", "text.txt.gz"])
def test_a_line_without_end_is_not_unpacked(name, tmp_path, monkeypatch):
    monkeypatch.setattr(base, "_LONGEST_LINE", 1 << 16)
    monkeypatch.setattr(base, "_LARGEST_TEXT", 1 << 16)
    head = "text\n" if "csv" in name else ""
    with gzip.open(tmp_path / name, "wt") as file:
        file.write(head + '{"text": "' * ("jsonl" in name) + "rain " * (1 << 20))
    with pytest.raises(InputError, match="more than"):
        tt.read(tmp_path / name)


def test_lines_of_the_longest_length_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(base, "_LONGEST_LINE", 64)
    rows = [json.dumps({"text": "rain " * 8}), json.dumps({"text": "sun"})]
    (tmp_path / "rows.jsonl").write_text("\n".join(rows))
    assert tt.read(tmp_path / "rows.jsonl").n_documents == 2
