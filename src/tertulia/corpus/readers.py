"""The front door for text: files in, a `Corpus` out, and a word about every row that was left behind."""

from __future__ import annotations

import codecs
import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from tertulia.corpus import formats
from tertulia.corpus.builder import WORDLESS, Builder, text_id
from tertulia.corpus.corpus import Corpus
from tertulia.corpus.embedded import read_embeddings, rows_of
from tertulia.corpus.inputs import string_or_none
from tertulia.corpus.report import ReadReport
from tertulia.corpus.splits import Assignment, Row
from tertulia.corpus.tokens import TextOptions
from tertulia.errors import InputError

PathLike = str | os.PathLike[str]
OTHER_PARTY = "belongs to another party"


@dataclass(frozen=True)
class Source:
    """Where rows come from and which columns matter.

    `path` is a file (.jsonl, .csv, .tsv, .parquet, .txt; also .gz, .bz2, .xz), a folder of .txt files, a pattern
    (`notes/*.jsonl`) or a list of such. Several text columns are joined, each a paragraph of its own. Texts from a
    folder have the columns `text`, `path` and `folder`. Without an id column a row is known by a hash of its text,
    a text file by its path.
    """

    path: PathLike | Sequence[PathLike]
    text: str | Sequence[str] = "text"
    id: str | None = None
    date: str | None = None
    label: str | None = None
    where: Mapping[str, str] = field(default_factory=dict)  # only rows with these values
    encoding: str = "utf-8"
    separator: str | None = None  # of CSV fields
    every_row: bool = False  # a row without a usable text is an empty document, so that results can be joined to rows

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "encoding", codecs.lookup(self.encoding).name)
        except LookupError as error:
            raise InputError(f"encoding '{self.encoding}' is unknown: try 'utf-8', 'cp1252' or 'utf-16'") from error

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The names of the text columns."""
        return (self.text,) if isinstance(self.text, str) else tuple(self.text)

    def rows(self, report: ReadReport, extra_columns: Sequence[str] = ()) -> Iterator[tuple[str, Row]]:
        """Stream the usable rows with their places; the others go into the report."""
        wanted = self._wanted(extra_columns)
        for file, root in _files(self.path):
            kind = formats.format_of(file)
            table = self._open(kind, file, root, set(wanted))
            if table.columns:
                _check_columns(file, table.columns, wanted)
            top = _source_name(kind, file, root)
            for record in table.records:
                row, problem = (None, record.problem) if record.problem else self._row(record, top, extra_columns)
                if row is None and self.every_row and problem != formats.EMPTY and self._is_wanted(record):
                    report.note(problem, record.place)
                    name = self._name(record)
                    row = Row(name if name and _encodable(name) else record.place, "")
                if row is None:
                    report.drop(problem, record.place)
                else:
                    yield record.place, row

    def _wanted(self, extra_columns: Sequence[str]) -> dict[str, str]:
        """Column -> the argument that asks for it."""
        named = {"id": self.id, "date": self.date, "label": self.label}
        return {
            **dict.fromkeys(extra_columns, "parties"),
            **dict.fromkeys(self.where, "where"),
            **{column: argument for argument, column in named.items() if column is not None},
            **dict.fromkeys(self.text_columns, "text"),
        }

    def _open(self, kind: str, file: Path, root: Path, wanted: set[str]) -> formats.Table:
        if kind == "parquet":
            return formats.open_parquet(file, wanted)
        if kind == "text":
            return formats.open_text(file, root, self.encoding)
        if kind == "csv":
            return formats.open_csv(file, self.encoding, self.separator)
        return formats.open_jsonl(file, self.encoding)

    def _row(self, record: formats.Record, source: str, extra_columns: Sequence[str]) -> tuple[Row | None, str]:
        """Make a row, or say why there is none."""
        values = record.values
        if not self._is_wanted(record):
            return None, f"not {', '.join(f'{column} = {value}' for column, value in self.where.items())}"
        texts = [values.get(column) for column in self.text_columns]
        if any(isinstance(text, list | dict) for text in texts):
            return None, "text is a list or an object"
        text = "\n\n".join(part for part in map(string_or_none, texts) if part)
        if not text.strip():
            return None, "empty text"
        label, date = (None if name is None else string_or_none(values.get(name)) for name in (self.label, self.date))
        name = self._name(record)
        others = {column: string_or_none(values.get(column)) for column in extra_columns}
        if not all(map(_encodable, (text, name, label, date, *others.values()))):
            return None, formats.not_encoded(self.encoding)
        return Row(name or text_id(text), text, label, date, source, others), ""

    def _is_wanted(self, record: formats.Record) -> bool:
        return all(string_or_none(record.values.get(column)) == value for column, value in self.where.items())

    def _name(self, record: formats.Record) -> str | None:
        """What the row is known by, if anything says so."""
        return record.name if self.id is None else string_or_none(record.values.get(self.id))


def read(
    path: PathLike | Sequence[PathLike],
    *,
    text: str | Sequence[str] = "text",
    id: str | None = None,  # noqa: A002 - the word that users look for
    date: str | None = None,
    label: str | None = None,
    where: Mapping[str, str] | None = None,
    options: TextOptions | None = None,
    directory: PathLike | None = None,
    parties: Assignment | None = None,
    party: str | None = None,
    encoding: str = "utf-8",
    separator: str | None = None,
    keep_text: bool = False,
    embeddings: PathLike | None = None,
    every_row: bool = False,
) -> Corpus:
    """Read documents; see `Source` for the arguments that say where they are.

    With a `directory` the corpus is built there and mapped into memory: of a large file only the list of distinct
    words and the table of ids stay in memory. With `parties` and `party` only that party's rows are kept. With
    `keep_text` the texts stay in the table, for models that read sentences; or `embeddings` is a file (.npy, .npz,
    .safetensors) of vectors, one for each row that is read. With `every_row` a row whose text is missing, empty or
    broken becomes an empty document instead of being dropped.

        corpus = read("notes.csv", text=["title", "body"], id="note_id", label="ward")
        print(corpus.report.summary())
    """
    source = Source(path, text, id, date, label, where or {}, encoding, separator, every_row)
    if (parties is None) != (party is None):
        raise InputError("give parties= (the rule) and party= (whose rows to keep) together")
    if parties is not None and parties.parties and party not in parties.parties:
        raise InputError(f"party '{party}' is none of {', '.join(parties.parties)}")
    report, elsewhere, places = ReadReport(), 0, []
    vectors = None if embeddings is None else read_embeddings(embeddings)
    with closing(Builder(options, directory, keep_text)) as builder:
        for place, row in _assignable(source, report, parties):
            if parties is None or parties(row) == party:
                places.append(report.rows + elsewhere)
                _add(builder, report, place, row)
            else:
                elsewhere += 1
        report.drop(OTHER_PARTY, count=elsewhere)
        _check_rows(source, report)
        if vectors is not None and embeddings is not None:
            builder.embeddings = rows_of(vectors, places, report.rows, embeddings, _described(path))
        return builder.finish(report)


def read_parties(
    source: Source, parties: Assignment, options: TextOptions | None = None, directory: PathLike | None = None
) -> dict[str, Corpus]:
    """Read all parties' documents in one go: the same corpora as one `read` a party, sorted by the party's name.

    With a `directory` each party gets one of its own below it.
    """
    common = ReadReport()  # rows dropped before anyone knew whose they were
    found: dict[str, tuple[Builder, ReadReport]] = {}
    with ExitStack() as stack:
        for place, row in _assignable(source, common, parties):
            party = parties(row)
            if party not in found:
                own = None if directory is None else Path(directory) / _file_name(party)
                found[party] = stack.enter_context(closing(Builder(options, own))), ReadReport()
            _add(*found[party], place, row)
        kept = sum(report.kept for _, report in found.values())
        _check_rows(source, common + ReadReport(rows=kept, kept=kept))
        if missing := [party for party in parties.parties if party not in found]:
            raise InputError(f"no row of {_described(source.path)} falls to {', '.join(missing)}: use fewer parties")
        for _, report in found.values():
            report.drop(OTHER_PARTY, count=kept - report.kept)
        return {party: builder.finish(common + report) for party, (builder, report) in sorted(found.items())}


def _assignable(source: Source, report: ReadReport, parties: Assignment | None) -> Iterator[tuple[str, Row]]:
    if parties is None:
        return source.rows(report)
    if parties.needs_label and source.label is None:
        raise InputError("this split goes by label: name the column with label=...")
    return source.rows(report, parties.columns)


def _add(builder: Builder, report: ReadReport, place: str, row: Row) -> None:
    report.keep()
    if not builder.add(row.id, row.text, row.label, row.date) and row.text:
        report.note(WORDLESS, place)


def _check_columns(file: Path, columns: Sequence[str], wanted: Mapping[str, str]) -> None:
    for column, argument in wanted.items():
        if column not in columns:
            alone = len(columns) == 1 and formats.format_of(file) == "csv"
            hint = " If fields are not parted by commas, pass separator=..." if alone else ""
            raise InputError(
                f"{file} has no column '{column}' (asked for by {argument}=). "
                f"Its columns are: {', '.join(columns)}.{hint}"
            )


def _check_rows(source: Source, report: ReadReport) -> None:
    name, reason = _described(source.path), formats.not_encoded(source.encoding)
    undecodable = report.dropped.get(reason, 0) + report.noted.get(reason, 0)
    if undecodable > report.rows // 2:
        raise InputError(
            f"{undecodable} of {report.rows} rows of {name} are not {source.encoding.upper()}: name the real encoding "
            "with encoding=... (old Windows files are often 'cp1252')"
        )
    if not report.kept and set(report.dropped) <= {formats.EMPTY}:
        raise InputError(f"{name} is empty: it holds no rows")
    if not report.kept:
        raise InputError(f"{name} holds no usable row: {report.summary()}")


def _files(path: PathLike | Sequence[PathLike]) -> Iterator[tuple[Path, Path]]:
    """Each file with the folder to which ids of text files are relative."""
    if not isinstance(path, str | os.PathLike):
        for each in path:
            yield from _files(each)
        return
    given = Path(path)
    if given.is_dir():
        texts = sorted(file for file in given.rglob("*.txt*") if file.is_file() and _is_text(file))
        if not texts:
            raise InputError(f"folder {given} holds no .txt file; for tables give a pattern such as {given}/*.jsonl")
        yield from ((file, given) for file in texts)
    elif given.exists():
        yield given, given.parent
    else:
        matches = sorted(Path(match) for match in glob.glob(str(path), recursive=True))  # noqa: PTH207 - may be absolute
        if not matches:
            raise InputError(f"there is no file {path}" if not glob.has_magic(str(path)) else f"no file fits {path}")
        root = Path(os.path.commonpath([match.parent for match in matches]))
        yield from ((match, root) for match in matches if match.is_file())


def _is_text(file: Path) -> bool:
    return (file.with_suffix("") if formats.is_compressed(file) else file).suffix == ".txt"


def _source_name(kind: str, file: Path, root: Path) -> str:
    if kind != "text":
        return file.name.split(".")[0]
    inside = file.relative_to(root).parts
    return inside[0] if len(inside) > 1 else root.name


def _described(path: PathLike | Sequence[PathLike]) -> str:
    return os.fspath(path) if isinstance(path, str | os.PathLike) else f"the {len(path)} given files"


def _file_name(party: str) -> str:
    return quote(party, safe=" ").replace(".", "%2E")


def _encodable(value: str | None) -> bool:
    if value is None or value.isascii():
        return True
    try:
        value.encode("utf-8")  # fails on the lone surrogates that stand for undecodable bytes
    except UnicodeEncodeError:
        return False
    return True
