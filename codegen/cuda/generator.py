"""The state of generating one CUDA kernel, and dispatch by node type.

``expr.py``, ``ops.py``, ``memory.py``, ``matrix.py`` and ``stmt.py`` register the rules of each kind of node.
"""

from __future__ import annotations

import re
from typing import Any

from tir.arith.analyzer import Analyzer
from tir.arith.linear import is_index
from tir.errors import BuildError
from tir.expr import Expr, Mul, Var
from tir.names import claimed, unique_name
from tir.stmt import Stmt

from ..c_names import identifier, is_reserved
from ..rules import Dispatch, Rules

RULES = Rules()
expr_rule, stmt_rule, op_rule = RULES.expr, RULES.stmt, RULES.op


WIDTH = 120

LOCAL = "ʹ"  # ends each name of the user's in a text that is not finished; names of the user's have no such letter

_OTHER = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|(?<!::)(?<![\w.])([A-Za-z_]\w*)', re.DOTALL)


def finished(text: str) -> str:
    """``text`` with the user's names as C can have them: with a number where C, or the text itself, uses a name for
    something else, so that a buffer ``exp`` and the function ``exp`` may be in one kernel.

    >>> finished(f"exp{LOCAL}[i{LOCAL}] = exp(x{LOCAL}.y);")
    'exp_1[i] = exp(x.y);'
    """
    words = dict.fromkeys(word for word in _OTHER.findall(text) if word)
    own = {word for word in words if not word.endswith(LOCAL)}
    chosen: dict[str, str] = {}
    taken = own | {word[: -len(LOCAL)] for word in words if word not in own}
    for word in words:
        name = word[: -len(LOCAL)]
        if word not in own and (name in own or is_reserved(name)):
            chosen[word] = unique_name(name, taken)
            taken.add(chosen[word])
    return re.sub(rf"\w+{LOCAL}", lambda found: chosen.get(found[0], found[0][: -len(LOCAL)]), text)


def kernel_symbol(name: str) -> str:
    """The name in CUDA C of the kernel ``name``; no function of CUDA's has it, and no other kernel.

    >>> kernel_symbol("main_kernel"), kernel_symbol("exp"), kernel_symbol("é_kernel")
    ('main_kernel', 'exp_kernel', 'k_ue9__kernel')
    """
    made = re.sub(r"\W", lambda found: f"_u{ord(found[0]):x}_", name, flags=re.ASCII)
    made = made if made[0].isalpha() else f"k{made}"
    return made if "kernel" in made else f"{made}_kernel"


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
        self.func_name, self.symbol = func_name, kernel_symbol(func_name)
        self.fast_math = fast_math
        self.warps = warps  # of a block: copies of warp memory that is not held in registers
        self.lines: list[str] = []
        self.depth = 1
        self.names: dict[Any, str] = {}
        self.taken: set[str] = set()  # names of the user's that are in use
        self.declared: set[Any] = set()  # variables of the function already declared
        self.analyzer = Analyzer()
        self.address: Expr | None = None  # the index that is written
        self.helpers: dict[str, None] = {}  # parts of the prelude that the kernel uses
        self.pointers: dict[Var, Any] = {}  # what each pointer is: codegen.cuda.memory.Place
        self.fragments: dict[Any, Any] = {}  # shapes of wmma fragments
        self.engines: frozenset[Var] = frozenset()  # shared memory of copy engines and tensor cores
        self.barriers = 0  # transaction barriers that the kernel has created
        self.maps: dict[Any, tuple[str, Any]] = {}  # tensor maps, by their parts: a parameter, and the call
        self.cluster = 1  # blocks
        self.registers: dict[Any, int] = {}  # how many of 32 bits a product holds, by their pointer
        self.sums: dict[Any, list[Any]] = {}  # by fence and wait: the registers that products use
        self.statics: list[str] = []  # declarations before the kernel
        self.functions: dict[str, str] = {}  # inline functions made for this kernel, by name
        self.lane_vars: set[Any] = set()  # the variables of threadIdx.x

    def may_overflow(self, e: Expr) -> bool:
        """Whether C's operator may overflow where the program's sum, difference, product or ramp wraps around: data in a
        signed type, or a product of two uint16, which C makes int."""
        signed = is_index(e.dtype.element) or (type(e) is Mul and e.dtype == "uint16")
        return signed and self.may_wrap(e, self.address)

    # -------------------------------------------------------------- text

    def emit(self, text: str = "") -> None:
        indent = "  " * self.depth
        parts = [text] if len(indent) + len(text) - text.count(LOCAL) <= WIDTH else broken(text)
        self.lines += [indent + part if part else "" for part in parts]

    def name(self, item: Any, hint: str) -> str:
        """The C name of a variable or buffer: its own, made unique."""
        found = self.names.get(item)
        if found is None:
            found = self.names[item] = self.fresh(hint)
        return found

    def fresh(self, hint: str) -> str:
        """A name made of the user's ``hint`` that no other has: see :func:`finished`."""
        return claimed(re.sub(r"^_*(?=\d|$)|^__+", "v", identifier(hint)), self.taken) + LOCAL

    def release(self, name: str) -> None:
        """``name`` is out of scope: another may have it."""
        self.taken.discard(name.removesuffix(LOCAL))

    def error(self, message: str) -> BuildError:
        return super().error(message.replace(LOCAL, ""))

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
