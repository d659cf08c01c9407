"""Deliberately broken protections, and the audits that catch them; `test_audit.py` shows that sound ones pass."""

import pytest

from helpers import broken


@pytest.mark.parametrize("name", broken.BROKEN)
@pytest.mark.filterwarnings("ignore")  # broken runs warn
def test_a_broken_protection_is_caught(name):
    assert broken.is_caught(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", broken.BROKEN)
def test_the_same_attack_finds_nothing_in_the_sound_one(name):
    assert broken.is_clean(name)
