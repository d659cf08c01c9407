"""N-best lists: what a speech decoder thinks was said, best first, with its scores.

`read_nbest` reads what decoders write; `write_nbest` writes JSON lines, an utterance on each:

    {"id": "call7-1", "document": "call7", "hypotheses": [{"text": "buy gold", "acoustic": -81.2, "lm": [-7.1, -5.9]}]}

All scores are natural logarithms. `acoustic` is the decoder's score without its language model (or all of it, for
decoders that have none). `lm` is ln P_LM of each word, perhaps with one more for the sentence's end, or their total,
which is then shared out evenly among the words.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tertulia.errors import FormatError, InputError


@dataclass(frozen=True)
class Hypothesis:
    """One reading of an utterance."""

    words: tuple[str, ...]
    acoustic: float  # ln, without the language model
    language: tuple[float, ...] | None = None  # ln P_LM of each word, perhaps of the sentence's end; None: nobody said

    def __post_init__(self) -> None:
        extra = 0 if self.language is None else len(self.language) - len(self.words)
        if extra not in (0, 1):
            raise InputError(
                f"a hypothesis of {len(self.words)} words has {len(self.language or ())} language-model scores: "
                "give one for each word, perhaps one more for the sentence's end, or their total"
            )
        if not all(map(math.isfinite, (self.acoustic, *(self.language or ())))):
            raise InputError("a score is not a finite number: give natural logarithms of probabilities above 0")


@dataclass(frozen=True)
class Utterance:
    """What may have been said, best first, and where."""

    id: str
    hypotheses: tuple[Hypothesis, ...]
    document: str = ""  # utterances of one document (a call, a talk) are each other's context
    reference: tuple[str, ...] | None = None  # what was said, if it is known

    def __post_init__(self) -> None:
        if not self.hypotheses:
            raise InputError(f"utterance '{self.id}' has no hypothesis: leave it out, or give an empty text")

    @property
    def first_pass(self) -> tuple[str, ...]:
        """The decoder's own choice."""
        return self.hypotheses[0].words


def to_json(utterance: Utterance) -> str:
    """One line of JSON."""
    plain: dict[str, Any] = {"id": utterance.id}
    if utterance.document:
        plain["document"] = utterance.document
    if utterance.reference is not None:
        plain["reference"] = " ".join(utterance.reference)
    plain["hypotheses"] = [_plain(hypothesis) for hypothesis in utterance.hypotheses]
    return json.dumps(plain, ensure_ascii=False)


def _plain(hypothesis: Hypothesis) -> dict[str, Any]:
    found: dict[str, Any] = {"text": " ".join(hypothesis.words), "acoustic": round(hypothesis.acoustic, 4)}
    if hypothesis.language is not None:
        found["lm"] = [round(value, 4) for value in hypothesis.language]
    return found


def write_nbest(path: str | Path, utterances: Iterable[Utterance]) -> Path:
    """Write JSON lines; scores keep four decimals."""
    path = Path(path)
    path.write_text("".join(f"{to_json(utterance)}\n" for utterance in utterances), encoding="utf-8")
    return path


def read_json(path: str | Path) -> list[Utterance]:
    """Read JSON lines as `write_nbest` makes them, or one JSON document with Whisper's `segments`.

    A segment has `text`, `tokens` and `avg_logprob`, as Whisper writes them, or a list `hypotheses` of such; the score
    of a text is `avg_logprob` times its tokens. The whole file is then one document, named for the file.
    """
    path = Path(path)
    text = path.read_text(encoding="utf-8")
    try:
        whole = json.loads(text)
    except ValueError:
        return [_line(path, n, line) for n, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if isinstance(whole, dict) and "segments" in whole:
        segments = whole["segments"]
        return [
            _utterance(f"{path}: segment {i}", {"document": path.stem, **segment}, f"{path.stem}-{i}")
            for i, segment in enumerate(segments)
        ]
    return [_line(path, 1, text)]


def _line(path: Path, number: int, line: str) -> Utterance:
    try:
        plain = json.loads(line)
    except ValueError as error:
        raise FormatError(
            f"{path}, line {number}: not JSON ({error}). Each line is an utterance; take the line out, or make it anew"
        ) from error
    return _utterance(f"{path}, line {number}", plain, "")


def _utterance(place: str, plain: Any, name: str) -> Utterance:
    if not isinstance(plain, Mapping) or not (plain.get("id") or name):
        raise FormatError(f"{place}: an utterance is an object with 'id' and 'hypotheses'")
    readings = plain.get("hypotheses", [plain] if "text" in plain else None)
    if not isinstance(readings, list):
        raise FormatError(f"{place}: there is no list 'hypotheses', and no 'text' either")
    reference = plain.get("reference")
    try:
        return Utterance(
            name or str(plain["id"]),
            tuple(_hypothesis(place, reading) for reading in readings),
            str(plain.get("document", "")),
            None if reference is None else tuple(str(reference).split()),
        )
    except InputError as error:
        raise FormatError(f"{place}: {error}") from error


def _hypothesis(place: str, reading: Any) -> Hypothesis:
    try:
        words = tuple(str(reading["text"]).split())
        if "acoustic" in reading:
            acoustic = float(reading["acoustic"])
        elif "score" in reading:
            acoustic = float(reading["score"])
        else:
            acoustic = float(reading["avg_logprob"]) * len(reading["tokens"])
        given = reading.get("lm")
        if given is not None and not isinstance(given, list):
            given = spread(float(given), len(words))
        return Hypothesis(words, acoustic, None if given is None else tuple(map(float, given)))
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise FormatError(
            f"{place}: a hypothesis needs 'text' and 'acoustic' (or 'score', or 'avg_logprob' and 'tokens') with "
            f"numbers: {type(error).__name__} {error}"
        ) from error


def spread(total: float, n_words: int) -> tuple[float, ...]:
    """Share a total ln P evenly among words; of an empty sentence it is the end's."""
    return (total / n_words,) * n_words if n_words else (total,)
