"""Seed words as settings, as a prior, and as an order of first topics."""

import numpy as np
import pytest

import tertulia as tt
from tertulia.errors import ConfigError, InputError
from tertulia.federation.codec import decode, encode
from tertulia.federation.party.door import agrees
from tertulia.methods.common.lda_settings import Training
from tertulia.methods.common.seeds import Prior, SeedWarning, find_unknown, why_other_seeds
from tertulia.methods.consensus.merged_start import StartTopics
from tertulia.runs.plan import plan_of
from tertulia.runs.settings import RunSettings

SEEDS = {"rain": ["rain", "Wet Day"], "money": ["bank"]}
WORDS = ("sun", "rain", "wet_day", "bank", "loan")
DOCUMENTS = ["sun rain rain cloud"] * 20 + ["bank loan money"] * 20


def training(**changes):
    return Training(topics=3, seeds=SEEDS, seed_strength=7, **changes)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"seeds": {"rain": "rain"}}, r"a list of words belongs here: write \['rain'\]"),
        ({"seeds": {"rain": []}}, "'rain' has no seed words"),
        ({"seeds": {"rain": ["rain", " "]}}, "or an empty one"),
        ({"seeds": {" ": ["rain"]}}, "names no topic"),
        ({"seeds": {"rain\x1b[31m": ["rain"]}}, "names no topic"),
        ({"seeds": {"r" * 81: ["rain"]}}, "names no topic"),
        ({"seeds": ["rain"]}, "dictionary"),
        ({"seeds": {"a": ["x"], "b": ["y"], "c": ["z"]}, "topics": 2}, "3 topics have seeds, and topics = 2"),
        ({"seeds": SEEDS, "seed_strength": 0}, "greater than or equal to 1"),
        ({"seeds": SEEDS, "sampler": "warp"}, "not with 'warp'"),
    ],
)
@pytest.mark.parametrize("method", [tt.Consensus, tt.FTM, lambda **given: tt.LDA(**given).fit(DOCUMENTS)])
def test_wrong_seeds_are_refused_in_words(method, wrong, says):
    with pytest.raises(ConfigError, match=says):
        method(**wrong)


def test_papers_and_sentences_have_no_seeds():
    with pytest.raises(ConfigError, match="the paper to the letter"):
        tt.FTM(seeds=SEEDS, mode="paper", epsilon=5.0)
    with pytest.raises(ConfigError, match="one topic for a sentence"):
        tt.FTM(seeds=SEEDS, model="sentence")
    with pytest.raises(ConfigError, match="learn_beta"):
        tt.LDA(seeds=SEEDS, learn_beta=True).fit(DOCUMENTS)


def test_the_prior_has_its_pseudo_tokens_where_the_seeds_are():
    prior = Prior.of(training(), WORDS)
    assert prior.counts(3).tolist() == [[0, 7, 7, 0, 0], [0, 0, 0, 7, 0], [0, 0, 0, 0, 0]]
    assert prior.beside(3).dtype == np.int32
    assert prior.beside(3).tolist() == prior.counts(3).T.tolist()
    assert Prior.of(Training(topics=3), WORDS) is None


def test_first_topics_are_put_into_the_order_of_the_seeds():
    first, prior = np.array([[9, 0, 0, 1, 9], [1, 1, 0, 8, 8], [9, 7, 2, 0, 0]]), Prior.of(training(), WORDS)
    assert prior.arrange(first, 3).tolist() == first[[2, 1, 0]].tolist()
    assert prior.arrange(first / 4, 3).tolist() == (first[[2, 1, 0]] / 4).tolist()
    assert prior.arrange(first[[1, 0, 2]], 2).tolist() == first[[0, 1, 2]].tolist()  # the last one is general
    unknown = Prior.of(Training(topics=3, seeds={"a": ["nowhere"], "money": ["bank"]}), WORDS)
    assert unknown.arrange(first, 3)[1].tolist() == first[1].tolist()


def test_words_that_nobody_has_are_named():
    config = Training(topics=3, seeds={"rain": ["rain", "hail"], "money": ["bank", "coin", "hail"]})
    assert find_unknown(config, WORDS) == ("hail", "coin")
    with pytest.raises(InputError, match="seeds of 'rain': none of hail, snow is among the 5 words"):
        find_unknown(Training(topics=3, seeds={"rain": ["hail", "snow"]}), WORDS)
    with pytest.warns(SeedWarning, match="seed words coin are not among"):
        tt.LDA(topics=2, seeds={"money": ["bank", "coin"]}, sweeps=5).fit(DOCUMENTS, progress=False)


def test_a_party_answers_only_the_seeds_of_the_plan():
    method = tt.Consensus(topics=3, seeds=SEEDS, seed_strength=7, mode="sound", epsilon=8.0, sweeps=50,
                          vocabulary={"mode": "public", "words": WORDS})  # fmt: skip
    plan = plan_of(RunSettings(method=method, directory="run"), ("north", "south"))
    asked = method.part(Training)
    assert agrees(asked, plan.settings)
    assert agrees(decode(encode(asked)), plan.settings)
    assert not agrees(asked.replace(seeds={"rain": ["rain"]}), plan.settings)
    assert not agrees(asked.replace(seed_strength=8), plan.settings)


def test_merged_topics_keep_the_places_of_seeded_ones():
    one, other = np.eye(4, dtype=np.float32), np.eye(4, dtype=np.float32)[[1, 0, 3, 2]]
    place = np.tile(np.arange(4), 2)
    topics = StartTopics(np.concatenate([one, other]), np.repeat([30.0, 10.0], 4), np.repeat(["a", "b"], 4), place, 2)
    assert topics.clusters(4).tolist() == [0, 1, 2, 3, 0, 1, 3, 2]
    assert topics.merge(4)[0].tolist() == [3000, 1000, 0, 0]
    assert topics.clusters(2).max() == 1
    left = topics.without((), np.array([0, 900, 900, 0]))  # hardly used, but seeded
    assert sorted(set(left.place[left.party_of == "a"].tolist())) == [0, 1, 2]


def test_a_model_of_other_seeds_is_not_continued():
    model = tt.LDA(topics=2, seeds={"rain": ["rain"]}, sweeps=5).fit(DOCUMENTS, progress=False)
    assert why_other_seeds(Training(topics=2, seeds={"rain": ["sun"]}), model.topics_) is None
    assert "'rain', and the seeds are of 'money'" in why_other_seeds(
        Training(topics=2, seeds={"money": ["bank"]}), model.topics_
    )
    assert "1 of its topics have seeds, and topics = 0" in why_other_seeds(
        Training.model_construct(topics=0, seeds={}), model.topics_
    )
    with pytest.raises(ConfigError, match="cannot be continued with other seeds"):
        tt.LDA(seeds={"money": ["bank"]}).fit(DOCUMENTS, start=model)


def test_seeded_topics_of_one_machine_keep_place_and_name():
    model = tt.LDA(topics=2, seeds={"money": ["loan"], "rain": ["Cloud"]}, sweeps=30).fit(DOCUMENTS, progress=False)
    assert model.names == ["money", "rain"]
    assert [set(words) for words in model.top_words(3)] == [{"bank", "loan", "money"}, {"cloud", "rain", "sun"}]
    again = tt.LDA(sweeps=10).fit(["bank loan money"] * 30, start=model, progress=False)
    assert again.names == model.names
    assert again.provenance["seeds"] == model.provenance["seeds"]
    assert again.top_words(3)[0] == model.top_words(3)[0]
