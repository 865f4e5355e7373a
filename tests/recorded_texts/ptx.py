"""The forms of instructions that the executor of PTX knows, and what each makes of numbers at the borders of its types."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from codegen.ptx import convert, integers, reals  # noqa: F401 (they fill the table)
from codegen.ptx.syntax import Instruction, PTXError
from codegen.ptx.table import bits_of, form_of, numpy_type

from .stages import Texts

INTS = tuple(f"{kind}{bits}" for kind in "su" for bits in (16, 32, 64))
BITS = ("b16", "b32", "b64")
REALS = ("f16", "bf16", "f16x2", "bf16x2", "f32", "f64")
ROUND = ("", "rn", "rz", "rm", "rp")
FTZ, SAT = ("", "ftz"), ("", "sat")
COMPARED = (
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "lo",
    "ls",
    "hi",
    "hs",
    "equ",
    "neu",
    "ltu",
    "leu",
    "gtu",
    "geu",
    "num",
    "nan",
)
SMALL = ("e4m3", "e5m2", "e4m3x2", "e5m2x2")
# the modifiers of each opcode, in their order: one of each group
GROUPS: dict[str, tuple[tuple[str, ...], ...]] = {
    "add": (ROUND, FTZ, SAT, (*INTS, *REALS, "b32")),
    "sub": (("", "rz", "rm"), FTZ, SAT, (*INTS, *REALS)),
    "mul": (("", "lo", "hi", "wide", *ROUND[1:]), FTZ, SAT, (*INTS, *REALS)),
    "mad": (("", "lo", "hi", "wide", "rn", "rm"), ("", "ftz"), SAT, (*INTS, "f32", "f64")),
    "fma": (ROUND, FTZ, SAT, ("", "relu"), (*REALS, "s32")),
    "mul24": (("lo", "hi"), ("s32", "u32", "s16")),
    "mad24": (("lo", "hi"), ("s32", "u32")),
    "div": ((*ROUND, "approx", "full"), FTZ, (*INTS, "f32", "f64", "f16")),
    "rem": ((*INTS, "f32"),),
    "abs": (FTZ, (*INTS, *REALS)),
    "neg": (FTZ, (*INTS, *REALS)),
    "min": (FTZ, ("", "NaN", "relu"), (*INTS, *REALS)),
    "max": (FTZ, ("", "NaN"), (*INTS, *REALS)),
    **dict.fromkeys(("and", "or", "xor", "not", "cnot"), (("pred", *BITS, "s32"),)),
    "shl": ((*BITS, "s32"),),
    "shr": ((*BITS, *INTS),),
    "shf": (("l", "r"), ("wrap", "clamp", ""), ("b32", "b64")),
    "bfi": (("b32", "b64", "s32"),),
    "bfe": (("s32", "u32", "s64", "u64", "b32"),),
    **dict.fromkeys(("clz", "popc", "brev"), (("b32", "b64", "u32"),)),
    "bfind": (("", "shiftamt"), ("s32", "u32", "s64", "u64", "b32")),
    "prmt": (("b32",), ("", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16")),
    "sad": (INTS,),
    "dp4a": (("s32", "u32"), ("s32", "u32")),
    "dp2a": (("lo", "hi", ""), ("s32", "u32"), ("s32", "u32")),
    "setp": (COMPARED, ("", "and", "or", "xor"), FTZ, (*BITS, "s32", "u16", "s64", "f16", "bf16", "f32", "f64")),
    "set": (("lt", "neu", "hs"), ("", "and"), FTZ, ("u32", "s32", "f32", "s64"), ("s32", "f32", "f64")),
    "selp": ((*BITS, "s32", "f32", "f64", "f16"),),
    "slct": (FTZ, ("b32", "s64", "f32", "f64"), ("s32", "f32", "u32")),
    "szext": (("clamp", "wrap", ""), ("s32", "u32", "s64")),
    "copysign": (("f32", "f64", "f16"),),
    "testp": (("finite", "infinite", "number", "notanumber", "normal", "subnormal"), ("f32", "f64")),
    "rcp": ((*ROUND, "approx"), FTZ, ("f32", "f64")),
    "sqrt": ((*ROUND, "approx"), FTZ, ("f32", "f64")),
    "rsqrt": (("", "approx"), FTZ, ("f32", "f64", "f16")),
    "cvt": (
        ("", "rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi"),
        FTZ,
        ("", "sat", "satfinite", "relu"),
        (*INTS, "s8", "u8", *REALS, "tf32", *SMALL),
        (*INTS, "s8", "u8", *REALS, *SMALL),
    ),
}  # fmt: skip


@cache
def numbers(kind: str) -> Any:
    """Numbers of a type at its borders, and beside those of narrower types."""
    made = numpy_type(kind)
    if made == np.dtype(bool):
        return np.array([False, True, True])
    if kind in ("f32", "f64"):
        info = np.finfo(made)
        some = [
            0.0,
            0.5,
            1.0,
            1.5,
            2.5,
            3.0,
            1 / 3,
            127.5,
            255.0,
            65504.0,
            65520.0,
            2.0**31,
            2.0**63,
            1e-7,
            2.0**-24,
            2.0**-130,
        ]
        ends = [float(info.max), float(info.tiny), float(info.smallest_subnormal), float("inf")]
        return np.array([*some, *ends, *(-x for x in (*some, *ends)), float("nan")], made)
    if kind.startswith(("f", "bf")) or kind in SMALL or kind == "tf32":
        halves = [
            0,
            1,
            0x3FF,
            0x400,
            0x3C00,
            0x3C01,
            0x3E00,
            0x4248,
            0x5800,
            0x7BFF,
            0x7C00,
            0x7E00,
            0x3F80,
            0x4049,
            0x7F7F,
            0x7F80,
        ]
        halves += [x | 0x8000 for x in halves]
        pairs = np.array([*halves, *halves[7:], *halves[:7]], np.uint16)
        return pairs.view(made) if made.itemsize != 2 else pairs[: len(halves)]
    bits, low, high = bits_of(kind), np.iinfo(made).min, np.iinfo(made).max
    near = [
        0,
        1,
        2,
        3,
        5,
        7,
        31,
        32,
        33,
        64,
        100,
        127,
        128,
        255,
        256,
        0x7FFF,
        0x8000,
        0xFFFF,
        0x10000,
        1 << 24,
        (1 << 24) + 1,
    ]
    near += [
        1 << bits - 2,
        (1 << bits - 2) + 1,
        high,
        high - 1,
        low,
        low + 1,
        0x5A5A5A5A5A5A5A5A & high,
        *(-x for x in near[:8]),
    ]
    return np.array([x if low <= x <= high else x & high for x in near], made)


def arguments(kinds: tuple[str, ...]) -> list[Any]:
    """Arrays in which numbers meet in several orders."""
    count = max(len(numbers(kind)) for kind in kinds)
    turns = range(5) if len(kinds) > 1 else range(1)
    made = [
        np.concatenate([np.roll(np.resize(numbers(kind), count), n * (1 + 2 * turn)) for turn in turns])
        for n, kind in enumerate(kinds)
    ]
    return [a[:: 1 + 3 * ("f64" in kinds and len(kinds) > 1)].copy() for a in made]


def opcodes(name: str) -> Iterator[str]:
    for chosen in itertools.product(*GROUPS[name]):
        yield ".".join([name, *filter(None, chosen)])


def shown(made: Any) -> str:
    arrays = made if isinstance(made, tuple) else (made,)
    text = hashlib.sha256()
    for a in map(np.ascontiguousarray, arrays):
        if a.dtype.kind == "f":  # which nan it is, machines decide
            a = np.where(np.isnan(a), a.dtype.type("nan"), a)
        text.update(f"{a.dtype} {a.shape}".encode() + a.tobytes())
    return text.hexdigest()[:8]


def forms(name: str) -> Texts:
    lines, unknown = [], 0
    for opcode in dict.fromkeys(opcodes(name)):
        try:
            made = form_of(Instruction(opcode, (), None, 1, f"{opcode} …;"))
            with np.errstate(all="ignore"):
                found = made.function(*arguments(made.inputs))
        except PTXError as error:
            lines += [str(error)] if unknown == 0 else []
            unknown += 1
            continue
        lines.append(f"{opcode} {made.inputs} -> {made.outputs} {shown(found)}")
    yield "forms", "\n".join([*lines, f"{unknown} unknown"])


CASES = {name: partial(forms, name) for name in GROUPS}
