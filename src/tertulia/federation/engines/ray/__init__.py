"""The cluster engine: one organisation's parties or shards as actors of Ray, on this machine or on a cluster.

`cluster` connects to Ray or starts a Ray of the run's own, in a process that `supervisor` runs. `actor` is one party,
and `transport` asks the actors. Anybody who can reach a Ray cluster can run code on it, so this engine never connects
parties of several owners.
"""

import os
import sys
from importlib.util import find_spec

from tertulia.errors import ConfigError

if find_spec("ray") is None:
    raise ConfigError("engine 'ray' needs Ray: pip install 'tertulia[ray]'")

if "ray" not in sys.modules:  # Ray reads these when it is imported; in an actor's process it is already
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # else it takes 127.0.0.1 for another address
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else older ones warn of newer ones
    os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", "5")  # seconds for a running cluster to answer
