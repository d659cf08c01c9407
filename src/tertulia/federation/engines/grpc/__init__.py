"""The network engine: parties dial out to the server, one long-lived stream each, with mutual TLS.

`gate` is the server's side, `attendance` and `calls` are a party's, `wire` is what both agree on. `loopback` runs all
of it on one machine.
"""

import os
from importlib.util import find_spec

from tertulia.errors import ConfigError

if find_spec("grpc") is None:
    raise ConfigError("networks of parties and engine 'grpc' need grpcio: pip install 'tertulia[network]'")

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # its own log goes to the terminal; what matters is said by us
