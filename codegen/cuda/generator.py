"""The state of generating one CUDA kernel, and dispatch by node type.

``expr.py``, ``ops.py``, ``memory.py``, ``matrix.py`` and ``stmt.py`` register the rules of each kind of node.
"""

from __future__ import annotations

import re
from typing import Any

from tir.arith.analyzer import Analyzer
from tir.expr import Expr, Var
from tir.small_floats import SMALL_FLOATS
from tir.stmt import Stmt

from ..rules import Dispatch, Rules

RULES = Rules()
expr_rule, stmt_rule, op_rule = RULES.expr, RULES.stmt, RULES.op


WIDTH = 120

_TAKEN = re.findall(
    r"\w+",
    """alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const constexpr continue
    decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto if
    inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public
    register reinterpret_cast return short signed sizeof static static_assert struct switch template this throw true
    try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq half vec threadIdx blockIdx blockDim gridDim warpSize exp log sin cos tan pow sqrt floor ceil round
    min max abs fabs erf assert printf main j0 j1 jn y0 y1 yn gamma each convert ramp broadcast select gather scatter
    widened load_lanes store_lanes bits_to floordiv floormod minimum maximum shared_address barriers fill mma_store_16x16
    mma_store_16x16_pairs copy_async_4 copy_async_8 copy_async_16 commit_copies wait_copies copy_bulk barrier_init barrier_arrive barrier_expect barrier_wait
    barrier_arrive_after_copies""",
)


def broken(text: str) -> list[str]:
    """A long statement broken into lines: a call one argument per line, an assignment after its ``=``."""
    call = re.match(r"\w+(<[\w, ]+>)?\(", text)
    if call is not None and text.endswith(");"):
        *most, last = _arguments(text[call.end() : -2])
        return [call[0], *(f"    {a}," for a in most), f"    {last});"]
    left, sign, right = text.partition(" = ")
    if not sign or text.startswith("for ("):
        left, sign, right = text.partition(" += ")
    if sign and not text.startswith(("for (", "if (", "while (")):
        return [f"{left}{sign.rstrip()}", f"    {right}"]
    return [text]


def _arguments(text: str) -> list[str]:
    """The parts of ``text`` between commas outside of parentheses."""
    parts, depth = [""], 0
    for ch in text:
        depth += (ch in "([{") - (ch in ")]}")
        if ch == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += ch
    return [p.strip() for p in parts]


class Generator(Dispatch):
    """Writes the body of one kernel, line by line."""

    rules = RULES

    def __init__(self, func_name: str, fast_math: bool = False, warps: int = 1):
        self.func_name = func_name
        self.fast_math = fast_math
        self.warps = warps  # of a block: copies of warp memory that is not held in registers
        self.lines: list[str] = []
        self.depth = 1
        self.names: dict[Any, str] = {}
        self.taken: set[str] = {*_TAKEN, *SMALL_FLOATS}
        self.declared: set[Any] = set()  # variables of the function already declared
        self.analyzer = Analyzer()
        self.helpers: dict[str, None] = {}  # parts of the prelude that the kernel uses
        self.pointers: dict[Var, Any] = {}  # what each pointer is: codegen.cuda.memory.Place
        self.fragments: dict[Any, Any] = {}  # shapes of wmma fragments
        self.statics: list[str] = []  # declarations before the kernel
        self.functions: dict[str, str] = {}  # inline functions made for this kernel, by name
        self.lane_vars: set[Any] = set()  # the variables of threadIdx.x

    # -------------------------------------------------------------- text

    def emit(self, text: str = "") -> None:
        indent = "  " * self.depth
        parts = [text] if len(indent) + len(text) <= WIDTH else broken(text)
        self.lines += [indent + part if part else "" for part in parts]

    def name(self, item: Any, hint: str) -> str:
        """The C name of a variable or buffer: its own, made unique."""
        found = self.names.get(item)
        if found is None:
            found = self.names[item] = self.fresh(hint)
        return found

    def fresh(self, hint: str) -> str:
        base = re.sub(r"\W", "_", hint, flags=re.ASCII) or "v"
        if base[0].isdigit() or base.startswith("__"):
            base = "v" + base.lstrip("_")
        made, count = base, 0
        while made in self.taken:
            count += 1
            made = f"{base}_{count}"
        self.taken.add(made)
        return made

    def need(self, helper: str) -> str:
        """Request a part of the prelude; returns its name."""
        self.helpers.setdefault(helper)
        return helper

    def function(self, name: str, text: str) -> str:
        """Add a function or type before the kernel, once; returns its name."""
        self.functions.setdefault(name, text)
        return name

    # -------------------------------------------------------------- dispatch

    def block(self, head: str, body: Stmt) -> None:
        """``head {`` body ``}``"""
        self.emit(f"{head} {{".lstrip())
        self.depth += 1
        self.stmt(body)
        self.depth -= 1
        self.emit("}")

    # -------------------------------------------------------------- what is known

    def multiple_of(self, e: Expr, limit: int) -> int:
        """The greatest power of two, at most ``limit``, proved to divide ``e``."""
        from tir.arith.modular import modular_of

        coeff, base = modular_of(self.analyzer, e)
        size = limit
        while size > 1 and (coeff % size or base % size):
            size //= 2
        return size
