"""A table of topic prevalence moves by more than it claims when a user has several documents."""

import dataclasses
import itertools
import math

import numpy as np
import polars as pl
import pytest

from helpers.compared import K, model, texts
from tertulia.applications import compare
from tertulia.corpus import Corpus
from tertulia.methods.prevalence.method import tabulate, users_or_none
from tertulia.privacy.ledger import Ledger
from tertulia.privacy.mechanisms import Adjacency, Unit
from tertulia.privacy.mechanisms.noisy_tables import STEP
from tertulia.runs.directory import Run

OWNERS = ["ann", "ben", "ann", "cleo", "ann", "ben"]
TOPICS = [0, 1, 2, 3, 4, 2]
PERIODS = np.array([0, 0, 1, 1, 0, 1])


@pytest.fixture(scope="module")
def shared():
    return model()


def table_of(shared, chosen, rows=2):
    """What leaves, before its noise, of these documents."""
    corpus = Corpus.from_texts([texts([TOPICS[i]], 1, seed=i)[0] for i in chosen], options=shared.options)
    users = np.array([sorted(set(OWNERS)).index(OWNERS[i]) for i in chosen])
    encoded = corpus.encode(shared.vocabulary)
    return tabulate(shared, encoded, PERIODS[list(chosen)], rows, users=users)[0] * STEP


def distance(one, other):
    return np.linalg.norm(one - other)


def test_a_user_moves_the_table_by_no_more_than_one(shared):
    """All neighbours by enumeration: each set of documents, with all of a user's or none of them."""
    for user in set(OWNERS):
        mine = [i for i, owner in enumerate(OWNERS) if owner == user]
        others = [i for i in range(len(OWNERS)) if i not in mine]
        for size in range(1, len(mine) + 1):
            for part in itertools.combinations(mine, size):
                moved = distance(table_of(shared, [*others, *part]), table_of(shared, others))
                assert moved <= 1.0
    several = table_of(shared, [0, 2, 4])
    assert several.sum() == pytest.approx(1.0, abs=1e-4)  # three documents count as one


def test_a_user_who_becomes_another_moves_it_by_root_two_at_most(shared):
    rest = [1, 5]
    for mine, instead in itertools.permutations([(0,), (2,), (4,), (0, 2), (0, 2, 4)], 2):
        assert distance(table_of(shared, [*rest, *mine]), table_of(shared, [*rest, *instead])) <= math.sqrt(2)


def test_so_does_a_single_document(shared):
    whole = list(range(len(OWNERS)))
    for gone in whole:
        assert distance(table_of(shared, whole), table_of(shared, [i for i in whole if i != gone])) <= 1.0


def test_users_of_every_document_are_needed():
    table = Corpus.from_texts(["a b", "c d"])
    assert users_or_none(table) is None
    for users, expected in ((["x", "x"], [0, 0]), (["y", "x"], [1, 0]), (["x", None], None), (["x", " "], None)):
        named = table.table.with_columns(pl.Series("user", users))
        found = users_or_none(dataclasses.replace(table, table=named))
        assert (found is None) if expected is None else found.tolist() == expected


@pytest.mark.parametrize("named", [True, False])
def test_the_ledger_says_what_a_user_has_spent(named, tmp_path):
    """Where users are known, a user costs as a document does; else nothing is promised."""
    own = {"text": texts([0, 1, 2], 12), "user": ["ann", "ben", "cleo"] * 4}
    documents = pl.DataFrame(own if named else {"text": own["text"]})
    compare.parties(model(), {"a": documents, "b": documents}, directory=tmp_path / "run", epsilon=1.0)
    ledger = Ledger(Run.open(tmp_path / "run").party_directory("a") / "ledger.sqlite")
    assert ledger.cost(Unit.DOCUMENT, Adjacency.ADD_REMOVE, 1e-6).epsilon == pytest.approx(1.0, rel=1e-3)
    user = ledger.cost(Unit.USER, Adjacency.ADD_REMOVE, 1e-6).epsilon
    assert user == (pytest.approx(1.0, rel=1e-3) if named else math.inf)


def test_without_noise_every_document_counts(shared):
    documents = pl.DataFrame({"text": texts([0, 1, 2], 12), "user": ["ann", "ben", "cleo"] * 4})
    found = compare.parties(shared, {"a": documents, "b": documents})
    assert found.released.sum(axis=(1, 2)) == pytest.approx([12, 12], abs=1e-3)
    assert found.released.shape[-1] == K
