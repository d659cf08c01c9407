"""N-best lists as Kaldi, ESPnet and pocketsphinx write them; Whisper's JSON is read in `nbest`.

Which utterances belong to one document (a call, a talk) none of these files say: `documents` may be a function from the
utterance's id to the document's, such as `lambda name: name.split("-")[0]`. Without it, each stands alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

from tertulia.applications.nbest import Hypothesis, Utterance, read_json, spread
from tertulia.errors import FormatError, InputError

Documents = Callable[[str], str]


def _alone(_: str) -> str:
    return ""


def read_nbest(path: str | Path, *, documents: Documents | None = None, log_base: float = 1.0001) -> list[Utterance]:
    """Read n-best lists, whoever wrote them: what lies at the path says who it was.

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

    The language model's cost is a total: it is shared out evenly among the words. `lm_cost` may be missing.
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
    """Read `Nbest_recog/text` and `score` for N = 1, 2 and so on: total scores, as ESPnet prints them."""
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
        readings: dict[tuple[str, ...], Hypothesis] = {}  # pocketsphinx repeats words that differ in pauses alone
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
    """Read KEY VALUE lines, as Kaldi has them: key -> line and value."""
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
        value = float(text.removeprefix("tensor(").removesuffix(")"))  # ESPnet prints a tensor at times
    except ValueError as error:
        raise _broken(path, line, f"'{text}' is not a number: give '{key}' its score") from error
    if not math.isfinite(value):
        raise _broken(path, line, f"the score of '{key}' is {text}: give a finite one, or take the hypothesis out")
    return value


def _broken(path: Path, line: int, why: str) -> FormatError:
    return FormatError(f"{path}, line {line}: {why}")
