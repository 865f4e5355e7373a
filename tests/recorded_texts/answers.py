"""What steps answer when each is asked of every loop and block of a program: the programs of golden cases and of the fuzzer's
families, with the whole refusals."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import golden_cases

import tir
from tests.fuzz.kernel_programs import FAMILIES, family_program
from tir.analysis.index import index_of
from tir.function import IRModule
from tir.script import parse

from .stages import Texts, attempt

EVERY = 3  # of the questions about two things, one of so many is asked
ONE_LOOP: dict[str, Callable[[Any, Any], Any]] = {
    "parallel": lambda sch, loop: sch.parallel(loop),
    "vectorize": lambda sch, loop: sch.vectorize(loop),
    "block": lambda sch, loop: sch.bind(loop, "blockIdx.x"),
    "thread": lambda sch, loop: sch.bind(loop, "threadIdx.x"),
    "fission": lambda sch, loop: sch.fission(loop),
}
ONE_BLOCK: dict[str, Callable[[Any, str], Any]] = {
    "inline": lambda sch, block: sch.compute_inline(block),
    "reverse_inline": lambda sch, block: sch.reverse_compute_inline(block),
    "cache_read": lambda sch, block: sch.cache_read(block, 0, "global"),
    "cache_write": lambda sch, block: sch.cache_write(block, 0, "local"),
    "reindex": lambda sch, block: sch.reindex(block, ("write", 0)),
    "shared": lambda sch, block: sch.set_scope(block, 0, "shared"),
}


def questions(sch: tir.Schedule) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """What is asked, by name; a loop is called by the first block in it."""
    blocks = [name for name, ref in index_of(sch.func).blocks.items() if ref.scope is not None]
    around = {name: sch.get_loops(name) for name in blocks}
    loops: dict[Any, str] = {}
    for block, found in around.items():
        for loop in found:
            loops.setdefault(loop, f"{block}.{loop.name}")
    for (loop, called), (name, ask) in itertools.product(loops.items(), ONE_LOOP.items()):
        yield f"{name} {called}", lambda s, ask=ask, loop=loop: ask(s, loop)
    for block, (name, ask) in itertools.product(blocks, ONE_BLOCK.items()):
        yield f"{name} {block}", lambda s, ask=ask, block=block: ask(s, block)
    for block, own in around.items():
        for outer, inner in zip(own, own[1:]):
            yield f"reorder {block} {inner.name} {outer.name}", lambda s, a=inner, b=outer: s.reorder(a, b)
            yield f"fuse {block} {outer.name} {inner.name}", lambda s, a=outer, b=inner: s.fuse(a, b)
        for loop in own:
            yield f"decompose {block} {loop.name}", lambda s, b=block, at=loop: s.decompose_reduction(b, at)
            yield f"rfactor {block} {loop.name}", lambda s, at=loop: s.rfactor(at, 0)
        others = [loop for loop in loops if loop not in own]
        for number, loop in enumerate(others):
            if number % EVERY == 0:
                yield f"compute_at {block} {loops[loop]}", lambda s, b=block, at=loop: s.compute_at(b, at)
            if number % EVERY == 1 or len(others) == 1:
                yield (
                    f"reverse_compute_at {block} {loops[loop]}",
                    lambda s, b=block, at=loop: s.reverse_compute_at(b, at),
                )


def answers(func: tir.PrimFunc) -> str:
    """A line for each question: the refusal, or what the step gives."""
    sch = tir.Schedule(func, error_render_level="none")
    return "\n".join(f"{name}: {attempt(lambda: str(ask(sch.copy())))}" for name, ask in questions(sch))  # noqa: B023


def golden(paths: list[Path]) -> Texts:
    seen: set[str] = set()
    for path in paths[::4]:
        text = path.read_text("utf-8").partition("== before\n")[2].partition("\n== ")[0]
        if text and text not in seen and not seen.add(text):
            for name, func in IRModule.of(parse(text)).items():
                yield f"{path.stem}.{name}", answers(func)


def family(name: str, seed: int) -> Texts:
    for found, func in IRModule.of(family_program(name, seed)).items():
        yield found, answers(func)


def paths() -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = defaultdict(list)
    for path in golden_cases.CASES:
        found[path.parent.name].append(path)
    return found


CASES = {
    **{f"golden-{name}": partial(golden, of) for name, of in paths().items()},
    **{f"{name}-4": partial(family, name, 4) for name in sorted(FAMILIES)[::2]},
}
