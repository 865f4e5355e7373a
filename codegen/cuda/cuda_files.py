"""CUDA modules as files: a zip archive of the program, its CUDA source, PTX and machine code, which ``tir.load`` reads."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codegen import container
from tir.errors import BuildError
from tir.function import IRModule
from tir.node import frozendict
from tir.target import Target

from . import nvrtc

if TYPE_CHECKING:
    from .module import CUDAModule

SUFFIX = ".zip"
_PARTS = ("program.py", "lowered.py", "kernels.cu", "kernels.ptx", "kernels.cubin", "resources.json")
_MOST_BYTES = 1 << 30  # of the parts, unpacked


def write(path: Path, module: CUDAModule, about: Mapping[str, Any] = frozendict()) -> None:
    """Write ``module`` to ``path``, and what it is ``about`` besides. Raises ``BuildError`` for another suffix than .zip, and without NVRTC."""
    if path.suffix != SUFFIX:
        raise BuildError(
            f"cannot save to {path.name!r}: the name of a saved CUDA module must end in {SUFFIX}, or in .c, for a C program"
        )
    binary = module.binary
    resources = json.dumps([asdict(r) for r in binary.resources])
    parts = (module.ir.script(), module.lowered.script(), module.code, module.source("ptx"), binary.cubin, resources)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name, part in zip(_PARTS, parts):
            file.writestr(name, part)
    described = {"target": str(module.target), "arch": binary.arch, "launches": _launches(module)}
    container.write(path, "cuda", packed.getvalue(), {**about, **described})


def _launches(module: CUDAModule) -> list[Any]:
    """How the kernels of a module are launched."""
    texts = module.texts.values()
    return [[t.name, [*map(str, t.params)], [*t.alignments], t.dynamic, [*t.cluster], len(t.maps)] for t in texts]


def read(file: container.File, path: Path) -> CUDAModule:
    """The module in a file, which is at ``path``. No device and no compiler are needed.

    Raises ``BuildError`` for an archive that :func:`write` did not make, or made in a version whose kernels are called in
    another way.
    """
    from .module import CUDAModule

    program, lowered, code, ptx, cubin, resources = _contents(file)
    counted = tuple(nvrtc.Resources(**r) for r in json.loads(resources))
    binary = nvrtc.Binary(file.field("arch", str), cubin, counted, 0.0)
    target = Target(file.field("target", str))
    made = CUDAModule(_parsed(program), target, _parsed(lowered), (binary, ptx.decode()))
    if _launches(made) != file.about.get("launches"):
        raise BuildError(
            f"{file.name} was saved by a version of this package that launches kernels in another way; build it again"
        )
    made.code, made.path, made.about = code.decode(), path, file.about
    return made


def _contents(file: container.File) -> list[bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(file.code)) as archive:
            if sum(archive.getinfo(name).file_size for name in _PARTS) > _MOST_BYTES:
                raise BuildError(f"{file.name} unpacks to more than {_MOST_BYTES} bytes")
            return [archive.read(name) for name in _PARTS]
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, RuntimeError, EOFError) as error:
        raise BuildError(f"{file.name} is no saved CUDA module: {error}") from error


def _parsed(text: bytes) -> IRModule:
    from tir.script import parse_data

    return IRModule.of(parse_data(text.decode()))
