"""Encodings and separators are guessed, and the report lists the guesses."""

import gzip

import pytest

from tertulia.corpus import TextOptions, read
from tertulia.corpus.formats.base import guess_encoding
from tertulia.corpus.formats.csv import guess_separator
from tertulia.corpus.report import ReadReport

PLAIN = TextOptions(stop_words="none", min_length=1)
ROWS = "id{0}text\n1{0}Señal, “naïve”\n2{0}cañón\n"
WORDS = ("señal", "naïve", "cañón")


@pytest.mark.parametrize(
    ("codec", "guessed"),
    [
        ("utf-8", None),
        ("utf-8-sig", None),
        ("cp1252", "cp1252"),
        ("utf-16", "utf-16"),
        ("utf-16-le", "utf-16-le"),
        ("utf-16-be", "utf-16-be"),
        ("utf-32", "utf-32"),
    ],
)
@pytest.mark.parametrize("name", ["notes.csv", "notes.csv.gz", "notes.txt"])
def test_encodings(tmp_path, codec, guessed, name):
    data = ROWS.format(";").encode(codec)
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    corpus = read(tmp_path / name, options=PLAIN)
    assert set(WORDS) <= set(corpus.vocabulary.words)
    assert corpus.report.guessed.get(f"encoding = '{guessed}'") == (1 if guessed else None)
    assert ("encoding" in corpus.report.summary()) == bool(guessed)


@pytest.mark.parametrize("separator", [";", "\t", "|", ","])
def test_separators(tmp_path, separator):
    (tmp_path / "notes.csv").write_text(f'id{separator}text\n1{separator}"a{separator}b"\n')
    corpus = read(tmp_path / "notes.csv", id="id", options=PLAIN)
    assert corpus.table["id"].to_list() == ["1"]
    assert corpus.vocabulary.words == ("a", "b")
    assert corpus.report.guessed == ({} if separator == "," else {f"separator = {separator!r}": 1})


def test_what_is_said_is_not_guessed(tmp_path):
    (tmp_path / "notes.csv").write_bytes("text\nÃ©\n".encode())
    assert read(tmp_path / "notes.csv", encoding="cp1252", options=PLAIN).report.guessed == {}
    (tmp_path / "tabs.csv").write_text("a,b\ttext\n1,2\toak\n")
    assert read(tmp_path / "tabs.csv", separator="tab", options=PLAIN).vocabulary.words == ("oak",)


def test_the_columns_that_are_asked_for_decide():
    assert guess_separator("a,b;text", {"text"}, ",") == ";"
    assert guess_separator("a;b,text", {"text"}, ",") == ","
    assert guess_separator("text", {"text"}, "\t") == "\t"
    assert guess_separator("title;body", {"text"}, ",") == ";"  # so that the error can name the columns


def test_what_reads_like_no_text_of_the_west_stays_utf8():
    assert guess_encoding("сигнал и шум".encode("cp1251")) == "utf-8"
    assert guess_encoding("信号".encode("gbk")) == "utf-8"
    assert guess_encoding(bytes(range(1, 256))) == "utf-8"
    assert guess_encoding(bytes(range(256))) == "utf-8"
    assert guess_encoding("naïve café".encode() + b" \xe9") == "utf-8"  # one broken letter does not count
    assert guess_encoding("naïve".encode()[:3]) == "utf-8"  # the sample's end may cut a letter


def test_guesses_are_stored_and_added_up():
    one, other = ReadReport(), ReadReport()
    one.guess("encoding = 'cp1252'", "a.csv")
    other.guess("encoding = 'cp1252'", "b.csv")
    both = ReadReport.from_dict((one + other).to_dict())
    assert "guessed for 2 files: encoding = 'cp1252' (first a.csv)" in both.summary()
    assert "guessed" not in ReadReport().to_dict()  # earlier versions can read it
