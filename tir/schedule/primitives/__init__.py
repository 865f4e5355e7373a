"""The primitives, one family per file. Files here are discovered automatically; ``@primitive`` registers them."""

from __future__ import annotations

import importlib
import pkgutil

FAMILIES = sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))

for _family in FAMILIES:
    importlib.import_module(f"{__name__}.{_family}")
