"""Marks say what fields mean: nothing is recognised by its name, and no whole number goes unbounded."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NewType

import numpy as np
import pytest
from pydantic import BaseModel

from tertulia._arrays import Array
from tertulia.errors import FormatError, PolicyRefusal
from tertulia.federation import fields
from tertulia.federation.checks import check_question, check_reply, word_lists
from tertulia.federation.messages import NAMED, body
from tertulia.federation.types import doing_of, message, step
from tertulia.methods.registry import METHODS
from tertulia.privacy.policy import Policy


@message
class Task:
    terms: fields.Words  # called otherwise than everywhere else
    loops: fields.SweepCount
    table: Annotated[Array, fields.Numbers(("K", "V"), "f", 0)]


@message
class Reply:
    table: Annotated[Array, fields.Numbers(("K", "V"), "iu", -5)]
    how_many: fields.DocumentCount


@step(doing="trying marks out")
def attempt(party: Any, state: Any, ask: Task) -> tuple[Any, Reply]:
    """Never run."""
    raise AssertionError


WORDS = tuple(f"w{i}" for i in range(40))
TASK = Task(WORDS, 3, np.ones((2, 40)))


def test_a_whole_number_without_a_mark_is_an_error_at_import():
    @message
    class Unbounded:
        words: fields.Words
        loops: int

    with pytest.raises(TypeError, match=r"whole numbers that nothing bounds: Unbounded.loops. Annotate each"):

        @step
        def endless(party: Any, state: Any, ask: Unbounded) -> tuple[Any, Any]:
            """Never made."""


def asks(question):
    """Make a step that takes this question."""

    def taken(party, state, ask):
        """Never run."""

    taken.__annotations__["ask"] = question
    return step(taken)


def question_with(kind):
    """A message with one field of this type."""
    return message(type("Asked", (), {"__annotations__": {"value": kind}}))


OPEN = [
    Any, object, np.integer, np.int64, np.uint8, np.float32, NewType("Loops", int), dict, tuple, list, Sequence[int],
    dict[str, Any], tuple[object, ...], int | Any, Annotated[NewType("Loops", int), fields.Capped("max_sweeps")],
    Annotated[np.int64, fields.Capped("max_sweeps")], Path,
]  # fmt: skip


@pytest.mark.parametrize("kind", OPEN, ids=str)
def test_a_field_whose_type_the_checks_cannot_look_into_is_an_error_at_import(kind):
    with pytest.raises(TypeError, match=r"takes values of any type: Asked.value. Declare int, float"):
        asks(question_with(kind))
    outer = message(type("Outer", (), {"__annotations__": {"inner": tuple[question_with(kind), ...]}}))
    with pytest.raises(TypeError, match=r"takes values of any type: Asked.value"):
        asks(outer)


@pytest.mark.parametrize(
    "kind", [float, bool, str, None, Array, Literal["a", "b"], fields.Words, tuple[fields.Pairs, ...], Task | None]
)
def test_fields_of_plain_types_need_no_bound(kind):
    assert asks(question_with(kind))


def test_settings_that_travel_hold_no_values_of_any_type():
    class Open(BaseModel):
        given: Any = None

    with pytest.raises(TypeError, match=r"takes values of any type: Open.given"):
        asks(question_with(message(Open)))


@pytest.mark.parametrize("question", [Any, object, dict[str, int], Task | int, type("Plain", (), {})], ids=str)
def test_a_step_whose_question_is_no_message_is_an_error_at_import(question):
    with pytest.raises(TypeError, match="does not say which message it takes: annotate its third parameter"):
        asks(question)


def test_a_step_without_an_annotation_is_an_error_at_import():
    with pytest.raises(TypeError, match="does not say which message it takes"):

        @step
        def silent(party, state, ask):
            """Never made."""


def test_each_message_of_a_union_is_looked_into():
    with pytest.raises(TypeError, match=r"whole numbers that nothing bounds: Asked.value"):
        asks(Task | question_with(int))


@pytest.mark.parametrize("changed", [{"topics": 10**6}, {"words": 10**9}, {"hidden": (0,)}, {"dropout": 2.0}])
def test_the_sizes_of_a_network_are_bounded_by_their_marks(changed):
    pytest.importorskip("torch")
    from tertulia.methods.common.neural_messages import Architecture
    from tertulia.models.neural.architecture import Sizes, architecture_of
    from tertulia.models.neural.network import Network

    plain = architecture_of(Network("prodlda", Sizes(40, 3, hidden=(4, 4)), "batch", "float32"))
    right = Architecture.of(plain)
    assert right.plain() == plain
    taken = asks(Architecture)
    check_question(taken, right, Policy())
    with pytest.raises((FormatError, PolicyRefusal), match=next(iter(changed))):
        check_question(taken, dataclasses.replace(right, **changed), Policy())


@pytest.mark.parametrize("loops", [int | None, tuple[int, ...], dict[str, int]])
def test_whole_numbers_are_found_wherever_they_are(loops):
    kind = message(type("Nested", (), {"__annotations__": {"loops": loops}}))
    assert list(fields.unbounded(kind)) == ["Nested.loops"]


def test_every_step_of_every_method_says_what_it_does_and_bounds_its_numbers():
    for method in dict.fromkeys(entry.module for entry in METHODS.values()):
        for one in __import__(method, fromlist=["STEPS"]).STEPS:
            assert doing_of(one)
            assert "_" not in doing_of(one)


def test_a_policy_caps_a_number_by_its_mark():
    check_question(attempt, TASK, Policy(max_sweeps=3))
    with pytest.raises(PolicyRefusal, match="max_sweeps"):
        check_question(attempt, TASK, Policy(max_sweeps=2))


def test_a_word_list_is_found_and_named_by_its_mark():
    assert list(word_lists(TASK)) == [WORDS]
    encoded, lists = body("sum", attempt, TASK)
    assert list(lists.values()) == [WORDS]
    assert NAMED.encode()[1:] in encoded
    assert b"w39" not in encoded


def test_axes_bind_a_reply_to_its_question():
    right = Reply(np.zeros((2, 40), int), np.array(7))
    check_reply(right, attempt, TASK)
    with pytest.raises(FormatError, match="axis K has two lengths"):
        check_reply(Reply(np.zeros((3, 40), int), np.array(7)), attempt, TASK)
    with pytest.raises(FormatError, match="from -5 to inf"):
        check_reply(Reply(np.full((2, 40), -6), np.array(7)), attempt, TASK)
    with pytest.raises(FormatError, match="from 0 to 1000 is possible"):
        check_reply(Reply(np.zeros((2, 40), int), np.array(1001)), attempt, TASK, 1000)


def test_of_masked_values_only_shapes_are_checked():
    masked = Reply(np.full((2, 40), 2**62), np.array(2**62))
    check_reply(masked, attempt, TASK, masked=True)
    with pytest.raises(FormatError, match="axis K"):
        check_reply(Reply(np.zeros((3, 40), int), np.array(7)), attempt, TASK, masked=True)


def test_settings_that_travel_agree_with_the_plan_by_their_marks():
    from tertulia.federation.party.door import agrees
    from tertulia.methods.common.lda_settings import Training

    plan = {"topics": 5, "sweeps": 2, "start_sweeps": 9}
    assert agrees(Training(topics=5, sweeps=9), plan)
    assert not agrees(Training(topics=5, sweeps=7), plan)
    assert not agrees(Training(topics=6, sweeps=9), plan)


def test_a_party_answers_with_its_own_number_of_topics():
    """A run that continues an earlier model sends all its topics; a party replies with as many as it has itself."""
    from tertulia.methods.common.lda_settings import Training
    from tertulia.methods.common.local_lda import LocalTask, SizedModel, train_local

    task = LocalTask(WORDS, Training(topics=3), np.full((7, 40), 1 / 40), with_sizes=True)
    rows = np.full((3, 40), 1 / 40, np.float32)
    check_reply(SizedModel(rows, np.array(9), np.ones(3)), train_local, task)
    with pytest.raises(FormatError, match="axis K_p has two lengths"):
        check_reply(SizedModel(rows, np.array(9), np.ones(4)), train_local, task)


def test_the_terms_bound_every_public_count():
    from tertulia.methods.gfedntm.agreement import DocumentCounts, count_documents

    right = DocumentCounts(np.array([800, 100]), np.array([0, 0, 1]))
    check_reply(right, count_documents, TASK, 1000)
    with pytest.raises(FormatError, match="from 0 to 700 is possible"):
        check_reply(right, count_documents, TASK, 700)
