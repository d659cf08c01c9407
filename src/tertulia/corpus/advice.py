"""Warnings about documents, before anyone trains on them: another language than was said, and copies.

They cost little: the language is looked at in a sample, and copies are found by one pass over the words.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from tertulia._arrays import F64, I64

if TYPE_CHECKING:
    from tertulia.corpus.corpus import Corpus

_PIECES, _PIECE = 20, 10_000  # of tokens, from all over
_FEW_TOKENS = 500  # in fewer, chance says more than the language
_STOPPED = 0.2  # share of stop words of a language that nobody named; other languages than a text's own reach 0.09
_SOME = 10  # different stop words: a few may mean something in the other language ("sun" is one in Hausa)
_UNCUT = 0.3  # share of tokens in a script without spaces
_LONG = 4  # letters; in Chinese, words that were cut have two on average
_FEW_DOCUMENTS = 1_000  # among fewer, people see copies themselves
_SHORT = 10  # tokens; shorter documents may well be equal by chance
_COPIES = 0.1  # share of documents
_BLOCK = 1 << 22  # tokens looked at in one go
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_OTHER = re.compile("[\u3040-\u30ff\u0e00-\u0eff\u1780-\u17ff\u1000-\u109f]")  # kana, Thai, Lao, Khmer, Burmese
_NAMES = {
    "ar": "Arabic", "bg": "Bulgarian", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek",
    "en": "English", "es": "Spanish", "fi": "Finnish", "fr": "French", "hu": "Hungarian", "it": "Italian",
    "nl": "Dutch", "no": "Norwegian", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian",
    "sv": "Swedish", "tr": "Turkish", "uk": "Ukrainian",
}  # fmt: skip


class LanguageWarning(UserWarning):
    """Texts are in another language than their options say."""


class CopiesWarning(UserWarning):
    """Many documents are copies of others."""


def warn_of_language(corpus: Corpus) -> None:
    """Say so where many words are stop words of another language, or were never cut into words."""
    if corpus.n_tokens < _FEW_TOKENS:
        return
    starts = np.linspace(0, max(0, corpus.n_tokens - _PIECE), _PIECES).astype(np.int64)
    sample = np.concatenate([corpus.words[start : start + _PIECE] for start in starts])
    counts = np.bincount(sample, minlength=len(corpus.vocabulary))
    shares = counts / counts.sum()
    text = _uncut_or_none(corpus, shares) or _stop_words_or_none(corpus, shares)
    if text is not None:
        warnings.warn(text, LanguageWarning, stacklevel=2)


def _uncut_or_none(corpus: Corpus, shares: F64) -> str | None:
    """Of scripts without spaces, if nobody has cut them."""
    likely = np.argsort(-shares, kind="stable")[:2_000]
    words = [(corpus.vocabulary.words[v], float(shares[v])) for v in likely]
    for script, remedy in (
        (_OTHER, "cut them into words first, and give lists of words"),
        (_HAN, "language = 'zh'? (pip install 'tertulia[zh]')"),
    ):
        found = [(word, share) for word, share in words if script.search(word)]
        whole = sum(share for _, share in found)
        if whole == 0 or (script is _HAN and corpus.options.language == "zh"):
            continue
        long = sum(len(word) * share for word, share in found) / whole
        if whole / sum(share for _, share in words) >= _UNCUT and long > _LONG:
            return f"{whole:.0%} of tokens are runs of text in a script without spaces between words: {remedy}"
    return None


def _stop_words_or_none(corpus: Corpus, shares: F64) -> str | None:
    if corpus.options.stop_words != "language":  # who says which words to leave out has looked at them
        return None
    index, own = corpus.vocabulary.index, corpus.options.language
    best, language = 0.0, own
    for other, words in _stop_lists().items():
        found = [index[word] for word in words if word in index]
        share = float(shares[found].sum()) if other != own and np.count_nonzero(shares[found]) >= _SOME else 0.0
        if share > best:
            best, language = share, other
    if best < _STOPPED:
        return None
    return f"{best:.0%} of tokens are {_NAMES.get(language, language)} stop words: language = '{language}'?"


@cache
def _stop_lists() -> Mapping[str, frozenset[str]]:
    """The stop words of every language, in lower case; English ones are ours."""
    import stopwordsiso

    from tertulia.corpus.stopwords import stop_list

    return {lang: frozenset(word.lower() for word in stop_list(lang)) for lang in sorted(stopwordsiso.langs())}


def warn_of_copies(corpus: Corpus) -> None:
    """Say so where many documents have the same words as another one."""
    long = np.flatnonzero(corpus.lengths >= _SHORT)
    if len(long) < _FEW_DOCUMENTS:
        return
    copies = 1.0 - len(np.unique(_sums(corpus)[long])) / len(long)
    if copies >= _COPIES:
        warnings.warn(
            f"{copies:.0%} of documents have exactly the words of another one, and count twice: leave copies out "
            "(with a data frame, unique() or drop_duplicates()), unless they are meant",
            CopiesWarning,
            stacklevel=2,
        )


def _sums(corpus: Corpus) -> I64:
    """A number for each document, the same for the same words: each word has one at random, and they add up."""
    random = np.random.default_rng(0).integers(-(2**62), 2**62, len(corpus.vocabulary))
    sums, first = np.zeros(corpus.n_documents, np.int64), 0
    while first < corpus.n_documents:
        last = int(np.searchsorted(corpus.documents, corpus.documents[first] + _BLOCK, side="right")) - 1
        last = min(max(last, first + 1), corpus.n_documents)
        start, end = corpus.documents[first], corpus.documents[last]
        before = np.zeros(end - start + 1, np.int64)
        np.cumsum(random[corpus.words[start:end]], out=before[1:])  # wraps around, which does no harm
        sums[first:last] = np.diff(before[corpus.documents[first : last + 1] - start])
        first = last
    return sums
