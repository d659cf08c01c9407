"""Kills at fault points, for crash tests. The product itself reads no such setting.

`party.after_save:3:/some/marker` kills the process (SIGKILL) the third time it passes that point, once: the marker file
remembers it, so that the restarted process lives.
"""

import os
import signal
from collections import Counter
from pathlib import Path


def arm_from(aim: str) -> None:
    """Aim a kill at a point."""
    from tertulia.federation import faults

    name, count, marker = aim.split(":", 2)
    seen: Counter[str] = Counter()

    def passed(point: str) -> None:
        seen[point] += 1
        if point == name and seen[point] >= int(count) and not Path(marker).exists():
            Path(marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)

    faults.arm(passed)
