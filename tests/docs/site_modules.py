"""The modules that make the site, for tests of what they make."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

SITE = Path(__file__).parents[2] / "docs/site"


def site_module(name: str) -> ModuleType:
    """A module of docs/site."""
    spec = importlib.util.spec_from_file_location(f"site_{name}", SITE / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look it up
    spec.loader.exec_module(module)
    return module
