"""Masks cancel in the total, look uniform, and have nothing in common."""

import numpy as np
import pytest

from tertulia.federation.secure.masks import SEED_BYTES, add_masks, sign_of

SEEDS = [bytes([i]) * SEED_BYTES for i in range(1, 7)]


@pytest.mark.parametrize("dtype", ["<u2", "<u4", "<u8"])
@pytest.mark.parametrize("size", [0, 1, 7, (1 << 18) + 5])
def test_masks_of_a_pair_cancel(dtype, size):
    numbers = [np.arange(size).astype(dtype), np.arange(3).astype("<u8")]
    masked = [array.copy() for array in numbers]
    add_masks(masked, [(SEEDS[0], sign_of(0, 1))])
    assert size == 0 or not np.array_equal(masked[0], numbers[0])
    add_masks(masked, [(SEEDS[0], sign_of(1, 0))])
    assert all(np.array_equal(a, b) for a, b in zip(masked, numbers, strict=True))


def test_masked_numbers_look_uniform_whatever_they_hide():
    for value in (0, 12345):
        masked = np.full(200_000, value, "<u2")
        add_masks([masked], [(SEEDS[0], 1)])
        counts = np.bincount(masked.view(np.uint8), minlength=256)
        assert ((counts - counts.mean()) ** 2 / counts.mean()).sum() < 350


def test_masks_of_two_seeds_are_independent():
    streams = [np.zeros(100_000, "<u4") for _ in range(2)]
    for stream, seed in zip(streams, SEEDS, strict=False):
        add_masks([stream], [(seed, 1)])
    correlation = np.corrcoef(*(stream.astype(float) for stream in streams))[0, 1]
    assert abs(correlation) < 5 / np.sqrt(100_000)
    assert np.count_nonzero(streams[0] == streams[1]) <= 3


def test_a_long_stream_does_not_depend_on_how_it_is_cut():
    whole, parts = np.zeros(300_000, "<u4"), [np.zeros(100_000, "<u4") for _ in range(3)]
    add_masks([whole], [(SEEDS[0], 1)])
    add_masks(parts, [(SEEDS[0], 1)])
    assert np.array_equal(np.concatenate(parts), whole)


def test_many_masks_at_once_are_the_same_as_one_after_the_other():
    at_once, singly = ([np.arange(200_000).astype("<u4"), np.zeros(3, "<u2")] for _ in range(2))
    signed = [(seed, 1 if i % 2 else -1) for i, seed in enumerate(SEEDS)]
    add_masks(at_once, signed)
    for one in signed:
        add_masks(singly, [one])
    assert all(np.array_equal(a, b) for a, b in zip(at_once, singly, strict=True))
