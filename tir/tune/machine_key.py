"""The key of a machine: times measured on one are not those of another."""

from __future__ import annotations

import platform
from typing import Any

from ..target import Target
from .records import digest


def about_machine(target: Target, threads: int) -> dict[str, Any]:
    """What a time depends on besides the program: the processor, what the compiler uses of it, the threads; of a GPU, the
    device and its driver."""
    found: dict[str, Any] = {"target": {"kind": target.kind, **target.attrs}}
    if target.kind == "cuda":
        return {**found, **_device()}
    if target.kind == "llvm":
        from codegen.llvm.compile import machine

        on = machine(str(target.attrs.get("mcpu", "")), target.attrs.get("mattr"))
        found |= {"cpu": on.cpu, "features": on.features}
    caches = [target.cache_bytes(level) for level in (1, 2, 3)]
    return {**found, "architecture": platform.machine(), "caches": caches, "threads": threads}


def _device() -> dict[str, Any]:
    from codegen.cuda.driver import driver, has_device

    if not has_device():
        return {"device": "none: not measured"}
    found = driver()
    return {"device": found.name, "arch": found.arch}


def machine_key(target: Target, threads: int) -> str:
    """32 hex digits.

    >>> machine_key(Target.of("llvm"), 1) == machine_key(Target.of("llvm"), 2)
    False
    """
    return digest(about_machine(target, threads))
