"""What PC-TD's noise costs: one noisy E-step with every number drawn, and by the shortcut; one thread of BLAS."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.common import arguments, finish, say, time_cpu
from tertulia.kernels.pctd import em, unit_noise
from tertulia.kernels.pctd.normals import normals
from tertulia.privacy.noise import NoiseStream

SIGMA = 0.25


def noise_speedup(S: int = 30_000, W: int = 18_000, K: int = 50) -> float:
    """Time a noisy E-step with its statistic: every number drawn, over the shortcut's.

    Both draw from ChaCha20, as a party does.
    """
    rng = np.random.default_rng(0)
    bounds = np.arange(S)[:, None] * 3 + np.array([0, 3])
    documents = np.linspace(0, S, 501).astype(np.int64) * 3
    found = em.semantic_units(rng.integers(0, W, 3 * S).astype(np.int32), documents, bounds, W)
    log_phi = np.log(rng.dirichlet(np.full(W, 0.1), K) + 1e-9).T.copy()
    theta = rng.dirichlet(np.ones(K), 500)

    def draw(how: Callable[..., unit_noise.NoisyStep]) -> unit_noise.NoisyStep:
        return how(found, log_phi, theta, SIGMA, partial(normals, NoiseStream(bytes(32)).words))

    draw(unit_noise.on_all_words)  # compiles
    quick = statistics.median(time_cpu(lambda: draw(unit_noise.on_all_words))[0] for _ in range(15))
    slow, _ = time_cpu(lambda: draw(unit_noise.dense))
    say(f"one noisy E-step at W = {W}, K = {K}, S = {S}: {slow:.1f} s dense, {quick:.3f} s by the shortcut")
    return slow / quick


if __name__ == "__main__":
    quick = arguments("CPU time of PC-TD's noise, drawn in full and by the shortcut").quick
    finish({"benchmark": "pctd_noise", "noise_speedup": noise_speedup(3_000 if quick else 30_000)})
