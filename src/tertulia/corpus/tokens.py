"""Text to tokens: Unicode words, stop words in many languages, Chinese through jieba.

A word is a run of letters, marks and digits that begins with a letter (`naïve`, `mp3`, `नमस्ते`). Hyphens and
underscores separate words. An apostrophe between letters joins (`don't`, `п'ять`), but the English possessive falls off
(`Boston's`) and in languages that elide (`l'arbre`, `dell'arte`) it separates. Texts in scripts without spaces between
words come out right for Chinese; for others (Thai, Japanese) bring a tokeniser, or cut them into words first.

A tokeniser of one's own is a function from a sentence to its tokens, which are taken as they are. It is never stored
nor sent, only its name is: no party runs another's code. Where the function is not, documents come as lists of tokens.
"""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any
from unicodedata import normalize

from tertulia._kinds import check_fields
from tertulia.corpus.stopwords import stop_list
from tertulia.errors import FormatError, InputError

ELIDING = frozenset({"ca", "fr", "it"})  # an apostrophe ends a word of its own: l', qu', dell'
DOTLESS = frozenset({"az", "tr"})  # I is the capital of ı, İ that of i
MOST_NGRAMS = 5
JOINT = "_"  # of the words of an n-gram: no text is cut into a word that has it

Tokenizer = Callable[[str], Sequence[str]]


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
    ngrams: int = _option(
        1,
        "up to so many neighbouring words of a sentence are tokens, too: 2 gives `heart_attack` beside `heart` and "
        "`attack`. Not with noise for words: a word would be in several tokens",
    )
    tokenizer: str | Tokenizer = field(
        default="",
        metadata={
            "description": "the name of another way of cutting words, which all parties agree on. Documents then come "
            "as lists of tokens, or in Python with the function itself; the options above but `ngrams` do nothing"
        },
    )
    function: Tokenizer | None = field(default=None, compare=False, repr=False)  # the tokeniser, where it is at hand

    def __post_init__(self) -> None:
        if callable(self.tokenizer):
            object.__setattr__(self, "function", self.tokenizer)
            object.__setattr__(self, "tokenizer", _name_of(self.tokenizer))
        if not isinstance(self.stop_words, str):
            object.__setattr__(self, "stop_words", tuple(self.stop_words))  # JSON and TOML give lists
        elif self.stop_words not in ("language", "none"):
            raise InputError(
                f"stop_words = '{self.stop_words}' is not understood: write 'language', 'none' or a list of words"
            )
        if self.min_length < 1:
            raise InputError(f"min_length = {self.min_length} must be at least 1")
        if not 1 <= self.ngrams <= MOST_NGRAMS:
            raise InputError(f"ngrams = {self.ngrams} must be between 1, words alone, and {MOST_NGRAMS}")
        if self.stop_words == "language":
            stop_list(self.language)  # an unknown language is an error here, not at the first document

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; what earlier versions do not know is there only where it is used."""
        data = {name: getattr(self, name) for name in _names(type(self))}
        return {name: value for name, value in data.items() if _LATER.get(name) != value}

    def with_tokenizer(self, function: Tokenizer) -> TextOptions:
        """The same options, with the function that cuts texts, whose name they have."""
        return replace(self, function=function)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TextOptions:
        """Rebuild what `to_dict` gave, from JSON too."""
        if unknown := set(data) - set(_names(cls)):
            raise InputError(f"text options {', '.join(sorted(unknown))} are unknown to this version: update tertulia")
        given: dict[str, Any] = {
            n: tuple(v) if isinstance(v, list) else v for n, v in data.items()
        }  # JSON and TOML give lists
        try:
            check_fields(cls, given)
        except FormatError as error:
            raise InputError(f"text options: {error}") from None
        return cls(**given)


_LATER = {"ngrams": 1, "tokenizer": ""}  # options that came later, by what is usual


def _names(kind: type[TextOptions]) -> list[str]:
    """The options that can be stored."""
    return [option.name for option in fields(kind) if option.metadata]


def _name_of(function: Any) -> str:
    """Where a function comes from; one of the language's own types, such as `str.split`, has no module to name."""
    named = function if hasattr(function, "__qualname__") else type(function)
    module = getattr(named, "__module__", None) or "builtins"
    return f"{module}.{named.__qualname__}"


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
    ['naïve', 'banker', 'boats', 'state', 'art']
    """
    return splitter(options or TextOptions())(text)


def sentences(text: str, options: TextOptions | None = None) -> list[list[list[str]]]:
    r"""Cut a text into paragraphs of sentences of tokens; sentences and paragraphs without a token are left out.

    >>> sentences("Rain fell. Rivers rose.\n\nBridges held.")
    [[['rain', 'fell'], ['rivers', 'rose']], [['bridges', 'held']]]
    """
    from tertulia.corpus.segment import segment

    options = options or TextOptions()
    split, n = _own_splitter(options) if options.tokenizer else splitter(options), options.ngrams
    paragraphs = [[with_ngrams(words, n) for piece in pieces if (words := split(piece))] for pieces in segment(text)]
    return [paragraph for paragraph in paragraphs if paragraph]


def with_ngrams(words: list[str], n: int) -> list[str]:
    """Words, and behind each the n-grams of up to n words that it ends.

    >>> with_ngrams(["acute", "heart", "attack"], 2)
    ['acute', 'heart', 'acute_heart', 'attack', 'heart_attack']
    """
    if n == 1:
        return words
    ends = range(1, len(words) + 1)
    return [JOINT.join(words[end - length : end]) for end in ends for length in range(1, min(n, end) + 1)]


def _own_splitter(options: TextOptions) -> Callable[[str], list[str]]:
    """A user's own function; what it gives is checked, and nothing else is done to it."""
    function, name = options.function, options.tokenizer
    if function is None:
        raise InputError(
            f"texts are cut into tokens by '{name}', and that function is not here: give lists of tokens, or in Python "
            "the function, `TextOptions(tokenizer=...)`, for a model `model.with_tokenizer(...)`"
        )

    def split(text: str) -> list[str]:
        found = list(function(text))
        if not all(isinstance(token, str) and token for token in found):
            raise InputError(f"the tokeniser '{name}' must give a list of words, none of them empty, for each sentence")
        return found

    return split


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
