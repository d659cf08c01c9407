"""Read by every Python that finds it on its path, as party processes of tests do: it arms fault points there."""

import os

if "TERTULIA_FAULT" in os.environ:
    from helpers.faults import arm_from

    arm_from(os.environ["TERTULIA_FAULT"])
