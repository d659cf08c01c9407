"""SentenceLDA in mode `sound` uses where sentences end, which no assumption declared public."""

from helpers.attacks_words import ask, make_party
from helpers.texts import PUBLIC, STEMS, mixed
from tertulia.methods.common.lda_settings import Training
from tertulia.methods.ftm import method as ftm
from tertulia.methods.ftm.settings import FTMSettings
from tertulia.privacy.mechanisms import Adjacency, Unit

ENDS = "where sentences end is public"


def assumed(directory, model):
    host = make_party(directory, mixed(1, 6), ftm)
    training = Training(mode="sound", epsilon=4.0, topics=2, sweeps=2, model=model)
    assert ask(host, ftm.train_local, ftm.LocalTask(tuple(STEMS), training, None, with_sizes=True)).kind == "ok"
    total = host.ledger.cost(Unit.TOKEN, Adjacency.SUBSTITUTE, 1e-6).assumptions
    rows = [row.real.assumptions for row in host.ledger.table() if row.what == "topic-word distributions"]
    return total, rows[0]


def test_what_is_computed_from_sentences_says_that_their_ends_count_as_public(tmp_path):
    assert all(ENDS in found for found in assumed(tmp_path / "sentence", "sentence"))
    assert not any(ENDS in found for found in assumed(tmp_path / "lda", "lda"))


def test_a_plan_says_so_too():
    planned = ftm.plan(FTMSettings(mode="sound", epsilon=4.0, model="sentence", vocabulary=PUBLIC))
    assert any(ENDS in row.mechanism.assumptions for row in planned)
