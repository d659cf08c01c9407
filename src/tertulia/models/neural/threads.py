"""How many threads torch may use. It counts them by thread: what the main thread says does not hold in others."""

from __future__ import annotations

import torch


def use_threads(n: int) -> None:
    """Let torch use so many threads for what this thread computes.

    More than there are idle cores is much worse than one: every operation then waits for the slowest.
    """
    if torch.get_num_threads() != n:
        torch.set_num_threads(n)
