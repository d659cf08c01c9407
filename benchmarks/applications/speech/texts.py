"""Sentences of Reuters and of medical abstracts, spelled in words that a voice can speak, document by document.

References, decoder outputs and training documents get the same spelling, so that "mln dlrs", "$5 million" and "five
million dollars" become the same words.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import polars as pl

from benchmarks.common import data
from tertulia.corpus.tokens import segment
from tertulia.errors import InputError

DOMAINS = {"finance": "reuters21578.parquet", "medicine": "medical_abstracts_2888.parquet"}
LENGTH = (8, 16)  # words of a sentence: about 3 to 7 seconds
PER_DOCUMENT = (5, 8)  # sentences that a document must have, and may give
SHORT = {
    "mln": "million", "bln": "billion", "dlrs": "dollars", "dlr": "dollar", "pct": "percent", "cts": "cents",
    "shrs": "shares", "shr": "share", "vs": "versus", "qtr": "quarter", "stg": "sterling", "co": "company",
    "cos": "companies", "corp": "corporation", "inc": "incorporated", "ltd": "limited", "yr": "year", "yrs": "years",
    "mth": "month", "avg": "average", "govt": "government", "intl": "international", "mr": "mister", "dr": "doctor",
    "st": "saint", "wk": "week",
}  # fmt: skip
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_MONEY = re.compile(r"[$](\d[\d,]*(?:\.\d+)?)((?: (?:million|billion|mln|bln|thousand|hundred))?)")


@dataclass(frozen=True)
class Sentence:
    """An utterance to be spoken."""

    id: str  # domain, document and number of the sentence
    document: str
    domain: str
    words: str


def speakable(text: str) -> str:
    """Spell a text in lower-case words, with digits and signs spelled out.

    >>> speakable("Profit rose 5.5 pct to $40 million (U.S.).")
    'profit rose five point five percent to forty million dollars u s'
    """
    text = re.sub(r"<[^>]*>", " ", text).replace("’", "'")
    text = re.sub(r"\b((?:[A-Za-z]\.){2,})", lambda match: match[1].replace(".", " "), text)  # U.S. -> U S
    text = _MONEY.sub(r"\1\2 dollars", text.lower()).replace("%", " percent ").replace("&", " and ")
    text = _NUMBER.sub(lambda match: f" {_spell(match[0])} ", text)
    words = re.sub(r"[^a-z' ]+", " ", text).split()
    return " ".join(SHORT.get(word, word) for word in (word.strip("'") for word in words) if word)


@cache
def _spell(number: str) -> str:
    try:
        from num2words import num2words
    except ModuleNotFoundError as error:
        raise InputError("the speech benchmark spells numbers by num2words: pip install 'tertulia[asr]'") from error
    plain = number.replace(",", "").rstrip(".")
    value = float(plain) if "." in plain else int(plain)
    if "." not in plain and len(plain) > 15:
        return " ".join(num2words(int(digit)) for digit in plain)
    return str(num2words(value)).replace(" and ", " ").replace("-", " ").replace(",", "")


def sentences(text: str) -> list[str]:
    """Return the sentences of a text that make good utterances: whole, not too long, with one number at most."""
    plain = re.sub(r"\b((?:[A-Z]\.){2,})", lambda match: match[1].replace(".", " "), text)
    plain = re.sub(r"\b(Co|Corp|Inc|Ltd|Mr|Dr|vs|St)\.", r"\1", plain)
    found = []
    for sentence in (sentence.strip() for paragraph in segment(plain) for sentence in paragraph):
        if not re.match(r"[A-Z]", sentence) or not sentence.endswith(".") or re.search(r"[+/<>=*]|\.\.", sentence):
            continue
        if (
            len(re.findall(r"\d+", sentence)) <= 1
            and LENGTH[0] <= len((words := speakable(sentence)).split()) <= LENGTH[1]
        ):
            found.append(words)
    return found


def in_order(names: list[str]) -> list[str]:
    """Sort names by a hash: an arbitrary order that is the same on every machine."""
    return sorted(names, key=lambda name: hashlib.blake2b(name.encode()).digest())


@cache
def table(domain: str) -> dict[str, str]:
    """Load the documents of a domain by id, in the order of use."""
    frame = pl.read_parquet(data(DOMAINS.get(domain, "newsgroups20.parquet"))).cast({"id": pl.String})
    texts = dict(zip(frame["id"], frame["text"], strict=True))
    return {name: texts[name] for name in in_order(list(texts))}


def spoken(domain: str) -> Iterator[list[Sentence]]:
    """Yield the spoken documents of a domain as sentences, without repeated sentences."""
    said: set[str] = set()
    for name, text in table(domain).items():
        fresh = [words for words in dict.fromkeys(sentences(text)) if words not in said][: PER_DOCUMENT[1]]
        if len(fresh) >= PER_DOCUMENT[0]:
            said.update(fresh)
            document = f"{domain}-{name}"
            yield [Sentence(f"{document}-{i}", document, domain, words) for i, words in enumerate(fresh)]


def utterances(tuning: int, test: int) -> tuple[list[Sentence], list[Sentence]]:
    """Choose at least these numbers of sentences to tune and to test on, half of each domain, by whole documents.

    Every fifth document is for tuning, so a smaller run uses the first documents of a larger one.
    """
    wanted = (tuning / len(DOMAINS), test / len(DOMAINS))
    found: tuple[list[Sentence], list[Sentence]] = ([], [])
    for domain in DOMAINS:
        counts = [0, 0]
        for i, document in enumerate(spoken(domain)):
            part = 0 if i % 5 == 4 else 1
            if counts[part] < wanted[part]:
                found[part].extend(document)
                counts[part] += len(document)
            if all(count >= number for count, number in zip(counts, wanted, strict=True)):
                break
    return found
