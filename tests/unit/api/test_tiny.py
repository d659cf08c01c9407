"""Corpora of a few documents, and limits of the vocabulary that empty documents."""

import random

import pytest

import tertulia as tt
from helpers.attacks_words import make_party
from tertulia.corpus import Vocabulary
from tertulia.corpus.advice import WordlessWarning
from tertulia.errors import InputError
from tertulia.methods.common.settings import VocabularySettings
from tertulia.methods.ftm import method as ftm

PETS = ["cats and dogs", "dogs bark", "cats purr"]


def texts(n, seed=1):
    words, draw = [f"{a}{b}" for a in ("rain", "wind", "snow", "hail") for b in "bcdfghjkl"], random.Random(seed)
    return [" ".join(draw.choices(words, k=12)) for _ in range(n)]


def test_three_documents_are_enough():
    assert tt.LDA(topics=2).fit(PETS).vocabulary.words == ("cats", "dogs", "bark", "purr")


def test_parties_of_a_few_documents_keep_their_words():
    model = tt.FTM(topics=2, rounds=1, sweeps=2, evaluate=False).fit(
        {"north": PETS, "south": ["dogs purr", "cats bark"]}, heldout=0, progress=False
    )
    assert set(model.vocabulary.words) == {"cats", "dogs", "bark", "purr"}


def test_limits_that_were_given_hold_among_few_documents_too():
    terms = VocabularySettings(min_documents=2)
    assert terms.limits(3) == (2, 1.0)
    assert terms.limits(3_000) == VocabularySettings().limits(3_000) == (2, 0.5)
    assert VocabularySettings(max_share=0.5).limits(9) == (1, 0.5)
    assert tt.LDA(topics=2, vocabulary={"min_documents": 2}).fit(PETS).vocabulary.words == ("cats", "dogs")


def test_limits_that_leave_no_word_are_named():
    with pytest.raises(
        InputError, match=r"of 4 words in 3 documents 2 are in fewer than min_documents = 2 and 2 in more"
    ):
        tt.LDA(topics=2, vocabulary={"min_documents": 2, "max_share": 0.5}).fit(PETS)
    with pytest.raises(InputError, match=r"40 are in fewer than min_documents = 2 .*'min_documents': 1"):
        tt.LDA(topics=2).fit([f"rain{i}x wind{i}x" for i in range(20)])


def test_a_few_more_documents_bring_no_rare_words_into_a_model():
    model = tt.LDA(topics=2, sweeps=2).fit(texts(40))
    assert "xylophone" not in model.partial_fit(["xylophone rainb"]).vocabulary.index


@pytest.mark.parametrize(
    ("documents", "terms", "limit"),
    [
        (["the press release of a quarter"] * 60 + texts(40), {}, "max_share = 0.5"),
        ([f"word{i}x" for i in range(20)] + texts(40), {}, "fewer than min_documents = 2"),
        (texts(40), {"max_words": 1}, "beyond `max_words`"),
    ],
)
def test_a_limit_that_empties_documents_is_named(documents, terms, limit):
    with pytest.warns(WordlessWarning, match=f"documents hold no word that is modelled .*{limit}"):
        tt.LDA(topics=2, sweeps=2, vocabulary=terms).fit(documents)


def test_a_few_emptied_documents_are_no_reason_to_warn():
    tt.LDA(topics=2, sweeps=2).fit([*texts(40), "lonely"])


def test_a_party_reads_in_its_own_log_that_documents_were_emptied(tmp_path):
    host = make_party(tmp_path, ["press release"] * 6 + texts(4), ftm, owners="several")
    for _ in range(2):
        host.documents(Vocabulary(("rainb", "windc")), "train")
    log = (tmp_path / "party.log").read_text()
    assert log.count("10 documents hold no word that is modelled") == 1
    assert "max_share" in log
