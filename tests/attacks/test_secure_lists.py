"""Attacks on masked sums by a server, also together with members: each place yields at most one total.

The server shows different lists to different members, replays, reorders, rolls back, asks the same place again without
somebody, asks another question at the same place, keeps late messages, and asks for shares twice. Every test says what
the members must refuse; with the check taken out it fails.
"""

import dataclasses
from itertools import combinations

import numpy as np
import pytest

from helpers import masked_toys as toys
from helpers.attacks_secure import Members, refused
from tertulia.errors import FormatError, PartyFailure
from tertulia.federation.messages import BEFORE_ALL
from tertulia.federation.party.host import PartyHost
from tertulia.federation.secure.lists import threshold
from tertulia.federation.secure.masks import add_masks
from tertulia.federation.server.secure_sums import NOT_CANCELLED
from tertulia.federation.types import Nothing

ONE = "one total per place"
TASK = toys.Task(3)


@pytest.fixture
def members(tmp_path):
    found = Members(tmp_path, 5)
    yield found
    found.close()


def true_total(names, round_=3):
    return sum(toys.numbers_of(name, round_)[0] for name in names)


def test_the_honest_course_gives_the_total(members):
    replies = members.replies(toys.contribute, TASK)
    label = members.label(toys.contribute, TASK)
    signatures = members.signatures(members.listed(label, replies), replies)
    counts, _, _ = members.unmask(label, replies, signatures)
    assert np.array_equal(counts.view(np.int32), true_total(members.names))


def test_single_replies_look_uniform_and_two_rounds_are_independent(members):
    seen = []
    for ordinal in range(40):
        replies = members.replies(toys.contribute, TASK, (0, ordinal), parties=members.names[:2])
        seen.append([reply.values.counts.copy() for reply in replies.values()])
    flat = np.array(seen)  # [places, parties, cells]: what is hidden is the same at every place
    for party in range(2):
        bytes_ = np.ascontiguousarray(flat[:, party]).view(np.uint8).reshape(-1)
        counts = np.bincount(bytes_, minlength=256)
        assert ((counts - counts.mean()) ** 2 / counts.mean()).sum() < 350  # chi-squared with 255 degrees of freedom
    rounds = flat[:, 0].astype(float)
    correlations = np.corrcoef(rounds)[np.triu_indices(len(rounds), 1)]
    assert np.abs(correlations).mean() < 1.3 * np.sqrt(2 / np.pi / (toys.CELLS - 1))  # as of independent draws
    assert len(np.unique(flat)) > 0.999 * flat.size


def test_two_lists_at_one_place_never_both_get_enough_signatures(members):
    """Whatever two lists the server shows, with one member on its side (c = 1) it gets one total at most."""
    replies = members.replies(toys.contribute, TASK)
    label, t = members.label(toys.contribute, TASK), threshold(5)
    one = {p: replies[p] for p in members.names[:4]}
    two = {p: replies[p] for p in members.names[1:]}
    colluding = members.names[2]  # signs everything
    members.transport.hosts[colluding].secure.sums.records.check_list = lambda listed: None
    first = members.signatures(members.listed(label, one), one, members.names[:3])
    second = members.signatures(members.listed(label, two), two)
    assert len(first) == 3
    assert set(second) == {colluding, *members.names[3:]}
    assert max(len(first), len(second)) < t
    assert refused(members.present(members.names[4], members.listed(label, two), two, second))  # no shares


def test_a_list_signed_by_too_few_or_by_strangers_gets_no_shares(members):
    replies = members.replies(toys.contribute, TASK)
    listed = members.listed(members.label(toys.contribute, TASK), replies)
    signatures = members.signatures(listed, replies)
    for few in (dict(list(signatures.items())[:3]), dict.fromkeys(members.names, signatures[members.names[0]])):
        assert refused(members.present(members.names[1], listed, replies, few), "secure")
    strangers = {f"stranger{i}": signature for i, signature in enumerate(signatures.values())}
    assert refused(members.present(members.names[1], listed, replies, strangers), "secure")


def test_the_same_place_again_without_somebody_is_refused(members):
    """The difference of the two totals would be that party's numbers."""
    replies = members.replies(toys.contribute, TASK)
    label = members.label(toys.contribute, TASK)
    members.signatures(members.listed(label, replies), replies)
    without = {p: r for p, r in replies.items() if p != members.names[0]}
    for attempt in (0, 1, 7):
        again = members.label(toys.contribute, TASK, attempt=attempt)
        fresh = without if not attempt else members.replies(
            toys.contribute, TASK, attempt=attempt, parties=members.names[1:]
        )  # fmt: skip
        for party in members.names[1:]:
            assert refused(members.present(party, members.listed(again, fresh), fresh), ONE)


def test_the_same_survivors_may_be_asked_again_and_give_the_same_total(members):
    replies = members.replies(toys.contribute, TASK)
    first = members.label(toys.contribute, TASK)
    one = members.unmask(first, replies, members.signatures(members.listed(first, replies), replies))
    again = members.replies(toys.contribute, TASK, attempt=1)
    assert not np.array_equal(again[members.names[0]].values.counts, replies[members.names[0]].values.counts)
    label = members.label(toys.contribute, TASK, attempt=1)
    two = members.unmask(label, again, members.signatures(members.listed(label, again), again))
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


def total_at(members, step, message, place, envelopes, attempt=0, signers=None):
    """Ask each party by its own envelope, and unmask the total."""
    replies = {}
    for party, envelope in envelopes.items():
        replies |= members.replies(step, message, place, parties=[party], attempt=attempt, **envelope)
    label = members.label(step, message, place, attempt=attempt)
    signatures = members.signatures(members.listed(label, replies), replies, signers)
    return members.unmask(label, replies, signatures, signers)[0].view(np.int32)


@pytest.mark.parametrize("signs", [True, False])
@pytest.mark.parametrize("counted", [BEFORE_ALL, (0, 0)])
def test_a_party_that_was_rolled_back_does_not_give_a_second_total(signs, counted, members):
    """One party answers again, on an older state: the totals would differ by its numbers, exactly.

    Without its signature, too: the others suffice for a list that names it.
    """
    target, kept = members.names[0], toys.contribute_kept
    for ordinal, round_ in enumerate((1, 2)):
        before = {"previous": BEFORE_ALL if not ordinal else (0, 0)}
        total_at(members, toys.keep_task, toys.Task(round_), (0, ordinal), dict.fromkeys(members.names, before))
    known = {name: {"previous": (0, 1)} for name in members.names}
    signers = members.names if signs else members.names[1:]
    first = total_at(members, kept, Nothing(), (0, 2), known, signers=signers)
    assert np.array_equal(first, sum(np.abs(toys.numbers_of(name, 2)[0]) for name in members.names))
    assert members.ask(target, toys.keep_task, toys.Task(1), (0, 3), previous=(0, 0)).kind == "ok"  # voids its answers
    answer = members.ask(target, kept, Nothing(), (0, 2), previous=(0, 0), counted=counted, attempt=1)
    assert refused(answer, ONE)
    for party in members.names[1:]:
        assert members.ask(party, kept, Nothing(), (0, 2), previous=(0, 1), attempt=1).kind == "ok"


def test_another_body_at_a_place_with_a_signed_list_is_refused(members):
    replies = members.replies(toys.contribute, TASK)
    members.signatures(members.listed(members.label(toys.contribute, TASK), replies), replies)
    for party in members.names:
        assert refused(members.ask(party, toys.contribute, toys.Task(4)), ONE)
        assert refused(members.ask(party, toys.contribute, TASK, widths=(64,)), ONE)  # widths belong to the body
        assert refused(members.ask(party, toys.contribute, toys.Task(4), attempt=3), ONE)


def test_a_rollback_does_not_open_a_place_again(members):
    replies = members.replies(toys.contribute, TASK, (0, 1))
    label = members.label(toys.contribute, TASK, (0, 1))
    members.signatures(members.listed(label, replies), replies)
    party = members.names[0]
    assert members.ask(party, toys.contribute, toys.Task(9), (0, 0), previous=BEFORE_ALL).kind == "ok"  # goes back
    assert refused(members.ask(party, toys.contribute, toys.Task(9), (0, 1), previous=(0, 0)), ONE)
    directory = members.run.party_directory(party)
    members.transport.hosts[party] = PartyHost(directory)  # a restart forgets nothing
    assert refused(members.ask(party, toys.contribute, toys.Task(9), (0, 1), previous=(0, 0)), ONE)


def test_rounds_that_are_over_are_refused(members):
    party = members.names[0]
    members.ask(party, toys.contribute, TASK, (0, 0))
    assert members.ask(party, toys.contribute, TASK, (5, 0), safe=5).kind == "ok"
    assert refused(members.ask(party, toys.contribute, toys.Task(8), (0, 0), previous=BEFORE_ALL, safe=5), ONE)


def test_a_repeat_gives_the_same_bytes_and_a_smaller_attempt_is_refused(members):
    party = members.names[0]
    first = members.replies(toys.contribute, TASK, parties=[party], attempt=2)[party]
    members.transport.hosts[party] = PartyHost(members.run.party_directory(party))
    again = members.replies(toys.contribute, TASK, parties=[party], attempt=2)[party]
    assert np.array_equal(first.values.counts, again.values.counts)
    assert np.array_equal(first.boxes, again.boxes)
    assert refused(members.ask(party, toys.contribute, TASK, attempt=1), ONE)


def test_a_late_reply_of_a_dropped_party_stays_masked(members):
    """Its pairwise masks become known when it is repaired; the mask of its own remains."""
    late, there = members.names[0], members.names[1:]
    replies = members.replies(toys.contribute, TASK)
    kept = {p: replies[p] for p in there}
    label = members.label(toys.contribute, TASK)
    listed = members.listed(label, kept)
    signatures = members.signatures(listed, kept, there)
    shares = {p: members.present(p, listed, kept, signatures).reply for p in members.names}
    values = replies[late].values.counts.copy()
    zeros = replies[late].zeros.copy()
    pairs = {p: shares[p].own_pairs[0].tobytes() for p in there}  # all masks that it shares with survivors
    for v, party in enumerate(members.names):
        if party != late:
            add_masks([zeros, values], [(pairs[party], -1 if v > 0 else 1)])
    assert zeros.any()  # the self-mask is still there
    assert not np.array_equal(values.view(np.int32), toys.numbers_of(late, 3)[0])
    counts, _, _ = members.unmask(label, kept, signatures)
    assert np.array_equal(counts.view(np.int32), true_total(there))
    for party in members.names:  # and no member gives a share of it any more
        assert refused(members.present(party, members.listed(label, replies), replies, signatures))


def test_shares_for_a_survivor_are_never_of_its_pairs_and_the_other_way_round(members):
    """A member that gave both shares of one party would unmask it."""
    replies = members.replies(toys.contribute, TASK)
    kept = {p: replies[p] for p in members.names[:4]}
    label = members.label(toys.contribute, TASK)
    listed = members.listed(label, kept)
    signatures = members.signatures(listed, kept)
    given = members.present(members.names[1], listed, kept, signatures).reply
    assert given.of_selves.shape == (4, 16)
    assert given.of_pairs.shape == (4, 1, 16)  # of survivors with the one that is not listed
    again = members.present(members.names[1], listed, kept, signatures).reply
    assert np.array_equal(given.of_selves, again.of_selves)  # asked twice: the same


@pytest.mark.parametrize("few", [1, 2, 3])
def test_a_list_of_few_is_refused(few, members):
    replies = members.replies(toys.contribute, TASK)
    label = members.label(toys.contribute, TASK)
    for chosen in combinations(members.names, few):
        listed = members.listed(label, {p: replies[p] for p in chosen})
        assert members.present(chosen[0], listed, {p: replies[p] for p in chosen}).kind == "failed"


def test_a_list_with_a_reply_that_was_not_given_is_refused(members):
    replies = members.replies(toys.contribute, TASK)
    label = members.label(toys.contribute, TASK)
    changed = dict(replies)
    victim = members.names[2]
    changed[victim] = dataclasses.replace(replies[victim], digest=replies[victim].digest ^ 1)
    listed = members.listed(label, changed)
    for party in members.names:
        assert members.present(party, listed, changed).kind in ("failed", "refused")


def test_boxes_of_another_question_do_not_open(members):
    first = members.replies(toys.contribute, TASK, (0, 0))
    second = members.replies(toys.contribute, TASK, (0, 1))
    label = members.label(toys.contribute, TASK, (0, 1))
    mixed = {p: dataclasses.replace(second[p], boxes=first[p].boxes) for p in members.names}
    assert members.present(members.names[0], members.listed(label, mixed), mixed).kind == "failed"


def test_few_first_contributions_are_not_added(members):
    """One whole contribution among differences: the server would read it off the change of the total."""
    old = members.names[1:]
    for party in old:  # they have contributed before
        members.ask(party, toys.change, toys.Task(0), (0, 0))
    replies = members.replies(toys.change, toys.Task(1), (0, 1), parties=[members.names[0]])
    replies |= members.replies(toys.change, toys.Task(1), (0, 1), parties=old, previous=(0, 0), counted=(0, 0))
    label = members.label(toys.change, toys.Task(1), (0, 1))
    listed = members.listed(label, replies)
    for party in members.names:
        assert refused(members.present(party, listed, replies), "secure")


def test_a_server_cannot_pretend_that_a_contribution_was_not_added(members):
    """Else the party would send it whole again, among differences of the others."""
    task, place = toys.Task(0), (0, 0)
    replies = members.replies(toys.change, task, place)
    label = members.label(toys.change, task, place)
    listed = members.listed(label, replies)
    signatures = members.signatures(listed, replies)
    party = members.names[0]
    members.present(party, listed, replies, signatures)
    answer = members.ask(party, toys.change, toys.Task(1), (0, 1), previous=place, counted=BEFORE_ALL)
    assert refused(answer, ONE)


def test_plain_sums_and_single_replies_are_refused_in_a_run_with_secure_sums(members):
    party = members.names[0]
    assert members.ask(party, toys.contribute, TASK, attempt=-1).kind == "failed"
    assert members.ask(party, toys.show, TASK, verb="each", attempt=-1).kind in ("failed", "refused")
    assert members.ask(party, toys.contribute, TASK, verb="each", attempt=-1).kind in ("failed", "refused")


def test_masks_that_do_not_cancel_are_noticed(members):
    replies = members.replies(toys.contribute, TASK)
    label = members.label(toys.contribute, TASK)
    liar = members.names[3]
    zeros = replies[liar].zeros.copy()
    zeros[0] += np.uint64(1)
    changed = replies | {liar: dataclasses.replace(replies[liar], zeros=zeros)}
    signatures = members.signatures(members.listed(label, replies), replies)
    listed = members.listed(label, replies)
    shares = {p: members.present(p, listed, replies, signatures).reply for p in members.names}
    found = members.sums.add_up((0, 0), "step", "", members.sums.masking(""), changed)
    with pytest.raises(FormatError, match=NOT_CANCELLED[:20]):
        members.sums._unmask((0, 0), found, members.sums._seeds(found, shares))


def test_a_wrong_share_is_not_used_and_its_sender_is_named(members):
    warnings = []
    members.sums._warn = warnings.append
    replies = members.replies(toys.contribute, TASK)
    label = members.label(toys.contribute, TASK)
    listed = members.listed(label, replies)
    signatures = members.signatures(listed, replies)
    shares = {p: members.present(p, listed, replies, signatures).reply for p in members.names}
    liar = members.names[1]
    shares[liar] = dataclasses.replace(shares[liar], of_selves=shares[liar].of_selves ^ 5)
    found = members.sums.add_up((0, 0), "step", "", members.sums.masking(""), replies)
    seeds = members.sums._seeds(found, shares)
    counts, _, _ = members.sums._unmask((0, 0), found, seeds)
    assert np.array_equal(counts.view(np.int32), true_total(members.names))
    assert warnings
    assert all(f"party '{liar}' gave a wrong share" in text for text in warnings)
    for other in members.names[2:3]:  # two liars among five: four right shares are not there
        shares[other] = dataclasses.replace(shares[other], of_selves=shares[other].of_selves ^ 9)
    with pytest.raises(PartyFailure, match="no 4 shares give the self-mask"):
        members.sums._seeds(found, shares)


# --- what lists that change tell --------------------------------------------------------------------------------------

ABSENT = 0  # the place of the party that is in the first and the last list, and not in the second


def totals_of_three_lists(members, step, verb="sum"):
    """Totals over all members, over all but one, and over all again, as the server unmasks them."""
    last, totals = dict.fromkeys(members.names, BEFORE_ALL), []
    for ordinal in range(3):
        place, task = (0, ordinal), toys.Task(ordinal)
        there = [p for p in members.names if ordinal != 1 or p != members.names[ABSENT]]
        replies = {}
        for party in there:
            known = {"previous": last[party], "counted": last[party], "verb": verb}
            replies |= members.replies(step, task, place, parties=[party], **known)
        label = members.label(step, task, place, verb=verb)
        signatures = members.signatures(members.listed(label, replies), replies)
        totals.append(members.unmask(label, replies, signatures))
        last |= dict.fromkeys(there, place)
    return totals


def tells(rows, wanted) -> bool:
    """Whether a number follows from totals: all are combinations of the parties' numbers, given by coefficients."""
    return bool(np.linalg.matrix_rank(np.vstack([rows, wanted])) == np.linalg.matrix_rank(rows))


def test_a_changed_list_tells_the_weight_of_the_one_that_changed(members):
    """The weights of `mean` are no differences, and those of one party are the same in each round."""
    weights = [total[-1].view(np.int64)[()] / 2**32 for total in totals_of_three_lists(members, toys.average, "mean")]
    own = [2 + len(name) for name in members.names]
    assert weights == [sum(own), sum(own) - own[ABSENT], sum(own)]
    assert weights[0] - weights[1] == own[ABSENT]  # exactly
    lists = np.ones((3, 5))
    lists[1, ABSENT] = 0
    assert np.array_equal(lists @ own, weights)
    assert [tells(lists, one) for one in np.eye(5)] == [True] + [False] * 4  # and nobody else's


@pytest.mark.parametrize("step", [toys.change, toys.rate])
def test_changes_and_standing_totals_tell_nothing_of_the_one_that_changed(step, members):
    """Its numbers stay in the total while it is away, and when it returns only their change is added."""
    totals = totals_of_three_lists(members, step)
    if step is toys.change:
        found = [total[0].view(np.int32) for total in totals]
        held = [[np.abs(toys.numbers_of(name, r)[0]) for name in members.names] for r in range(3)]
    else:
        found = [total[0].view(np.int64) / 2**32 for total in totals]
        held = [[toys.numbers_of(name, r)[2] for name in members.names] for r in range(3)]
    numbers = np.eye(15).reshape(3, 5, 15)  # [round, party]: the coefficients of what a party holds in a round
    there = [p for p in range(5) if p != ABSENT]
    rows = [
        numbers[0].sum(axis=0),
        (numbers[1] - numbers[0])[there].sum(axis=0),
        (numbers[2] - numbers[1])[there].sum(axis=0) + numbers[2, ABSENT] - numbers[0, ABSENT],
    ]
    values = np.array(held).reshape(15, -1)
    for row, total in zip(rows, found, strict=True):  # these are the totals that the server has
        assert np.allclose(row @ values, np.reshape(total, -1))
    for round_ in range(3):
        for party in range(5):
            assert not tells(rows, numbers[round_, party])
            assert not round_ or not tells(rows, numbers[round_, party] - numbers[0, party])
    same = np.stack(rows).reshape(3, 3, 5).sum(axis=1)  # numbers that stay the same, as weights do
    assert np.array_equal(same, [[1] * 5, [0] * 5, [0] * 5])
    assert not any(tells(same, one) for one in np.eye(5))
