"""When training has converged: one rule, for one machine and for a server that hears nothing but losses.

The loss of an epoch varies from one to the next, the more the smaller the corpus is. So means over a window of epochs
are compared, and a gain below a thousandth counts as none: what ProdLDA learns later hardly changes its topics.
"""

from __future__ import annotations

from collections.abc import Sequence

MOST_EPOCHS = 500  # where only convergence ends training
LEAST_GAIN = 1e-3  # as a share of the loss


def has_stalled(losses: Sequence[float], window: int) -> bool:
    """Whether the last `window` losses are on average no better than the `window` before, by a thousandth at least.

    >>> has_stalled([9.0, 8.0, 7.0, 6.0], 2), has_stalled([9.0, 8.0, 8.5, 8.499], 2)
    (False, True)
    """
    if len(losses) < 2 * window:
        return False
    last, before = sum(losses[-window:]), sum(losses[-2 * window : -window])
    return last > (1.0 - LEAST_GAIN) * before
