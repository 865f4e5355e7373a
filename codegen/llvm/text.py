"""LLVM assembly as text: a module under construction, and a function under construction.

Text, not llvmlite's builder objects: every attribute, flag and intrinsic of the language can be written, and emitting it
takes a small part of a compilation's time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from .types import mangled, vector

C_SYMBOL = re.compile(r"[A-Za-z_.$][\w.$]*", re.ASCII)
_VALUES = (  # pure instructions
    "add sub mul and or xor shl ashr lshr sext zext trunc getelementptr icmp select insertelement shufflevector "
    "extractelement fadd fsub fmul fcmp bitcast ptrtoint inttoptr"
)
_PURE = frozenset(_VALUES.split())
_WRITING = frozenset(("call", "atomicrmw"))
_READING = re.compile(r"call [^@]*@llvm\.(?!x86|aarch64)")  # intrinsics with results: what writes memory has none
_DIVISIONS = frozenset(("udiv", "sdiv", "urem", "srem"))
_DIVISION = re.compile(r"[us](?:div|rem) .*%\S+$")  # by a divisor known only at run time


TILES_MARK = "__tir_tiles"  # a symbol in code that uses tile registers


def symbol(name: str) -> str:
    """A global name, quoted where it needs to be.

    >>> print(symbol("main"), symbol("a b"))
    @main @"a\\20b"
    """
    if C_SYMBOL.fullmatch(name):
        return "@" + name
    return '@"' + "".join(c if c.isalnum() else f"\\{ord(c):02X}" if ord(c) < 128 else c for c in name) + '"'


RUNTIME = "__tir_"  # begins the names of the helpers of every module
OWN = "tir."  # begins the names made of a user's: no function of a C library has a dot in its name


def own_name(*parts: str) -> str:
    """The name in a module of what has the user's names ``parts``; different parts have different names.

    >>> own_name("exp"), own_name("a b", "body")
    ('tir.exp', 'tir.a$20$b.body')
    """
    return OWN + ".".join(re.sub(r"\W|\$", lambda c: f"${ord(c[0]):x}$", part, flags=re.ASCII) for part in parts)


def byte_string(data: bytes) -> str:
    """``c"…"`` of an array constant."""
    plain = set(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-+*/.,:;(){}[]<>=!@#$%^&|~?'")
    return 'c"' + "".join(chr(b) if b in plain else f"\\{b:02X}" for b in data) + '"'


# first lines of modules, read by :func:`codegen.llvm.compile.optimised`
NO_SUPERWORDS = "; no superword vectorization"
AS_IT_IS = "; not optimized"


class ModuleText:
    """Functions, globals, declarations and loop metadata of one LLVM module."""

    def __init__(self, cpu: str, features: str, triple: str, width: int):
        self.triple = triple
        self.width, self.features = width, frozenset(features.split(","))
        self.head = [f'target triple = "{triple}"']
        self.globals: list[str] = []
        self.functions: list[str] = []
        self.declarations: dict[str, str] = {}
        self.metadata: list[str] = []
        self.used_names: set[str] = set()
        self.workspaces: dict[tuple[int, bool], list[str]] = {}  # slots by the bytes that they are for
        self.superwords = True  # whether LLVM may make vectors of straight code
        self.brief = False  # whether optimizing it takes longer than it saves
        legal = f'"min-legal-vector-width"="{width}" ' if width >= 512 else ""
        self.attributes = (
            f'attributes #0 = {{ nounwind "prefer-vector-width"="{width}" {legal}"target-cpu"="{cpu}" '
            f'"target-features"="{features}" }}'
        )

    def unique(self, *parts: str) -> str:
        """A new name made of the user's names ``parts`` (:func:`own_name`), with a number if they occur again."""
        name, n = own_name(*parts), 0
        while name in self.used_names:
            n += 1
            name = own_name(*parts, str(n))
        self.used_names.add(name)
        return name

    def declare(self, name: str, result: str, args: Sequence[str], optional: bool = False) -> str:
        """Declare an external function once; its symbol. ``optional``: null if no library has it."""
        if name not in self.declarations:
            weak = "extern_weak " if optional else ""
            self.declarations[name] = f"declare {weak}{result} {symbol(name)}({', '.join(args)})"
        return symbol(name)

    def constant(self, data: bytes, align: int, base: str) -> str:
        """A private constant byte array; its symbol."""
        name = symbol(self.unique("constant", base))
        self.globals.append(
            f"{name} = private unnamed_addr constant [{len(data)} x i8] {byte_string(data)}, align {align}"
        )
        return name

    def meta(self, text: str) -> str:
        self.metadata.append(text)
        return f"!{len(self.metadata) - 1}"

    def loop_metadata(self, hints: Sequence[str]) -> str:
        """A fresh loop id carrying ``hints``, each the operands of a metadata node (``!"llvm.loop.unroll.full"`` …)."""
        parts = [self.meta(f"!{{{hint}}}") for hint in hints]
        me = f"!{len(self.metadata)}"
        return self.meta(f"distinct !{{{', '.join([me, *parts])}}}")

    def render(self) -> str:
        metadata = [f"!{i} = {text}" for i, text in enumerate(self.metadata)]
        marks = [mark for mark, holds in ((NO_SUPERWORDS, not self.superwords), (AS_IT_IS, self.brief)) if holds]
        parts = [
            *marks, *self.head, *self.globals, *self.functions, *self.declarations.values(), self.attributes, *metadata,
        ]  # fmt: skip
        return "\n".join(parts) + "\n"


class FunctionText:
    """One function: basic blocks of instructions, allocas kept in the entry block."""

    def __init__(
        self,
        module: ModuleText,
        name: str,
        result: str,
        params: Sequence[str],
        linkage: str = "",
        attributes: Sequence[str] = (),
    ):
        self.module = module
        self.name = name
        self.attributes = attributes
        about = " ".join(["#0", *attributes])
        self.header = (
            f"define {linkage + ' ' if linkage else ''}{result} {symbol(name)}({', '.join(params)}) {about} {{"
        )
        self.entry: list[str] = []
        self.lines: list[str] = []
        self.count = 0
        self.block = "start"
        self.terminated = False
        self.known: dict[str, str] = {}  # names of the pure instructions of this block, for reuse
        self.fitting: set[str] = set()  # arithmetic of indices in this block that does not overflow
        self.indices: dict[Any, str] = {}  # and of the indices made of these alone, by their expressions
        self.places: dict[tuple[str, str, str], tuple[str, int]] = {}  # addresses in bounds: see Access.pointer
        self.loads: dict[Any, dict[str, str]] = {}  # names of the loads of this block, by memory that has not changed
        self.source: Any = None  # the memory that loads read, if that is known
        self.impure = 0  # results so far of other instructions
        self.before_return = ""  # an instruction to emit before every return
        self.after_call = ""  # an instruction to emit after every call of our own code
        self.conditions = 0  # conditional branches so far, without those of checks, which leave the function
        self.divisions = 0  # integer divisions so far that may trap
        self.truncations = 0  # integers narrowed so far

    def fresh(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def label(self, hint: str) -> str:
        self.count += 1
        return f"{hint}.{self.count}"

    def emit(self, text: str, kept: Mapping[Any, dict[str, str]] = MappingProxyType({})) -> None:
        """Emit an instruction without a result, after which only the memory of the loads ``kept`` is known to be as before."""
        self._line(text)
        if self.loads:
            self.loads = dict(kept)

    def _line(self, text: str) -> None:
        if not self.terminated:
            self.lines.append("  " + text)

    def value(self, text: str) -> str:
        """Emit an instruction with a result; its name. A pure instruction is emitted once per block, a load once until its memory may change."""
        name = self.known.get(text)
        if name is not None:
            return name
        operation = text[: text.find(" ")]
        loads = self.loads.setdefault(self.source, {}) if operation == "load" and self.source is not None else {}
        if text in loads:
            self.impure += 1
            return loads[text]
        name = self.fresh()
        self._line(f"{name} = {text}")
        if not self.terminated:
            loads[text] = name
        if operation in _DIVISIONS and _DIVISION.match(text):
            self.divisions += 1
        self.truncations += operation == "trunc"
        if operation not in _PURE:
            self.impure += 1
            if operation in _WRITING and not _READING.match(text):
                self.loads.clear()
        elif not self.terminated:
            self.known[text] = name
        return name

    def start(self, label: str) -> None:
        """Begin block ``label``; the block before falls through to it unless it ended."""
        if not self.terminated:
            self.lines.append(f"  br label %{label}")
        self.lines.append(f"{label}:")
        self.block, self.terminated = label, False
        for known in (self.known, self.fitting, self.indices, self.places, self.loads):
            known.clear()

    def jump(self, label: str) -> None:
        self.emit(f"br label %{label}")
        self.terminated = True

    def branch(self, condition: str, yes: str, no: str) -> None:
        """Go to ``yes`` if the i1 ``condition`` holds, else to ``no``."""
        self.conditions += 1
        self._branch(condition, yes, no, "")

    def leave_unless(self, condition: str, good: str, bad: str) -> None:
        """A branch to ``bad``, which leaves the function, unless ``condition`` holds, as it is predicted to."""
        likely = self.module.meta('!{!"branch_weights", i32 1048576, i32 1}')
        self._branch(condition, good, bad, f", !prof {likely}")

    def repeat(self, condition: str, body: str, done: str, hints: Sequence[str]) -> None:
        """The latch of a loop: back to ``body`` while ``condition`` holds. ``hints``: see ``loop_metadata``."""
        self._branch(condition, body, done, f", !llvm.loop {self.module.loop_metadata(hints)}" if hints else "")

    def _branch(self, condition: str, yes: str, no: str, metadata: str) -> None:
        self.emit(f"br i1 {condition}, label %{yes}, label %{no}{metadata}")
        self.terminated = True

    def ret(self, text: str) -> None:
        if self.before_return:
            self.emit(self.before_return)
        self.emit(f"ret {text}")
        self.terminated = True

    def placeholder(self) -> int:
        """Reserve a line for instructions known only later (a phi); ``fill`` fills it, or it is left out."""
        self.lines.append("")
        return len(self.lines) - 1

    def fill(self, place: int, text: str) -> None:
        self.lines[place] = "  " + text

    def alloca(self, type_: str, count: int, align: int) -> str:
        """Stack memory of the function, allocated once at its entry."""
        name = self.fresh()
        self.entry.append(f"  {name} = alloca [{count} x {type_}], align {align}")
        return name

    def call(self, name: str, result: str, args: Sequence[tuple[str, str]]) -> str:
        """Call an external function with arguments of (type, operand); its result, ``"0"`` if that is ``void``."""
        function = self.module.declare(name, result, [type_ for type_, _ in args])
        text = f"call {result} {function}({', '.join(map(' '.join, args))})"
        if result != "void":
            return self.value(text)
        self.emit(text)
        return "0"

    def reduced(self, how: str, flags: str, lanes: int) -> str:
        """The ``and``, or the ``or``, of a vector of i1."""
        return self.call(f"llvm.vector.reduce.{how}.v{lanes}i1", "i1", [(f"<{lanes} x i1>", flags)])

    def intrinsic(self, name: str, element: str, lanes: int, args: Sequence[str]) -> str:
        """Call ``llvm.<name>.<type>`` whose arguments and result all have one type."""
        type_ = vector(element, lanes)
        return self.call(f"llvm.{name}.{mangled(element, lanes)}", type_, [(type_, a) for a in args])

    def splat(self, element: str, value: str, lanes: int) -> str:
        """A scalar value in every lane."""
        if lanes == 1:
            return value
        if not value.startswith("%"):
            return f"splat ({element} {value})"
        type_ = vector(element, lanes)
        first = self.value(f"insertelement {type_} poison, {element} {value}, i64 0")
        return self.value(f"shufflevector {type_} {first}, {type_} poison, <{lanes} x i32> zeroinitializer")

    def hidden(self, type_: str, value: str) -> str:
        """An instruction whose result is a scalar integer ``value``, which LLVM does not know."""
        return f'call {type_} asm "", "=r,0"({type_} {value})'

    def finish(self) -> None:
        lines = filter(None, self.lines)  # without places that were not needed
        text = [self.header, "entry:", *self.entry, "  br label %start", "start:", *lines, "}"]
        self.module.functions.append("\n".join(text))
