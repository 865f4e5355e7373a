"""What each step and each function of TOPI answers to an argument of another kind, or a little beside the right one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import tir
from tir import te, topi
from tir.errors import attempt as drawn
from tir.testing.decisions import SeededChoice
from tir.testing.schedules import ALL_PRIMITIVES, _Scene

from .altered import answer
from .kit import SCENES
from .stages import Texts

# of every kind that an annotation of a step may name, and of none
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 99, 1.5, np.int64(1), "", "nothing", "global", "C.i", "j", [], [4], ["j"], [None, 2.0], {"write": 0}, ("write", 0),
    ("read", 7), lambda i: i, lambda i, j: (j, i), len, object, b"1",
)  # fmt: skip


def steps(name: str) -> Texts:
    """A step with the arguments that a seed draws, one of them another value, at programs of one and two blocks."""
    for scene in ("sum", "chain"):
        sch = tir.Schedule(SCENES[scene](), seed=1, error_render_level="none")
        for seed in range(4):
            found = drawn(lambda: ALL_PRIMITIVES[name](_Scene(sch, SeededChoice(seed))))  # noqa: B023
            if not isinstance(found, Exception):
                yield f"{scene}.{seed}", "\n".join(_changed(sch, name, *found))
                break


def _changed(sch: tir.Schedule, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[str]:
    for n in range(len(args)):
        for value in VALUES:
            yield _answer(sch, name, (*args[:n], value, *args[n + 1 :]), kwargs)
    for key in kwargs:
        for value in VALUES:
            yield _answer(sch, name, args, {**kwargs, key: value})
    yield _answer(sch, name, args[:-1], kwargs)
    yield _answer(sch, name, (*args, 1), kwargs)
    yield _answer(sch, name, args, {**kwargs, "nothing": 1})


def _answer(sch: tir.Schedule, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    try:
        return str(getattr(sch.copy(), name)(*args, **kwargs))
    except Exception as error:  # of Python too, where an argument is missing or one too many
        return f"{type(error).__name__}: {error}"


# ---------------------------------------------------------------- TOPI


def tensor(*shape: int, dtype: str = "float32") -> te.Tensor:
    return te.placeholder(shape, dtype, name="x")


IMAGE, FILTER = tensor(1, 3, 7, 8), tensor(4, 3, 3, 2)
PADDINGS = (0, 1, (1, 2), (1, 0, 2, 1), "SAME", "VALID", "same", (1, 2, 3), -1)
STRIDES = (1, 2, (1, 2), (2, 1), (1, 2, 3), 0)
AXES = (None, 0, 1, -1, -2, 2, -3, (0, 1), 1.5, "x")
KINDS = (None, "float64", "int32", "int8", "nothing")


def convolutions(call: Callable[..., Any], image: te.Tensor, kernel: te.Tensor) -> Iterator[Any]:
    yield from (partial(call, image, kernel, s, 0, 1) for s in STRIDES)
    yield from (partial(call, image, kernel, 1, p, 1) for p in PADDINGS)
    yield from (partial(call, image, kernel, (1, 2), (1, 0), d) for d in STRIDES)


TOPI: dict[str, Callable[[], Iterator[Any]]] = {
    "dilation2d_nchw": lambda: convolutions(topi.image.dilation2d_nchw, IMAGE, tensor(3, 3, 2)),
    "dilation2d_nhwc": lambda: convolutions(topi.image.dilation2d_nhwc, tensor(1, 7, 8, 3), tensor(3, 2, 3)),
    "conv1d": lambda: convolutions(topi.nn.conv1d, tensor(1, 3, 8), tensor(4, 3, 3)),
    "conv2d_nhwc": lambda: convolutions(topi.nn.conv2d_nhwc, tensor(1, 7, 8, 3), tensor(3, 2, 3, 4)),
    "conv3d_ndhwc": lambda: convolutions(topi.nn.conv3d_ndhwc, tensor(1, 4, 5, 6, 3), tensor(2, 3, 2, 3, 4)),
    "conv2d_NCHWc": lambda: convolutions(topi.nn.conv2d_NCHWc, tensor(1, 2, 7, 8, 4), tensor(3, 2, 3, 2, 4, 5)),
    "deformable_conv2d_nchw": lambda: (
        partial(topi.nn.deformable_conv2d_nchw, IMAGE, tensor(1, 12, 5, o), tensor(4, 3, 3, 2), s, 0, d, 1, 1)
        for o in (7, 4) for s in (1, (1, 2)) for d in (1, (1, 2))
    ),
    "deformable_conv2d_nhwc": lambda: (
        partial(topi.nn.deformable_conv2d_nhwc, tensor(1, 7, 8, 3), tensor(1, 5, o, 12), tensor(3, 2, 3, 4), s, 0, d, 1, 1)
        for o in (7, 4) for s in (1, (1, 2)) for d in (1, (1, 2))
    ),
    "flip": lambda: (partial(topi.flip, tensor(3, 4), a) for a in AXES),
    "arange": lambda: (partial(topi.arange, *a, dtype=d) for a in ((5,), (1, 6), (1, 9, 2), (9, 1, -3), (3, 3)) for d in ("int32", "float32")),
    "meshgrid": lambda: (partial(topi.meshgrid, [tensor(3), tensor(4)][:n], i) for n in (2, 1, 0) for i in ("ij", "xy", "ji")),
    "argsort": lambda: (partial(topi.argsort, tensor(3, 4), None, a, up, d) for a in (0, -1, 2) for up in (True, False) for d in KINDS),
    "argmax": lambda: (partial(topi.argmax, tensor(3, 4), a, k, last) for a in AXES for k in (True, False) for last in (True, False)),
    "argmin": lambda: (partial(topi.argmin, tensor(3, 4), a, k, last) for a in AXES for k in (True, False) for last in (True, False)),
    **{
        name: lambda call=call: (partial(call, tensor(3, 4, dtype=d), a, k) for d in ("float32", "int8", "bool") for a in AXES for k in (True, False))
        for name, call in (("sum", topi.sum), ("prod", topi.prod))
    },
    **{
        name: lambda call=call: (partial(call, tensor(3, 4, dtype=t), a, d, e) for t in ("float32", "bool") for a in AXES[:7] for d in KINDS for e in (None, True, 3))
        for name, call in (("cumsum", topi.cumsum), ("cumprod", topi.cumprod))
    },
}  # fmt: skip


def calls(name: str) -> Texts:
    yield "made", "\n".join(answer(partial(_made, call)) for call in TOPI[name]())


def _made(call: partial[Any]) -> str:
    """The program of a call."""
    made = call()
    given = [a for arg in call.args for a in (arg if isinstance(arg, list) else [arg]) if isinstance(a, te.Tensor)]
    return te.create_prim_func([*given, *(made if isinstance(made, (list, tuple)) else [made])]).script()


CASES = {
    **{f"step-{name}": partial(steps, name) for name in ALL_PRIMITIVES},
    **{f"topi-{name}": partial(calls, name) for name in TOPI},
}
