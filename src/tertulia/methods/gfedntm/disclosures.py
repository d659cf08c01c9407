"""What may leave a party of gFedNTM: all of it in clear."""

from __future__ import annotations

from tertulia.privacy.mechanisms import Clear

GRADIENT = Clear("gradient of a mini-batch")
STATISTICS = Clear("statistics of a mini-batch")
WEIGHTS = Clear("network weights")
MOMENTS = Clear("moments of gradients")
SIZES = Clear("topic sizes")
LOSS = Clear("training loss", metric=True)
VALIDATION = Clear("validation loss", metric=True)
VALIDATION_STATISTICS = Clear("statistics of validation documents")
