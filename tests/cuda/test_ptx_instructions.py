"""Each instruction form of the PTX executor against arithmetic by hand: the table in ``ptx_instructions.txt``."""

from __future__ import annotations

import ctypes
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from codegen.ptx.driver import PTXDriver
from codegen.ptx.syntax import PTXError

TABLE = Path(__file__).parent / "ptx_instructions.txt"
REGISTER = {8: "b16", 16: "b16", 32: "b32", 64: "b64"}


class Form(NamedTuple):
    opcode: str
    inputs: tuple[str, ...]  # types, or the text of an operand that is a constant
    output: str
    cases: list[tuple[list[str], str]]


@cache
def forms() -> list[Form]:
    found: list[Form] = []
    for line in TABLE.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        left, right = line.split(" -> ")
        if ":" in left:
            opcode, types = left.split(": ")
            found.append(Form(opcode, tuple(types.split()), right, []))
        else:
            found[-1].cases.append((left.split(), right))
    return found


def bits(kind: str) -> int:
    return 32 if kind == "pred" else int(re.sub(r"\D", "", kind))


def encoded(text: str, kind: str) -> int:
    """The bits of a value as the table has it."""
    if text.startswith("0x"):
        return int(text, 16)
    if kind in ("f32", "f64"):
        return int(np.array([float(text)], f"float{kind[1:]}").view(f"uint{kind[1:]}")[0])
    return int(text) % (1 << bits(kind))


def program(form: Form) -> str:
    """A kernel that applies the form to one element of each array for each thread."""
    arrays = [k for k in form.inputs if not k.startswith("0x")]
    names = [f"p{n}" for n in range(len(arrays) + 1)]
    lines, operands = [], []
    for n, kind in enumerate(form.inputs):
        if kind.startswith("0x"):
            operands.append(kind)
            continue
        k, size = len([x for x in form.inputs[:n] if not x.startswith("0x")]), bits(kind)
        lines += [f"ld.param.u64 %a, [{names[k]}];", f"mad.wide.u32 %a, %t, {size // 8}, %a;"]
        lines += [f"ld.global.{'f' if kind[0] == 'f' else 'b'}{size} %x{n}, [%a];"]
        operands.append(f"%x{n}")
    size = bits(form.output)
    lines += [f"ld.param.u64 %a, [{names[-1]}];", f"mad.wide.u32 %a, %t, {size // 8}, %a;"]
    target = "%q" if form.output == "pred" else "%y"
    lines.append(f"{form.opcode} {', '.join([target, *operands])};")
    if form.output == "pred":
        lines.append("selp.b32 %y, 1, 0, %q;")
    lines.append(f"st.global.b{size} [%a], %y;")
    declared = [
        f".reg .{kind if kind[0] == 'f' else REGISTER[bits(kind)]} %x{n};"
        for n, kind in enumerate(form.inputs)
        if not kind.startswith("0x")
    ]
    declared.append(f".reg .{form.output if form.output[0] == 'f' else REGISTER[size]} %y;")
    params = ", ".join(f".param .u64 {n}" for n in names)
    body = "\n".join([".reg .b64 %a; .reg .b32 %t; .reg .pred %q;", *declared, "mov.u32 %t, %tid.x;", *lines, "ret;"])
    return f".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k({params})\n{{\n{body}\n}}\n"


def launch(driver: PTXDriver, text: str, arguments: list[int], threads: int, order: str = "together") -> None:
    values = [ctypes.c_uint64(a) for a in arguments]
    params = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
    driver.order = order
    function = driver.function(driver.load(text.encode()), "k", 0)
    driver.launch(function, (1, 1, 1), (threads, 1, 1), 0, 0, ctypes.addressof(params))


def put(driver: PTXDriver, array: np.ndarray) -> int:
    address = driver.allocate(array.nbytes)
    driver.copy_in(address, array.ctypes.data, array.nbytes)
    return address


def taken(driver: PTXDriver, address: int, like: np.ndarray) -> np.ndarray:
    made = np.empty_like(like)
    driver.copy_out(made.ctypes.data, address, made.nbytes)
    return made


def is_nan(value: int, kind: str) -> bool:
    return kind in ("f32", "f64") and bool(np.isnan(np.array([value], f"uint{kind[1:]}").view(f"float{kind[1:]}")[0]))


@pytest.mark.parametrize("form", forms(), ids=lambda f: f"{f.opcode}{''.join(k for k in f.inputs if k[0] == '0')}")
def test_form(form: Form):
    driver = PTXDriver("sm_90a")
    given = [
        np.array([encoded(case[k], kind) for case, _ in form.cases], f"uint{bits(kind)}")
        for k, kind in enumerate(x for x in form.inputs if not x.startswith("0x"))
    ]
    out = np.zeros(len(form.cases), f"uint{bits(form.output)}")
    addresses = [put(driver, x) for x in (*given, out)]
    launch(driver, program(form), addresses, len(form.cases))
    for (case, text), got in zip(form.cases, taken(driver, addresses[-1], out)):
        want = encoded(text, form.output) if text != "nan" else None
        if want is None:
            assert is_nan(int(got), form.output), f"{form.opcode} {case}: {int(got):#x} is no nan"
        else:
            assert int(got) == want, f"{form.opcode} {case}: {int(got):#x}, by hand {want:#x}"


def test_the_table_has_hundreds_of_cases():
    assert sum(len(f.cases) for f in forms()) >= 300


def test_a_form_that_is_not_known_is_an_error_that_names_it():
    driver = PTXDriver("sm_90a")
    for opcode, operands in (("tcgen05.alloc", 1), ("add.strange.s32", 2), ("add.s32.s32.s32", 2), ("frob.b32", 2)):
        with pytest.raises(PTXError, match=re.escape(opcode)):
            launch(driver, program(Form(opcode, ("s32",) * operands, "s32", [])), [1 << 40] * 3, 1)
