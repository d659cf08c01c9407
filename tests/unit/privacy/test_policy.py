"""A party's policy: each rule refuses by its name, and a wrong file says what to write."""

import re
from dataclasses import replace

import numpy as np
import pytest

from helpers.mechanisms import Concentrated
from tertulia.errors import ConfigError, PolicyRefusal
from tertulia.privacy.ledger import Ledger, Release
from tertulia.privacy.mechanisms import Clear, Derived, DiscreteLaplace, Mechanism, Public, Unit
from tertulia.privacy.policy import Policy, example

LAPLACE = DiscreteLaplace("counts", 1, 1.0)
BUDGET = '[[budget]]\nunit = "document"\nepsilon = 2.0\ndelta = 0.0\n'


def release(mechanism: Mechanism, name: str = "a", when: int = 1, verb: str = "sum", run: str = "r") -> Release:
    x = np.zeros(4)
    return Release.of(
        mechanism, id=name, party="north", round=when, step="m:s", verb=verb, message_hash="ff", x=x, run=run
    )


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    yield ledger
    ledger.close()


def refusal(policy: str, ledger: Ledger, record: Release) -> PolicyRefusal:
    with pytest.raises(PolicyRefusal) as caught:
        ledger.check(record, Policy.parse(policy))
    assert caught.value.rule in str(caught.value)
    assert record.id not in [r.id for r in ledger.releases()]
    return caught.value


def allowed(policy: str, ledger: Ledger, record: Release) -> bool:
    ledger.check(record, Policy.parse(policy))
    return True


def test_without_a_file_clear_is_allowed(ledger):
    assert allowed("", ledger, release(Clear("topics"), verb="each"))


def test_clear_releases_can_be_forbidden_or_listed(ledger):
    assert refusal("allow_clear = false", ledger, release(Clear("topics"))).rule == "allow_clear"
    assert refusal('allow_clear = ["sizes"]', ledger, release(Clear("topics"))).rule == "allow_clear"
    assert allowed('allow_clear = ["topics"]', ledger, release(Clear("topics")))
    assert allowed("allow_clear = false", ledger, release(LAPLACE))


def test_only_what_is_declared_public_is_public(ledger):
    assert allowed("", ledger, release(Public("number of documents")))
    assert refusal("", ledger, release(Public("vocabulary"))).rule == "declared_public"
    assert allowed('declared_public = ["vocabulary"]', ledger, release(Public("vocabulary")))


def test_single_replies_can_be_forbidden(ledger):
    policy = "allow_single = false"
    assert refusal(policy, ledger, release(Clear("topics"), verb="each")).rule == "allow_single"
    for verb in ("sum", "mean"):  # until sums are secure, the server's machine gets single replies all the same
        assert refusal(policy, ledger, release(Clear("topics"), verb=verb)).rule == "allow_single"
    assert allowed(policy, ledger, release(Public("number of documents"), verb="each"))


def test_scores_can_stay_at_home(ledger):
    score = Clear("held-out log likelihood", metric=True)
    assert refusal("allow_metrics = false", ledger, release(score)).rule == "allow_metrics"
    assert refusal("allow_clear = false", ledger, release(score)).rule == "allow_clear"
    assert allowed("allow_metrics = false", ledger, release(Clear("topics")))


def test_bytes_are_counted_by_round_and_run(ledger):
    policy = "max_bytes_per_round = 64"
    for i in range(2):
        ledger.record(release(Clear("topics"), f"r{i}"), Policy.parse(policy))
    error = refusal(policy, ledger, release(Clear("topics"), "r2"))
    assert error.rule == "max_bytes_per_round"
    assert "64 left in round 1" in str(error)
    assert allowed(policy, ledger, release(Clear("topics"), "r1"))  # a repeat is the same bytes
    assert allowed(policy, ledger, release(Clear("topics"), "r2", when=2))
    assert allowed(policy, ledger, release(Clear("topics"), "r2", run="another"))


def test_the_budget_is_refused_by_name_before_anything_is_recorded(ledger):
    policy = Policy.parse(BUDGET)
    for i in range(2):
        ledger.record(release(LAPLACE, f"r{i}"), policy)
    digest = ledger.digest()
    with pytest.raises(PolicyRefusal, match=r"budget\.document\.add-remove.*bring epsilon to 3 at delta 0, beyond 2"):
        ledger.record(release(LAPLACE, "r2"), policy)
    assert ledger.digest() == digest
    assert not ledger.record(release(LAPLACE, "r1"), policy)  # a repeat costs nothing
    ledger.record(release(Derived("shares", parents=("r1",)), "free"), policy)
    ledger.record(release(Public("number of documents"), "known"), policy)


def test_a_budget_forbids_what_is_clear(ledger):
    error = refusal(BUDGET, ledger, release(Clear("topics")))
    assert error.rule == "budget.document.add-remove"
    assert "topics left in the clear" in str(error)


def test_a_document_budget_needs_a_limit_of_tokens(ledger):
    tokens = release(replace(LAPLACE, epsilon=0.1, unit=Unit.TOKEN))
    assert "no limit of tokens per document is declared" in str(refusal(BUDGET, ledger, tokens))
    assert allowed("max_tokens_per_document = 20\n" + BUDGET, ledger, tokens)
    assert "bring epsilon to 2.1" in str(refusal("max_tokens_per_document = 21\n" + BUDGET, ledger, tokens))


def test_all_budgets_must_hold(ledger):
    both = BUDGET + BUDGET.replace("document", "token").replace("2.0", "1.0")
    record = release(replace(LAPLACE, epsilon=0.8))
    assert refusal(both, ledger, record).rule == "budget.token.add-remove"  # one token may turn a document into another


def test_a_gaussian_budget_counts_rounds(ledger):
    policy = Policy.parse(BUDGET.replace("2.0", "3.0").replace("0.0", "1e-6"))
    moments = Concentrated("moments", rho=0.02)  # of deviation 5
    for i in range(9):
        ledger.record(release(moments, f"r{i}", i), policy)
    with pytest.raises(PolicyRefusal):  # mu = sqrt(rounds)/5 <= 0.6477 would allow ten; concentrated DP gives one away
        ledger.record(release(moments, "r9", 9), policy)


def test_the_example_is_the_default_and_each_hint_is_valid(tmp_path):
    text = example()
    assert Policy.parse(text) == Policy()
    (tmp_path / "policy.toml").write_text(text)
    assert Policy.load(tmp_path / "policy.toml") == Policy()
    hints = re.findall(r"^#(\w+ = .*)$", text.split("#[[budget]]")[0], flags=re.M)
    assert len(hints) == 21
    people = "".join(
        f'\n[[approver]]\nname = "{name}"\nkey = "{key}"\n' for name, key in (("Anna", "3059"), ("Ben", "305a"))
    )
    for hint in hints:
        assert Policy.parse(hint + people if hint.startswith("approvers") else hint) != Policy()
    budget = re.sub(r"^#(?! )", "", "#[[budget]]" + text.split("#[[budget]]")[1], flags=re.M)
    assert Policy.parse(budget).budget[0].epsilon == 3.0
    explained = set(re.findall(r"^#?(\w+) = ", text, flags=re.M))
    settings = set(Policy.model_fields) - {"approver", "budget", "record"}
    assert explained >= settings | {"unit", "adjacency", "epsilon", "delta"}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("allow_clear = 1", "policy.toml: allow_clear = 1 will not do; write true, false, or a list"),
        ('allow_clear = "no"', "allow_clear = 'no' will not do; write true, false, or a list"),
        ("alow_clear = true", "there is no key 'alow_clear' (= True); did you mean 'allow_clear'?"),
        ("zzz = 1", "there is no key 'zzz' (= 1); the keys are allow_clear, declared_public"),
        ("declared_public = [3]", "declared_public.0 = 3 will not do; write a list"),
        ("max_bytes_per_round = 0", "max_bytes_per_round = 0 will not do; write a whole number of bytes above 0"),
        ("budget = 3", "budget = 3 will not do; write tables headed [[budget]]"),
        ('[[budget]]\nunit = "word"\nepsilon = 1', 'budget.0.unit = \'word\' will not do; write "token", "document"'),
        ('[[budget]]\nunit = "token"', "'budget.0.epsilon' is missing; write a positive number"),
        ('[[budget]]\nunit = "token"\nepsilon = -1', "budget.0.epsilon = -1 will not do; write a positive number"),
        ('[[budget]]\nunit = "token"\nepsilon = inf', "budget.0.epsilon = inf will not do"),
        ('[[budget]]\nunit = "token"\nepsilon = 1\ndelta = 1', "budget.0.delta = 1 will not do; write a number from 0"),
        ('[[budget]]\nunit = "token"\neps = 1', "there is no key 'budget.0.eps' (= 1)"),
        ("allow_clear = ", "policy.toml is not valid TOML"),
    ],
)
def test_a_wrong_file_says_what_to_write(text, error):
    with pytest.raises(ConfigError, match=re.escape(error)):
        Policy.parse(text)


def test_a_missing_or_unreadable_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"policy\.toml cannot be read"):
        Policy.load(tmp_path / "policy.toml")
    (tmp_path / "policy.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"policy\.toml cannot be read"):
        Policy.load(tmp_path / "policy.toml")


def test_a_policy_still_answers_to_the_name_that_ledgers_of_before_have_for_it():
    """Keys that are added to policies must not change it: rows without limits are converted by it."""
    policy = Policy.parse('max_tokens_per_document = 8\n[[budget]]\nunit = "user"\nepsilon = 2.0\n')
    assert policy.bounds.policies == {"05b24401f9866fa8"}
