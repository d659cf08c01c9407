"""One party of five really sends poison: what it does to the plain methods, and what is done against it."""

import warnings

import numpy as np
import pytest

from helpers.planted import planted
from helpers.poisons import Poisoned, copied_topics, random_topics, scaled
from helpers.runs import Interrupted, interrupt_at, outcome, prepared
from tertulia.corpus import Corpus
from tertulia.errors import InputError, QuorumError
from tertulia.methods.common.local_lda import LocalModel
from tertulia.metrics import completion
from tertulia.runs.driver import finish
from tertulia.runs.one_machine import hosts_of
from tertulia.view.console import describe
from tertulia.view.tables import disclosures_of_hosts

pytestmark = pytest.mark.filterwarnings("ignore:merging")
V, LIAR = 400, "p4"
WORDS = {"mode": "public", "words": [f"w{v}" for v in range(V)]}
LDA = {"topics": 6, "vocabulary": WORDS, "evaluate": False}
CONSENSUS = {**LDA, "name": "consensus", "rounds": 4, "start_sweeps": 10, "sweeps": 3}
FTM = {**LDA, "name": "ftm", "rounds": 2, "sweeps": 15}


def documents(seed, n, length=40):
    made = planted(seed, n, length, V, 6, 0.2)
    return [" ".join(f"w{w}" for w in made.words[i * length : (i + 1) * length]) for i in range(n)]


TEXTS = documents(5, 700)
PARTIES = {f"p{i}": TEXTS[i * 100 : (i + 1) * 100] for i in range(5)}
HONEST = {party: texts for party, texts in PARTIES.items() if party != LIAR}
HELDOUT = Corpus.from_texts(TEXTS[500:])


def trained(directory, method, poison=None, parties=PARTIES, **how):
    run = prepared(directory / "run", parties, method, heldout=0.0)
    transport = run.transport("local", 1)
    return finish(run, transport=Poisoned(transport, LIAR, poison, **how) if poison else transport)


def perplexity(model):
    return completion(model.topic_word, model.alpha, HELDOUT.encode(model.vocabulary), smoothing=0.01).perplexity


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """The plain methods' perplexity without the party that lies."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            m["name"]: perplexity(trained(tmp_path_factory.mktemp("clean"), m, None, HONEST)) for m in (CONSENSUS, FTM)
        }


POISONS = {"random": random_topics(3), "scaled": scaled(100), "copied": copied_topics}


@pytest.mark.parametrize("kind", POISONS)
def test_consensus_leaves_out_a_party_without_support(kind, clean, tmp_path):
    model = trained(tmp_path, {**CONSENSUS, "robust": True}, POISONS[kind])
    assert perplexity(model) < 1.02 * clean["consensus"]
    assert [facts.get("left_out") for facts in model.history[2:]] == [[LIAR]] * 4
    assert "no support for p4" in describe(model.history[-1])


def test_a_plain_sum_is_bent(clean, tmp_path):
    for kind in ("random", "scaled"):
        bent = trained(tmp_path / kind, CONSENSUS, POISONS[kind], sweeps=CONSENSUS["sweeps"])
        assert perplexity(bent) > 1.03 * clean["consensus"]


def test_a_party_that_takes_out_more_than_it_put_in_ends_nothing(tmp_path):
    """Differences may be below zero, so a liar's can make a sum negative: it counts as nothing, and the run goes on."""

    def takes_out(reply):
        if isinstance(reply, LocalModel):
            return reply
        fields = {name: np.asarray(x) for name, x in vars(reply).items()}
        return type(reply)(**{name: np.full(x.shape, -(10**6), np.int32) for name, x in fields.items()})

    model = trained(tmp_path, CONSENSUS, takes_out)
    assert np.isfinite(model.topic_word).all()
    assert (model.topic_word >= 0).all()


def test_honest_parties_all_count_and_the_ledger_says_who_sees_what(tmp_path):
    model = trained(tmp_path, {**CONSENSUS, "robust": True})
    assert [facts["left_out"] for facts in model.history[2:]] == [[]] * 4
    run = prepared(tmp_path / "again", PARTIES, {**CONSENSUS, "robust": True}, heldout=0.0)
    finish(run)
    left = disclosures_of_hosts(hosts_of(run))
    seen = {row["seen"] for row in left if row["party"] == "p0" and row["what"] == "topic-word counts"}
    assert seen == {"singly by the server"}


def test_invented_topics_at_the_start_take_no_room(clean, tmp_path):
    """A party that lies only before anybody counts, so that all support its counts."""

    def liar_at_first(reply):
        return random_topics(3)(reply) if isinstance(reply, LocalModel) else reply

    model = trained(tmp_path, {**CONSENSUS, "robust": True}, liar_at_first, minds=True)
    assert perplexity(model) < 1.02 * clean["consensus"]
    assert [facts["left_out"] for facts in model.history[2:]] == [[]] * 4


def test_who_was_wrong_once_counts_again(tmp_path):
    """Its own software goes on from its true counts, and hears that they are not in the sum."""
    replies = []

    def wrong_at_first(reply):
        replies.append(reply)
        return random_topics(3)(reply) if len(replies) == 3 else reply

    model = trained(tmp_path, {**CONSENSUS, "robust": True}, wrong_at_first, minds=True)
    assert [facts["left_out"] for facts in model.history[2:]] == [[LIAR], [], [], []]


def test_a_run_that_is_resumed_leaves_out_the_same(tmp_path):
    runs = [prepared(tmp_path / name, PARTIES, {**CONSENSUS, "robust": True}, heldout=0.0) for name in "ab"]
    whole, broken = (lambda observe=None, run=run: finish(
        run, observe=observe, transport=Poisoned(run.transport("local", 1), LIAR, POISONS["random"])
    ) for run in runs)  # fmt: skip
    whole()
    with pytest.raises(Interrupted):
        broken(interrupt_at(3))
    broken()
    one, other = (outcome(run)["server"] for run in runs)
    assert one == other


def test_three_parties_cannot_judge(tmp_path):
    few = {party: PARTIES[party] for party in ("p0", "p1", "p2")}
    with pytest.raises(QuorumError, match="`robust` needs 4"):
        trained(tmp_path, {**CONSENSUS, "robust": True}, parties=few)


def test_nobody_weighs_more_in_ftm_than_is_agreed(clean, tmp_path):
    bent = perplexity(trained(tmp_path / "bent", FTM, scaled(1000)))
    held = perplexity(trained(tmp_path / "held", {**FTM, "max_weight": 1.0}, scaled(1000)))
    assert held < 1.02 * clean["ftm"] < bent


def test_topics_of_one_party_are_not_in_the_shared_model(tmp_path):
    bent = trained(tmp_path / "bent", FTM, random_topics(3))
    held = trained(tmp_path / "held", {**FTM, "min_support": 2}, random_topics(3))
    assert bent.n_topics >= 12
    assert held.n_topics <= 7
    assert held.local[LIAR].n_topics == 6  # what is its own stays its own
    with pytest.raises(InputError, match="no topic is shared by 5 parties"):
        trained(tmp_path / "none", {**FTM, "min_support": 5}, random_topics(3))
    assert np.isclose(held.weights.sum(), 1.0)
