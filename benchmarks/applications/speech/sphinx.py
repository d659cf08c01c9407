"""Pocketsphinx with its own US English model: the n-best lists come from its word lattice.

Its `nbest()` gives only total scores, in an order that differs from its own best path. So this module searches the
lattice: hypotheses then have an acoustic score and ln P_LM of each word, both as the decoder used them.
"""

from __future__ import annotations

import math
import tempfile
from collections import defaultdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from tertulia._arrays import F64
from tertulia.applications.speech.nbest import Hypothesis
from tertulia.errors import InputError

# Narrower than the defaults: 0.19 instead of 0.26 of real time; one of eight recordings of a sentence got worse.
BEAMS = {"maxhmmpf": 3000, "maxwpf": 20}
LM_WEIGHT, FILLER = 9.5, math.log(1e-8)  # pocketsphinx's `bestpathlw` and `fillprob`
WORD_PENALTY, SILENCE = math.log(0.65), math.log(0.005)  # its `wip` and `silprob`
WIDTH = 400.0  # links whose best path is worse than the best by more are dropped: e^-400 before scaling by 1/9.5
AT_A_NODE = 40  # partial hypotheses kept at each node
UNKNOWN = math.log(1e-7)  # ln P of a word that the language model lacks


class Sphinx:
    """A decoder with its language model."""

    name = "pocketsphinx"
    decibels = 40.0  # speech above noise: its models were trained on clean speech

    def __init__(self) -> None:
        try:
            import pocketsphinx
        except ModuleNotFoundError as error:
            raise InputError("the speech benchmark decodes by pocketsphinx: pip install 'tertulia[asr]'") from error
        self._decoder: Any = pocketsphinx.Decoder(samprate=16_000, loglevel="FATAL", **BEAMS)
        self._model: Any = self._decoder.get_lm(self._decoder.current_search())
        self._to_ln: Any = self._decoder.get_logmath().log_to_ln
        self.heard = ""  # the decoder's own best path of the last utterance
        self.log_prob = lru_cache(maxsize=1_000_000)(self._log_prob)

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that the n-best lists depend on."""
        return {**BEAMS, "decibels": self.decibels, "width": WIDTH, "at_a_node": AT_A_NODE, "version": 1}

    def _log_prob(self, word: str, before: str, earlier: str) -> float:
        """Look up ln P(word | the two words before it)."""
        value = self._model.prob([word, before, earlier] if earlier else [word, before])
        return float(self._to_ln(value)) if value > -(2**28) else UNKNOWN

    def language(self, words: tuple[str, ...]) -> tuple[float, ...]:
        """List ln P_LM of each word given the two before it, and of the sentence's end."""
        padded = ("", "<s>", *words, "</s>")
        return tuple(self.log_prob(padded[i], padded[i - 1], padded[i - 2]) for i in range(2, len(padded)))

    def decode(self, samples: F64, n_best: int) -> list[Hypothesis]:
        """Recognise an utterance: its n best hypotheses, best first."""
        decoder = self._decoder
        decoder.start_utt()
        sound = np.clip(samples * 32767, -32768, 32767).astype(np.int16)
        decoder.process_raw(sound.tobytes(), full_utt=True)
        decoder.end_utt()
        self.heard = decoder.hyp().hypstr if decoder.hyp() else ""
        if not self.heard or (lattice := decoder.get_lattice()) is None:
            return [Hypothesis((), 0.0, self.language(()))]
        with tempfile.TemporaryDirectory(prefix="tertulia-lattice-") as folder:
            path = Path(folder) / "lattice"
            lattice.write(str(path))
            graph = Lattice.read(path)
        found = graph.best(self, n_best)
        return [Hypothesis(words, acoustic, self.language(words)) for words, acoustic in found]


class Lattice:
    """Words in the order of their start, and links: ln of the acoustic score of a word up to the next."""

    def __init__(self, words: list[str], frames: list[int], links: list[tuple[int, int, float]]) -> None:
        self.words, self.links = words, links
        self.order = sorted(range(len(words)), key=frames.__getitem__)
        self.first, self.last = self.order[0], self.order[-1]

    @classmethod
    def read(cls, path: Path) -> Lattice:
        """Read pocketsphinx's own format."""
        words, frames, links, part = [], [], [], ""
        first = last = 0
        scale = math.log(1.0001)
        for line in path.read_text().splitlines():
            fields = line.split()
            if not fields or line.startswith("#"):
                continue
            if not (fields[0].isdigit() or fields[0].startswith("-")):
                part = fields[0]
                first, last = (
                    (int(fields[1]) if part == "Initial" else first),
                    (int(fields[1]) if part == "Final" else last),
                )
            elif part == "Nodes":
                words.append(fields[1].partition("(")[0] or fields[1])
                frames.append(int(fields[2]))
            elif part == "Edges":
                links.append((int(fields[0]), int(fields[1]), int(fields[2]) * scale))
        found = cls(words, frames, links)
        found.first, found.last = first, last
        return found

    def penalty(self, node: int) -> float:
        """Return the cost of entering a node; the language model does not count fillers."""
        word = self.words[node]
        if word in ("<s>", "</s>"):
            return 0.0
        if word == "<sil>":
            return SILENCE
        return FILLER if word.startswith(("[", "<", "++")) else WORD_PENALTY

    def is_word(self, node: int) -> bool:
        """Return whether the language model counts the node as a word."""
        return not self.words[node].startswith(("<", "[", "++"))

    def pruned(self, sphinx: Sphinx) -> dict[int, list[tuple[int, float]]]:
        """Return the links into each node on paths near the best one, by unigrams of the language model."""
        place = {node: i for i, node in enumerate(self.order)}
        cost = [
            self.penalty(n) + (LM_WEIGHT * sphinx.log_prob(word, "", "") if self.is_word(n) else 0.0)
            for n, word in enumerate(self.words)
        ]
        ahead = [-math.inf] * len(self.words)
        behind = [-math.inf] * len(self.words)
        ahead[self.first] = behind[self.last] = 0.0
        forward = sorted(self.links, key=lambda link: place[link[0]])
        for start, end, score in forward:
            ahead[end] = max(ahead[end], ahead[start] + score + cost[end])
        for start, end, score in sorted(self.links, key=lambda link: -place[link[1]]):
            behind[start] = max(behind[start], behind[end] + score + cost[end])
        least = ahead[self.last] - WIDTH
        kept: dict[int, list[tuple[int, float]]] = defaultdict(list)
        for start, end, score in forward:
            if ahead[start] + score + cost[end] + behind[end] >= least:
                kept[end].append((start, score))
        return kept

    def best(self, sphinx: Sphinx, n_best: int) -> list[tuple[tuple[str, ...], float]]:
        """Find the best word sequences by the trigram model, with their acoustic scores (costs of fillers included)."""
        into = self.pruned(sphinx)
        hypotheses: dict[int, dict[tuple[str, ...], tuple[float, float]]] = {self.first: {(): (0.0, 0.0)}}
        for node in self.order:
            if node not in into:
                continue
            here: dict[tuple[str, ...], tuple[float, float]] = {}
            word, own = self.words[node], self.penalty(node)
            counts = self.is_word(node)
            for start, score in into[node]:
                for words, (total, acoustic) in hypotheses.get(start, {}).items():
                    longer = (*words, word) if counts else words
                    value = total + score + own
                    if counts or node == self.last:
                        before, earlier = (("", "<s>", *words)[-1], ("", "<s>", *words)[-2])
                        value += LM_WEIGHT * sphinx.log_prob(word if counts else "</s>", before, earlier)
                    if longer not in here or here[longer][0] < value:
                        here[longer] = (value, acoustic + score + (0.0 if counts else own))
            most = n_best if node == self.last else AT_A_NODE
            hypotheses[node] = dict(sorted(here.items(), key=lambda item: -item[1][0])[:most])
        return [(words, acoustic) for words, (_, acoustic) in hypotheses.get(self.last, {(): (0.0, 0.0)}).items()]
