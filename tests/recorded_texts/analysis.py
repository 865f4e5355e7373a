"""What the analyses find in programs: regions of blocks, footprints, patterns, effects, constants."""

from __future__ import annotations

from functools import partial

import tir
from tests.fuzz.kernel_programs import FAMILIES, family_program
from tests.te_programs import PROGRAMS
from tir import te
from tir.analysis.block_regions import block_access_region
from tir.analysis.effects import effects
from tir.analysis.index import index_of
from tir.analysis.simple_blocks import is_simple_block
from tir.cost import Machine, footprint
from tir.function import IRModule
from tir.te.patterns import block_pattern, pattern

from .stages import CPU, Texts, attempt

MACHINE = Machine.of(tir.Target(CPU))


def analysed(func: tir.PrimFunc) -> Texts:
    lines: list[str] = []
    for name, ref in index_of(func).blocks.items():
        reads, writes = block_access_region(ref.block)
        kinds = f"{block_pattern(ref.block).name} simple={is_simple_block(ref.block)}"
        lines += [f"{name} {kinds} loops={[loop.var.name for loop in ref.loops()]}"]
        lines += [f"  reads {', '.join(map(str, reads))}", f"  writes {', '.join(map(str, writes))}"]
    yield "blocks", "\n".join(lines)
    yield "effects", attempt(lambda: "\n".join(map(shown, effects(func.body))))
    yield "pattern", attempt(lambda: pattern(func).name)
    yield "footprint", attempt(lambda: str(footprint(func, MACHINE)))


def shown(effect: object) -> str:
    parts = ("kind", "buffer", "indices")
    return " ".join(f"{part}={getattr(effect, part, '')}" for part in parts)


def family(name: str, seed: int) -> Texts:
    for found, func in IRModule.of(family_program(name, seed)).items():
        for label, text in analysed(func):
            yield f"{found}.{label}", text


def tensor_program(name: str) -> Texts:
    yield from analysed(te.create_prim_func(PROGRAMS[name](te, tir)))


CASES = {
    **{f"{name}-{seed}": partial(family, name, seed) for name in FAMILIES for seed in (5, 6)},
    **{f"te-{name}": partial(tensor_program, name) for name in PROGRAMS},
}
