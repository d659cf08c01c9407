import gzip
import json

import polars as pl
import pytest

from tertulia.corpus import Corpus, TextOptions, read
from tertulia.corpus.readers import Source
from tertulia.corpus.report import ReadReport
from tertulia.corpus.splits import at_random, by_column, by_file, dirichlet
from tertulia.errors import InputError

PLAIN = TextOptions(stop_words="none", min_length=1)
ROWS = [
    {"note": "n1", "title": "Oak", "body": "An oak. An elm.", "day": "2024-01-05", "ward": "north"},
    {"note": "n2", "title": "Fir", "body": 'A fir,\nand “quotes”, "commas".', "day": "2024-01-06", "ward": "south"},
    {"note": "n3", "title": "Ash", "body": "Ein Eschenbäumchen.", "day": "2024-01-07", "ward": "north"},
]
COLUMNS = {"text": ["title", "body"], "id": "note", "date": "day", "label": "ward"}


def write_table(path, rows=ROWS):
    frame = pl.DataFrame(rows)
    if path.suffix == ".parquet":
        frame.write_parquet(path)
    elif path.suffix in (".csv", ".tsv"):
        frame.write_csv(path, separator="\t" if path.suffix == ".tsv" else ",")
    else:
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def tokens(corpus):
    words = [corpus.vocabulary.words[w] for w in corpus.words]
    return [words[a:b] for a, b in zip(corpus.documents[:-1], corpus.documents[1:], strict=True)]


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


# Bad input


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
