"""Text to paragraphs, sentences and tokens: Unicode words, stop words in many languages, Chinese through jieba.

A word is a run of letters, marks and digits that begins with a letter (`naïve`, `mp3`, `नमस्ते`). Hyphens and
underscores separate words. An apostrophe between letters joins (`don't`, `п'ять`). But the English possessive is cut
off (`Boston's`), and in languages with elision (`l'arbre`, `dell'arte`) the apostrophe separates. Of scripts without
spaces between words only Chinese is supported; for others (Thai, Japanese) give a tokeniser, or lists of words.

A user's own tokeniser is a function from a sentence to its tokens, which are not changed. Only its name is stored and
sent, never the function: no party runs another's code. Without the function, documents must be lists of tokens.

Paragraphs and sentences end by a few rules that hold for most scripts:

- A blank line ends a paragraph (and with it the sentence); a single line break ends nothing.
- The full stops of scripts that need no space after them (`。` `！` `？` `।` `؟` and others) always end a sentence.
- `.` `!` `?` `…` end one if white space follows (after closing quotes) and then anything but a lower-case letter:
  decimals, file names and `Yahoo! is` stay whole.
- `.` does not end one after a single letter (initials, `e.g.`, `z. B.`) or a usual abbreviation.
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
from tertulia.corpus.vocabulary import JOINT, UNKNOWN
from tertulia.errors import FormatError, InputError

ELIDING = frozenset({"ca", "fr", "it"})  # an apostrophe ends a word of its own: l', qu', dell'
DOTLESS = frozenset({"az", "tr"})  # I is the capital of ı, İ that of i
MOST_NGRAMS = 5
SHORTEST = 2  # letters; the package's own rule removes shorter words

Tokenizer = Callable[[str], Sequence[str]]


def _option(default: Any, description: str) -> Any:
    return field(default=default, metadata={"description": description})


@dataclass(frozen=True)
class TextOptions:
    """Options of tokenisation. All parties must use the same, so they are stored with the model."""

    language: str = _option("en", "an ISO 639-1 code: stop words of 58 languages; `zh` needs `tertulia[zh]`")
    lowercase: bool = _option(True, "whether words lose their capitals")
    min_length: int = _option(2, "shorter words are left out")
    numbers: bool = _option(False, "whether numbers are words, too")
    stop_words: str | tuple[str, ...] = _option(
        "language", "`language`: those of the language; `none`; or a list, see docs/words.md"
    )
    extra_stop_words: tuple[str, ...] = _option((), "words that are left out beside those of `stop_words`")
    clean: bool = _option(
        False, "whether HTML loses its tags, and broken characters (`Ã©` for `é`) are repaired, before words are cut"
    )
    ngrams: int = _option(
        1,
        "up to this number of neighbouring words of a sentence are tokens, too: 2 gives `heart_attack` beside `heart` "
        "and `attack`. Not with noise for words: a word would be in several tokens",
    )
    tokenizer: str | Tokenizer = field(
        default="",
        metadata={
            "description": "the name of another way of cutting words, which all parties agree on. Documents then come "
            "as lists of tokens, or in Python with the function itself; the options above but `ngrams` do nothing"
        },
    )
    function: Tokenizer | None = field(default=None, compare=False, repr=False)  # the tokeniser, if it is available

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
        extra: Any = self.extra_stop_words
        if isinstance(extra, str):
            raise InputError(f"extra_stop_words = '{extra}': write a list, ['{extra}']")
        object.__setattr__(self, "extra_stop_words", tuple(extra))
        if self.min_length < 1:
            raise InputError(f"min_length = {self.min_length} must be at least 1")
        if not 1 <= self.ngrams <= MOST_NGRAMS:
            raise InputError(f"ngrams = {self.ngrams} must be between 1, words alone, and {MOST_NGRAMS}")
        if self.stop_words == "language":
            stop_list(self.language)  # raises for an unknown language, before the first document

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; options that earlier versions lack are included only if they are set."""
        data = {name: getattr(self, name) for name in _names(type(self))}
        return {name: value for name, value in data.items() if _LATER.get(name) != value}

    def with_tokenizer(self, function: Tokenizer) -> TextOptions:
        """Return the same options with the tokeniser function, of which they have only the name."""
        return replace(self, function=function)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TextOptions:
        """Rebuild options from `to_dict`, also after a round trip through JSON."""
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


_LATER = {
    "clean": False,
    "ngrams": 1,
    "tokenizer": "",
    "extra_stop_words": (),
}  # options that were added later, with their defaults


def _names(kind: type[TextOptions]) -> list[str]:
    """List the options that can be stored."""
    return [option.name for option in fields(kind) if option.metadata]


def _name_of(function: Any) -> str:
    """Return the full name of a function; a method of a built-in type, such as `str.split`, has no module."""
    named = function if hasattr(function, "__qualname__") else type(function)
    module = getattr(named, "__module__", None) or "builtins"
    return f"{module}.{named.__qualname__}"


def stop_words(options: TextOptions) -> frozenset[str]:
    """Return the stop words, in lower case."""
    words = options.extra_stop_words
    if options.stop_words != "none":
        words += options.stop_words if isinstance(options.stop_words, tuple) else stop_list(options.language)
    return frozenset(_fold(word, options.language, lowercase=True) for word in words)


@lru_cache(maxsize=32)
def splitter(options: TextOptions, *, keep_places: bool = False) -> Callable[[str], list[str]]:
    """Make the function that cuts a piece of text into tokens; `keep_places` as in `sentences`."""
    if keep_places and options.ngrams == 1:
        return _in_place(options)
    find = _chinese(options) if options.language == "zh" else _finder(options)
    unwanted, shortest = stop_words(options), options.min_length
    language, lowercase = options.language, options.lowercase

    def split(text: str) -> list[str]:
        found = find(_fold(text, language, lowercase))
        return [word for word in found if word not in unwanted and len(word) >= shortest]

    def split_cased(text: str) -> list[str]:  # "The" is a stop word like "the"
        found = find(_fold(text, language, lowercase))
        return [word for word in found if word.lower() not in unwanted and len(word) >= shortest]

    return split if options.lowercase else split_cased


def _in_place(options: TextOptions) -> Callable[[str], list[str]]:
    """Remove words by the package's own rules; words that other options exclude become `UNKNOWN`."""
    given, shortest = isinstance(options.stop_words, tuple), options.min_length
    if not given and not options.extra_stop_words and shortest <= SHORTEST:
        return splitter(options)
    listed, cased = "none" if given else options.stop_words, not options.lowercase
    own = replace(options, stop_words=listed, extra_stop_words=(), min_length=min(shortest, SHORTEST))
    unwanted, split = stop_words(options) - stop_words(own), splitter(own)

    def hide(word: str) -> str:
        return UNKNOWN if len(word) < shortest or (word.lower() if cased else word) in unwanted else word

    return lambda text: [hide(word) for word in split(text)]


def tokenize(text: str, options: TextOptions | None = None) -> list[str]:
    """Cut a text into tokens, in order.

    >>> tokenize("The naïve banker's 3 boats aren't state-of-the-art.")
    ['naïve', 'banker', 'boats', 'state', 'art']
    """
    return splitter(options or TextOptions())(text)


def sentences(text: str, options: TextOptions | None = None, *, keep_places: bool = False) -> list[list[list[str]]]:
    r"""Cut a text into paragraphs of sentences of tokens; sentences and paragraphs without a token are dropped.

    >>> sentences("Rain fell. Rivers rose.\n\nBridges held.")
    [[['rain', 'fell'], ['rivers', 'rose']], [['bridges', 'held']]]

    With `keep_places`, only the package's own rules remove words: the stop list of the language, and words of one
    letter. Words on a given list (`stop_words`, `extra_stop_words`), and words shorter than `min_length`, keep their
    places as `<unk>`. So a document's length does not depend on a list that another party chose. (With n-grams, which
    noise does not protect, places are not kept.)

    >>> sentences("Rain fell.", TextOptions(stop_words=("fell",)), keep_places=True)
    [[['rain', '<unk>']]]
    """
    options = options or TextOptions()
    split = _own_splitter(options) if options.tokenizer else splitter(options, keep_places=keep_places)
    n = options.ngrams
    paragraphs = [[with_ngrams(words, n) for piece in pieces if (words := split(piece))] for pieces in segment(text)]
    return [paragraph for paragraph in paragraphs if paragraph]


def with_ngrams(words: list[str], n: int) -> list[str]:
    """Insert after each word the n-grams of up to n words that end with it.

    >>> with_ngrams(["acute", "heart", "attack"], 2)
    ['acute', 'heart', 'acute_heart', 'attack', 'heart_attack']
    """
    if n == 1:
        return words
    ends = range(1, len(words) + 1)
    return [JOINT.join(words[end - length : end]) for end in ends for length in range(1, min(n, end) + 1)]


def _own_splitter(options: TextOptions) -> Callable[[str], list[str]]:
    """Wrap a user's own tokeniser; its tokens are checked, not changed."""
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
        # One form for the two encodings of é and for the three apostrophes; soft hyphens are invisible.
        text = normalize("NFC", text).replace("’", "'").replace("ʼ", "'").replace("\u00ad", "")
    if lowercase and language in DOTLESS:
        text = text.replace("İ", "i").replace("I", "ı")
    return text.lower() if lowercase else text


def _finder(options: TextOptions) -> Callable[[str], list[str]]:
    """Find words with `regex`; in plain ASCII with the same pattern in `re`, which is twice as fast."""
    import regex

    anywhere: Callable[[str], list[str]] = regex.compile(word_pattern(options)).findall
    in_ascii: Callable[[str], list[str]] = re.compile(_pattern(options, "a-zA-Z", "0-9", "")).findall

    def find(text: str) -> list[str]:
        return in_ascii(text) if text.isascii() else anywhere(text)

    return find


def word_pattern(options: TextOptions) -> str:
    """Return the pattern of a word, in its first group, for text after `_fold`; the explorer page uses it too."""
    return _pattern(options, r"\p{L}", r"\p{N}", r"\p{M}\u200c\u200d")


def _pattern(options: TextOptions, letter: str, digit: str, joined: str) -> str:
    part, letter, digit = f"[{letter}{digit}{joined}]", f"[{letter}]", f"[{digit}]"
    possessive = f"[sS](?!{part})"
    # The look-behind comes after the first letter, so that the search can jump from letter to letter.
    word = f"{letter}(?<!{part}{letter}){part}*"
    if options.language not in ELIDING:
        word += f"(?:'(?!{possessive}){letter}{part}*)*"
    if options.numbers:
        word += f"|{digit}(?<!{part}{digit}){digit}*(?:[.,]{digit}+)*{part}*"
    return f"({word})(?:'{possessive})?"  # findall returns only the group, without the possessive


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


_PARAGRAPH_END = re.compile(r"\n[^\S\n]*\n\s*")
_CLOSING = r"[\"'’”»›)\]}」』）】》〉]*"
_MAYBE_END = re.compile(rf"([.!?…。！？｡।॥؟۔։።፧]+){_CLOSING}(\s*)")  # a character set in front makes the search fast
_LAST_WORD = re.compile(r"[^\W_]+$")

# Abbreviations before a capital or a number in the middle of a sentence. Words that often *end* a sentence (etc., no.,
# art.) are not listed: a missed boundary and a false one are equally wrong.
_LISTED = """
    mr mrs ms mx dr prof sr jr st messrs gen col maj capt lt sgt rev hon gov sen rep pres
    vs cf viz al approx fig figs eq eqs ref refs sec ch pp vol vols ed eds dept inc ltd corp
    jan feb apr jun jul aug sep sept oct nov dec
    bzw ca evtl ggf usw nr str bd hrsg vgl inkl mme mlle mgr sra srta dra ud uds núm sig dott ing av bv
"""
_ABBREVIATIONS = frozenset(_LISTED.split())


def segment(text: str) -> list[list[str]]:
    r"""Cut a text into paragraphs, and these into sentences, terminators included.

    >>> segment("Dr. Ruiz paid 3.50 euros. Why?\n\nNobody knows.")
    [['Dr. Ruiz paid 3.50 euros.', 'Why?'], ['Nobody knows.']]
    """
    unix = text.replace("\r\n", "\n").replace("\r", "\n")
    return [_sentences(paragraph) for paragraph in _PARAGRAPH_END.split(unix) if paragraph.strip()]


def _sentences(paragraph: str) -> list[str]:
    ends = [match.end() for match in _MAYBE_END.finditer(paragraph) if _ends_sentence(paragraph, match)]
    bounds = zip([0, *ends], [*ends, len(paragraph)], strict=True)
    return [piece for start, end in bounds if (piece := paragraph[start:end].strip())]


def _ends_sentence(paragraph: str, match: re.Match[str]) -> bool:
    mark, space = match.groups()
    if mark[-1] not in ".!?…":
        return True
    if not space or paragraph[match.end() : match.end() + 1].islower():
        return False
    if mark != ".":
        return True
    word = _LAST_WORD.search(paragraph, max(0, match.start() - 12), match.start())
    return word is None or not (word[0].lower() in _ABBREVIATIONS or (len(word[0]) == 1 and word[0].isalpha()))
