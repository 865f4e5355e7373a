"""The resources of kernels on a multiprocessor, as a table; limits are checked before anything runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tir.display import CallableReport, html_table, text_table
from tir.errors import BuildError
from tir.launches import bytes_of
from tir.levels import is_shared
from tir.stmt import Allocate
from tir.target import Target
from tir.visit import walk

STATIC_LIMIT = 48 * 1024
# parts of the prelude that need sm_90, and those that need sm_90a itself
HOPPER = (
    "copy_bulk", "barrier_expect", "barrier_arrive_cluster", "fence_barrier_init", "fence_proxy_async", "bulk_commit",
    "bulk_wait", "bulk_wait_read", "cluster_arrive", "cluster_wait", "tensor_map",
)  # fmt: skip
HOPPER_ALONE = ("set_registers", "wgmma_matrix", "wgmma_fence", "wgmma_commit", "wgmma_wait")
REGISTERS = 65536
RESERVED = 1024  # bytes of shared memory per block that the system reserves, from sm_80 on


def chip(arch: str) -> tuple[int, int, int, int]:
    """(shared memory bytes per block, per SM, threads per SM, blocks per SM) of an architecture; those of sm_80 for one
    that `tir.Target` does not know."""
    target = Target("cuda", arch=arch.replace("compute_", "sm_"))
    if target.limit("max_threads_per_multiprocessor") is None:
        return chip("sm_80")
    names = ("max_dynamic_shared_memory_per_block", "max_threads_per_multiprocessor", "max_blocks_per_multiprocessor")
    block, threads, blocks = (target.limit(n) or 0 for n in names)
    return block, block + _reserved(arch), threads, blocks


def _number(arch: str) -> int:
    return int(re.sub(r"\D", "", arch) or 0)


def _reserved(arch: str) -> int:
    return RESERVED if _number(arch) >= 80 else 0


@dataclass(frozen=True)
class Row:
    """One kernel. ``blocks`` is how many fit one multiprocessor, ``limited`` names the resource that limits them."""

    kernel: str
    registers: int
    spills: int
    stack: int
    shared: int
    dynamic: int
    threads: int | None
    blocks: int | None
    occupancy: float | None
    limited: str


_HEAD = (
    "kernel", "registers", "spilled", "stack", "shared", "dynamic", "threads", "blocks/SM", "occupancy", "limited by",
)  # fmt: skip


@dataclass(frozen=True, repr=False)
class Report(CallableReport):
    """Rows in program order; ``str(report)`` is a table."""

    arch: str
    seconds: float
    rows: tuple[Row, ...]

    @staticmethod
    def of(module: Any) -> Report:
        binary = module.binary
        by_name = {r.name: r for r in binary.resources}
        return Report(
            binary.arch, binary.seconds, tuple(_row(t, by_name[t.name], binary.arch) for t in module.texts.values())
        )

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def _cells(self) -> list[tuple[str, ...]]:
        made = []
        for r in self.rows:
            known = r.blocks is not None and r.occupancy is not None
            made.append(
                (
                    r.kernel,
                    str(r.registers),
                    f"{r.spills} B",
                    f"{r.stack} B",
                    f"{r.shared} B",
                    f"{r.dynamic} B",
                    str(r.threads or "?"),
                    str(r.blocks) if known else "?",
                    f"{r.occupancy:.0%}" if known else "?",
                    r.limited,
                )
            )
        return made

    def _title(self) -> str:
        return f"{self.arch}, " + (f"compiled in {self.seconds:.2f} s" if self.seconds else "from the cache")

    def __str__(self) -> str:
        return f"{self._title()}\n{text_table(_HEAD, self._cells())}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(_HEAD, self._cells(), self._title())


def resident_blocks(arch: str, threads: int, registers: int, shared: int) -> tuple[int, str]:
    """How many blocks of ``threads`` threads fit one multiprocessor at a time, each thread with so many registers and each block
    with ``shared`` bytes of shared memory; and the resource that limits them.

    >>> resident_blocks("sm_80", 256, 128, 32768)
    (2, 'registers')
    """
    _, sm, most, most_blocks = chip(arch)
    warps = -(-threads // 32)
    each = -(-registers * 32 // 256) * 256  # registers are allocated to warps in units of 256
    own = shared + _reserved(arch)
    fits = {
        "threads": most // (warps * 32),
        "registers": REGISTERS // (each * warps) if each else most_blocks,
        "shared memory": sm // own if own else most_blocks,
        "blocks": most_blocks,
    }
    limited = min(fits, key=lambda k: fits[k])
    return fits[limited], limited


def _row(text: Any, used: Any, arch: str) -> Row:
    blocks, limited = None, ""
    if text.threads:
        blocks, limited = resident_blocks(arch, text.threads, used.registers, used.shared + text.dynamic)
    most = chip(arch)[2]
    occupancy = None if blocks is None else blocks * (-(-text.threads // 32)) * 32 / most
    spills = used.spill_stores + used.spill_loads
    return Row(
        text.name,
        used.registers,
        spills,
        used.stack,
        used.shared,
        text.dynamic,
        text.threads,
        blocks,
        occupancy,
        limited,
    )


def check_limits(module: Any) -> None:
    """Raise ``BuildError`` for a block with too many threads, or more shared memory than the chip has."""
    most = module.target.limit("max_threads_per_block") or 1024
    for name, text in module.texts.items():
        if text.threads and text.threads > most:
            raise BuildError(
                f"{name}: a block of {text.threads} threads; at most {most}: split the loops bound to threadIdx"
            )
        _check_arch(name, text, module)
        allocated = _shared(module.kernels[name])
        fixed = sum(size for _, scope, size in allocated if scope == "shared")
        listed = ", ".join(f"{n} {size} bytes" for n, _, size in allocated)
        if fixed > STATIC_LIMIT:
            raise BuildError(
                f"{name}: {fixed} bytes of shared memory ({listed}); a kernel has at most {STATIC_LIMIT} of static shared "
                'memory: use smaller tiles, or the scope "shared.dyn", which may be larger'
            )
        limit = chip(module.arch)[0]
        if fixed + text.dynamic > limit:
            raise BuildError(
                f"{name}: {fixed + text.dynamic} bytes of shared memory ({listed}); a block of {module.arch} has at most "
                f"{limit}: use smaller tiles or fewer stages"
            )


def _check_arch(name: str, text: Any, module: Any) -> None:
    """Raise ``BuildError`` for what only later architectures have."""
    number, clusters = _number(module.arch), module.kernels[name].attrs.get("tir.cluster")
    newer = (
        [h for h in text.helpers if h in HOPPER] + ["maps of tensors"] * bool(text.maps) + ["clusters"] * bool(clusters)
    )
    if newer and number < 90:
        raise BuildError(
            f"{name}: bulk copies, barriers that count bytes, and clusters ({', '.join(newer)}) need sm_90 or later, not "
            f"{module.arch}: build for arch=sm_90a, or copy by ptx_cp_async"
        )
    alone = [h for h in text.helpers if h in HOPPER_ALONE]
    if alone and module.arch.replace("compute_", "sm_") != "sm_90a":
        raise BuildError(
            f"{name}: products of warpgroups and their registers ({', '.join(alone)}) need sm_90a itself, not {module.arch}: "
            "build for arch=sm_90a, or multiply by ptx_mma"
        )


def _shared(kernel: Any) -> list[tuple[str, str, int]]:
    found = []
    for node in walk(kernel.body):
        if isinstance(node, Allocate) and is_shared(node.buffer_var.scope):
            found.append((node.buffer_var.name, node.buffer_var.scope, bytes_of(node)))
    return found
