"""The server asks for a party's words, and a surname that two notes have ends up in everybody's model."""

from dataclasses import asdict

import pytest

from helpers.attacks_words import ask, make_party
from tertulia.corpus.vocabulary import unpack_words
from tertulia.federation.plan import Plan
from tertulia.federation.types import Nothing, step_name
from tertulia.methods.common.vocabulary import propose_words
from tertulia.methods.ftm import method as ftm

NOTES = ["fever cough pain"] * 4 + ["fever cough winter"] * 3 + ["fever cough lindqvist"] * 2
OPEN = "allow_clear = true\n"


@pytest.mark.parametrize(
    ("owners", "policy", "leave"),
    [
        ("several", OPEN, {"cough", "fever"}),
        ("several", OPEN + "min_documents_per_word = 4\n", {"cough", "fever", "pain"}),
        ("one", OPEN, {"cough", "fever", "pain", "winter", "lindqvist"}),
        ("one", OPEN + "min_documents_per_word = 3\n", {"cough", "fever", "pain", "winter"}),
    ],
)
def test_words_of_few_notes_stay_at_the_party(owners, policy, leave, tmp_path):
    plan = asdict(Plan("ftm", {}, None, ("north", "south"), ((step_name(propose_words), "each"),)))
    host = make_party(tmp_path, NOTES, ftm, policy=policy, owners=owners, plan=plan)
    answer = ask(host, propose_words, Nothing())
    assert answer.kind == "ok"
    assert set(unpack_words(answer.reply.text, answer.reply.offsets)) == leave
    assert len(answer.reply.counts) == len(leave)
