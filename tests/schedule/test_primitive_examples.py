"""The examples of primitives, in their docstrings: the program before, the call, and the program after it."""

from __future__ import annotations

import ast
import re
import textwrap

import pytest

import tir
from tests.tools.generated.primitives_page import ours
from tir.analysis.block_regions import accessed_box
from tir.schedule.primitive import PRIMITIVES
from tir.schedule.state import State
from tir.script import parse

EXAMPLE = re.compile(r"^Before, and after\s``sch\.([^`]+)``::\n\n((?:    [^\n]*\n|\n)+)", re.M)
LARGE = 1 << 12
ZERO = """
@T.prim_func
def zero(Y: T.Buffer((4,), "float32", offset_factor=1)):
    with T.block("root"):
        T.reads()
        T.writes(Y[0:4])
        BODY
"""
ZERO_DESC = """for i in range(4):
            with T.block("zero"):
                vi = T.axis.spatial(4, i)
                Y[vi] = T.float32(0)"""


@pytest.mark.parametrize("name", [name for name in ours() if ">>>" not in PRIMITIVES[name].doc])
def test_the_program_after_is_what_the_step_makes(name, monkeypatch):
    zero = [parse(ZERO.replace("BODY", body)) for body in (ZERO_DESC, "Y[0:4] = T.broadcast(T.float32(0), 4)")]
    monkeypatch.setitem(tir.TensorIntrin._registry, "zero_4", tir.TensorIntrin(*zero, "zero_4"))
    found = EXAMPLE.search(PRIMITIVES[name].doc + "\n")
    assert found, f"the docstring of {name} has no ``Before, and after ``sch.{name}(…)``::`` with the two programs"
    before, after = re.split(r"\n\n(?=    \S)", found[2].rstrip())
    sch = tir.Schedule(function(before))
    eval(f"sch.{found[1]}", {"sch": sch})
    made = sch.mod["main"]
    shapes = {buffer.name: buffer.shape for buffer in made.buffer_map.values()}
    assert body(made, after) == body(_parsed(shapes, after), after)


def function(text: str) -> tir.PrimFunc:
    """The body as a function, whose parameters are the buffers that it does not allocate, as large as it accesses."""
    names = _names(text)
    made = _parsed({name: (LARGE,) * names.ranks[name] for name in names.ranks if name not in names.assigned}, text)
    return _parsed({b.name: _accessed(made, b) for b in made.buffer_map.values()}, text)


def _parsed(shapes: dict[str, tuple], text: str) -> tir.PrimFunc:
    names = _names(text)
    converted = {*re.findall(r'T\.[Cc]ast\((?:"int32", )?(\w+)\[', text)}  # by an example about bytes
    kinds = {**dict.fromkeys(names.indices, "int32"), **dict.fromkeys(converted, "int8")}
    other = "int32" if converted else "float32"
    buffers = [f'{n}: T.Buffer({tuple(map(int, s))}, "{kinds.get(n, other)}")' for n, s in sorted(shapes.items())]
    scalars = [f"{name}: T.int32" for name in sorted(names.loaded - names.assigned - {*names.ranks, "T", "range"})]
    return parse(f"@T.prim_func\ndef main({', '.join(buffers + scalars)}):\n{text}\n")


def _accessed(func: tir.PrimFunc, buffer: tir.Buffer) -> tuple[int, ...]:
    """How far the blocks access a parameter along each axis."""
    blocks = State(tir.IRModule.of(func), "main").index.blocks.values()
    found = [ref for ref in blocks if ref.name != "root"]
    boxes = [accessed_box([ref], buffer, ref.scope or ref, "reads", "writes") for ref in found]
    return tuple(max(int(r.min + r.extent) for r in axis) for axis in zip(*filter(None, boxes)))


def body(func: tir.PrimFunc, shown: str) -> str:
    """The text of the body, with the regions of blocks where the example shows them."""
    lines = func.script().partition("\ndef ")[2].splitlines()[1:]
    hidden = [word for word in ("T.reads(", "T.writes(") if word not in shown]
    return "\n".join(line for line in lines if not line.strip().startswith(("# with", *hidden)))


class _Names(ast.NodeVisitor):
    """The names of a body: those assigned, those loaded, buffers with their ranks, and buffers of integers: read in an index, or compared."""

    def __init__(self) -> None:
        self.assigned: set[str] = set()
        self.loaded: set[str] = set()
        self.ranks: dict[str, int] = {}
        self.indices: set[str] = set()

    def visit_Name(self, node: ast.Name) -> None:
        (self.assigned if isinstance(node.ctx, ast.Store) else self.loaded).add(node.id)

    def visit_arg(self, node: ast.arg) -> None:
        self.assigned.add(node.arg)

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = (n.value for n in (node.left, *node.comparators) if isinstance(n, ast.Subscript))
        self.indices |= {value.id for value in sides if isinstance(value, ast.Name)}
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.value, ast.Name):
            self.ranks[node.value.id] = len(node.slice.elts) if isinstance(node.slice, ast.Tuple) else 1
        inside = (n.value for n in ast.walk(node.slice) if isinstance(n, ast.Subscript))
        self.indices |= {value.id for value in inside if isinstance(value, ast.Name)}
        self.generic_visit(node)


def _names(text: str) -> _Names:
    names = _Names()
    names.visit(ast.parse(textwrap.dedent(text)))
    return names
