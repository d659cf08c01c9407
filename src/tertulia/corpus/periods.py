"""Months, quarters and years of dates. All parties must use the same periods, so they are a setting."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from tertulia._arrays import I64
from tertulia.errors import ConfigError

By = Literal["month", "quarter", "year"]
_DATE = re.compile(r"(\d{4})(?:-(\d{2}))?(?:-\d{2}.*)?")
_PER_YEAR = {"month": 12, "quarter": 4, "year": 1}
_READABLE = dict.fromkeys(("month", "quarter"), r"^(\d{4}-(?:0[1-9]|1[0-2]))") | {"year": r"^(\d{4})"}
_MOST = 1200


@dataclass(frozen=True)
class Periods:
    """Consecutive periods, numbered from the year 0 on.

    >>> Periods.between("quarter", "2025-10", "2026-05").labels
    ('2025-Q4', '2026-Q1', '2026-Q2')
    """

    by: By
    first: int
    count: int

    @classmethod
    def between(cls, by: By, since: str, until: str) -> Periods:
        """Make the periods from one date to another."""
        first, last = (_number(by, key, date) for key, date in (("since", since), ("until", until)))
        return cls(by, first, last - first + 1)

    @classmethod
    def covering(cls, by: By, dates: pl.Series) -> Periods | None:
        """Make the periods from the first to the last readable date; None if no date is readable."""
        if by not in _PER_YEAR:
            raise ConfigError(f"by = '{by}': write {', '.join(_PER_YEAR)}")
        readable = dates.cast(pl.String).str.extract(_READABLE[by]).drop_nulls().sort()
        return cls.between(by, readable[0], readable[-1]) if len(readable) else None

    def __post_init__(self) -> None:
        if self.by not in _PER_YEAR or not 1 <= self.count <= _MOST:
            raise ConfigError(f"{self.count} periods by '{self.by}': `until` must follow `since`, by {_MOST} at most")

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the periods."""
        numbers = range(self.first, self.first + self.count)
        if self.by == "year":
            return tuple(f"{n:04d}" for n in numbers)
        if self.by == "quarter":
            return tuple(f"{n // 4:04d}-Q{n % 4 + 1}" for n in numbers)
        return tuple(f"{n // 12:04d}-{n % 12 + 1:02d}" for n in numbers)

    def places(self, dates: pl.Series) -> I64:
        """Find the period of each date, from 0; -1 for a date that is unreadable or outside all periods."""
        parts = dates.str.extract_groups(r"^(?<year>\d{4})(?:-(?<month>\d{2}))?").struct.unnest()
        month = pl.lit("01") if self.by == "year" else pl.col("month")
        number = _of(self.by, pl.col("year").cast(pl.Int64), month.cast(pl.Int64)) - self.first
        known = number.is_between(0, self.count - 1) & month.cast(pl.Int64).is_between(1, 12)
        places = parts.select(pl.when(known).then(number).otherwise(-1).alias("place"))
        found: I64 = places["place"].to_numpy().astype("int64")
        return found


def _number(by: By, key: str, date: str) -> int:
    parts = _DATE.fullmatch(date)
    if parts is None or not 1 <= int(parts[2] or 1) <= 12 or (parts[2] is None and by != "year"):
        raise ConfigError(f"{key} = '{date}': write a date such as '2026-05' or '2026-05-31'")
    return int(_of(by, int(parts[1]), int(parts[2] or 1)))


def _of(by: By, year: Any, month: Any) -> Any:
    """Compute the number of a period, from integers or from columns of them."""
    per_year = _PER_YEAR[by]
    return year * per_year + (month - 1) * per_year // 12
