"""N-best lists: the hypotheses of a speech decoder about an utterance, best first, with scores.

`read_nbest` reads lists of Kaldi, ESPnet, pocketsphinx and Whisper; `write_nbest` writes JSON lines, an utterance on
each:

    {"id": "call7-1", "document": "call7", "hypotheses": [{"text": "buy gold", "acoustic": -81.2, "lm": [-7.1, -5.9]}]}

All scores are natural logarithms. `acoustic` is the decoder's score without its language model (or the total score of a
decoder that has none). `lm` is ln P_LM of each word, optionally with one more for the sentence's end, or their total,
which is then divided evenly among the words.

The files of Kaldi, ESPnet and pocketsphinx do not say which utterances belong to one document (a call, a talk). So
`documents` may be a function from the utterance's id to the document's, such as `lambda name: name.split("-")[0]`.
Without it, each utterance is a document of its own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tertulia.errors import FormatError, InputError


@dataclass(frozen=True)
class Hypothesis:
    """One hypothesis about an utterance."""

    words: tuple[str, ...]
    acoustic: float  # ln, without the language model
    language: tuple[float, ...] | None = None  # ln P_LM of each word, optionally of the end; None: unknown

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
    """An utterance with its hypotheses, best first."""

    id: str
    hypotheses: tuple[Hypothesis, ...]
    document: str = ""  # a call or a talk; its other utterances are the context
    reference: tuple[str, ...] | None = None  # the spoken words, if known

    def __post_init__(self) -> None:
        if not self.hypotheses:
            raise InputError(f"utterance '{self.id}' has no hypothesis: leave it out, or give an empty text")

    @property
    def first_pass(self) -> tuple[str, ...]:
        """The decoder's own choice."""
        return self.hypotheses[0].words


def to_json(utterance: Utterance) -> str:
    """Format an utterance as one line of JSON."""
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

    A segment of Whisper has `text`, `tokens` and `avg_logprob`, or a list `hypotheses` of these; the score of a text is
    `avg_logprob` times the number of tokens. The whole file is then one document, with the name of the file.
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
            f"{path}, line {number}: not JSON ({error}). Each line is an utterance; take the line out, or make it again"
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
    """Divide a total ln P evenly among words; for an empty sentence it belongs to the end."""
    return (total / n_words,) * n_words if n_words else (total,)


Documents = Callable[[str], str]


def _alone(_: str) -> str:
    return ""


def read_nbest(path: str | Path, *, documents: Documents | None = None, log_base: float = 1.0001) -> list[Utterance]:
    """Read n-best lists; the files at the path determine the format.

    - a folder with a file `text` (and `ac_cost`, `lm_cost`): Kaldi, `lattice-to-nbest` and `nbest-to-linear`;
    - a folder with `1best_recog/text` and `score`, `2best_recog` and so on: ESPnet;
    - a folder of files `UTTERANCE.hyp`: pocketsphinx, `-nbestdir`, with its `-logbase`;
    - a file: JSON, our own lines or Whisper's segments.
    """
    path, name_of = Path(path), documents or _alone
    if path.is_file():
        return read_json(path)
    if (path / "text").is_file():
        return read_kaldi(path, name_of)
    if (path / "1best_recog" / "text").is_file():
        return read_espnet(path, name_of)
    if any(path.glob("*.hyp")):
        return read_pocketsphinx(path, name_of, log_base)
    raise InputError(
        f"{path} holds no n-best lists: give a JSON file, or a folder with 'text' (Kaldi), '1best_recog/text' (ESPnet) "
        "or '*.hyp' (pocketsphinx)"
    )


def read_kaldi(folder: Path, documents: Documents = _alone) -> list[Utterance]:
    """Read `text`, `ac_cost` and `lm_cost`, whose keys are UTTERANCE-1, UTTERANCE-2 and so on; costs are -ln.

    The language model's cost is a total, which is divided evenly among the words. `lm_cost` may be missing.
    """
    texts, acoustic = _table(folder / "text"), _table(folder / "ac_cost")
    language = _table(folder / "lm_cost") if (folder / "lm_cost").is_file() else {}
    found: dict[str, list[Hypothesis]] = {}
    for key, (line, text) in texts.items():
        utterance, dash, rank = key.rpartition("-")
        if not (dash and utterance and rank.isdigit()):
            raise _broken(folder / "text", line, f"'{key}' is no UTTERANCE-RANK: write the list by lattice-to-nbest")
        words = tuple(text.split())
        cost = -_number(folder / "ac_cost", acoustic, key)
        lm = spread(-_number(folder / "lm_cost", language, key), len(words)) if language else None
        found.setdefault(utterance, []).append(Hypothesis(words, cost, lm))
    return [Utterance(name, tuple(readings), documents(name)) for name, readings in found.items()]


def read_espnet(folder: Path, documents: Documents = _alone) -> list[Utterance]:
    """Read `Nbest_recog/text` and `score` for N = 1, 2 and so on; ESPnet writes total scores."""
    found: dict[str, list[Hypothesis]] = {}
    rank = 1
    while (place := folder / f"{rank}best_recog").is_dir():
        scores = _table(place / "score")
        for key, (_, text) in _table(place / "text").items():
            score = _number(place / "score", scores, key)
            found.setdefault(key, []).append(Hypothesis(tuple(text.split()), score))
        rank += 1
    return [Utterance(name, tuple(readings), documents(name)) for name, readings in found.items()]


def read_pocketsphinx(folder: Path, documents: Documents = _alone, log_base: float = 1.0001) -> list[Utterance]:
    """Read a file UTTERANCE.hyp for each utterance, a line for each hypothesis: words, then the total score."""
    found = []
    for path in sorted(folder.glob("*.hyp")):
        readings: dict[tuple[str, ...], Hypothesis] = {}  # pocketsphinx repeats hypotheses that differ only in pauses
        for line, text in _lines(path):
            *words, score = text.split()
            try:
                value = int(score) * math.log(log_base)
            except ValueError as error:
                raise _broken(path, line, f"it must end in a whole number, the score, not in '{score}'") from error
            readings.setdefault(tuple(words), Hypothesis(tuple(words), value))
        if not readings:
            raise InputError(f"{path} is empty: take it away, or decode the utterance again")
        found.append(Utterance(path.stem, tuple(readings.values()), documents(path.stem)))
    return found


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InputError(f"{path} is missing: it holds the scores of the texts beside it") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise _broken(path, line, "it is not UTF-8: convert the file") from error
    yield from ((n, line) for n, line in enumerate(text.splitlines(), start=1) if line.strip())


def _table(path: Path) -> dict[str, tuple[int, str]]:
    """Read Kaldi's KEY VALUE lines: key -> line number and value."""
    found: dict[str, tuple[int, str]] = {}
    for line, text in _lines(path):
        key, _, value = text.strip().partition(" ")
        if key in found:
            raise _broken(path, line, f"'{key}' was on line {found[key][0]} already: remove one of them")
        found[key] = (line, value.strip())
    return found


def _number(path: Path, table: dict[str, tuple[int, str]], key: str) -> float:
    if key not in table:
        raise InputError(f"{path} has no score of '{key}': write both files by the same command")
    line, text = table[key]
    try:
        value = float(text.removeprefix("tensor(").removesuffix(")"))  # ESPnet sometimes prints a tensor
    except ValueError as error:
        raise _broken(path, line, f"'{text}' is not a number: give '{key}' its score") from error
    if not math.isfinite(value):
        raise _broken(path, line, f"the score of '{key}' is {text}: give a finite one, or take the hypothesis out")
    return value


def _broken(path: Path, line: int, why: str) -> FormatError:
    return FormatError(f"{path}, line {line}: {why}")
