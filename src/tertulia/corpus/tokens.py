"""Text to tokens: Unicode words, stop words in many languages, Chinese through jieba.

A word is a run of letters, marks and digits that begins with a letter (`naïve`, `mp3`, `नमस्ते`). Hyphens and
underscores separate words. An apostrophe between letters joins (`don't`, `п'ять`), but the English possessive falls off
(`Boston's`) and in languages that elide (`l'arbre`, `dell'arte`) it separates. Texts in scripts without spaces between
words come out right for Chinese; for others (Thai, Japanese) cut them into words first.
"""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from typing import Any
from unicodedata import normalize

from tertulia._kinds import check_fields
from tertulia.corpus.stopwords import stop_list
from tertulia.errors import FormatError, InputError

ELIDING = frozenset({"ca", "fr", "it"})  # an apostrophe ends a word of its own: l', qu', dell'
DOTLESS = frozenset({"az", "tr"})  # I is the capital of ı, İ that of i


def _option(default: Any, description: str) -> Any:
    return field(default=default, metadata={"description": description})


@dataclass(frozen=True)
class TextOptions:
    """How text becomes tokens. Every party must use the same, so they travel with the model."""

    language: str = _option("en", "an ISO 639-1 code: stop words of 58 languages; `zh` needs `tertulia[zh]`")
    lowercase: bool = _option(True, "whether words lose their capitals")
    min_length: int = _option(2, "shorter words are left out")
    numbers: bool = _option(False, "whether numbers are words, too")
    stop_words: str | tuple[str, ...] = _option("language", "`language`: those of the language; `none`; or a list")

    def __post_init__(self) -> None:
        if not isinstance(self.stop_words, str):
            object.__setattr__(self, "stop_words", tuple(self.stop_words))  # JSON and TOML give lists
        elif self.stop_words not in ("language", "none"):
            raise InputError(
                f"stop_words = '{self.stop_words}' is not understood: write 'language', 'none' or a list of words"
            )
        if self.min_length < 1:
            raise InputError(f"min_length = {self.min_length} must be at least 1")
        if self.stop_words == "language":
            stop_list(self.language)  # an unknown language is an error here, not at the first document

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TextOptions:
        """Rebuild what `to_dict` gave, from JSON too."""
        if unknown := set(data) - {field.name for field in fields(cls)}:
            raise InputError(f"text options {', '.join(sorted(unknown))} are unknown to this version: update tertulia")
        given: dict[str, Any] = {
            n: tuple(v) if isinstance(v, list) else v for n, v in data.items()
        }  # JSON and TOML give lists
        try:
            check_fields(cls, given)
        except FormatError as error:
            raise InputError(f"text options: {error}") from None
        return cls(**given)


def stop_words(options: TextOptions) -> frozenset[str]:
    """List the words that are left out, in lower case."""
    if options.stop_words == "none":
        return frozenset()
    words = options.stop_words if isinstance(options.stop_words, tuple) else stop_list(options.language)
    return frozenset(_fold(word, options.language, lowercase=True) for word in words)


@lru_cache(maxsize=32)
def splitter(options: TextOptions) -> Callable[[str], list[str]]:
    """Make the function that cuts a piece of text into tokens."""
    find = _chinese(options) if options.language == "zh" else _finder(options)
    unwanted, shortest = stop_words(options), options.min_length
    language, lowercase = options.language, options.lowercase

    def split(text: str) -> list[str]:
        found = find(_fold(text, language, lowercase))
        return [word for word in found if word not in unwanted and len(word) >= shortest]

    def split_cased(text: str) -> list[str]:  # "The" is as unwanted as "the"
        found = find(_fold(text, language, lowercase))
        return [word for word in found if word.lower() not in unwanted and len(word) >= shortest]

    return split if options.lowercase else split_cased


def tokenize(text: str, options: TextOptions | None = None) -> list[str]:
    """Cut a text into tokens, in order.

    >>> tokenize("The naïve banker's 3 boats aren't state-of-the-art.")
    ['naïve', 'banker', 'boats', 'art']
    """
    return splitter(options or TextOptions())(text)


def sentences(text: str, options: TextOptions | None = None) -> list[list[list[str]]]:
    r"""Cut a text into paragraphs of sentences of tokens; sentences and paragraphs without a token are left out.

    >>> sentences("Rain fell. Rivers rose.\n\nBridges held.")
    [[['rain', 'fell'], ['rivers', 'rose']], [['bridges', 'held']]]
    """
    from tertulia.corpus.segment import segment

    split = splitter(options or TextOptions())
    paragraphs = [[words for piece in pieces if (words := split(piece))] for pieces in segment(text)]
    return [paragraph for paragraph in paragraphs if paragraph]


def _fold(text: str, language: str, lowercase: bool) -> str:
    if not text.isascii():
        # One form for é typed in two ways and for the three apostrophes; soft hyphens are invisible.
        text = normalize("NFC", text).replace("’", "'").replace("ʼ", "'").replace("\u00ad", "")
    if lowercase and language in DOTLESS:
        text = text.replace("İ", "i").replace("I", "ı")
    return text.lower() if lowercase else text


def _finder(options: TextOptions) -> Callable[[str], list[str]]:
    """Find words with `regex`; where a piece is plain ASCII, with the same pattern in `re`, twice as fast."""
    import regex

    anywhere: Callable[[str], list[str]] = regex.compile(word_pattern(options)).findall
    in_ascii: Callable[[str], list[str]] = re.compile(_pattern(options, "a-zA-Z", "0-9", "")).findall

    def find(text: str) -> list[str]:
        return in_ascii(text) if text.isascii() else anywhere(text)

    return find


def word_pattern(options: TextOptions) -> str:
    """What a word is, its first group, in text that `_fold` has folded; browsers read the same pattern."""
    return _pattern(options, r"\p{L}", r"\p{N}", r"\p{M}\u200c\u200d")


def _pattern(options: TextOptions, letter: str, digit: str, joined: str) -> str:
    part, letter, digit = f"[{letter}{digit}{joined}]", f"[{letter}]", f"[{digit}]"
    possessive = f"[sS](?!{part})"
    # The look behind stands after the first letter, so that the search may leap from letter to letter.
    word = f"{letter}(?<!{part}{letter}){part}*"
    if options.language not in ELIDING:
        word += f"(?:'(?!{possessive}){letter}{part}*)*"
    if options.numbers:
        word += f"|{digit}(?<!{part}{digit}){digit}*(?:[.,]{digit}+)*{part}*"
    return f"({word})(?:'{possessive})?"  # findall returns the group alone: the possessive falls off


def _chinese(options: TextOptions) -> Callable[[str], list[str]]:
    import regex

    cut = _jieba().lcut
    wanted = regex.compile(r"[\p{L}\p{N}]+" if options.numbers else r"\p{L}[\p{L}\p{N}]*").fullmatch

    def find(text: str) -> list[str]:
        return [word for word in cut(text) if wanted(word)]

    return find


def _jieba() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # jieba 0.42 has invalid escapes and imports pkg_resources
            jieba = importlib.import_module("jieba")
    except ModuleNotFoundError as error:
        raise InputError("language 'zh' needs jieba: pip install 'tertulia[zh]'") from error
    tokenizer = jieba.Tokenizer()
    jieba.setLogLevel("WARNING")
    return tokenizer
