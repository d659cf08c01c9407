"""Words of one party alone: without care, a masked sum shows them, for the total is that party's own count."""

import dataclasses
import warnings

import numpy as np
import pytest

from helpers.attacks_secure import refused
from helpers.runs import Interrupted
from tertulia.corpus import Corpus
from tertulia.errors import ConfigError, TertuliaError
from tertulia.federation.codec import decode, encode
from tertulia.federation.messages import BEFORE_ALL, Ask, Exchange, Question
from tertulia.federation.types import step_name
from tertulia.methods.common import shared_words
from tertulia.methods.pctd import method as pctd
from tertulia.methods.pctd.settings import UnitSettings
from tertulia.runs.driver import finish
from tertulia.runs.one_machine import begin, run_on_one_machine
from tertulia.runs.settings import RunSettings

COMMON = ["fever", "cough", "ward", "clinic", "nurse", "doctor"]
LONE = {"north": ["garcia"], "south": ["lopez", "insulin"], "east": [], "west": ["moreno"]}
PAIRS = {"asthma": ("north", "south")}  # held by two: not enough among four


def texts(party, seed):
    rng = np.random.default_rng(seed)
    own = LONE[party] + [word for word, holders in PAIRS.items() if party in holders]
    return [" ".join([*rng.choice(COMMON, 6), *own]) for _ in range(12)]


def corpora():
    return {party: Corpus.from_texts(texts(party, seed)) for seed, party in enumerate(LONE)}


def settings(tmp_path, words, secure=True, **method):
    vocabulary = {"max_share": 1.0, **words}
    return RunSettings(
        directory=str(tmp_path / "run"), heldout=0.0, federation={"secure": secure},
        method={"name": "pctd", "topics": 2, "rounds": 2, "vocabulary": vocabulary, **method},
    )  # fmt: skip


def lone_words(model):
    return sorted({word for words in LONE.values() for word in words} & set(model.vocabulary.words))


def test_without_secure_sums_all_lone_words_are_named(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = run_on_one_machine(settings(tmp_path, {"mode": "union"}, secure=False), corpora(), durable=False)
    assert lone_words(model) == ["garcia", "insulin", "lopez", "moreno"]


def test_a_masked_sum_over_a_public_list_would_show_a_lone_words_count():
    """Why `public` is refused with secure sums: the total over all parties is one party's count."""
    counts = [sum(text.split().count("garcia") for text in texts(party, i)) for i, party in enumerate(LONE)]
    assert sum(counts) == counts[0] == 12
    with pytest.raises(ConfigError, match=r"one party alone has: set vocabulary.mode = 'listed'"):
        settings_of_public()


def settings_of_public():
    return RunSettings(
        federation={"secure": True},
        method={"name": "pctd", "vocabulary": {"mode": "public", "words": [*COMMON, "garcia"]}},
    )


@pytest.mark.parametrize(
    "words", [{"mode": "common"}, {"mode": "listed", "words": [*COMMON, "garcia", "insulin", "asthma", "stroke"]}]
)
def test_with_secure_sums_none_is(words, tmp_path):
    model = run_on_one_machine(settings(tmp_path, words), corpora(), durable=False)
    assert lone_words(model) == []
    assert set(model.vocabulary.words) == set(COMMON)  # neither words of two parties


def test_three_members_share_words_of_two(tmp_path):
    three = {party: corpus for party, corpus in corpora().items() if party != "west"}
    model = run_on_one_machine(settings(tmp_path, {"mode": "common"}), three, durable=False)
    assert set(model.vocabulary.words) == {*COMMON, "asthma"}
    assert lone_words(model) == []


def test_min_parties_can_be_raised_and_not_lowered(tmp_path):
    words = {"mode": "common", "min_parties": 1}
    assert lone_words(run_on_one_machine(settings(tmp_path / "a", words), corpora(), durable=False)) == []
    few = {party: corpus for party, corpus in corpora().items() if party != "west"}
    words = {"mode": "common", "min_parties": 3}
    model = run_on_one_machine(settings(tmp_path / "b", words), few, durable=False)
    assert "asthma" not in model.vocabulary.words


def test_rare_words_of_a_party_take_no_part(tmp_path):
    """A word of fewer than five documents is not even put into a bucket."""
    found = corpora()
    for party in found:
        found[party] = Corpus.from_texts([*texts(party, 9), "sepsis ward", "sepsis clinic"])
    model = run_on_one_machine(settings(tmp_path, {"mode": "common"}), found, durable=False)
    assert "sepsis" not in model.vocabulary.words


class Hostile:
    """The server of a run whose members have agreed on words."""

    def __init__(self, directory):
        self.run = begin(settings(directory, {"mode": "common"}), corpora())
        self.seen = []
        self.transport = self.run.transport("local", 1)
        real = self.transport.ask

        def ask(frames, *more):
            if any(b"pctd.method:expect" in frame for frame in frames.values()):
                raise Interrupted  # the members have agreed, and training would begin
            answers = real(frames, *more)
            self.seen.extend([*frames.values(), *answers.values()])
            return answers

        self.transport.ask, self.transport.close = ask, lambda: None
        with pytest.raises(Interrupted):
            finish(self.run, transport=self.transport)
        self.host = self.transport.hosts["north"]

    def ask(self, step, message, place, verb="sum", **more):
        facts = {"previous": BEFORE_ALL, "safe": 0, "durable": True, "plan": self.host.door.plan.hash, "attempt": 0}
        body = encode(Ask(verb, step_name(step), message))
        return decode(self.host.answer(Question(self.run.id, place, body=body, **facts | more).to_bytes()))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    return Hostile(tmp_path_factory.mktemp("hostile"))


def test_no_lone_word_crosses_the_line_in_any_form(hostile):
    carried = b"".join(hostile.seen)
    for words in LONE.values():
        for word in words:
            assert word.encode() not in carried
    assert b"fever" in carried


def test_a_server_cannot_put_a_word_on_the_list(hostile):
    words = tuple(sorted([*COMMON, "garcia"]))
    phi = np.full((2, len(words)), 1 / len(words))
    method = settings(hostile.run.directory, {"mode": "common"}).method
    assert refused(hostile.ask(pctd.expect, _task(method, words, phi), (1, 0)), "words")
    assert hostile.ask(pctd.expect, _task(method, tuple(COMMON), phi[:, :6]), (1, 0)).kind == "ok"
    fewer = tuple(COMMON[:3])  # a run has one list: with two, the server could count what it left out of one
    assert refused(hostile.ask(pctd.expect, _task(method, fewer, phi[:, :3]), (1, 0), widths=(64,)), "words")


def _task(method, words, phi):
    phi = phi / phi.sum(axis=1, keepdims=True)
    return pctd.UnitTask(words, method.part(UnitSettings), None, phi)


def test_a_server_cannot_have_words_named_twice(hostile):
    holders = shared_words.HolderSettings(min_parties=None)
    everything = shared_words.Found(np.full(1 << 19, 255, np.uint8), holders, shared_words.BITS)
    answer = hostile.ask(shared_words.name_words, everything, (9, 2), "each", attempt=-1)
    assert refused(answer)  # announced once, and has left
    assert hostile.host.answer(Exchange(hostile.run.id, "other", b"").to_bytes())


@pytest.fixture
def lying(monkeypatch):
    """A server that lies about what was found, in its only question for names."""

    def lying(**lies):
        real = shared_words._find

        def find(fed, terms):
            found = real(fed, terms)
            all_passed = {"passed": np.full_like(found.passed, 255)}
            return dataclasses.replace(found, **all_passed, **lies)

        monkeypatch.setattr(shared_words, "_find", find)

    return lying


LISTED = {"mode": "listed", "words": [*COMMON, "garcia", "insulin", "asthma", "stroke"]}


@pytest.mark.parametrize("words", [{"mode": "common"}, LISTED])
def test_a_server_that_claims_that_all_words_have_passed_gets_no_more(words, tmp_path, lying):
    """Members count the tags in their notes themselves."""
    lying()
    model = run_on_one_machine(settings(tmp_path, words), corpora(), durable=False)
    assert set(model.vocabulary.words) == set(COMMON)  # without words of one party, and of two


@pytest.mark.parametrize("words", [{"mode": "common"}, LISTED])
def test_a_server_cannot_lower_the_plans_number_of_members(words, tmp_path, lying):
    three = {party: corpus for party, corpus in corpora().items() if party != "west"}
    lying(holders=shared_words.HolderSettings(min_parties=None))
    with pytest.raises(TertuliaError, match="settings differ from those that the party has agreed to"):
        run_on_one_machine(settings(tmp_path, {**words, "min_parties": 3}), three, durable=False)


def test_words_of_a_continued_model_are_known(tmp_path):
    model = run_on_one_machine(settings(tmp_path, {"mode": "common"}), corpora(), durable=False)
    saved = model.save(tmp_path / "model")
    again = RunSettings(
        directory=str(tmp_path / "next"), heldout=0.0, federation={"secure": True}, start_from=str(saved),
        method={"name": "pctd", "topics": 2, "vocabulary": {"mode": "common", "max_share": 1.0}},
    )  # fmt: skip
    found = {party: Corpus.from_texts([f"{t} vaccine" for t in texts(party, 5)]) for party in LONE}
    longer = run_on_one_machine(again, found, durable=False)
    assert set(longer.vocabulary.words) == {*COMMON, "vaccine"}
    assert longer.vocabulary.words[: len(model.vocabulary.words)] == model.vocabulary.words


def test_common_needs_secure_sums_and_secure_sums_no_clear_words():
    with pytest.raises(ConfigError, match=r"vocabulary mode 'common' needs secure sums"):
        RunSettings(method={"name": "pctd", "vocabulary": {"mode": "common"}})
    for mode in ("union", "min_parties"):
        with pytest.raises(ConfigError, match=f"vocabulary mode '{mode}' sends every party's words in clear"):
            RunSettings(federation={"secure": True}, method={"name": "pctd", "vocabulary": {"mode": mode}})


def test_members_without_a_common_word_learn_of_it(tmp_path):
    alien = {p: Corpus.from_texts([f"{p}word {p}other {p}third"] * 8) for p in ("north", "south", "east")}
    with pytest.raises(Exception, match="no word is held by 2 of the 3 members, in 5 documents each"):
        run_on_one_machine(settings(tmp_path, {"mode": "common"}), alien, durable=False)
