"""`tertulia audit`: what it says of a configuration, when it refuses, and that it goes on after an interruption."""

import json

import numpy as np
import pytest

from tertulia.cli.outputs import OUTPUTS
from tertulia.errors import ConfigError, PolicyRefusal
from tertulia.operations.audit import attacks, results
from tertulia.operations.audit.attacks import Effort
from tertulia.runs.driver import finish
from tertulia.runs.one_machine import begin
from tertulia.runs.settings import load
from tertulia.view.pages.report import report

WORDS = [f"w{i}x" for i in range(120)]
METHODS = {
    "tokens": 'name = "ftm"\ntopics = 3\nrounds = 2\nsweeps = 2\nmode = "sound"\nepsilon = 3.0\n',
    "documents": 'name = "private_topics"\ntopics = 3\nrounds = 2\nepsilon = 6.0\n',
    "paper": 'name = "ftm"\ntopics = 3\nrounds = 2\nsweeps = 2\nmode = "paper"\nepsilon = 3.0\n',
    "clear": 'name = "ftm"\ntopics = 3\nrounds = 2\nsweeps = 2\nmode = "clear"\n',
}
SMALL = Effort(draws=20_000, documents=30, runs=1, confidence=0.999)


def configuration(place, method, policy=None):
    """A TOML file of a run of two parties."""
    rng = np.random.default_rng(1)
    for party in ("north", "south"):
        rows = [{"id": f"{party}{i}", "text": " ".join(rng.choice(WORDS, 30))} for i in range(40)]
        (place / f"{party}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (place / "words.txt").write_text("\n".join(WORDS))
    lines = ['directory = "runs/a"', "[method]", METHODS[method], '[method.vocabulary]\nmode = "public"']
    lines += ['words = "words.txt"', '[parties.north]\npath = "north.jsonl"', '[parties.south]\npath = "south.jsonl"']
    if policy is not None:
        (place / "policy.toml").write_text(policy)
        lines.append('policy = "policy.toml"')
    (place / "run.toml").write_text("\n".join(lines))
    return place / "run.toml"


@pytest.mark.parametrize("method", ["tokens", "documents"])
def test_bounds_are_below_claims_and_close_to_them(tmp_path, method):
    settings = load(configuration(tmp_path, method))
    found = attacks.audit(settings, effort=SMALL)
    assert not found.violated
    assert {one.part for one in found.findings} == {"mechanism", "structure", method}
    of_run = next(one for one in found.findings if one.part == method)
    assert of_run.claimed == pytest.approx({"tokens": 3.0, "documents": 6.0}[method], rel=0.01)
    assert (
        {"tokens": 0.3, "documents": 0.01}[method] * of_run.claimed
        < of_run.lower_bound
        < of_run.claimed
        < of_run.could_have_shown
    )
    assert results.load_or_none(results.place_of(tmp_path / "runs" / "a")) == found
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["runs"]
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["a-audit"]  # the run itself has not begun


def test_an_interrupted_audit_goes_on(tmp_path, monkeypatch):
    settings, done = load(configuration(tmp_path, "documents")), []
    monkeypatch.setattr(attacks, "_of_documents", lambda group, run: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        attacks.audit(settings, effort=SMALL)
    assert results.load_or_none(results.place_of(tmp_path / "runs" / "a")) is None
    monkeypatch.undo()
    monkeypatch.setattr(attacks, "_of_mechanism", lambda *given: done.append(given))
    found = attacks.audit(settings, effort=SMALL)
    assert done == []
    assert [one.part for one in found.findings] == ["mechanism"] * 4 + ["structure", "documents"]
    changed = settings.replace(method=settings.method.replace(epsilon=5.0))
    with pytest.raises(AttributeError):  # other promises are audited again
        attacks.audit(changed, effort=SMALL)
    assert len(done) == 1


def test_it_refuses_where_there_is_nothing_to_audit(tmp_path):
    with pytest.raises(ConfigError, match="nothing to audit"):
        attacks.audit(load(configuration(tmp_path, "clear")))


def test_it_refuses_where_nobody_knows_what_is_promised(tmp_path):
    custom = {"name": "custom", "module": "helpers.toys", "config": {"rounds": 1}}
    settings = load(configuration(tmp_path, "clear")).replace(method=custom)
    with pytest.raises(ConfigError, match="announces no releases"):
        attacks.audit(settings)


def test_a_policy_may_forbid_canaries(tmp_path):
    settings = load(configuration(tmp_path, "tokens", policy="allow_canaries = false\n"))
    with pytest.raises(PolicyRefusal, match="'south' forbids"):
        attacks.audit(settings)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(("method", "claim"), [("tokens", "3"), ("documents", "6")])
def test_too_few_canaries_are_refused_with_the_number_that_is_needed(tmp_path, method, claim):
    settings = load(configuration(tmp_path, method))
    with pytest.raises(ConfigError, match=rf"canaries = 10: .* {claim}\b.* give (\d+) or more") as refused:
        attacks.audit(settings, effort=SMALL._replace(canaries=10))
    needed = int(str(refused.value).split("give ")[1].split()[0])
    found = attacks.audit(settings, effort=SMALL._replace(canaries=needed + needed // 4))
    of_run = next(one for one in found.findings if one.part == method)
    assert of_run.could_have_shown > of_run.claimed


def test_the_command_prints_bounds(tmp_path, tertulia):
    path = configuration(tmp_path, "tokens")
    asked = ("audit", path, "--draws", "20000", "--canaries", "2000")
    code, out, _ = tertulia(*asked, "--json")
    found = json.loads(out)
    OUTPUTS["audit"].model_validate(found)
    assert code == found["violated"]  # by chance, seldom
    assert all(row["could_have_shown"] is None or row["could_have_shown"] > 3 for row in found["findings"])
    assert sorted(path.name for path in (tmp_path / "runs" / "a-audit").iterdir()) == ["audit.json"]  # no part is left
    drawn = [row["lower_bound"] for row in json.loads(tertulia(*asked, "--json")[1])["findings"]]
    assert drawn != [row["lower_bound"] for row in found["findings"]]  # an audit that has ended draws again


def test_a_replay_that_finds_something_is_printed_and_ends_with_1(tmp_path, tertulia):
    code, out, _ = tertulia("audit", configuration(tmp_path, "paper"), "--replay")
    assert code == 1
    assert "VIOLATED" in out
    assert "off the list: the input moves by more than the declared sensitivity" in " ".join(out.split())
    assert "topic-word distributions" in out  # they have no promise
    assert not (tmp_path / "runs").exists()


def test_after_ctrl_c_the_same_command_goes_on(tmp_path, tertulia, monkeypatch):
    asked = ("audit", configuration(tmp_path, "tokens"), "--draws", "20000")
    monkeypatch.setattr(attacks, "_of_tokens", lambda group, run: (_ for _ in ()).throw(KeyboardInterrupt))
    code, _, err = tertulia(*asked)
    assert code == 130
    assert "the same command goes on" in err
    monkeypatch.setattr(attacks, "_of_tokens", lambda group, run: results.Part(untested=("tokens: nothing",)))
    code, out, err = tertulia(*asked)
    assert code == ("VIOLATED" in out)
    assert "structure: finished before" in err
    assert "not tested: tokens: nothing" in out


def test_the_page_shows_lower_bounds_of_the_very_settings_beside_claimed_and_real(tmp_path, tertulia):
    path = configuration(tmp_path, "tokens")
    settings = load(path)
    finish(begin(settings))
    run = tmp_path / "runs" / "a"
    assert "audited" not in tertulia("privacy", run, "--all")[1]
    found = attacks.audit(settings, effort=SMALL)
    bound = next(one.lower_bound for one in found.findings if one.part == "tokens")
    out = json.loads(tertulia("privacy", run, "--json")[1])
    by_unit = {row["unit"]: row["audited_lower_bound"] for row in out["totals"]}
    assert by_unit["token"] == pytest.approx(bound, rel=1e-3)
    assert by_unit["document"] is None
    assert f"{bound:.4g}" in tertulia("privacy", run, "--all")[1]
    assert "at least, by an audit" in report(run, "north")
    other = attacks.audit(settings.replace(method=settings.method.replace(epsilon=2.0)), effort=SMALL)
    assert other.configuration != found.configuration  # which replaces the report: of other settings
    assert "audited" not in tertulia("privacy", run, "--all")[1]
