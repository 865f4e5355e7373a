"""What Python 3.10, the oldest that is supported, does not accept and later versions do."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil


def test_no_default_of_a_dataclass_is_a_mapping_or_a_list():
    """3.10 goes by the type, and refuses immutable mappings too."""
    found = []
    for package in ("tir", "codegen"):
        root = importlib.import_module(package)
        for module in pkgutil.walk_packages(root.__path__, package + "."):
            if "__main__" in module.name:
                continue
            for name, kind in vars(importlib.import_module(module.name)).items():
                if isinstance(kind, type) and dataclasses.is_dataclass(kind):
                    defaults = [f for f in dataclasses.fields(kind) if isinstance(f.default, (dict, list, set))]
                    found += [f"{module.name}.{name}.{f.name}" for f in defaults]
    assert found == []
