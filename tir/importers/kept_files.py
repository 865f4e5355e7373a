"""Compiled ONNX models in the disk cache, found by the bytes of their files: neither read as ONNX nor imported."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from codegen import disk

from ..collecting import seldom_collected
from ..graph import PASSES, CompiledModel
from ..graph.kept import find, surroundings
from ..ops import registry
from ..target import Target

_CHUNK = 1 << 18  # bytes: they stay in the L2 cache between being read and hashed
_SETTLED = 2_000_000_000  # nanoseconds after which a change of a file shows in its times, on any file system


def file_key(model: Any, target: Any) -> str | None:
    """What names the compiled model of a file (its path, or its bytes) in the disk cache; None if code of other packages has a part in it, and for
    what is no file."""
    where = Target.of(target)
    around = surroundings(where, PASSES) if _all_own() else None
    if around is None:
        return None
    try:
        about = f"{around}\nonnx {version('onnx')}\n{_content(model)}"
    except (OSError, TypeError, PackageNotFoundError):
        return None
    return hashlib.sha256(about.encode()).hexdigest()


def _all_own() -> bool:
    """Whether this package has made all operators that there are now, and all rows that import them."""
    table = sys.modules.get(f"{__package__}.onnx_table")
    rows = [row for of in table._ROWS.values() for row in of.values()] if table is not None else []
    functions = [*rows, *(of.function for of in registry._NAMES.values())]
    return all(f.__module__.startswith("tir.") for f in functions)


def _content(model: Any) -> str:
    """The hash of the bytes of a file, in hex digits. It is kept under the file's device, inode, size and times, unless the file was changed in
    the last seconds: a change of the content changes ``ctime``, which no program can set back."""
    if isinstance(model, (bytes, bytearray)):
        return hashlib.sha256(model).hexdigest()
    with open(os.fspath(model), "rb", buffering=0) as file:
        before = _version(file)
        place = disk.place(hashlib.sha256(before.encode()).hexdigest(), ".content") if os.name == "posix" else None
        known = None if place is None else disk.read(place)
        if known is not None:
            return known.decode()
        made, chunk = hashlib.sha256(), memoryview(bytearray(_CHUNK))
        while count := file.readinto(chunk):
            made.update(chunk[:count])
        is_settled = time.time_ns() - os.fstat(file.fileno()).st_ctime_ns > _SETTLED
        if place is not None and is_settled and _version(file) == before:
            disk.write(place, made.hexdigest().encode())
    return made.hexdigest()


def _version(file: Any) -> str:
    """What names a file as it is now."""
    about = os.fstat(file.fileno())
    return f"{about.st_dev} {about.st_ino} {about.st_size} {about.st_mtime_ns} {about.st_ctime_ns}"


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
