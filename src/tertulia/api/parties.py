"""The documents of each party, from the forms in which users give them: a mapping, or one table with a column."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from os import PathLike
from typing import Any

from tertulia.corpus import Corpus
from tertulia.corpus.inputs import Documents, cells, columns_or_none, materialise, string_or_none, table_of_rows
from tertulia.errors import InputError

_MANY = 1_000  # parties; a column of ids or texts has more values
_HINT = "give a mapping from names to documents, {'north': texts, 'south': more_texts}, or a table with party='column'"


def parties_of(given: Any, party: str | None) -> Mapping[str, Documents]:
    """Return the documents of each party; `party` names the column of a table that says whose a row is.

    >>> parties_of([{"text": "Rain fell.", "who": "north"}, {"text": "Rivers rose.", "who": "south"}], "who")
    {'north': {'text': ['Rain fell.']}, 'south': {'text': ['Rivers rose.']}}
    """
    if party is not None:
        return _split(materialise(given), party)
    if isinstance(given, Mapping):
        if not given:
            raise InputError(f"there are no parties: {_HINT}")
        return given
    raise InputError(f"`fit` trains several parties, and {_described(given)}. `tt.LDA` trains on one party's documents")


def _described(given: Any) -> str:
    """Describe documents that are not of several parties, and say what to write."""
    if isinstance(given, str | PathLike):
        name = os.fspath(given)
        return f"this is one path: read each party's file, {{'north': tt.read('{name}'), 'south': ...}}"
    if given is None:
        return f"there are no documents: {_HINT}"
    if isinstance(given, Corpus):
        return "this is one corpus: give one for each party, {'north': corpus, 'south': another}"
    if columns_or_none(given) is not None:
        return "this is one table: name the column that says whose a row is, fit(table, party='column')"
    if isinstance(given, list | tuple | Iterator):
        return "this is one list: give one for each party, {'north': texts, 'south': more_texts}"
    return f"the documents are of type {type(given).__name__}: {_HINT}"


def _split(documents: Documents, party: str) -> dict[str, Documents]:
    """Split a table, dicts or a corpus by a column."""
    if isinstance(documents, Corpus):
        owners = _owners(documents.table.to_dict(as_series=False), party)
        return {name: documents.select(places) for name, places in owners.items()}
    table = documents if columns_or_none(documents) is not None else table_of_rows(documents)
    if table is None:
        raise InputError(f"party = '{party}' names a column, and these documents are no table: {_HINT}")
    columns = {name: cells(table[name]) for name in columns_or_none(table) or ()}
    owners = _owners(columns, party)
    kept = [name for name in columns if name != party]
    return {
        owner: {name: [columns[name][place] for place in places] for name in kept} for owner, places in owners.items()
    }


def _owners(columns: Mapping[Any, list[Any]], party: str) -> dict[str, list[int]]:
    """Return the places of each party's rows, parties in the order of their names."""
    if party not in columns:
        raise InputError(f"party = '{party}': there is no such column, only {list(columns)}")
    names = [string_or_none(value) for value in columns[party]]
    if missing := sum(name is None or not name.strip() for name in names):
        raise InputError(f"{missing} of {len(names)} rows have no party in '{party}': fill them in, or leave them out")
    found: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        found.setdefault(str(name), []).append(place)
    if len(found) > _MANY:
        raise InputError(f"'{party}' names {len(found):,} parties, more than {_MANY:,}: is it the right column?")
    return {name: found[name] for name in sorted(found)}
