"""What TOPI's operators compute, in NumPy: ``topi.testing.conv2d_nchw_python(a, w, stride, padding)``.

Each is the reference by which the operator of that name is judged; floats are computed with as float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..ops.registry import operators

_SUFFIX = "_python"


def __getattr__(name: str) -> Callable[..., Any]:
    """The reference of the operator ``name`` without ``_python``; its results have the type of the first array."""
    short = name.removesuffix(_SUFFIX)
    found = next((o for o in operators().values() if o.name.rpartition(".")[2] == short), None)
    if found is None or short == name:
        raise AttributeError(f"no operator has the reference {name}: there are names as conv2d_nchw_python")

    def computed(*args: Any, **attributes: Any) -> Any:
        arrays = [a for a in args if isinstance(a, np.ndarray)]
        wide = [a.astype("float64") if isinstance(a, np.ndarray) and a.dtype.kind == "f" else a for a in args]
        return np.asarray(found.reference(*wide, **attributes)).astype(arrays[0].dtype)

    return computed
