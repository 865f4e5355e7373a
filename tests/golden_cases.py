"""The schedules kept as text: the golden cases of the primitives, and schedules in the classic spelling."""

from __future__ import annotations

import re
from pathlib import Path

import tir
from tir.script import parse

TESTS = Path(__file__).parent
GOLDEN = TESTS / "golden" / "primitives"
CASES = sorted(GOLDEN.glob("*/*.txt"))

_CLASSIC = (TESTS / "classic_schedules.txt").read_text(encoding="utf-8")
_SECTIONS = re.findall(r"^== (\w+) (\w+)\n(.*?)(?=^== |\Z)", _CLASSIC, flags=re.M | re.S)
CLASSIC_PROGRAMS = {name: text for kind, name, text in _SECTIONS if kind == "program"}
CLASSIC_SCHEDULES = [(name, text) for kind, name, text in _SECTIONS if kind == "schedule"]

# An intrinsic for the cases of tensorize, as ``dot_16x4``: what it computes is what the byte dot products of x86 do, and
# what it does instead is plain code, which the executor runs anywhere.
DOT = """
@T.prim_func
def dot(
    A: T.Buffer((4,), "uint8", offset_factor=1),
    B: T.Buffer((16, 4), "int8", offset_factor=1),
    C: T.Buffer((16,), "int32", offset_factor=1),
):
    with T.block("root"):
        T.reads(C[0:16], A[0:4], B[0:16, 0:4])
        T.writes(C[0:16])
        for i, k in T.grid(16, 4):
            BODY
"""
DOT_DESC = """with T.block("update"):
                vi, vk = T.axis.remap("SR", [i, k])
                C[vi] = C[vi] + T.Cast("int32", A[vk]) * T.Cast("int32", B[vi, vk])"""
DOT_IMPL = 'C[15 - i] = C[15 - i] + T.Cast("int32", A[k]) * T.Cast("int32", B[15 - i, k])'


def dot_16x4() -> tir.TensorIntrin:
    return tir.TensorIntrin(parse(DOT.replace("BODY", DOT_DESC)), parse(DOT.replace("BODY", DOT_IMPL)), "dot_16x4")


def read(path: Path) -> dict[str, str]:
    """The sections of a golden file by their first line."""
    parts = re.split(r"^== (.*)\n", path.read_text(encoding="utf-8"), flags=re.M)
    assert parts[0] == "", f"{path} begins outside a section"
    return {title: text.strip("\n") for title, text in zip(parts[1::2], parts[2::2])}


def program_of(sections: dict[str, str]) -> str:
    """The program that a golden case starts from."""
    return next(text for title, text in sections.items() if title.split()[0] == "before")


def perform(before: str, steps: str) -> tuple[tir.Schedule, tir.ScheduleError | None]:
    """The schedule after the steps, and the refusal of the last one, if it was refused."""
    sch = tir.Schedule(parse(before), seed=0)
    lines = steps.splitlines()
    names = {"sch": sch, "tir": tir, "dot_16x4": dot_16x4}
    for number, line in enumerate(lines):
        try:
            exec(line, names)
        except tir.ScheduleError as refusal:
            assert number == len(lines) - 1, f"step {number + 1} of {len(lines)} is refused already: {refusal}"
            return sch, refusal
    return sch, None
