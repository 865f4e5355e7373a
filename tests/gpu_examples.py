"""The programs of docs/examples/gpu, loaded as modules."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np

import tir
from tir.interp.numbers import storage_dtype

FOLDER = Path(__file__).parent.parent / "docs" / "examples" / "gpu"
NAMES = sorted(p.stem for p in FOLDER.glob("[a-z]*.py"))


def architectures(sch: Any, usual: tuple[str, ...]) -> tuple[str, ...]:
    """Those that an example's schedule can be compiled for: one with a letter, as sm_90a, is itself alone."""
    own = str(sch.target.attrs.get("arch", "")) if sch.target is not None else ""
    return (own,) if own.endswith("a") else usual


def load(name: str) -> Any:
    key = f"gpu_example_{name}"
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))  # they import each other as when run as scripts
    if key not in sys.modules:
        spec = importlib.util.spec_from_file_location(key, FOLDER / f"{name}.py")
        assert spec is not None and spec.loader is not None
        made = importlib.util.module_from_spec(spec)
        sys.modules[key] = made
        spec.loader.exec_module(made)
    return sys.modules[key]


def arguments(example: Any, func: tir.PrimFunc, seed: int = 0) -> list[np.ndarray]:
    """Arrays for ``func``, the output last: as the example makes them, if it says what they are, else any numbers."""
    rng = np.random.default_rng(seed)
    if hasattr(example, "inputs"):
        return example.inputs(func, rng)
    buffers = (func.buffer_map[p] for p in func.params)
    return [rng.standard_normal([int(s) for s in b.shape]).astype(storage_dtype(b.dtype)) for b in buffers]


def is_near(example: Any, found: np.ndarray, given: list[np.ndarray], near: float = 1e-4) -> None:
    """Raises ``AssertionError`` unless ``found`` is what the example's reference gives in float64, to ``near`` or to what the
    example says of itself."""
    near = getattr(example, "TOLERANCE", near)
    want = np.asarray(example.reference(*(x.astype("float64") for x in given))).reshape(found.shape)
    np.testing.assert_allclose(found.astype("float64"), want, rtol=near, atol=near)
