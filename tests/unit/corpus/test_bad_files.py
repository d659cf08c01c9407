"""Files with errors: broken rows cost only themselves, and errors name the place and the remedy."""

import json

import polars as pl
import pytest

from helpers.tables import PLAIN, tokens, write_table
from tertulia.corpus import read
from tertulia.corpus.splits import by_column
from tertulia.errors import InputError


@pytest.mark.parametrize("name", ["e.jsonl", "e.csv", "e.tsv"])
@pytest.mark.parametrize("content", ["", "\n\n"])
def test_an_empty_file(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=rf"{name} is empty: it holds no rows"):
        read(tmp_path / name)


def test_tables_without_rows(tmp_path):
    (tmp_path / "h.csv").write_text("id,text\n")
    pl.DataFrame({"text": []}, schema={"text": pl.String}).write_parquet(tmp_path / "h.parquet")
    for name in ("h.csv", "h.parquet"):
        with pytest.raises(InputError, match="is empty: it holds no rows"):
            read(tmp_path / name)


def test_an_empty_file_among_others_is_counted(tmp_path):
    write_table(tmp_path / "a.csv")
    (tmp_path / "b.csv").write_text("")
    corpus = read(f"{tmp_path}/*.csv", text="body")
    assert corpus.report.dropped == {"empty file": 1}
    assert corpus.report.examples == {"empty file": "b.csv"}


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv", "rows.parquet"])
def test_a_missing_column_lists_those_there_are(tmp_path, name):
    path = write_table(tmp_path / name)
    with pytest.raises(InputError, match=r"no column 'text' \(asked for by text=\).*note, title, body, day, ward"):
        read(path)
    with pytest.raises(InputError, match=r"no column 'who' \(asked for by id=\)"):
        read(path, text="body", id="who")
    with pytest.raises(InputError, match=r"no column 'city' \(asked for by parties=\)"):
        read(path, text="body", parties=by_column("city"), party="x")


def test_a_csv_with_another_separator(tmp_path):
    (tmp_path / "s.csv").write_text("id;text\n1;oak\n")
    with pytest.raises(InputError, match=r"are: id;text\. If something else separates its fields, say so: separator="):
        read(tmp_path / "s.csv", separator=",")
    assert read(tmp_path / "s.csv", separator=";").n_documents == 1
    with pytest.raises(InputError, match=r"separator = ';;': give one character"):
        read(tmp_path / "s.csv", separator=";;")


@pytest.mark.parametrize(
    ("content", "kept", "dropped", "first"),
    [
        ("id,text\n1,oak\n2\n3,elm\n", ["oak", "elm"], {"broken CSV (not 2 fields)": 1}, "b.csv:3"),
        ("id,text\n1,oak,x\n3,elm\n", ["elm"], {"broken CSV (not 2 fields)": 1}, "b.csv:2"),
        ('id,text\n1,"oak\n2,elm\n3,fir\n', ["elm", "fir"], {"broken CSV (quotes do not match)": 1}, "b.csv:2"),
        ('id,text\n1,"oak\n2,"elm"\n3,fir\n', ["elm", "fir"], {"broken CSV (quotes do not match)": 1}, "b.csv:2"),
        ('id,text\n1,"oak"x\n2,"elm\nfir"\n', ["elm fir"], {"broken CSV (quotes do not match)": 1}, "b.csv:2"),
        ('id,text\n1,"two\nlines"\n2\n3,elm\n', ["two lines", "elm"], {"broken CSV (not 2 fields)": 1}, "b.csv:4"),
        ('id,text\n\n1,5" pipe\n2,\n', ["pipe"], {"empty text": 1}, "b.csv:4"),
    ],
)
def test_a_broken_csv_row_costs_only_itself(tmp_path, content, kept, dropped, first):
    (tmp_path / "b.csv").write_text(content)
    corpus = read(tmp_path / "b.csv", options=PLAIN)
    assert [" ".join(words) for words in tokens(corpus)] == kept
    assert corpus.report.dropped == dropped
    assert list(corpus.report.examples.values()) == [first]
    assert corpus.report.rows == corpus.report.kept + sum(corpus.report.dropped.values())


def test_a_quote_that_is_never_closed_in_a_long_csv(tmp_path, monkeypatch):
    import csv

    before = csv.field_size_limit(1000)
    monkeypatch.setattr("tertulia.corpus.formats.csv._FIELD_LIMIT", 1000)
    try:
        (tmp_path / "q.csv").write_text('id,text\n0,"oak\n' + "".join(f"{i},elm\n" for i in range(1, 1000)))
        corpus = read(tmp_path / "q.csv", id="id", options=PLAIN)
    finally:
        csv.field_size_limit(before)
    assert corpus.table["id"].to_list() == [str(i) for i in range(1, 1000)]
    assert corpus.report.examples == {"broken CSV (quotes do not match)": "q.csv:2"}


def test_long_csv_fields_are_read(tmp_path):
    (tmp_path / "l.csv").write_text("text\n" + "oak " * 100_000 + "\n")
    assert read(tmp_path / "l.csv", options=PLAIN).n_tokens == 100_000


def test_a_broken_csv_header(tmp_path):
    (tmp_path / "h.csv").write_text('id,"text\n1,oak\n')
    with pytest.raises(InputError, match="header in line 1 is broken"):
        read(tmp_path / "h.csv")


def test_broken_json_lines_are_counted_with_their_place(tmp_path):
    lines = [
        '{"text": "oak"}',
        '{"text": "elm"',
        "",
        "[1]",
        '{"text": null}',
        '{"text": [7]}',
        '{"other": 1}',
        "[" * 100_000,
    ]
    (tmp_path / "b.jsonl").write_text("\n".join(lines))
    corpus = read(tmp_path / "b.jsonl", options=PLAIN)
    assert tokens(corpus) == [["oak"]]
    assert corpus.report.dropped == {
        "broken JSON": 2,
        "not a JSON object (expected one {...} per line)": 1,
        "empty text": 2,
        "text is an object, or a list of other things than words": 1,
    }
    assert corpus.report.examples["broken JSON"] == "b.jsonl:2"
    assert corpus.report.examples["empty text"] == "b.jsonl:5"
    assert "dropped 2: broken JSON (first at b.jsonl:2)" in corpus.report.summary()


@pytest.mark.parametrize("name", ["u.jsonl", "u.csv"])
def test_rows_that_are_not_utf8_are_dropped_alone(tmp_path, name):
    rows = ["naïve oak", "elm", "fir", "señal"]
    lines = [json.dumps({"text": row}, ensure_ascii=False) for row in rows] if name == "u.jsonl" else ["text", *rows]
    raw = "\n".join(lines).encode("utf-8").replace("ñ".encode(), b"\xf1")
    (tmp_path / name).write_bytes(raw)
    corpus = read(tmp_path / name, options=PLAIN)
    assert tokens(corpus) == [["naïve", "oak"], ["elm"], ["fir"]]
    assert corpus.report.dropped == {"bytes that are not UTF-8": 1}
    assert corpus.report.examples["bytes that are not UTF-8"] == f"{name}:{4 if name == 'u.jsonl' else 5}"


def test_lone_surrogates_in_json_are_no_text(tmp_path):
    (tmp_path / "s.jsonl").write_text('{"text": "oak \\ud800"}\n{"text": "elm"}\n')
    assert read(tmp_path / "s.jsonl").report.dropped == {"bytes that are not UTF-8": 1}


def test_a_file_in_another_encoding_names_the_remedy(tmp_path):
    for codec in ("cp1251", "koi8-r"):
        (tmp_path / "a.csv").write_bytes("text\nсигнал\nпушка\n".encode(codec))
        with pytest.raises(InputError, match=r"encoding="):
            read(tmp_path / "a.csv")
        assert tokens(read(tmp_path / "a.csv", encoding=codec, options=PLAIN)) == [["сигнал"], ["пушка"]]
    with pytest.raises(InputError, match="encoding 'utf-9' is unknown"):
        read(tmp_path / "a.csv", encoding="utf-9")
    (tmp_path / "a.csv").write_text("text\nseñal\n", encoding="utf-8")
    with pytest.raises(InputError, match="is not utf-16: name its real encoding"):
        read(tmp_path / "a.csv", encoding="utf-16")


def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path):
    (tmp_path / "bom.csv").write_bytes("text\noak\n".encode("utf-8-sig"))
    assert read(tmp_path / "bom.csv").n_documents == 1


def test_binary_files(tmp_path):
    (tmp_path / "b.csv").write_bytes(bytes(range(256)))
    with pytest.raises(InputError, match="zero bytes"):
        read(tmp_path / "b.csv")
    (tmp_path / "b.parquet").write_bytes(bytes(range(256)))
    with pytest.raises(InputError, match="not a readable Parquet file"):
        read(tmp_path / "b.parquet")
    (tmp_path / "good.txt").write_text("oak")
    (tmp_path / "zero.txt").write_bytes(b"oak\0\0\0elm")
    (tmp_path / "old.txt").write_bytes("сигнал".encode("cp1251"))
    (tmp_path / "fine.txt").write_text("elm")
    report = read(tmp_path).report
    assert report.dropped == {"bytes that are not UTF-8": 1, "not text (zero bytes)": 1}


def test_paths_that_lead_nowhere(tmp_path):
    with pytest.raises(InputError, match=r"there is no file .*gone\.csv"):
        read(tmp_path / "gone.csv")
    with pytest.raises(InputError, match=r"no file fits .*\*\.csv"):
        read(f"{tmp_path}/*.csv")
    with pytest.raises(InputError, match=r"holds no \.txt file; for tables give a pattern"):
        read(tmp_path)
    (tmp_path / "notes.doc").write_text("oak")
    with pytest.raises(InputError, match=r"notes\.doc is of no known kind: name it \.jsonl"):
        read(tmp_path / "notes.doc")


def test_a_failed_reading_leaves_nothing_half_done(tmp_path):
    (tmp_path / "e.csv").write_text("text\n\n")
    with pytest.raises(InputError):
        read(tmp_path / "e.csv", directory=tmp_path / "corpus")
    assert list((tmp_path / "corpus").iterdir()) == []


def test_documents_without_words_are_kept_and_noted(tmp_path):
    (tmp_path / "w.csv").write_text("text\n123 456\nThe and\nRiver\n")
    corpus = read(tmp_path / "w.csv")
    assert corpus.lengths.tolist() == [0, 0, 1]
    assert corpus.report.noted == {"no word left after tokenisation": 2}
    assert corpus.report.examples == {"no word left after tokenisation": "w.csv:2"}


def test_one_document_is_enough(tmp_path):
    (tmp_path / "one.txt").write_text("A single river.")
    corpus = read(tmp_path / "one.txt")
    assert corpus.table["id"].to_list() == ["one.txt"]
    assert corpus.n_documents == 1


def test_reports_never_quote_documents(tmp_path):
    (tmp_path / "p.jsonl").write_text('{"text": "SECRET"\n{"text": "SECRET oak", "secret": {}}\n{"text": ["SECRET"]}\n')
    assert "SECRET" not in read(tmp_path / "p.jsonl").report.summary()
