"""Tables for users: polars' frames, which become pandas' without pyarrow, too."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import polars as pl


class Frame(pl.DataFrame):
    """A frame of polars. What polars makes of it by `filter`, `sort` and the like is polars' own again.

    >>> Frame({"topic": [0, 1], "weight": [0.7, 0.3]}).to_pandas().weight.sum()
    np.float64(1.0)
    """

    def to_pandas(self, **options: Any) -> Any:
        """Convert to pandas: by pyarrow where that is installed, as polars does it, and else column by column."""
        if options or find_spec("pyarrow") is not None:
            return super().to_pandas(**options)
        import pandas as pd

        plain = {column.name for column in self if column.dtype.is_numeric() or column.dtype.is_temporal()}
        return pd.DataFrame(
            {column.name: column.to_numpy() if column.name in plain else column.to_list() for column in self}
        )
