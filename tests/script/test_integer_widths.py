"""int32 beside int64: every program, after every step and at every stage of lowering, is well typed and reads back."""

from __future__ import annotations

import random

import pytest

import tir
from tir.errors import TirError
from tir.expr import BinaryOp, Call, Select
from tir.script import parse
from tir.testing.oracle import assert_roundtrip
from tir.testing.schedules import BLOCK_PRIMITIVES, LOOP_PRIMITIVES, random_schedule
from tir.transform.pipeline import cpu_pipeline
from tir.visit import walk

BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right")


def assert_operands_agree(mod: tir.IRModule) -> None:
    """No node has operands of two types."""
    for func in mod.functions.values():
        for node in walk(func.body):
            if isinstance(node, BinaryOp):
                assert node.a.dtype is node.b.dtype, f"`{node!r}` has a {node.a.dtype} and a {node.b.dtype}"
            elif isinstance(node, Call) and node.op in BITWISE:
                assert node.args[0].dtype is node.args[1].dtype is node.dtype, repr(node)
            elif isinstance(node, Select):
                assert node.true_value.dtype is node.false_value.dtype, repr(node)


def check(mod: tir.IRModule) -> None:
    assert_operands_agree(mod)
    assert_roundtrip(mod)


class Writer:
    """Writes one program: nested loops and blocks whose indices mix both widths."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.wide: dict[str, bool] = {}

    def pick(self, *options: str) -> str:
        return self.random.choice(options)

    def size(self, n: int) -> str:
        return self.pick(str(n), f"T.int64({n})")

    def index(self, names: list[str], limit: str) -> str:
        """An index that stays inside ``limit`` elements, whatever the names hold."""
        a, b = self.pick(*names), self.pick(*names)
        inner = self.pick(
            a,
            f"{a} + {b}",
            f"{a} + 1",
            f"{a} + T.int64(1)",
            f"T.min({a}, T.int64(2)) + {b}",
            f"T.max({a}, {b} - 1)",
            f"{a} * 2 + T.Cast('int64', {b})",
            f"T.Cast('int32', {a}) + {b}",
            f"({a} + {b}) // 2",
            f"({a} ^ {b}) & 3",
            f"({a} << 1 | {b}) >> T.int64(1)",
            f"m + {a}",
            f"T.if_then_else({a} < n, {a}, T.int64(0))",
            f"T.Select({a} < {b}, {b}, {a} + 1)",
        )
        return self.pick(f"T.max(T.min({inner}, {limit} - 1), 0)", f"({inner}) % {limit}")

    def loop(self, name: str, pad: str) -> None:
        """A loop of some width, and at ``self.wide`` whether it is int64."""
        extent = self.pick(self.size(4), self.size(1), "1, 4", "n")
        self.wide[name] = extent == "n" or "int64" in extent
        self.lines.append(f"{pad}for {name} in range({extent}):")

    def axis(self, loop: str, pad: str) -> str:
        """An iterator over the loop, of its width."""
        extent = "T.int64(8)" if self.wide[loop] else "8"
        self.lines.append(f"{pad}v{loop} = T.axis.opaque({extent}, {loop})")
        return f"v{loop}"

    def stage(self, stage: int, source: str, target: str) -> None:
        """Loops and a block, at times inside the block of an outer loop."""
        pad, known = "    ", []
        loops = [f"{x}{stage}" for x in "ijk"[: self.random.randint(1, 3)]]
        nested = len(loops) > 1 and self.random.random() < 0.5
        for name in loops:
            self.loop(name, pad)
            pad += "    "
            if nested and name == loops[0]:
                self.lines.append(f'{pad}with T.block("outer{stage}"):')
                pad += "    "
                known.append(self.axis(name, pad))
        inner = loops[1:] if nested else loops
        self.lines.append(f'{pad}with T.block("block{stage}"):')
        pad += "    "
        known += [self.axis(name, pad) for name in inner]
        if self.random.random() < 0.3:
            self.lines.append(f"{pad}T.where({inner[0]} < {self.pick('n', 'm', '3', 'T.int64(3)')})")
        added = self.pick("1", f"T.Cast('int32', {known[0]})")
        value = f"{source}[{self.index(known, '8')}] + {added}"
        self.lines.append(f"{pad}{target}[{self.index(known, '8')}] = {value}")

    def program(self) -> str:
        a, b, c = (self.size(8) for _ in range(3))
        self.lines = [
            "@T.prim_func",
            f'def main(A: T.Buffer(({a},), "int32"), C: T.Buffer(({c},), "int32"), n: T.int64, m: T.int32):',
            f'    B = T.alloc_buffer(({b},), "int32")',
        ]
        self.stage(0, "A", "B")
        self.stage(1, "B", "C")
        return "\n".join(self.lines)


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_mixed_widths_read_back(first):
    for seed in range(first, first + 20):
        check(tir.IRModule.of(parse(Writer(seed).program())))


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_mixed_widths_read_back_after_steps(first):
    for seed in range(first, first + 10):
        sch, _ = random_schedule(parse(Writer(seed).program()), seed, 5, [*LOOP_PRIMITIVES, *BLOCK_PRIMITIVES])
        check(sch.mod)


@pytest.mark.parametrize("first", range(0, 20, 10))
def test_mixed_widths_read_back_at_every_stage(first):
    for seed in range(first, first + 10):
        mod = tir.IRModule.of(parse(Writer(seed).program()))
        for step in cpu_pipeline():
            try:
                mod = step(mod)
            except TirError:  # an index that no proof keeps inside its buffer
                break
            check(mod)
