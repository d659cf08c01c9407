"""A mechanism that the package does not have, as anyone may define one."""

from dataclasses import dataclass, field
from typing import ClassVar

from tertulia.privacy.mechanisms import Mechanism


@dataclass(frozen=True)
class Concentrated(Mechanism):
    """Noise of which only its zero-concentrated DP is known, such as discrete Gaussian noise on a vector."""

    rho: float = field(kw_only=True)
    name: ClassVar[str] = "concentrated"

    def charge(self):
        return {"type": "ZCDpEvent", "rho": self.rho, "xi": 0.0}
