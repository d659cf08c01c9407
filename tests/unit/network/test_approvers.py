"""Two people approve a plan: keys, signatures in the ledger, and what is refused."""

from contextlib import closing

import pytest

from tertulia.errors import ConfigError, FormatError, PolicyRefusal
from tertulia.network.party.approvers import Approvers, lines_of, make_key
from tertulia.privacy.approvals import Approval
from tertulia.privacy.home import open_home
from tertulia.privacy.policy import Policy

RUN, PLAN, OTHER = "0123456789abcdef", "a" * 64, "b" * 64
PEOPLE = ("Anna Roth", "Ben Çelik")


@pytest.fixture
def place(tmp_path):
    tables = [make_key(tmp_path / f"{name[:3]}.pem", name) for name in PEOPLE]
    (tmp_path / "policy.toml").write_text("approvers = 2\n" + "".join(tables))
    return tmp_path


def approvers(place, plan=PLAN, policy=None):
    return Approvers(policy or Policy.load(place / "policy.toml"), place / "home", RUN, plan)


def test_both_sign_and_both_are_in_the_ledger(place):
    both = approvers(place)
    assert (both.needed, both.signed()) == (2, [])
    with pytest.raises(PolicyRefusal, match="2 people must approve this plan, and nobody did"):
        both.check()
    both.sign("Anna Roth", place / "Ann.pem")
    both.sign("Anna Roth", place / "Ann.pem")  # again: she counts once
    with pytest.raises(PolicyRefusal, match="and Anna Roth did"):
        both.check()
    both.sign("Ben Çelik", place / "Ben.pem")
    both.check()
    with closing(open_home(place / "home").ledger) as ledger:
        assert [one.name for one in ledger.approvals(RUN)] == list(PEOPLE)
        assert ledger.releases() == []
        assert [row.entry.id.split(":")[0] for row in ledger.entries()] == ["key", "approved", "approved"]


def test_an_approval_is_of_one_plan_by_people_of_the_policy(place):
    for name in PEOPLE:
        approvers(place).sign(name, place / f"{name[:3]}.pem")
    assert approvers(place, OTHER).signed() == []
    tables = (place / "policy.toml").read_text()
    left = Policy.parse("[[approver]]" + tables.split("[[approver]]")[2])  # Anna has left
    assert [one.name for one in approvers(place, policy=left).signed()] == ["Ben Çelik"]
    assert left.approvers == 1
    assert approvers(place, policy=left).needed == 0
    approvers(place, policy=left).check()


def test_a_forged_entry_does_not_count(place):
    known = {person.name: person.key for person in Policy.load(place / "policy.toml").approver}
    approvers(place).sign("Anna Roth", place / "Ann.pem")
    with closing(open_home(place / "home").ledger) as ledger:
        (hers,) = ledger.approvals(RUN)
        ledger.approve(Approval(RUN, PLAN, "Ben Çelik", known["Ben Çelik"], hers.signature))
        ledger.approve(Approval(RUN, OTHER, "Ben Çelik", known["Ben Çelik"], "no signature"))
    assert [one.name for one in approvers(place).signed()] == ["Anna Roth"]
    assert approvers(place, OTHER).signed() == []
    for body in ("[]", "{}", '{"run": 1, "plan": "", "name": "", "key": "", "signature": ""}', "{"):
        with pytest.raises(FormatError, match="an entry of an approval is damaged"):
            Approval.from_json(body, "")


def test_wrong_people_and_keys_are_refused(place):
    with pytest.raises(ConfigError, match=r"'Carl' is no approver of this party: policy\.toml names Anna Roth, Ben"):
        approvers(place).sign("Carl", place / "Ann.pem")
    with pytest.raises(ConfigError, match=r"Ben\.pem is not the key that policy\.toml has of 'Anna Roth'"):
        approvers(place).sign("Anna Roth", place / "Ben.pem")
    with pytest.raises(ConfigError, match="cannot be read"):
        approvers(place).sign("Anna Roth", place / "none.pem")
    (place / "bad.pem").write_text("no key")
    with pytest.raises(FormatError, match=r"bad\.pem"):
        approvers(place).sign("Anna Roth", place / "bad.pem")
    with pytest.raises(ConfigError, match="a key is made once"):
        make_key(place / "Ann.pem", "Anna Roth")
    assert (place / "Ann.pem").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("approvers = 2", "approvers = 2 needs as many tables"),
        ("approvers = 0", "a whole number from 1 to 9"),
        ('approvers = "two"', "a whole number from 1 to 9"),
        (lines_of("A", "00") * 2, "two tables .* have the name 'A'"),
        (lines_of("A", "00") + lines_of("B", "00"), "two tables .* have the key '00'"),
        (lines_of("A", "no hex"), "the public key that"),
        (lines_of("", "00"), "write a name"),
        ('[[approver]]\nname = "A"', "'approver.0.key' is missing"),
    ],
)
def test_wrong_policies_are_explained(text, says):
    with pytest.raises(ConfigError, match=says):
        Policy.parse(text)


def test_the_command_prints_the_table(tertulia, tmp_path):
    code, out, err = tertulia("approver", "Anna Roth", "--key", tmp_path / "anna.pem")
    assert code == 0, err
    assert Policy.parse(out).approver[0].name == "Anna Roth"
    code, _, err = tertulia("approver", "Anna \x1b[31m", "--key", tmp_path / "other.pem")
    assert (code, (tmp_path / "other.pem").exists()) == (1, False)
