"""Engine `nvflare`: the same party host inside NVIDIA FLARE's Collab API, for organisations that run FLARE already.

FLARE's provisioned kits say who is who, by mutual TLS. A job ships no code and no path: it names classes of this
package, which every site has installed, and one run. `site` is a party's side, `server` the server's, `kits` and `jobs`
are the folders that FLARE reads, `sessions` is how an administrator submits.
"""

from importlib.util import find_spec

from tertulia.errors import ConfigError

if find_spec("nvflare") is None:
    raise ConfigError("engine 'nvflare' needs NVIDIA FLARE: pip install 'tertulia[nvflare]'")
