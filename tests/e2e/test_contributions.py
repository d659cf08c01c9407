"""Contributions are counted once and stay: through absences, returns, late joiners, resumes and lost states."""

import shutil

import numpy as np
import pytest

import tertulia as tt
from helpers.planted import planted
from helpers.runs import Interrupted, interrupt_at, outcome, prepared
from tertulia.corpus import Corpus
from tertulia.errors import LOST_CONTRIBUTION
from tertulia.federation.party.host import PartyHost
from tertulia.methods.common.contributions import counted_or_none
from tertulia.methods.consensus.contribution import counts_of
from tertulia.metrics import completion
from tertulia.runs.directory import Run
from tertulia.runs.driver import finish

V, K = 300, 9
WORDS = {"mode": "public", "words": [f"w{v}" for v in range(V)]}
CONSENSUS = {"name": "consensus", "topics": K, "rounds": 10, "start_sweeps": 10, "sweeps": 3, "vocabulary": WORDS}
FEDLDA = {"name": "fedlda", "topics": 4, "rounds": 6, "mode": "sound", "epsilon": 6, "vocabulary": WORDS}
PCTD = {"name": "pctd", "topics": 4, "rounds": 6, "vocabulary": WORDS}


def texts(seed, n, first=0, length=60):
    """Documents whose topics lie in a third of the words, of which `first` says which."""
    made = planted(seed, n, length, V // 3, 3, 0.3)
    words = (made.words + first * (V // 3)).reshape(n, length)
    return [" ".join(f"w{w}" for w in document) for document in words]


PARTIES = {name: texts(place, 150, place) for place, name in enumerate(("east", "north", "south"))}
SMALL = {name: documents[:24] for name, documents in PARTIES.items()}


def perplexity(model, party):
    """Of new documents of a party's own subjects."""
    place = list(PARTIES).index(party)
    made = planted(place, 210, 60, V // 3, 3, 0.3)
    words = (made.words + place * (V // 3)).reshape(210, 60)[150:]
    documents = Corpus.from_texts([" ".join(f"w{w}" for w in document) for document in words])
    return completion(model.topic_word, model.alpha, documents.encode(model.vocabulary), smoothing=0.01).perplexity


def absences(script, **more):
    return {"dropouts": {"script": script}, "quorum": 0.3, **more}


@pytest.mark.parametrize("mode", ["clear", "sound"])
def test_a_party_that_is_gone_from_the_middle_stays_in_the_model(mode, tmp_path):
    """Both runs have the same noise, and so the same start: some starts join two of the nine topics."""
    settings = {name: value for name, value in CONSENSUS.items() if name != "name"} | {"evaluate": False, "mode": mode}
    settings |= {"epsilon": 9} if mode == "sound" else {}
    gone = absences({round_: ["north"] for round_ in range(5, 20)})
    homes = {name: {"home": str(tmp_path / name)} for name in PARTIES}
    whole = tt.Consensus(**settings).fit(PARTIES, seed=1, heldout=0, party_settings=homes)
    broken = tt.Consensus(**settings).fit(PARTIES, seed=1, heldout=0, party_settings=homes, federation=gone)
    assert perplexity(broken, "north") < 1.03 * perplexity(whole, "north")
    assert perplexity(broken, "east") < 1.03 * perplexity(whole, "east")


def held_by_parties(run, contribution):
    """The sum of what each party has last sent that was counted, from its own state on its own disk."""
    commit, _ = run.journal().last()
    (counted,) = [
        places for step, places in commit.counted.items() if not (step.endswith(":score") or "consensus.start:" in step)
    ]
    total = 0
    for party in run.parties:
        host = PartyHost(run.party_directory(party))
        state = host.answers.state
        if party in counted:
            named = type("Named", (), {"counted": counted[party]})
            total = total + contribution(host, counted_or_none(named, state))
    return commit.state, total


def consensus_counts(host, held):
    corpus = host.documents(tt.corpus.Vocabulary(tuple(WORDS["words"])), "train")
    return counts_of(held, corpus, (V, K)).T


def fedlda_counts(host, held):
    found = np.zeros((4, V))
    np.add.at(found, (held.z[held.z >= 0], held.word[held.z >= 0]), 1)
    return found


SCRIPTS = {
    "absent and back": absences({3: ["north"], 4: ["north", "east"], 6: ["south"]}),
    "many": {"dropouts": {"rate": 0.4}, "quorum": 0.1},
    "late and gone": absences({}),
}
MEMBERS = {"late and gone": {"north": {"joins": 4}, "south": {"leaves": 5}}}


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("interrupted", [False, True])
def test_the_total_is_the_sum_of_what_parties_know_to_be_counted(script, interrupted, tmp_path):
    members = {"parties": MEMBERS[script]} if script in MEMBERS else {}
    run = prepared(tmp_path / "run", SMALL, CONSENSUS, heldout=0.0, federation=SCRIPTS[script], **members)
    if interrupted:
        for round_ in (3, 6):
            with pytest.raises(Interrupted):
                finish(run, observe=interrupt_at(round_))
    finish(run)
    state, total = held_by_parties(run, consensus_counts)
    assert np.array_equal(state.contributed, total)
    assert state.lengths.sum() == 24 * len(SMALL)


@pytest.mark.parametrize(("method", "field", "of_party"), [
    (FEDLDA, "counts", fedlda_counts),
    (PCTD, "statistic", lambda host, held: held.counts),
    ({**PCTD, "mode": "paper", "sigma": 0.1}, "statistic", lambda host, held: held.counts),
])  # fmt: skip
def test_other_methods_add_differences_too(method, field, of_party, tmp_path):
    run = prepared(tmp_path / "run", SMALL, method, heldout=0.0, federation=SCRIPTS["absent and back"])
    with pytest.raises(Interrupted):
        finish(run, observe=interrupt_at(5))
    finish(run)
    state, total = held_by_parties(run, of_party)
    assert np.array_equal(getattr(state, field), total)


def test_a_resumed_run_with_absences_ends_in_the_same_bits(tmp_path):
    prepared(tmp_path / "a", SMALL, CONSENSUS, federation=SCRIPTS["absent and back"])
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    runs = [Run.open(tmp_path / name) for name in "ab"]
    finish(runs[0])
    for round_ in (2, 4, 7):
        with pytest.raises(Interrupted):
            finish(runs[1], observe=interrupt_at(round_))
    finish(runs[1])
    assert outcome(runs[0]) == outcome(runs[1])


@pytest.mark.parametrize("method", [CONSENSUS, FEDLDA, PCTD], ids=lambda method: method["name"])
def test_a_party_that_lost_its_state_sits_out(method, tmp_path):
    """It cannot take its part out again: a whole contribution would count a second time."""
    run = prepared(tmp_path / "run", SMALL, method, heldout=0.0)
    with pytest.raises(Interrupted):
        finish(run, observe=interrupt_at(4))
    before = run.journal().last()[0]
    shutil.rmtree(run.party_directory("north") / "answers")
    warnings = []
    finish(run, observe=lambda kind, facts: warnings.append(facts["text"]) if kind == "warning" else None)
    assert warnings == [
        "party 'north' has lost its state",
        f"party 'north' did not answer: {LOST_CONTRIBUTION}",
    ]
    after = run.journal().last()[0]
    (step,) = [name for name in after.counted if not (name.endswith(":score") or "consensus.start:" in name)]
    assert after.counted[step]["north"] == before.counted[step]["north"] < after.counted[step]["east"]
    if method is CONSENSUS:
        tokens = sum(len(text.split()) for documents in SMALL.values() for text in documents)
        assert after.state.contributed.sum() == tokens
