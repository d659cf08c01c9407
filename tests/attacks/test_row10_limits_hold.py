"""A policy declares how long documents are, a budget is reckoned with it, and documents are longer."""

import dataclasses

import numpy as np
import polars as pl
import pytest

from helpers.attacks_noise import STRICT, ask, corpus_of, measure_lengths, party, report
from tertulia.errors import PolicyRefusal
from tertulia.runs.one_machine import begin, open_party
from tertulia.runs.settings import RunSettings

TEXTS = ["ache burn cold dose fever ache", "burn burn. cold cold cold. dose dose", "fever", ""]
DOCUMENTS = '[[budget]]\nunit = "document"\nadjacency = "substitute"\nepsilon = 2.1\ndelta = 0.0\n'


def test_no_step_sees_more_of_a_document_than_the_policy_says(tmp_path):
    host = party(tmp_path / "north", corpus_of(TEXTS), policy=STRICT + "max_tokens_per_document = 2\n")
    assert ask(host, measure_lengths).reply.values.tolist() == [2, 2, 1, 0]
    train = host.parts["train"]
    assert [train.vocabulary.words[w] for w in train.words] == ["ache", "burn", "burn", "burn", "fever"]
    assert train.sentences[-1] == train.paragraphs[-1] == train.n_tokens == 5
    assert np.all(np.diff(train.sentences) > 0)
    assert set(train.documents) <= set(train.sentences.tolist())


def test_a_document_budget_is_kept_by_what_really_leaves(tmp_path):
    """Epsilon 1 a token, 2 tokens a document: 2 in all, within 2.1, and 2 tokens are all that is reported."""
    policy = STRICT + "max_tokens_per_document = 2\n" + DOCUMENTS
    answer = ask(party(tmp_path / "north", corpus_of(TEXTS), policy=policy), report)
    assert answer.kind == "ok", answer.text
    assert len(answer.reply.values) == 2 + 2 + 1


def test_texts_that_cannot_be_cut_are_refused(tmp_path):
    corpus = corpus_of(TEXTS)
    corpus = dataclasses.replace(corpus, table=corpus.table.with_columns(pl.Series("text", TEXTS)))
    host = party(tmp_path / "north", corpus, policy=STRICT + "max_tokens_per_document = 2\n")
    assert ask(host, measure_lengths).kind == "refused"


def test_a_users_documents_are_counted(tmp_path):
    policy = STRICT + "max_documents_per_user = 1\n"
    corpus = corpus_of(TEXTS)
    assert ask(party(tmp_path / "nobody", corpus, policy=policy), measure_lengths).kind == "refused"
    named = dataclasses.replace(corpus, table=corpus.table.with_columns(pl.Series("user", ["a", "b", "a", "a"])))
    host = party(tmp_path / "named", named, policy=policy)
    assert ask(host, measure_lengths).reply.values.tolist() == [6, 7]


@pytest.mark.parametrize(("user", "lengths"), [("patient", [3, 2]), (None, None), ("ward", None)])
def test_users_are_read_from_a_file_and_counted(user, lengths, tmp_path):
    """Two notes of Ann's and one of Ben's; wards are missing in one row, so they name nobody."""
    rows = ["Ann,east,ache burn cold", "Ann,east,dose fever", "Ben,,ache fever"]
    (tmp_path / "notes.csv").write_text("\n".join(["patient,ward,text", *rows]))
    (tmp_path / "policy.toml").write_text("max_documents_per_user = 1\n")
    own = {"path": str(tmp_path / "notes.csv"), "user": user, "policy": str(tmp_path / "policy.toml")}
    run = begin(RunSettings(directory=str(tmp_path / "run"), method={"name": "ftm"}, parties={"north": own}))
    host = open_party(run, "north")
    if lengths is None:
        missing = "3 of 3" if user is None else "1 of 3"
        with pytest.raises(PolicyRefusal, match=f"{missing} documents do not say whose .* name the column of users"):
            _ = host.parts
    else:
        assert sorted(host.corpus.table["user"]) == ["Ann", "Ann", "Ben"]
        assert sorted(length for part in host.parts.values() for length in part.lengths) == sorted(lengths)
