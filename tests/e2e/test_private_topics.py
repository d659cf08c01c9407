"""PrivateTopics from end to end: topics are found, epsilon is kept, and a run that can learn nothing stops."""

import shutil

import numpy as np
import polars as pl
import pytest

import tertulia as tt
from helpers.attacks import Attacked, says_nothing
from helpers.runs import Interrupted, interrupt_at, outcome, prepared
from tertulia.corpus import Corpus
from tertulia.errors import ConfigError, InputError
from tertulia.methods.private_topics.budget import Noise
from tertulia.methods.private_topics.method import (
    Describe,
    Expect,
    Pair,
    bins_of,
    describe,
    expect,
    median_length,
    pair,
)
from tertulia.methods.private_topics.settings import PrivateTopicsSettings
from tertulia.metrics.similarity import match
from tertulia.privacy.home import open_home
from tertulia.privacy.mechanisms import Adjacency, Unit
from tertulia.runs.directory import Run
from tertulia.runs.driver import finish
from tertulia.runs.settings import RunSettings
from tertulia.view.dry_run import dry_run

V, K, NAMES = 120, 4, ("east", "north", "west")
WORDS = tuple(f"{a}{b}{c}word" for a in "bcdfg" for b in "aeiou" for c in "lmnrst")[:V]
PUBLIC = {"mode": "public", "words": list(WORDS)}
DELTA = 1e-5


def topics():
    return np.random.default_rng(7).dirichlet(np.full(V, 0.08), K)


def documents(n, seed, length=40):
    """Documents with one main topic each."""
    rng = np.random.default_rng(seed)
    main, mixed = rng.integers(0, K, n), np.full((K, K), 0.05) + 0.8 * np.eye(K)
    return [[WORDS[w] for w in rng.choice(V, length, p=mixed[k] @ topics())] for k in main]


@pytest.fixture(scope="module")
def parties():
    return {name: documents(500, seed) for seed, name in enumerate(NAMES)}


def method(**settings):
    return tt.PrivateTopics(**{"topics": K, "vocabulary": PUBLIC, "epsilon": 8.0, "delta": DELTA, **settings})


def spent(home, unit=Unit.DOCUMENT, delta=DELTA):
    ledger = open_home(home).ledger
    try:
        return ledger.cost(unit, Adjacency.ADD_REMOVE, delta).epsilon
    finally:
        ledger.close()


def fit(parties, directory, *, secure, **settings):
    homes = {name: {"home": str(directory / f"home-{name}")} for name in parties}
    run = method(**settings).fit(
        parties, directory=directory / "run", party_settings=homes, federation={"secure": secure}, seed=3
    )
    return run, {name: directory / f"home-{name}" for name in parties}


@pytest.mark.parametrize("secure", [True, False])
def test_topics_are_found_and_the_ledger_has_what_was_claimed(parties, secure, tmp_path):
    model, homes = fit(parties, tmp_path, secure=secure, epsilon=20.0)  # at 8 noise hides a topic now and then
    assert match(topics(), model.topic_word) > 0.9
    for home in homes.values():
        assert 0.99 * 20.0 < spent(home) <= 20.0


def test_without_noise_it_is_better_and_federated_is_pooled(parties):
    clear = method(mode="clear").fit(parties)
    pooled = method(mode="clear").fit({"all": [text for texts in parties.values() for text in texts]})
    assert np.allclose(clear.topic_word, pooled.topic_word, atol=1e-12)
    assert match(topics(), clear.topic_word) > 0.95


def test_what_shows_no_topic_stops_and_keeps_the_rest_of_the_budget(tmp_path):
    few = {name: documents(30, seed) for seed, name in enumerate(NAMES)}
    with pytest.raises(ConfigError, match="show no topic: 95 % of the budget is not spent"):
        fit(few, tmp_path, secure=True, epsilon=1.0)
    assert spent(tmp_path / "home-north") < 0.35  # of 1: epsilon falls about as the root of the part
    with pytest.raises(ConfigError, match="nothing was spent"):
        fit(few, tmp_path / "declared", secure=True, epsilon=1.0, declared_documents=90, words_per_document=40)
    assert spent(tmp_path / "declared" / "home-north") == 0


def test_check_says_what_to_expect(parties, tmp_path):
    settings = {"name": "private_topics", "topics": 30, "vocabulary": PUBLIC, "epsilon": 8.0}
    corpora = {name: Corpus.from_texts(texts) for name, texts in parties.items()}

    def remarks(known, roster, **changes):
        run = RunSettings(directory=str(tmp_path / "run"), method={**settings, **changes}, heldout=0.0)
        return dry_run(run, known, roster)["remarks"]

    (expected,) = [line for line in remarks(corpora, NAMES) if line.startswith("Expected")]
    assert expected.startswith("Expected: at epsilon 8 of a document, 1,500 documents of about 40 words show about ")
    alone = {"north": corpora["north"]}  # one party does not know how many documents the others have
    assert not [line for line in remarks(alone, NAMES) if line.startswith("Expected")]
    (declared,) = [line for line in remarks(alone, NAMES, declared_documents=1_000) if line.startswith("Expected")]
    assert "1,000 documents of about 100 words" in declared


def test_fewer_topics_are_learned_where_fewer_show(parties):
    with pytest.warns(UserWarning, match=r"topics show above the noise at epsilon 8, fewer than the 12 asked for"):
        model = method(topics=12).fit(parties, federation={"secure": True})
    assert 3 <= len(model.topic_word) <= 6  # four are there


def test_all_documents_of_a_user_are_one(tmp_path):
    frame = pl.DataFrame(
        {
            "text": [" ".join(words) for words in documents(600, 1)],
            "user": [f"u{i // 2}" for i in range(590)] + [None] * 10,
        }
    )
    method(unit="user", adapt=False).fit(
        {"north": frame}, directory=tmp_path / "run", party_settings={"north": {"home": str(tmp_path / "home")}}
    )
    assert 0.99 * 8.0 < spent(tmp_path / "home", Unit.USER) <= 8.0
    assert spent(tmp_path / "home", Unit.DOCUMENT) >= 8.0


def test_documents_without_users_are_refused_for_users(parties):
    with pytest.raises(Exception, match="name no user"):
        method(unit="user").fit(parties)


def run_of(directory, parties, engine="local"):
    settings = {"name": "private_topics", "topics": K, "vocabulary": PUBLIC, "epsilon": 8.0, "delta": DELTA}
    return prepared(directory, parties, settings, engine=engine)


def test_it_goes_on_after_a_crash_with_the_same_bits(parties, tmp_path):
    whole = run_of(tmp_path / "whole", parties)
    broken = Run.open(shutil.copytree(whole.directory, tmp_path / "broken"))
    finish(whole)
    with pytest.raises(Interrupted):
        finish(broken, observe=interrupt_at(2))
    finish(broken)
    assert outcome(broken) == outcome(whole)


# --- a hostile server -------------------------------------------------------------------------------------------------


@pytest.fixture
def attacked(tmp_path):
    return Attacked(
        tmp_path,
        {"name": "private_topics", "topics": 2, "vocabulary": PUBLIC, "epsilon": 3.0, "rounds": 2},
        "allow_clear = false\n",
    )


def noise(**changes):
    return Noise(**{"mode": "doc", "epsilon": 3.0, "delta": 1e-6, "unit": "document", "rounds": 2, **changes})


@pytest.mark.parametrize(
    "changed", [{"epsilon": 300.0}, {"mode": "clear"}, {"rounds": 1}, {"delta": 0.5}, {"unit": "user"}]
)
def test_a_question_with_less_noise_than_planned_is_refused(attacked, changed):
    answer = attacked.ask(describe, Describe(WORDS, noise(**changed)), "sum")
    assert answer.kind != "ok"
    assert says_nothing(answer.text)
    assert attacked.host.ledger.releases() == []


def test_a_planned_question_is_answered_once(attacked):
    assert attacked.ask(describe, Describe(WORDS, noise()), "sum").kind == "ok"
    assert attacked.ask(describe, Describe(WORDS, noise()), "sum").kind != "ok"
    assert attacked.ask(describe, Describe(WORDS, noise()), "each").kind != "ok"


@pytest.mark.parametrize("chosen", [[3, 2], [1, 1], [0, V], list(range(5_000))])
def test_pairs_of_other_places_are_refused(attacked, chosen):
    answer = attacked.ask(pair, Pair(WORDS, np.array(chosen, np.int32), noise()), "sum")
    assert answer.kind != "ok"
    assert attacked.host.ledger.releases() == []


def test_a_larger_clip_brings_more_noise(attacked):
    """The server chooses the clip; epsilon does not depend on it."""
    phi = np.full((2, V), 1 / V)
    for place, clip in enumerate((1.0, 100.0)):
        ask = Expect(WORDS, place, phi, np.full(2, 0.5), clip, noise())
        assert attacked.ask(expect, ask, "sum").kind == "ok"
    small, large = attacked.host.ledger.releases()
    assert large.params["sigma"] == pytest.approx(100 * small.params["sigma"])
    assert large.event["noise_multiplier"] == pytest.approx(small.event["noise_multiplier"])


# --- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"epsilon": None}, "needs an epsilon of a document"),
        ({"vocabulary": {"mode": "union"}}, "public word list"),
        ({"declared_documents": 10_000_000}, "is not below 1 / 10000000"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"paired_words": 4_000}, "paired_words"),
    ],
)
def test_settings_that_keep_no_promise_are_refused(settings, why, parties):
    with pytest.raises(ConfigError, match=why):
        tt.PrivateTopics(**{"topics": K, "vocabulary": PUBLIC, **settings}).fit(parties)


def test_masked_sums_without_noise_are_refused():
    assert "comparison" in PrivateTopicsSettings(mode="clear").why_not_secure(continues=False)
    assert PrivateTopicsSettings().why_not_secure(continues=False) is None


def test_lengths_and_their_median():
    lengths = np.array([0, 1, 30, 33, 40, 41, 50, 10**6])
    histogram = np.bincount(bins_of(lengths), minlength=32).astype(float)
    assert 28 < median_length(histogram) < 48
    assert median_length(np.full(32, -1.0)) == 1.0


def test_words_off_the_list_leave_nothing():
    with pytest.raises(InputError, match="no two words of the list occur"):
        tt.PrivateTopics(topics=2, mode="clear", vocabulary=PUBLIC, adapt=False).fit({"north": ["other words"] * 20})
