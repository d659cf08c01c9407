"""The network engine: each party dials the server and keeps one long-lived stream, with mutual TLS.

The server's side is `service`, with `proxy`, `callers` and `connections`. A party's side is `party_session` and
`client`. `wire` is the protocol between them, and `loopback` runs both sides on one machine.
"""

import os
from importlib.util import find_spec

from tertulia.errors import ConfigError

if find_spec("grpc") is None:
    raise ConfigError("networks of parties and engine 'grpc' need grpcio: pip install 'tertulia[network]'")

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # its log would go to the terminal; our errors say the same
