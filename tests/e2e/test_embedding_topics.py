"""EmbeddingTopics from end to end: subjects are found, epsilon is kept, and what can learn nothing stops."""

import shutil

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.metrics import normalized_mutual_info_score

import tertulia as tt
from helpers.attacks import Attacked
from helpers.runs import Interrupted, interrupt_at, outcome, prepared
from helpers.themes import PUBLIC, THEMES, themed
from tertulia.corpus import Corpus
from tertulia.errors import ConfigError, InputError, TertuliaError
from tertulia.methods.embedding_topics.budget import BITS, Terms
from tertulia.methods.embedding_topics.method import Describe, Gather, Seen, Sums, describe, gather
from tertulia.methods.embedding_topics.settings import EmbeddingTopicsSettings
from tertulia.privacy.home import open_home
from tertulia.privacy.mechanisms import Adjacency, Unit
from tertulia.runs.directory import Run
from tertulia.runs.driver import finish
from tertulia.runs.settings import RunSettings
from tertulia.view.dry_run import dry_run
from tertulia.view.pages.explorer.facts import facts_of

NAMES, K, DELTA = ("east", "north", "west"), 4, 1e-5
LISTED = {"mode": "listed", "words": PUBLIC["words"], "max_share": 1.0}


@pytest.fixture(scope="module")
def parties():
    return {name: themed(400, seed)[0] for seed, name in enumerate(NAMES)}


def method(**settings):
    return tt.EmbeddingTopics(**{"topics": K, "vocabulary": PUBLIC, "delta": DELTA, **settings})


def agreement(model, n=200, seed=99):
    texts, subjects = themed(n, seed)
    return normalized_mutual_info_score(subjects, model.assign(texts))


def spent(home, unit=Unit.DOCUMENT):
    ledger = open_home(home).ledger
    try:
        return ledger.cost(unit, Adjacency.ADD_REMOVE, DELTA).epsilon
    finally:
        ledger.close()


def fit(parties, directory, *, secure, **settings):
    homes = {name: {"home": str(directory / f"home-{name}")} for name in parties}
    model = method(**settings).fit(
        parties, directory=directory / "run", party_settings=homes, federation={"secure": secure}, seed=3
    )
    return model, {name: directory / f"home-{name}" for name in parties}


def test_subjects_are_found_and_federated_is_pooled(parties):
    shared = method().fit(parties, seed=1)
    pooled = method().fit({"all": [text for texts in parties.values() for text in texts]}, seed=1)
    assert np.allclose(shared.topic_word, pooled.topic_word, atol=1e-4)  # each document is rounded at its party
    assert agreement(shared) > 0.9
    assert facts_of(shared)["shares_of"] == "all documents"
    for words in shared.top_words(5):
        (subject,) = {name for name, own in THEMES.items() for word in words if word in own.split()}
        assert sum(word in THEMES[subject].split() for word in words) >= 4


@pytest.mark.parametrize("secure", [True, False])
def test_under_noise_subjects_are_found_and_the_ledger_has_what_was_claimed(parties, secure, tmp_path):
    model, homes = fit(parties, tmp_path, secure=secure, epsilon=12.0)
    assert agreement(model) > 0.75
    for home in homes.values():
        assert 0.99 * 12.0 < spent(home) <= 12.0
    assert model.provenance["embedding"]["asked"] == K
    assert model.provenance["embedding"]["fingerprint"]


def test_secure_sums_without_noise_find_the_same(parties):
    masked = method(vocabulary=LISTED).fit(parties, federation={"secure": True}, seed=1)
    assert agreement(masked) > 0.9


def test_with_secure_sums_and_no_noise_few_documents_add_nothing(parties):
    """Totals of fewer than five documents of a party could be read like these documents."""
    rare = "opera opera"  # at one party, in fewer documents than five
    changed = {name: [t.replace("opera", "piano") for t in texts] for name, texts in parties.items()}
    changed["west"] = [*changed["west"], *[f"{rare} {i}" for i in range(4)]]
    masked, plain = (
        method(vocabulary=words).fit(changed, federation={"secure": secure}, seed=1)
        for secure, words in ((True, {**LISTED, "min_parties": 1}), (False, PUBLIC))
    )
    assert plain.topic_word[:, plain.vocabulary.index["opera"]].max() > 1e-4
    if "opera" in masked.vocabulary.index:
        assert masked.topic_word[:, masked.vocabulary.index["opera"]].max() < 1e-6
    few = {**changed, "west": changed["west"][:4]}
    with pytest.raises(TertuliaError, match="nothing of fewer than 5 leaves"):
        method(vocabulary=LISTED).fit(few, federation={"secure": True})


def test_what_can_show_nothing_stops_and_spends_nothing(tmp_path):
    few = {name: themed(20, seed)[0] for seed, name in enumerate(NAMES)}
    with pytest.raises(ConfigError, match="no live topic: nothing was spent"):
        fit(few, tmp_path, secure=True, epsilon=0.5)
    declared = EmbeddingTopicsSettings(topics=K, epsilon=0.5, vocabulary=PUBLIC, declared_documents=60)
    with pytest.raises(ConfigError, match="nothing was spent"):
        tt.federate(declared, few)
    homes = {name: {"home": str(tmp_path / f"home-{name}")} for name in few}
    unknown = EmbeddingTopicsSettings(topics=K, epsilon=0.5, delta=DELTA, vocabulary=PUBLIC)
    with pytest.raises(ConfigError, match="88 % of the budget is not spent"):
        tt.federate(unknown, few, party_settings=homes, directory=tmp_path / "counted")
    assert spent(tmp_path / "home-north") < 0.25  # of 0.5: epsilon falls about as the root of the part


def test_check_says_what_to_expect(parties, tmp_path):
    corpora = {name: Corpus.from_texts(texts) for name, texts in parties.items()}
    settings = {"name": "embedding_topics", "topics": 4, "vocabulary": PUBLIC, "epsilon": 8.0}
    run = RunSettings(directory=str(tmp_path / "run"), method=settings, heldout=0.0)
    (expected,) = [line for line in dry_run(run, corpora, NAMES)["remarks"] if line.startswith("Expected")]
    assert expected.startswith("Expected: at epsilon 8 of a document, 1,200 documents give")
    assert "live topic" in expected


def test_dead_topics_are_no_topics(parties):
    with pytest.warns(UserWarning, match="of 12 topics are dead"):
        model = method(topics=12, epsilon=6.0).fit(parties, federation={"secure": True})
    about = model.provenance["embedding"]
    assert model.n_topics == about["live"] < 12
    assert about["live"] + about["dead"] == 12
    assert set(model.assign(themed(50, 5)[0])) <= set(range(-1, model.n_topics))


def test_seeds_start_topics_and_name_them(parties):
    seeds = {"music": ["guitar", "concert"], "money": ["bank", "loan"]}
    model = method(seeds=seeds).fit(parties)
    assert model.names[:2] == ["music", "money"]
    for k, name in enumerate(seeds):
        assert set(model.top_words(6)[k]) <= set(THEMES[name].split())
    with pytest.raises(InputError, match="none of xqzzy is among"):
        method(seeds={"odd": ["xqzzy"]}).fit(parties)


def test_all_documents_of_a_user_are_one(tmp_path):
    texts = themed(1_200, 4)[0]
    frame = pl.DataFrame({"text": texts, "user": [f"u{i // 2}" for i in range(1_180)] + [None] * 20})
    model = method(unit="user", epsilon=12.0).fit(
        {"north": frame}, directory=tmp_path / "run", party_settings={"north": {"home": str(tmp_path / "home")}}
    )
    assert 0.99 * 12.0 < spent(tmp_path / "home", Unit.USER) <= 12.0
    assert spent(tmp_path / "home", Unit.DOCUMENT) >= 12.0
    assert agreement(model) > 0.5
    with pytest.raises(TertuliaError, match="name no user"):
        method(unit="user").fit({"north": texts})


def test_it_goes_on_after_a_crash_with_the_same_bits(parties, tmp_path):
    settings = {"name": "embedding_topics", "topics": K, "vocabulary": PUBLIC, "epsilon": 8.0, "delta": DELTA}
    whole = prepared(tmp_path / "whole", parties, settings)
    broken = Run.open(shutil.copytree(whole.directory, tmp_path / "broken"))
    finish(whole)
    with pytest.raises(Interrupted):
        finish(broken, observe=interrupt_at(3))
    finish(broken)
    assert outcome(broken) == outcome(whole)


def test_topics_over_time_are_one_more_sum_within_the_same_epsilon(tmp_path):
    """Music in the first month alone, and documents without a date in none."""
    texts, subjects = themed(1_200, 6)
    months = ["2026-01" if subject == 3 else ("2026-02", "2026-03", "")[i % 3] for i, subject in enumerate(subjects)]
    frame = pl.DataFrame({"text": texts, "date": months})
    parties = {"north": frame[:700], "south": frame[700:]}
    periods = {"by": "month", "since": "2026-01", "until": "2026-03"}
    exact = method(**periods).fit(parties)
    table = exact.trends()
    music = next(k for k, words in enumerate(exact.top_words(3)) if words[0] in THEMES["music"].split())
    found = dict(table.filter(pl.col("topic") == music).select("period", "documents").iter_rows())
    assert found["2026-01"] > 250 > 20 > found["2026-02"]
    dated = sum(bool(month) for month in months)
    assert table["documents"].sum() == pytest.approx(dated, abs=2)
    assert table.group_by("period").agg(pl.col("share").sum())["share"].to_list() == [pytest.approx(1.0)] * 3
    noisy, homes = fit(parties, tmp_path, secure=False, epsilon=20.0, **periods)
    assert noisy.trends()["deviation"][0] > 1
    assert 0.99 * 20.0 < spent(homes["north"]) <= 20.0
    with pytest.raises(InputError, match="released no documents by period"):
        method().fit(parties).trends()
    with pytest.raises(TertuliaError, match="has no dates"):
        method(**periods).fit({"north": texts})
    with pytest.raises(ConfigError, match="needs `since` and `until`"):
        method(by="month").fit(texts)


# --- one machine ------------------------------------------------------------------------------------------------------


def test_on_one_machine_it_is_an_estimator():
    texts, subjects = themed(300, 7)
    model = tt.EmbeddingTopics(topics=K, random_state=1).fit(texts)
    assert normalized_mutual_info_score(subjects, model.assign(texts)) > 0.9
    assert model.transform(texts).shape == (300, K)
    assert model == clone(model).fit(texts)
    assert model.set_output(transform="polars").transform(texts[:3]).columns == [f"topic{k}" for k in range(K)]
    with pytest.raises(ConfigError, match="'federation' goes with several parties"):
        model.fit(texts, federation={"secure": True})


def test_a_function_gives_vectors_of_its_own():
    texts, subjects = themed(200, 8)

    def subjects_of(given):
        found = np.array([[sum(word in own for word in text.split()) for own in THEMES.values()] for text in given])
        return found + 0.01

    model = tt.EmbeddingTopics(topics=K, embedding=subjects_of, random_state=2).fit(texts)
    assert normalized_mutual_info_score(subjects, model.assign(texts)) > 0.7
    assert model.transform(texts[:2]).shape == (2, model.n_topics)
    with pytest.raises(InputError, match="one row of numbers for each text"):
        tt.EmbeddingTopics(topics=2, embedding=lambda given: np.ones(3)).fit(texts)


@pytest.mark.filterwarnings("ignore:.* topics for")
@pytest.mark.parametrize(
    ("texts", "settings", "why"),
    [
        ([], {}, "documents holds a word"),
        (["", " "], {}, "documents holds a word"),
        (["one document of some words"], {"vocabulary": PUBLIC}, "no document has a vector"),
        (["the doctor and the bank"], {"vocabulary": PUBLIC}, "there are 1 documents with a word"),
        (["дом кот"] * 20, {"vocabulary": {"max_share": 1.0}}, "no document has a vector"),
        (["bank doctor"], {"topics": 2, "embedding": "nowhere.txt"}, "nowhere.txt"),
        (["bank doctor"], {"seeds": {"a": ["bank"]}, "embedding": "given"}, "seeds need vectors of words"),
    ],
)
def test_documents_that_make_no_topics_are_refused(texts, settings, why):
    with pytest.raises(TertuliaError, match=why):
        tt.EmbeddingTopics(**{"topics": 3, **settings}).fit(texts)


def test_copies_by_the_thousand_are_one_cluster():
    texts = ["the doctor in the hospital"] * 2_000 + themed(100, 2)[0]
    model = method(topics=3).fit(texts)
    assert model.weights.max() > 0.9


def test_parties_with_other_embeddings_are_refused(tmp_path, parties):
    for name, number in (("mine", 1), ("other", 2)):
        (tmp_path / f"{name}.txt").write_text("".join(f"{word} 1 {number} {len(word)}\n" for word in PUBLIC["words"]))
    settings = method(embedding=str(tmp_path / "mine.txt"))
    with pytest.raises(TertuliaError, match="another embedding than the plan"):
        settings.fit(parties, party_settings={"north": {"embedding": str(tmp_path / "other.txt")}})
    narrow = {n: Corpus.from_texts(t).with_embeddings(np.ones((len(t), 3 + (n == "west")))) for n, t in parties.items()}
    with pytest.raises(TertuliaError):
        method(embedding="given").fit(narrow)


# --- a hostile server -------------------------------------------------------------------------------------------------


@pytest.fixture
def attacked(tmp_path):
    settings = {"name": "embedding_topics", "topics": 2, "vocabulary": PUBLIC, "epsilon": 3.0, "rounds": 2}
    return Attacked(tmp_path, settings, "allow_clear = false\n")


def terms(**changes):
    settings = EmbeddingTopicsSettings(topics=2, vocabulary=PUBLIC, epsilon=3.0, rounds=2, seed=0)
    return settings.part(Terms, **changes)


@pytest.mark.parametrize(
    "changed", [{"epsilon": 300.0}, {"epsilon": None}, {"rounds": 1}, {"delta": 0.5}, {"unit": "user"}, {"topics": 1}]
)
def test_a_question_with_less_noise_than_planned_is_refused(attacked, changed):
    assert attacked.ask(describe, Describe(tuple(PUBLIC["words"]), terms(**changed)), "sum").kind != "ok"
    assert attacked.host.ledger.releases() == []


def test_a_planned_question_is_answered_once(attacked):
    ask = Describe(tuple(PUBLIC["words"]), terms())
    assert attacked.ask(describe, ask, "sum").kind == "ok"
    assert attacked.ask(describe, ask, "sum").kind != "ok"
    assert attacked.ask(describe, ask, "each").kind != "ok"


def test_made_up_clusters_bring_the_same_noise(attacked):
    """Without secure sums a server may choose the totals, and so the centroids: the noise does not depend on them."""
    V = len(PUBLIC["words"])
    seen = Seen(np.full(V, 99 << BITS), np.zeros(100, np.int64), np.array([99 << BITS]), np.zeros(2, np.int64))
    chosen = np.zeros((2, 100), np.int64)
    chosen[0, 0] = 1 << 40
    ask = Gather(tuple(PUBLIC["words"]), 0, terms(), seen, 1.0, Sums(chosen, np.zeros(2, np.int64)))
    assert attacked.ask(gather, ask, "sum").kind == "ok"
    (release,) = attacked.host.ledger.releases()
    assert release.event["noise_multiplier"] > 3
