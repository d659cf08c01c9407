"""The data frame of all tables for users: a polars frame that converts to pandas without pyarrow."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import polars as pl


class Frame(pl.DataFrame):
    """A polars data frame. `filter`, `sort` and the like return a plain polars frame.

    >>> Frame({"topic": [0, 1], "weight": [0.7, 0.3]}).to_pandas().weight.sum()
    np.float64(1.0)
    """

    def to_pandas(self, **options: Any) -> Any:
        """Convert to pandas, by pyarrow if it is installed, otherwise column by column."""
        if options or find_spec("pyarrow") is not None:
            return super().to_pandas(**options)
        import pandas as pd

        plain = {column.name for column in self if column.dtype.is_numeric() or column.dtype.is_temporal()}
        return pd.DataFrame(
            {column.name: column.to_numpy() if column.name in plain else column.to_list() for column in self}
        )
