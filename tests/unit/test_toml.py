"""Edits of TOML files that people wrote."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia._toml import toml_value, with_value
from tertulia.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a = 1\n", "a = 1\nb = true\n"),
        ("b = false # why\n", "b = true\n"),
        ("#b = 1\nb = false\n#b = 2\n", "#b = 1\nb = true\n#b = 2\n"),
        ("[[budget]]\nb = 3\n", "b = true\n[[budget]]\nb = 3\n"),
        ("a = [\n  1,\n]\n[t]\n", "a = [\n  1,\n]\nb = true\n[t]\n"),
        ("b = [\n  [1],\n  [2],\n]\n", "b = true\n"),
        ("", "b = true\n"),
        ("a = 1", None),  # its last line has no end
    ],
)
def test_one_line_changes_and_the_rest_stays(text, wanted):
    if wanted is None:
        assert tomllib.loads(with_value(text, "b", True)) == {"a": 1, "b": True}
    else:
        assert with_value(text, "b", True) == wanted


@pytest.mark.parametrize("text", ['"b" = 1\n', "b.c = 1\n", 'a = """\nb = 1\n"""\n'])
def test_what_a_line_cannot_change_is_left_to_its_author(text):
    with pytest.raises(ConfigError, match="write b = true yourself"):
        with_value(text, "b", True)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))).map(tuple))
def test_every_list_of_texts_can_be_written(texts):
    assert tomllib.loads(with_value("# a\n", "x", texts)) == {"x": list(texts)}
    assert tomllib.loads(f"x = {toml_value(texts)}") == {"x": list(texts)}
