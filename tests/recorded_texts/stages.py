"""The stages that a program goes through, as texts: for targets that say all that they are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import tir
from codegen.cuda.kernel import emit_kernel, source_of
from codegen.cuda.module import is_kernel
from codegen.llvm.function import emit_module
from codegen.llvm.text import ModuleText
from tir.tune import Env, predict

Texts = Iterator[tuple[str, str]]

_LONG = re.compile(r"\d+\.\d{8,}(?:e[-+]\d+)?|\d+\.\d+e[-+]\d+")
CACHES = "-l1_bytes=32768 -l2_bytes=1048576 -l3_bytes=16777216"
_TILES = "+amx-tile,+amx-int8,+amx-bf16,+avx512f,+avx512bw,+avx512vnni,+avx512bf16"
LEVELS = {  # a processor, its features, the bits of a vector
    "v2": ("x86-64-v2", "", 128),
    "v3": ("x86-64-v3", "", 256),
    "v4": ("x86-64-v4", "", 512),
    "amx": ("sapphirerapids", _TILES, 512),
}
GPU = "cuda -arch=sm_80"


def cpu(level: str = "v3", cores: int = 2) -> str:
    """A target with ``cores`` cores of one of ``LEVELS``."""
    name, features, bits = LEVELS[level]
    return f"llvm -num-cores={cores} {CACHES} -mcpu={name} -mattr={features or '+sse'} -vector_width={bits}"


CPU = cpu()


def attempt(call: Callable[[], str]) -> str:
    """What ``call`` returns, or the error that it raises."""
    try:
        return call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def assembly(lowered: tir.IRModule, level: str = "v3") -> str:
    """A lowered program as LLVM assembly, before LLVM optimises it."""
    name, features, bits = LEVELS[level]
    text = ModuleText(name, features, "x86_64-unknown-linux-gnu", bits)
    program = emit_module(lowered, text)
    return "\n".join([text.render(), *program.messages])


def cuda_c(lowered: tir.IRModule) -> str:
    """The kernels of a lowered program as CUDA C, then what is left for the host."""
    kernels = {name: func for name, func in lowered.items() if is_kernel(func)}
    rest = [func.script() for name, func in lowered.items() if name not in kernels]
    return "\n".join([source_of([emit_kernel(func, name) for name, func in kernels.items()]), *rest])


def generated(mod: Any, target: str, label: str = "") -> Texts:
    """A program lowered, and as code."""
    try:
        lowered = tir.lower(mod, target=target)
    except Exception as error:
        yield f"{label}lowered", f"{type(error).__name__}: {error}"
        return
    yield f"{label}lowered", lowered.script()
    if target.startswith("cuda"):
        yield f"{label}cuda", attempt(lambda: cuda_c(lowered))
        return
    level = next(level for level, (name, *_) in LEVELS.items() if f"-mcpu={name} " in target)
    yield f"{label}llvm", attempt(lambda: assembly(lowered, level))


def steps(sch: Any) -> str:
    """The trace of a schedule; numbers with many digits have four, because newer Pythons add up floats more exactly."""
    return _LONG.sub(lambda found: f"{float(found[0]):.4g}", str(sch.trace))


def tuned(mod: Any, target: str, label: str = "") -> Texts:
    """The schedule that a program gets without measuring: its steps, its program, the prediction, the code."""
    sch = tir.tune.default(mod, target)
    yield f"{label}steps", steps(sch)
    yield f"{label}scheduled", sch.mod.script()
    yield f"{label}predicted", predicted(sch, target)
    yield from generated(sch.mod, target, label)


def predicted(sch: Any, target: str) -> str:
    """What the model expects, with four digits."""
    found = predict(sch, Env.of(target)) if len(sch.mod) == 1 else None
    if found is None:
        return "no prediction"
    parts = {"seconds": found.seconds, "floor": found.floor, **found.terms}
    return "\n".join(f"{name} {value:.4g}" for name, value in parts.items())
