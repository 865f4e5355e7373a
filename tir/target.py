"""Target: the facts of a machine that schedules and code generators ask for."""

from __future__ import annotations

import functools
import json
import os
import platform
import re
import shlex
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import extension
from .intrin_rules import register_intrin_rule as register_intrin_rule  # as tvm.target.register_intrin_rule
from .names import did_you_mean
from .neighbours import written_here

__all__ = ["KINDS", "Target", "TargetKind", "create", "forget_target", "register_intrin_rule", "register_target"]

GPUS = ("cuda", "cuda-sim", "cuda-ptx")  # the device, the simulator, the executor of PTX
CPUS = ("llvm", "interpreter")
KINDS = (*CPUS, *GPUS)
_GPU_LIMITS = {"max_threads_per_block": 1024, "max_shared_memory_per_block": 49152, "thread_warp_size": 32}

LINE, PAGE = 64, 4096  # bytes of a cache line, and of a page, within which lines are prefetched
DYNAMIC = 232448  # bytes of `shared.dyn` that some GPU gives

# Of each architecture, by the number in sm_NN: bytes of shared memory that a block may ask for at launch, and threads
# and blocks that a multiprocessor holds (the CUDA programming guide's table of compute capabilities).
_ARCHITECTURES = {
    70: (98304, 2048, 32), 72: (98304, 2048, 32), 75: (65536, 1024, 16), 80: (166912, 2048, 32), 86: (101376, 1536, 16),
    87: (166912, 1536, 16), 88: (101376, 1536, 24), 89: (101376, 1536, 24), 90: (232448, 2048, 32),
    100: (232448, 2048, 32), 101: (232448, 2048, 32), 103: (232448, 2048, 32), 110: (232448, 1536, 24),
    120: (101376, 1536, 24), 121: (101376, 1536, 24),
}  # fmt: skip


# The architecture of a GPU that is called by the name of a product, as in "nvidia/nvidia-a100".
_PRODUCTS = {
    "nvidia-v100": "sm_70", "nvidia-t4": "sm_75", "nvidia-a100": "sm_80", "nvidia-a10": "sm_86", "nvidia-a40": "sm_86",
    "nvidia-l4": "sm_89", "nvidia-l40": "sm_89", "nvidia-h100": "sm_90a", "nvidia-b200": "sm_100a",
    "geforce-rtx-2080-ti": "sm_75", "geforce-rtx-3080": "sm_86", "geforce-rtx-3090": "sm_86",
    "geforce-rtx-4090": "sm_89", "geforce-rtx-5090": "sm_120", "jetson-agx-xavier": "sm_72",
    "jetson-agx-orin-32gb": "sm_87", "jetson-agx-orin-64gb": "sm_87",
}  # fmt: skip

# The options of each kind, and what their values are: text, a count (1 or more), a number (0 or more), anything. Those of
# the first line say which machine it is, as TVM writes it.
_ANY_KIND = dict.fromkeys(("host", "keys", "tag", "libs", "device", "model"), "") | {"max_num_threads": "count"}
_CPU_OPTIONS = {
    "mcpu": "text", "mattr": "text", "mtriple": "text", "num_cores": "count", "fast_math": "number", "vector_width": "count",
    "opt_level": "number", "l1_bytes": "count", "l2_bytes": "count", "l3_bytes": "count",
}  # fmt: skip
_GPU_OPTIONS = {
    "arch": "text", "device_id": "number", "fast_math": "number", "max_registers": "count", **dict.fromkeys(_GPU_LIMITS, "count"),
    "max_dynamic_shared_memory_per_block": "count", "max_threads_per_multiprocessor": "count", "max_blocks_per_multiprocessor": "count",
}  # fmt: skip
_OPTIONS = {
    "llvm": _CPU_OPTIONS, "interpreter": {}, "cuda": _GPU_OPTIONS, "cuda-sim": {**_GPU_OPTIONS, "order": "text", "seed": "number"},
    "cuda-ptx": {**_GPU_OPTIONS, "order": "text", "traffic": "number"},
}  # fmt: skip
_VALUES = {"text": "a name", "count": "a whole number, 1 or more", "number": "a whole number, 0 or more"}

_ALIASES = {"cpu": "llvm", "c": "llvm", "host": "llvm", "nvidia": "cuda"}
_CURRENT: ContextVar[tuple[Target, ...]] = ContextVar("_CURRENT", default=())  # those of `with`, the innermost last


@dataclass(frozen=True)
class TargetKind:
    """A kind of target from outside: what lowers a program for it, and what builds the lowered program.

    ``passes(target)`` gives the passes of its pipeline; ``build(lowered, target)`` gives the module to call.

    >>> from tir.target import TargetKind
    >>> kind = TargetKind("echo", passes=lambda target: [], build=lambda lowered, target: lowered.script())
    >>> kind.name, kind.passes(None), kind.defaults
    ('echo', [], {})
    """

    name: str
    passes: Callable[[Target], list[Any]]
    build: Callable[[Any, Target], Any]
    defaults: dict[str, Any] = field(default_factory=dict)


_ADDED: dict[str, TargetKind] = {}


def register_target(
    kind: str,
    passes: Callable[[Target], list[Any]],
    build: Callable[[Any, Target], Any],
    defaults: dict[str, Any] | None = None,
) -> TargetKind:
    """Add a kind of target; ``defaults`` are its attributes where a user gives none.

    Raises ``ValueError`` when the kind is there already.

    >>> import tir
    >>> from tir.target import forget_target, register_target
    >>> kind = register_target("echo", passes=lambda target: [], build=lambda lowered, target: lowered.script())
    >>> print(tir.build(tir.library.elementwise.scale_add(4), "echo").splitlines()[-1].strip())
    B[vi] = A[vi] * 3.0 + 1.0
    >>> forget_target("echo")
    """
    if kind in KINDS or kind in _ADDED:
        raise ValueError(f"there already is a target kind {kind!r}")
    _ADDED[kind] = TargetKind(kind, passes, build, dict(defaults or {}))
    return _ADDED[kind]


_ARCH = re.compile(r"sm_(\d+)[af]?")


def forget_target(kind: str) -> None:
    """Remove a kind of target that :func:`register_target` added. Raises ``KeyError`` where it added none.

    >>> from tir.target import forget_target, register_target
    >>> kind = register_target("echo", passes=lambda target: [], build=lambda lowered, target: lowered.script())
    >>> forget_target("echo")
    """
    del _ADDED[kind]


def added_kind(kind: str) -> TargetKind | None:
    """The kind of target ``kind`` that a package outside has registered, if it is one."""
    return _ADDED.get(kind)


_AVX512 = (
    "skylake-avx512", "cascadelake", "icelake", "cooperlake", "sapphirerapids", "znver4", "znver5", "graniterapids",
)  # fmt: skip
_AVX = ("haswell", "broadwell", "skylake", "x86-64-v3", "znver2", "znver3")


@dataclass(frozen=True)
class VectorRegisters:
    """The vector registers of a CPU: ``count`` of ``bits`` bits each.

    >>> VectorRegisters(bits=256, count=16).lanes(32)
    8
    """

    bits: int
    count: int

    @staticmethod
    @functools.cache
    def of(cpu: str = "", features: str | None = None, triple: str = "") -> VectorRegisters:
        """Those of LLVM's processor ``cpu`` ("", "native": this machine's, or any of ``triple``) with ``features``.

        >>> VectorRegisters.of("haswell"), VectorRegisters.of("haswell", "+avx512f").count
        (VectorRegisters(bits=256, count=16), 32)
        """
        here = not triple if cpu == "" else cpu in ("native", "host")
        if here and features is None:
            import llvmlite.binding as llvm

            features = str(llvm.get_host_cpu_features().flatten())
        if (triple or platform.machine()).partition("-")[0] in ("aarch64", "arm64"):
            return VectorRegisters(128, 32)
        wanted = set((features or "").split(","))
        if "+avx512f" in wanted or (not here and (cpu.startswith(_AVX512) or cpu == "x86-64-v4")):
            return VectorRegisters(512, 32)
        return VectorRegisters(256 if "+avx" in wanted or (not here and cpu in _AVX) else 128, 16)

    def lanes(self, bits: int = 32) -> int:
        """Elements of ``bits`` bits in one register."""
        return max(1, self.bits // max(bits, 8))

    def masks(self, bits: int = 32) -> bool:
        """Whether a load of elements of ``bits`` bits can leave some out at no cost, as with AVX-512."""
        return self.bits == 512 and self.count == 32 and bits in (32, 64)


@functools.cache
def vector_registers() -> VectorRegisters:
    """Those of this machine's CPU.

    >>> vector_registers().lanes(32) >= 4
    True
    """
    return Target("llvm").vectors


@dataclass(frozen=True)
class Target:
    """A machine to build for: a kind and its attributes.

    Made from a string (``"llvm -mcpu=skylake-avx512 -num-cores=4"``, ``"cuda -arch=sm_90a"``), a dict with ``kind``,
    the name of a GPU (``"nvidia/nvidia-a100"``), or :meth:`host`. The attribute ``host`` is a target itself. Raises
    ``ValueError`` for an unknown kind, an option that the kind does not have, a value that is none of the option's, or an
    ``arch`` that is not one.

    A GPU has ``max_threads_per_block``, ``max_shared_memory_per_block`` (bytes of ``shared``), ``thread_warp_size``; with
    an ``arch`` also ``max_dynamic_shared_memory_per_block`` (bytes of ``shared.dyn``),
    ``max_threads_per_multiprocessor`` and ``max_blocks_per_multiprocessor``.

    ``with target:`` makes it the one that programs are lowered and built for where a call names none.

    >>> Target("cuda", arch="sm_90a").limit("max_dynamic_shared_memory_per_block")
    232448
    >>> Target.of("llvm -num-cores=4").attrs["num_cores"]
    4
    """

    kind: str
    attrs: dict[str, Any] = field(default_factory=dict)

    def __init__(self, spec: Any = "llvm", **attrs: Any):
        kind, parsed = _parse(spec)
        if not _is_known(kind):
            here = written_here(kind)
            hint = did_you_mean(kind, (*KINDS, *_ADDED)) if here is None else f"; write {here}"
            hint += extension.missing(extension.TARGETS)
            raise ValueError(f"unknown target kind {kind!r}; the kinds are {', '.join((*KINDS, *_ADDED))}{hint}")
        attrs = {**parsed, **attrs}
        if kind in _OPTIONS:
            _require_options(kind, attrs)
        self._set(kind, attrs)

    def _set(self, kind: str, attrs: dict[str, Any]) -> None:
        arch = attrs.get("arch")
        if kind in GPUS and arch is not None and not _ARCH.fullmatch(str(arch)):
            raise ValueError(f"no GPU architecture is called {arch!r}; they are called sm_80, sm_90a and the like")
        if attrs.get("host") is not None:
            attrs["host"] = Target.named(attrs["host"])
        defaults = _ADDED[kind].defaults if kind in _ADDED else _GPU_LIMITS if kind in GPUS else {}
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "attrs", {**defaults, **attrs})

    @staticmethod
    def named(spec: Any, host: Any = None) -> Target:
        """The target that an attribute of a program names; nothing need be able to build for it.

        >>> Target.named("ext_dev", host="llvm").attrs["host"].kind
        'llvm'
        """
        kind, attrs = _parse(spec)
        made = object.__new__(Target)
        _is_known(kind)
        made._set(kind, attrs if host is None else {**attrs, "host": host})
        return made

    @staticmethod
    def of(spec: Any) -> Target:
        """``spec`` as a target; a Target is returned as it is, None means the current one, else the host."""
        if isinstance(spec, Target):
            return spec
        return Target.current() or Target.host() if spec is None else Target(spec)

    @staticmethod
    def current(allow_none: bool = True) -> Target | None:
        """The target of the innermost ``with``; None outside of all. Raises ``ValueError`` there if ``allow_none`` is false.

        >>> with Target("llvm -mcpu=haswell"):
        ...     Target.current().attrs["mcpu"]
        'haswell'
        >>> Target.current() is None
        True
        """
        found = _CURRENT.get()
        if not found and not allow_none:
            raise ValueError("there is no current target; write with tir.target.Target(…): around the call")
        return found[-1] if found else None

    def __enter__(self) -> Target:
        _CURRENT.set((*_CURRENT.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        _CURRENT.set(_CURRENT.get()[:-1])

    @staticmethod
    def host() -> Target:
        """This machine's CPU: its name, cores, and vector width in bits (``vector_width``)."""
        return Target("llvm", num_cores=_available_cores())

    def limit(self, name: str) -> int | None:
        """A numeric limit such as ``max_threads_per_block``; None where the target has none."""
        value = self.attrs[name] if name in self.attrs else _of_architecture(self.attrs.get("arch")).get(name)
        return None if value is None else int(value)

    @property
    def vectors(self) -> VectorRegisters:
        """The vector registers of the CPU, ``vector_width`` bits wide where that is given; those of the host for a GPU.

        >>> Target("llvm -mcpu=haswell").vectors
        VectorRegisters(bits=256, count=16)
        """
        if self.kind != "llvm":
            return Target.of(self.attrs.get("host") or "llvm").vectors
        cpu, triple = (str(self.attrs.get(name, "")) for name in ("mcpu", "mtriple"))
        found = VectorRegisters.of(cpu, self.attrs.get("mattr"), triple)
        bits = self.limit("vector_width") or found.bits
        return VectorRegisters(bits, found.count if found.bits <= 128 else 32 if bits >= 512 else 16)

    def cache_bytes(self, level: int) -> int:
        """Bytes of the data cache of ``level``: the attribute ``l1_bytes``, ``l2_bytes``, ``l3_bytes``, else this machine's.

        >>> Target("llvm", l2_bytes=1 << 20).cache_bytes(2)
        1048576
        """
        given = self.limit(f"l{level}_bytes")
        return cache_bytes(level) if given is None else given

    def __repr__(self) -> str:
        return f"Target({str(self)!r})"

    def __str__(self) -> str:
        parts = (
            f"-{k.replace('_', '-')}={shlex.quote(str(v))}" for k, v in self.attrs.items() if _GPU_LIMITS.get(k) != v
        )
        return " ".join([self.kind, *parts])

    def as_script(self) -> str:
        """As the dialect writes it; parses back to an equal target."""
        spec = ", ".join(f'"{k}": {_literal(v)}' for k, v in {"kind": self.kind, **self.attrs}.items())
        return f"T.target({{{spec}}})"

    def __hash__(self) -> int:
        return hash(str(self))


create = Target  # its name until TVM 0.6


def _require_options(kind: str, attrs: dict[str, Any]) -> None:
    """Raises ``ValueError`` for an option of ``attrs`` that targets of ``kind`` do not have, or a value that it does not take; digits
    become numbers."""
    options = _OPTIONS[kind]
    for name, value in list(attrs.items()):
        takes = _ANY_KIND.get(name, options.get(name))
        if takes is None:
            names = tuple(options) or tuple(_ANY_KIND)
            raise ValueError(
                f"target {kind} has no option {name!r}; it has {', '.join(names)}{did_you_mean(name, names)}"
            )
        if takes in ("count", "number") and isinstance(value, str) and value.isdecimal():
            attrs[name] = value = int(value)
        if takes == "text":
            right = isinstance(value, str)
        else:
            right = isinstance(value, int) and value >= (takes == "count")
            right = right and (takes == "number" or not isinstance(value, bool))
        if takes and value is not None and not right:
            raise ValueError(f"option {name!r} of target {kind} is {_VALUES[takes]}, not {value!r}")


def _is_known(kind: str) -> bool:
    """Whether something here, or in an installed package, builds for targets of this kind."""
    if kind not in KINDS and kind not in _ADDED:
        extension.load(extension.TARGETS)
    return kind in KINDS or kind in _ADDED


def _of_architecture(arch: Any) -> dict[str, int]:
    digits = _ARCH.fullmatch(arch) if isinstance(arch, str) else None
    found = _ARCHITECTURES.get(int(digits[1])) if digits else None
    names = ("max_dynamic_shared_memory_per_block", "max_threads_per_multiprocessor", "max_blocks_per_multiprocessor")
    return dict(zip(names, found)) if found else {}


def _available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _parse(spec: Any) -> tuple[str, dict[str, Any]]:
    if isinstance(spec, Target):
        return spec.kind, dict(spec.attrs)
    if isinstance(spec, dict):
        attrs = {str(k).replace("-", "_"): v for k, v in spec.items()}
        if "kind" not in attrs:
            raise ValueError("a target given as a dict needs the key 'kind'")
        kind = str(attrs.pop("kind"))
        return _ALIASES.get(kind, kind), attrs
    if not isinstance(spec, str):
        raise TypeError(f"a target is a string, a dict or a Target, not {type(spec).__name__}")
    if spec.lstrip().startswith("{"):
        return _parse(json.loads(spec))
    words = shlex.split(spec) or ["llvm"]
    attrs: dict[str, Any] = {}
    if words[0].startswith("nvidia/"):
        product = words[0].partition("/")[2]
        if product not in _PRODUCTS:
            raise ValueError(f"no GPU is known as {words[0]!r}; those known are {', '.join(_PRODUCTS)}")
        words[0], attrs["arch"] = "cuda", _PRODUCTS[product]
    for word in _options(words[1:]):
        if not word.startswith("-"):
            raise ValueError(f"target option {word!r} should read -name=value")
        name, _, value = word.lstrip("-").partition("=")
        attrs[name.replace("-", "_")] = _value(value)
    return _ALIASES.get(words[0], words[0]), attrs


def _options(words: list[str]) -> list[str]:
    """The options, each as ``-name=value``; ``-name value`` is also read."""
    made: list[str] = []
    for word in words:
        if not word.startswith("-") and made and "=" not in made[-1]:
            made[-1] += f"={word}"
        else:
            made.append(word)
    return made


def _literal(value: Any) -> str:
    """A value of an attribute as the dialect writes it; strings as JSON writes them."""
    if isinstance(value, Target):
        return value.as_script()
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_literal(k)}: {_literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_literal(v) for v in value)}]"
    return str(value)


def _value(text: str) -> Any:
    if text == "":
        return True
    try:
        return int(text)
    except ValueError:
        return text


@functools.cache
def cache_bytes(level: int = 2) -> int:
    """Bytes of the data cache of ``level`` that one core sees; 32 KB, 1 MB, 16 MB where the system does not say.

    >>> cache_bytes(1) <= cache_bytes(2)
    True
    """
    units = {"K": 1 << 10, "M": 1 << 20}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            kind, at, size = ((index / name).read_text().strip() for name in ("type", "level", "size"))
        except OSError:
            continue
        if kind != "Instruction" and at == str(level):
            return int(size[:-1]) * units[size[-1]] if size[-1] in units else int(size)
    return {1: 32 << 10, 2: 1 << 20}.get(level, 16 << 20)


def threads(cores: int | None = None) -> int:
    """The number of threads of parallel loops: ``OMP_NUM_THREADS``, else ``cores``, else the cores this process may use.

    >>> threads() >= 1
    True
    """
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    if cores:
        return cores
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def streams(elements: int, width: int = 4, on: Target | None = None) -> bool:
    """Whether an array of ``elements`` of ``width`` bytes is too large to stay in the caches of a target, or of this machine, until it is read again.

    They keep 8 times what L2 holds, or half of L3; an L3 of more than 32 MB is one of many cores, who share it.

    >>> streams(1000), streams(1000, on=Target("llvm", l2_bytes=256, l3_bytes=1024))
    (False, True)
    """
    l2, l3 = map((on or Target("llvm")).cache_bytes, (2, 3))
    return elements * width >= max(8 * l2, min(l3 // 2, 16 << 20))


def __dir__() -> list[str]:
    return list(__all__)
