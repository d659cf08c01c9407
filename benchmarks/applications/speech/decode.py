"""Sentences to n-best lists, utterance by utterance, cached in `benchmarks/out/applications`.

Each decoder has a file of JSON lines, named by a hash of everything that its lists depend on. A line is an utterance. A
killed run continues with the next utterance. The lists hold near-copies of the corpora's sentences, which may not be
copied: they stay in `out` and are never committed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.applications.speech import texts, voices
from benchmarks.applications.speech.moonshine import Moonshine
from benchmarks.applications.speech.sphinx import Sphinx
from benchmarks.applications.speech.texts import Sentence
from benchmarks.common import OUT, say
from tertulia.applications.speech.nbest import Utterance, read_json, to_json

FOLDER = OUT / "applications" / "speech"
N_BEST = 50
# The sentences that are spoken: bump the version when `texts` chooses or spells them differently.
SPOKEN = {"lengths": texts.LENGTH, "per_document": texts.PER_DOCUMENT, "voices": voices.VOICES, "version": 1}


def decoders() -> list[Any]:
    """Load the decoders."""
    sphinx = Sphinx()
    return [sphinx, Moonshine(sphinx)]


def configuration(decoder: Any) -> dict[str, Any]:
    """Return everything that a decoder's n-best lists depend on."""
    return {"decoder": decoder.name, **decoder.settings, "n_best": N_BEST, "spoken": SPOKEN}


def hash_of(configuration: Any) -> str:
    """Hash a configuration to a short name."""
    return hashlib.blake2b(json.dumps(configuration, sort_keys=True).encode(), digest_size=6).hexdigest()


def path_of(decoder: Any) -> Path:
    """Return the file of a decoder's lists."""
    return FOLDER / f"{decoder.name}-{hash_of(configuration(decoder))}.jsonl"


def kept(path: Path) -> dict[str, Utterance]:
    """Read the stored utterances; remove a line that a kill cut off."""
    if not path.is_file():
        return {}
    whole = path.read_text().rpartition("\n")
    if whole[2]:
        path.write_text(whole[0] + whole[1])
    return {utterance.id: utterance for utterance in read_json(path)} if whole[0] else {}


def decode(sentences: Iterable[Sentence], ready: list[Any]) -> dict[str, list[Utterance]]:
    """Return n-best lists of all sentences by each decoder; speak and decode the missing ones."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    wanted = by_turns(sentences)
    said = {sentence.id: tuple(sentence.words.split()) for sentence in wanted}
    found = {
        decoder.name: {name: u for name, u in kept(path_of(decoder)).items() if said.get(name) == u.reference}
        for decoder in ready
    }
    missing = sum(sentence.id not in found[decoder.name] for sentence in wanted for decoder in ready)
    say(f"{len(wanted)} utterances, {missing} n-best lists to be made")
    for i, sentence in enumerate(wanted):
        absent = [decoder for decoder in ready if sentence.id not in found[decoder.name]]
        if not absent:
            continue
        speech = voices.speak(sentence.words, voices.voice_of(sentence.document))
        for decoder in absent:
            noisy = voices.add_noise(speech, decoder.decibels, sentence.id)
            hypotheses = tuple(decoder.decode(noisy, N_BEST))
            utterance = Utterance(sentence.id, hypotheses, sentence.document, tuple(sentence.words.split()))
            with path_of(decoder).open("a") as file:
                file.write(to_json(utterance) + "\n")
            found[decoder.name][sentence.id] = utterance
        if i % 50 == 0:
            say(f"  {i} of {len(wanted)} utterances are decoded")
    return {name: [lists[sentence.id] for sentence in wanted] for name, lists in found.items()}


def by_turns(sentences: Iterable[Sentence]) -> list[Sentence]:
    """Order sentences by document, alternating domains, so that an unfinished run has some of each."""
    documents: dict[str, dict[str, list[Sentence]]] = {}
    for sentence in sentences:
        documents.setdefault(sentence.domain, {}).setdefault(sentence.document, []).append(sentence)
    turns = [list(of_domain.values()) for of_domain in documents.values()]
    most = max((len(turn) for turn in turns), default=0)
    return [sentence for i in range(most) for turn in turns if i < len(turn) for sentence in turn[i]]
