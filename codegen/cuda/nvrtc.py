"""CUDA C to machine code by NVRTC, with or without a GPU; the disk cache; the compiler's messages and resource counts."""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tir.errors import BuildError

from .. import disk

_log = logging.getLogger(__name__)
_ARCH = re.compile(r"(sm|compute)_(\d+)([af]?)$")


@dataclass(frozen=True)
class Resources:
    """The resources of a kernel as ptxas counts them: registers per thread, the rest in bytes."""

    name: str
    registers: int
    shared: int
    stack: int
    spill_stores: int
    spill_loads: int
    constant: int
    barriers: int


@dataclass(frozen=True)
class Binary:
    """Machine code for one architecture, and the resources of each kernel."""

    arch: str
    cubin: bytes
    resources: tuple[Resources, ...]
    seconds: float  # of compiling; 0 from the cache


@functools.cache
def library() -> Any:
    """The binding of NVRTC. Raises ``BuildError`` if it is not installed."""
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError, OSError) as error:
        raise BuildError(
            "compiling for CUDA needs NVRTC, which is not installed here: pip install 'tensorir[cuda]' "
            f'(the CUDA source, `.source("cuda")`, and target "cuda-sim" work without it) [{error}]'
        ) from error
    return nvrtc


@functools.cache
def version() -> tuple[int, int]:
    _, major, minor = library().nvrtcVersion()
    return major, minor


@functools.cache
def architectures() -> tuple[int, ...]:
    """The numbers of the architectures that this NVRTC compiles for: 75, 80 …"""
    error, found = library().nvrtcGetSupportedArchs()
    _check(error)
    return tuple(found)


def check_arch(arch: str) -> str:
    """``arch`` if NVRTC knows it. Raises ``BuildError`` naming those it knows."""
    found = _ARCH.match(arch)
    known = architectures()
    if found is None or int(found[2]) not in known:
        names = ", ".join(f"sm_{n}" for n in known)
        raise BuildError(
            f"no architecture {arch!r}: NVRTC {version()[0]}.{version()[1]} compiles for {names} (and sm_90a …)"
        )
    return arch


def compile_cubin(source: str, arch: str, name: str = "kernel", options: tuple[str, ...] = ()) -> Binary:
    """Machine code of ``source`` for ``arch``, from the disk cache if it is there.

    Raises ``BuildError`` with the compiler's messages and the source lines they refer to.
    """
    import time

    check_arch(arch)
    key = hashlib.sha256(json.dumps([version(), arch, options, source]).encode()).hexdigest()
    path = disk.place(key, ".cubin")
    found = _read(path)
    if found is not None:
        _log.info("%s for %s: loaded from the cache", name, arch)
        return found
    start = time.perf_counter()
    flags = [f"--gpu-architecture={arch}", "--std=c++17", "-default-device", "--ptxas-options=-v", *options]
    program, log = _compile(source, name, flags)
    nvrtc = library()
    try:
        code = _read_back(program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    made = Binary(arch, code, parse_resources(log), time.perf_counter() - start)
    _log.info("%s for %s: compiled by NVRTC in %.3g s", name, arch, made.seconds)
    _write(path, made)
    return made


def compile_ptx(source: str, arch: str, name: str = "kernel", options: tuple[str, ...] = ()) -> str:
    """The PTX of ``source``."""
    check_arch(arch)
    flags = [f"--gpu-architecture={arch.replace('sm_', 'compute_')}", "--std=c++17", "-default-device", *options]
    program, _ = _compile(source, name, flags)
    nvrtc = library()
    try:
        return _read_back(program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX).rstrip(b"\0").decode()
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _check(error: Any) -> None:
    if int(error) != 0:
        _, text = library().nvrtcGetErrorString(error)
        raise BuildError(f"NVRTC: {text.decode() if isinstance(text, bytes) else text}")


def _read_back(program: Any, size_of: Any, get: Any) -> bytes:
    error, size = size_of(program)
    _check(error)
    data = bytes(size + 2)  # NVRTC writes into it: bytes of length 0 and 1 are shared by the whole process
    (error,) = get(program, data)
    _check(error)
    return data[:size]


def _compile(source: str, name: str, flags: list[str]) -> tuple[Any, str]:
    nvrtc = library()
    error, program = nvrtc.nvrtcCreateProgram(source.encode(), f"{name}.cu".encode(), 0, [], [])
    _check(error)
    (error,) = nvrtc.nvrtcCompileProgram(program, len(flags), [f.encode() for f in flags])
    log = _read_back(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog).rstrip(b"\0 ").decode()
    if int(error) != 0:
        nvrtc.nvrtcDestroyProgram(program)
        raise BuildError(_explain(source, log, flags, name))
    return program, log


def _explain(source: str, log: str, flags: list[str], name: str) -> str:
    """The compiler's messages, with the lines of the generated text that they refer to."""
    lines = source.splitlines()
    about = sorted({int(n) for n in re.findall(rf"{re.escape(name)}\.cu\((\d+)\)", log)})
    shown = [f"{n:5} | {lines[n - 1]}" for n in about[:10] if 0 < n <= len(lines)]
    arch = flags[0].partition("=")[2]
    return "\n".join([f"NVRTC does not accept the code of {name} for {arch}:", log.strip(), *shown])


_FUNCTION = re.compile(r"Compiling entry function '(\w+)'")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")


def parse_resources(log: str) -> tuple[Resources, ...]:
    """The resources of each kernel according to ``ptxas -v``."""
    found = []
    parts = re.split(r"(?=[^\n]*Compiling entry function)", log)
    for part in parts:
        name, used = _FUNCTION.search(part), _USED.search(part)
        if name is None or used is None:
            continue
        frame = _FRAME.search(part)
        stack, stores, loads = map(int, frame.groups()) if frame else (0, 0, 0)
        shared = sum(map(int, re.findall(r"(\d+) bytes smem", part)))
        constant = sum(map(int, re.findall(r"(\d+) bytes cmem", part)))
        barriers = re.search(r"used (\d+) barriers", part)
        found.append(
            Resources(
                name[1], int(used[1]), shared, stack, stores, loads, constant, int(barriers[1]) if barriers else 0
            )
        )
    return tuple(found)


def _read(path: Path | None) -> Binary | None:
    """Read an entry of the cache (:mod:`codegen.disk`): a line of JSON metadata, then the code."""
    data = None if path is None else disk.read(path)
    if data is None:
        return None
    head, _, code = data.partition(b"\n")
    about = json.loads(head)
    return Binary(about["arch"], code, tuple(Resources(**r) for r in about["resources"]), 0.0)


def _write(path: Path | None, made: Binary) -> None:
    if path is not None:
        about = {"arch": made.arch, "resources": [asdict(r) for r in made.resources]}
        disk.write(path, json.dumps(about).encode() + b"\n" + made.cubin)
