"""Row 61: a document without id is known by a hash of its text, so its words decided whether it was held out."""

import pytest

from helpers.texts import STEMS, halves
from tertulia.corpus import Corpus
from tertulia.federation.party.document_limits import parts_of

TEXTS = halves(1, 30)
OTHERS = [" ".join([word, *TEXTS[-1].split()[1:]]) for word in STEMS]  # the first word of the last document


def places_of(texts, ids=None, **how):
    """Which documents are in which part."""
    corpus = Corpus.from_texts(texts, ids=ids)
    number = {name: i for i, name in enumerate(corpus.table["id"])}
    parts = parts_of(corpus, 0.2, 0.1, **how)
    return {part: tuple(number[name] for name in found.table["id"]) for part, found in parts.items()}


def test_where_noise_hides_words_no_word_decides_in_which_part_a_document_is():
    known = [places_of([*TEXTS[:-1], text], hides_words=True) for text in OTHERS]
    assert all(places == known[0] for places in known)
    assert 15 < len(known[0]["train"]) < len(TEXTS)


def test_without_noise_documents_of_equal_words_stay_together():
    assert len({str(places_of([*TEXTS[:-1], text])) for text in OTHERS}) > 1
    assert places_of(TEXTS) == places_of(TEXTS, hides_words=False)


@pytest.mark.parametrize("hides_words", [True, False])
def test_ids_decide_where_there_are_any_and_added_documents_move_no_other(hides_words):
    names = [f"note-{i}" for i in range(len(TEXTS))]
    assert places_of(TEXTS, names, hides_words=hides_words) == places_of(TEXTS, names)
    before, after = (places_of(texts, hides_words=hides_words) for texts in (TEXTS, [*TEXTS, "Letter garden."]))
    assert all(set(before[part]) <= set(after[part]) for part in before)
