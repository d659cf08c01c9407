"""Engine `nvflare`: the same party host inside NVIDIA FLARE's Collab API, for organisations that run FLARE already.

FLARE's provisioned kits hold the identities, for mutual TLS. A job carries no code and no path: it names one run, and
classes of this package, which every site has installed. `site` is a party's side and `server` the server's. `kits` and
`jobs` are the folders that FLARE reads, and `sessions` lets an administrator submit jobs.
"""

from importlib.util import find_spec

from tertulia.errors import ConfigError

if find_spec("nvflare") is None:
    raise ConfigError("engine 'nvflare' needs NVIDIA FLARE: pip install 'tertulia[nvflare]'")
