"""The programs of docs/examples/gpu, loaded as modules."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

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
