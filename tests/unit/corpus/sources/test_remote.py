"""Files behind an address, from a server on loopback."""

import polars as pl
import pytest

from helpers.tables import PLAIN, tokens
from helpers.web import served
from tertulia.corpus import read
from tertulia.corpus.recipes import read_recipe
from tertulia.errors import InputError
from tertulia.runs.settings import settings_from

ROWS = {"note": ["oak and elm", "fir", None], "n": [1, 2, 3], "unused": ["a", "b", "c"]}


@pytest.fixture
def site(tmp_path):
    table = pl.DataFrame(ROWS)
    table.write_parquet(tmp_path / "notes.parquet")
    table.write_csv(tmp_path / "notes.csv")
    table.write_csv(tmp_path / "notes.tsv", separator="\t")
    table.write_ndjson(tmp_path / "notes.jsonl")
    with served(tmp_path) as found:
        yield found


@pytest.mark.parametrize("name", ["notes.parquet", "notes.csv", "notes.tsv", "notes.jsonl"])
def test_a_file_behind_an_address_gives_the_corpus_of_the_file_itself(site, tmp_path, name):
    here = read(tmp_path / name, text="note", id="n", options=PLAIN)
    there = read(f"{site[0]}/{name}", text="note", id="n", options=PLAIN)
    assert tokens(there) == tokens(here) == [["oak", "and", "elm"], ["fir"]]
    assert there.table.equals(here.table)
    assert there.report.dropped == here.report.dropped == {"empty text": 1}


def test_addresses_and_files_stand_in_one_list_and_settings_keep_them(site, tmp_path):
    address = f"{site[0]}/notes.parquet"
    assert read([address, str(tmp_path / "notes.csv")], text="note").n_documents == 4
    parties = {"north": {"path": address, "text": "note"}, "south": {"path": [address, "x.csv"]}}
    found = settings_from({"parties": parties}, tmp_path).parties
    assert (found["north"].path, found["south"].path) == (address, [address, str(tmp_path / "x.csv")])


def test_an_address_with_secrets_comes_from_the_environment_and_is_not_shown(site, monkeypatch):
    address = f"{site[0]}/notes.parquet?sig=s3cr3t"
    with pytest.raises(InputError, match=r"notes\.parquet has a user, a password or parameters") as caught:
        read(address, text="note")
    assert "s3cr3t" not in str(caught.value)
    with pytest.raises(InputError, match="put the whole address into an environment variable") as caught:
        read(address.split("?")[0].replace("//", "//ana:s3cr3t@"), text="note")
    assert "s3cr3t" not in str(caught.value)
    monkeypatch.setenv("NOTES", address)
    assert read(address_env="NOTES", text="note").n_documents == 2
    assert any("sig=s3cr3t" in path for path in site[1])
    monkeypatch.setenv("NOTES", address.replace("notes.parquet", "absent.parquet"))
    with pytest.raises(InputError, match="the file whose address is in NOTES cannot be read") as caught:
        read(address_env="NOTES", text="note")
    assert "s3cr3t" not in str(caught.value)


def test_errors_name_what_is_wrong(site, tmp_path):
    with pytest.raises(InputError, match="there is no such file"):
        read(f"{site[0]}/absent.parquet")
    with pytest.raises(InputError, match="is of no known kind"):
        read(f"{site[0]}/notes.pdf")
    with pytest.raises(InputError, match=r"notes\.csv has no column 'text'"):
        read(f"{site[0]}/notes.csv")
    with pytest.raises(InputError, match="must be UTF-8"):
        read(f"{site[0]}/notes.csv", text="note", encoding="cp1252")


def test_nothing_half_read_remains_if_a_file_is_damaged_in_the_middle(tmp_path):
    rows = pl.DataFrame({"text": [f"oak number {i}" for i in range(20_000)]})
    rows.write_parquet(tmp_path / "whole.parquet", row_group_size=2_000, compression="zstd")
    broken = bytearray((tmp_path / "whole.parquet").read_bytes())
    broken[len(broken) // 2 : len(broken) // 2 + 3_000] = bytes(3_000)
    (tmp_path / "broken.parquet").write_bytes(broken)
    with served(tmp_path) as (address, _):
        recipe = {"path": f"{address}/broken.parquet", "options": PLAIN.to_dict()}
        with pytest.raises(InputError, match="nothing that was read is used"):
            read_recipe(recipe, tmp_path / "corpus")
    assert list((tmp_path / "corpus").iterdir()) == []
