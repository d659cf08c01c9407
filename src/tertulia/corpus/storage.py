"""A corpus on disk: one .npy file an array, the table as Parquet, the rest as JSON.

`corpus.json` is written last and names the format: a directory without it was never finished.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import numpy as np

from tertulia.arrays import I32, I64, Array
from tertulia.corpus.report import ReadReport
from tertulia.corpus.tokens import TextOptions
from tertulia.corpus.vocabulary import Vocabulary
from tertulia.errors import FormatError, InputError

if TYPE_CHECKING:
    import polars as pl

ARRAYS = ("words", "documents", "sentences", "paragraphs")
FORMAT = 1
_T = TypeVar("_T")


class Fields(TypedDict):
    """What a corpus is made of."""

    words: I32
    documents: I64
    sentences: I32 | I64
    paragraphs: I32 | I64
    vocabulary: Vocabulary
    table: pl.DataFrame
    options: TextOptions
    report: ReadReport


def begin(directory: Path) -> None:
    """Make the directory ready for a new corpus; one that was there counts as unfinished from now on."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "corpus.json").unlink(missing_ok=True)


def write_arrays(directory: Path, arrays: Mapping[str, Array]) -> None:
    """Write the flat arrays."""
    begin(directory)
    for name, array in arrays.items():
        with replacing(directory / f"{name}.npy") as part, part.open("wb") as file:
            np.save(file, array)


def write_rest(
    directory: Path, vocabulary: Vocabulary, table: pl.DataFrame, options: TextOptions, report: ReadReport
) -> None:
    """Write everything but the arrays, the mark of completeness last."""
    about = {"format": FORMAT, "options": options.to_dict(), "report": report.to_dict()}
    with replacing(directory / "table.parquet") as part:
        table.write_parquet(part)
    with replacing(directory / "vocabulary.json") as part:
        part.write_text(json.dumps(vocabulary.words, ensure_ascii=False), encoding="utf-8")
    with replacing(directory / "corpus.json") as part:
        part.write_text(json.dumps(about, ensure_ascii=False, indent=1), encoding="utf-8")


def read(directory: Path, mmap: bool) -> Fields:
    """Read what `write_arrays` and `write_rest` wrote."""
    import polars as pl

    about = _about(directory)
    words, documents, sentences, paragraphs = (
        _load(directory / f"{name}.npy", lambda path: load_array(path, mmap)) for name in ARRAYS
    )
    return Fields(
        words=words,
        documents=documents,
        sentences=sentences,
        paragraphs=paragraphs,
        vocabulary=Vocabulary(tuple(_load(directory / "vocabulary.json", _json))),
        table=_load(directory / "table.parquet", pl.read_parquet),
        options=TextOptions.from_dict(about["options"]),
        report=ReadReport.from_dict(about["report"]),
    )


def load_array(path: Path, mmap: bool = True) -> Array:
    """Load or map one array.

    Mapped copy-on-write rather than read-only: the file is just as safe, and numba then sees the type of an ordinary
    array instead of compiling every kernel a second time for read-only ones.
    """
    array: Array = np.load(path, mmap_mode="c" if mmap else None, allow_pickle=False)
    return np.asarray(array)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Write to a neighbour and rename: whoever has the old file mapped keeps it whole."""
    part = path.with_name(path.name + ".part")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _about(directory: Path) -> dict[str, Any]:
    mark = directory / "corpus.json"
    if not mark.exists():
        raise InputError(f"{directory} holds no finished corpus (no corpus.json): read or save the corpus again")
    about: dict[str, Any] = _load(mark, _json)
    if about.get("format") != FORMAT:
        raise FormatError(
            f"{directory} holds a corpus of format {about.get('format')}, this version reads {FORMAT}: "
            "update tertulia, or read the texts again"
        )
    return about


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _load(path: Path, load: Callable[[Path], _T]) -> _T:
    from polars.exceptions import PolarsError

    try:
        return load(path)
    except (OSError, ValueError, EOFError, PolarsError) as error:
        raise FormatError(f"{path} is missing or damaged: read or save the corpus again") from error
