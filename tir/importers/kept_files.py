"""Compiled ONNX models in the disk cache, found by the bytes of their files: neither read as ONNX nor imported."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from codegen import disk

from ..collecting import seldom_collected
from ..graph import PASSES, CompiledModel
from ..graph.kept import find, surroundings
from ..ops import registry
from ..target import Target

_CHUNK = 1 << 18  # bytes: they stay in the L2 cache between being read and hashed


def file_key(model: Any, target: Any) -> str | None:
    """What names the compiled model of a file (its path, or its bytes) in the disk cache; None if code of other packages has a part in it, and for
    what is no file."""
    where = Target.of(target)
    around = surroundings(where, PASSES) if _all_own() else None
    try:
        of = None if around is None else hashlib.sha256(f"{around}\nonnx {version('onnx')}\n".encode())
        if of is None:
            return None
        for chunk in _chunks(model):
            of.update(chunk)
    except (OSError, TypeError, PackageNotFoundError):
        return None
    return of.hexdigest()


def _all_own() -> bool:
    """Whether this package has made all operators that there are now, and all rows that import them."""
    table = sys.modules.get(f"{__package__}.onnx_table")
    rows = [row for of in table._ROWS.values() for row in of.values()] if table is not None else []
    functions = [*rows, *(of.function for of in registry._NAMES.values())]
    return all(f.__module__.startswith("tir.") for f in functions)


def _chunks(model: Any) -> Iterator[Any]:
    if isinstance(model, (bytes, bytearray)):
        yield model
        return
    chunk = memoryview(bytearray(_CHUNK))
    with open(os.fspath(model), "rb", buffering=0) as file:
        while count := file.readinto(chunk):
            yield chunk[:count]


@seldom_collected
def find_file(key: str, target: Any) -> CompiledModel | None:
    """The compiled model of the file that has a key; None if there is none."""
    path = disk.place(key, ".file")
    name = None if path is None else disk.read(path)
    return None if name is None else find(name.decode(), Target.of(target))


def keep_file(key: str, model: CompiledModel) -> None:
    """Let :func:`find_file` find a model, if the disk cache has it."""
    path = disk.place(key, ".file")
    if path is not None and model.key is not None:
        disk.write(path, model.key.encode())
