"""A server that makes up its questions, alone or with a member's help: how many of 100 documents it reads."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.common import newsgroups, say
from benchmarks.engines.fixtures import steering
from benchmarks.federation.parties import natural
from tertulia.federation.party import context
from tertulia.privacy.policy import RARE


def steered(quick: bool) -> dict[str, Any]:
    """Attack 20 Newsgroups by subject: three words of each document are known, those that are rarest in its party."""
    corpus = newsgroups(min_documents=5, label="party")
    parties = natural(corpus.split(0.2, seed=1)[1] if quick else corpus)
    words = corpus.vocabulary.words
    attacks = {"single_out_of_100": steering.singled_out, "by_em_out_of_100": steering.singled_out_by_em}
    found: dict[str, Any] = {attack: {} for attack in attacks}
    ways = {"alone": (RARE, False), "member_helps_with_rule": (RARE, True), "member_helps_without_rule": (1, True)}
    for attack, singled_out in attacks.items():
        for name, (least, helper) in ways.items():
            with mock.patch.object(context, "RARE", least), tempfile.TemporaryDirectory() as folder:
                read = singled_out(Path(folder) / "run", parties, words, topics=40, number=100, helper=helper)
            found[attack][name] = {"of_totals": read.of_totals, "knowing_others": read.knowing_others}
            say(f"steered, {attack}, {name}: {read}")
    return {"steered": found}
