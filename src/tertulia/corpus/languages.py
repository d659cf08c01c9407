"""The language of a text, by its stop words; of scripts that one language uses, by the script.

A stop word of several languages counts for each of them by its share: `de` says little, `nicht` says German. On short
texts (under ten words) and on lists there is no answer, rather than a wrong one.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cache

from tertulia.corpus.stopwords import stop_list

NAMES = {
    "ar": "Arabic", "bg": "Bulgarian", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek",
    "en": "English", "es": "Spanish", "fi": "Finnish", "fr": "French", "hu": "Hungarian", "it": "Italian",
    "ja": "Japanese", "ko": "Korean", "nl": "Dutch", "no": "Norwegian", "pl": "Polish", "pt": "Portuguese",
    "ro": "Romanian", "ru": "Russian", "sv": "Swedish", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian",
    "zh": "Chinese",
}  # fmt: skip
_SCRIPTS = {  # in this order: Japanese uses Chinese characters, too
    "ja": re.compile("[\u3040-\u30ff]"),
    "ko": re.compile("[\uac00-\ud7af]"),
    "th": re.compile("[\u0e00-\u0e7f]"),
    "zh": re.compile("[\u3400-\u4dbf\u4e00-\u9fff]"),
}
_LEAST = {"ja": 0.1, "ko": 0.3, "th": 0.3, "zh": 0.3}  # share of the characters of a text
_WORD = re.compile(r"[^\W\d_]+")
_MOST_CHARACTERS = 1_000
_FEWEST_WORDS = 10
_SHARE = 0.08  # of the words must be stop words of the language, each counted by its share
_AHEAD = 1.2  # times the score of the next language
_NONE = (0.0, "")
_SCATTER = 2654435761  # a multiplicative hash
_EACH = 16  # documents of the sample for each distance
_FEWEST = 4  # different stop words; tables repeat a few abbreviations


def detect(text: str) -> str | None:
    """Return the ISO 639-1 code of a text's language, one of `NAMES`; None if it cannot be said.

    >>> detect("The rain fell at night, and the rivers rose, but the bridges held.")
    'en'
    """
    text = text[:_MOST_CHARACTERS].lower()
    written = sum(map(str.isalpha, text)) or 1
    if not text.isascii():
        for language, script in _SCRIPTS.items():
            if len(script.findall(text)) >= _LEAST[language] * written:
                return language
    words = _WORD.findall(text)
    if len(words) < _FEWEST_WORDS:
        return None
    scores, different = defaultdict[str, float](float), Counter[str]()
    for word, times in Counter(words).items():
        for language in (shared := _languages().get(word, ())):
            scores[language] += times / len(shared)
            different[language] += 1
    (best, first), (second, _) = sorted(
        [*((score, language) for language, score in scores.items()), _NONE, _NONE], reverse=True
    )[:2]
    clear = best >= _SHARE * len(words) and best >= _AHEAD * second and different[first] >= _FEWEST
    return first if clear else None


class LanguageSample:
    """The languages of documents, by a sample: one of 1, 2, 4, 8 ... documents, as they become more.

    >>> sample = LanguageSample()
    >>> for _ in range(20):
    ...     sample.look("The rain fell at night, and the rivers rose, but the bridges held.")
    >>> sample.shares
    {'en': 1.0}
    """

    def __init__(self) -> None:
        self._found: Counter[str] = Counter()
        self._seen = self._looked = 0
        self._stride = 1

    def look(self, text: str) -> None:
        """Look at a document if it is in the sample."""
        if self._seen * _SCATTER % 2**32 < 2**32 // self._stride:  # not each nth: documents may come in turns
            self._found[detect(text) or ""] += self._stride
            self._looked += 1
            if self._looked % _EACH == 0:
                self._stride *= 2
        self._seen += 1

    @property
    def shares(self) -> dict[str, float]:
        """The share of each language among documents whose language can be said, the most frequent first."""
        known = sum(times for language, times in self._found.items() if language)
        return {language: times / known for language, times in self._found.most_common() if language}


@cache
def _languages() -> Mapping[str, tuple[str, ...]]:
    """Map each stop word to its languages."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for language in NAMES.keys() - _SCRIPTS.keys():
        for word in {word.lower() for word in stop_list(language)}:
            found[word].append(language)
    return {word: tuple(languages) for word, languages in found.items()}
