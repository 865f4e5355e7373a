"""What a notebook draws of accesses and banks, what it completes as a line is typed, and loops in code."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import tir
from tests.hand_schedules import gemm
from tir.library import rows
from tir.notebook.access_picture import SideBySide, access_picture
from tir.notebook.completion import completions, cursor
from tir.notebook.stages import loop_lines
from tir.script import parse

from .stages import Texts, attempt

# ---------------------------------------------------------------- accesses

PROGRAMS = {
    "starts": ('A: T.Buffer((9, 7), "float32"), B: T.Buffer((9, 7), "int8")',
               "for i in range(2, 6):\n    for j in range(1, 5):\n        B[i, j] = T.int8(1)\n        A[8 - i, j + 1] = T.float32(1)"),
    "triangle": ('A: T.Buffer((6, 6), "float64")', "for i in range(1, 6):\n    for j in range(i, 6):\n        for k in range(2):\n            A[j, (i + k) % 6] = T.float64(1)"),
    "twice": ('A: T.Buffer((4, 5, 6), "int16"), B: T.Buffer((4, 5, 6), "int16")',
              "for i in range(4):\n    for j in range(5):\n        for k in range(6):\n            B[i, j, k] = A[i, 4 - j, 5 - k] + A[3 - i, j, k]"),
    "gaps": ("a: T.handle, b: T.handle",
             'A = T.match_buffer(a, (6, 8), "float32", strides=[20, 1])\nB = T.match_buffer(b, (6, 8), "float32", strides=[1, 6])\nfor i, j in T.grid(6, 8):\n    B[i, j] = A[i, j]'),
    "vector": ('A: T.Buffer((200,), "float32"), B: T.Buffer((3,), "float32")', "for i in range(50):\n    A[i * 4] = T.float32(0)\n    A[i * 4 + 1] = B[i // 20]"),
    "wide": ('A: T.Buffer((70, 140), "int8")', "for i in range(70):\n    for j in range(140):\n        A[i, j] = T.int8(0)"),
    "scalar": ('A: T.Buffer((), "float32"), B: T.Buffer((4,), "float32")', "A[()] = T.float32(0)\nfor i in range(4):\n    B[i] = A[()]"),
    "empty": ('A: T.Buffer((4, 4), "float32")', "for i in range(0):\n    for j in range(4):\n        A[i, j] = T.float32(0)"),
    "symbolic": ("a: T.handle, n: T.int32", 'A = T.match_buffer(a, (8,), "float32")\nfor i in range(n, 8):\n    A[i] = T.float32(0)\nfor k in range(n):\n    for j in range(8):\n        A[j] = T.float32(1)'),
}  # fmt: skip


def program(params: str, body: str) -> Any:
    return parse(f"@T.prim_func\ndef f({params}):\n" + "".join(f"    {line}\n" for line in body.splitlines()))


def pictures(name: str) -> Texts:
    """Each buffer by each loop, the loops around it at their first iteration and at another."""
    state = tir.Schedule(program(*PROGRAMS[name])).state
    loops = [None, *(ref for ref in state.index.loops.values())]
    for buffer in [*(b.name for b in state.func.buffers()), "nowhere"]:
        for loop in loops:
            for at in ({}, {"i": 3}, {"i": 2, "j": 3}):
                label = f"{buffer}.{'' if loop is None else loop.name}.{len(at)}"
                yield label, attempt(lambda: drawn(access_picture(state, buffer, loop and loop.name, at)))  # noqa: B023


def drawn(picture: Any) -> str:
    """A picture as text and as a figure, and the elements of each iteration."""
    elements = [picture.elements(n) for n in range(len(picture.touched))]
    return f"{picture}\n{picture.lines}\n{dict(picture.at)}\n{elements}\n{picture.svg()}\n{SideBySide((picture,))._repr_html_()}"


# ---------------------------------------------------------------- banks

KERNEL = """
@T.prim_func
def f(A: T.Buffer((4096,), "{dtype}"), B: T.Buffer((4096,), "{dtype}")):
    for bx in T.thread_binding(2, thread="blockIdx.x"):
        with T.block("tile"):
            T.reads(A[0:4096])
            T.writes(B[0:4096])
            S = T.alloc_buffer((64, 64), "{dtype}", scope="shared")
            for ty in T.thread_binding({y}, thread="threadIdx.y"):
                for tx in T.thread_binding({x}, thread="threadIdx.x"):
                    for j in range(2):
                        for v in T.vectorized({lanes}):
                            S[{write}] = A[tx]
            for ty in T.thread_binding({y}, thread="threadIdx.y"):
                for tx in T.thread_binding({x}, thread="threadIdx.x"):
                    for j in range(3):
                        B[tx] = S[{read}]
"""
PLACES = {
    "rows": ("ty, tx * 2 + v", "ty, tx"), "columns": ("tx, ty + j", "tx, ty"), "far": ("tx, v", "tx * 2 % 64, j"),
    "same": ("0, 0", "ty, 0"), "turned": ("ty, 63 - tx - v", "63 - tx, ty + j"), "half": ("ty, tx // 2 * 4 + v", "tx // 16, tx % 16"),
    "strides": ("ty, tx + v * 32", "tx % 4, tx // 4"), "apart": ("ty, tx * 4 + v * 2", "tx % 8 * 8, tx // 8"),
}  # fmt: skip
LAUNCHES = (
    ("float32", 32, 1, 2),
    ("float32", 16, 4, 4),
    ("float16", 32, 2, 2),
    ("int8", 48, 1, 1),
    ("float64", 32, 1, 2),
    ("int8", 16, 2, 8),
)


def banks(name: str) -> Texts:
    write, read = PLACES[name]
    for dtype, x, y, lanes in LAUNCHES:
        text = KERNEL.format(dtype=dtype, x=x, y=y, lanes=lanes, write=write, read=read)
        yield f"{dtype}.{x}.{y}.{lanes}", attempt(lambda: banked(parse(text)))  # noqa: B023


def banked(func: Any) -> str:
    picture = access_picture(tir.Schedule(func).state, "S")
    return "\n".join(
        [*map(repr, picture.banks), repr([b.conflicts for b in picture.banks]), repr(picture), picture._repr_html_()]
    )


# ---------------------------------------------------------------- completion

LINES = (
    'a = sch.split(sch.get_block("B"), [None, 4], name=\'x\') + f("p, (q", {"k": [1, 2]}, z="', 'sch.reorder("i", "j\', k", ["a", "b',
    "x[sch.bind('it\\'s', \"threadIdx.", 'print("done") ; sch.can.fuse("a" , "b', "sch. split ( 'i', factors = [ '2",
)  # fmt: skip
TYPED = (
    'sch.split("', 'sch.split("multiply.i', "sch.split('pack.p', tail='", 'sch.reorder("pack.p", "', 'sch.fuse(a, "', 'sch.bind("pack.p", "thread', 'sch.bind(thread_axis="b', 'sch.get_block("p',
    'sch.cache_read("pack", "', 'sch.cache_read(block, 0, "', 'sch.cache_write(block=block, write_buffer_index=0, storage_scope="s', 'sch.compute_at("pack", "multiply', 'sch.no_step("', 'tir.build(f, "', 'tir.build(f, target="c', 'tir.build("',
    'tir.lower(f, target="l', 'tir.Target("', 'x.build(f, g, "', 'sch.can.', 'sch.can.sp', "sch.can.split.", 'y = sch.can.compute_', 'other.can.s', 'held.sch.can.s', 'held.sch.split("pack', 'asker.split("pack.j', 'sch.split(loop="pack', 'sch.split("pack.p", factors="',
    'sch.annotate("pack.p", "', 'sch.set_scope("pack", 0, "', "sch.storage_align(block, 0, '", 'sch.transform_layout("pack", "', 'sch.tile(["pack.p", "pack.', 'sch.split(1 == 1, "', 'sch.split(x=={, "', 'sch.rfactor("multiply.k', "f.split('", 'sch.schedule.split("',
)  # fmt: skip


def typing(number: int) -> Texts:
    """What is known of a call after each letter."""
    line = LINES[number]
    yield "cursor", "\n".join(repr(cursor(line[:n])) for n in range(len(line) + 1))


def completed() -> Texts:
    sch = tir.Schedule(gemm.gemm(64, 64, 64))
    held = type("Held", (), {})()
    held.sch = sch
    names = {"sch": sch, "block": sch["store"], "held": held, "asker": sch.can, "f": sch.mod, "a": "pack.p"}
    for number, line in enumerate(TYPED):
        yield str(number), "\n".join(completions(line, names))


# ---------------------------------------------------------------- loops in generated code

CODE = """
void f() {
  for (int i = 0; i < 4; ++i) {
    for (int i_1 = 0; i_1 < 4; ++i_1) {
      g();

    }
    for (int64_t j = 0; j < 4; ++j)
      h();
    h();
  }
  for (int k = 0; k < 4; ++k) {
"""
LABELS = """
entry:
  br label %for.i.1
for.i.1:
  add
for.j.2.i:
  br i1 %c, label %for.j.2.i, label %for.i.1
  br label %for.i.12
end:
.LBB0_1:   # %for.k.3
  jne .LBB0_1
  jmp .LBB0_12
.LBB0_2:   # %for.k.4.i
  b.ne .LBB0_2
.LBB0_3:   # %for.x.5
  cbnz w0, .LBB0_3
  cbz w0, .LBB0_3
  b .LBB0_1
"""


def marked() -> Texts:
    """The lines of each loop in what lowering makes, in CUDA C, and in labels of LLVM and of assembly."""
    func = rows.softmax(8, 32)
    for name, text in {
        "program": func.script(),
        "lowered": tir.lower(func).script(),
        "c": CODE,
        "llvm": LABELS,
    }.items():
        yield name, "\n".join(f"{loop}: {lines}" for loop, lines in loop_lines(text).items())


CASES: dict[str, Callable[[], Texts]] = {
    **{f"access_picture-{name}": partial(pictures, name) for name in PROGRAMS},
    **{f"bank_accesses-{name}": partial(banks, name) for name in PLACES},
    **{f"cursor-{number}": partial(typing, number) for number in range(len(LINES))},
    "completions": completed,
    "loop_lines": marked,
}
