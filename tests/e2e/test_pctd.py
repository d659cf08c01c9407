"""PC-TD from end to end: pooled and federated are one, engines give the same bits, noise is charged and repeats."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import tertulia as tt
from helpers.runs import Interrupted, interrupt_at, outcome, prepared
from helpers.texts import PUBLIC, STEMS, halves
from tertulia.cli.main import app
from tertulia.errors import ConfigError, InputError, PolicyRefusal, QuorumError
from tertulia.federation.party.host import PartyHost
from tertulia.methods.pctd import method as pctd
from tertulia.privacy.home import open_home
from tertulia.privacy.mechanisms.gaussian import real_levels
from tertulia.runs.directory import Run
from tertulia.runs.driver import finish
from tertulia.runs.settings import load
from tertulia.view.dry_run import dry_run
from tertulia.view.tables import disclosure_rows, privacy_rows

SMALL = {"topics": 3, "rounds": 6, "vocabulary": PUBLIC}


PARTIES = {"north": halves(1), "south": halves(2, 40), "west": halves(3, 10)}


def run_of(directory, engine="local", **settings) -> Run:
    """A run that has not started."""
    return prepared(
        directory, PARTIES, {"name": "pctd", **SMALL, "mode": "paper", "sigma": 0.1, **settings}, engine=engine
    )


@pytest.mark.parametrize("unit", ["ngram", "sentence", "paragraph"])
def test_federated_is_pooled(unit, tmp_path):
    (tmp_path / "pairs.tsv").write_text("harbour\tbridge\t0.8\ncopper\tengine\t0.5\n")
    method = tt.PCTD(**SMALL, unit=unit, relations=str(tmp_path / "pairs.tsv"))
    federated = method.fit(PARTIES, heldout=0.0, seed=4)
    pooled = method.fit({"all": [text for party in PARTIES.values() for text in party]}, heldout=0.0, seed=4)
    assert np.allclose(federated.topic_word, pooled.topic_word, rtol=1e-7, atol=1e-12)  # counts lie on a grid of 2^-40
    assert np.allclose(federated.weights, pooled.weights)
    assert np.array_equal(method.fit(PARTIES, heldout=0.0, seed=4).topic_word, federated.topic_word)
    assert not np.allclose(method.fit(PARTIES, heldout=0.0, seed=5).topic_word, federated.topic_word)


def test_planted_topics_are_found():
    model = tt.PCTD(topics=2, rounds=30, vocabulary=PUBLIC).fit(PARTIES, seed=1)
    tops = [set(words) - {"letter", "garden"} for words in model.top_words(6)]
    assert {len(top & set(STEMS[:5])) for top in tops} == {0, 4}


@pytest.mark.slow  # quick tests compare the engines with FTM and FedLDA
def test_engines_change_no_bit(tmp_path):
    reference, processes = run_of(tmp_path / "reference"), run_of(tmp_path / "processes", "processes")
    finish(reference)
    finish(processes)
    assert _model(processes) == _model(reference)


def test_interruptions_change_no_bit(tmp_path):
    reference = run_of(tmp_path / "reference")
    finish(reference)
    interrupted = run_of(tmp_path / "interrupted")
    stop = interrupt_at(1, 4)
    for _ in range(2):
        with pytest.raises(Interrupted):
            finish(Run.open(interrupted.directory), observe=stop)
    finish(Run.open(interrupted.directory), observe=stop)
    assert _model(interrupted) == _model(reference)
    assert _charges(interrupted.directory) == 3 * 6  # nothing was charged twice


def _model(run: Run) -> list:
    found = outcome(run)
    return [found["server"], found["model"], *(found[party]["state"] for party in PARTIES)]


def test_absent_parties_and_late_ones():
    model = tt.PCTD(**SMALL).fit(
        PARTIES, party_settings={"west": {"joins": 3}}, seed=2,
        federation={"dropouts": {"script": {2: ["north"], 4: ["south", "west"]}}, "quorum": 0.3},
    )  # fmt: skip
    assert [len(facts["bytes"]) for facts in model.history[1:]] == [2, 1, 3, 1, 3, 3]
    assert np.allclose(model.topic_word.sum(axis=1), 1)
    with pytest.raises(QuorumError, match="quorum"):
        tt.PCTD(**SMALL).fit(PARTIES, federation={"dropouts": {"script": {1: ["north", "south"]}}})


@pytest.mark.parametrize("noise", [{}, {"mode": "paper", "sigma": 0.25}])
def test_one_topic_empty_documents_and_a_party_that_knows_no_word(noise):
    parties = {"north": [*halves(1), "", "nothing known here"], "south": ["entirely other words", "and others"]}
    model = tt.PCTD(topics=1, rounds=3, vocabulary=PUBLIC, **noise).fit(parties, heldout=0.0)
    assert model.topic_word.shape == (1, 10)
    assert np.isfinite(np.log(model.topic_word)).all()
    if not noise:
        counts = tt.Corpus.from_texts(parties["north"]).encode(model.vocabulary)
        expected = np.bincount(counts.words, minlength=10) + 0.01
        assert np.allclose(model.topic_word[0], expected / expected.sum())
    with pytest.raises(InputError, match="no party holds a word"):
        tt.PCTD(topics=2, vocabulary={"mode": "public", "words": ["absent"]}).fit(PARTIES)


SUM = "singly by the server's machine, as a sum by the method"


def test_shares_stay_at_their_party_and_methods_see_only_sums(tmp_path):
    run = run_of(tmp_path / "run")
    finish(run)
    theta = PartyHost(run.party_directory("south")).answers.state.theta
    assert theta.shape[1] == 3
    assert np.allclose(theta.sum(axis=1), 1)
    assert (run.party_directory("south") / "kept" / "shares.safetensors").exists()
    rows = [row for row in disclosure_rows(run) if row["party"] == "south"]
    assert {(row["what"], row["seen"], row["mechanism"]) for row in rows} == {
        ("noisy counts of words in units", "nobody: noise for what follows", "noisy-units"),
        ("expected topic-word counts", SUM, "derived"),
        ("held-out log likelihood", SUM, "clear"),
    }


def test_the_ledger_tells_the_claim_beside_the_real_value(tmp_path):
    tt.PCTD(**SMALL, mode="paper", evaluate=False).fit({"north": PARTIES["north"]}, directory=tmp_path / "run")
    rows = {row["what"]: row for row in privacy_rows(Run.open(tmp_path / "run"), 1e-6)}
    noise = rows["noisy counts of words in units"]
    assert noise["claimed epsilon"].endswith("(PC-TD theorem 1, delta 1e-06)")
    assert float(noise["claimed epsilon"].split()[0]) == pytest.approx(2 * np.sqrt(6 * np.log(1e6)) / 0.25, rel=1e-4)
    assert float(noise["real epsilon"]) == pytest.approx(real_levels(0.25, 6, 1e-6, tokens=1).token, rel=1e-3)
    assert "a word replaced by another costs" in noise["remarks"]
    counts = rows["expected topic-word counts"]
    assert [counts[name] for name in ("unit", "adjacency", "real epsilon")] == [
        noise[name] for name in ("unit", "adjacency", "real epsilon")
    ]
    assert counts["remarks"].startswith("as its source: noisy counts of words in units")


def test_noise_on_held_words_alone_guarantees_nothing_and_says_so(tmp_path):
    method = tt.PCTD(**SMALL, mode="paper", paper={"noise_on": "held"}, evaluate=False)
    method.fit({"north": PARTIES["north"]}, directory=tmp_path / "run")
    rows = {row["what"]: row for row in privacy_rows(Run.open(tmp_path / "run"), 1e-6)}
    noise = rows["noisy counts of words in units"]
    assert noise["claimed epsilon"].endswith("(PC-TD theorem 1, delta 1e-06)")
    assert noise["real epsilon"] == "infinite (non-private)"
    assert "exactly 0 shows" in noise["remarks"]
    (planned,) = [row.mechanism for row in pctd.plan(method) if row.verb == "reports"]
    assert planned.charge() == {"type": "NonPrivateDpEvent"}
    policy = tmp_path / "policy.toml"
    policy.write_text("allow_clear = false\n")
    for own, says in (({"epsilon": 8.0}, "noise_on = 'held' keeps none"), ({"policy": str(policy)}, "allow_clear")):
        with pytest.raises(tt.TertuliaError, match=says):
            method.fit({"north": PARTIES["north"]}, party_settings={"north": own})


def test_a_word_that_nobody_holds_gets_no_noise_where_only_held_words_do():
    nobodys = [f"zeppelin{letter}" for letter in "abcdefgh"]  # noise below 0 is cut: of a single word it may all be
    words = {"mode": "public", "words": [*STEMS, *nobodys]}
    least = {}
    for noise_on in ("held", "all"):
        method = tt.PCTD(
            **{**SMALL, "vocabulary": words}, mode="paper", sigma=0.25, paper={"noise_on": noise_on}, evaluate=False
        )
        model = method.fit(PARTIES, seed=1)
        counts = model.topic_word * model.weights[:, None]  # up to a factor: beta and nothing else
        least[noise_on] = np.ptp(counts[:, -len(nobodys) :]) / counts.max()
    assert least["held"] < 1e-12 < 1e-3 < least["all"]


def test_epsilon_picks_the_noise_and_a_party_may_want_more(tmp_path):
    own = {"south": {"epsilon": 2.0}, "west": {"epsilon": 50.0}}
    method = tt.PCTD(**SMALL, mode="paper", epsilon=8.0, evaluate=False)
    method.fit(PARTIES, directory=tmp_path / "run", party_settings=own)
    spent = {row["party"]: float(row["real epsilon"]) for row in privacy_rows(Run.open(tmp_path / "run"), 1e-6)
             if row["mechanism"] == "noisy-units"}  # fmt: skip
    assert spent == pytest.approx({"north": 8.0, "south": 2.0, "west": 8.0}, abs=0.02)


def test_a_budget_ends_the_noise_in_time(tmp_path):
    policy = tmp_path / "policy.toml"
    policy.write_text('[[budget]]\nunit = "token"\nadjacency = "null-replace"\nepsilon = 2.0\ndelta = 1e-6\n')
    own = {"north": {"policy": str(policy), "home": str(tmp_path / "home")}}
    method = tt.PCTD(**SMALL, mode="paper", epsilon=1.99, evaluate=False)
    method.fit(PARTIES, directory=tmp_path / "one", party_settings=own)
    with pytest.raises(PolicyRefusal, match=r"budget\.token\.null-replace"):  # other noise, and nothing is left for it
        method.fit(PARTIES, directory=tmp_path / "two", party_settings=own)


def test_a_repeated_question_costs_nothing_and_another_one_does(tmp_path):
    alone = {"north": PARTIES["north"]}
    own = {"north": {"home": str(tmp_path / "home")}}
    method = tt.PCTD(**SMALL, mode="paper", evaluate=False)
    one, two = (method.fit(alone, directory=tmp_path / name, party_settings=own) for name in ("one", "two"))
    assert one.topic_word.tobytes() == two.topic_word.tobytes()
    assert _charges(tmp_path / "two") == 6
    other = method.fit(alone, directory=tmp_path / "three", party_settings=own, seed=9)
    assert not np.allclose(other.topic_word, one.topic_word)
    assert _charges(tmp_path / "three") == 6  # a server sees those of its own run
    assert sum(r.name == "noisy-units" for r in open_home(tmp_path / "home").ledger.releases()) == 12


def _charges(directory) -> int:
    return sum(row["mechanism"] == "noisy-units" for row in disclosure_rows(Run.open(directory)))


def test_a_run_from_a_file_and_its_dry_run(tmp_path):
    for name, documents in PARTIES.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in documents))
    (tmp_path / "words.txt").write_text("\n".join(STEMS))
    (tmp_path / "vectors.txt").write_text("".join(f"{word} {i} 1 {i % 3}\n" for i, word in enumerate(STEMS[:8])))
    parties = "".join(f'[parties.{name}]\npath = "{name}.jsonl"\n' for name in PARTIES)
    (tmp_path / "run.toml").write_text(
        'directory = "run"\nseed = 7\n[method]\nname = "pctd"\nmode = "paper"\ntopics = 2\nrounds = 3\n'
        'vectors = "vectors.txt"\n[method.vocabulary]\nmode = "public"\nwords = "words.txt"\n' + parties
    )
    settings = load(tmp_path / "run.toml")
    assert settings.method.seed == 7
    rows = {row["what"]: row for row in dry_run(settings)["disclosed"]}
    noise = rows["noisy counts of words in units"]
    assert noise["claimed epsilon"] == "51.5032 (PC-TD theorem 1, delta 1e-06)"
    assert float(noise["real epsilon"]) == pytest.approx(real_levels(0.25, 3, 1e-6, tokens=1).token, rel=1e-3)
    assert rows["expected topic-word counts"]["real epsilon"] == noise["real epsilon"]
    assert rows["held-out log likelihood"]["real epsilon"] == "infinite (non-private)"
    ran = CliRunner().invoke(app, ["run", str(tmp_path / "run.toml"), "--epsilon", "8", "--json"])
    assert ran.exit_code == 0, ran.output
    spent = {row["what"]: row["real epsilon"] for row in privacy_rows(Run.open(tmp_path / "run"), 1e-6)}
    assert float(spent["noisy counts of words in units"]) == pytest.approx(8.0, abs=0.02)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"sigma": 0.25}, "go with mode 'paper'"),
        ({"mode": "paper", "sigma": 0.25, "epsilon": 8}, "give one of them"),
        ({"mode": "paper", "sigma": 0}, "sigma = 0"),
        ({"mode": "paper", "paper": {"noise_on": "held"}, "epsilon": 8}, "keeps no epsilon"),
        ({"paper": {"noise_on": "held"}}, "goes with mode 'paper'"),
        ({"vectors": "a", "relations": "b"}, "give one of them"),
        ({"unit": "chapter"}, "unit = 'chapter'"),
        ({"rounds": 0}, "rounds = 0"),
    ],
)
def test_wrong_settings_name_the_key(settings, says):
    with pytest.raises(ConfigError, match=says):
        tt.PCTD(**settings)


def test_vectors_that_are_not_there_are_named():
    with pytest.raises(InputError, match=r"absent\.bin cannot be read"):
        tt.PCTD(**SMALL, vectors="absent.bin").fit(PARTIES)
