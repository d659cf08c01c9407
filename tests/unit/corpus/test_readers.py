import gzip

import polars as pl
import pytest

from helpers.tables import PLAIN, ROWS, tokens, write_table
from tertulia.corpus import Corpus, TextOptions, read
from tertulia.corpus.readers import Source
from tertulia.corpus.report import ReadReport
from tertulia.corpus.splits import at_random, by_column, by_file, dirichlet
from tertulia.errors import InputError

COLUMNS = {"text": ["title", "body"], "id": "note", "date": "day", "label": "ward"}


def same(one, other):
    assert tokens(one) == tokens(other)
    assert one.sentences.tolist() == other.sentences.tolist()
    assert one.paragraphs.tolist() == other.paragraphs.tolist()
    assert one.vocabulary == other.vocabulary
    assert one.table.equals(other.table)
    assert one.report == other.report


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv", "rows.tsv", "rows.parquet"])
def test_every_format_gives_the_same_corpus(tmp_path, name):
    corpus = read(write_table(tmp_path / name), **COLUMNS, options=PLAIN)
    assert tokens(corpus) == [
        ["oak", "an", "oak", "an", "elm"],
        ["fir", "a", "fir", "and", "quotes", "commas"],
        ["ash", "ein", "eschenbäumchen"],
    ]
    assert corpus.paragraphs.tolist() == [0, 1, 5, 6, 11, 12, 14]
    assert corpus.table.to_dict(as_series=False) == {
        "id": ["n1", "n2", "n3"],
        "label": ["north", "south", "north"],
        "date": ["2024-01-05", "2024-01-06", "2024-01-07"],
    }
    assert corpus.report.summary() == "3 rows read, 3 kept, 0 dropped"


def test_typed_parquet_columns_become_text(tmp_path):
    days = pl.Series(["2024-01-05", None]).str.to_date()
    pl.DataFrame({"text": ["oak", "elm"], "n": [1, 2], "day": days, "x": [0.5, float("nan")]}).write_parquet(
        tmp_path / "t.parquet"
    )
    corpus = read(tmp_path / "t.parquet", id="n", date="day", label="x", options=PLAIN)
    assert corpus.table.rows() == [("1", "0.5", "2024-01-05"), ("2", None, None)]


def test_a_compressed_file(tmp_path):
    plain = write_table(tmp_path / "rows.jsonl")
    with gzip.open(tmp_path / "rows.jsonl.gz", "wb") as file:
        file.write(plain.read_bytes())
    same(read(tmp_path / "rows.jsonl.gz", **COLUMNS), read(plain, **COLUMNS))
    whole = (tmp_path / "rows.jsonl.gz").read_bytes()
    (tmp_path / "cut.jsonl.gz").write_bytes(whole[:-20])
    with pytest.raises(InputError, match=r"cut\.jsonl\.gz cannot be read to its end"):
        read(tmp_path / "cut.jsonl.gz", **COLUMNS)
    (tmp_path / "cut.txt.gz").write_bytes(whole[:-20])
    with pytest.raises(InputError, match=r"cut\.txt\.gz cannot be read to its end"):
        read(tmp_path)


def test_a_folder_of_texts(tmp_path):
    for place, text in {"b/two.txt": "Elm.", "a/one.txt": "Oak.", "a/deep/three.txt": "Fir.", "zero.txt": " "}.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(text, encoding="utf-8")
    (tmp_path / "a" / "image.png").write_bytes(b"\x89PNG")
    corpus = read(tmp_path, label="folder", options=PLAIN)
    assert corpus.table["id"].to_list() == ["a/deep/three.txt", "a/one.txt", "b/two.txt"]
    assert corpus.table["label"].to_list() == ["deep", "a", "b"]
    assert corpus.report.dropped == {"empty text": 1}
    assert corpus.report.examples == {"empty text": "zero.txt"}
    parties = {party: tokens(read(tmp_path, options=PLAIN, parties=by_file(), party=party)) for party in "ab"}
    assert parties == {"a": [["fir"], ["oak"]], "b": [["elm"]]}


def test_patterns_and_lists_of_files(tmp_path):
    first, second = write_table(tmp_path / "a.jsonl", ROWS[:1]), write_table(tmp_path / "b.csv", ROWS[1:])
    by_pattern = read(f"{tmp_path}/?.*", **COLUMNS)
    same(by_pattern, read([first, str(second)], **COLUMNS))
    assert by_pattern.table["id"].to_list() == ["n1", "n2", "n3"]
    parties = {p: read(f"{tmp_path}/?.*", text="body", parties=by_file(), party=p).n_documents for p in "ab"}
    assert parties == {"a": 1, "b": 2}


def test_where_keeps_matching_rows_and_counts_the_others(tmp_path):
    corpus = read(write_table(tmp_path / "r.csv"), text="body", where={"ward": "north"})
    assert corpus.n_documents == 2
    assert corpus.report.dropped == {"not ward = north": 1}


def test_default_ids_do_not_depend_on_the_place(tmp_path):
    one = read(write_table(tmp_path / "a.jsonl"), text="body")
    other = read(write_table(tmp_path / "b.parquet", ROWS[::-1]), text="body")
    assert one.table["id"].to_list() == other.table["id"].to_list()[::-1]


def test_repeated_ids_are_kept_and_counted(tmp_path):
    corpus = read(write_table(tmp_path / "a.csv", [*ROWS, ROWS[0]]), text="body", id="note")
    assert corpus.n_documents == 4
    assert corpus.report.noted == {"id seen before": 1}


def test_reading_onto_disk_equals_reading_into_memory(tmp_path):
    path = write_table(tmp_path / "rows.csv")
    on_disk = read(path, **COLUMNS, directory=tmp_path / "corpus")
    same(on_disk, read(path, **COLUMNS))
    same(Corpus.load(tmp_path / "corpus"), on_disk)


@pytest.mark.parametrize(
    "rule", [by_column("ward"), by_file(), at_random({"x": 1, "y": 2}, seed=4), dirichlet(["x", "y"], 1.0, seed=2)]
)
def test_parties_share_out_the_rows(tmp_path, rule):
    rows = [{"note": f"n{i}", "body": f"Oak word{i}.", "ward": "abc"[i % 3]} for i in range(60)]
    path = write_table(tmp_path / "rows.csv", rows)
    path.write_text(path.read_text() + "n60\nn61,,a\n")
    source = Source(path, "body", id="note", label="ward")
    owners = {row.id: rule(row) for _, row in source.rows(ReadReport(), rule.columns)}
    assert len(owners) == 60
    for party in set(owners.values()):
        corpus = read(path, text="body", id="note", label="ward", parties=rule, party=party)
        assert corpus.report.rows == 62
        assert corpus.table["id"].to_list() == [note for note, owner in owners.items() if owner == party]


def test_party_questions_that_make_no_sense(tmp_path):
    path = write_table(tmp_path / "rows.csv")
    with pytest.raises(InputError, match="together"):
        read(path, text="body", parties=by_file())
    with pytest.raises(InputError, match="party 'west' is none of x, y"):
        read(path, text="body", parties=at_random({"x": 1, "y": 1}), party="west")
    with pytest.raises(InputError, match=r"no usable row: 3 rows read, 0 kept, 3 dropped\n.*another party"):
        read(path, text="body", parties=by_column("ward"), party="west")
    with pytest.raises(InputError, match=r"goes by label: name the column with label=\.\.\."):
        read(path, text="body", parties=dirichlet(["x", "y"], 1.0), party="x")


HOLES = [
    {"note": "n1", "body": "Oak and elm.", "grade": 1.5},
    {"note": "n2", "body": None, "grade": None},
    {"note": None, "body": "  ", "grade": float("nan")},
    {"note": "n4", "body": "Ash.", "grade": None},
]


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv", "rows.parquet"])
def test_missing_cells_of_files_are_no_words(tmp_path, name):
    path = write_table(tmp_path / name, HOLES)
    corpus = read(path, text="body", id="note", options=PLAIN)
    assert tokens(corpus) == [["oak", "and", "elm"], ["ash"]]
    assert corpus.report.dropped == {"empty text": 2}
    if name != "rows.csv":  # where NaN is written out, as text
        numbers = read(path, text=["body", "grade"], id="grade", options=PLAIN)
        assert "nan" not in numbers.vocabulary.words
        assert not {"nan", "None"} & set(numbers.table["id"])


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv", "rows.parquet"])
def test_every_row_gives_a_document_if_asked(tmp_path, name):
    corpus = read(write_table(tmp_path / name, HOLES), text="body", id="note", options=PLAIN, every_row=True)
    assert tokens(corpus) == [["oak", "and", "elm"], [], [], ["ash"]]
    place = {"rows.jsonl": "rows.jsonl:3", "rows.csv": "rows.csv:4", "rows.parquet": "rows.parquet: row 3"}[name]
    assert corpus.table["id"].to_list() == ["n1", "n2", place, "n4"]
    assert corpus.report.dropped == {}
    assert corpus.report.noted == {"empty text": 2}


def test_broken_rows_too_give_a_document_if_asked(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"text": "Oak."}\n{"text": [7]}\n{broken\n\n{"text": "\xe9\xe8\xe7"}\n{"text": "Elm."}\n')
    corpus = read(path, options=PLAIN, every_row=True)
    assert tokens(corpus) == [["oak"], [], [], [], ["elm"]]
    assert corpus.table["id"].to_list()[1:4] == ["rows.jsonl:2", "rows.jsonl:3", "rows.jsonl:5"]
    assert corpus.report.rows == corpus.report.kept == 5
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(InputError, match="is empty"):
        read(tmp_path / "empty.csv", every_row=True)


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.parquet"])
def test_lists_of_words_are_taken_as_they_are(tmp_path, name):
    rows = [{"n": 1, "text": ["The", "Oak"]}, {"n": 2, "text": []}, {"n": 3, "text": ["an", "elm", "elm"]}]
    path = write_table(tmp_path / name, rows)
    corpus = read(path, id="n", options=TextOptions(ngrams=2))
    assert tokens(corpus) == [["The", "Oak", "The_Oak"], ["an", "elm", "an_elm", "elm", "elm_elm"]]
    assert corpus.sentences.tolist() == [0, 3, 8]
    assert corpus.report.dropped == {"empty text": 1}
    assert read(path, keep_text=True).table["text"].to_list() == ["The Oak", "an elm elm"]
    assert read(path, id="n", every_row=True).lengths.tolist() == [2, 0, 3]


def users_in(tmp_path, *users):
    rows = [f"{i},fever and cough,{user}" for i, user in enumerate(users)]
    (tmp_path / "notes.csv").write_text("\n".join(["id,text,patient", *rows]) + "\n")
    return read(tmp_path / "notes.csv", id="id", user="patient").report


def test_documents_without_a_user_are_counted_with_the_place_of_the_first(tmp_path):
    report = users_in(tmp_path, "ann", "", "ben", " ", "cay")
    assert report.noted == {"names no user": 2}
    assert "  kept 2: names no user (first at notes.csv:3)" in report.summary().splitlines()
    assert users_in(tmp_path, "", "").noted == {"names no user": 2}  # the column is there, and empty
    assert "names no user" not in read(tmp_path / "notes.csv", id="id").report.summary()


@pytest.mark.parametrize(
    ("users", "most"),
    [("aabc", 2), ("aaab", 3), ("aabcd", 0), ("ab", 0), ("a", 0), ("aa  ", 2)],
    ids=["half", "most", "fewer", "each", "one", "half, the rest nameless"],
)
def test_a_user_with_half_of_all_documents_is_noted(tmp_path, users, most):
    report = users_in(tmp_path, *users)
    assert report.noted.get("of one user alone, who has half of all documents or more", 0) == most


def test_column_is_another_name_of_text(tmp_path):
    (tmp_path / "a.csv").write_text("body;id\nRain fell.;1\n")
    assert read(tmp_path / "a.csv", column="body").n_tokens == read(tmp_path / "a.csv", text="body").n_tokens == 2
