"""What a party offers, and what its host answers by itself."""

import json
import shutil
from importlib import import_module

import numpy as np
import pytest

from helpers import toys
from tertulia._disk import read_lines
from tertulia.errors import ConfigError, FormatError, PartyFailure
from tertulia.federation.codec import decode, encode
from tertulia.federation.messages import BEFORE_ALL, DISCLOSURES, LEDGER_DIGEST, Ask, Inquiry, Question, read_frame
from tertulia.federation.method_modules import steps_of
from tertulia.federation.party.door import NO_SUCH_STEP
from tertulia.federation.party.host import NO_SUCH_INQUIRY, PartyConfig, PartyHost
from tertulia.federation.party.inquiries import recipient_of
from tertulia.federation.server.handle import Handle, Terms
from tertulia.federation.server.inquiries import inquire
from tertulia.federation.types import Nothing, step_name
from tertulia.methods.ftm import method as ftm
from tertulia.methods.registry import METHODS
from tertulia.privacy.chain import GENESIS
from tertulia.privacy.ledger import Release
from tertulia.privacy.mechanisms import Clear, Derived, DiscreteLaplace

FIRST = (0, 0)


def with_methods(run, party, *methods):
    path = run.party_directory(party) / "party.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "methods": methods}))


def ask(host, step, message, place=FIRST, previous=BEFORE_ALL):
    body = encode(Ask("each", step, message))
    return decode(host.answer(Question("run", place, previous, 0, True, body).to_bytes()))


def inquiry(host, about):
    return decode(host.answer(Inquiry("run", about).to_bytes()))


@pytest.fixture
def host(toy_run, tmp_path):
    return PartyHost(toy_run(tmp_path / "run").party_directory("a"))


# --- steps ------------------------------------------------------------------------------------------------------------


def test_a_party_refuses_the_steps_of_methods_that_it_does_not_list(toy_run, tmp_path):
    run = toy_run(tmp_path / "run")
    with_methods(run, "b", ftm.__name__)
    transport, warnings = run.transport("local", 1), []
    observe = lambda kind, facts: warnings.append(facts["text"])  # noqa: E731
    fed = Handle("run", transport, run.journal(), Terms(on_failure="skip"), observe)
    assert list(fed.each(toys.count_free, Nothing())) == ["a", "c"]  # in one process, which has imported both methods
    assert warnings == [f"party 'b' did not answer: FormatError: {NO_SUCH_STEP}"]
    with pytest.raises(PartyFailure, match="does not offer"):
        Handle("run", transport, run.journal()).each(ftm.keep_composed, {"a": Nothing()})
    transport.close()


def test_a_refusal_does_not_repeat_what_was_asked(host):
    body = encode(Ask("each", "helpers.toys:stay_private \x1b[31m", Nothing()))
    answer = decode(host.answer(Question("run", FIRST, BEFORE_ALL, 0, True, body).to_bytes()))
    assert (answer.kind, answer.text) == ("failed", f"FormatError: {NO_SUCH_STEP}")
    assert r"'helpers.toys:stay_private \x1b[31m'" in read_lines(host.directory / "party.log")[0]["text"]


@pytest.mark.parametrize("name", [step_name(toys.stay_private), "os:system", "helpers.toys:train", "helpers.toys:np"])
def test_only_listed_steps_can_be_asked_for(host, name):
    assert ask(host, name, Nothing()).text.endswith(NO_SUCH_STEP)


def test_a_refused_step_leaves_no_trace_in_the_answer_log(host):
    ask(host, step_name(toys.count_free), Nothing())
    refused = ask(host, "helpers.toys:nowhere", Nothing(), place=(0, 1), previous=FIRST)
    assert refused.kind == "failed"
    assert host.answers.latest == FIRST
    assert ask(host, step_name(toys.count_free), Nothing(), (0, 1), FIRST).reply.value == 2


def test_a_method_must_list_its_steps():
    with pytest.raises(ConfigError, match=r"'json' lists no steps: add `STEPS"):
        steps_of(["json"])


def test_a_method_cannot_list_what_is_no_step(monkeypatch):
    monkeypatch.setattr(toys, "STEPS", (toys.train,))
    with pytest.raises(FormatError, match="toys:train is not a step"):
        steps_of(["helpers.toys"])


@pytest.mark.parametrize("name", METHODS)
def test_every_method_lists_the_steps_that_it_plans(name):
    settings, module = METHODS[name]
    planned = {step_name(one.step) for one in import_module(module).plan(settings())}
    assert planned
    assert planned <= set(steps_of([module]))


# --- inquiries --------------------------------------------------------------------------------------------------------


def test_inquiries_move_neither_state_nor_answers_nor_ledger(host):
    ask(host, step_name(toys.accumulate), Nothing())
    files = {path: path.read_bytes() for path in host.directory.rglob("*.safetensors")}
    entries = len(host.ledger.releases())
    for about in (LEDGER_DIGEST, DISCLOSURES):
        assert inquiry(host, about).kind == "ok"
    assert {path: path.read_bytes() for path in host.directory.rglob("*.safetensors")} == files
    assert (host.answers.state.seen, host.answers.latest, len(host.ledger.releases())) == (1, FIRST, entries)
    again = ask(host, step_name(toys.accumulate), Nothing())
    assert len(host.ledger.releases()) == entries  # still known: an inquiry in between has voided nothing
    assert np.array_equal(again.reply.value, host.answers.state.noise)


def test_inquiries_open_no_answers_and_import_no_method(toy_run, tmp_path):
    run = toy_run(tmp_path / "run", methods=("no_such_module",))
    directory = run.party_directory("a")
    shutil.rmtree(directory / "answers", ignore_errors=True)
    assert inquiry(PartyHost(directory), LEDGER_DIGEST).kind == "ok"
    assert not (directory / "answers").exists()


def test_the_digest_is_the_ledgers(host):
    before = inquiry(host, LEDGER_DIGEST).reply
    ask(host, step_name(toys.accumulate), Nothing())
    after = inquiry(host, LEDGER_DIGEST).reply
    assert before != after
    assert after.split(":")[1] == host.ledger.digest().split(":")[1]
    host.ledger.verify(after)


def test_disclosures_are_what_left_in_this_run(host, toy_run, tmp_path):
    ask(host, step_name(toys.accumulate), Nothing())
    other = toy_run(tmp_path / "other").party_directory("a")
    config = json.loads((other / "party.json").read_text())
    PartyConfig(**{**config, "run": "other", "home": str(host.directory)}).save(other)  # another run, the same ledger
    body = encode(Ask("each", step_name(toys.count_free), Nothing()))
    PartyHost(other).answer(Question("other", FIRST, BEFORE_ALL, 0, True, body).to_bytes())
    assert len(host.ledger.releases()) == 2
    (row,) = inquiry(host, DISCLOSURES).reply
    assert row == {
        "round": 0,
        "step": "helpers.toys:accumulate",
        "verb": "each",
        "what": "count",
        "mechanism": "discrete-laplace",
        "masked": False,
        "shape": (2,),
        "bytes": 16,
    }


def test_the_number_of_reported_tokens_stays_at_the_party(host):
    noisy = DiscreteLaplace("reports of tokens", sensitivity=1, epsilon=0.5)
    facts = {"id": "reports/a", "party": "a", "round": 0, "step": "reports", "verb": "reports", "message_hash": ""}
    host.ledger.addressee = (recipient_of(host.config.run), "")
    host.ledger.record(Release.of(noisy, **facts, x=np.zeros(1234)))
    (row,) = inquiry(host, DISCLOSURES).reply
    assert (row["what"], row["shape"], row["bytes"]) == ("reports of tokens", None, 0)


def test_the_sizes_of_what_does_not_reach_the_server_stay_at_the_party(host):
    """Noisy numbers behind others, and notes for members; but a masked sum did reach it, whether it fits or not."""

    def record(name, mechanism, verb="each", **more):
        facts = {"id": name, "party": "a", "run": "run", "round": 0, "step": "s", "message_hash": "", "verb": verb}
        host.ledger.record(Release.of(mechanism, **facts, **more, x=np.zeros(5)))

    record("weights", DiscreteLaplace("words", sensitivity=1, epsilon=0.5))
    record("names", Derived("words", parents=("weights",)))
    record("tags", Clear("tags"), "relay")
    record("sum", Clear("counts"), "sum", masked=True)
    record("bit", Derived("does it fit", parents=("sum",)), "wider")
    rows = {row["what"] + row["mechanism"]: row for row in inquiry(host, DISCLOSURES).reply}
    hidden = {name for name, row in rows.items() if (row["shape"], row["bytes"]) == (None, 0)}
    assert hidden == {"wordsdiscrete-laplace", "tagsclear"}
    assert all((row["shape"], row["bytes"]) == ((5,), 40) for name, row in rows.items() if name not in hidden)
    assert {name for name, row in rows.items() if row["masked"]} == {"countsclear"}


@pytest.mark.parametrize("about", ["noise key", "corpus", "", "__class__"])
def test_other_inquiries_are_refused_in_constant_words(host, about):
    assert inquiry(host, about).text == f"FormatError: {NO_SUCH_INQUIRY}"


@pytest.mark.parametrize(
    "frame", [b"", b"\x02\x00\x00\x00{}", b"\x02\x00\x00\x00[]", b"\x04\x00\x00\x00null", b"\xff" * 9]
)
def test_frames_that_are_neither_are_refused(frame, host):
    with pytest.raises(FormatError, match="no question, inquiry or exchange"):
        read_frame(frame)
    assert decode(host.answer(frame)).kind == "failed"


@pytest.mark.parametrize("engine", ["local", "processes"])
def test_the_server_asks_all_and_is_warned_of_who_is_silent(engine, toy_run, tmp_path):
    run = toy_run(tmp_path / "run")
    path = run.party_directory("b") / "party.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "run": "another"}))
    transport, warnings = run.transport(engine, 1), []
    found = inquire(transport, Inquiry("run", LEDGER_DIGEST), None, warnings.append)
    transport.close()
    assert found == dict.fromkeys("ac", f"0:{GENESIS}")  # nothing has left yet
    assert len(warnings) == 1
    assert warnings[0].startswith("party 'b' did not answer about its ledger digest: ConfigError")
