"""What the tuner would look at: the candidates of programs in the order of the model, with their steps and times."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import tir
from tests.fuzz.kernel_programs import family_program
from tir import ops, te
from tir.library import attention, elementwise, rows
from tir.tune.space import likeliest_offer, space_of

from .stages import GPU, Texts, cpu, predicted, steps


def product(m: int, n: int, k: int, given: str = "float32", made: str = "") -> tir.PrimFunc:
    A, B = te.placeholder((m, k), given, name="A"), te.placeholder((k, n), given, name="B")
    r, to = te.reduce_axis((0, k), "r"), made or given
    return te.create_prim_func(
        [A, B, te.compute((m, n), lambda i, j: te.sum(A[i, r].astype(to) * B[r, j].astype(to), axis=r), name="C")]
    )


def of(operator: Any, *shapes: tuple[int, ...], **attributes: Any) -> tir.PrimFunc:
    inputs = [te.placeholder(shape, name=f"x{n}") for n, shape in enumerate(shapes)]
    return te.create_prim_func([*inputs, operator(*inputs, **attributes)])


PROGRAMS: dict[str, Callable[[], Any]] = {
    "product": lambda: product(256, 192, 128),
    "product-odd": lambda: product(37, 70, 33),
    "product-thin": lambda: product(3, 512, 256),
    "product-deep": lambda: product(8, 16, 4096),
    "product-half": lambda: product(256, 256, 256, "float16"),
    "product-int8": lambda: product(128, 128, 256, "int8", "int32"),
    "dense": lambda: of(ops.nn.dense, (128, 256), (64, 256)),
    "batched": lambda: of(ops.nn.batch_matmul, (4, 64, 48), (4, 32, 48)),
    "conv2d": lambda: of(ops.nn.conv2d, (1, 16, 28, 28), (32, 16, 3, 3), padding=1),
    "depthwise": lambda: of(ops.nn.depthwise_conv2d_nhwc, (1, 28, 28, 32), (3, 3, 32, 1)),
    "pool": lambda: of(ops.nn.pool2d, (1, 32, 56, 56), kernel=3, stride=2, dilation=1, padding=1, pool_type="max"),
    "softmax": lambda: rows.softmax(512, 1000),
    "layer_norm": lambda: rows.layer_norm(64, 768),
    "row_sum": lambda: rows.row_sum(1000, 1000),
    "row_sum-few": lambda: rows.row_sum(3, 100000),
    "column_sum": lambda: rows.column_sum(1000, 700),
    "chain": lambda: elementwise.gelu_chain(1 << 20),
    "transpose": lambda: elementwise.transpose(512, 640),
    "blur": lambda: elementwise.blur(256, 512),
    "attention": lambda: attention.attention(64, 48, 32),
    "argmax": lambda: family_program("argmax", 3),
    "gather": lambda: family_program("gather", 3),
    "padded": lambda: family_program("padded", 3),
    "cumsum": lambda: of(ops.cumsum, (64, 512), axis=1),
    "resize": lambda: of(ops.image.resize2d, (1, 4, 16, 16), roi=None, size=(32, 32)),
}  # fmt: skip


def offered(name: str, target: str) -> Texts:
    """The schedule of the first offers of all rules, and of offers drawn at random."""
    program = PROGRAMS[name]()
    space = space_of(target)
    begin = tir.Schedule(program, seed=0, target=space.env.target, error_render_level="none")
    for seed in range(DRAWN):
        draw = random.Random(f"{name} {seed}")
        made = space.made(begin, likeliest_offer if seed == 0 else draw.randrange)
        yield f"{seed}.steps", steps(made.schedule)
        yield f"{seed}.program", made.schedule.mod.script()
        decisions = [(d.rule, d.block, d.fuses) for d in made.decisions]
        yield f"{seed}.predicted", f"{decisions}\n{predicted(made.schedule, target)}"
    yield "dropped", f"{space.dropped} {list(space.faults)}"


def explained(name: str, target: str) -> Texts:
    found = tir.tune.explain(PROGRAMS[name](), target, draw=6, count=6, seed=1)
    yield "explanation", str(found)
    for number, one in enumerate(found.candidates):
        yield f"{number}.steps", steps(one.schedule)


DRAWN = 2
TARGETS = {"v3": cpu("v3"), "v4": cpu("v4", 8), "gpu": GPU}
WIDE = ("product", "dense", "conv2d", "softmax", "row_sum", "chain")
CASES = {
    **{
        f"{name}-{key}": partial(offered, name, target)
        for name in PROGRAMS
        for key, target in TARGETS.items()
        if key != "v4" or name in WIDE
    },
    **{f"explain-{name}": partial(explained, name, cpu("v3")) for name in ("product", "row_sum", "chain", "blur")},
    "explain-gpu": partial(explained, "row_sum", GPU),
}
