"""Compiled ONNX models in the disk cache, found by the bytes of their files: neither read as ONNX nor imported."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from codegen import disk
from codegen.build import machine_of
from codegen.program_key import compiler_key

from .. import config
from ..collecting import seldom_collected
from ..extension import installed
from ..graph.compiled_model import CompiledModel
from ..graph.kept import find
from ..target import Target, threads

TABLES = {"tir.transform", "tir.ops"}  # with one of these is loaded all that has a table to which others can add

_CHUNK = 1 << 18  # bytes: they stay in the L2 cache between being read and hashed
_SETTLED = 2_000_000_000  # nanoseconds after which a change of a file shows in its times, on any file system


def compiled(model: Any, target: Any) -> Any:
    """What :func:`tir.importers.specialised.compile_onnx` makes of a model. A process that finds it in the disk cache needs neither that nor what it is
    made with. Raises as it does."""
    key = plain_key(model, target)
    found = None if key is None else find_file(key, target)
    if found is not None:
        return found
    from .specialised import compile_onnx

    return compile_onnx(model, target, key)


def plain_key(model: Any, target: Any) -> str | None:
    """As :func:`file_key`, for a process in which nothing could be changed yet that a compiler goes by: passes, rules, operators and rows are loaded
    with what transforms programs, and are those of the packages that are installed. None in another."""
    where, knobs = Target.of(target), config.current()
    if not TABLES.isdisjoint(sys.modules) or where.kind != "llvm" or knobs.dump or knobs.verify:
        return None
    around = compiler_key(where, machine_of(where).key())
    return None if around is None else _key(model, f"{around}\n{threads()}\n{installed()}")


def file_key(model: Any, target: Any) -> str | None:
    """What names the compiled model of a file (its path, or its bytes) in the disk cache; None if code of other packages has a part in it, and for
    what is no file."""
    from importlib.metadata import PackageNotFoundError, version

    from ..graph.graph_passes import PASSES
    from ..graph.keys import surroundings

    around = surroundings(Target.of(target), PASSES) if _all_own() else None
    try:
        return None if around is None else _key(model, f"{around}\nonnx {version('onnx')}")
    except PackageNotFoundError:
        return None


def _key(model: Any, around: str) -> str | None:
    try:
        return hashlib.sha256(f"{around}\n{_content(model)}".encode()).hexdigest()
    except (OSError, TypeError):
        return None


def _all_own() -> bool:
    """Whether this package has made all operators that there are now, and all rows that import them."""
    from ..ops import registry

    table = sys.modules.get(f"{__package__}.onnx_table")
    rows = [row for of in table._ROWS.values() for row in of.values()] if table is not None else []
    functions = [*rows, *(of.function for of in registry._NAMES.values())]
    return all(f.__module__.startswith("tir.") for f in functions)


def _content(model: Any) -> str:
    """The hash of the bytes of a file, in hex digits. It is kept under the file's device, inode, size and times, unless the file was changed in
    the last seconds (:func:`codegen.disk.version`)."""
    if isinstance(model, (bytes, bytearray)):
        return hashlib.sha256(model).hexdigest()
    with open(os.fspath(model), "rb", buffering=0) as file:
        before = disk.version(file)
        place = None if before is None else disk.place(hashlib.sha256(before.encode()).hexdigest(), ".content")
        known = None if place is None else disk.read(place)
        if known is not None:
            return known.decode()
        made, chunk = hashlib.sha256(), memoryview(bytearray(_CHUNK))
        while count := file.readinto(chunk):
            made.update(chunk[:count])
        is_settled = time.time_ns() - os.fstat(file.fileno()).st_ctime_ns > _SETTLED
        if place is not None and is_settled and disk.version(file) == before:
            disk.write(place, made.hexdigest().encode())
    return made.hexdigest()


@seldom_collected
def find_file(key: str, target: Any) -> CompiledModel | None:
    """The compiled model of the file that has a key; None if there is none."""
    path = disk.place(key, ".file")
    name = None if path is None else disk.read(path)
    return None if name is None else find(name.decode(), Target.of(target))


def keep_file(keys: Sequence[str], model: CompiledModel) -> None:
    """Let :func:`find_file` find a model by each of the keys, if the disk cache has it."""
    for path in [disk.place(key, ".file") for key in keys]:
        if path is not None and model.key is not None and disk.read(path, warn=False) != model.key.encode():
            disk.write(path, model.key.encode())
