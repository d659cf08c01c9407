"""Settings of runs that have another name or place than they once had, in TOML files and in `run.json`."""

from __future__ import annotations

import copy
from typing import Any

from tertulia.errors import ConfigError
from tertulia.methods import METHODS

_PAPER = {  # what stood beside a method's settings and stands under `paper` now
    "ftm": ("literal_compose",),
    "pctd": ("noise_on",),
    "fedlda": ("delta", "gamma", "bookkeeping", "arrival_rounds"),
    "gfedntm": ("literal_adapter",),
}
_KEPT = 0.1  # the share of a gradient that `compression = "topk"` sent unless `keep` said otherwise
_MODULES = {f"tertulia.methods.{name}": f"tertulia.methods.{name}.method" for name in (*METHODS, "baselines")}
_MODULES["tertulia.methods.choosing"] = "tertulia.methods.common.choosing"


def carry_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """The same settings as this version writes them; raise `ConfigError` where it has nothing to put in their place.

    >>> carry_settings({"method": {"name": "ftm", "literal_compose": True}})
    {'method': {'name': 'ftm', 'paper': {'literal_compose': True}}}
    """
    new = copy.deepcopy(settings)
    method = new.get("method")
    if not isinstance(method, dict):
        return new
    name = str(method.get("name", "ftm"))
    if name == "consensus" and method.get("model", "lda") != "lda":
        raise ConfigError(f"method.model = {method['model']!r}: only `ftm` trains this model, take it in place")
    paper = {key: method.pop(key) for key in _PAPER.get(name, ()) if key in method}
    if name == "pctd" and "start_seed" in method:
        method.setdefault("seed", method.pop("start_seed"))
    if name == "gfedntm":
        keep = method.pop("keep", _KEPT)
        if method.get("compression") == "topk":
            del method["compression"]
            paper["keep"] = keep
    if paper and isinstance(method.get("paper", {}), dict):
        method["paper"] = method.get("paper", {}) | paper
    return new


def is_former(settings: dict[str, Any]) -> bool:
    """Whether an earlier version would have read settings, of which some have another name or place now."""
    try:
        return carry_settings(settings) != settings
    except ConfigError:
        return True
    except RecursionError:
        return False


def carry_module(name: str) -> str:
    """The module of a method's steps, wherever it has moved.

    >>> carry_module("tertulia.methods.ftm")
    'tertulia.methods.ftm.method'
    """
    return _MODULES.get(name, name)
