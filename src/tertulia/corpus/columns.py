"""Growing columns: flat numbers that pile up in memory or in a .npy file, and the table of documents."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from tertulia._arrays import Array
from tertulia.corpus.offsets import narrow
from tertulia.corpus.storage import load_array

if TYPE_CHECKING:
    import polars as pl

_BLOCK = 1 << 20  # numbers or rows handled in one go


class Column:
    """Numbers that only grow, in memory."""

    def __init__(self, typecode: str) -> None:
        self.buffer = array(typecode)

    def flush(self) -> None:
        """Move the buffer to where it stays."""

    def finish(self, offsets: bool = False) -> Array:
        """Return the whole column; offsets take 4 bytes each while they fit."""
        whole: Array = np.frombuffer(self.buffer, self.buffer.typecode)
        return narrow(whole) if offsets else whole

    def close(self) -> None:
        """Let go of whatever is held open."""


class FileColumn(Column):
    """Numbers that only grow, in a .npy file that appears under its name when it is finished."""

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
        """Write the buffer out and empty it."""
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
        self.part.unlink()
        return small.finish()

    def close(self) -> None:
        """Close the file; what was not finished goes."""
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
        self._frames.append(pl.DataFrame(self._rows, schema=schema, orient="row"))  # a tenth of the Python objects
        self._rows.clear()

    def finish(self) -> pl.DataFrame:
        """Return the whole table, without columns that hold nothing."""
        import polars as pl

        self._flush()
        table = pl.concat(self._frames)
        filled = [name for name in ("label", "date", "user") if table[name].null_count() < table.height]
        return table.select("id", *filled)
