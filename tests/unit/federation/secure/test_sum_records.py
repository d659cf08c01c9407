"""What a party records of masked sums before anything leaves: one list per place, through crashes and compaction."""

import pytest

from tertulia.errors import FormatError, PolicyRefusal
from tertulia.federation.messages import BEFORE_ALL
from tertulia.federation.party import sum_records
from tertulia.federation.party.sum_records import Masked, SumRecords
from tertulia.federation.secure.lists import Label, SumList

REPLY = Masked("step", b"r" * 32, "digest", BEFORE_ALL, True, True, "contents")


def listed(place=(1, 0), body="b", attempt=0, who=("a", "b", "c")):
    return SumList(Label("keys", place, body, attempt), dict.fromkeys(who, "digest"))


@pytest.fixture
def opened(tmp_path):
    def open_again():
        return SumRecords(tmp_path / "sums.log", durable=True)

    return open_again


def test_a_record_outlives_its_process(opened):
    records = opened()
    records.add_reply((1, 0), "b", 0, REPLY)
    records.sign(listed())
    records.count("step", (1, 0))
    again = opened()
    assert again.reply_or_none((1, 0), "b", 0) == REPLY
    with pytest.raises(PolicyRefusal, match="other survivors"):
        again.check_list(listed(who=("a", "b", "d")))
    with pytest.raises(PolicyRefusal, match="earlier reply"):
        again.check_counted("step", (0, 3))
    again.check_counted("step", (1, 0))


def test_one_list_per_place(opened):
    records = opened()
    records.check_list(listed())
    records.sign(listed())
    records.check_list(listed())  # the same again
    records.check_list(listed(attempt=1))  # the same body and survivors, masked afresh
    for other in (listed(body="other"), listed(who=("a", "b")), listed(attempt=2, who=("a", "b"))):
        with pytest.raises(PolicyRefusal, match="one total per place"):
            records.check_list(other)
    with pytest.raises(PolicyRefusal):
        records.check((1, 0), "other", 5)
    records.check_list(listed(place=(1, 1), body="other", who=("a", "b")))  # another place


def test_attempts_only_grow(opened):
    records = opened()
    records.add_reply((1, 0), "b", 2, REPLY)
    records.check((1, 0), "b", 2)
    with pytest.raises(PolicyRefusal, match="attempt 2"):
        records.check((1, 0), "b", 1)


def test_other_numbers_for_an_answered_question_are_refused_at_any_attempt(opened):
    records = opened()
    records.check_repeat((1, 0), "b", BEFORE_ALL, "contents")
    records.add_reply((1, 0), "b", 2, REPLY)
    for found in (records, opened()):
        found.check_repeat((1, 0), "b", BEFORE_ALL, "contents")
        found.check_repeat((1, 0), "wider", BEFORE_ALL, "other")  # one of the two bodies gets a total
        found.check_repeat((1, 1), "b", (1, 0), "other")
        with pytest.raises(PolicyRefusal, match="with other numbers"):
            found.check_repeat((1, 0), "b", BEFORE_ALL, "other")
        with pytest.raises(PolicyRefusal, match="another reply as the last"):
            found.check_repeat((1, 0), "b", (0, 0))


def test_a_line_that_a_crash_has_cut_off_counts_for_nothing(opened, tmp_path):
    records = opened()
    records.add_reply((1, 0), "b", 0, REPLY)
    records.sign(listed())
    path = tmp_path / "sums.log"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])  # only the end of the line is missing
    with pytest.raises(PolicyRefusal):
        opened().check_list(listed(who=("a", "b", "d")))
    assert path.read_bytes() == whole
    for cut in range(2, 40, 7):
        path.write_bytes(whole[:-cut])
        again = opened()
        assert again.reply_or_none((1, 0), "b", 0) == REPLY
        again.check_list(listed(who=("a", "b", "d")))  # the signature was not recorded, so it has not left
        again.sign(listed(who=("a", "b", "d")))
        with pytest.raises(PolicyRefusal):
            opened().check_list(listed())


def test_damage_elsewhere_is_an_error(opened, tmp_path):
    records = opened()
    records.add_reply((1, 0), "b", 0, REPLY)
    records.sign(listed())
    path = tmp_path / "sums.log"
    path.write_bytes(path.read_bytes().replace(b"digest", b"dogest", 1))
    with pytest.raises(FormatError, match="damaged in line 1"):
        opened()


def test_old_rounds_are_dropped_and_refused(opened, tmp_path, monkeypatch):
    monkeypatch.setattr(sum_records, "_COMPACTED", 10)
    records = opened()
    standing = Masked("score", b"r" * 32, "digest", BEFORE_ALL, True, True, "contents", ((1, 2), (3,)))
    for round_ in range(30):
        records.add_reply((round_, 0), "b", 0, standing)
        records.sign(listed(place=(round_, 0)))
        records.count("score", (round_, 0))
    size = (tmp_path / "sums.log").stat().st_size
    records.forget_before(28)
    assert (tmp_path / "sums.log").stat().st_size < size / 5
    for found in (records, opened()):
        with pytest.raises(PolicyRefusal, match="round 3 is over"):
            found.check((3, 0), "b", 0)
        with pytest.raises(PolicyRefusal):
            found.check_list(listed(place=(29, 0), who=("a", "b")))
        assert found.standing_or_none("score", (29, 0)) == ((1, 2), (3,))
        assert found.reply_or_none((29, 0), "b", 0) == standing
