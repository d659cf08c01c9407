"""The builder of a corpus: it takes one document at a time, and keeps the tokens in memory or on disk.

Tokens and offsets are columns that only grow, in memory or in a .npy file.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from tertulia._arrays import F32, Array
from tertulia.corpus import storage
from tertulia.corpus.advice import count_copies, warn_of_language
from tertulia.corpus.corpus import Corpus, embedding_column
from tertulia.corpus.languages import LanguageSample
from tertulia.corpus.markup import looks_like_html, plain_text
from tertulia.corpus.mojibake import is_broken, repair
from tertulia.corpus.offsets import narrow
from tertulia.corpus.report import ReadReport
from tertulia.corpus.storage import load_array
from tertulia.corpus.tokens import TextOptions, sentences, with_ngrams
from tertulia.corpus.vocabulary import UNKNOWN, Vocabulary
from tertulia.errors import InputError

if TYPE_CHECKING:
    import polars as pl

WORDLESS = "no word left after tokenisation"
NAMELESS = "names no user"
COPIES = "the same words as an earlier one"
MENDED = (
    ("tags of HTML left out", looks_like_html, plain_text),
    ("broken characters (Ã© for é) repaired", is_broken, repair),
)
LEFT = ("it looks like HTML", "broken characters (Ã© for é)")
REMEDY = "; `clean = true` under [text], TextOptions(clean=True), mends it"
DOMINANT = "of one user alone, who has half of all documents or more"
_BLOCK = 1 << 20  # numbers that are buffered, or converted, at a time


class Column:
    """A growing array of numbers, in memory."""

    def __init__(self, typecode: str) -> None:
        self.buffer = array(typecode)

    def flush(self) -> None:
        """Move the buffer to the file, if there is one."""

    def finish(self, offsets: bool = False) -> Array:
        """Return the whole column; offsets take 4 bytes each while they fit."""
        whole: Array = np.frombuffer(self.buffer, self.buffer.typecode)
        return narrow(whole) if offsets else whole

    def close(self) -> None:
        """Close the file, if there is one."""


class FileColumn(Column):
    """A growing array of numbers, in a .npy file that gets its name when it is finished."""

    def __init__(self, typecode: str, path: Path) -> None:
        super().__init__(typecode)
        self.path = path
        self.part = path.with_name(f"{path.name}.{typecode}.part")
        self._length = 0
        self._file: BinaryIO = self.part.open("wb")
        self._write_header()

    def _write_header(self) -> None:
        # NumPy pads headers so that the first axis may grow in place: the final header takes the same bytes.
        header = {"descr": np.dtype(self.buffer.typecode).str, "fortran_order": False, "shape": (self._length,)}
        np.lib.format.write_array_header_1_0(self._file, header)

    def flush(self) -> None:
        """Write the buffer to the file and empty it."""
        self.buffer.tofile(self._file)
        self._length += len(self.buffer)
        del self.buffer[:]

    def finish(self, offsets: bool = False) -> Array:
        """Return the whole column, mapped into memory."""
        self.flush()
        self._file.seek(0)
        self._write_header()
        self._file.close()
        if offsets and load_array(self.part)[-1] < 2**31:
            return self._narrow()
        self.part.replace(self.path)
        return load_array(self.path)

    def _narrow(self) -> Array:
        wide, small = load_array(self.part), FileColumn("i", self.path)
        for start in range(0, len(wide), _BLOCK):
            small.buffer.frombytes(wide[start : start + _BLOCK].astype(np.int32).tobytes())
            small.flush()
        del wide  # Windows removes no file that is mapped
        self.part.unlink()
        return small.finish()

    def close(self) -> None:
        """Close the file, and remove it if it is not finished."""
        self._file.close()
        self.part.unlink(missing_ok=True)


class TableColumns:
    """The table of documents: ids, and labels, dates and users where there are any."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, str | None, str | None, str | None]] = []
        self._frames: list[pl.DataFrame] = []

    def add(self, name: str, label: str | None, date: str | None, user: str | None) -> None:
        """Append a row."""
        self._rows.append((name, label, date, user))
        if len(self._rows) >= _BLOCK // 16:
            self._flush()

    def _flush(self) -> None:
        import polars as pl

        schema = {"id": pl.String, "label": pl.String, "date": pl.String, "user": pl.String}
        self._frames.append(pl.DataFrame(self._rows, schema=schema, orient="row"))  # a tenth of the memory
        self._rows.clear()

    def finish(self) -> pl.DataFrame:
        """Return the whole table, without empty columns."""
        import polars as pl

        self._flush()
        table = pl.concat(self._frames)
        filled = [name for name in ("label", "date", "user") if table[name].null_count() < table.height]
        return table.select("id", *filled)


def text_id(text: str) -> str:
    """Hash a text to its default id, which is the same on every machine."""
    return hashlib.blake2b(text.encode("utf-8"), digest_size=8).hexdigest()


class Builder:
    """A corpus under construction; with a directory, memory holds only the word list and the table of documents.

    >>> builder = Builder()
    >>> builder.add("a", "Rain fell. Rivers rose.")
    4
    >>> builder.finish()
    Corpus(1 documents, 4 tokens, 4 words)
    """

    def __init__(
        self,
        options: TextOptions | None = None,
        directory: str | PathLike[str] | None = None,
        keep_text: bool = False,
        keep_places: bool = False,
    ) -> None:
        self.options = options or TextOptions()
        self._keep_places = keep_places  # of words that a given list removes, see `sentences`
        self._texts: list[str] | None = [] if keep_text else None
        self.embeddings: F32 | None = None  # [D, E] of the documents, if they were computed elsewhere
        self._draft = None if directory is None else storage.Draft(Path(directory))
        self._index = _Index()
        self._table = TableColumns()
        self._columns = {name: self._column(name, code) for name, code in zip(storage.ARRAYS, "iqqq", strict=True)}
        for name in ("documents", "sentences", "paragraphs"):
            self._columns[name].buffer.append(0)
        self._n_tokens = 0
        self._cut = True  # whether the package itself cut all texts into words
        self._languages = LanguageSample()
        self._noted: Counter[str] = Counter()

    def _column(self, name: str, typecode: str) -> Column:
        return Column(typecode) if self._draft is None else FileColumn(typecode, self._draft.folder / f"{name}.npy")

    def add(
        self,
        name: str,
        text: str | Sequence[str],
        label: str | None = None,
        date: str | None = None,
        user: str | None = None,
    ) -> int:
        """Append a document, as a text or as tokens, and return its number of tokens without `<unk>`."""
        text = self._cleaned(text) if isinstance(text, str) else text
        words, documents, sentence_ends, paragraph_ends = (column.buffer for column in self._columns.values())
        number, end, hidden = self._index.__getitem__, self._n_tokens, 0
        for paragraph in self._paragraphs(text):
            for sentence in paragraph:
                words.extend(map(number, sentence))
                end += len(sentence)
                hidden += sentence.count(UNKNOWN) if self._keep_places else 0
                sentence_ends.append(end)
            paragraph_ends.append(end)
        documents.append(end)
        self._table.add(name, label, date, user)
        if self._texts is not None:
            self._texts.append(text if isinstance(text, str) else " ".join(text))
        if len(words) >= _BLOCK:
            for column in self._columns.values():
                column.flush()
        added, self._n_tokens = end - self._n_tokens, end
        return added - hidden

    def _cleaned(self, text: str) -> str:
        """Look at a text; mend it if the options say so, else note what is wrong with it."""
        for (done, wrong, mend), left in zip(MENDED, LEFT, strict=True):
            if wrong(text):
                self._noted[done if self.options.clean else left + REMEDY] += 1
                text = mend(text) if self.options.clean else text
        if not self.options.tokenizer:
            self._languages.look(text)
        return text

    def _paragraphs(self, text: str | Sequence[str]) -> list[list[list[str]]]:
        """Cut a text into paragraphs of sentences of tokens; a list of tokens is one sentence."""
        if isinstance(text, str):
            self._cut = self._cut and not self.options.tokenizer
            return sentences(text, self.options, keep_places=self._keep_places)
        self._cut = False
        return [[with_ngrams(list(text), self.options.ngrams)]] if text else []

    def finish(self, report: ReadReport | None = None) -> Corpus:
        """Return the corpus of all documents; on disk it is complete only now."""
        arrays = {
            name: column.finish(offsets=name in ("sentences", "paragraphs")) for name, column in self._columns.items()
        }
        vocabulary, table = Vocabulary(tuple(self._index)), self._table.finish()
        if self._texts is not None:
            import polars as pl

            table = table.with_columns(pl.Series("text", self._texts, pl.String))
        if self.embeddings is not None:
            table = table.with_columns(embedding_column(self.embeddings, table.height))
        if report is None:
            report = ReadReport(rows=table.height, kept=table.height)
        report.note("id seen before", count=table.height - table["id"].n_unique())
        for reason, times in self._noted.items():
            report.note(reason, count=times)
        report.languages = self._languages.shares
        _note_users(table, report)
        corpus = Corpus(**arrays, vocabulary=vocabulary, table=table, options=self.options, report=report)
        report.note(COPIES, count=count_copies(corpus))
        if self._draft is not None:
            self._draft.publish(vocabulary, table, self.options, report)
        if self._cut:
            warn_of_language(corpus)
        return corpus

    def close(self) -> None:
        """Close and remove the files of a corpus that will not be finished."""
        for column in self._columns.values():
            column.close()
        if self._draft is not None:
            self._draft.close()


def _note_users(table: pl.DataFrame, report: ReadReport) -> None:
    """Note documents that should name a user and do not, and a user who has half of all documents."""
    if "user" not in table.columns:
        report.note(NAMELESS, count=table.height if NAMELESS in report.examples else 0)
        return
    names = table["user"].str.strip_chars()
    named = names.filter(names.is_not_null() & (names != ""))
    report.note(NAMELESS, count=table.height - named.len())
    most = int(named.unique_counts().max() or 0)  # type: ignore[arg-type]
    report.note(DOMINANT, count=most if most > 1 and 2 * most >= table.height else 0)


class _Index(dict[str, int]):
    """A dict that numbers words in the order of their first use."""

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        return number


def from_texts(
    texts: Iterable[str | Sequence[str]],
    ids: Sequence[str | None] | None = None,
    labels: Sequence[str | None] | None = None,
    dates: Sequence[str | None] | None = None,
    options: TextOptions | None = None,
    keep_text: bool = False,
    users: Sequence[str | None] | None = None,
    keep_places: bool = False,
) -> Corpus:
    """Make a corpus from texts, see `Corpus.from_texts`; a document without an id gets the hash of its text.

    A text may also be a list of tokens, which stays as it is and counts as one sentence.
    """
    if isinstance(texts, str):
        raise InputError("texts must be a list of texts, not a single one: write [text]")
    texts = list(texts)
    for name, given in (("ids", ids), ("labels", labels), ("dates", dates), ("users", users)):
        if given is not None and len(given) != len(texts):
            raise InputError(f"{len(given)} {name} were given for {len(texts)} texts")
    builder, report = Builder(options, keep_text=keep_text, keep_places=keep_places), ReadReport()
    for place, text in enumerate(texts):
        _check(text, place)
        known_as, label, date, user = (_at(column, place) for column in (ids, labels, dates, users))
        if known_as is None:
            known_as = text_id(text if isinstance(text, str) else " ".join(text))
        added = builder.add(known_as, text, label, date, user)
        report.keep()
        if not added:
            report.note(WORDLESS, f"text {place}")
    return builder.finish(report)


def _check(text: object, place: int) -> None:
    if isinstance(text, list | tuple):
        if not all(isinstance(token, str) and token for token in text):
            raise InputError(f"text {place} is a list, but not of words: give text, or a list of words, none empty")
    elif not isinstance(text, str):
        raise InputError(f"text {place} is {type(text).__name__}, not str: leave it out or write ''")


def _at(column: Sequence[str | None] | None, place: int) -> str | None:
    value = None if column is None else column[place]
    return None if value is None else str(value)


def concatenate(corpora: Sequence[Corpus]) -> Corpus:
    """Join corpora, see `Corpus.concatenate`."""
    import polars as pl

    if not corpora:
        raise InputError("there is nothing to concatenate: give at least one corpus")
    index = _Index()
    numbers = [np.fromiter((index[w] for w in c.vocabulary.words), np.int32, len(c.vocabulary)) for c in corpora]
    report = ReadReport()
    for corpus in corpora:
        report = report + corpus.report
    return Corpus(
        words=np.concatenate([number[c.words] for number, c in zip(numbers, corpora, strict=True)]),
        documents=_join([c.documents for c in corpora]),
        sentences=narrow(_join([c.sentences for c in corpora])),
        paragraphs=narrow(_join([c.paragraphs for c in corpora])),
        vocabulary=Vocabulary(tuple(index)),
        table=pl.concat([c.table for c in corpora], how="diagonal"),
        options=corpora[0].options,
        report=report,
    )


def _join(offsets: Sequence[Array]) -> Array:
    base = np.cumsum([0, *(part[-1] for part in offsets)])
    shifted = [part[1:].astype(np.int64) + shift for part, shift in zip(offsets, base[:-1], strict=True)]
    return np.concatenate([np.zeros(1, np.int64), *shifted])
