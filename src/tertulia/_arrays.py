"""Short names for the array types that the whole package speaks."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
U64 = NDArray[np.uint64]
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
Bool = NDArray[np.bool_]
