"""The lines that a plan needs, and no more."""

import dataclasses

import pytest

from tertulia.errors import ConfigError, PolicyRefusal
from tertulia.methods.registry import METHODS
from tertulia.privacy.ledger import Ledger
from tertulia.privacy.policy import Policy, strict_example, write_example
from tertulia.privacy.policy_lines import line_of, lines_needed, write_lines
from tertulia.runs.budgets import announced, planned_releases
from tertulia.runs.settings import RunSettings

FEDERATED = [name for name, method in METHODS.items() if method.settings.federates]


def releases(method):
    return planned_releases(announced(RunSettings(method=method), "north"), "north")


@pytest.mark.parametrize("name", FEDERATED)
def test_with_its_lines_a_strict_policy_allows_the_plan_and_without_one_of_them_it_does_not(name):
    planned, strict = releases({"name": name}), Policy.closed()
    lines = lines_needed(strict, planned)
    assert set(lines) <= {"allow_clear", "allow_metrics", "declared_public"}

    def allows(changes):
        policy, empty = strict.model_copy(update=changes), Ledger(":memory:")  # a check charges nothing
        try:
            for release in planned:
                policy.check(release, empty)
        except PolicyRefusal:
            return False
        return True

    assert allows(lines)
    for left_out in lines:  # none for a plan whose noise a strict policy allows already
        assert not allows({key: value for key, value in lines.items() if key != left_out})
    for what in lines.get("allow_clear", ()):  # nor is one of the things too many
        assert not allows({**lines, "allow_clear": tuple(w for w in lines["allow_clear"] if w != what)})


def test_what_is_allowed_already_stays_allowed():
    policy = Policy.closed().model_copy(update={"allow_clear": ("topic sizes",)})
    lines = lines_needed(policy, releases({"name": "consensus"}))
    assert lines["allow_clear"][0] == "topic sizes"
    assert lines_needed(Policy(), releases({"name": "consensus"})) == {}


def test_a_rule_that_no_line_lifts_is_a_refusal():
    policy = Policy(max_bytes_per_round=1)
    (release, *_) = releases({"name": "consensus"})
    with pytest.raises(PolicyRefusal, match="max_bytes_per_round"):
        lines_needed(policy, [dataclasses.replace(release, nbytes=9)])


def test_lines_are_written_and_comments_stay(tmp_path):
    path = tmp_path / "policy.toml"
    write_example(path, strict=True)
    write_lines(path, {"allow_clear": ("topic sizes",), "allow_metrics": True})
    text = path.read_text()
    assert Policy.load(path) == Policy.closed().model_copy(
        update={"allow_clear": ("topic sizes",), "allow_metrics": True}
    )
    assert [line for line in text.splitlines() if line.startswith("# ")] == [
        line for line in strict_example().splitlines() if line.startswith("# ")
    ]
    assert path.stat().st_mode & 0o077 == 0
    assert line_of("allow_metrics", True) in text.splitlines()


def test_a_policy_that_cannot_be_read_is_left_alone(tmp_path):
    path = tmp_path / "policy.toml"
    with pytest.raises(ConfigError, match="cannot be read"):
        write_lines(path, {"allow_metrics": True})
    path.write_text("allow_metrics = maybe")
    with pytest.raises(ConfigError, match="not valid TOML"):
        write_lines(path, {"allow_metrics": True})
    assert path.read_text() == "allow_metrics = maybe"
