"""Records of known kinds: clinical notes of OMOP and FHIR, works of OpenAlex, grants of CORDIS and NSF."""

import base64
import gzip
import json

import duckdb
import polars as pl
import pytest

from helpers.tables import PLAIN, tokens
from tertulia.corpus import read
from tertulia.corpus.markup import looks_like_html, plain_text
from tertulia.corpus.sources.layouts import LAYOUTS
from tertulia.corpus.sources.openalex import abstract_of
from tertulia.errors import InputError
from tertulia.runs.documents import SourceSettings


def reference(text, kind="text/plain", **more):
    data = base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()
    attachment = {"contentType": kind, "data": data}
    return {"resourceType": "DocumentReference", "status": "current", "content": [{"attachment": attachment}]} | more


def lines(path, records):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)
    return path


def test_settings_know_every_format():
    assert list(LAYOUTS) == list(SourceSettings.model_fields["format"].annotation.__args__)
    with pytest.raises(InputError, match="format = 'xml' is unknown: choose one of table, omop"):
        read("notes.xml", format="xml")


def test_fhir_takes_the_text_and_the_patient(tmp_path):
    both = reference("<p>Ash &amp; ash.</p><script>elm()</script>", "text/html; charset=UTF-8")
    both["content"].insert(0, {"attachment": {"contentType": "application/pdf", "data": "JVBERg=="}})
    records = [
        reference("Oak and elm.", id="d1", date="2024-01-05T08:00:00Z", subject={"reference": "Patient/7"},
                  type={"coding": [{"code": "34133-9", "display": "Summary"}]}),
        both | {"subject": {"identifier": {"value": "MRN 8"}}, "type": {"text": "Letter"}},
        reference("Eschenbäumchen".encode("latin-1"), "text/plain;charset=latin-1", subject={"reference": "Patient/7"}),
    ]  # fmt: skip
    corpus = read(lines(tmp_path / "notes.ndjson", records), format="fhir", options=PLAIN)
    assert tokens(corpus) == [["oak", "and", "elm"], ["ash", "ash"], ["eschenbäumchen"]]
    assert corpus.table["user"].to_list() == ["Patient/7", "MRN 8", "Patient/7"]
    assert corpus.table["label"].to_list() == ["Summary", "Letter", None]
    assert (corpus.table["id"][0], corpus.table["date"][0]) == ("d1", "2024-01-05T08:00:00Z")


def test_fhir_counts_what_it_cannot_read(tmp_path):
    linked = reference("x")
    linked["content"][0]["attachment"] = {"contentType": "text/plain", "url": "Binary/1"}
    broken = reference("x")
    broken["content"][0]["attachment"]["data"] = "n0 base64!"
    records = [
        reference("Oak."), {"resourceType": "Patient", "id": "7"}, reference("fir", status="entered-in-error"),
        reference("x", "application/pdf"), linked, broken, reference(b"\xff\xfe\xfd"),
        reference("x", "text/plain;charset=klingon"),
        reference("x") | {"content": "none"}, reference("   "),
    ]  # fmt: skip
    report = read(lines(tmp_path / "notes.ndjson", records), format="fhir", options=PLAIN).report
    assert report.kept == 1
    assert report.dropped == {
        "not a DocumentReference": 1, "its status is entered-in-error": 1,
        "its attachment is application/pdf, which is not read": 1,
        "its attachment is only linked, and links are not followed": 1, "its attachment is no base64": 1,
        "bytes that are not UTF-8": 1, "its charset is unknown": 1, "no attachment": 1, "empty text": 1,
    }  # fmt: skip
    with pytest.raises(InputError, match="no column resourceType, so it is not of this format: it reads NDJSON"):
        read(lines(tmp_path / "other.ndjson", [{"text": "oak"}]), format="fhir")


def test_omop_is_the_table_note_of_a_database_or_an_export(tmp_path):
    table = "SELECT 1 AS note_id, 7 AS person_id, DATE '2024-01-05' AS note_date, 'oak' AS note_text, 3 AS other"
    with duckdb.connect(str(tmp_path / "cdm.duckdb")) as connection:
        connection.execute(f"CREATE TABLE note AS {table}")
        connection.execute(f"COPY note TO '{tmp_path}/note.csv'")
    for name in ("cdm.duckdb", "note.csv"):
        corpus = read(tmp_path / name, format="omop", options=PLAIN)
        assert corpus.table.rows() == [("1", "2024-01-05", "7")]
        assert tokens(corpus) == [["oak"]]
    named = read(tmp_path / "cdm.duckdb", format="omop", label="other", options=PLAIN)
    assert named.table["label"].to_list() == ["3"]


WORKS = [
    {"id": "W1", "title": "On Oaks", "publication_date": "2024-01-05", "language": "en",
     "abstract_inverted_index": {"Oaks": [0, 2], "and": [1]},
     "primary_topic": {"display_name": "Trees", "field": {"display_name": "Botany"}}},
    {"id": "W2", "title": "Elms", "publication_date": "2024-01-06", "language": "en", "abstract_inverted_index": None,
     "primary_topic": None},
]  # fmt: skip


def test_openalex_puts_abstracts_together_from_json_lines_and_parquet(tmp_path):
    lines(tmp_path / "part_0000.jsonl.gz", WORKS)
    as_text = [work | {"abstract_inverted_index": json.dumps(work["abstract_inverted_index"])} for work in WORKS]
    pl.DataFrame(as_text).write_parquet(tmp_path / "text.parquet")
    index = [{"key": "Oaks", "value": [0, 2]}, {"key": "and", "value": [1]}]
    as_map = [work | {"abstract_inverted_index": index if work["id"] == "W1" else None} for work in WORKS]
    pl.DataFrame(as_map).write_parquet(tmp_path / "map.parquet")
    for name in ("part_0000.jsonl.gz", "text.parquet", "map.parquet"):
        corpus = read(tmp_path / name, format="openalex", options=PLAIN)
        assert tokens(corpus) == [["on", "oaks", "oaks", "and", "oaks"], ["elms"]]
        assert corpus.table.rows() == [("W1", "Botany", "2024-01-05"), ("W2", None, "2024-01-06")]
    abstracts = read(
        tmp_path / "text.parquet", format="openalex", text="abstract", label="topic", where={"language": "en"}
    )
    assert abstracts.report.dropped == {"empty text": 1}
    assert abstracts.table["label"].to_list() == ["Trees"]


@pytest.mark.parametrize(
    "index", [None, {}, "no json", 7, {"a": None}, {"a": ["x"]}, [{"key": "a"}], {"a": [0] * 100_001}]
)
def test_an_index_that_is_none_gives_no_abstract(index):
    assert abstract_of(index) is None


def test_cordis_reads_projects(tmp_path):
    header = '"id";"acronym";"title";"startDate";"objective";"legalBasis"\n'
    (tmp_path / "project.csv").write_text(
        header + '"101";"OAK";"Oaks";"2024-01-05";"To ""grow""; oaks";"HORIZON.1.1"\n'
    )
    corpus = read(tmp_path / "project.csv", format="cordis", options=PLAIN)
    assert tokens(corpus) == [["oaks", "to", "grow", "oaks"]]
    assert corpus.table.rows() == [("101", "HORIZON.1.1", "2024-01-05")]


def test_nsf_reads_downloads_answers_and_exports(tmp_path):
    year = tmp_path / "2024"
    year.mkdir()
    award = {"awd_id": "24", "awd_titl_txt": "Oaks", "awd_abstract_narration": "We grow<br/>oaks &amp; elms.",
             "awd_eff_date": "2024-01-05", "org_div_long_name": "Division Of Trees"}  # fmt: skip
    (year / "24.json").write_text(json.dumps(award, indent=1))
    answer = {"response": {"award": [{"id": "24", "title": "Oaks", "abstractText": "We grow oaks elms.",
                                      "startDate": "2024-01-05", "fundProgramName": "Division Of Trees"}]}}  # fmt: skip
    (tmp_path / "answer.json").write_text(json.dumps(answer))
    header = "AwardNumber,Title,Abstract,StartDate,NSFOrganization\n"
    export = header + "24,Oaks,We grow oaks elms.,2024-01-05,Division Of Trees\n"
    (tmp_path / "export.csv").write_text(export)
    for path in (str(year / "*.json"), tmp_path / "answer.json", tmp_path / "export.csv"):
        corpus = read(path, format="nsf", options=PLAIN)
        assert tokens(corpus) == [["oaks", "we", "grow", "oaks", "elms"]]
        assert corpus.table.rows() == [("24", "Division Of Trees", "2024-01-05")]
    (tmp_path / "other.json").write_text(json.dumps([1, 2]))
    with pytest.raises(InputError, match="holds no award of NSF"):
        read(tmp_path / "other.json", format="nsf")


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("Rain<b>fall</b> &lt; 3 mm", "Rainfall < 3 mm"),
        ("<head><title>x</title><body><div>One<div>Two", "One\n\nTwo"),
        ("<style>p { color: red }</style>Oak<!-- elm -->", "Oak"),
        ("a < b and b > c", "a < b and b > c"),
        ("<p class='x'>An <a href='#'>oak", "An oak"),
    ],
)
def test_markup_is_left_out(html, text):
    assert plain_text(html) == text
    assert looks_like_html(html) == (html != text)
