r"""Backoff n-gram models, stored as ARPA files, or trained on texts with Witten-Bell smoothing.

>>> model = NGrams.train([["sell", "the", "bonds"], ["buy", "the", "bonds"]], order=2)
>>> [round(p, 2) for p in model.log_probs(["sell", "bonds"])]
[-1.14, -2.22, -0.3]
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tertulia.errors import FormatError, InputError

START, END, UNKNOWN = "<s>", "</s>", "<unk>"
NEVER = -99.0  # log10 of a probability that is never used; ARPA files have it for <s>
_TEN = math.log(10.0)
Gram = tuple[str, ...]


@dataclass
class NGrams:
    """A backoff n-gram model: log10 probabilities of n-grams, and log10 backoff weights of histories."""

    order: int
    probs: dict[Gram, float] = field(repr=False)
    backoffs: dict[Gram, float] = field(repr=False)

    def __post_init__(self) -> None:
        """Give unknown words the probability of the rarest word, if the model has no <unk>."""
        if (UNKNOWN,) not in self.probs:
            known = [p for gram, p in self.probs.items() if len(gram) == 1 and p > NEVER]
            self.probs[(UNKNOWN,)] = min(known, default=NEVER)

    def log_prob(self, word: str, history: Sequence[str]) -> float:
        """Look up ln P(word | history); words that the model lacks are <unk>."""
        wanted = word if (word,) in self.probs else UNKNOWN
        before = tuple(h if (h,) in self.probs else UNKNOWN for h in history)[max(0, len(history) - self.order + 1) :]
        penalty = 0.0
        while (*before, wanted) not in self.probs:
            penalty += self.backoffs.get(before, 0.0)
            before = before[1:]
        return _TEN * (penalty + self.probs[(*before, wanted)])

    def log_probs(self, words: Sequence[str]) -> tuple[float, ...]:
        """List ln P of each word given those before it, and of the sentence's end."""
        padded = (START, *words, END)
        return tuple(self.log_prob(padded[i], padded[max(0, i - self.order + 1) : i]) for i in range(1, len(padded)))

    @classmethod
    def train(cls, sentences: Iterable[Sequence[str]], order: int = 3, min_count: int = 1) -> Self:
        """Count sentences of words, and smooth by Witten-Bell: P(w|h) = (c(hw) + T(h) P(w|h')) / (c(h) + T(h)).

        T(h) is the number of different words after h; words of fewer than `min_count` occurrences are <unk>.
        """
        if order < 1 or min_count < 1:
            raise InputError(f"order = {order}, min_count = {min_count}: each must be at least 1")
        texts = [tuple(sentence) for sentence in sentences]
        counts = Counter(word for text in texts for word in text)
        if not counts:
            raise InputError("there is no word to count: give sentences as lists of words")
        rare = {word for word, count in counts.items() if count < min_count}
        grams: Counter[Gram] = Counter()
        for text in texts:
            padded = (START, *(UNKNOWN if word in rare else word for word in text), END)
            for i in range(1, len(padded)):
                for n in range(1, min(order, i + 1) + 1):
                    grams[padded[i - n + 1 : i + 1]] += 1
        return cls(order, *_witten_bell(grams))

    def write(self, path: str | Path) -> Path:
        """Write an ARPA file, log10 to six decimals."""
        path = Path(path)
        by_length = [sorted(gram for gram in self.probs if len(gram) == n) for n in range(1, self.order + 1)]
        with path.open("w", encoding="utf-8") as file:
            file.write("\\data\\\n")
            file.writelines(f"ngram {n}={len(grams)}\n" for n, grams in enumerate(by_length, start=1))
            for n, grams in enumerate(by_length, start=1):
                file.write(f"\n\\{n}-grams:\n")
                for gram in grams:
                    backoff = f"\t{self.backoffs[gram]:.6f}" if gram in self.backoffs else ""
                    file.write(f"{self.probs[gram]:.6f}\t{' '.join(gram)}{backoff}\n")
            file.write("\n\\end\\\n")
        return path

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read an ARPA file; the error about a broken one names the line."""
        path, n, ended = Path(path), 0, False
        declared: dict[int, int] = {}
        probs: dict[Gram, float] = {}
        backoffs: dict[Gram, float] = {}
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            text = line.strip()
            try:
                if not text or text == "\\data\\" or ended:
                    continue
                if text == "\\end\\":
                    ended = True
                elif text.startswith("ngram ") and n == 0:
                    length, _, count = text.removeprefix("ngram ").partition("=")
                    declared[int(length)] = int(count)
                elif text.startswith("\\"):
                    n = int(text.removeprefix("\\").removesuffix("-grams:"))
                elif n:
                    prob, *words = text.split()
                    if len(words) not in (n, n + 1):
                        raise ValueError(f"{len(words)} fields after the probability of a {n}-gram")
                    gram = tuple(words[:n])
                    probs[gram] = float(prob)
                    if len(words) > n:
                        backoffs[gram] = float(words[n])
            except ValueError as error:
                raise FormatError(f"{path}, line {number}: {error}; write the ARPA file again") from error
        found = Counter(map(len, probs))
        if not ended or not declared or any(found[n] != count for n, count in declared.items()):
            raise FormatError(
                f"{path} is no whole ARPA file: it declares {declared} n-grams, holds {dict(found)} and "
                f"{'ends' if ended else 'does not end'} with \\end\\. Copy or make it again"
            )
        return cls(max(declared), probs, backoffs)


def _witten_bell(grams: Counter[Gram]) -> tuple[dict[Gram, float], dict[Gram, float]]:
    totals: Counter[Gram] = Counter()  # c(h)
    kinds: Counter[Gram] = Counter()  # T(h)
    for gram, count in grams.items():
        totals[gram[:-1]] += count
        kinds[gram[:-1]] += 1
    V = kinds[()] + ((UNKNOWN,) not in grams)
    share = {h: kinds[h] / (totals[h] + kinds[h]) for h in totals}  # of a history's mass, for the shorter history
    probs: dict[Gram, float] = {}
    for gram in sorted(grams, key=len):  # shorter ones first: longer ones build on them
        shorter = probs[gram[1:]] if len(gram) > 1 else 1.0 / V
        history = gram[:-1]
        probs[gram] = (1.0 - share[history]) * grams[gram] / totals[history] + share[history] * shorter
    probs.setdefault((UNKNOWN,), share[()] / V)
    logs = {gram: math.log10(p) for gram, p in probs.items()} | {(START,): NEVER}
    return logs, {h: math.log10(s) for h, s in share.items() if h and h in logs}
