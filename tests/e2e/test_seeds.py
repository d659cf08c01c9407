"""Seed words in every mode: places, names, the plan, and what leaves."""

from functools import cache

import numpy as np
import pytest

import tertulia as tt
from tertulia.errors import ConfigError, InputError
from tertulia.methods.common.seeds import SeedWarning
from tertulia.runs.directory import Run
from tertulia.runs.one_machine import hosts_of

SUBJECTS = [
    ["heart", "artery", "valve", "pulse", "chest"],
    ["lung", "breath", "cough", "airway", "smoke"],
    ["bone", "joint", "fracture", "cast", "hip"],
    ["skin", "rash", "itch", "cream", "burn"],
]
WORDS = [word for subject in SUBJECTS for word in subject]
SEEDS = {"bones": ["bone", "Joint"], "lungs": ["lung", "breath"]}
PUBLIC = {"mode": "public", "words": WORDS}
SOUND = {"mode": "sound", "epsilon": 10.0, "vocabulary": PUBLIC, "seed_strength": 10}
SECURE = {"vocabulary": {"mode": "common"}}


def documents(seed, n):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(SUBJECTS[i % 4], 12)) for i in range(n)]


PARTIES = {name: documents(seed, 40 + 4 * seed) for seed, name in enumerate(["north", "south", "west", "east"])}
FEW = {"topics": 4, "sweeps": 5}
CASES = {
    "consensus": (tt.Consensus, {}, {}),
    "all seeded": (tt.Consensus, {"topics": 2}, {}),
    "robust": (tt.Consensus, {"robust": True}, {}),
    "sound": (tt.Consensus, SOUND, {}),
    "secure": (tt.Consensus, SECURE, {"federation": {"secure": True}}),
    "ftm": (tt.FTM, {"rounds": 2}, {}),
    "union-find": (tt.FTM, {"rounds": 2, "merge": "union-find"}, {}),
    "own number": (tt.FTM, {"rounds": 2}, {"party_settings": {"south": {"topics": 3}}}),
    "ftm sound": (tt.FTM, {"rounds": 2, "sweeps": 20, **SOUND}, {}),
    "alone": (tt.Alone, {}, {}),
    "pooled": (tt.Pooled, {}, {}),
}


def fit(method, settings, **options):
    return method(**{**FEW, **settings}).fit(PARTIES, seed=3, progress=False, **options)


@pytest.fixture(scope="module")
def seeded(tmp_path_factory):
    """A case's model with seeds, and the run's directory; each is trained once."""

    @cache
    def train(case):
        method, settings, options = CASES[case]
        directory = tmp_path_factory.mktemp("seeded") / "run"
        return fit(method, {"seeds": SEEDS, **settings}, directory=directory, **options), directory

    return train


def check_places(model):
    assert model.names[:2] == ["bones", "lungs"]
    assert not any(model.names[2:])
    for k, subject in ((0, SUBJECTS[2]), (1, SUBJECTS[1])):
        assert len({*model.top_words(4)[k]} & {*subject}) >= 3


@pytest.mark.parametrize("case", CASES)
def test_topic_k_is_seed_k(case, seeded):
    model, _ = seeded(case)
    if case != "all seeded":  # where two topics hold four subjects
        check_places(model)
        for own in model.local.values():
            check_places(own)
    assert model.top_words(1)[0][0] in ("bone", "joint")
    assert model.provenance["seeds"]["words"] == {name: list(words) for name, words in SEEDS.items()}


@pytest.mark.parametrize("case", ["consensus", "sound", "secure", "ftm"])
def test_seeds_are_no_release(case, seeded, tmp_path):
    method, settings, options = CASES[case]
    fit(method, settings, directory=tmp_path / "without", **options)
    left = []
    for directory in (seeded(case)[1], tmp_path / "without"):
        ledgers = [host.ledger.releases() for host in hosts_of(Run.open(directory))]
        left.append([[(row.step, row.what, row.non_private) for row in ledger] for ledger in ledgers])
    assert left[0] == left[1]


@pytest.mark.parametrize("case", ["consensus", "sound", "ftm"])
def test_runs_that_continue_keep_them(case, seeded, tmp_path):
    method, settings, _ = CASES[case]
    seeded(case)[0].save(tmp_path / "first")
    check_places(fit(method, {**settings, "topics": 5}, start_from=tmp_path / "first"))
    with pytest.raises(ConfigError, match="its first topics are 'bones', and the seeds are of 'hearts'"):
        fit(method, {**settings, "seeds": {"hearts": ["heart"]}}, start_from=tmp_path / "first")


def test_words_that_nobody_has_are_named():
    seeds = {"bones": ["bone", "wheeze"]}
    with pytest.warns(SeedWarning, match="seed words wheeze are not among the words that are modelled"):
        fit(tt.Consensus, {"seeds": seeds})
    with pytest.warns(SeedWarning, match="wheeze are on the list, and in nobody's documents"):
        fit(tt.Consensus, {"seeds": seeds, "vocabulary": {"mode": "public", "words": [*WORDS, "wheeze"]}})
    with pytest.raises(InputError, match="seeds of 'noises': none of wheeze is among the 20 words"):
        fit(tt.FTM, {"seeds": {"noises": ["wheeze"]}})


def test_a_party_needs_topics_beside_the_seeded_ones():
    with pytest.raises(InputError, match="2 topics have seeds, and a party has no others"):
        fit(tt.FTM, {"seeds": SEEDS}, party_settings={"south": {"topics": 2}})
