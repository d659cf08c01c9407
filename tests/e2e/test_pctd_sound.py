"""PC-TD's mode `sound`: topics from clipped noisy sums, the epsilon of a document, shared noise, refusals."""

import shutil
from contextlib import closing

import numpy as np
import pytest

import tertulia as tt
from helpers.attacks import Attacked
from helpers.attacks_words import ask, make_party
from helpers.federations import BAR, WORDS, K, planted, recovered
from helpers.runs import Interrupted, interrupt_at, outcome, prepared
from helpers.texts import PUBLIC, STEMS, halves
from tertulia.corpus import Corpus
from tertulia.errors import ConfigError, PolicyRefusal
from tertulia.federation.party.host import PartyHost
from tertulia.methods.pctd import method as pctd
from tertulia.methods.pctd.clipped import BITS, clip_of, deviation
from tertulia.methods.pctd.method import STATISTICS, ClippedTask, expect_clipped
from tertulia.methods.pctd.settings import SumNoise, UnitSettings
from tertulia.privacy.accounting import cost
from tertulia.privacy.ledger import Ledger
from tertulia.privacy.mechanisms import Adjacency, Unit
from tertulia.privacy.mechanisms.gaussian import sigma_for
from tertulia.privacy.policy import Policy
from tertulia.runs.budgets import check_budgets
from tertulia.runs.directory import Run
from tertulia.runs.driver import finish
from tertulia.runs.settings import RunSettings
from tertulia.view.dry_run import dry_run

PARTIES = {"north": halves(1), "south": halves(2, 40), "west": halves(3, 10)}
SOUND = {"name": "pctd", "mode": "sound", "epsilon": 4.0, "topics": 2, "rounds": 3, "vocabulary": PUBLIC}
PAPERS_OWN = r"sigma and paper\.noise_on go with mode 'paper'"
NOISE = SumNoise(epsilon=4.0, rounds=3, delta=1e-6, words_per_document=100)


def texts_of_sentences(seed: int, documents: int = 100) -> list[str]:
    """Documents of six sentences; each is of one planted topic."""
    rng = np.random.default_rng(seed)
    texts = []
    for theta in rng.dirichlet(np.full(K, 0.1), documents):
        sentences = [" ".join(rng.choice(WORDS, 6, p=planted()[k])) for k in rng.choice(K, 6, p=theta)]
        texts.append(". ".join(sentences) + ".")
    return texts


def releases_of(directory, name="north"):
    with closing(Ledger(Run.open(directory).party_directory(name) / "ledger.sqlite")) as ledger:
        return [release for release in ledger.releases() if release.what == STATISTICS]


def real_epsilon(releases) -> float:
    return cost(releases, Unit.DOCUMENT, Adjacency.ADD_REMOVE, 1e-6).epsilon


@pytest.mark.parametrize("secure", [False, True])
def test_planted_topics_are_found_at_a_large_epsilon(secure, tmp_path):
    method = tt.PCTD(
        topics=K, unit="sentence", rounds=8, mode="sound", epsilon=100.0, words_per_document=36,
        vocabulary={"mode": "public", "words": WORDS},
    )  # fmt: skip
    parties = {name: texts_of_sentences(seed) for seed, name in enumerate("abc")}
    model = method.fit(parties, seed=1, heldout=0.0, directory=tmp_path / "run", federation={"secure": secure})
    assert recovered(model) > BAR
    releases = releases_of(tmp_path / "run", "b")
    assert len(releases) == 8
    assert {(r.masked, r.params["shares"]) for r in releases} == {(secure, 2 if secure else 1)}
    assert {(r.unit, r.adjacency) for r in releases} == {(Unit.DOCUMENT, Adjacency.ADD_REMOVE)}
    assert 99 < real_epsilon(releases) <= 100


def test_the_ledger_has_the_epsilon_that_the_plan_announced_and_nothing_else_leaves(tmp_path):
    run = prepared(tmp_path / "run", PARTIES, SOUND)  # held-out documents are not scored: evaluate is None
    documents = {name: Corpus.from_texts(texts) for name, texts in PARTIES.items()}
    planned = {row["what"]: row for row in dry_run(RunSettings(method=SOUND), documents)["disclosed"]}[STATISTICS]
    assert planned["mechanism"] == "shared-gaussian"
    assert planned["claimed epsilon"] == "4 (PC-TD in mode sound, whole run, delta 1e-06)"
    finish(run)
    with closing(Ledger(run.party_directory("south") / "ledger.sqlite")) as ledger:
        releases = ledger.releases()
    assert {release.what for release in releases} == {STATISTICS}
    real = real_epsilon(releases)
    assert 3.96 < real <= 4.0
    assert float(planned["real epsilon"]) == pytest.approx(real, rel=1e-3)
    theta = PartyHost(run.party_directory("south")).answers.state.theta
    assert theta.shape[1] == 2
    assert (run.party_directory("south") / "kept" / "shares.safetensors").exists()


def test_interruptions_change_no_bit_and_cost_nothing(tmp_path):
    prepared(tmp_path / "reference", PARTIES, SOUND)
    shutil.copytree(tmp_path / "reference", tmp_path / "interrupted")  # one run: noise is a function of its id
    reference, interrupted = (Run.open(tmp_path / name) for name in ("reference", "interrupted"))
    finish(reference)
    with pytest.raises(Interrupted):
        finish(interrupted, observe=interrupt_at(2))
    again = Run.open(interrupted.directory)
    finish(again)
    assert outcome(again) == outcome(reference)
    assert len(releases_of(again.directory)) == 3


def test_each_reply_has_new_noise_of_the_stated_deviation(tmp_path):
    """A party that knows no word of the list sends noise alone."""
    words = tuple(f"zeppelin{a}{b}" for a in "abcdefghij" for b in "abcdefghij")
    host = make_party(tmp_path, halves(1), pctd)
    replies = []
    for place in ((1, 0), (2, 0)):
        phi = np.random.default_rng(place).dirichlet(np.ones(100), 10)
        answer = ask(host, expect_clipped, ClippedTask(words, UnitSettings(), NOISE, phi), verb="sum", place=place)
        assert answer.kind == "ok", answer.text
        replies.append(answer.reply.counts)
    first, second = replies
    assert first.dtype == np.int64
    assert np.std(first / 2**BITS) == pytest.approx(deviation(NOISE), rel=0.1)
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 0.15
    assert deviation(NOISE) == pytest.approx(clip_of(NOISE) * sigma_for(4.0, 1e-6, rounds=3), rel=0.01)


def test_a_server_gets_no_less_noise_than_planned(tmp_path):
    party = Attacked(tmp_path, {**SOUND, "evaluate": False})
    words, phi = tuple(STEMS), np.full((2, len(STEMS)), 1 / len(STEMS))
    for wanted in ({"epsilon": 400.0}, {"delta": 0.5}, {"rounds": 1}, {"words_per_document": 1}):
        task = ClippedTask(words, UnitSettings(), NOISE.replace(**wanted), phi)
        assert party.ask(expect_clipped, task, "sum").text == "refused by rule 'plan'"
    unclipped = pctd.UnitTask(words, UnitSettings(), None, phi)
    assert party.ask(pctd.expect, unclipped, "sum").kind != "ok"  # that step is not in the plan
    planned = ClippedTask(words, UnitSettings(), NOISE, phi)
    assert party.ask(expect_clipped, planned, "each").kind != "ok"
    assert party.ask(expect_clipped, planned, "sum").kind == "ok"  # though the policy allows nothing in clear


def test_a_partys_own_epsilon_raises_its_noise(tmp_path):
    own = {"south": {"epsilon": 2.0}, "west": {"epsilon": 50.0}}
    settings = {name: value for name, value in SOUND.items() if name != "name"}
    tt.PCTD(**settings).fit(PARTIES, directory=tmp_path / "run", party_settings=own)
    spent = {name: releases_of(tmp_path / "run", name) for name in PARTIES}
    assert {name: real_epsilon(releases) for name, releases in spent.items()} == pytest.approx(
        {"north": 4.0, "south": 2.0, "west": 4.0}, rel=0.01
    )
    assert {r.sensitivity for releases in spent.values() for r in releases} == {clip_of(NOISE)}
    assert spent["south"][0].params["sigma"] > 1.8 * spent["north"][0].params["sigma"]
    assert spent["south"][0].claimed.epsilon == 2.0


def test_a_budget_for_documents_is_kept_for_the_whole_run():
    budget = '[[budget]]\nunit = "document"\nadjacency = "add-remove"\nepsilon = {}\ndelta = 1e-6\n'
    settings = RunSettings(method=SOUND, parties={"north": {"path": "x.txt"}})
    documents = Corpus.from_texts(PARTIES["north"])
    check_budgets(settings, "north", Policy.parse(budget.format(4.0)), lambda: documents)
    with pytest.raises(PolicyRefusal, match=r"the whole run at party 'north' would bring epsilon to 3\.99"):
        check_budgets(settings, "north", Policy.parse(budget.format(3.9)), lambda: documents)


def test_a_run_begins_with_an_earlier_models_topics():
    settings = {name: value for name, value in SOUND.items() if name != "name"}
    words = {"mode": "public", "words": WORDS}
    settings |= {"vocabulary": words, "topics": K, "unit": "sentence", "epsilon": 30.0, "more_rounds": 1}
    parties = {name: texts_of_sentences(seed, 40) for seed, name in enumerate("abc")}
    last = tt.Topics(planted() ** 0.1 / (planted() ** 0.1).sum(axis=1, keepdims=True), tt.Vocabulary(tuple(WORDS)))
    model = tt.PCTD(**settings).fit(parties, heldout=0.0, start_from=last)
    assert recovered(last) < 0.7 < BAR < recovered(model)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"mode": "sound"}, "needs an epsilon of a document"),
        ({"mode": "sound", "epsilon": 8, "vocabulary": {"mode": "union"}}, "needs a public word list"),
        ({"mode": "sound", "sigma": 0.25}, "sigma and paper.noise_on go with mode 'paper'"),
        (
            {"mode": "sound", "epsilon": 8, "paper": {"noise_on": "held"}},
            "sigma and paper.noise_on go with mode 'paper'",
        ),
        ({"mode": "sound", "epsilon": 8, "words_per_document": 0}, "words_per_document = 0"),
        ({"epsilon": 8}, "epsilon with mode 'sound'"),
    ],
)
def test_wrong_settings_name_the_key(settings, says):
    with pytest.raises(ConfigError, match=says):
        tt.PCTD(**{"topics": 3, "vocabulary": PUBLIC, **settings})
