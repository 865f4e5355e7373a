"""CUDA modules as files: a zip archive of the program, its CUDA source, PTX and machine code, which ``tir.load`` reads."""

from __future__ import annotations

import json
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tir.errors import BuildError
from tir.function import IRModule
from tir.target import Target

from . import nvrtc

if TYPE_CHECKING:
    from .module import CUDAModule

SUFFIX = ".zip"
FORMAT = 1
_PARTS = ("program.py", "lowered.py", "kernels.cu", "kernels.ptx", "kernels.cubin")


def write(path: Path, module: CUDAModule) -> None:
    """Write ``module`` to ``path``. Raises ``BuildError`` for another suffix than .zip, and without NVRTC."""
    if path.suffix != SUFFIX:
        raise BuildError(f"cannot save to {path.name!r}: the name of a saved CUDA module must end in {SUFFIX}")
    binary = module.binary
    about = {
        "format": FORMAT,
        "target": str(module.target),
        "arch": binary.arch,
        "functions": list(module.functions),
        "resources": [asdict(r) for r in binary.resources],
    }
    parts = (module.ir.script(), module.lowered.script(), module.code, module.source("ptx"), binary.cubin)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("manifest.json", json.dumps(about, indent=1))
        for name, part in zip(_PARTS, parts):
            file.writestr(name, part)


def read(path: Path) -> CUDAModule:
    """The module in the file ``path``. No device and no compiler are needed.

    Raises ``BuildError`` for a file that :func:`write` did not make, or made in a version whose kernels are called in
    another way.
    """
    from .module import CUDAModule

    about, (program, lowered, code, ptx, cubin) = _contents(path)
    resources = tuple(nvrtc.Resources(**r) for r in about["resources"])
    binary = nvrtc.Binary(about["arch"], cubin, resources, 0.0)
    made = CUDAModule(_parsed(program), Target(about["target"]), _parsed(lowered), (binary, ptx.decode()))
    if made.code != code.decode():
        raise BuildError(
            f"{path.name} was saved by a version of this package that generates other code; build it again"
        )
    return made


def _contents(path: Path) -> tuple[dict[str, Any], list[bytes]]:
    try:
        with zipfile.ZipFile(path) as file:
            about = json.loads(file.read("manifest.json"))
            parts = [file.read(name) for name in _PARTS]
    except FileNotFoundError:
        raise BuildError(f"no file {str(path)!r} to load") from None
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise BuildError(f"{path.name} is no saved CUDA module: {error}") from error
    if about.get("format") != FORMAT:
        raise BuildError(f"{path.name} was saved in format {about.get('format')}; this version reads {FORMAT}")
    return about, parts


def _parsed(text: bytes) -> IRModule:
    from tir.script import parse

    return IRModule.of(parse(text.decode()))
