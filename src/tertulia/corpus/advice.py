"""Warnings about documents before training: another language than the options say, copies, documents without words.

They are cheap: the language is guessed from a sample, and copies are found in one pass over the words.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from tertulia._arrays import F64, I64
from tertulia.corpus.languages import NAMES

if TYPE_CHECKING:
    from tertulia.corpus.corpus import Corpus

_PIECES, _PIECE = 20, 10_000  # pieces of the sample, and tokens of each
_FEW_TOKENS = 500  # below this, shares of words are too random
_FEW_UNCUT = 20  # the same of text that is not cut: a sentence is one token or two
_STOPPED = 0.2  # share of stop words of another language; wrong languages reach 0.09
_SOME = 10  # different stop words; single ones may be words of another language ("sun" is a stop word in Hausa)
_UNCUT = 0.3  # share of tokens in a script without spaces that gives a warning
_LONG = 4  # letters; segmented words of Chinese have two on average
_FEW_DOCUMENTS = 1_000  # below this, people notice copies themselves
_SHORT = 10  # tokens; shorter documents may be equal by chance
_COPIES = 0.1  # share of documents
_EMPTIED = 0.05  # share of documents
_BLOCK = 1 << 22  # tokens processed at a time
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_OTHER = re.compile("[\u3040-\u30ff\u0e00-\u0eff\u1780-\u17ff\u1000-\u109f]")  # kana, Thai, Lao, Khmer, Burmese


class LanguageWarning(UserWarning):
    """A warning that texts are in another language than their options say."""


class CopiesWarning(UserWarning):
    """A warning that many documents are copies of others."""


class WordlessWarning(UserWarning):
    """A warning that many documents hold no word that is modelled."""


def warn_of_language(corpus: Corpus) -> None:
    """Warn if many tokens are stop words of another language, or text that was not cut into words."""
    if corpus.n_tokens < _FEW_UNCUT:
        return
    starts = np.linspace(0, max(0, corpus.n_tokens - _PIECE), _PIECES).astype(np.int64)
    sample = np.concatenate([corpus.words[start : start + _PIECE] for start in starts])
    counts = np.bincount(sample, minlength=len(corpus.vocabulary))
    shares = counts / counts.sum()
    text = _uncut_or_none(corpus, shares)
    if text is None and corpus.n_tokens >= _FEW_TOKENS:
        text = _stop_words_or_none(corpus, shares)
    if text is not None:
        warnings.warn(text, LanguageWarning, stacklevel=2)


def _uncut_or_none(corpus: Corpus, shares: F64) -> str | None:
    """Word a warning about text in a script without spaces that was not cut into words."""
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
    if corpus.options.stop_words != "language":  # a user who chose the stop words has looked at the texts
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
    return f"{best:.0%} of tokens are {NAMES.get(language, language)} stop words: language = '{language}'?"


@cache
def _stop_lists() -> Mapping[str, frozenset[str]]:
    """Load the stop words of every language, in lower case; the English list is our own."""
    import stopwordsiso

    from tertulia.corpus.stopwords import stop_list

    return {lang: frozenset(word.lower() for word in stop_list(lang)) for lang in sorted(stopwordsiso.langs())}


def warn_of_other_languages(corpora: Mapping[str, Corpus]) -> None:
    """Warn of parties whose documents are mostly in another language than those of the other parties."""
    found = {party: next(iter(corpus.report.languages), "") for party, corpus in corpora.items()}
    known = Counter(language for language in found.values() if language)
    if len(known) < 2:
        return
    usual = known.most_common(1)[0][0]
    for party, language in found.items():
        if language not in ("", usual):
            warnings.warn(
                f"the documents of party '{party}' are mostly {NAMES[language]}, those of others {NAMES[usual]}: they "
                "share topics only through common words. Leave it out, or translate its documents",
                LanguageWarning,
                stacklevel=2,
            )


def count_copies(corpus: Corpus) -> int:
    """Count the documents with the same words as an earlier one, but for short ones, which may be equal by chance."""
    long = np.flatnonzero(corpus.lengths >= _SHORT)
    return len(long) - len(np.unique(_sums(corpus)[long])) if len(long) else 0


def warn_of_copies(corpus: Corpus) -> None:
    """Warn if many documents have the same words as another one."""
    long = int((corpus.lengths >= _SHORT).sum())
    if long < _FEW_DOCUMENTS:
        return
    copies = count_copies(corpus) / long
    if copies >= _COPIES:
        warnings.warn(
            f"{copies:.0%} of documents have exactly the words of another one, and count twice: leave copies out "
            "(with a data frame, unique() or drop_duplicates()), unless they are meant",
            CopiesWarning,
            stacklevel=2,
        )


def _sums(corpus: Corpus) -> I64:
    """Hash each document's words to a number that ignores their order: the sum of one random number per word."""
    random = np.random.default_rng(0).integers(-(2**62), 2**62, len(corpus.vocabulary))
    sums, first = np.zeros(corpus.n_documents, np.int64), 0
    while first < corpus.n_documents:
        last = int(np.searchsorted(corpus.documents, corpus.documents[first] + _BLOCK, side="right")) - 1
        last = min(max(last, first + 1), corpus.n_documents)
        start, end = corpus.documents[first], corpus.documents[last]
        before = np.zeros(end - start + 1, np.int64)
        np.cumsum(random[corpus.words[start:end]], out=before[1:])  # overflow wraps around, which is harmless
        sums[first:last] = np.diff(before[corpus.documents[first : last + 1] - start])
        first = last
    return sums


def emptied_or_none(corpus: Corpus, kept: Corpus) -> str | None:
    """Word a warning for a party if the agreed vocabulary empties more than a twentieth of its documents."""
    text = _emptied_or_none(corpus, kept)
    limits = "the limits min_documents, max_share and max_words of the vocabulary, or its list, leave out all of theirs"
    return None if text is None else f"{text}: {limits}"


def _emptied_or_none(corpus: Corpus, kept: Corpus) -> str | None:
    n, D = int(((kept.lengths == 0) & (corpus.lengths > 0)).sum()), corpus.n_documents
    return f"{n:,} of {D:,} documents hold no word that is modelled (`vocabulary`)" if n > _EMPTIED * D else None


def warn_of_wordless(corpus: Corpus, kept: Corpus, min_documents: int, max_share: float) -> None:
    """Warn which limit leaves many documents without a word; `kept` has the same documents after the limits."""
    text = _emptied_or_none(corpus, kept)
    if text is None:
        return
    found = corpus.document_frequency()[corpus.select((kept.lengths == 0) & (corpus.lengths > 0)).words]
    common, rare = found > max(1.0, max_share * corpus.n_documents), found < min_documents
    if common.mean() > 0.5:
        why = (
            f"most of their words are in more than max_share = {max_share:g} of all documents: raise it, or drop copies"
        )
    elif rare.mean() > 0.5:
        why = f"most of their words are in fewer than min_documents = {min_documents}: lower it"
    elif (common | rare).mean() > 0.5:
        why = f"min_documents = {min_documents} and max_share = {max_share:g} leave out their words: give other limits"
    else:
        why = "their words are not on the word list, or beyond `max_words`: allow more"
    warnings.warn(f"{text}: {why}", WordlessWarning, stacklevel=2)
